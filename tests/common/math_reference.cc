#include "tests/common/math_reference.h"

#include <initializer_list>
#include <limits>

namespace tc::testing {
namespace {

Quad to_quad(const char* digits) { return strtoflt128(digits, nullptr); }
const Quad kInfinity = std::numeric_limits<double>::infinity();
const Quad kQuadPi = to_quad("3.14159265358979323846264338327950288419716939937510");
const Quad kTwoOverRootPi = 2 / sqrtq(kQuadPi);

Quad quad_erfinv(Quad x) {
  if (x == 0 || isnanq(x)) return x;
  if (fabsq(x) >= 1) return fabsq(x) == 1 ? copysignq(kInfinity, x) : nanq("");
  // Bisection finds the start: nothing is shared with the code under test.
  Quad low = 0, high = 12, size = fabsq(x);
  for (int i = 0; i < 20; i++) (erfq((low + high) / 2) < size ? low : high) = (low + high) / 2;
  Quad z = (low + high) / 2;
  for (int i = 0; i < 6; i++) z -= (erfq(z) - size) / (kTwoOverRootPi * expq(-z * z));
  return copysignq(z, x);
}
Quad quad_erfcinv(Quad y) {
  if (isnanq(y) || y < 0 || y > 2) return nanq("");
  if (y == 0 || y == 2) return y == 0 ? kInfinity : -kInfinity;
  if (y > 1) return y > 1.5 ? -quad_erfcinv(2 - y) : -quad_erfinv(y - 1);
  if (y > 0.5) return quad_erfinv(1 - y);
  Quad low = 0, high = 110;
  for (int i = 0; i < 30; i++) (erfcq((low + high) / 2) > y ? low : high) = (low + high) / 2;
  Quad z = (low + high) / 2;
  for (int i = 0; i < 5; i++) z += (erfcq(z) / y - 1) * y / (kTwoOverRootPi * expq(-z * z));
  return z;
}
Quad quad_erfcx(Quad x) {
  if (isnanq(x)) return x;
  if (x < -200) return kInfinity;
  if (x < 100) return expq(x * x) * erfcq(x);
  Quad h = 1 / (2 * x * x), sum = 1, term = 1;
  for (int k = 1; k < 12; k++) sum += term *= -h * (2 * k - 1);
  return sum / (x * sqrtq(kQuadPi));
}
Quad quad_bessel_i(Quad x, int order) {
  if (isnanq(x)) return x;
  if (fabsq(x) > 800) return order == 1 ? copysignq(kInfinity, x) : kInfinity;
  Quad term = order == 1 ? x / 2 : Quad(1), sum = term;
  for (int k = 1; fabsq(term) > fabsq(sum) * Quad(1e-33); k++) sum += term *= x * x / 4 / (Quad(k) * (k + order));
  return sum;
}
Quad quad_length(std::initializer_list<Quad> x) {
  Quad sum = 0;
  bool infinite = false;
  for (Quad v : x) sum += v * v, infinite = infinite || isinfq(v);
  return infinite ? kInfinity : sqrtq(sum);
}
Quad quad_sinpi(Quad x) {
  if (!finiteq(x)) return nanq("");
  Quad r = x - 2 * rintq(x / 2);
  return r == rintq(r) ? copysignq(0, x) : sinq(kQuadPi * r);
}
Quad quad_cospi(Quad x) {
  if (!finiteq(x)) return nanq("");
  Quad r = x - 2 * rintq(x / 2);
  return fabsq(r) == Quad(0.5) ? Quad(0) : cosq(kQuadPi * r);
}

const MathReference kReferences[] = {
    {"acos", 1, [](const Quad* x) { return acosq(*x); }, -1, 1},
    {"acosh", 1, [](const Quad* x) { return acoshq(*x); }, 1, 10},
    {"asin", 1, [](const Quad* x) { return asinq(*x); }, -1, 1},
    {"asinh", 1, [](const Quad* x) { return asinhq(*x); }, -10, 10},
    {"atan", 1, [](const Quad* x) { return atanq(*x); }, -10, 10},
    {"atan2", 2, [](const Quad* x) { return atan2q(x[0], x[1]); }, -10, 10},
    {"atanh", 1, [](const Quad* x) { return atanhq(*x); }, -1, 1},
    {"cbrt", 1, [](const Quad* x) { return cbrtq(*x); }, -10, 10},
    {"cos", 1, [](const Quad* x) { return cosq(*x); }, -100, 100},
    {"cosh", 1, [](const Quad* x) { return coshq(*x); }, -90, 90},
    {"cospi", 1, [](const Quad* x) { return quad_cospi(*x); }, -10, 10},
    {"cyl_bessel_i0", 1, [](const Quad* x) { return quad_bessel_i(*x, 0); }, -90, 90},
    {"cyl_bessel_i1", 1, [](const Quad* x) { return quad_bessel_i(*x, 1); }, -90, 90},
    {"erf", 1, [](const Quad* x) { return erfq(*x); }, -5, 5},
    {"erfc", 1, [](const Quad* x) { return erfcq(*x); }, -5, 12},
    {"erfcinv", 1, [](const Quad* x) { return quad_erfcinv(*x); }, 0, 2},
    {"erfcx", 1, [](const Quad* x) { return quad_erfcx(*x); }, -9, 20},
    {"erfinv", 1, [](const Quad* x) { return quad_erfinv(*x); }, -1, 1},
    {"exp", 1, [](const Quad* x) { return expq(*x); }, -104, 90},
    {"exp10", 1, [](const Quad* x) { return powq(10, *x); }, -46, 39},
    {"exp2", 1, [](const Quad* x) { return powq(2, *x); }, -150, 129},
    {"expm1", 1, [](const Quad* x) { return expm1q(*x); }, -20, 90},
    {"fmod", 2, [](const Quad* x) { return fmodq(x[0], x[1]); }, -100, 100},
    {"hypot", 2, [](const Quad* x) { return hypotq(x[0], x[1]); }, -100, 100},
    {"j0", 1, [](const Quad* x) { return j0q(*x); }, -50, 50},
    {"j1", 1, [](const Quad* x) { return j1q(*x); }, -50, 50},
    {"lgamma", 1, [](const Quad* x) { return lgammaq(*x); }, -10, 50},
    {"log", 1, [](const Quad* x) { return logq(*x); }, 0, 10},
    {"log10", 1, [](const Quad* x) { return log10q(*x); }, 0, 10},
    {"log1p", 1, [](const Quad* x) { return log1pq(*x); }, -1, 10},
    {"log2", 1, [](const Quad* x) { return log2q(*x); }, 0, 10},
    {"norm3d", 3,
     [](const Quad* x) {
       return quad_length({x[0], x[1], x[2]});
     },
     -100, 100},
    {"norm4d", 4,
     [](const Quad* x) {
       return quad_length({x[0], x[1], x[2], x[3]});
     },
     -100, 100},
    {"normcdf", 1, [](const Quad* x) { return erfcq(-*x / sqrtq(2)) / 2; }, -14, 6},
    {"normcdfinv", 1, [](const Quad* x) { return -sqrtq(2) * quad_erfcinv(2 * *x); }, 0, 1},
    {"pow", 2, [](const Quad* x) { return powq(x[0], x[1]); }, -10, 10},
    {"rcbrt", 1, [](const Quad* x) { return 1 / cbrtq(*x); }, -10, 10},
    {"remainder", 2, [](const Quad* x) { return remainderq(x[0], x[1]); }, -100, 100},
    {"rhypot", 2,
     [](const Quad* x) {
       return 1 / quad_length({x[0], x[1]});
     },
     -100, 100},
    {"rnorm3d", 3,
     [](const Quad* x) {
       return 1 / quad_length({x[0], x[1], x[2]});
     },
     -100, 100},
    {"rnorm4d", 4,
     [](const Quad* x) {
       return 1 / quad_length({x[0], x[1], x[2], x[3]});
     },
     -100, 100},
    {"rsqrt", 1, [](const Quad* x) { return 1 / sqrtq(*x); }, 0, 10},
    {"sigmoid", 1, [](const Quad* x) { return 1 / (1 + expq(-*x)); }, -104, 20},
    {"sin", 1, [](const Quad* x) { return sinq(*x); }, -100, 100},
    {"sinh", 1, [](const Quad* x) { return sinhq(*x); }, -90, 90},
    {"sinpi", 1, [](const Quad* x) { return quad_sinpi(*x); }, -10, 10},
    {"tan", 1, [](const Quad* x) { return tanq(*x); }, -100, 100},
    {"tanh", 1, [](const Quad* x) { return tanhq(*x); }, -10, 10},
    {"tgamma", 1, [](const Quad* x) { return tgammaq(*x); }, -10, 40},
    {"y0", 1, [](const Quad* x) { return y0q(*x); }, 0, 50},
    {"y1", 1, [](const Quad* x) { return y1q(*x); }, 0, 50},
};

}  // namespace

std::span<const MathReference> math_references() { return kReferences; }

}  // namespace tc::testing
