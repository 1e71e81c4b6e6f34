#include "tc/cuda/intrinsics.h"

#include <algorithm>
#include <iterator>

namespace tc::cuda {
namespace {

/// Sorted by name. `fdivide`, `sigmoid`, `sign` and the functions of integers are printed otherwise; CUDA's fdividef
/// would be an approximation.
constexpr DeviceFunction kFunctions[] = {
    {"abs", "fabsf", "fabs", true},
    {"acos", "acosf", "acos"},
    {"acosh", "acoshf", "acosh"},
    {"asin", "asinf", "asin"},
    {"asinh", "asinhf", "asinh"},
    {"atan", "atanf", "atan"},
    {"atan2", "atan2f", "atan2"},
    {"atanh", "atanhf", "atanh"},
    {"cbrt", "cbrtf", "cbrt"},
    {"ceil", "ceilf", "ceil", true},
    {"copysign", "copysignf", "copysign", true},
    {"cos", "cosf", "cos"},
    {"cosh", "coshf", "cosh"},
    {"cospi", "cospif", "cospi"},
    {"cyl_bessel_i0", "cyl_bessel_i0f", "cyl_bessel_i0"},
    {"cyl_bessel_i1", "cyl_bessel_i1f", "cyl_bessel_i1"},
    {"erf", "erff", "erf"},
    {"erfc", "erfcf", "erfc"},
    {"erfcinv", "erfcinvf", "erfcinv"},
    {"erfcx", "erfcxf", "erfcx"},
    {"erfinv", "erfinvf", "erfinv"},
    {"exp", "expf", "exp"},
    {"exp10", "exp10f", "exp10"},
    {"exp2", "exp2f", "exp2"},
    {"expm1", "expm1f", "expm1"},
    {"fabs", "fabsf", "fabs", true},
    {"fdim", "fdimf", "fdim"},
    {"floor", "floorf", "floor", true},
    {"fma", "fmaf", "fma"},
    {"fmax", "fmaxf", "fmax", true},
    {"fmin", "fminf", "fmin", true},
    {"fmod", "fmodf", "fmod"},
    {"hypot", "hypotf", "hypot"},
    {"ilogb", "ilogbf", "ilogb", true},
    {"isfinite", "isfinite", "isfinite", true},
    {"isinf", "isinf", "isinf", true},
    {"isnan", "isnan", "isnan", true},
    {"j0", "j0f", "j0"},
    {"j1", "j1f", "j1"},
    {"jn", "jnf", "jn"},
    {"ldexp", "ldexpf", "ldexp"},
    {"lgamma", "lgammaf", "lgamma"},
    {"log", "logf", "log"},
    {"log10", "log10f", "log10"},
    {"log1p", "log1pf", "log1p"},
    {"log2", "log2f", "log2"},
    {"logb", "logbf", "logb"},
    {"nearbyint", "nearbyintf", "nearbyint", true},
    {"nextafter", "nextafterf", "nextafter"},
    {"norm3d", "norm3df", "norm3d"},
    {"norm4d", "norm4df", "norm4d"},
    {"normcdf", "normcdff", "normcdf"},
    {"normcdfinv", "normcdfinvf", "normcdfinv"},
    {"pow", "powf", "pow"},
    {"rcbrt", "rcbrtf", "rcbrt"},
    {"remainder", "remainderf", "remainder"},
    {"rhypot", "rhypotf", "rhypot"},
    {"rint", "rintf", "rint", true},
    {"rnorm3d", "rnorm3df", "rnorm3d"},
    {"rnorm4d", "rnorm4df", "rnorm4d"},
    {"round", "roundf", "round", true},
    {"rsqrt", "rsqrtf", "rsqrt"},
    {"scalbln", "scalblnf", "scalbln"},
    {"scalbn", "scalbnf", "scalbn"},
    {"signbit", "signbit", "signbit", true},
    {"sin", "sinf", "sin"},
    {"sinh", "sinhf", "sinh"},
    {"sinpi", "sinpif", "sinpi"},
    {"sqrt", "sqrtf", "sqrt"},
    {"tan", "tanf", "tan"},
    {"tanh", "tanhf", "tanh"},
    {"tgamma", "tgammaf", "tgamma"},
    {"trunc", "truncf", "trunc", true},
    {"y0", "y0f", "y0"},
    {"y1", "y1f", "y1"},
    {"yn", "ynf", "yn"},
};

}  // namespace

const DeviceFunction* find_device_function(const std::string& name) {
  const auto* at = std::lower_bound(std::begin(kFunctions), std::end(kFunctions), name,
                                    [](const DeviceFunction& f, const std::string& n) { return f.name < n; });
  return at != std::end(kFunctions) && at->name == name ? at : nullptr;
}

bool is_device_function(const std::string& identifier) {
  return std::any_of(std::begin(kFunctions), std::end(kFunctions),
                     [&](const DeviceFunction& f) { return identifier == f.in_32 || identifier == f.in_64; });
}

}  // namespace tc::cuda
