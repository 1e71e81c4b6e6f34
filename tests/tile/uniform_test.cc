#include "tc/tile/uniform.h"

#include <gtest/gtest.h>

#include "rings.h"

/// Loops that run as often as a value in shared memory says, which is the same for all threads.
namespace tc::tile {
namespace {

using namespace build;

const Tensor kCounts = [] {
  Tensor tensor = shared("counts", Halide::Int(32), Layout::row_major({288}));
  tensor.written = true;
  return tensor;
}();

NodePtr with_ends(const NodePtr& node, const Expr& end) {
  if (!node) return node;
  NodePtr result = map_children(node, [&](const NodePtr& child) { return with_ends(child, end); });
  const auto* loop = std::get_if<For>(&result->node);
  if (!loop || loop->variable != "tile") return result;
  For changed = *loop;
  changed.end = end;
  return std::make_shared<const Node>(Node{changed, ""});
}

/// A product whose blocks go through as many tiles as `count` is, which is bound behind `before`.
RingSample counted_product(const NodePtr& before, const Expr& count) {
  RingSample sample = ring_product({.n = 128, .releases_late = false, .tiles = 2});
  NodePtr& body = sample.program.kernels[0].body;
  body = with_ends(body, Halide::Internal::Min::make(var("count"), 2));
  body = allocate(kCounts, sequence({before, let("count", count, body)}));
  return sample;
}

NodePtr put_count() { return if_then(thread_x() == 0, store(kCounts, {0}, 2)); }

TEST(Uniform, CountsBehindABarrierAreProved) {
  const RingSample sample = counted_product(sequence({put_count(), barrier()}), read(kCounts, {0}));
  const Flow flow = flow_of(sample.program.kernels[0]);
  EXPECT_EQ(uniform_lets(sample.program.kernels[0], flow), std::set<std::string>{"count"});
  EXPECT_EQ(complaint(sample), "");
  EXPECT_EQ(refusal_of(sample.program), "");
}

/// What is wrong if threads may have other counts.
std::string refusal_of_count(const NodePtr& before, const Expr& count) {
  return refusal_of(counted_product(before, count).program);
}

TEST(Uniform, CountsThatThreadsMayDifferInAreRefused) {
  const NodePtr none = sequence({});
  const std::string some = "is reached by some threads of a warp only: the number of iterations of 'tile' differs";
  const auto refuses = [&](const NodePtr& before, const Expr& count) {
    EXPECT_NE(refusal_of_count(before, count).find(some), std::string::npos) << refusal_of_count(before, count);
  };
  refuses(put_count(), read(kCounts, {0}));                         // no barrier
  refuses(sequence({barrier(), put_count()}), read(kCounts, {0}));  // written behind it
  refuses(barrier(), read(kCounts, {0}));                           // never written
  refuses(sequence({store(kCounts, {thread_x()}, 2), barrier()}), read(kCounts, {thread_x()}));
  refuses(sequence({put_count(), barrier(Barrier::Scope::kWarp)}), read(kCounts, {0}));
}

/// The order of the ring is not proved for turns that leave out some.
TEST(Uniform, TurnsOfEachCountAreProved) {
  RingSample sample = counted_product(sequence({put_count(), barrier()}), read(kCounts, {0}));
  change_node<RingStep>(sample.program, [&](RingStep& step) {
    if (step.kind != RingStep::Kind::kRelease) return false;
    step.turn = step.turn + 1;
    return true;
  });
  EXPECT_NE(refusal_of(sample.program), "");
}

}  // namespace
}  // namespace tc::tile
