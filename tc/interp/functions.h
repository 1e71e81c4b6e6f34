#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tc/support/scalar_type.h"

/// The intrinsics of the language as the oracle computes them: in float64 by the C library, or by formulas of our own
/// where that has none.
namespace tc::interp {

/// How an error in an argument of a real function spreads to its result.
enum class Shape : uint8_t {
  kMonotone,   ///< in each argument, wherever it is defined: the ends of the arguments' intervals give the result's
  kLipschitz,  ///< by no more than it is itself: abs, sin
  kPi,         ///< by no more than pi times as much: sinpi
  kSmooth,     ///< the result's interval is found by sampling, and doubled
  kWavy,       ///< likewise; beyond 1/8 it has waves or poles that samples would miss, so nothing is known: tan, tgamma
  kSawtooth,   ///< of a dividend and a divisor; likewise while the quotient stays between two halves: fmod
};

/// How exactly a backend computes a real function.
enum class Rounding : uint8_t {
  kExact,    ///< its result is always a float of the type: floor, fabs, fmod
  kCorrect,  ///< rounded once, as IEEE asks: sqrt, fma
  kUlp,      ///< within some ULP: exp
  kTf32,     ///< rounded to TF32, or cut to it, or not at all
};

/// Floats to a float, all of one type (of which only `nextafter` takes notice).
struct RealFunction {
  const char* name;
  int arity;
  Shape shape;
  Rounding rounding;
  double (*compute)(ScalarType type, const double* arguments);
};

/// A float to a bool or an integer, as a value of that type.
struct RealPredicate {
  const char* name;
  int64_t (*compute)(double argument);
  bool monotone;  ///< so that equal results at the ends of an interval decide it
};

/// Integers to an integer of the given type.
struct IntegerFunction {
  const char* name;
  int arity;
  int64_t (*compute)(ScalarType type, const int64_t* arguments);
};

/// A function of a float and an int32: the integer comes first in `jn` and `yn`, last in the others.
struct MixedFunction {
  const char* name;
  bool integer_first;
  Rounding rounding;
  double (*compute)(double argument, int64_t integer);
};

const RealFunction* find_real_function(const std::string& name);
const RealPredicate* find_real_predicate(const std::string& name);
const IntegerFunction* find_integer_function(const std::string& name);
const MixedFunction* find_mixed_function(const std::string& name);

}  // namespace tc::interp
