#include "tc/tile/certificate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>

#include "../common/tile_mutants.h"
#include "kernels.h"

namespace tc::tile {
namespace {

using namespace build;
using Sentences = std::vector<std::string>;

std::vector<Sample> samples() {
  return {vector_add(1000),
          row_sums(5, 333, 128),
          tiled_matmul(33, 20, 50),
          pipelined_matmul(64, 96, 64),
          transpose(64, Spread::kNone),
          transpose(64, Spread::kPadded),
          transpose(64, Spread::kSwizzled)};
}

TEST(Certificate, HoldsForTheSamples) {
  for (const Sample& sample : samples()) {
    const Certificate certificate = certify(sample.program.kernels[0]);
    EXPECT_EQ(certificate.races, Sentences{});
    EXPECT_EQ(certificate.unproved, Sentences{});
    EXPECT_GT(certificate.pairs, 0);
  }
}

TEST(Certificate, EveryBarrierAndWaitOfTheSamplesIsNeeded) {
  int removed = 0;
  for (const Sample& sample : samples()) {
    for (const Mutant& mutant : mutants(sample.program)) {
      if (mutant.what.find("guard") != std::string::npos) continue;
      ++removed;
      EXPECT_FALSE(certify(mutant.program.kernels[0]).races.empty()) << mutant.what;
    }
  }
  EXPECT_EQ(removed, 1 + 2 + 3 + 3);
}

TEST(Certificate, ReadsOfMemoryAreNotAffine) {
  const Certificate certificate = certify(histogram(100, 7).kernels[0]);
  EXPECT_TRUE(certificate.holds()) << "atomics do not race with each other";
  Program plain = histogram(100, 7);
  const Tensor keys = plain.kernels[0].tensors[0];
  const Tensor counts = plain.kernels[0].tensors[1];
  plain.kernels[0].body = if_then(thread_x() < 50, store(counts, {read(keys, {thread_x()})}, 1));
  EXPECT_EQ(certify(plain.kernels[0]).races, Sentences{});
  EXPECT_FALSE(certify(plain.kernels[0]).unproved.empty());
}

/// Neighbours exchange through shared memory, `steps` times, with a barrier where `where` says.
Kernel exchange(int steps, bool before, bool after, int stages) {
  const Tensor y = global("y", Halide::Float(32), Layout::row_major({64}), true);
  const Tensor s = shared("s", Halide::Float(32), Layout::row_major({stages, 64}));
  const Expr stage = var("step") % stages;
  Kernel kernel;
  kernel.name = "exchange";
  kernel.block = {64, 1, 1};
  kernel.tensors = {y};
  std::vector<NodePtr> body = {store(s, {stage, thread_x()}, 1.0f)};
  if (before) body.push_back(barrier());
  body.push_back(store(y, {thread_x()}, read(s, {stage, (thread_x() + 1) % 64})));
  if (after) body.push_back(barrier());
  kernel.body = allocate(s, for_loop("step", 0, steps, sequence(body)));
  return kernel;
}

TEST(Certificate, BarriersInLoops) {
  EXPECT_TRUE(certify(exchange(9, true, true, 1)).holds());
  EXPECT_TRUE(certify(exchange(9, true, false, 2)).holds()) << "two stages need one barrier";
  EXPECT_FALSE(certify(exchange(9, true, false, 1)).holds()) << "the next write overtakes the read";
  EXPECT_FALSE(certify(exchange(9, false, true, 1)).holds());
  EXPECT_FALSE(certify(exchange(9, false, true, 2)).holds());
  EXPECT_EQ(certify(exchange(9, true, false, 1)).races,
            Sentences{"exchange: thread (62,0,0) of block (0,0,0) reads 's' in 'y(thread_x) = s(step % 1, (thread_x + "
                      "1) % 64)', and thread (63,0,0) of block (0,0,0) writes the same element in 's(step % 1, "
                      "thread_x) = 1.0', with no barrier in between"});
}

/// Copies to two of three buffers go on while a loop of so many steps waits for them; behind it others reuse one.
Kernel with_a_rest(int steps) {
  const Tensor x = global("x", Halide::Float(32), Layout::row_major({64}));
  const Tensor y = global("y", Halide::Float(32), Layout::row_major({64}), true);
  const Tensor s = shared("s", Halide::Float(32), Layout::row_major({3, 64}));
  const Expr other = 63 - thread_x();
  Kernel kernel;
  kernel.name = "with_a_rest";
  kernel.block = {64, 1, 1};
  kernel.tensors = {x, y};
  const NodePtr loop = for_loop(
      "step", 0, steps,
      sequence({wait_group(1), barrier(), commit_group(),
                if_then(var("step") < 2, store(y, {thread_x()}, read(s, {var("step"), (thread_x() + 1) % 64})))}));
  kernel.body = allocate(s, sequence({move(s, {0, thread_x()}, x, {thread_x()}, 1, true), commit_group(),
                                      move(s, {1, thread_x()}, x, {thread_x()}, 1, true), commit_group(), loop,
                                      move(s, {1, other}, x, {other}, 1, true), commit_group(), wait_group(0)}));
  return kernel;
}

TEST(Certificate, ALoopEndsAfterAllOfItsIterations) {
  EXPECT_EQ(certify(with_a_rest(3)).races, Sentences{});
  EXPECT_EQ(certify(with_a_rest(40)).races, Sentences{}) << "more than are told apart";
  EXPECT_FALSE(certify(with_a_rest(2)).holds()) << "the last read meets the copy";
  EXPECT_FALSE(certify(with_a_rest(1)).holds()) << "the second copy has not been waited for";
}

TEST(Certificate, BarriersOfWarps) {
  const auto kernel = [](int threads, bool with_barrier) {
    const Tensor y = global("y", Halide::Float(32), Layout::row_major({64}), true);
    const Tensor s = shared("s", Halide::Float(32), Layout::row_major({64}));
    Kernel made;
    made.name = "warp";
    made.block = {threads, 1, 1};
    made.tensors = {y};
    made.body = allocate(
        s, sequence({store(s, {thread_x()}, 1.0f), with_barrier ? barrier(Barrier::Scope::kWarp) : sequence({}),
                     store(y, {thread_x()}, read(s, {thread_x() / 32 * 32 + 31 - thread_x() % 32}))}));
    return made;
  };
  EXPECT_TRUE(certify(kernel(64, true)).holds());
  EXPECT_FALSE(certify(kernel(64, false)).holds());
  Kernel across = kernel(64, true);
  const auto& body = std::get<Allocate>(across.body->node);
  const Tensor y = across.tensors[0];
  across.body = allocate(body.tensor, sequence({store(body.tensor, {thread_x()}, 1.0f), barrier(Barrier::Scope::kWarp),
                                                store(y, {thread_x()}, read(body.tensor, {63 - thread_x()}))}));
  EXPECT_FALSE(certify(across).holds());
}

TEST(Certificate, BlocksAreNotOrdered) {
  Kernel kernel = vector_add(256).program.kernels[0];
  EXPECT_TRUE(certify(kernel).holds());
  const Tensor c = kernel.tensors[2];
  kernel.body = store(c, {thread_x()}, 0.0f);
  EXPECT_FALSE(certify(kernel).holds());
}

/// Wherever isl gives up, the rest is not proved.
TEST(Certificate, ABudgetThatIsTooSmallProvesNothing) {
  const Kernel kernel = tiled_matmul(33, 20, 50).program.kernels[0];
  for (unsigned long operations = 1; operations < 4'000; operations += operations / 4 + 1) {
    SCOPED_TRACE(operations);
    const Certificate certificate = certify(kernel, operations);
    ASSERT_FALSE(certificate.finished);
    ASSERT_EQ(certificate.unproved,
              Sentences{fmt::format("tiled_matmul: the order of its accesses is too hard for {} operations of isl",
                                    operations)});
    ASSERT_EQ(certificate.races, Sentences{});
  }
}

TEST(Certificate, FastEnoughForEachCompile) {
  const Kernel kernel = pipelined_matmul(256, 256, 256).program.kernels[0];
  const std::clock_t start = std::clock();  // of this process alone: others may be busy
  certify(kernel);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 10) << "some 0.1 s in an optimised build";
}

}  // namespace
}  // namespace tc::tile
