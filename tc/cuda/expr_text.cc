#include "tc/cuda/expr_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tc/cuda/intrinsics.h"
#include "tc/cuda/types.h"
#include "tc/support/check.h"
#include "tc/tile/shared_divisors.h"

namespace tc::cuda {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;
using Halide::Type;

// How tightly C++'s operators bind.
constexpr int kTernary = 2, kOr = 3, kAnd = 4, kBitOr = 5, kBitXor = 6, kBitAnd = 7, kEqual = 8, kLess = 9, kSum = 12,
              kProduct = 13, kUnary = 15, kAtom = 16;

bool is_narrow(Type type) { return !type.is_float() && !type.is_bool() && type.bits() < 32; }

/// The shortest decimal that reads back as the number, unless a compiler that reads it as a wider float first would
/// round twice.
std::string decimal(double value, bool is_double) {
  std::string text = is_double ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  const bool safe = is_double
                        ? static_cast<double>(std::strtold(text.c_str(), nullptr)) == value
                        : static_cast<float>(std::strtod(text.c_str(), nullptr)) == static_cast<float>(value) &&
                              static_cast<float>(std::strtold(text.c_str(), nullptr)) == static_cast<float>(value);
  if (!safe) return fmt::format("{:a}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

ExprText::ExprText(const tile::Kernel& kernel) : names_(kernel) {
  for (const tile::Tensor& tensor : kernel.tensors) declare(tensor);
  for (const tile::Scalar& scalar : kernel.scalars) {
    types_[scalar.name] = scalar.type;
    if (is_half(scalar.type)) half_scalars_.insert(scalar.name);
    if (scalar.type.is_bool()) bool_scalars_.insert(scalar.name);
  }
  for (int d = 0; d < 3; ++d) {
    declare(tile::kBlock[d], Halide::Int(32), Bounds{0, kernel.grid[d] - 1});
    declare(tile::kThread[d], Halide::Int(32), Bounds{0, kernel.block[d] - 1});
  }
}

void ExprText::declare(const std::string& variable, Type type, std::optional<Bounds> bounds) {
  types_[variable] = type;
  bounds_.erase(variable);
  if (bounds) bounds_[variable] = *bounds;
}

const tile::Tensor& ExprText::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  TC_CHECK(found != tensors_.end(), "'{}' is no tensor in scope", name);
  return *found->second;
}

bool ExprText::reads(const Expr& e) const {
  struct Finder : hi::IRVisitor {
    bool found = false;
    using hi::IRVisitor::visit;
    void visit(const hi::Call* c) override {
      const bool divides = c->name == "tc.floor_div" || c->name == "tc.floor_mod" || c->name == tile::kQuotient ||
                           c->name == tile::kNarrowQuotient;
      found |= c->call_type == hi::Call::PureExtern && !divides;
      hi::IRVisitor::visit(c);
    }
  } finder;
  e.accept(&finder);
  return finder.found;
}

std::string ExprText::value(const Expr& e) {
  wraps_ = true;
  return print(e).text;
}

std::string ExprText::index(const Expr& e) {
  wraps_ = reads(e);
  return print(e).text;
}

std::string ExprText::at(const Expr& e, int level) {
  const Text text = print(e);
  return text.level < level ? "(" + text.text + ")" : text.text;
}

ExprText::Text ExprText::print(const Expr& e) {
  using hi::IRNodeType;
  if (const auto* n = e.as<hi::IntImm>()) return literal(n->type, n->value);
  if (const auto* n = e.as<hi::UIntImm>()) return literal(n->type, static_cast<int64_t>(n->value));
  if (const auto* n = e.as<hi::FloatImm>()) return float_literal(n->type, n->value);
  if (const auto* n = e.as<hi::Variable>()) return variable(*n);
  if (const auto* n = e.as<hi::Cast>()) return cast(*n);
  if (const auto* n = e.as<hi::Add>()) return arithmetic(n->type, '+', n->a, n->b);
  if (const auto* n = e.as<hi::Sub>()) return arithmetic(n->type, '-', n->a, n->b);
  if (const auto* n = e.as<hi::Mul>()) return arithmetic(n->type, '*', n->a, n->b);
  if (const auto* n = e.as<hi::Div>()) return division(e, n->a, n->b, false);
  if (const auto* n = e.as<hi::Mod>()) return division(e, n->a, n->b, true);
  if (const auto* n = e.as<hi::Min>()) return extremum(n->type, "min", n->a, n->b);
  if (const auto* n = e.as<hi::Max>()) return extremum(n->type, "max", n->a, n->b);
  if (const auto* n = e.as<hi::EQ>()) return infix("==", kEqual, n->a, n->b);
  if (const auto* n = e.as<hi::NE>()) return infix("!=", kEqual, n->a, n->b);
  if (const auto* n = e.as<hi::LT>()) return infix("<", kLess, n->a, n->b);
  if (const auto* n = e.as<hi::LE>()) return infix("<=", kLess, n->a, n->b);
  if (const auto* n = e.as<hi::GT>()) return infix(">", kLess, n->a, n->b);
  if (const auto* n = e.as<hi::GE>()) return infix(">=", kLess, n->a, n->b);
  if (const auto* n = e.as<hi::And>()) return infix("&&", kAnd, n->a, n->b);
  if (const auto* n = e.as<hi::Or>()) return infix("||", kOr, n->a, n->b);
  if (const auto* n = e.as<hi::Not>()) return {fmt::format("!{}", at(n->a, kUnary)), kUnary};
  if (const auto* n = e.as<hi::Select>()) return choice(n->condition, n->true_value, n->false_value);
  if (const auto* n = e.as<hi::Call>()) return call(*n);
  TC_CHECK(false, "an expression of this kind has no CUDA text");
  return {};
}

ExprText::Text ExprText::literal(Type type, int64_t value) {
  if (type.is_bool()) return {value ? "true" : "false", kAtom};
  if (is_narrow(type)) return {fmt::format("{}({})", value_type(type), value), kAtom};
  if (type.is_uint()) {
    if (type.bits() == 32) return {fmt::format("{}u", static_cast<uint32_t>(value)), kAtom};
    return {fmt::format("{}ull", static_cast<uint64_t>(value)), kAtom};
  }
  if (type.bits() == 32) {
    if (value == INT32_MIN) return {"(-2147483647 - 1)", kAtom};
    return {fmt::format("{}", value), value < 0 ? kUnary : kAtom};
  }
  if (value == INT64_MIN) return {"(-9223372036854775807ll - 1)", kAtom};
  return {fmt::format("{}ll", value), value < 0 ? kUnary : kAtom};
}

ExprText::Text ExprText::float_literal(Type type, double value) {
  const bool wide = type.bits() == 64;
  if (std::isnan(value)) {
    return {wide ? "__longlong_as_double(0x7ff8000000000000ll)" : "__int_as_float(0x7fc00000)", kAtom};
  }
  if (std::isinf(value)) {
    const char* minus = value < 0 ? "-" : "";
    return {std::string(minus) + (wide ? "__longlong_as_double(0x7ff0000000000000ll)" : "__int_as_float(0x7f800000)"),
            value < 0 ? kUnary : kAtom};
  }
  return {decimal(value, wide) + (wide ? "" : "f"), std::signbit(value) ? kUnary : kAtom};
}

ExprText::Text ExprText::variable(const hi::Variable& v) {
  for (const auto* names : {&tile::kBlock, &tile::kThread}) {
    if (std::find(names->begin(), names->end(), v.name) != names->end()) places_.insert(v.name);
  }
  const std::string& name = names_.variable(v.name);
  const auto declared = types_.find(v.name);
  TC_CHECK(declared != types_.end(), "the variable '{}' is not in scope", v.name);
  if (half_scalars_.count(v.name)) return {"to_float(" + name + ")", kAtom};
  if (bool_scalars_.count(v.name)) return {name + " != 0", kEqual};
  if (declared->second != v.type) return {value_type(v.type) + "(" + name + ")", kAtom};
  return {name, kAtom};
}

ExprText::Text ExprText::narrowed(Type type, Text text) {
  if (is_half(type)) {
    need(type.is_bfloat() ? Helper::kBFloat16 : Helper::kFloat16);
    return {"round_" + half_name(type) + "(" + text.text + ")", kAtom};
  }
  if (is_narrow(type)) return {value_type(type) + "(" + text.text + ")", kAtom};
  return text;
}

namespace {

/// Whether an integer is one of at most 16 bits, or was one.
bool was_narrow(const Expr& e) {
  constexpr int kNarrow = 16;
  if (!e.type().is_int() && !e.type().is_uint()) return false;
  const auto* cast = e.as<hi::Cast>();
  return (e.type().bits() <= kNarrow && !e.type().is_bool()) || (cast != nullptr && was_narrow(cast->value));
}

}  // namespace

ExprText::Text ExprText::cast(const hi::Cast& c) {
  const Type from = c.value.type();
  const Type to = c.type;
  if (from == to) return print(c.value);
  if (to.is_bool()) return {at(c.value, kEqual + 1) + " != 0", kEqual};
  const std::string text = print(c.value).text;
  if (is_float8(from) || is_float8(to)) return cast_float8(from, to, text);
  if (to.is_float()) return cast_to_float(from, to, text);
  if (from.is_float()) {
    need(Helper::kConvert);
    const std::string sign = to.is_int() ? "int" : "uint";
    return {fmt::format("convert_{}{}({})", sign, to.bits(), text), kAtom};
  }
  const std::string result = value_type(to) + "(" + text + ")";
  if (to.bits() < 64 || !was_narrow(c.value)) return {result, kAtom};
  need(Helper::kWidened);
  return {"widened(" + result + ")", kAtom};
}

ExprText::Text ExprText::cast_float8(Type from, Type to, const std::string& text) {
  need(Helper::kFloat8);
  if (is_float8(from)) {
    TC_CHECK(to == Halide::Float(32), "an 8-bit float becomes something else than a float32");
    return {fmt::format("float_from_{}({})", from.is_bfloat() ? "e5m2" : "e4m3", text), kAtom};
  }
  TC_CHECK(from.is_float(), "an integer becomes an 8-bit float");
  std::string single = text;
  if (from.bits() == 64) {  // a second rounding is then as if there had been only one
    need(Helper::kFloatOdd);
    single = "float_odd(" + text + ")";
  }
  return {fmt::format("{}_from_float({})", to.is_bfloat() ? "e5m2" : "e4m3", single), kAtom};
}

ExprText::Text ExprText::cast_to_float(Type from, Type to, const std::string& text) {
  if (!is_half(to)) {
    // A 16-bit float is a float already.
    if (is_half(from) && to.bits() == 32) return {"(" + text + ")", kAtom};
    return {value_type(to) + "(" + text + ")", kAtom};
  }
  // Rounding to float first is harmless where the number is a float, or where it is an integer and all that float
  // cannot hold overflow float16 anyway.
  const bool twice = from.is_float() ? from.bits() == 64 : from.bits() >= 32 && to.is_bfloat();
  if (twice) {
    need(Helper::kFloatOdd);
    return narrowed(to, {"float_odd(" + text + ")", kAtom});
  }
  const bool is_float_already = from.is_float();
  return narrowed(to, {is_float_already ? text : "float(" + text + ")", kAtom});
}

ExprText::Text ExprText::arithmetic(Type type, char op, const Expr& a, const Expr& b) {
  const bool wrapping = wraps_ && type.is_int() && type.bits() >= 32;
  if (wrapping) {
    need(Helper::kWrap);
    const char* name = op == '+' ? "wrap_add" : op == '-' ? "wrap_sub" : "wrap_mul";
    return {fmt::format("{}({}, {})", name, print(a).text, print(b).text), kAtom};
  }
  if (op == '*' && type == Halide::UInt(16)) {
    // C++ would multiply two of them as int, which the product may overflow.
    return narrowed(type, {fmt::format("1u * {} * {}", at(a, kProduct), at(b, kProduct + 1)), kProduct});
  }
  if (type == Halide::Int(16) && op == '-' && hi::is_const_zero(a)) return negated(b);
  if (type == Halide::Int(16) && op == '*' && hi::is_const(a, -1)) return negated(b);
  if (type == Halide::Int(16) && op == '*' && hi::is_const(b, -1)) return negated(a);
  const int level = op == '*' ? kProduct : kSum;
  // A sum of floats is no sum of its parts in another order: the right side keeps its parentheses.
  const int right = op == '+' && !type.is_float() ? level : level + 1;
  return narrowed(type, {fmt::format("{} {} {}", at(a, level), op, at(b, right)), level});
}

ExprText::Text ExprText::negated(const Expr& e) {
  need(Helper::kNegate);
  return {"negate(" + print(e).text + ")", kAtom};
}

ExprText::Text ExprText::division(const Expr& e, const Expr& a, const Expr& b, bool modulo) {
  const Type type = e.type();
  const char* op = modulo ? "%" : "/";
  if (type.is_float()) {
    TC_CHECK(!modulo, "the remainder of floats has no CUDA text but fmod");
    return narrowed(type, {fmt::format("{} / {}", at(a, kProduct), at(b, kProduct + 1)), kProduct});
  }
  const std::optional<Bounds> dividend = bounds_of(a, bounds_);
  const std::optional<Bounds> divisor = bounds_of(b, bounds_);
  const bool constant = hi::is_const(b) && hi::is_positive_const(b);
  const bool positive = constant || (divisor && divisor->least > 0);
  const bool plain = positive && (type.is_uint() || (dividend && dividend->least >= 0));
  if (plain) return narrowed(type, {fmt::format("{} {} {}", at(a, kProduct), op, at(b, kProduct + 1)), kProduct});
  need(Helper::kFloorDiv);
  return {
      fmt::format("{}<{}>({}, {})", modulo ? "floor_mod" : "floor_div", value_type(type), print(a).text, print(b).text),
      kAtom};
}

ExprText::Text ExprText::extremum(Type type, const char* name, const Expr& a, const Expr& b) {
  if (type.is_float()) {
    need(Helper::kMinMax);
    return {fmt::format("{}_nan({}, {})", name, print(a).text, print(b).text), kAtom};
  }
  if (type.is_bool()) {
    const bool is_min = name == std::string("min");
    return infix(is_min ? "&&" : "||", is_min ? kAnd : kOr, a, b);
  }
  const Text text = {fmt::format("{}({}, {})", name, print(a).text, print(b).text), kAtom};
  return narrowed(type, type.is_int() ? opaque_one_of(a, b, text) : text);
}

/// An integer that is one of two, and that ptxas would compute wrongly as a part of a larger extremum (prelude.cc).
/// It computes it right if one of the two is a constant.
ExprText::Text ExprText::opaque_one_of(const Expr& a, const Expr& b, const Text& text) {
  if (hi::is_const(a) || hi::is_const(b)) return text;
  need(Helper::kOpaque);
  return {"opaque(" + text.text + ")", kAtom};
}

ExprText::Text ExprText::infix(const char* op, int level, const Expr& a, const Expr& b) {
  return {fmt::format("{} {} {}", at(a, level == kAnd || level == kOr ? level : level + 1), op, at(b, level + 1)),
          level};
}

ExprText::Text ExprText::choice(const Expr& c, const Expr& a, const Expr& b) {
  const Type type = a.type();
  Text text = {fmt::format("{} ? {} : {}", at(c, kOr), at(a, kTernary + 1), at(b, kTernary)), kTernary};
  // NVVM turns choices into extrema where it can.
  if (!type.is_float() && !type.is_bool()) text = opaque_one_of(a, b, text);
  // Both branches are narrow already, but C++ promotes what it chooses from.
  return is_narrow(type) ? narrowed(type, text) : text;
}

std::string ExprText::arguments(const std::vector<Expr>& args) {
  std::string text;
  for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + print(args[i]).text;
  return text;
}

ExprText::Text ExprText::call(const hi::Call& c) {
  if (c.call_type == hi::Call::PureExtern && tensors_.count(c.name)) return read(c);
  if (c.is_intrinsic(hi::Call::if_then_else)) return choice(c.args[0], c.args[1], c.args[2]);
  if (c.is_intrinsic({hi::Call::likely, hi::Call::likely_if_innermost, hi::Call::strict_float}))
    return print(c.args[0]);
  if (c.name == "select") return choice(c.args[0], c.args[1], c.args[2]);
  if (c.name == "tc.floor_div" || c.name == "tc.floor_mod") {
    need(Helper::kFloorDiv);
    return {fmt::format("{}<{}>({})", c.name.substr(3), value_type(c.type), arguments(c.args)), kAtom};
  }
  TC_CHECK(!c.args.empty(), "the call '{}' has no CUDA text", c.name);
  // jn and yn take an integer first.
  return c.args.back().type().is_float() || c.args[0].type().is_float() ? float_call(c) : integer_call(c);
}

ExprText::Text ExprText::read(const hi::Call& c) {
  const tile::Tensor& source = tensor(c.name);
  const std::string text = loaded(c.name, c.args);
  if (is_half(source.type)) {
    need(source.type.is_bfloat() ? Helper::kBFloat16 : Helper::kFloat16);
    return {"to_float(" + text + ")", kAtom};
  }
  if (source.type.is_bool()) return {text + " != 0", kEqual};
  return {text, kAtom};
}

ExprText::Text ExprText::integer_call(const hi::Call& c) {
  const Type type = c.args[0].type();
  if (c.name == "bitwise_and") return narrowed(type, infix("&", kBitAnd, c.args[0], c.args[1]));
  if (c.name == "bitwise_or") return narrowed(type, infix("|", kBitOr, c.args[0], c.args[1]));
  if (c.name == "bitwise_xor") return narrowed(type, infix("^", kBitXor, c.args[0], c.args[1]));
  if (c.name == "bitwise_not") return narrowed(type, {fmt::format("~{}", at(c.args[0], kUnary)), kUnary});
  if (c.name == "shift_left" || c.name == "shift_right") {
    need(Helper::kShift);
    return {c.name + "(" + arguments(c.args) + ")", kAtom};
  }
  if (c.name == "popcount") {
    const char* function = type.bits() == 64 ? "__popcll" : "__popc";
    return {fmt::format("{}(uint{}({}))", function, type.bits(), arguments(c.args)), kAtom};
  }
  if (c.name == "sign") {
    need(Helper::kSign);
    return {"sign_of(" + arguments(c.args) + ")", kAtom};
  }
  TC_CHECK(c.name == "abs", "the intrinsic '{}' has no CUDA text on integers", c.name);
  if (type.is_uint()) return print(c.args[0]);
  need(Helper::kWrap);
  return narrowed(type, {"wrap_abs(" + arguments(c.args) + ")", kAtom});
}

ExprText::Text ExprText::float_call(const hi::Call& c) {
  const Type type = c.args[0].type().is_float() ? c.args[0].type() : c.args.back().type();
  if (c.name == tile::kQuotient) {
    need(Helper::kQuotient);
    return {"quotient(" + arguments(c.args) + ")", kAtom};
  }
  if (c.name == tile::kNarrowQuotient) {
    need(Helper::kNarrowQuotient);
    return {"narrow_quotient(" + arguments(c.args) + ")", kAtom};
  }
  if (c.name == tile::kExp2ForFloat16) {
    need(Helper::kExp2OfFloat16);
    return {"exp2_for_float16(" + arguments(c.args) + ")", kAtom};
  }
  if (c.name == "fdivide") {
    return narrowed(type, {fmt::format("{} / {}", at(c.args[0], kProduct), at(c.args[1], kProduct + 1)), kProduct});
  }
  if (c.name == "tf32") {
    need(Helper::kTf32);
    return {"round_tf32(" + arguments(c.args) + ")", kAtom};
  }
  if (c.name == "sign" || c.name == "sigmoid") {
    need(c.name == "sign" ? Helper::kSign : Helper::kSigmoid);
    const std::string text = (c.name == "sign" ? "sign_of(" : "sigmoid(") + arguments(c.args) + ")";
    return c.name == "sign" ? Text{text, kAtom} : narrowed(type, {text, kAtom});
  }
  if (c.name == "nextafter" && is_half(type)) {
    need(Helper::kNext);
    return {"next_" + half_name(type) + "(" + arguments(c.args) + ")", kAtom};
  }
  if (c.name == "lround" || c.name == "llround" || c.name == "lrint" || c.name == "llrint") {
    need(Helper::kConvert);
    const std::string to_whole = c.name.ends_with("round") ? "round" : "rint";
    return {fmt::format("convert_int64({}{}({}))", to_whole, type.bits() == 64 ? "" : "f", arguments(c.args)), kAtom};
  }
  const DeviceFunction* function = find_device_function(c.name);
  TC_CHECK(function, "the intrinsic '{}' has no CUDA text", c.name);
  const Text text = {fmt::format("{}({})", type.bits() == 64 ? function->in_64 : function->in_32, arguments(c.args)),
                     kAtom};
  if (c.type.is_bool()) return {"bool(" + text.text + ")", kAtom};
  return function->exact ? text : narrowed(c.type, text);
}

std::string ExprText::value_in_memory(const Expr& e) {
  const auto* least = e.as<hi::Min>();
  const auto* most = e.as<hi::Max>();
  const auto is_element = [&](const hi::Call* c) {
    return c != nullptr && tensors_.count(c->name) > 0 && tensor(c->name).type == e.type();
  };
  // The assembler does not know that a 16-bit float is the same after it was a float32.
  if (const auto* read = e.as<hi::Call>(); is_half(e.type()) && is_element(read)) return loaded(read->name, read->args);
  if (const auto* cast = e.as<hi::Cast>(); is_half(e.type()) && cast != nullptr) {
    const Type from = cast->value.type();
    if (from == e.type()) return value_in_memory(cast->value);
    const auto* power = cast->value.as<hi::Call>();
    if (power != nullptr && power->name == "exp2" && from == Halide::Float(32) && !e.type().is_bfloat()) {
      need(Helper::kExp2OfFloat16);
      return to_memory(e.type(), "exp2_for_float16(" + value(power->args[0]) + ")");
    }
    if (is_half(from) || from == Halide::Float(32)) return to_memory(e.type(), value(cast->value));
  }
  if (is_half(e.type()) && (least != nullptr || most != nullptr)) {
    const auto* a = (least != nullptr ? least->a : most->a).as<hi::Call>();
    const auto* b = (least != nullptr ? least->b : most->b).as<hi::Call>();
    if (is_element(a) && is_element(b)) {
      need(e.type().is_bfloat() ? Helper::kMinMaxBFloat16 : Helper::kMinMaxFloat16);
      return fmt::format("{}_nan({}, {})", least != nullptr ? "min" : "max", loaded(a->name, a->args),
                         loaded(b->name, b->args));
    }
  }
  return is_float8(e.type()) ? value(e) : to_memory(e.type(), value(e));
}

std::string ExprText::to_memory(Type type, const std::string& text) {
  TC_CHECK(!is_float8(type), "an 8-bit float in memory that no cast has made");
  if (!is_half(type)) return text;
  need(type.is_bfloat() ? Helper::kBFloat16 : Helper::kFloat16);
  return fmt::format("to_{}({})", half_name(type), text);
}

namespace {

Expr constant(Type type, int64_t value) { return hi::IntImm::make(type, value); }

Expr plus(const Expr& a, const Expr& b) {
  if (!a.defined() || hi::is_const_zero(a)) return b;
  if (hi::is_const_zero(b)) return a;
  const auto *known_a = a.as<hi::IntImm>(), *known_b = b.as<hi::IntImm>();
  if (known_a && known_b) return constant(a.type(), known_a->value + known_b->value);
  return hi::Add::make(a, b);
}

Expr times(const Expr& a, int64_t factor) {
  if (factor == 0) return constant(a.type(), 0);
  if (const auto* known = a.as<hi::IntImm>()) return constant(a.type(), known->value * factor);
  return factor == 1 ? a : hi::Mul::make(a, constant(a.type(), factor));
}

/// The offset of a coordinate in one mode, which may be nested: its digits, the first running fastest.
Expr mode_offset(const tile::Layout& mode, Expr coordinate) {
  const std::vector<int64_t> extents = tile::flatten(mode.shape());
  const std::vector<int64_t> strides = tile::flatten(mode.stride());
  Expr sum;
  for (size_t i = 0; i < extents.size(); ++i) {
    const bool last = i + 1 == extents.size();
    const Expr extent = constant(coordinate.type(), extents[i]);
    const Expr digit = last ? coordinate : hi::Mod::make(coordinate, extent);
    sum = plus(sum, times(digit, strides[i]));
    if (!last) coordinate = hi::Div::make(coordinate, extent);
  }
  return sum.defined() ? sum : constant(coordinate.type(), 0);
}

}  // namespace

Expr ExprText::offset(const tile::Tensor& tensor, const std::vector<Expr>& subscripts) {
  TC_CHECK(static_cast<int>(subscripts.size()) == tensor.rank(), "'{}' has {} dimensions but is indexed with {}",
           tensor.name, tensor.rank(), subscripts.size());
  const bool wide = tensor.elements() > INT32_MAX || std::any_of(subscripts.begin(), subscripts.end(),
                                                                 [](const Expr& e) { return e.type().bits() > 32; });
  const Type type = Halide::Int(wide ? 64 : 32);
  Expr sum;
  for (int d = 0; d < tensor.rank(); ++d) {
    const Expr& s = subscripts[d];
    const Expr subscript = s.type() == type                        ? s
                           : hi::is_const(s) && s.as<hi::IntImm>() ? constant(type, s.as<hi::IntImm>()->value)
                                                                   : hi::Cast::make(type, s);
    sum = plus(sum, mode_offset(tensor.layout[d], subscript));
  }
  return sum.defined() ? sum : constant(type, 0);
}

std::string ExprText::loaded(const std::string& name, const std::vector<Expr>& subscripts) {
  const std::string place = element(name, subscripts);
  const tile::Tensor& source = tensor(name);
  return source.read_only && !source.restricted ? "__ldg(&" + place + ")" : place;
}

std::string ExprText::element(const std::string& name, const std::vector<Expr>& subscripts) {
  const tile::Tensor& t = tensor(name);
  const bool outer = std::exchange(wraps_, false);
  const Expr place = offset(t, subscripts);
  const std::string text = t.swizzle && t.swizzle->bits > 0 ? swizzled(place, *t.swizzle) : print(place).text;
  wraps_ = outer;
  return names_.tensor(name) + "[" + text + "]";
}

namespace {

/// The terms of a sum whose factors are constants: (a + b * 2) * 4 is a * 4 + b * 8.
void add_terms(const Expr& e, int64_t factor, std::vector<Expr>& terms) {
  if (const auto* sum = e.as<hi::Add>()) {
    add_terms(sum->a, factor, terms);
    add_terms(sum->b, factor, terms);
    return;
  }
  const auto* product = e.as<hi::Mul>();
  const auto* by = product ? product->b.as<hi::IntImm>() : nullptr;
  if (by) return add_terms(product->a, factor * by->value, terms);
  terms.push_back(times(e, factor));
}

Expr sum_of(const std::vector<Expr>& terms, Type type) {
  Expr sum;
  for (const Expr& term : terms) sum = plus(sum, term);
  return sum.defined() ? sum : constant(type, 0);
}

}  // namespace

/// What a swizzle leaves as it is stands beside it: multiples of all bits that it reads, as those of a buffer, and the
/// place within the smallest piece. Then the rest does not change from one buffer to the next.
std::string ExprText::swizzled(const Expr& place, const tile::Swizzle& swizzle) {
  const int64_t mask = ((int64_t{1} << swizzle.bits) - 1) << swizzle.base;
  const int64_t piece = int64_t{1} << swizzle.base, all = piece << (swizzle.bits + swizzle.shift);
  std::vector<Expr> terms, above, moved, within;
  add_terms(place, 1, terms);
  for (const Expr& term : terms) {
    const hi::ModulusRemainder known = hi::modulus_remainder(term);
    const auto is_multiple_of = [&](int64_t n) { return known.modulus % n == 0 && known.remainder % n == 0; };
    (is_multiple_of(all) ? above : is_multiple_of(piece) ? moved : within).push_back(term);
  }
  const std::optional<Bounds> small = bounds_of(sum_of(within, place.type()), bounds_);
  if (!small || small->least < 0 || small->greatest >= piece) {
    moved.insert(moved.end(), within.begin(), within.end());
    within.clear();
  }
  const std::string own = print(sum_of(moved, place.type())).text;
  std::string text = fmt::format("({0}) ^ ((({0}) >> {1}) & {2})", own, swizzle.shift, mask);
  for (const std::vector<Expr>* part : {&above, &within}) {
    if (!part->empty()) text = fmt::format("{} + ({})", at(sum_of(*part, place.type()), kSum), text);
  }
  return text;
}

std::string ExprText::first_of_tile(const std::string& name, const std::vector<Expr>& subscripts) {
  const bool outer = std::exchange(wraps_, false);
  const std::string text = print(Halide::Internal::simplify(offset(tensor(name), subscripts))).text;
  wraps_ = outer;
  return names_.tensor(name) + "[" + text + "]";
}

}  // namespace tc::cuda
