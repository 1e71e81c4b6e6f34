#include "tc/ir/expr_text.h"

#include <fmt/format.h>

#include "tc/ir/halide_compat.h"
#include "tc/ir/program.h"
#include "tc/support/check.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// How tightly an operator binds; operands of a lower level are parenthesised.
enum Level { kChoice, kOr, kAnd, kCompare, kSum, kProduct, kUnary, kPrimary };

struct Text {
  std::string text;
  Level level;
};

class Writer : public hi::IRVisitor {
 public:
  explicit Writer(const TextStyle& style) : style_(style) {}

  Text write(const Expr& expr) {
    TC_CHECK(expr.defined(), "text of an undefined expression");
    expr.accept(this);
    return std::move(result_);
  }

 private:
  using hi::IRVisitor::visit;

  std::string variable(const std::string& n) const { return style_.variable ? style_.variable(n) : n; }
  std::string callee(const std::string& n) const { return style_.tensor ? style_.tensor(n) : n; }

  std::string at(const Expr& expr, Level level) {
    Text inner = write(expr);
    return inner.level < level ? fmt::format("({})", inner.text) : inner.text;
  }
  void set(std::string text, Level level) { result_ = {std::move(text), level}; }

  void binary(const Expr& a, const Expr& b, const char* op, Level level) {
    // The right operand needs the next level: all binary operators associate to the left.
    const std::string left = at(a, level == kCompare ? kSum : level);
    set(fmt::format("{} {} {}", left, op, at(b, static_cast<Level>(level + 1))), level);
  }
  void function(const std::string& f, const std::vector<Expr>& arguments) {
    std::string text = f + "(";
    for (size_t i = 0; i < arguments.size(); ++i) text += (i ? ", " : "") + write(arguments[i]).text;
    set(text + ")", kPrimary);
  }
  std::string typed(const std::string& text, Halide::Type type) const {
    return style_.exact ? fmt::format("{}:{}", text, type_text(type)) : text;
  }

  void visit(const hi::IntImm* op) override {
    set(typed(fmt::format("{}", op->value), op->type), op->value < 0 ? kUnary : kPrimary);
  }
  void visit(const hi::UIntImm* op) override {
    if (op->type.is_bool()) return set(op->value ? "true" : "false", kPrimary);
    set(typed(fmt::format("{}", op->value), op->type), kPrimary);
  }
  void visit(const hi::FloatImm* op) override {
    const std::string digits = style_.exact ? fmt::format("{:a}", op->value) : fmt::format("{}", op->value);
    const bool plain = digits.find_first_not_of("-0123456789") == std::string::npos;
    set(typed(plain ? digits + ".0" : digits, op->type), op->value < 0 ? kUnary : kPrimary);
  }
  void visit(const hi::Variable* op) override { set(variable(op->name), kPrimary); }
  void visit(const hi::Cast* op) override {
    const bool index_cast = op->type == index_type() && op->value.type().is_int_or_uint() && !style_.exact;
    if (index_cast) return set(write(op->value).text, result_.level);
    function(type_text(op->type), {op->value});
  }
  void visit(const hi::Add* op) override {
    if (const int64_t* b = constant_int(op->b); b && *b < 0 && *b != INT64_MIN && !style_.exact) {
      return binary(op->a, hi::make_const(op->b.type(), -*b), "-", kSum);
    }
    binary(op->a, op->b, "+", kSum);
  }
  void visit(const hi::Sub* op) override { binary(op->a, op->b, "-", kSum); }
  void visit(const hi::Mul* op) override { binary(op->a, op->b, "*", kProduct); }
  void visit(const hi::Div* op) override { binary(op->a, op->b, "/", kProduct); }
  void visit(const hi::Mod* op) override { binary(op->a, op->b, "%", kProduct); }
  void visit(const hi::Min* op) override { function("min", {op->a, op->b}); }
  void visit(const hi::Max* op) override { function("max", {op->a, op->b}); }
  void visit(const hi::EQ* op) override { binary(op->a, op->b, "==", kCompare); }
  void visit(const hi::NE* op) override { binary(op->a, op->b, "!=", kCompare); }
  void visit(const hi::LT* op) override { binary(op->a, op->b, "<", kCompare); }
  void visit(const hi::LE* op) override { binary(op->a, op->b, "<=", kCompare); }
  void visit(const hi::GT* op) override { binary(op->a, op->b, ">", kCompare); }
  void visit(const hi::GE* op) override { binary(op->a, op->b, ">=", kCompare); }
  void visit(const hi::And* op) override { binary(op->a, op->b, "&&", kAnd); }
  void visit(const hi::Or* op) override { binary(op->a, op->b, "||", kOr); }
  void visit(const hi::Not* op) override { set(fmt::format("!{}", at(op->a, kUnary)), kUnary); }
  void visit(const hi::Select* op) override { function("select", {op->condition, op->true_value, op->false_value}); }
  void visit(const hi::Call* op) override {
    if (op->is_intrinsic(hi::Call::if_then_else)) {
      const std::string condition = at(op->args[0], kOr);
      const std::string if_true = at(op->args[1], kOr);
      return set(fmt::format("{} ? {} : {}", condition, if_true, at(op->args[2], kChoice)), kChoice);
    }
    if (op->name == "tc.floor_div") return binary(op->args[0], op->args[1], "/", kProduct);
    if (op->name == "tc.floor_mod") return binary(op->args[0], op->args[1], "%", kProduct);
    if (op->args.empty()) return set(callee(op->name), kPrimary);
    function(callee(op->name), op->args);
  }

  const TextStyle& style_;
  Text result_;
};

}  // namespace

std::string to_text(const Expr& expr, const TextStyle& style) {
  if (!expr.defined()) return "?";
  return Writer(style).write(expr).text;
}

std::string type_text(Halide::Type type) { return std::string(name_of(from_halide(type))); }

}  // namespace tc::ir
