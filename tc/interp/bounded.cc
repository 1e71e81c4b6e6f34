#include "tc/interp/bounded.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numbers>
#include <optional>
#include <span>
#include <string_view>

#include "tc/interp/scalar.h"

namespace tc::interp {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A backend's rounding and our own, in float64.
double relative_error(ScalarType type) { return unit_roundoff(type) + 0x1p-53; }

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// The value after one rounding to the type. Exact operands that give a float of the type give it exactly; in float64
// we cannot tell (our own operation has been rounded) unless the caller can.
Bounded rounded(ScalarType type, double value, double error, double roundings = 1, bool exact_in_float64 = false) {
  const bool representable = type == ScalarType::kFloat64 ? exact_in_float64 : round_to(type, value) == value;
  if (error == 0 && representable) return {value, 0};
  const double magnitude = std::fabs(value) + error;
  error += roundings * (relative_error(type) * magnitude + smallest_subnormal(type));
  const double largest = largest_finite(type);
  if (std::fabs(value) + error <= largest) return {value, error};
  // Up to twice the largest number a fused multiply-add may come back from an overflow, and float16 may be computed
  // in float32. Beyond that it is an infinity for certain.
  const bool own_arithmetic = type == ScalarType::kFloat32 || type == ScalarType::kFloat64;
  if (own_arithmetic && std::fabs(value) - error > 2 * largest) return {std::copysign(kInfinity, value), 0};
  return bounded::unknown();
}

// The operation where an operand or the result is infinite or NaN: certain if all ends of the intervals agree.
template <typename Operation>
Bounded by_ends(Bounded a, Bounded b, Operation operation) {
  const double value = operation(a.value, b.value);
  for (double x : {a.low(), a.high()}) {
    for (double y : {b.low(), b.high()}) {
      if (!same(operation(x, y), value)) return bounded::unknown();
    }
  }
  return {value, 0};
}

bool all_finite(double a, double b, double c) { return std::isfinite(a) && std::isfinite(b) && std::isfinite(c); }

int lowest_bit(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff);
  const uint64_t fraction = bits & 0xfffffffffffffULL;
  if (exponent == 0) return fraction == 0 ? 2000 : std::countr_zero(fraction) - 1074;
  return std::countr_zero(fraction | (uint64_t{1} << 52)) + exponent - 1075;
}

// (1 + u)^n - 1
double growth(double unit, int64_t operations) {
  return std::expm1(static_cast<double>(operations) * std::log1p(unit));
}

}  // namespace

Accuracy default_accuracy(const std::string& name, ScalarType type) {
  const double unit = 2 * unit_roundoff(type);
  // Computed in float32 and rounded.
  if (type == ScalarType::kFloat16 || type == ScalarType::kBFloat16) return {1, 0};
  // Near their zeros these have an absolute error only.
  static constexpr std::array kAbsolute = {"lgamma", "j0", "j1", "y0", "y1", "jn", "yn"};
  if (std::find(kAbsolute.begin(), kAbsolute.end(), name) != kAbsolute.end()) return {16, 32 * unit};
  return {4, 0};
}

namespace bounded {

Bounded unknown() { return {0, kInfinity}; }

Bounded hull(double value, std::initializer_list<double> ends) {
  double error = 0;
  for (double end : ends) {
    if (same(value, end)) continue;
    const double distance = std::fabs(value - end);
    if (!std::isfinite(distance)) return unknown();
    error = std::max(error, distance);
  }
  return {value, error == 0 ? 0 : error + std::fabs(value) * 0x1p-52};
}

Bounded add(ScalarType type, Bounded a, Bounded b) {
  if (!a.known() || !b.known()) return unknown();
  const double sum = a.value + b.value;
  if (!all_finite(a.value, b.value, sum)) return by_ends(a, b, [](double x, double y) { return x + y; });
  const double part = sum - a.value;
  const bool exact = (a.value - (sum - part)) + (b.value - part) == 0;
  return rounded(type, sum, a.error + b.error, 1, exact);
}

Bounded subtract(ScalarType type, Bounded a, Bounded b) { return add(type, a, {-b.value, b.error}); }

Bounded multiply(ScalarType type, Bounded a, Bounded b) {
  if (!a.known() || !b.known()) return unknown();
  const double product = a.value * b.value;
  if (!all_finite(a.value, b.value, product)) return by_ends(a, b, [](double x, double y) { return x * y; });
  const double error = std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error;
  return rounded(type, product, error, 1, std::fma(a.value, b.value, -product) == 0);
}

Bounded divide(ScalarType type, Bounded a, Bounded b) {
  if (!a.known() || !b.known()) return unknown();
  if (b.error > 0 && std::fabs(b.value) <= b.error) return unknown();
  const double quotient = a.value / b.value;
  if (!all_finite(a.value, b.value, quotient)) return by_ends(a, b, [](double x, double y) { return x / y; });
  const double error = b.error + a.error == 0
                           ? 0
                           : (a.error + std::fabs(quotient) * b.error) / (std::fabs(b.value) - b.error) * (1 + 0x1p-50);
  return rounded(type, quotient, error, 1, std::fma(-quotient, b.value, a.value) == 0);
}

Bounded min(Bounded a, Bounded b) {
  if (a.known() && std::isnan(a.value)) return a;
  if (b.known() && std::isnan(b.value)) return b;
  if (!a.known() || !b.known()) return unknown();
  return hull(std::min(a.value, b.value), {std::min(a.low(), b.low()), std::min(a.high(), b.high())});
}

Bounded max(Bounded a, Bounded b) {
  const Bounded negated = min({-a.value, a.error}, {-b.value, b.error});
  return {-negated.value, negated.error};
}

Bounded convert(ScalarType from, ScalarType to, Bounded a) {
  if (to == ScalarType::kFloat64 || (to == ScalarType::kFloat32 && from != ScalarType::kFloat64)) return a;
  // Rounded once and saturating on every backend, so the ends of the interval go to the ends of the result's.
  if (is_float8(to) && a.known()) return hull(round_to(to, a.value), {round_to(to, a.low()), round_to(to, a.high())});
  if (from == to || !a.known() || !std::isfinite(a.value)) return a;
  const double largest = largest_finite(to) * (1 + 2 * unit_roundoff(to));
  if (std::fabs(a.value) - a.error > largest) return {std::copysign(kInfinity, a.value), 0};
  // From an exact value there is one right answer. float16 and bfloat16 may be reached by way of float32.
  if (a.error == 0 && to == ScalarType::kFloat32) return {round_to(to, a.value), 0};
  return rounded(to, a.value, a.error, 1, true);
}

Bounded from_integer(ScalarType from, ScalarType to, Sure a) {
  if (!a.sure) return unknown();
  if (is_float8(to)) return {integer_to_float(from, to, a.value), 0};
  const double value = integer_to_float(from, to, a.value);
  if (to == ScalarType::kFloat32 || to == ScalarType::kFloat64 || std::fabs(value) < 2048) return {value, 0};
  if (std::isinf(value)) return {value, 0};
  return {value, value == integer_to_float(from, ScalarType::kFloat64, a.value) ? 0 : 2 * ulp(to, value)};
}

Sure to_integer(ScalarType to, Bounded a) {
  const int64_t low = float_to_integer(to, a.low());
  return {float_to_integer(to, a.value), a.known() && low == float_to_integer(to, a.high())};
}

namespace {

/// How far a function is from its value at some points around the arguments: the ends of their intervals, and their
/// values, each with each. Empty where only some of its values there are finite.
std::optional<double> sampled_error(const RealFunction& function, ScalarType type, const Bounded* arguments,
                                    double value) {
  double below = 0;
  double above = 0;
  int samples = 1;
  for (int i = 0; i < function.arity; ++i) samples *= 3;
  for (int sample = 0; sample < samples; ++sample) {
    std::array<double, 4> point{};
    int rest = sample;
    for (int i = 0; i < function.arity; ++i, rest /= 3) {
      const Bounded& a = arguments[i];
      point[i] = rest % 3 == 0 ? a.low() : rest % 3 == 1 ? a.value : a.high();
    }
    const double result = function.compute(type, point.data());
    if (same(result, value)) continue;
    if (!std::isfinite(result) || !std::isfinite(value)) return std::nullopt;
    below = std::max(below, value - result);
    above = std::max(above, result - value);
  }
  return std::max(below, above);
}

/// Whether the quotient of two intervals lies between neighbouring multiples of 1/2, between which fmod() and
/// remainder() have no jump.
bool has_one_tooth(Bounded dividend, Bounded divisor) {
  if (divisor.low() <= 0 && divisor.high() >= 0) return false;
  const double quotients[] = {dividend.low() / divisor.low(), dividend.low() / divisor.high(),
                              dividend.high() / divisor.low(), dividend.high() / divisor.high()};
  const auto [least, greatest] = std::minmax_element(std::begin(quotients), std::end(quotients));
  return std::floor(2 * *least) == std::floor(2 * *greatest);
}

/// Up to here samples show how a wave or a pole moves a function (Shape::kWavy).
constexpr double kSampledError = 0.125;

/// What an error in the arguments, together `error`, does to a function's value. Empty: anything.
std::optional<double> spread_error(const RealFunction& function, ScalarType type, const Bounded* arguments,
                                   double value, double error) {
  if (error == 0) return 0;
  const auto sampled = [&] { return sampled_error(function, type, arguments, value); };
  const auto doubled = [](std::optional<double> once) { return once ? std::optional(2 * *once) : once; };
  switch (function.shape) {
    case Shape::kMonotone:
      return sampled();
    case Shape::kLipschitz:
      return error;
    case Shape::kPi:
      return std::numbers::pi * error;
    case Shape::kSmooth:
      return doubled(sampled());
    case Shape::kWavy:
      return error > kSampledError ? std::nullopt : doubled(sampled());
    case Shape::kSawtooth:
      return has_one_tooth(arguments[0], arguments[1]) ? doubled(sampled()) : std::nullopt;
  }
  return std::nullopt;
}

/// A float32 of which the last 13 bits of the fraction may be lost, that of 2^-126 and below too.
Bounded about_tf32(double value, double error) {
  const auto nearest = static_cast<float>(value);
  const bool is_tf32 = nearest == value && (std::bit_cast<uint32_t>(nearest) & 0x1fff) == 0;
  if (error == 0 && is_tf32) return {value, 0};
  return {value, error + (std::fabs(value) + error) * 0x1p-10 + 0x1p-136};
}

}  // namespace

Bounded call(const RealFunction& function, ScalarType type, const Bounded* arguments, const AccuracyTable& accuracy) {
  std::array<double, 4> point{};
  double in_arguments = 0;
  for (int i = 0; i < function.arity; ++i) {
    if (!arguments[i].known()) return unknown();
    point[i] = arguments[i].value;
    in_arguments += arguments[i].error;
  }
  // The sign of a NaN is whatever an operation made of it.
  if (std::isnan(point[1]) && std::string_view(function.name) == "copysign") return unknown();
  // pow(1, NaN) and pow(NaN, 0) are 1, which the ends of an interval around 1 or 0 do not show.
  const bool has_nan = std::isnan(point[0]) || std::isnan(point[1]);
  if (has_nan && in_arguments > 0 && std::string_view(function.name) == "pow") return unknown();
  const double value = function.compute(type, point.data());
  const std::optional<double> spread = spread_error(function, type, arguments, value, in_arguments);
  if (!spread) return unknown();
  const double error = *spread;
  if (!std::isfinite(value)) return {value, 0};
  if (!std::isfinite(error)) return unknown();
  if (function.rounding == Rounding::kExact) return {value, error};
  if (function.rounding == Rounding::kTf32) return about_tf32(value, error);
  if (function.rounding == Rounding::kCorrect) return rounded(type, value, error);
  const Accuracy stated = accuracy(function.name, type);
  // An ULP is at most two roundings of the value; one more is ours, and a second ours where both are in float64.
  return rounded(type, value, error + stated.absolute + std::numeric_limits<double>::min(), 2 * stated.ulp + 2);
}

Sure call(const RealPredicate& predicate, Bounded argument) {
  const int64_t value = predicate.compute(argument.value);
  if (std::isnan(argument.value) && std::string_view(predicate.name) == "signbit") return {value, false};
  if (argument.error == 0) return {value, true};
  if (!argument.known()) return {value, false};
  const int64_t low = predicate.compute(argument.low());
  return {value, low == value && predicate.compute(argument.high()) == value};
}

Bounded call(const MixedFunction& function, ScalarType type, Bounded a, Sure b, const AccuracyTable& accuracy) {
  if (!a.known() || !b.sure) return unknown();
  const bool waves = function.rounding == Rounding::kUlp;  // jn, yn: see Shape::kWavy
  if (waves && a.error > kSampledError) return unknown();
  const double value = function.compute(a.value, b.value);
  Bounded spread = {value, 0};
  if (a.error > 0) spread = hull(value, {function.compute(a.low(), b.value), function.compute(a.high(), b.value)});
  if (!spread.known() || !std::isfinite(value)) return spread;
  if (function.rounding == Rounding::kCorrect) return rounded(type, value, spread.error);
  const Accuracy stated = accuracy(function.name, type);
  return rounded(type, value, 2 * spread.error + stated.absolute, 2 * stated.ulp + 2);
}

Sure equal(Bounded a, Bounded b) {
  if (a.error == 0 && b.error == 0) return {a.value == b.value, true};
  if (!a.known() || !b.known()) return {0, false};
  if (std::isnan(a.value) || std::isnan(b.value)) return {0, true};
  return {a.value == b.value, a.high() < b.low() || b.high() < a.low()};
}

Sure less(Bounded a, Bounded b) {
  const bool value = a.value < b.value;
  if (a.error == 0 && b.error == 0) return {value, true};
  if (!a.known() || !b.known()) return {value, false};
  if (std::isnan(a.value) || std::isnan(b.value)) return {0, true};
  return {value, a.high() < b.low() || a.low() >= b.high()};
}

Sure less_equal(Bounded a, Bounded b) {
  if (a.error == 0 && b.error == 0) return {a.value <= b.value, true};
  if (a.known() && b.known() && (std::isnan(a.value) || std::isnan(b.value))) return {0, true};
  const Sure reverse = less(b, a);
  return {!reverse.value, reverse.sure};
}

Bounded either(Bounded a, Bounded b) {
  if (!a.known() || !b.known()) return unknown();
  if (same(a.value, b.value)) return {a.value, std::max(a.error, b.error)};
  return hull(a.value, {a.low(), a.high(), b.low(), b.high()});
}

Sure either(Sure a, Sure b) { return {a.value, a.sure && b.sure && a.value == b.value}; }

}  // namespace bounded

void BoundedSum::start(Bounded initial) {
  *this = BoundedSum();
  add(initial);
}

void BoundedSum::add(Bounded term) {
  ++terms_;
  known_ = known_ && term.known();
  if (!std::isfinite(term.value)) {
    special_ += term.value;
    return;
  }
  const double sum = sum_ + term.value;
  const double part = sum - sum_;
  compensation_ += (sum_ - (sum - part)) + (term.value - part);
  sum_ = sum;
  magnitude_ += std::fabs(term.value) + term.error;
  largest_ = std::max(largest_, std::fabs(term.value));
  error_ += term.error;
  quantum_ = std::min(quantum_, lowest_bit(term.value));
}

namespace {

/// Sums of a part of the products of 8-bit floats: how many, the bits that are kept, and the most that a part errs by
/// of the sum of its magnitudes. By instructions for 32 products each, those and the sum so far lose up to 2^-13 of the
/// largest, and so does the new sum: 32 + 3 * 33 cuts of terms, 4 of sums.
constexpr int kPart = 128, kPartBits = 14;
constexpr double kPartError = (32 + 3 * 33 + 4) * 0x1p-13;

}  // namespace

Bounded BoundedSum::result(ScalarType accumulator, SumKind kind) const {
  if (!known_) return bounded::unknown();
  if (magnitude_ > largest_finite(accumulator)) return bounded::unknown();  // some order of the sum may overflow
  if (special_ != 0) return {special_, 0};                                  // infinite or NaN
  const double sum = sum_ + compensation_;
  // Every partial sum is a multiple of the quantum and no larger than the magnitude.
  const bool in_parts = kind == SumKind::kFloat8Products;
  const bool exact = error_ == 0 && magnitude_ <= std::ldexp(1.0, significand_bits(accumulator) + quantum_) &&
                     (!in_parts || kPart * largest_ < std::ldexp(1.0, kPartBits + quantum_));
  if (exact) return {sum, 0};
  const double of_parts = in_parts ? kPartError * magnitude_ : 0;
  const double of_sums = growth(relative_error(accumulator), terms_) * magnitude_;
  const double error = (error_ + of_parts + of_sums) * (1 + 0x1p-40);
  return {sum, error + static_cast<double>(terms_) * smallest_subnormal(accumulator)};
}

void BoundedProduct::start(Bounded initial) {
  *this = BoundedProduct();
  multiply(initial);
}

void BoundedProduct::multiply(Bounded factor) {
  ++factors_;
  known_ = known_ && factor.known();
  product_ *= factor.value;
  exact_ = exact_ && factor.error == 0;
  may_be_zero_ = may_be_zero_ || (factor.error > 0 && std::fabs(factor.value) <= factor.error);
  if (!std::isfinite(factor.value)) {
    has_special_ = true;
    return;
  }
  const double magnitude = std::fabs(factor.value);
  magnitude_ *= magnitude;
  magnitude_above_ *= magnitude + factor.error;
  above_one_ *= std::max(1.0, magnitude + factor.error);
  if (magnitude == 0) return;
  below_one_ *= std::min(1.0, magnitude);
  bits_ += std::ilogb(magnitude) - lowest_bit(magnitude) + 1;
}

Bounded BoundedProduct::result(ScalarType accumulator) const {
  if (!known_) return bounded::unknown();
  const double smallest_normal = smallest_subnormal(accumulator) / (2 * unit_roundoff(accumulator));
  const bool may_underflow = below_one_ < smallest_normal;
  if (above_one_ > largest_finite(accumulator)) return bounded::unknown();  // some order may overflow
  if (has_special_) return may_underflow || may_be_zero_ ? bounded::unknown() : Bounded{product_, 0};
  if (exact_ && !may_underflow && bits_ <= significand_bits(accumulator)) return {product_, 0};
  const double unit = 2 * relative_error(accumulator);
  const double error = (magnitude_above_ - magnitude_ + growth(unit, factors_) * magnitude_above_) * (1 + 0x1p-40);
  return {product_, error + static_cast<double>(factors_) * smallest_subnormal(accumulator) * above_one_};
}

}  // namespace tc::interp
