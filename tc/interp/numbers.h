#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

#include "tc/interp/bounded.h"
#include "tc/interp/functions.h"
#include "tc/interp/scalar.h"

/// The two kinds of numbers that a Program is evaluated in: the same evaluator runs with either.
namespace tc::interp {

/// A sum in float64 with the rounding errors of its additions summed beside it (Neumaier), so that the oracle's own
/// error stays far below any backend's.
class CompensatedSum {
 public:
  void start(double initial) { sum_ = initial, compensation_ = 0; }
  void add(double term) {
    const double sum = sum_ + term;
    const double part = sum - sum_;
    compensation_ += (sum_ - (sum - part)) + (term - part);
    sum_ = sum;
  }
  double result(ScalarType, SumKind) const {
    // An infinity makes the compensation NaN; the plain sum is right then.
    return std::isfinite(compensation_) ? sum_ + compensation_ : sum_;
  }

 private:
  double sum_ = 0;
  double compensation_ = 0;
};

class PlainProduct {
 public:
  void start(double initial) { product_ = initial; }
  void multiply(double factor) { product_ *= factor; }
  double result(ScalarType) const { return product_; }

 private:
  double product_ = 1;
};

/// Values alone.
struct PlainNumbers {
  using Float = double;
  using Integer = int64_t;
  using Sum = CompensatedSum;
  using Product = PlainProduct;
  static constexpr bool kBounded = false;

  static double exact(double value) { return value; }
  static int64_t exact(int64_t value) { return value; }
  static bool sure(int64_t) { return true; }
  static int64_t value(int64_t x) { return x; }
  static double value(double x) { return x; }

  template <typename Function>
  static int64_t map(Function f, int64_t a) {
    return f(a);
  }
  template <typename Function>
  static int64_t map(Function f, int64_t a, int64_t b) {
    return f(a, b);
  }

  static double add(ScalarType, double a, double b) { return a + b; }
  static double subtract(ScalarType, double a, double b) { return a - b; }
  static double multiply(ScalarType, double a, double b) { return a * b; }
  static double divide(ScalarType, double a, double b) { return a / b; }
  static double min(double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : b < a ? b : a; }
  static double max(double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : a < b ? b : a; }
  static int64_t equal(double a, double b) { return a == b; }
  static int64_t less(double a, double b) { return a < b; }
  static int64_t less_equal(double a, double b) { return a <= b; }
  /// A conversion between float types rounds; the arithmetic around it does not.
  static double convert(ScalarType, ScalarType to, double a) { return round_to(to, a); }
  static double from_integer(ScalarType from, ScalarType to, int64_t a) { return integer_to_float(from, to, a); }
  static int64_t to_integer(ScalarType to, double a) { return float_to_integer(to, a); }
  static double call(const RealFunction& f, ScalarType type, const double* a, const AccuracyTable&) {
    return f.compute(type, a);
  }
  static int64_t call(const RealPredicate& f, double a) { return f.compute(a); }
  static double call(const MixedFunction& f, ScalarType, double a, int64_t b, const AccuracyTable&) {
    return f.compute(a, b);
  }
};

/// Values with bounds.
struct BoundedNumbers {
  using Float = Bounded;
  using Integer = Sure;
  using Sum = BoundedSum;
  using Product = BoundedProduct;
  static constexpr bool kBounded = true;

  static Bounded exact(double value) { return {value, 0}; }
  static Sure exact(int64_t value) { return {value, true}; }
  static bool sure(Sure x) { return x.sure; }
  static int64_t value(Sure x) { return x.value; }
  static double value(Bounded x) { return x.value; }

  template <typename Function>
  static Sure map(Function f, Sure a) {
    return {f(a.value), a.sure};
  }
  template <typename Function>
  static Sure map(Function f, Sure a, Sure b) {
    return {f(a.value, b.value), a.sure && b.sure};
  }

  static Bounded add(ScalarType type, Bounded a, Bounded b) { return bounded::add(type, a, b); }
  static Bounded subtract(ScalarType type, Bounded a, Bounded b) { return bounded::subtract(type, a, b); }
  static Bounded multiply(ScalarType type, Bounded a, Bounded b) { return bounded::multiply(type, a, b); }
  static Bounded divide(ScalarType type, Bounded a, Bounded b) { return bounded::divide(type, a, b); }
  static Bounded min(Bounded a, Bounded b) { return bounded::min(a, b); }
  static Bounded max(Bounded a, Bounded b) { return bounded::max(a, b); }
  static Sure equal(Bounded a, Bounded b) { return bounded::equal(a, b); }
  static Sure less(Bounded a, Bounded b) { return bounded::less(a, b); }
  static Sure less_equal(Bounded a, Bounded b) { return bounded::less_equal(a, b); }
  static Bounded convert(ScalarType from, ScalarType to, Bounded a) { return bounded::convert(from, to, a); }
  static Bounded from_integer(ScalarType from, ScalarType to, Sure a) { return bounded::from_integer(from, to, a); }
  static Sure to_integer(ScalarType to, Bounded a) { return bounded::to_integer(to, a); }
  static Bounded call(const RealFunction& f, ScalarType type, const Bounded* a, const AccuracyTable& accuracy) {
    return bounded::call(f, type, a, accuracy);
  }
  static Sure call(const RealPredicate& f, Bounded a) { return bounded::call(f, a); }
  static Bounded call(const MixedFunction& f, ScalarType type, Bounded a, Sure b, const AccuracyTable& accuracy) {
    return bounded::call(f, type, a, b, accuracy);
  }
};

}  // namespace tc::interp
