#include "tc/gpu/lower/unroll.h"

#include <gtest/gtest.h>

#include "tc/tile/build.h"

namespace tc::gpu {
namespace {

using namespace tile::build;
using tile::NodePtr;

const tile::Tensor& out() {
  static const tile::Tensor tensor = global("out", Halide::Float(32), tile::Layout::row_major({1024}), true);
  return tensor;
}

NodePtr statement() { return store(out(), {0}, read(out(), {0}) + 1.0f); }

/// The loops that are laid out, in order of the text.
std::string laid_out(const NodePtr& body, int64_t most) {
  std::string names;
  tile::for_each_node(unroll_loops(body, most), [&](const tile::Node& node) {
    const auto* loop = std::get_if<tile::For>(&node.node);
    if (loop && loop->unrolled) names += loop->variable;
  });
  return names;
}

TEST(Unroll, InnerLoopsFirstAsFarAsTheCopiesOfAStatementGo) {
  const NodePtr nest = for_loop("i", 0, 2, for_loop("j", 0, 3, for_loop("k", 0, 4, statement())));
  EXPECT_EQ(laid_out(nest, 3), "");
  EXPECT_EQ(laid_out(nest, 4), "k");
  EXPECT_EQ(laid_out(nest, 11), "k");
  EXPECT_EQ(laid_out(nest, 12), "jk");
  EXPECT_EQ(laid_out(nest, 23), "jk");
  EXPECT_EQ(laid_out(nest, 24), "ijk");
}

TEST(Unroll, StatementsSideBySideAreCountedApart) {
  const NodePtr both =
      for_loop("i", 0, 2, sequence({for_loop("j", 0, 8, statement()), for_loop("k", 0, 4, statement())}));
  EXPECT_EQ(laid_out(both, 16), "ijk");
  EXPECT_EQ(laid_out(both, 15), "jk");
  EXPECT_EQ(laid_out(both, 7), "k");
}

TEST(Unroll, ALoopAroundOneThatStaysIsLeft) {
  const NodePtr nest =
      for_loop("i", 0, 2, sequence({statement(), for_loop("j", 0, var("n"), for_loop("k", 0, 4, statement()))}));
  EXPECT_EQ(laid_out(nest, 1000), "k");
}

TEST(Unroll, TripsAreCountedInSteps) {
  const NodePtr by_threes = for_loop("i", var("n"), var("n") + 10, statement(), 3);
  EXPECT_EQ(laid_out(by_threes, 3), "");
  EXPECT_EQ(laid_out(by_threes, 4), "i");
  EXPECT_EQ(laid_out(for_loop("i", 0, 100, statement(), var("n")), 1000), "");
}

TEST(Unroll, WhatIsLaidOutAlreadyCountsAndStays) {
  const NodePtr nest = for_loop("i", 0, 2, unrolled("j", 0, 8, statement()));
  EXPECT_EQ(laid_out(nest, 16), "ij");
  EXPECT_EQ(laid_out(nest, 15), "j");
  EXPECT_EQ(laid_out(nest, 1), "j");
}

TEST(Unroll, LooksBelowBranchesLetsAndAllocations) {
  const tile::Tensor sum = registers("sum", Halide::Float(32), tile::Layout::row_major({1}));
  const NodePtr inner = if_then(var("n") < 3, for_loop("j", 0, 4, statement()), for_loop("k", 0, 2, statement()));
  const NodePtr nest = for_loop("i", 0, 2, let("m", var("i") + 1, allocate(sum, inner)));
  EXPECT_EQ(laid_out(nest, 8), "ijk");
  EXPECT_EQ(laid_out(nest, 7), "jk");
}

}  // namespace
}  // namespace tc::gpu
