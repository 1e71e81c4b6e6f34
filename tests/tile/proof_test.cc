#include "tc/tile/proof.h"

#include <gtest/gtest.h>

#include "../common/tile_mutants.h"
#include "kernels.h"

namespace tc::tile {
namespace {

using namespace build;

std::string text_of(const Program& program) { return to_text(program, prove(program)); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Proof, CountsWhatIsProvedOfAKernel) {
  EXPECT_EQ(text_of(tiled_matmul(33, 20, 50).program), R"(kernel tiled_matmul
  bounds: 11 accesses; 11 inside their tensors, of which 4 under a condition
  barriers: 2 of the block; operations of warps: 0; 2 reached by all of their threads
  order within a block: 5 pairs of accesses may conflict; 2 have a barrier on every way between them, 3 never meet in an element without one
  order between blocks: 1 pair of accesses may conflict; 1 never meet in an element
  promises: none
)");
}

TEST(Proof, PartsOfTheCountsAddUp) {
  for (const Sample& sample : {vector_add(1000), row_sums(5, 333, 128), tiled_matmul(33, 20, 50),
                               pipelined_matmul(64, 96, 64), transpose(64, Spread::kSwizzled)}) {
    const Proof proof = prove(sample.program);
    const KernelChecks& checks = proof.verification.kernels.at(0);
    EXPECT_GT(checks.accesses, 0);
    EXPECT_EQ(checks.inside, checks.accesses);
    EXPECT_EQ(checks.aligned, checks.vectors);
    EXPECT_EQ(checks.together, checks.barriers + checks.warp_operations);
    const Certificate& order = proof.certificates.at(0);
    EXPECT_TRUE(order.finished);
    EXPECT_EQ(order.ordered + order.apart, order.conflicts);
    EXPECT_EQ(order.block_apart, order.block_conflicts);
  }
}

/// A certificate of a kernel that lacks a barrier, a wait or a guard says less than that of the kernel, or says what is
/// wrong.
TEST(Proof, NamesWhatAMutantLacks) {
  const Program right = tiled_matmul(33, 20, 50).program;
  int barriers = 0, guards = 0;
  for (const Mutant& mutant : mutants(right)) {
    SCOPED_TRACE(mutant.what);
    const std::string text = text_of(mutant.program);
    EXPECT_TRUE(has(text, " not proved\n")) << text;
    if (has(mutant.what, "guard")) {
      ++guards;
      EXPECT_TRUE(has(text, "  wrong: the subscript ") || has(text, "  wrong: thread ")) << text;
    } else {
      ++barriers;
      EXPECT_TRUE(has(text, "  barriers: 1 of the block")) << text;
      EXPECT_TRUE(has(text, "  wrong: thread ") && has(text, "the same element in")) << text;
    }
  }
  EXPECT_EQ(barriers, 2);
  EXPECT_GT(guards, 0);
}

TEST(Proof, SaysWhyAnAccessIsNotProved) {
  const std::string text = text_of(histogram(100, 7));
  EXPECT_TRUE(has(text, ", 1 not proved\n")) << text;
  EXPECT_TRUE(has(text,
                  "  not proved: the subscript 'keys(i)' of 'counts' in 'atomic counts(keys(i)) += 1' is not "
                  "affine\n"))
      << text;
}

TEST(Proof, NamesABrokenPromise) {
  Program program = vector_add(1000).program;
  for (Tensor& tensor : program.kernels[0].tensors) tensor.read_only = true;
  const std::string text = text_of(program);
  EXPECT_TRUE(has(text, "; 1 broken\n")) << text;
  EXPECT_TRUE(has(text, "is promised to be read only, but the kernel writes it\n")) << text;
}

TEST(Proof, CountsNoPairsWhereIslGaveUp) {
  const Program program = tiled_matmul(33, 20, 50).program;
  Proof proof = prove(program);
  proof.certificates[0] = {.unproved = {"tiled_matmul: too hard"}, .finished = false};
  const std::string text = to_text(program, proof);
  EXPECT_TRUE(has(text, "  order: not proved\n") && has(text, "  not proved: too hard\n")) << text;
  EXPECT_FALSE(has(text, "pairs")) << text;
}

/// Threads that part at a condition meet in what both branches write.
TEST(Proof, BranchesOfAConditionMayMeet) {
  Program program = vector_add(64).program;
  Kernel& kernel = program.kernels[0];
  const std::string output = kernel.tensors.back().name;
  const auto store = [&](int value) {
    return std::make_shared<const Node>(
        Node{Store{output, {Halide::Expr(0)}, Halide::Expr(static_cast<float>(value))}, ""});
  };
  kernel.grid = {1, 1, 1};
  kernel.body = std::make_shared<const Node>(
      Node{If{Halide::Internal::Variable::make(Halide::Int(32), kThread[0]) < 1, store(1),
              std::make_shared<const Node>(
                  Node{If{Halide::Internal::Variable::make(Halide::Int(32), kThread[0]) == 1, store(2), nullptr}, ""})},
           ""});
  const Certificate order = certify(kernel);
  EXPECT_EQ(order.races.size(), 1U);
  EXPECT_EQ(order.conflicts - order.ordered - order.apart, 1);
}

}  // namespace
}  // namespace tc::tile
