#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>

#include "tc/interp/functions.h"
#include "tc/support/scalar_type.h"

/// Running error analysis: arithmetic on a value together with a bound on how far from it a correct backend may be.
///
/// Every operation of a backend in a type with p significand bits is taken to err by 2^-p of its result (and by the
/// type's smallest subnormal), a sum or product of n terms in any order by ((1 + 2^-p)^n - 1) of the sum of magnitudes,
/// an intrinsic by its stated ULP; errors of operands spread through operations by their intervals. Where the operands
/// and the result are exact in the type, as with small integers, the error is exactly zero.
namespace tc::interp {

/// A backend's value lies in [value - error, value + error]. An infinite error means that nothing is known, not even
/// whether it is a NaN. A NaN or an infinity with a zero error is certain.
struct Bounded {
  double value = 0;
  double error = 0;

  // Widened by more than the subtraction's own rounding.
  double low() const { return error == 0 ? value : value - error - std::fabs(value) * 0x1p-52; }
  double high() const { return error == 0 ? value : value + error + std::fabs(value) * 0x1p-52; }
  bool known() const { return error < std::numeric_limits<double>::infinity(); }
};

/// An integer or bool, exact on every backend if `sure`; otherwise it hangs on a rounding error.
struct Sure {
  int64_t value = 0;
  bool sure = true;
};

/// How exactly a backend computes an intrinsic: |result - exact| <= ulp * ULP(exact) + absolute.
struct Accuracy {
  double ulp = 4;
  double absolute = 0;
};
/// By the intrinsic's name and the type in which it is called.
using AccuracyTable = std::function<Accuracy(const std::string& name, ScalarType type)>;
/// What the project asks of every backend.
Accuracy default_accuracy(const std::string& name, ScalarType type);

namespace bounded {

Bounded unknown();
/// The smallest bound around value that covers all ends. Unknown where one is infinite or a NaN, unless all are the
/// same.
Bounded hull(double value, std::initializer_list<double> ends);

// Operations of a backend in a float type.
Bounded add(ScalarType type, Bounded a, Bounded b);
Bounded subtract(ScalarType type, Bounded a, Bounded b);
Bounded multiply(ScalarType type, Bounded a, Bounded b);
Bounded divide(ScalarType type, Bounded a, Bounded b);
Bounded min(Bounded a, Bounded b);
Bounded max(Bounded a, Bounded b);
/// Rounding to a type, as a cast or a store does.
Bounded convert(ScalarType from, ScalarType to, Bounded a);
Bounded from_integer(ScalarType from, ScalarType to, Sure a);
Sure to_integer(ScalarType to, Bounded a);
Bounded call(const RealFunction& function, ScalarType type, const Bounded* arguments, const AccuracyTable& accuracy);
Sure call(const RealPredicate& predicate, Bounded argument);
Bounded call(const MixedFunction& function, ScalarType type, Bounded a, Sure b, const AccuracyTable& accuracy);

// Comparisons are sure unless the intervals touch.
Sure equal(Bounded a, Bounded b);
Sure less(Bounded a, Bounded b);
Sure less_equal(Bounded a, Bounded b);

/// What is known when a condition is not: either of two values.
Bounded either(Bounded a, Bounded b);
Sure either(Sure a, Sure b);

}  // namespace bounded

/// What a sum is of. Products of 8-bit floats may be summed in parts of up to 128, in which 13 bits are kept behind the
/// leading one (T5).
enum class SumKind { kTerms, kFloat8Products };

/// A sum of any number of terms, in any order, in an accumulator of one type.
class BoundedSum {
 public:
  void start(Bounded initial);
  void add(Bounded term);
  Bounded result(ScalarType accumulator, SumKind kind = SumKind::kTerms) const;

 private:
  double sum_ = 0;
  double compensation_ = 0;
  double magnitude_ = 0;  // sum of |term| + error
  double largest_ = 0;    // |term|
  double error_ = 0;      // sum of the terms' errors
  double special_ = 0;    // sum of the infinite and NaN terms
  int64_t terms_ = 0;
  int quantum_ = 2000;  // all finite terms are multiples of 2^quantum_
  bool known_ = true;
};

/// A product of any number of factors, in any order.
class BoundedProduct {
 public:
  void start(Bounded initial);
  void multiply(Bounded factor);
  Bounded result(ScalarType accumulator) const;

 private:
  double product_ = 1;
  double magnitude_ = 1;        // product of |factor|
  double magnitude_above_ = 1;  // product of |factor| + error
  double above_one_ = 1;        // product of max(1, |factor| + error): the largest partial product in any order
  double below_one_ = 1;        // product of min(1, |factor|) over factors that are not zero: the smallest
  int64_t bits_ = 0;            // of the odd parts of all factors: a partial product needs no more
  int64_t factors_ = 0;
  bool exact_ = true;         // no factor has an error
  bool has_special_ = false;  // an infinite or NaN factor
  bool may_be_zero_ = false;  // a factor is not exact, and may be zero or of either sign
  bool known_ = true;
};

}  // namespace tc::interp
