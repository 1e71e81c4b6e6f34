#include "tc/cpu/math.h"

#include <math.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "tc/cpu/special_functions.h"

namespace tc::cpu {
namespace {

// float32 forms compute in float64 and round once; float64 forms of what the C library has only in moderate
// quality compute in long double.
template <double (*kFunction)(double)>
float narrow1(float x) {
  return static_cast<float>(kFunction(x));
}
template <double (*kFunction)(double, double)>
float narrow2(float x, float y) {
  return static_cast<float>(kFunction(x, y));
}
template <long double (*kFunction)(long double)>
double long1(double x) {
  return static_cast<double>(kFunction(x));
}
template <long double (*kFunction)(long double)>
float short1(float x) {
  return static_cast<float>(kFunction(x));
}

double length(double x, double y, double z, double t) {
  if (std::isinf(x) || std::isinf(y) || std::isinf(z) || std::isinf(t)) return HUGE_VAL;
  long double a = x, b = y, c = z, d = t;
  return static_cast<double>(sqrtl(a * a + b * b + c * c + d * d));
}
double reciprocal_length(double x, double y, double z, double t) {
  if (std::isinf(x) || std::isinf(y) || std::isinf(z) || std::isinf(t)) return 0;
  long double a = x, b = y, c = z, d = t;
  return static_cast<double>(1 / sqrtl(a * a + b * b + c * c + d * d));
}
double norm3d(double x, double y, double z) { return length(x, y, z, 0); }
double norm4d(double x, double y, double z, double t) { return length(x, y, z, t); }
double rnorm3d(double x, double y, double z) { return reciprocal_length(x, y, z, 0); }
double rnorm4d(double x, double y, double z, double t) { return reciprocal_length(x, y, z, t); }
double rhypot(double x, double y) { return reciprocal_length(x, y, 0, 0); }
float norm3d_f32(float x, float y, float z) { return static_cast<float>(norm3d(x, y, z)); }
float norm4d_f32(float x, float y, float z, float t) { return static_cast<float>(norm4d(x, y, z, t)); }
float rnorm3d_f32(float x, float y, float z) { return static_cast<float>(rnorm3d(x, y, z)); }
float rnorm4d_f32(float x, float y, float z, float t) { return static_cast<float>(rnorm4d(x, y, z, t)); }

/// x - y * floor(x / y), exactly: C's remainder moved to the divisor's side of zero. A zero divisor gives a NaN.
template <typename Float>
Float floor_mod(Float x, Float y) {
  Float remainder = std::fmod(x, y);
  return remainder != 0 && (remainder < 0) != (y < 0) ? remainder + y : remainder;
}

float jn_f32(int n, float x) { return static_cast<float>(jnl(n, x)); }
float yn_f32(int n, float x) { return static_cast<float>(ynl(n, x)); }
double jn_f64(int n, double x) { return static_cast<double>(jnl(n, x)); }
double yn_f64(int n, double x) { return static_cast<double>(ynl(n, x)); }
float scale_f32(float x, int n) { return ::ldexpf(x, n); }
double scale_f64(double x, int n) { return ::ldexp(x, n); }
int64_t round_f32(float x) { return ::llroundf(x); }
int64_t round_f64(double x) { return ::llround(x); }
int64_t rint_f32(float x) { return ::llrintf(x); }
int64_t rint_f64(double x) { return ::llrint(x); }

struct Function {
  MathAccuracy accuracy;
  void* f32;  ///< null: always computed in place
  void* f64;
};

template <typename F>
void* at(F* function) {
  return reinterpret_cast<void*>(function);
}
template <double (*kFunction)(double)>
constexpr auto unary(std::string_view name, double ulp_f64) {
  return Function{{name, 0.501, ulp_f64}, at(narrow1<kFunction>), at(kFunction)};
}
template <double (*kFunction)(double)>
constexpr auto in_place(std::string_view name, double ulp_f32, double ulp_f64) {
  return Function{{name, ulp_f32, ulp_f64}, nullptr, at(kFunction)};
}
template <double (*kFunction)(double, double)>
constexpr auto binary(std::string_view name, double ulp_f64) {
  return Function{{name, 0.501, ulp_f64}, at(narrow2<kFunction>), at(kFunction)};
}
template <long double (*kFunction)(long double)>
constexpr auto careful(std::string_view name, double ulp_f64) {
  return Function{{name, 0.501, ulp_f64}, at(short1<kFunction>), at(long1<kFunction>)};
}

/// Sorted by name.
const Function kFunctions[] = {
    unary<::acos>("acos", 1),
    unary<::acosh>("acosh", 3),
    unary<::asin>("asin", 1),
    unary<::asinh>("asinh", 3),
    unary<::atan>("atan", 1),
    binary<::atan2>("atan2", 1),
    unary<::atanh>("atanh", 3),
    careful<::cbrtl>("cbrt", 0.51),
    {{"cos", 2, 1}, at(narrow1<::cos>), at<double(double)>(::cos)},
    unary<::cosh>("cosh", 2),
    careful<special::cospi>("cospi", 0.51),
    careful<special::bessel_i0>("cyl_bessel_i0", 0.51),
    careful<special::bessel_i1>("cyl_bessel_i1", 0.51),
    in_place<::erf>("erf", 1.5, 1),
    careful<::erfcl>("erfc", 0.51),
    careful<special::erfcinv>("erfcinv", 0.6),
    careful<special::erfcx>("erfcx", 0.51),
    careful<special::erfinv>("erfinv", 0.6),
    in_place<::exp>("exp", 1.25, 1),
    in_place<::exp10>("exp10", 1.5, 2),
    in_place<::exp2>("exp2", 1.25, 1),
    in_place<::expm1>("expm1", 1.75, 2),
    {{"fmod", 0.5, 0.5}, at<float(float, float)>(::fmodf), at<double(double, double)>(::fmod)},
    binary<::hypot>("hypot", 1),
    {{"ilogb", 0, 0}, at<int(float)>(::ilogbf), at<int(double)>(::ilogb)},
    careful<::j0l>("j0", 0.6),
    careful<::j1l>("j1", 0.6),
    {{"jn", 0.6, 2}, at(jn_f32), at(jn_f64)},
    {{"ldexp", 0.5, 0.5}, at(scale_f32), at(scale_f64)},
    careful<special::log_gamma>("lgamma", 0.6),
    {{"llrint", 0, 0}, at(rint_f32), at(rint_f64)},
    {{"llround", 0, 0}, at(round_f32), at(round_f64)},
    in_place<::log>("log", 1.25, 1),
    in_place<::log10>("log10", 2, 2),
    in_place<::log1p>("log1p", 1.75, 1),
    in_place<::log2>("log2", 2, 1),
    {{"logb", 0, 0}, at<float(float)>(::logbf), at<double(double)>(::logb)},
    {{"lrint", 0, 0}, at(rint_f32), at(rint_f64)},
    {{"lround", 0, 0}, at(round_f32), at(round_f64)},
    {{"nextafter", 0, 0}, at<float(float, float)>(::nextafterf), at<double(double, double)>(::nextafter)},
    {{"norm3d", 0.501, 0.51}, at(norm3d_f32), at(norm3d)},
    {{"norm4d", 0.501, 0.51}, at(norm4d_f32), at(norm4d)},
    careful<special::normcdf>("normcdf", 0.6),
    careful<special::normcdfinv>("normcdfinv", 0.6),
    binary<::pow>("pow", 1),
    careful<special::rcbrt>("rcbrt", 0.51),
    {{"remainder", 0.5, 0.5}, at<float(float, float)>(::remainderf), at<double(double, double)>(::remainder)},
    binary<rhypot>("rhypot", 0.51),
    {{"rnorm3d", 0.501, 0.51}, at(rnorm3d_f32), at(rnorm3d)},
    {{"rnorm4d", 0.501, 0.51}, at(rnorm4d_f32), at(rnorm4d)},
    {{"rsqrt", 1.5, 1.5}, nullptr, nullptr},  // two instructions
    {{"scalbln", 0.5, 0.5}, at(scale_f32), at(scale_f64)},
    {{"scalbn", 0.5, 0.5}, at(scale_f32), at(scale_f64)},
    {{"sigmoid", 2.5, 0.51}, nullptr, at(long1<special::sigmoid>)},
    {{"sin", 2, 1}, at(narrow1<::sin>), at<double(double)>(::sin)},
    unary<::sinh>("sinh", 2),
    careful<special::sinpi>("sinpi", 0.51),
    unary<::tan>("tan", 1),
    in_place<::tanh>("tanh", 2.5, 3),
    careful<::tgammal>("tgamma", 0.6),
    careful<::y0l>("y0", 0.6),
    careful<::y1l>("y1", 0.6),
    {{"yn", 0.6, 2}, at(yn_f32), at(yn_f64)},
};

const Function* find(std::string_view name) {
  const Function* end = std::end(kFunctions);
  const Function* found = std::lower_bound(std::begin(kFunctions), end, name,
                                           [](const Function& f, std::string_view n) { return f.accuracy.name < n; });
  return found != end && found->accuracy.name == name ? found : nullptr;
}

constexpr std::string_view kF32 = "tc_f32_", kF64 = "tc_f64_";

}  // namespace

std::span<const MathAccuracy> math_accuracies() {
  static const std::vector<MathAccuracy> table = [] {
    std::vector<MathAccuracy> rows;
    for (const Function& f : kFunctions) rows.push_back(f.accuracy);
    return rows;
  }();
  return table;
}

bool is_math_function(std::string_view name) { return find(name) != nullptr; }

std::string math_symbol(std::string_view name, bool is_double) {
  return std::string(is_double ? kF64 : kF32) + std::string(name);
}

void* math_address(std::string_view symbol) {
  bool is_double = symbol.starts_with(kF64);
  if (!is_double && !symbol.starts_with(kF32)) return nullptr;
  std::string_view name = symbol.substr(kF32.size());
  if (name == "floor_mod") return is_double ? at(floor_mod<double>) : at(floor_mod<float>);
  const Function* f = find(name);
  return !f ? nullptr : is_double ? f->f64 : f->f32;
}

}  // namespace tc::cpu
