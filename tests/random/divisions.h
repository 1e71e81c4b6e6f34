#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tc/interp/compare.h"
#include "tests/random/generator.h"

/// Quotients where the range of a float ends: many by one divisor and one by many, of every pair of values.
namespace tc::testing {

inline RandomProgram divisions() {
  RandomProgram program;
  program.parameters = {"float16(N) H", "float32(N) F", "float64(N) D"};
  for (const auto& [input, result] : std::map<std::string, std::string>{{"H", "h"}, {"F", "f"}, {"D", "d"}}) {
    program.results[result] = result;
    program.results[result + "t"] = result + "t";
    program.targets.insert(program.targets.end(), {result, result + "t"});
    program.statements.push_back(result + "(i,j) = " + input + "(i) / " + input + "(j)");
    program.statements.push_back(result + "t(i,j) = " + input + "(j) / " + input + "(i)");
  }
  return program;
}

/// The ends of a type's range and what lies about them, with both signs, and random numbers of extreme exponents.
/// `digits` and the exponents are as std::numeric_limits has them.
inline std::vector<double> extremes(int digits, int min_exponent, int max_exponent) {
  const double epsilon = std::ldexp(1, 1 - digits), least_normal = std::ldexp(1, min_exponent - 1);
  const double greatest = std::ldexp(2 - epsilon, max_exponent - 1);
  std::vector<double> values = {0,           1, 3, 1 + epsilon, 2 - epsilon, std::numeric_limits<double>::infinity(),
                                std::nan("")};
  for (const double factor : {1.0, 1 + epsilon, 1.5, 2 - epsilon}) {
    for (const int exponent : {0, 1, 2, 3}) {
      values.push_back(std::ldexp(factor * least_normal, exponent));
      values.push_back(std::ldexp(factor / (2 - epsilon) * greatest, -exponent - 1));
    }
  }
  values.push_back(greatest);
  for (const double factor : {1.0, 2.0, 3.0, 1 / epsilon - 1}) values.push_back(factor * epsilon * least_normal);
  std::mt19937_64 random(1);
  while (values.size() < 70) {
    const double fraction = 1 + epsilon * static_cast<double>(random() % (uint64_t{1} << (digits - 1)));
    const int near = static_cast<int>(random() % 6);
    values.push_back(std::ldexp(fraction, random() % 2 ? min_exponent - 1 + near : max_exponent - 1 - near));
  }
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  return values;
}

/// To nearest, ties to even.
inline double rounded_to_float16(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double unit = std::ldexp(1, std::max(std::ilogb(x), -14) - 10);
  const double nearest = std::nearbyint(x / unit) * unit;
  return std::fabs(nearest) > 65504 ? std::copysign(std::numeric_limits<double>::infinity(), x) : nearest;
}

inline interp::Environment division_data(const ir::Program& program) {
  interp::Environment data;
  for (const ir::Tensor& tensor : program.tensors) {
    interp::Value value = interp::Value::zeros(ir::from_halide(tensor.type), ir::constant_shape(tensor));
    if (tensor.name == "H") value.floats = extremes(11, -13, 16);
    if (tensor.name == "F") value.floats = extremes(24, -125, 128);
    if (tensor.name == "D") value.floats = extremes(53, -1021, 1024);
    for (double& x : value.floats)
      x = tensor.name == "H" ? rounded_to_float16(x) : tensor.name == "F" ? static_cast<float>(x) : x;
    data.emplace(tensor.name, std::move(value));
  }
  return data;
}

inline int64_t division_size() { return static_cast<int64_t>(extremes(24, -125, 128).size()); }

/// Every quotient is the number nearest to the true one, and the oracle agrees.
inline void expect_quotients(const ir::Program& program, const interp::Environment& data,
                             const interp::Environment& results) {
  const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
  ASSERT_TRUE(oracle) << oracle.error().to_string();
  for (const interp::Comparison& comparison : interp::compare(results, *oracle)) {
    EXPECT_TRUE(comparison.agrees) << comparison.sentence;
  }
  for (const auto& [name, result] : results) {
    const std::vector<double>& values = data.at(std::string(1, static_cast<char>(std::toupper(name[0])))).floats;
    const size_t n = values.size();
    int wrong = 0;
    for (size_t at = 0; at < n * n; ++at) {
      const double a = values[name.size() == 1 ? at / n : at % n], b = values[name.size() == 1 ? at % n : at / n];
      const double exact = name[0] == 'd'   ? a / b
                           : name[0] == 'f' ? static_cast<float>(a) / static_cast<float>(b)
                                            : rounded_to_float16(static_cast<float>(a) / static_cast<float>(b));
      const double found = result.floats[at];
      const bool same =
          std::isnan(exact) ? std::isnan(found) : std::bit_cast<uint64_t>(exact) == std::bit_cast<uint64_t>(found);
      if (!same && ++wrong < 5)
        ADD_FAILURE() << name << ": " << a << " / " << b << " is " << exact << ", not " << found;
    }
    EXPECT_EQ(wrong, 0) << name;
  }
}

}  // namespace tc::testing
