#include "tc/lang/intrinsics.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "tc/lang/limits.h"

namespace tc::lang {
namespace {

constexpr int kMany = static_cast<int>(kMaxRank);

/// Sorted by name.
constexpr IntrinsicInfo kIntrinsics[] = {
    {"abs", 1, 1, Signature::kArithmetic, "|x|; the least signed integer stays itself"},
    {"acos", 1, 1, Signature::kFloat, "arc cosine"},
    {"acosh", 1, 1, Signature::kFloat, "inverse hyperbolic cosine"},
    {"asin", 1, 1, Signature::kFloat, "arc sine"},
    {"asinh", 1, 1, Signature::kFloat, "inverse hyperbolic sine"},
    {"atan", 1, 1, Signature::kFloat, "arc tangent"},
    {"atan2", 2, 2, Signature::kFloat, "angle of the point (x = second, y = first)"},
    {"atanh", 1, 1, Signature::kFloat, "inverse hyperbolic tangent"},
    {"bitwise_and", 2, 2, Signature::kInteger, "bits set in both"},
    {"bitwise_not", 1, 1, Signature::kInteger, "all bits flipped"},
    {"bitwise_or", 2, 2, Signature::kInteger, "bits set in either"},
    {"bitwise_xor", 2, 2, Signature::kInteger, "bits set in one only"},
    {"cbrt", 1, 1, Signature::kFloat, "cube root"},
    {"ceil", 1, 1, Signature::kFloat, "least whole number not below x"},
    {"clamp", 3, 3, Signature::kArithmetic, "min(max(x, lo), hi)"},
    {"copysign", 2, 2, Signature::kFloat, "the size of the first with the sign of the second; a NaN may have either"},
    {"cos", 1, 1, Signature::kFloat, "cosine"},
    {"cosh", 1, 1, Signature::kFloat, "hyperbolic cosine"},
    {"cospi", 1, 1, Signature::kFloat, "cosine of pi x"},
    {"cyl_bessel_i0", 1, 1, Signature::kFloat, "modified Bessel function of the first kind, order 0"},
    {"cyl_bessel_i1", 1, 1, Signature::kFloat, "modified Bessel function of the first kind, order 1"},
    {"erf", 1, 1, Signature::kFloat, "error function"},
    {"erfc", 1, 1, Signature::kFloat, "1 - erf(x)"},
    {"erfcinv", 1, 1, Signature::kFloat, "inverse of erfc"},
    {"erfcx", 1, 1, Signature::kFloat, "exp(x x) erfc(x)"},
    {"erfinv", 1, 1, Signature::kFloat, "inverse of erf"},
    {"exp", 1, 1, Signature::kFloat, "e to the x"},
    {"exp10", 1, 1, Signature::kFloat, "10 to the x"},
    {"exp2", 1, 1, Signature::kFloat, "2 to the x"},
    {"expm1", 1, 1, Signature::kFloat, "exp(x) - 1"},
    {"fabs", 1, 1, Signature::kFloat, "|x|"},
    {"fdim", 2, 2, Signature::kFloat, "x - y where x > y, else 0"},
    {"fdivide", 2, 2, Signature::kFloat, "x / y"},
    {"floor", 1, 1, Signature::kFloat, "greatest whole number not above x"},
    {"fma", 3, 3, Signature::kFloat, "x y + z, rounded once"},
    {"fmax", 2, 2, Signature::kFloat, "the larger; the other one where one is a NaN"},
    {"fmin", 2, 2, Signature::kFloat, "the smaller; the other one where one is a NaN"},
    {"fmod", 2, 2, Signature::kFloat, "remainder of x / y with the sign of x"},
    {"hypot", 2, 2, Signature::kFloat, "square root of x x + y y"},
    {"ilogb", 1, 1, Signature::kFloatToInt32, "the exponent of x as an int32"},
    {"isfinite", 1, 1, Signature::kFloatToBool, "neither an infinity nor a NaN"},
    {"isinf", 1, 1, Signature::kFloatToBool, "an infinity"},
    {"isnan", 1, 1, Signature::kFloatToBool, "a NaN"},
    {"j0", 1, 1, Signature::kFloat, "Bessel function of the first kind, order 0"},
    {"j1", 1, 1, Signature::kFloat, "Bessel function of the first kind, order 1"},
    {"jn", 2, 2, Signature::kInt32Float, "Bessel function of the first kind, order n (the first)"},
    {"ldexp", 2, 2, Signature::kFloatInt32, "x times 2 to the n"},
    {"lgamma", 1, 1, Signature::kFloat, "logarithm of the absolute value of the gamma function"},
    {"llrint", 1, 1, Signature::kFloatToInt64, "nearest whole number, ties to even, as an int64"},
    {"llround", 1, 1, Signature::kFloatToInt64, "nearest whole number, ties away from zero, as an int64"},
    {"log", 1, 1, Signature::kFloat, "natural logarithm"},
    {"log10", 1, 1, Signature::kFloat, "logarithm to base 10"},
    {"log1p", 1, 1, Signature::kFloat, "log(1 + x)"},
    {"log2", 1, 1, Signature::kFloat, "logarithm to base 2"},
    {"logb", 1, 1, Signature::kFloat, "the exponent of x"},
    {"lrint", 1, 1, Signature::kFloatToInt64, "as llrint"},
    {"lround", 1, 1, Signature::kFloatToInt64, "as llround"},
    {"max", 2, kMany, Signature::kArithmetic, "the largest; a NaN where one is a NaN"},
    {"min", 2, kMany, Signature::kArithmetic, "the smallest; a NaN where one is a NaN"},
    {"nearbyint", 1, 1, Signature::kFloat, "nearest whole number, ties to even"},
    {"nextafter", 2, 2, Signature::kFloat, "the next number after x toward y"},
    {"norm3d", 3, 3, Signature::kFloat, "length of a vector of three"},
    {"norm4d", 4, 4, Signature::kFloat, "length of a vector of four"},
    {"normcdf", 1, 1, Signature::kFloat, "cumulative distribution of the standard normal"},
    {"normcdfinv", 1, 1, Signature::kFloat, "inverse of normcdf"},
    {"popcount", 1, 1, Signature::kIntegerToInt32, "how many bits are set, as an int32"},
    {"pow", 2, 2, Signature::kFloat, "x to the y"},
    {"rcbrt", 1, 1, Signature::kFloat, "1 / cbrt(x)"},
    {"relu", 1, 1, Signature::kArithmetic, "max(x, 0)"},
    {"remainder", 2, 2, Signature::kFloat, "x - n y, n the whole number nearest to x / y"},
    {"rhypot", 2, 2, Signature::kFloat, "1 / hypot(x, y)"},
    {"rint", 1, 1, Signature::kFloat, "nearest whole number, ties to even"},
    {"rnorm3d", 3, 3, Signature::kFloat, "1 / norm3d(x, y, z)"},
    {"rnorm4d", 4, 4, Signature::kFloat, "1 / norm4d(x, y, z, t)"},
    {"round", 1, 1, Signature::kFloat, "nearest whole number, ties away from zero"},
    {"rsqrt", 1, 1, Signature::kFloat, "1 / sqrt(x)"},
    {"scalbln", 2, 2, Signature::kFloatInt32, "as ldexp"},
    {"scalbn", 2, 2, Signature::kFloatInt32, "as ldexp"},
    {"select", 3, 3, Signature::kSelect, "the second where the first holds, else the third, as ?: does"},
    {"shift_left", 2, 2, Signature::kShift, "bits moved up; 0 from the type's width on"},
    {"shift_right", 2, 2, Signature::kShift, "bits moved down; copies of the sign come in for a signed type"},
    {"sigmoid", 1, 1, Signature::kFloat, "1 / (1 + exp(-x))"},
    {"sign", 1, 1, Signature::kArithmetic, "-1, 0 or 1; a NaN of a NaN"},
    {"signbit", 1, 1, Signature::kFloatToBool, "the sign bit is set, that of -0.0 too; a NaN may have either sign"},
    {"sin", 1, 1, Signature::kFloat, "sine"},
    {"sinh", 1, 1, Signature::kFloat, "hyperbolic sine"},
    {"sinpi", 1, 1, Signature::kFloat, "sine of pi x"},
    {"sqrt", 1, 1, Signature::kFloat, "square root"},
    {"tan", 1, 1, Signature::kFloat, "tangent"},
    {"tanh", 1, 1, Signature::kFloat, "hyperbolic tangent"},
    {"tf32", 1, 1, Signature::kFloat32, "x rounded to 11 significant bits, ties away from zero"},
    {"tgamma", 1, 1, Signature::kFloat, "gamma function"},
    {"trunc", 1, 1, Signature::kFloat, "nearest whole number toward zero"},
    {"y0", 1, 1, Signature::kFloat, "Bessel function of the second kind, order 0"},
    {"y1", 1, 1, Signature::kFloat, "Bessel function of the second kind, order 1"},
    {"yn", 2, 2, Signature::kInt32Float, "Bessel function of the second kind, order n (the first)"},
};
static_assert(std::is_sorted(std::begin(kIntrinsics), std::end(kIntrinsics),
                             [](const IntrinsicInfo& a, const IntrinsicInfo& b) { return a.name < b.name; }));

const IntrinsicInfo* find_exactly(std::string_view name) {
  const auto* at = std::lower_bound(std::begin(kIntrinsics), std::end(kIntrinsics), name,
                                    [](const IntrinsicInfo& info, std::string_view n) { return info.name < n; });
  return at != std::end(kIntrinsics) && at->name == name ? at : nullptr;
}

/// C has a float function of this name with the suffix f.
bool has_c_suffix(const IntrinsicInfo& info) {
  switch (info.signature) {
    case Signature::kFloat:
      return info.name != "sigmoid";
    case Signature::kFloatToInt32:
    case Signature::kFloatToInt64:
    case Signature::kFloatInt32:
    case Signature::kInt32Float:
      return true;
    default:
      return false;
  }
}

}  // namespace

const IntrinsicInfo* find_intrinsic(std::string_view name) {
  if (const IntrinsicInfo* info = find_exactly(name)) return info;
  if (!name.ends_with('f')) return nullptr;
  const IntrinsicInfo* info = find_exactly(name.substr(0, name.size() - 1));
  return info && has_c_suffix(*info) ? info : nullptr;
}

std::span<const IntrinsicInfo> all_intrinsics() { return kIntrinsics; }

}  // namespace tc::lang
