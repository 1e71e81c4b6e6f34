#include "tc/lang/derivatives.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <map>

namespace tc::lang {
namespace {

/// {x}, {y}, {z}, {w} are the arguments, {t} the name of the type.
const std::map<std::string, std::vector<std::string>>& table() {
  static const std::map<std::string, std::vector<std::string>> known = {
      {"abs", {"sign({x})"}},
      {"acos", {"(-1.0 / sqrt(1.0 - {x} * {x}))"}},
      {"acosh", {"(1.0 / sqrt({x} * {x} - 1.0))"}},
      {"asin", {"(1.0 / sqrt(1.0 - {x} * {x}))"}},
      {"asinh", {"(1.0 / sqrt({x} * {x} + 1.0))"}},
      {"atan", {"(1.0 / (1.0 + {x} * {x}))"}},
      {"atan2", {"({y} / ({x} * {x} + {y} * {y}))", "(-{x} / ({x} * {x} + {y} * {y}))"}},
      {"atanh", {"(1.0 / (1.0 - {x} * {x}))"}},
      {"cbrt", {"(1.0 / (3.0 * cbrt({x}) * cbrt({x})))"}},
      {"ceil", {""}},
      {"copysign", {"(sign({x}) * copysign({t}(1.0), {y}))", ""}},
      {"cos", {"(-sin({x}))"}},
      {"cosh", {"sinh({x})"}},
      {"cospi", {"({t}(-3.141592653589793) * sinpi({x}))"}},
      {"cyl_bessel_i0", {"cyl_bessel_i1({x})"}},
      {"cyl_bessel_i1", {"({x} == 0.0 ? 0.5 : cyl_bessel_i0({x}) - cyl_bessel_i1({x}) / {x})"}},
      {"erf", {"({t}(1.1283791670955126) * exp(-({x} * {x})))"}},
      {"erfc", {"({t}(-1.1283791670955126) * exp(-({x} * {x})))"}},
      {"erfcinv", {"({t}(-0.886226925452758) * exp(erfcinv({x}) * erfcinv({x})))"}},
      {"erfcx", {"(2.0 * {x} * erfcx({x}) - {t}(1.1283791670955126))"}},
      {"erfinv", {"({t}(0.886226925452758) * exp(erfinv({x}) * erfinv({x})))"}},
      {"exp", {"exp({x})"}},
      {"exp10", {"(exp10({x}) * {t}(2.302585092994046))"}},
      {"exp2", {"(exp2({x}) * {t}(0.6931471805599453))"}},
      {"expm1", {"exp({x})"}},
      {"fabs", {"sign({x})"}},
      {"fdim", {"({x} > {y} ? 1.0 : 0.0)", "({x} > {y} ? -1.0 : 0.0)"}},
      {"fdivide", {"(1.0 / {y})", "(-{x} / ({y} * {y}))"}},
      {"floor", {""}},
      {"fma", {"{y}", "{x}", "1.0"}},
      {"fmod", {"1.0", "(-trunc({x} / {y}))"}},
      {"hypot", {"({x} / hypot({x}, {y}))", "({y} / hypot({x}, {y}))"}},
      {"j0", {"(-j1({x}))"}},
      {"j1", {"(0.5 * (j0({x}) - jn(2, {x})))"}},
      {"jn", {"", "(0.5 * (jn({x} - 1, {y}) - jn({x} + 1, {y})))"}},
      {"ldexp", {"ldexp({t}(1.0), {y})", ""}},
      {"log", {"(1.0 / {x})"}},
      {"log10", {"(1.0 / ({x} * {t}(2.302585092994046)))"}},
      {"log1p", {"(1.0 / (1.0 + {x}))"}},
      {"log2", {"(1.0 / ({x} * {t}(0.6931471805599453)))"}},
      {"logb", {""}},
      {"nearbyint", {""}},
      {"nextafter", {"1.0", ""}},
      {"norm3d", {"({x} / norm3d({x}, {y}, {z}))", "({y} / norm3d({x}, {y}, {z}))", "({z} / norm3d({x}, {y}, {z}))"}},
      {"norm4d",
       {"({x} / norm4d({x}, {y}, {z}, {w}))", "({y} / norm4d({x}, {y}, {z}, {w}))",
        "({z} / norm4d({x}, {y}, {z}, {w}))", "({w} / norm4d({x}, {y}, {z}, {w}))"}},
      {"normcdf", {"({t}(0.3989422804014327) * exp(-0.5 * {x} * {x}))"}},
      {"normcdfinv", {"({t}(2.5066282746310002) * exp(0.5 * normcdfinv({x}) * normcdfinv({x})))"}},
      {"rcbrt", {"(-rcbrt({x}) / (3.0 * {x}))"}},
      {"remainder", {"1.0", "(-rint({x} / {y}))"}},
      {"rhypot", {"(-{x} * pow(rhypot({x}, {y}), 3.0))", "(-{y} * pow(rhypot({x}, {y}), 3.0))"}},
      {"rint", {""}},
      {"rnorm3d",
       {"(-{x} * pow(rnorm3d({x}, {y}, {z}), 3.0))", "(-{y} * pow(rnorm3d({x}, {y}, {z}), 3.0))",
        "(-{z} * pow(rnorm3d({x}, {y}, {z}), 3.0))"}},
      {"rnorm4d",
       {"(-{x} * pow(rnorm4d({x}, {y}, {z}, {w}), 3.0))", "(-{y} * pow(rnorm4d({x}, {y}, {z}, {w}), 3.0))",
        "(-{z} * pow(rnorm4d({x}, {y}, {z}, {w}), 3.0))", "(-{w} * pow(rnorm4d({x}, {y}, {z}, {w}), 3.0))"}},
      {"round", {""}},
      {"rsqrt", {"(-0.5 * rsqrt({x}) / {x})"}},
      {"scalbln", {"scalbln({t}(1.0), {y})", ""}},
      {"scalbn", {"scalbn({t}(1.0), {y})", ""}},
      {"sigmoid", {"(sigmoid({x}) * (1.0 - sigmoid({x})))"}},
      {"sign", {""}},
      {"sin", {"cos({x})"}},
      {"sinh", {"cosh({x})"}},
      {"sinpi", {"({t}(3.141592653589793) * cospi({x}))"}},
      {"sqrt", {"(0.5 / sqrt({x}))"}},
      {"tan", {"(1.0 + tan({x}) * tan({x}))"}},
      {"tf32", {"1.0"}},
      {"tanh", {"(1.0 - tanh({x}) * tanh({x}))"}},
      {"trunc", {""}},
      {"y0", {"(-y1({x}))"}},
      {"y1", {"(0.5 * (y0({x}) - yn(2, {x})))"}},
      {"yn", {"", "(0.5 * (yn({x} - 1, {y}) - yn({x} + 1, {y})))"}},
  };
  return known;
}

}  // namespace

std::optional<std::vector<std::string>> partial_derivatives(const std::string& name,
                                                            const std::vector<std::string>& arguments,
                                                            const std::string& type) {
  const auto known = table().find(name);
  if (known == table().end() || known->second.size() != arguments.size()) return std::nullopt;
  fmt::dynamic_format_arg_store<fmt::format_context> values;
  const char* const names[] = {"x", "y", "z", "w"};
  for (size_t a = 0; a < 4; ++a) values.push_back(fmt::arg(names[a], a < arguments.size() ? arguments[a] : ""));
  values.push_back(fmt::arg("t", type));
  std::vector<std::string> slopes;
  for (const std::string& slope : known->second) slopes.push_back(fmt::vformat(slope, values));
  return slopes;
}

}  // namespace tc::lang
