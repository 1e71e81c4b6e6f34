#include "tc/lang/statement_gradient.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cmath>

#include <algorithm>
#include <optional>
#include <ranges>

#include "tc/lang/derivatives.h"
#include "tc/lang/typed_text.h"
#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

/// A choice around what is differentiated.
struct Guard {
  std::string condition;
  bool holds = true;     ///< where it is made
  bool is_read = false;  ///< the source reads nothing behind it unless it is made (R6)

  std::string of(const std::string& value, const char* otherwise) const {
    return holds ? fmt::format("({} ? {} : {})", condition, value, otherwise)
                 : fmt::format("({} ? {} : {})", condition, otherwise, value);
  }
};

}  // namespace

bool changes_with(const TypedExpr& expr, const Adjoints& adjoints) {
  if (!is_float(expr.type)) return false;
  const auto changes = [&](const TypedExprPtr& part) { return changes_with(*part, adjoints); };
  return std::visit(Overloaded{
                        [&](const Read& read) { return adjoints.contains(read.tensor); },
                        [&](const TypedUnary& unary) { return changes(unary.operand); },
                        [&](const TypedBinary& binary) { return changes(binary.left) || changes(binary.right); },
                        [&](const Select& select) { return changes(select.if_true) || changes(select.if_false); },
                        [&](const Intrinsic& call) { return std::ranges::any_of(call.arguments, changes); },
                        [&](const Cast& cast) { return changes(cast.operand); },
                        [&](const LetRef& let) { return changes(let.value); },
                        [](const auto&) { return false; },
                    },
                    expr.node);
}

namespace {

class StatementGradient {
 public:
  StatementGradient(const TypedDefinition& definition, size_t number, const SourcePtr& source,
                    const InferredRanges& inferred, const Adjoints& adjoints, bool widened)
      : definition_(definition),
        number_(number),
        statement_(definition.statements[number]),
        source_(source),
        inferred_(inferred),
        adjoints_(adjoints),
        widened_(widened) {}

  Result<std::vector<Contribution>> run(const std::string& adjoint) {
    if (auto done = differentiate(*statement_.right, adjoint); !done) return tl::unexpected(done.error());
    return std::move(contributions_);
  }

 private:
  std::string text(const TypedExpr& expr) const { return typed_text(definition_, statement_, expr, widened_); }

  /// Text of a function's argument, which keeps its type where the other arguments are not at hand.
  std::string argument_text(const TypedExpr& expr) const {
    const auto* cast = std::get_if<Cast>(&expr.node);
    if (!cast || !cast->implicit || !is_float(expr.type)) return text(expr);
    const ScalarType type = widened_ && is_narrow_float(expr.type) ? ScalarType::kFloat32 : expr.type;
    return fmt::format("{}({})", name_of(type), text(*cast->operand));
  }

  tl::unexpected<Error> refuse(const TypedExpr& expr, const std::string& sentence) const {
    return tl::unexpected(Error(source_, expr.range, sentence));
  }

  bool depends(const TypedExpr& expr) const { return changes_with(expr, adjoints_); }

  /// Hands the adjoint of an expression on to what it is made of.
  Result<void> differentiate(const TypedExpr& expr, const std::string& adjoint) {
    if (!depends(expr)) return {};
    return std::visit(Overloaded{
                          [&](const Read& read) { return take(read, adjoint); },
                          [&](const TypedUnary& unary) { return differentiate(*unary.operand, "(-" + adjoint + ")"); },
                          [&](const TypedBinary& binary) { return of_binary(expr, binary, adjoint); },
                          [&](const Select& select) { return of_select(select, adjoint); },
                          [&](const Intrinsic& call) { return of_call(expr, call, adjoint); },
                          [&](const Cast& cast) { return differentiate(*cast.operand, adjoint); },
                          [&](const LetRef& let) { return differentiate(*let.value, adjoint); },
                          [](const auto&) { return Result<void>(); },
                      },
                      expr.node);
  }

  /// Where the source reads. What it computes there behind a guard may lie outside of the tensor where it does not
  /// read: nothing is added then, and that to the first element where data choose the place, else to the nearest.
  std::string subscripts_of(const Read& read) const {
    if (std::ranges::none_of(guards_, &Guard::is_read)) {
      return subscripts_text(definition_, statement_, read.subscripts);
    }
    std::vector<std::string> texts;
    for (size_t d = 0; d < read.subscripts.size(); ++d) {
      const TypedExpr& subscript = *read.subscripts[d];
      texts.push_back(index_text(definition_, statement_, subscript));
      if (std::holds_alternative<IndexRef>(subscript.node)) continue;
      if (!reads_elements(subscript)) {
        texts.back() = fmt::format("min(max({}, 0), {} - 1)", texts.back(),
                                   inferred_.extents[static_cast<size_t>(read.tensor)][d]);
        continue;
      }
      for (const Guard& guard : guards_ | std::views::reverse) {
        if (guard.is_read) texts.back() = guard.of(texts.back(), "0");
      }
    }
    return texts.empty() ? "" : fmt::format("({})", fmt::join(texts, ", "));
  }

  Result<void> take(const Read& read, std::string adjoint) {
    for (const Guard& guard : guards_ | std::views::reverse) adjoint = guard.of(adjoint, "0.0");
    const std::string subscripts = subscripts_of(read);
    const Access access{definition_, number_, read.tensor, read.subscripts};
    const bool plain = is_plain(read.subscripts);
    for (Contribution& known : contributions_) {
      if (known.tensor != read.tensor || known.subscripts != subscripts) continue;
      known.value += " + " + adjoint;
      return {};
    }
    Contribution made{read.tensor, subscripts, adjoint};
    made.once = plain && read.subscripts.size() == statement_.indices.size();
    made.all = (plain || std::ranges::none_of(guards_, &Guard::is_read)) && covers(access, inferred_);
    made.scattered =
        std::ranges::any_of(read.subscripts, [](const TypedExprPtr& subscript) { return reads_elements(*subscript); });
    made.wide = widened_;
    contributions_.push_back(std::move(made));
    return {};
  }

  Result<void> both(const TypedExpr& left, const std::string& of_left, const TypedExpr& right,
                    const std::string& of_right) {
    if (auto done = differentiate(left, of_left); !done) return done;
    return differentiate(right, of_right);
  }

  Result<void> of_binary(const TypedExpr& expr, const TypedBinary& binary, const std::string& adjoint) {
    const std::string a = text(*binary.left);
    const std::string b = text(*binary.right);
    switch (binary.op) {
      case BinaryOp::kAdd:
        return both(*binary.left, adjoint, *binary.right, adjoint);
      case BinaryOp::kSub:
        return both(*binary.left, adjoint, *binary.right, "(-" + adjoint + ")");
      case BinaryOp::kMul:
        return both(*binary.left, fmt::format("({} * {})", adjoint, b), *binary.right,
                    fmt::format("({} * {})", adjoint, a));
      case BinaryOp::kDiv:
        return both(*binary.left, fmt::format("({} / {})", adjoint, b), *binary.right,
                    fmt::format("(-({} * {}) / ({} * {}))", adjoint, a, b, b));
      default:
        return refuse(expr, fmt::format("no gradient is derived through '{}'", spelling_of(binary.op)));
    }
  }

  /// Hands an adjoint on where a condition holds. The choice is of what comes out, not of the adjoint: a slope that is
  /// infinite where the condition fails would make a NaN of an adjoint of 0.
  Result<void> where(Guard guard, const TypedExpr& expr, const std::string& adjoint) {
    guards_.push_back(std::move(guard));
    auto done = differentiate(expr, adjoint);
    guards_.pop_back();
    return done;
  }

  Result<void> of_select(const Select& select, const std::string& adjoint) {
    const std::string condition = text(*select.condition);
    if (auto done = where({condition, true, true}, *select.if_true, adjoint); !done) return done;
    return where({condition, false, true}, *select.if_false, adjoint);
  }

  Result<void> of_call(const TypedExpr& expr, const Intrinsic& call, const std::string& adjoint) {
    if (call.name == "relu") return where({text(*call.arguments[0]) + " > 0.0"}, *call.arguments[0], adjoint);
    if (call.name == "max" || call.name == "fmax") return of_best(call, ">", adjoint);
    if (call.name == "min" || call.name == "fmin") return of_best(call, "<", adjoint);
    if (call.name == "clamp") return of_clamp(call, adjoint);
    if (call.name == "pow") return of_power(call, adjoint);
    std::vector<std::string> arguments;
    for (const TypedExprPtr& argument : call.arguments) arguments.push_back(argument_text(*argument));
    const ScalarType type = is_narrow_float(expr.type) ? ScalarType::kFloat32 : expr.type;
    const auto slopes = partial_derivatives(call.name, arguments, std::string(name_of(type)));
    if (!slopes) {
      return refuse(expr, fmt::format("no gradient is derived through '{}': its derivative is no function of the "
                                      "language; give the gradient as a def of your own",
                                      call.name));
    }
    for (size_t a = 0; a < slopes->size(); ++a) {
      if ((*slopes)[a].empty()) continue;
      const bool is_one = (*slopes)[a] == "1.0";
      auto done = differentiate(*call.arguments[a], is_one ? adjoint : fmt::format("({} * {})", adjoint, (*slopes)[a]));
      if (!done) return done;
    }
    return {};
  }

  /// Of equal operands each gets the same share, as in PyTorch's maximum.
  Result<void> of_best(const Intrinsic& call, const char* better, const std::string& adjoint) {
    const bool skips_nan = call.name == "fmax" || call.name == "fmin";
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      if (!depends(*call.arguments[a])) continue;
      const std::string x = text(*call.arguments[a]);
      std::vector<std::string> wins, ties;
      for (size_t b = 0; b < call.arguments.size(); ++b) {
        if (b == a) continue;
        const std::string y = text(*call.arguments[b]);
        const auto* constant = std::get_if<FloatConstant>(&call.arguments[b]->node);
        const bool may_be_nan = skips_nan && !(constant && !std::isnan(constant->value));
        wins.push_back(may_be_nan ? fmt::format("({0} {2}= {1} || isnan({1}))", x, y, better)
                                  : fmt::format("{} {}= {}", x, better, y));
        ties.push_back(fmt::format("{} == {}", x, y));
      }
      std::string share = fmt::format("(({} ? 0.5 : 1.0) * {})", ties[0], adjoint);
      if (ties.size() > 1)
        share = fmt::format("({} / (1.0 + ({} ? 1.0 : 0.0)))", adjoint, fmt::join(ties, " ? 1.0 : 0.0) + ("));
      auto done = where({fmt::format("{}", fmt::join(wins, " && "))}, *call.arguments[a], share);
      if (!done) return done;
    }
    return {};
  }

  /// min(max(x, lo), hi); between equal bounds, and on them, x gets it all, as in PyTorch's clamp.
  Result<void> of_clamp(const Intrinsic& call, const std::string& adjoint) {
    const std::string x = text(*call.arguments[0]), lo = text(*call.arguments[1]), hi = text(*call.arguments[2]);
    const auto in = where({fmt::format("({0} >= {1} && {0} <= {2})", x, lo, hi)}, *call.arguments[0], adjoint);
    if (!in) return in;
    const auto below = where({fmt::format("({} < {} && {} <= {})", x, lo, lo, hi)}, *call.arguments[1], adjoint);
    if (!below) return below;
    return where({fmt::format("({} > {} || {} > {})", x, hi, lo, hi)}, *call.arguments[2], adjoint);
  }

  /// The value of a number, behind an implicit conversion too.
  static std::optional<double> number(const TypedExpr& expr) {
    if (const auto* cast = std::get_if<Cast>(&expr.node); cast && cast->implicit) return number(*cast->operand);
    const auto* constant = std::get_if<FloatConstant>(&expr.node);
    return constant ? std::optional(constant->value) : std::nullopt;
  }

  Result<void> of_power(const Intrinsic& call, const std::string& adjoint) {
    const TypedExpr &base = *call.arguments[0], &power = *call.arguments[1];
    const std::string x = argument_text(base), y = argument_text(power);
    std::string slope;
    if (const std::optional<double> exponent = number(power)) {
      if (*exponent == 0) return {};
      TypedExpr less = power;
      less.node = FloatConstant{*exponent - 1};
      slope = fmt::format("({} * {} * pow({}, {}))", adjoint, text(power), x, text(less));
    } else {
      slope = fmt::format("({1} == 0.0 ? 0.0 : {0} * {1} * pow({2}, {1} - 1.0))", adjoint, y, x);
    }
    // Of 0 to the y, with y > 0, the slope by y is 0, though the logarithm is infinite.
    std::string by_power = fmt::format("({0} * log({1}) * pow({1}, {2}))", adjoint, x, y);
    if (number(base).value_or(0) == 0) by_power = fmt::format("({} == 0.0 && {} >= 0.0 ? 0.0 : {})", x, y, by_power);
    return both(base, slope, power, by_power);
  }

  const TypedDefinition& definition_;
  size_t number_;
  const TypedStatement& statement_;
  const SourcePtr& source_;
  const InferredRanges& inferred_;
  const Adjoints& adjoints_;
  const bool widened_;         ///< narrow elements are read as float32
  std::vector<Guard> guards_;  ///< of the choices around what is differentiated, the outermost first
  std::vector<Contribution> contributions_;
};

}  // namespace

Result<std::vector<Contribution>> statement_gradient(const TypedDefinition& definition, size_t number,
                                                     const SourcePtr& source, const InferredRanges& inferred,
                                                     const Adjoints& adjoints, const std::string& adjoint,
                                                     bool widened) {
  return StatementGradient(definition, number, source, inferred, adjoints, widened).run(adjoint);
}

}  // namespace tc::lang
