#include "tc/tile/program.h"

#include <gtest/gtest.h>

#include "tc/tile/build.h"

namespace tc::tile {
namespace {

using namespace build;

/// Cases for all kinds, one for each group.
using Groups = decltype(Overloaded{[](const Structure auto&) {}, [](const Synchronisation auto&) {},
                                   [](const Spec auto&) {}});
static_assert(is_exhaustive<Groups>);

using NoShuffle = decltype(Overloaded{[](const Structure auto&) {}, [](const Synchronisation auto&) {},
                                      [](const OneOf<Store, Atomic, Move> auto&) {}});
static_assert(!is_exhaustive<NoShuffle>, "a kind without a case must not compile");

using Others = decltype(Overloaded{[](const Store&) {}, [](const auto&) {}});
static_assert(!is_exhaustive<Others>, "a case for all others must not compile");

// A node with a kind more: what handles all of today's kinds does not handle it.
struct MatMul {};
template <typename... Kinds>
std::variant<Kinds..., MatMul> with_another(const std::variant<Kinds...>&);
static_assert(!decltype(takes_each_of<Groups, const Node>(with_another(Node().node)))());

/// In how many groups a kind is.
template <typename... Kinds>
constexpr bool each_is_in_one_group(const std::variant<Kinds...>*) {
  return (((Structure<Kinds> ? 1 : 0) + (Synchronisation<Kinds> ? 1 : 0) + (Spec<Kinds> ? 1 : 0) == 1) && ...);
}
static_assert(each_is_in_one_group(static_cast<decltype(Node::node)*>(nullptr)));

const Tensor kX = global("x", Halide::Float(32), Layout::row_major({64}), true);
const Tensor kS = shared("s", Halide::Float(32), Layout::row_major({64}));

TEST(Program, ChildrenInTheOrderOfTheText) {
  const NodePtr a = barrier(), b = commit_group();
  std::vector<NodePtr> seen;
  const auto see = [&](const NodePtr& child) { seen.push_back(child); };
  for_each_child(*if_then(thread_x() < 1, a), see);
  for_each_child(*if_then(thread_x() < 1, a, b), see);
  for_each_child(*allocate(kS, sequence({a, b})), [&](const NodePtr& child) { for_each_child(*child, see); });
  for_each_child(*store(kX, {0}, 1.0f), see);
  EXPECT_EQ(seen, (std::vector<NodePtr>{a, nullptr, a, b, a, b}));
}

TEST(Program, MappedChildrenKeepWhatIsAroundThem) {
  const NodePtr before = with_comment("loop", for_loop("i", 0, 4, barrier()));
  EXPECT_EQ(map_children(before, [](const NodePtr& child) { return child; }), before);
  const NodePtr other = commit_group();
  const NodePtr after = map_children(before, [&](const NodePtr&) { return other; });
  EXPECT_EQ(after->comment, "loop");
  EXPECT_EQ(*bound_variable(*after), "i");
  for_each_child(*after, [&](const NodePtr& child) { EXPECT_EQ(child, other); });
  for_each_child(*before, [&](const NodePtr& child) { EXPECT_TRUE(is_barrier(*child)); });
}

TEST(Program, ExpressionsAreMappedWhereTheyAreVisited) {
  const NodePtr node = shuffle(kS, {var("a")}, Shuffle::Kind::kXor, read(kX, {var("b")}), var("c"));
  int seen = 0;
  for_each_expr(*node, [&](const Halide::Expr&) { ++seen; });
  EXPECT_EQ(seen, 3);
  const NodePtr mapped = map_exprs(node, [](const Halide::Expr& e) { return Halide::Internal::substitute("c", 1, e); });
  for_each_expr(*mapped, [&](const Halide::Expr& e) {
    EXPECT_FALSE(Halide::Internal::expr_uses_var(e, "c"));
    --seen;
  });
  EXPECT_EQ(seen, 0);
}

TEST(Program, AccessesOfACopy) {
  const NodePtr node = move(kS, {var("i")}, kX, {var("j")}, 4, true);
  std::vector<std::string> tensors;
  for_each_access(*node, [&](const NodeAccess& access) {
    tensors.push_back(access.tensor);
    EXPECT_EQ(access.is_write, access.tensor == "s");
    EXPECT_EQ(access.asynchronous, access.tensor == "s");
    EXPECT_FALSE(access.atomic);
    EXPECT_EQ(access.elements, 4);
    EXPECT_EQ(access.dimension, 0);
  });
  EXPECT_EQ(tensors, (std::vector<std::string>{"s", "x"}));
}

TEST(Program, WhatNodesOrder) {
  EXPECT_EQ(order_of(*barrier()), Order::kBlock);
  EXPECT_EQ(order_of(*barrier(Barrier::Scope::kWarp)), Order::kWarp);
  EXPECT_EQ(order_of(*wait_group(0)), Order::kCopies);
  EXPECT_EQ(order_of(*wait_for_kernels()), Order::kKernels);
  EXPECT_EQ(order_of(*start_next_kernel()), Order::kNone);
  EXPECT_EQ(order_of(*sequence({barrier()})), Order::kNone);
}

}  // namespace
}  // namespace tc::tile
