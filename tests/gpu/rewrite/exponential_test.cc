#include "tc/gpu/rewrite/exponential.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tc/gpu/strategy/contraction/powers_of_two.h"
#include "tc/tile/program.h"

/// Values as exponentials of a maximum.
namespace tc::testing {
namespace {

using Halide::Expr;
namespace hi = Halide::Internal;

Expr variable(const char* name, Halide::Type type = Halide::Float(32)) { return hi::Variable::make(type, name); }
Expr number(double value) { return hi::FloatImm::make(Halide::Float(32), value); }
Expr function(const char* name, const Expr& e) { return hi::Call::make(e.type(), name, {e}, hi::Call::PureExtern); }

const Expr kS = variable("s"), kTop = variable("top"), kT = variable("t");

std::optional<gpu::Exponential> form(const Expr& e, bool is_maximum = true) {
  return gpu::exponential_in(e, {"top", kS, is_maximum});
}

TEST(Exponential, FindsFactorAndBound) {
  const auto plain = form(function("exp", (kS - kTop) * number(0.5)));
  ASSERT_TRUE(plain);
  EXPECT_DOUBLE_EQ(plain->factor, -0.5);
  EXPECT_DOUBLE_EQ(plain->most, 1);
  const auto spread = form(function("exp2", kS / number(8) - kTop * number(0.125) + number(1)) * number(3));
  ASSERT_TRUE(spread);
  EXPECT_DOUBLE_EQ(spread->factor, -0.125 * std::log(2.0));
  EXPECT_DOUBLE_EQ(spread->most, 6);
  const auto least = form(function("exp", kTop - kS), false);
  ASSERT_TRUE(least);
  EXPECT_DOUBLE_EQ(least->factor, 1);
  const auto none = form(kT + number(1));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->factor, 0);
}

TEST(Exponential, TakesConstantsAsFunctionsOfConstants) {
  const auto scaled = form(function("exp", (kS - kTop) * function("rsqrt", number(64))));
  ASSERT_TRUE(scaled);
  EXPECT_DOUBLE_EQ(scaled->factor, -0.125);
}

TEST(Exponential, IsNoneOfWhatGrowsOrAddsUp) {
  EXPECT_FALSE(form(kTop));
  EXPECT_FALSE(form(function("exp", kTop - kS)));
  EXPECT_FALSE(form(function("exp", kS - kTop), false));
  EXPECT_FALSE(form(function("exp", kS - kTop) + number(1)));
  EXPECT_FALSE(form(function("exp", kS - kTop) + function("exp", (kS - kTop) * number(2))));
  EXPECT_FALSE(form(number(1) / function("exp", kS - kTop)));
  EXPECT_FALSE(form(function("exp", kS + kT - kTop)));
  EXPECT_FALSE(form(function("exp", (kS - kTop) * kT)));
  EXPECT_FALSE(form(function("exp", kS - kTop * number(2))));
  EXPECT_FALSE(form(function("exp", kS - kTop + number(100))));
  EXPECT_FALSE(form(hi::Select::make(kT > number(0), function("exp", kS - kTop), number(1))));
  EXPECT_FALSE(form(hi::Select::make(kTop > number(0), function("exp", kS - kTop), number(0))));
}

TEST(Exponential, TakesTheExtremesValueWhereAConditionHolds) {
  const Expr some = kT > number(0), chosen = hi::Select::make(some, kS, number(-1e30));
  const Expr power = function("exp", kS - kTop);
  EXPECT_FALSE(gpu::exponential_in(power, {"top", chosen, true}));
  EXPECT_TRUE(gpu::exponential_in(hi::Select::make(some, power, number(0)), {"top", chosen, true}));
  EXPECT_FALSE(gpu::exponential_in(hi::Select::make(some, number(0), power), {"top", chosen, true}));
  const Expr of_chosen = function("exp", chosen - kTop);
  EXPECT_TRUE(gpu::exponential_in(hi::Select::make(some, of_chosen, number(0)), {"top", chosen, true}));
}

TEST(Exponential, SaysWhereItIsZeroInAnyCase) {
  const Expr power = function("exp", kS - kTop), some = kT > number(0), other = kT < number(9);
  EXPECT_FALSE(form(power)->present.defined());
  const auto chosen = form(hi::Select::make(some, power, number(0)) * kT);
  ASSERT_TRUE(chosen);
  EXPECT_TRUE(hi::equal(chosen->present, some));
  const auto twice = form(hi::Select::make(other, number(0), hi::Select::make(some, power, number(0))));
  ASSERT_TRUE(twice);
  EXPECT_TRUE(hi::equal(twice->present, hi::And::make(hi::Not::make(other), some)));
  const auto sum = form(hi::Select::make(some, power, number(0)) + power);
  ASSERT_TRUE(sum);
  EXPECT_FALSE(sum->present.defined());
}

TEST(Exponential, HoldsItsBoundInNarrowTypes) {
  const Expr power = function("exp", kS - kTop);
  const Halide::Type half = Halide::Float(16);
  EXPECT_TRUE(form(hi::Cast::make(half, power)));
  EXPECT_TRUE(form(hi::Cast::make(half, power * hi::Cast::make(Halide::Float(32), variable("h", half)))));
  EXPECT_FALSE(form(hi::Cast::make(half, power * kT)));
  EXPECT_TRUE(form(hi::Cast::make(Halide::BFloat(16), power * kT)));
  EXPECT_FALSE(form(hi::Cast::make(Halide::Int(32), power)));
}

TEST(PowersOfTwo, TakeFactorsIn) {
  constexpr double kLog2OfE = 1.4426950408889634;
  const auto power = [](const Expr& e, double factor) {
    return function("exp2", e * number(static_cast<float>(factor * kLog2OfE)));
  };
  const auto changed = [](const Expr& e) { return gpu::with_powers_of_two(e, {"top"}); };
  const Expr top = function("top", variable("row"));
  EXPECT_TRUE(hi::equal(changed(function("exp", (kS - top) * number(0.5))), power(kS - top, 0.5)));
  EXPECT_TRUE(hi::equal(changed(function("exp", number(0.5) * top)), power(top, 0.5)));
  EXPECT_TRUE(hi::equal(changed(function("exp", (kS - top) / number(8))), power(kS - top, 0.125)));
  EXPECT_TRUE(hi::equal(changed(function("exp", top + kT) * kT), power(top + kT, 1) * kT));
  EXPECT_TRUE(hi::equal(changed(function("exp", top * function("rsqrt", number(16)))), power(top, 0.25)));
}

TEST(PowersOfTwo, AreDealtOut) {
  constexpr double kLog2OfE = 1.4426950408889634;
  const gpu::Difference difference = {"S", "top"};
  const auto changed = [&](const Expr& e) { return gpu::with_powers_of_two(e, {"top"}, difference); };
  const Expr s = function("S", variable("row")), top = function("top", variable("row"));
  const Expr factor = number(static_cast<float>(0.5 * kLog2OfE)), large = number(static_cast<float>(2 * kLog2OfE));
  const Expr dealt = changed(function("exp", (s - top) * number(0.5)));
  const auto* exponent = dealt.as<hi::Call>()->args[0].as<hi::Call>();
  ASSERT_NE(exponent, nullptr);
  EXPECT_EQ(exponent->name, "fma");
  EXPECT_TRUE(hi::equal(exponent->args[0], s) && hi::equal(exponent->args[1], factor)) << dealt;
  EXPECT_TRUE(hi::equal(exponent->args[2], top * number(-factor.as<hi::FloatImm>()->value))) << dealt;
  EXPECT_TRUE(hi::equal(changed(function("exp", (s - top) * number(2))), function("exp2", (s - top) * large)));
  EXPECT_TRUE(hi::equal(changed(function("exp", (kS - top) * number(0.5))), function("exp2", (kS - top) * factor)));
  EXPECT_TRUE(gpu::reads_but_difference(function("exp", (s - top) * kT), difference));
  for (const Expr& e : {function("exp", s - top) * s, top - s, (s - kT) - top, function("exp", top)}) {
    EXPECT_FALSE(gpu::reads_but_difference(e, difference)) << e;
  }
}

TEST(PowersOfTwo, ThatBecomeFloat16) {
  const auto changed = [](const Expr& e) { return gpu::with_powers_of_two(e, {"top"}); };
  const Expr power = changed(hi::Cast::make(Halide::Float(16), function("exp", function("top", variable("row")))));
  const auto* call = power.as<hi::Cast>()->value.as<hi::Call>();
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->name, tile::kExp2ForFloat16);
  const Expr wide = changed(hi::Cast::make(Halide::BFloat(16), function("exp", function("top", variable("row")))));
  EXPECT_EQ(wide.as<hi::Cast>()->value.as<hi::Call>()->name, "exp2");
}

TEST(PowersOfTwo, LeaveOthers) {
  const Expr wide = function("top", variable("w", Halide::Float(64))), top = function("top", kT);
  for (const Expr& e : {function("exp", wide), function("exp2", top), function("exp", top * number(0)) + kT,
                        function("exp", kS - kT)}) {
    const Expr changed = gpu::with_powers_of_two(e, {"top"});
    EXPECT_TRUE(hi::equal(changed, e)) << changed;
  }
}

}  // namespace
}  // namespace tc::testing
