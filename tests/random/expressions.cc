#include "tests/random/expressions.h"

#include <fmt/format.h>

namespace tc::testing {

std::string Expressions::literal(Kind kind) {
  static constexpr const char* kFloats[] = {"0.5", "2.0",  "1.0", "0.0", "3.0", "0.25",
                                            "1.5", "-1.0", "4.0", "pi",  "inf"};
  static constexpr const char* kIntegers[] = {"0", "1", "2", "3", "5", "7", "(-1)", "(-3)", "100"};
  switch (kind) {
    case Kind::kFloat: {
      const std::string text = kFloats[scope_.random.below(std::size(kFloats))];
      return text[0] == '-' ? fmt::format("({})", text) : text;
    }
    case Kind::kInteger:
      return kIntegers[scope_.random.below(9)];
    case Kind::kBool:
      break;
  }
  return scope_.random.chance(50) ? "(1 < 2)" : "(2 < 1)";
}

std::string Expressions::expression(Kind kind, int depth) {
  if (depth <= 0 || scope_.random.chance(15)) return leaf(kind);
  switch (kind) {
    case Kind::kFloat:
      return float_expression(depth - 1);
    case Kind::kInteger:
      return integer_expression(depth - 1);
    case Kind::kBool:
      break;
  }
  return bool_expression(depth - 1);
}

std::string Expressions::leaf(Kind kind) {
  for (RandomLet& let : scope_.lets) {
    if (let.kind == kind && scope_.random.chance(40)) {
      let.used = true;
      return let.name;
    }
  }
  const uint64_t choice = scope_.random.below(100);
  if (choice < 70) {
    if (std::optional<std::string> read = tensor_read(kind)) return *read;
  }
  if (choice < 80 && kind == Kind::kInteger && !scope_.indices.empty()) {
    const RandomIndex& index = scope_.indices[scope_.random.below(scope_.indices.size())];
    return scope_.random.chance(80) ? index.name : fmt::format("int64({})", index.name);
  }
  if (choice < 90) {
    for (const RandomTensor& scalar : scope_.scalars) {
      if (kind_of(scalar.type) == kind) return scalar.name;
    }
  }
  return literal(kind);
}

std::optional<std::string> Expressions::tensor_read(Kind kind) {
  for (int attempt = 0; attempt < 6; ++attempt) {
    const RandomTensor tensor = scope_.readable[scope_.random.below(scope_.readable.size())];
    const bool fits = kind_of(tensor.type) == kind;
    if (!fits && attempt < 4) continue;
    std::string text = tensor.name;
    std::vector<std::string> subscripts;
    const std::vector<RandomIndex> before = scope_.indices;
    for (const Extent& extent : tensor.shape) {
      std::optional<std::string> made = subscript(extent);
      if (!made) break;
      subscripts.push_back(*made);
    }
    if (subscripts.size() != tensor.shape.size()) {
      scope_.indices = before;
      continue;
    }
    if (!subscripts.empty()) text += fmt::format("({})", fmt::join(subscripts, ", "));
    return fits ? text : converted(text, kind_of(tensor.type), kind);
  }
  return std::nullopt;
}

std::string Expressions::converted(const std::string& text, Kind from, Kind to) {
  if (to == Kind::kFloat) {
    return fmt::format("{}({})", from == Kind::kBool ? "float32" : name_of(scope_.random_float()), text);
  }
  if (to == Kind::kInteger) return cast(scope_.random_integer(), text);
  return fmt::format("({} > {})", text, literal(from));
}

std::optional<std::string> Expressions::subscript(const Extent& extent) {
  if (extent.value == 0) {
    return plain_subscript(extent);
  }
  if (scope_.random.chance(75)) {
    if (std::optional<std::string> made = plain_subscript(extent)) return made;
  }
  std::vector<std::string> candidates = affine_subscripts(extent);
  candidates.push_back(fmt::format("{}", scope_.random.range(0, extent.value - 1)));
  if (scope_.random.chance(10)) {
    if (std::optional<std::string> gathered = gather(extent.value)) return gathered;
  }
  return candidates[scope_.random.below(candidates.size())];
}

std::vector<std::string> Expressions::affine_subscripts(const Extent& extent) {
  std::vector<std::string> candidates;
  for (const RandomIndex& index : scope_.indices) {
    if (index.plain) continue;
    const int64_t last = index.end - 1;
    if (last < extent.value) candidates.push_back(index.name);
    if (2 * last + 1 < extent.value) candidates.push_back(fmt::format("2 * {} + 1", index.name));
    if (last + 2 < extent.value) candidates.push_back(fmt::format("{} + 2", index.name));
    if (index.begin >= 1 && last <= extent.value) candidates.push_back(fmt::format("{} - 1", index.name));
    if (last < extent.value) candidates.push_back(fmt::format("{} - {}", extent.value - 1, index.name));
    for (const RandomTensor& stride : scope_.strides) {
      const int64_t value = scope_.program.compiled_in.at(stride.name);
      if (value * last < extent.value) candidates.push_back(fmt::format("{} * {}", stride.name, index.name));
      if (value * last + 1 < extent.value) candidates.push_back(fmt::format("{} * {} + 1", index.name, stride.name));
    }
    for (const RandomIndex& other : scope_.indices) {
      if (other.plain || other.name == index.name) continue;
      if (last + other.end - 1 < extent.value) candidates.push_back(fmt::format("{} + {}", index.name, other.name));
    }
  }
  return candidates;
}

std::optional<std::string> Expressions::plain_subscript(const Extent& extent) {
  std::vector<RandomIndex*> fitting;
  for (RandomIndex& index : scope_.indices) {
    if (index.plain && index.end_text == extent.text) fitting.push_back(&index);
  }
  if (fitting.empty()) return std::nullopt;
  RandomIndex& index = *fitting[scope_.random.below(fitting.size())];
  if (index.anchored && extent.value > 0 && scope_.random.chance(10)) {
    return fmt::format("{} - 1 - {}", extent.text, index.name);
  }
  index.anchored = true;
  return index.name;
}

std::optional<std::string> Expressions::gather(int64_t bound) {
  for (RandomIndex& index : scope_.indices) {
    if (!index.plain) continue;
    index.anchored = true;
    return fmt::format("{}({})", scope_.add_index_tensor(index.end_text, index.end, bound).name, index.name);
  }
  return std::nullopt;
}

std::string Expressions::float_expression(int depth) {
  const auto operand = [&] { return expression(Kind::kFloat, depth); };
  static constexpr const char* kUnary[] = {"abs",   "relu",  "tanh",  "sigmoid", "sin",   "cos",   "exp",      "floor",
                                           "rint",  "erf",   "atan",  "sign",    "trunc", "round", "ceil",     "exp2",
                                           "asinh", "expm1", "cospi", "sinpi",   "cbrt",  "erfc",  "nearbyint"};
  // On arguments above 0.5.
  static constexpr const char* kPositive[] = {"log", "log2", "log10", "log1p", "rsqrt", "lgamma", "rcbrt"};
  static constexpr const char* kBinary[] = {"min", "max", "fmin", "fmax", "atan2", "hypot", "copysign", "fdim"};
  static constexpr const char* kTernary[] = {"fma", "max", "clamp", "norm3d"};
  switch (scope_.random.below(17)) {
    case 0:
    case 1:
      return fmt::format("({} + {})", operand(), operand());
    case 2:
      return fmt::format("({} - {})", operand(), operand());
    case 3:
    case 4:
      return fmt::format("({} * {})", operand(), operand());
    case 5:
      return fmt::format("({} / (abs({}) + 1.0))", operand(), operand());
    case 6:
      return fmt::format("{}({})", kUnary[scope_.random.below(std::size(kUnary))], operand());
    case 7:
      return fmt::format("{}({}, {})", kBinary[scope_.random.below(std::size(kBinary))], operand(), operand());
    case 8:
      return fmt::format("(-{})", operand());
    case 9:
      return fmt::format("sqrt(abs({}))", operand());
    case 10:
      return fmt::format("({} ? {} : {})", expression(Kind::kBool, depth), operand(), operand());
    case 11:
      return fmt::format("{}({})", name_of(scope_.random_float()),
                         expression(scope_.random.chance(70) ? Kind::kInteger : Kind::kFloat, depth));
    case 12:
      return fmt::format("clamp({}, -2.0, 2.0)", operand());
    case 13:
      return fmt::format("{}(abs({}) + 0.5)", kPositive[scope_.random.below(std::size(kPositive))], operand());
    case 15:
      return fmt::format("tf32(float32({}))", operand());
    case 14:
      return fmt::format("pow(abs({}) + 0.5, clamp({}, -2.0, 2.0))", operand(), operand());
    default:
      return fmt::format("{}({}, {}, {})", kTernary[scope_.random.below(std::size(kTernary))], operand(), operand(),
                         operand());
  }
}

std::string Expressions::integer_expression(int depth) {
  const auto operand = [&] { return expression(Kind::kInteger, depth); };
  switch (scope_.random.below(15)) {
    case 0:
    case 1:
      return fmt::format("({} + {})", operand(), operand());
    case 2:
      return fmt::format("({} - {})", operand(), operand());
    case 3:
    case 4:
      return fmt::format("({} * {})", operand(), operand());
    case 5:
      return fmt::format("({} / int32({}))", operand(), operand());
    case 6:
      return fmt::format("({} % int32({}))", operand(), operand());
    case 7:
      return fmt::format("{}({}, {})", scope_.random.chance(50) ? "min" : "max", operand(), operand());
    case 8:
      return fmt::format("{}({})", scope_.random.chance(50) ? "abs" : "sign", operand());
    case 9: {
      static constexpr const char* kNames[] = {"bitwise_and", "bitwise_or", "bitwise_xor"};
      return fmt::format("{}({}, {})", kNames[scope_.random.below(3)], operand(), operand());
    }
    case 10:
      return fmt::format("shift_{}({}, {})", scope_.random.chance(50) ? "left" : "right", operand(),
                         scope_.random.below(9));
    case 11:
      return fmt::format("{}({})", scope_.random.chance(50) ? "popcount" : "bitwise_not", operand());
    case 12:
      return fmt::format("({} ? {} : {})", expression(Kind::kBool, depth), operand(), operand());
    case 13:
      return cast(scope_.random_integer(), expression(Kind::kFloat, depth));
    default:
      return cast(scope_.random_integer(), operand());
  }
}

std::string Expressions::bool_expression(int depth) {
  static constexpr const char* kComparisons[] = {"<", "<=", ">", ">=", "==", "!="};
  const Kind kind = scope_.random.chance(50) ? Kind::kFloat : Kind::kInteger;
  switch (scope_.random.below(7)) {
    case 0:
      return fmt::format("({} && {})", expression(Kind::kBool, depth), expression(Kind::kBool, depth));
    case 1:
      return fmt::format("({} || {})", expression(Kind::kBool, depth), expression(Kind::kBool, depth));
    case 2:
      return fmt::format("(!{})", expression(Kind::kBool, depth));
    case 3:
      return fmt::format("isnan({})", expression(Kind::kFloat, depth));
    default:
      return fmt::format("({} {} {})", expression(kind, depth), kComparisons[scope_.random.below(6)],
                         expression(kind, depth));
  }
}

}  // namespace tc::testing
