#pragma once

#include <Halide.h>

#include <optional>
#include <string>

namespace tc::gpu {

/// How a value depends on a variable R: it is exp(factor * R) times something that R is no part of.
struct Exponential {
  double factor = 0;
  double most = 0;            ///< no less than the value's magnitude, where that is finite
  Halide::Expr present = {};  ///< where it is not zero whatever R is, NaN for one; undefined: everywhere
};

/// A variable that is a maximum, or minimum, over values of which `value` is one.
struct Extreme {
  std::string variable;  ///< of a float type
  Halide::Expr value;
  bool is_maximum = true;
};

/// The name of an extreme's variable: no tensor and no index has it.
inline constexpr const char* kExtremeValue = "the extreme";

/// What a value is where a condition of its choices holds, or does not.
Halide::Expr value_where(const Halide::Expr& value, const Halide::Expr& condition, bool holds);

/// The value of a constant, functions of constants among them.
std::optional<double> constant_number(const Halide::Expr& e);

/// A value as an Exponential in an extreme. The extreme may be that of any numbers, if its own value is among them. So
/// the magnitude is bounded while the extreme still grows. Examples:
///     exp(c * (v - R)) * t,   c > 0, R a maximum of v and others
///     q ? exp(c * (v - R)) : 0                     R a maximum of q ? v : u
/// Casts may stand in between: they round at another magnitude then, and must hold the bound. Nothing if the value is
/// none.
std::optional<Exponential> exponential_in(const Halide::Expr& value, const Extreme& extreme);

/// An extreme where it is a number, the nearest one where it is the infinity that it begins with: values that are that
/// infinity make exp(-inf - R) = 0 of it, not NaN.
Halide::Expr number_of_extreme(const Halide::Expr& extreme, bool is_maximum);
bool is_number_of_extreme(const Halide::Expr& e);

/// Whether a value is zero, as a factor of it is.
enum class Vanishing {
  kNo,
  kFar,     ///< where the extreme is far enough from a number: exp(c * (-1e30 - R))
  kAlways,  ///< whatever the extreme is, but for NaN: 0, exp(-inf - R)
};
Vanishing vanishing_of(const Halide::Expr& value, const Extreme& extreme);

}  // namespace tc::gpu
