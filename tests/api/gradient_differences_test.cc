#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <random>

#include "tc/interp/interpreter.h"
#include "tests/api/tensors.h"
#include "tests/common/program.h"

/// Derived gradients of tensors that several statements write, against differences. All is computed by the
/// interpreter in float64, so that what differs is the text of the gradient.
namespace tc::api {
namespace {

using interp::Environment;
using interp::Value;
using testing::take;

constexpr double kStep = 1e-6;

/// The only def of a text, for the shapes of some values. An in-out tensor C takes its values from old_C.
class Def {
 public:
  Def(const std::string& text, const Environment& values) {
    const ir::Program program = testing::program_from(text);
    ir::Given given;
    for (const auto& [name, value] : inputs_of(program, values)) given.shapes[name] = value.shape;
    program_ = take(ir::specialise(program, take(ir::bind(program, given))));
  }

  Environment operator()(const Environment& values) const {
    return take(interp::run(program_, inputs_of(program_, values)));
  }

 private:
  static Environment inputs_of(const ir::Program& program, const Environment& values) {
    Environment inputs;
    for (const ir::Tensor& tensor : program.tensors) {
      if (tensor.role == ir::Role::kInput) inputs[tensor.name] = values.at(tensor.name);
      if (tensor.role == ir::Role::kInOut) inputs[tensor.name] = values.at("old_" + tensor.name);
    }
    return inputs;
  }

  ir::Program program_;
};

/// Numbers of both signs, none near 0.
Value numbers(std::vector<int64_t> shape, std::mt19937_64& engine) {
  Value value = Value::zeros(ScalarType::kFloat64, std::move(shape));
  for (double& x : value.floats)
    x = (engine() % 2 ? 1 : -1) * (0.3 + 1e-9 * static_cast<double>(engine() % 1400000000));
  return value;
}

double sum_of_products(const Value& a, const Value& b) {
  double sum = 0;
  for (size_t i = 0; i < a.floats.size(); ++i) sum += a.floats[i] * b.floats[i];
  return sum;
}

/// d_, or d2_ of the gradient of a gradient: what its results have before the names of inputs.
std::string prefix_of(const std::string& gradient, const Environment& inputs) {
  const std::vector<std::string> results = testing::program_from(gradient).results;
  for (const char* prefix : {"d_", "d2_"}) {
    const auto fits = [&](const std::string& name) {
      return name.starts_with(prefix) && inputs.contains(name.substr(std::string_view(prefix).size()));
    };
    if (std::ranges::all_of(results, fits)) return prefix;
  }
  ADD_FAILURE() << "no prefix fits\n" << gradient;
  return "d_";
}

/// Holds a def's gradient against differences in a random direction for each input, and if `order` is more than 1 that
/// of the gradient's def, too.
void check(const std::string& text, const Environment& values, int order) {
  SCOPED_TRACE(text);
  const std::string derived = take(take(Engine::create(text)).gradient());
  const std::string prefix = prefix_of(derived, values);
  std::mt19937_64 engine(1);
  const Def def(text, values);
  Environment given = values, weights;
  for (const auto& [name, result] : def(values)) {
    given[name] = result;
    weights[name] = given[prefix + name] = numbers(result.shape, engine);
    for (const double x : result.floats) ASSERT_TRUE(std::isfinite(x)) << name;
  }
  const auto loss = [&](const std::string& input, const Value& direction, double step) {
    Environment moved = values;
    for (size_t i = 0; i < direction.floats.size(); ++i) moved[input].floats[i] += step * direction.floats[i];
    double sum = 0;
    for (const auto& [name, result] : def(moved)) sum += sum_of_products(result, weights[name]);
    return sum;
  };
  const Environment made = Def(derived, given)(given);
  for (const auto& [name, value] : values) {
    if (!is_float(value.type)) continue;
    const Value direction = numbers(value.shape, engine);
    const double wanted = (loss(name, direction, kStep) - loss(name, direction, -kStep)) / (2 * kStep);
    const auto slope = made.find(prefix + name);
    const double found = slope == made.end() ? 0 : sum_of_products(slope->second, direction);
    EXPECT_NEAR(found, wanted, 1e-6 * std::max(1.0, std::abs(wanted))) << name << "\n" << derived;
  }
  if (order > 1 && !::testing::Test::HasFailure()) check(derived, given, order - 1);
}

/// What the programs take: eight numbers each, and eight places twice each in a random order.
Environment values_of(uint64_t seed) {
  std::mt19937_64 engine(seed);
  Environment values;
  for (const char* name : {"x", "y", "z", "old_O"}) values[name] = numbers({8}, engine);
  values["A"] = numbers({8, 2}, engine);
  Value at = Value::zeros(ScalarType::kInt32, {8, 2});
  for (size_t i = 0; i < 16; ++i) at.integers[i] = static_cast<int64_t>(i) / 2;
  std::ranges::shuffle(at.integers, engine);
  values["at"] = at;
  return values;
}

std::string def_of(const std::string& statements) {
  return "def f(double(8) x, double(8) y, double(8) z, double(8,2) A, int32(8,2) at) -> (double(8) O) {\n" +
         statements + "}\n";
}

/// Of part of a state that a later statement overwrites, the state before has no gradient.
TEST(GradientDifferences, OfStatesThatSeveralStatementsWrite) {
  for (const char* statements : {
           "O(i) = x(i) * x(i) where i in 0:8\n O(2*i) = y(i) where i in 0:4\n O(2*i + 1) = z(i) * y(i) where i in "
           "0:4\n",
           "O(2*i) += x(i) where i in 0:4\n O(2*i + 1) = y(i) where i in 0:4\n",
           "O(i) += x(i) * y(i) where i in 0:3\n O(i + 3) +=! A(i,k) where i in 0:5, k in 0:2\n",
           "O(i) = O(i) * x(i) where i in 0:8\n O(0) = y(0)\n O(7) = z(7)\n O(i) += O(7 - i) * z(i) where i in 0:8\n",
           "O(i) = y(i) where i in 0:3\n O(7 - i) = z(i) * x(i) where i in 0:3\n O(i) += x(i) * x(i) where i in 0:8\n",
           "O(2*i) = x(i) where i in 0:4\n O(i) *= x(i) * y(i) where i in 0:8\n O(2*i) = z(i) where i in 0:4\n"
           " O(2*i + 1) +=! A(2*i + 1,k) * y(i) where i in 0:4, k in 0:2\n",
           "T(i) = O(i) * x(i) where i in 0:8\n T(1) = y(1)\n T(2) = y(2) * y(2)\n O(i) = T(i) * T(7 - i) where i in "
           "0:8\n",
           "T(i) = x(i) where i in 0:8\n T(i + 6) = y(i) where i in 0:2\n T(i) = z(i) where i in 0:2\n"
           " T(i) += x(i) * x(i) where i in 1:7\n O(i) = T(i) * T(i) where i in 0:8\n",
       }) {
    check(def_of(statements), values_of(1), 2);
  }
}

/// A maximum that starts from the identity takes nothing of what the elements held.
TEST(GradientDifferences, OfMaximaAndMinimaOfParts) {
  for (const char* statements : {
           "O(i) = 10.0 * x(i) * x(i) + 20.0 where i in 0:8\n O(i) max=! A(i,k) where i in 2:5, k in 0:2\n",
           "O(i) = x(i) - 20.0 where i in 0:8\n O(2*i + 1) min=! A(i,k) * y(i) where i in 0:4, k in 0:2\n",
           "O(i) max=! A(i,k) * x(i) where i in 1:3, k in 0:2\n O(i) = O(i) * y(i) where i in 0:8\n",
           "O(i) max= A(i,k) * x(i) where i in 1:6, k in 0:2\n O(i) min=! O(7 - i) * A(i,k) where i in 2:4, k in 0:2\n",
           "T(i) = x(i) + 9.0 where i in 0:8\n T(i) max=! A(i,k) * x(k) where i in 2:5, k in 0:2\n"
           " T(i) max= y(i) where i in 1:4\n O(i) = T(i) * T(7 - i) where i in 0:8\n",
           "O(i) = x(i) * y(i) where i in 0:8\n O(i) *=! A(i,k) * x(i) where i in 2:5, k in 0:2\n"
           " O(i) *= z(i) * A(i,k) where i in 4:7, k in 0:2\n",
       }) {
    check(def_of(statements), values_of(2), 2);
  }
}

/// C2: where data choose the places, all elements begin anew.
TEST(GradientDifferences, OfSumsIntoChosenPlacesOfAPart) {
  check(
      "def f(double(8) x, double(4) y, int32(8) at) -> (double(2,4) O) {\n"
      " O(0,i) = y(i) where i in 0:4\n O(1,at(i)) +=! x(i) * x(i) where i in 0:8\n}",
      [] {
        Environment values = values_of(3);
        values["y"].shape = {4};
        values["y"].floats.resize(4);
        values["at"] = {ScalarType::kInt32, {8}, {}, {3, 0, 0, 2, 1, 3, 3, 1}};
        return values;
      }(),
      2);
}

/// Statements over 0:8 in random order: parts that lie apart or overlap, of every operator.
class Statements {
 public:
  explicit Statements(uint64_t seed) : engine_(seed) {}

  std::string make() {
    std::string text;
    const int count = 3 + pick(4);
    for (int s = 0; s < count; ++s) text += statement(s + 1 == count ? "O" : pick(3) ? "O" : "T");
    return text;
  }

 private:
  int pick(int below) { return static_cast<int>(engine_() % static_cast<uint64_t>(below)); }
  std::string one_of(const std::vector<std::string>& texts) {
    return texts[static_cast<size_t>(pick(static_cast<int>(texts.size())))];
  }

  std::string statement(const std::string& to) {
    if (to == "T" && !has_t_) {
      const std::string first = " double T(i) = " + value(false) + " where i in 0:8\n";
      has_t_ = true;
      return first;
    }
    const bool sets = pick(2) == 0;
    const std::string op = sets ? "=" : one_of(kOperators);
    std::string text;
    if (sets || pick(4) > 0) {
      const int first = pick(4), last = first + 1 + pick(8 - first);
      const std::vector<std::string> whole = {"i", "7 - i"}, half = {"2*i", "2*i + 1", "i + 4"};
      const bool halves = pick(2) == 0;
      const int end = halves ? std::min(last, 4) : last;
      text = fmt::format("{}({}) {} {} where i in {}:{}", to, one_of(halves ? half : whole), op, value(!sets),
                         std::min(first, end - 1), end);
      if (!sets) text += ", k in 0:2";
    } else {
      const std::string place = one_of({"at(i,k)", "i / 2", "(i + 3*k) % 8"});
      text = fmt::format("{}({}) {} {} where i in 0:8, k in 0:2", to, place, op, value(true));
    }
    return " " + text + "\n";
  }

  std::string value(bool reduces) {
    std::vector<std::string> factors = {"x(i)", "y(7 - i)", "z(i)", "sin(y(i))", "(1.5 - x(i))", "O(i)", "O(7 - i)"};
    if (has_t_) factors.insert(factors.end(), {"T(i)", "(i >= 2 ? T(i - 2) : x(i))"});
    std::string text = one_of(factors);
    if (reduces) text = pick(2) ? "A(i,k)" : "A(i,k) * " + text;
    const int more = pick(3);
    for (int m = 0; m < more; ++m) text += (pick(2) ? " * " : " - ") + one_of(factors);
    return text;
  }

  const std::vector<std::string> kOperators = {"+=", "+=", "+=!", "*=", "*=!", "max=", "max=!", "min=", "min=!"};
  std::mt19937_64 engine_;
  bool has_t_ = false;
};

TEST(GradientDifferences, OfRandomMixtures) {
  const auto first = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed)) * 1000000;
  for (uint64_t seed = first; seed < first + 40; ++seed) {
    SCOPED_TRACE(seed);
    check(def_of(Statements(seed).make()), values_of(seed), 1);
  }
}

}  // namespace
}  // namespace tc::api
