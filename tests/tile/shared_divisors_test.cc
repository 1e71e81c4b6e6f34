#include "tc/tile/shared_divisors.h"

#include <gtest/gtest.h>

#include "kernels.h"
#include "tc/tile/print.h"
#include "tc/tile/verify.h"

namespace tc::tile {
namespace {

using namespace build;

/// y(i, t) = value in a loop over i that is unrolled `extent` times, by 32 threads.
Program loop_of(const Expr& value, int extent, bool lay_out = true) {
  const Tensor x = global("x", Halide::Float(32), Layout::row_major({extent, 32}));
  const Tensor z = global("z", Halide::Float(32), Layout::row_major({32}));
  const Tensor y = global("y", value.type(), Layout::row_major({extent, 32}), true);
  Kernel kernel;
  kernel.name = "divide";
  kernel.block = {32, 1, 1};
  kernel.tensors = {x, z, y};
  const NodePtr body = store(y, {var("i"), thread_x()}, value);
  kernel.body = lay_out ? unrolled("i", 0, extent, body) : for_loop("i", 0, extent, body);
  return {"divide", {kernel}, {}, ""};
}

/// The statements of a program, one a line.
std::string statements(const Program& program) {
  std::string text;
  for_each_node(program.kernels[0].body, [&](const Node& node) {
    match(
        node, [&](const Store&) { text += node_text(node) + "\n"; },
        [](const OneOf<Atomic, Move, BoxCopy, BoxStore, ClusterLoad> auto&) {}, [](const Collective auto&) {},
        [](const Structure auto&) {}, [](const Synchronisation auto&) {});
  });
  return text;
}

class SharedDivisors : public ::testing::Test {
 protected:
  Tensor x_ = global("x", Halide::Float(32), Layout::row_major({8, 32}));
  Tensor z_ = global("z", Halide::Float(32), Layout::row_major({32}));
  Expr own_ = read(x_, {var("i"), thread_x()});
  Expr shared_ = read(z_, {thread_x()});
  const std::string divided_ = "y(i, thread_x) = x(i, thread_x) / z(thread_x)\n";
};

TEST_F(SharedDivisors, FourUnrolledValuesShareOne) {
  EXPECT_EQ(statements(share_divisors(loop_of(own_ / shared_, 4))),
            "y(i, thread_x) = tc.quotient(x(i, thread_x), z(thread_x))\n");
  EXPECT_EQ(statements(share_divisors(loop_of(own_ / shared_, 3))), divided_);
  EXPECT_EQ(statements(share_divisors(loop_of(own_ / shared_, 8, false))), divided_) << "a loop stays one";
}

TEST_F(SharedDivisors, OfNarrowFloatsIsANarrowOne) {
  for (const Halide::Type type : {Halide::Float(16), Halide::BFloat(16)}) {
    const Program narrow = loop_of(Halide::cast(type, own_ / shared_), 4);
    const std::string text = statements(share_divisors(narrow));
    EXPECT_NE(text.find("tc.narrow_quotient(x(i, thread_x), z(thread_x))"), std::string::npos) << text;
    EXPECT_EQ(verify(share_divisors(narrow)).faults, std::vector<std::string>{});
  }
  const Expr half = Halide::cast(Halide::Float(16), shared_ / own_);
  EXPECT_NE(statements(share_divisors(loop_of(half, 2))).find("tc.narrow_quotient("), std::string::npos) << "alone";
  EXPECT_EQ(statements(share_divisors(loop_of(half, 2), true)).find("quotient"), std::string::npos) << "strict";
  const Expr shared_half = Halide::cast(Halide::Float(16), own_ / shared_);
  EXPECT_NE(statements(share_divisors(loop_of(shared_half, 4), true)).find("tc.quotient("), std::string::npos);
  for (const Expr& wide : {own_ / shared_ + 1.0f, own_ / 4.0f}) {
    const Program kept = loop_of(Halide::cast(Halide::Float(16), wide), 4);
    EXPECT_EQ(statements(share_divisors(kept)).find("narrow"), std::string::npos);
  }
}

TEST_F(SharedDivisors, NotADivisorOfEachValue) {
  EXPECT_EQ(statements(share_divisors(loop_of(shared_ / own_, 8))), "y(i, thread_x) = z(thread_x) / x(i, thread_x)\n");
  EXPECT_EQ(statements(share_divisors(loop_of(shared_ / 3.0f, 8))), "y(i, thread_x) = z(thread_x) / 3.0\n");
}

/// Of two loops the inner one leaves both alone: what it divides is read in the outer one, turn by turn.
TEST_F(SharedDivisors, OfWhatEachTurnReads) {
  const Tensor held = registers("held", Halide::Float(32), Layout::row_major({1}));
  const auto turns = [&](const Expr& value) {
    Program program = loop_of(own_, 8);
    const NodePtr divide =
        store(global("y", Halide::Float(32), Layout::row_major({8, 32}), true), {var("i"), thread_x()}, value);
    program.kernels[0].body = allocate(held, unrolled("i", 0, 8, sequence({store(held, {Expr(0)}, own_), divide})));
    return statements(share_divisors(program));
  };
  const Expr element = read(held, {Expr(0)});
  EXPECT_NE(turns(element / shared_).find("tc.quotient(held(0), z(thread_x))"), std::string::npos);
  EXPECT_EQ(turns(own_ / element).find("tc.quotient"), std::string::npos) << "each turn has another divisor";
}

TEST_F(SharedDivisors, OnlyOfSinglePrecision) {
  const Expr wide = Halide::cast(Halide::Float(64), own_) / Halide::cast(Halide::Float(64), shared_);
  const Program program = loop_of(wide, 8);
  EXPECT_EQ(statements(share_divisors(program)), statements(program));
}

/// The simulator divides, the verifier knows the call, and nothing but the division is another.
TEST_F(SharedDivisors, IsTheDivision) {
  const Program plain = loop_of(own_ / shared_ + 1.0f, 8), shared = share_divisors(plain);
  EXPECT_NE(statements(shared), statements(plain));
  EXPECT_EQ(verify(shared).faults, std::vector<std::string>{});
  Sample sample{shared, {}, "y", {}};
  for (int i = 0; i < 32; ++i) sample.inputs["z"].push_back(static_cast<float>(i) + 0.3f);
  for (int i = 0; i < 8 * 32; ++i) {
    const float x = static_cast<float>(i) - 77.0f;
    sample.inputs["x"].push_back(x);
    sample.expected.push_back(x / sample.inputs["z"][static_cast<size_t>(i % 32)] + 1.0f);
  }
  EXPECT_EQ(complaint(sample), "");
}

}  // namespace
}  // namespace tc::tile
