#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/api/tensors.h"

/// What integers of all types are together, as constants and as scalars, at the ends of their ranges: by arithmetic
/// that is written here (T1, R8), on the CPU and on the simulator. It wraps.
namespace tc::api {
namespace {

using testing::elements_of;
using testing::take;
using Wide = __int128;

struct Integer {
  int bits;
  bool is_signed;

  std::string name() const { return fmt::format("{}int{}", is_signed ? "" : "u", bits); }
  Wide least() const { return is_signed ? -(Wide{1} << (bits - 1)) : 0; }
  Wide most() const { return (Wide{1} << (is_signed ? bits - 1 : bits)) - 1; }
  Wide wrap(Wide value) const {
    const Wide low = value & ((Wide{1} << bits) - 1);
    return low > most() ? low - (Wide{1} << bits) : low;
  }
};
constexpr Integer kTypes[] = {{8, true},  {16, true},  {32, true},  {64, true},
                              {8, false}, {16, false}, {32, false}, {64, false}};

/// T1.
Integer meet(const Integer& a, const Integer& b) {
  if (a.is_signed == b.is_signed) return a.bits > b.bits ? a : b;
  const Integer& plus = a.is_signed ? b : a;
  return {std::min(64, std::max(a.is_signed ? a.bits : b.bits, 2 * plus.bits)), true};
}

/// A number of a type as text. A number in a text is at most the largest int64, and has no sign.
std::string text_of(const Integer& type, Wide value) {
  if (value == Integer{64, true}.least()) return fmt::format("(-int64({}) - int64(1))", INT64_MAX);
  if (value > INT64_MAX) return fmt::format("(-{}({}))", type.name(), static_cast<int64_t>((Wide{1} << 64) - value));
  return fmt::format("{}({})", type.name(), static_cast<int64_t>(value));
}

std::vector<Wide> values_of(const Integer& type) {
  return {type.least(), type.most(), type.is_signed ? Wide{-3} : type.most() - 2, 2};
}

const char* const kOperators[] = {"+", "-", "*", "/", "%", "min", "max", "==", "!=", "<", "<=", ">", ">="};

std::string operation(const std::string& op, const std::string& a, const std::string& b) {
  if (op == "min" || op == "max") return fmt::format("int64({}({}, {}))", op, a, b);
  return fmt::format("int64({} {} {})", a, op, b);
}

Wide result_of(const std::string& op, const Integer& left, Wide x, const Integer& right, Wide y) {
  const Integer type = meet(left, right);
  const Wide a = type.wrap(x), b = type.wrap(y);
  const auto quotient = [&] { return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); };
  if (op == "+") return type.wrap(a + b);
  if (op == "-") return type.wrap(a - b);
  if (op == "*") return type.wrap(static_cast<uint64_t>(a) * static_cast<Wide>(static_cast<uint64_t>(b)));
  if (op == "/") return type.wrap(quotient());
  if (op == "%") return b == 0 ? 0 : type.wrap(a - quotient() * b);
  if (op == "min") return std::min(a, b);
  if (op == "max") return std::max(a, b);
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  return a >= b;
}

/// Expressions of type int64, and what they are for each of the scalars' values.
struct Case {
  std::string text;
  std::vector<Wide> expected;
};

constexpr int kVector = 4;

/// Runs a program with a row of a result for each case.
void check(const std::string& parameters, const std::vector<Case>& cases,
           const std::vector<std::vector<Scalar>>& scalars) {
  std::string program = fmt::format("def f({}) -> (int64({},{}) O) {{\n", parameters, cases.size(), kVector);
  for (size_t n = 0; n < cases.size(); ++n) {
    program += fmt::format("  O({},i) = {} where i in 0:{}\n", n, cases[n].text, kVector);
  }
  for (const Backend backend : {Backend::kCpu, Backend::kSimulator}) {
    const auto compiled = compile(program + "}", {.backend = backend});
    ASSERT_TRUE(compiled) << program << compiled.error().to_string();
    std::vector<Tensor> outputs = take(compiled->allocate_outputs());
    for (size_t run = 0; run < scalars.size(); ++run) {
      const auto ran = compiled->run(std::vector<Tensor>(), outputs, scalars[run]);
      ASSERT_TRUE(ran) << ran.error().to_string();
      const std::vector<int64_t> found = elements_of<int64_t>(outputs[0]);
      for (size_t n = 0; n < cases.size(); ++n) {
        const auto right = static_cast<int64_t>(Integer{64, true}.wrap(cases[n].expected[run]));
        for (int i = 0; i < kVector; ++i) {
          EXPECT_EQ(found[n * kVector + i], right) << cases[n].text << ", scalars of run " << run << ", on "
                                                   << (backend == Backend::kCpu ? "the CPU" : "the simulator");
        }
      }
    }
  }
}

TEST(IntegerArithmetic, OfConstantsWraps) {
  std::vector<Case> cases;
  size_t turn = 0;
  for (const Integer& left : kTypes) {
    for (const Integer& right : kTypes) {
      for (const char* op : kOperators) {
        turn += 5;
        const Wide a = values_of(left)[turn % 4], b = values_of(right)[turn / 4 % 4];
        cases.push_back({operation(op, text_of(left, a), text_of(right, b)), {result_of(op, left, a, right, b)}});
      }
      for (const Wide a : {left.least(), left.most()}) {
        cases.push_back({fmt::format("int64({}({}))", right.name(), text_of(left, a)), {right.wrap(a)}});
        const std::string negated = fmt::format("int64({}(-{}))", right.name(), text_of(left, a));
        cases.push_back({negated, {right.wrap(left.wrap(-a))}});
        // What is known of a choice is known of its cast.
        const std::string text = text_of(left, a);
        cases.push_back({fmt::format("int64({}(i < 2 ? {} : {}))", right.name(), text, text), {right.wrap(a)}});
        const std::string chosen =
            fmt::format("int64({}(int8(3) >= int8(2) ? {} : {}))", right.name(), text, text_of(left, 1));
        cases.push_back({chosen, {right.wrap(a)}});
      }
    }
  }
  constexpr size_t kCases = 200;
  for (size_t first = 0; first < cases.size(); first += kCases) {
    const size_t end = std::min(first + kCases, cases.size());
    check("", {cases.begin() + static_cast<std::ptrdiff_t>(first), cases.begin() + static_cast<std::ptrdiff_t>(end)},
          {{}});
    if (HasFailure()) return;
  }
}

Scalar scalar_of(const Integer& type, Wide value) {
  if (type.is_signed) return static_cast<int64_t>(value);
  return static_cast<uint64_t>(value);
}

TEST(IntegerArithmetic, OfScalarsWraps) {
  size_t turn = 0;
  for (const Integer& left : kTypes) {
    for (const Integer& right : kTypes) {
      std::vector<std::pair<Wide, Wide>> pairs;
      for (size_t turn = 0; turn < 8; ++turn) {
        pairs.emplace_back(values_of(left)[turn % 4], values_of(right)[(turn + turn / 4) % 4]);
      }
      std::vector<Case> cases;
      const auto add = [&](const std::string& text, auto value) {
        Case& made = cases.emplace_back(Case{text, {}});
        for (const auto& [a, b] : pairs) made.expected.push_back(value(a, b));
      };
      for (const std::string op : kOperators) {
        const Wide c = values_of(left)[++turn % 4], d = values_of(right)[(turn / 2) % 4];
        add(operation(op, "a", "b"), [&](Wide a, Wide b) { return result_of(op, left, a, right, b); });
        if (turn % 2 == 0) continue;
        add(operation(op, text_of(left, c), "b"), [&](Wide, Wide b) { return result_of(op, left, c, right, b); });
        add(operation(op, "a", text_of(right, d)), [&](Wide a, Wide) { return result_of(op, left, a, right, d); });
        add(operation(op, text_of(left, c), fmt::format("(b * {})", text_of(right, 3))),
            [&](Wide, Wide b) { return result_of(op, left, c, right, result_of("*", right, b, right, 3)); });
      }
      add(fmt::format("int64({}(a))", right.name()), [&](Wide a, Wide) { return right.wrap(a); });
      add("int64(-a)", [&](Wide a, Wide) { return left.wrap(-a); });
      std::vector<std::vector<Scalar>> scalars;
      for (const auto& [a, b] : pairs) scalars.push_back({scalar_of(left, a), scalar_of(right, b)});
      check(fmt::format("{} a, {} b", left.name(), right.name()), cases, scalars);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tc::api
