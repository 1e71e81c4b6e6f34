#include "tc/tile/places.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <span>

#include "rings.h"
#include "tc/tile/build.h"
#include "tc/tile/simulate.h"
#include "tc/tile/verify.h"

/// Shared tensors that lie where others do.
namespace tc::tile {
namespace {

using namespace build;

constexpr int kThreads = 64;

/// What stands between the first tensor's last use and the second one's first.
struct Between {
  NodePtr node = barrier();
  std::string place_of = "first";
  bool asynchronous = false;   ///< the first tensor is filled by copies
  bool first_is_last = false;  ///< it is read again at the end
};

/// out(t) = 1000 a(63 - t) + a(t), by way of two tensors in shared memory, the second at the place of the first.
Program program_of(const Between& between) {
  const Halide::Type type = Halide::Float(32);
  const Tensor a = global("a", type, Layout::row_major({kThreads}));
  const Tensor out = global("out", type, Layout::row_major({kThreads}), true);
  const Tensor first = shared("first", type, Layout::row_major({kThreads}));
  Tensor second = shared("second", type, Layout::row_major({kThreads}));
  second.place_of = between.place_of;
  const Tensor held = registers("held", type, Layout::row_major({1}));
  const Expr t = thread_x();
  const Expr opposite = read(second, {t});
  const NodePtr fill = between.asynchronous
                           ? sequence({move(first, {t}, a, {t}, 1, true), commit_group(), wait_group(0)})
                           : store(first, {t}, read(a, {t}));
  const NodePtr last = between.first_is_last ? store(held, {0}, read(first, {63 - t})) : sequence({});
  const NodePtr rest = allocate(second, sequence({store(second, {t}, read(a, {t})), barrier(), last,
                                                  store(out, {t}, read(held, {0}) * 1000.0F + opposite)}));
  Kernel kernel;
  kernel.name = "places";
  kernel.block = {kThreads, 1, 1};
  kernel.tensors = {a, out};
  kernel.body = allocate(
      held, allocate(first, sequence({fill, barrier(), store(held, {0}, read(first, {63 - t})), between.node, rest})));
  Program program;
  program.name = kernel.name;
  program.kernels = {kernel};
  return program;
}

std::string refusal(const Between& between) {
  const Verification result = verify(program_of(between));
  return result.faults.empty() ? "" : result.faults[0];
}

TEST(Places, SecondTensorsLieWhereFirstOnesWere) {
  const Program program = program_of({});
  const Kernel& kernel = program.kernels[0];
  EXPECT_EQ(kernel.shared_bytes(), 4 * kThreads);
  EXPECT_TRUE(kernel.has_shared_places());
  EXPECT_EQ(refusal({}), "");
  std::array<float, kThreads> a{}, out{};
  for (int i = 0; i < kThreads; ++i) a[static_cast<size_t>(i)] = static_cast<float>(i);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Arguments arguments;
    arguments.tensors["a"] = std::as_writable_bytes(std::span(a));
    arguments.tensors["out"] = std::as_writable_bytes(std::span(out));
    arguments.undefined.insert("out");
    const Result<Report> report = simulate(program, arguments, {.seed = seed});
    ASSERT_TRUE(report.has_value());
    EXPECT_TRUE(report->findings.empty());
    for (int i = 0; i < kThreads; ++i) {
      EXPECT_EQ(out[static_cast<size_t>(i)], static_cast<float>(1000 * (kThreads - 1 - i) + i));
    }
  }
}

TEST(Places, OthersMustBeDoneBehindABarrierOfAll) {
  const std::string no_barrier = "no barrier of the block stands between what touches 'second'";
  const auto part = [](const Between& between, const std::string& text) {
    const std::string got = refusal(between);
    EXPECT_NE(got.find(text), std::string::npos) << "expected: " << text << "\ngot: " << got;
  };
  part({.node = sequence({})}, no_barrier);
  part({.node = for_loop("i", 0, 2, barrier())}, no_barrier);
  part({.node = if_then(thread_x() >= 0, barrier())}, no_barrier);
  part({.node = barrier(Barrier::Scope::kWarp)}, no_barrier);
  part({.first_is_last = true}, no_barrier);
  part({.asynchronous = true}, "touches where 'second' lies, and may go on");
  part({.place_of = "held"}, "does not lie at the place of a shared tensor 'held'");
  part({.place_of = "none"}, "does not lie at the place of a shared tensor 'none'");
}

/// A product of warpgroups, behind which a tensor lies where its first operand's buffers were.
std::string refusal_behind_ring(const NodePtr& behind_barrier) {
  Program program = ring_product_program({});
  Tensor late = shared("late", Halide::Float(32), Layout::row_major({256}));
  late.place_of = "A_shared";
  const NodePtr store_all = if_then(thread_x() < 256, store(late, {thread_x()}, Expr(1.0F)));
  change_node<Allocate>(program, [&](Allocate& n) {
    if (n.tensor.name != "B_shared") return false;
    n.body = sequence({n.body, barrier(), behind_barrier, allocate(late, store_all)});
    return true;
  });
  return refusal_of(program);
}

TEST(Places, WaitsForWhatOthersDoStandBeforeTheBarrier) {
  EXPECT_EQ(refusal_behind_ring(sequence({})), "");
  const std::string late = refusal_behind_ring(matmul_wait(0));
  EXPECT_NE(late.find("stands behind the barrier before 'late'"), std::string::npos) << late;
}

}  // namespace
}  // namespace tc::tile
