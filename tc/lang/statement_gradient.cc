#include "tc/lang/statement_gradient.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "tc/lang/typed_text.h"
#include "tc/lang/walk.h"
#include "tc/support/plural.h"

namespace tc::lang {
namespace {

/// f'(x), where {x} is the argument and {t} the name of its type, which inexact constants carry.
const std::map<std::string, std::string>& derivatives() {
  static const std::map<std::string, std::string> known = {
      {"exp", "exp({x})"},
      {"expm1", "exp({x})"},
      {"exp2", "(exp2({x}) * {t}(0.6931471805599453))"},
      {"log", "(1.0 / {x})"},
      {"log1p", "(1.0 / (1.0 + {x}))"},
      {"log2", "(1.0 / ({x} * {t}(0.6931471805599453)))"},
      {"sqrt", "(0.5 / sqrt({x}))"},
      {"rsqrt", "(-0.5 * rsqrt({x}) / {x})"},
      {"sin", "cos({x})"},
      {"cos", "(-sin({x}))"},
      {"sinh", "cosh({x})"},
      {"cosh", "sinh({x})"},
      {"tanh", "(1.0 - tanh({x}) * tanh({x}))"},
      {"atan", "(1.0 / (1.0 + {x} * {x}))"},
      {"sigmoid", "(sigmoid({x}) * (1.0 - sigmoid({x})))"},
      {"erf", "({t}(1.1283791670955126) * exp(-({x} * {x})))"},
      {"abs", "sign({x})"},
  };
  return known;
}

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

/// Whether an index depends on data.
bool reads_elements(const TypedExpr& expr) {
  return std::visit(
      Overloaded{
          [](const Read&) { return true; },
          [](const TypedUnary& unary) { return reads_elements(*unary.operand); },
          [](const TypedBinary& binary) { return reads_elements(*binary.left) || reads_elements(*binary.right); },
          [](const Select& select) {
            return reads_elements(*select.condition) || reads_elements(*select.if_true) ||
                   reads_elements(*select.if_false);
          },
          [](const Intrinsic& call) {
            return std::ranges::any_of(call.arguments, [](const auto& a) { return reads_elements(*a); });
          },
          [](const Cast& cast) { return reads_elements(*cast.operand); },
          [](const LetRef& let) { return reads_elements(*let.value); },
          [](const auto&) { return false; },
      },
      expr.node);
}

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

  Result<std::vector<Contribution>> run() {
    const std::string subscripts = subscripts_text(definition_, statement_, statement_.subscripts);
    std::string adjoint = adjoints_.names.at(statement_.tensor) + subscripts;
    if (widened_ && is_narrow_float(definition_.tensors[statement_.tensor].type))
      adjoint = fmt::format("float32({})", adjoint);
    if (statement_.op == AssignOp::kMaxInit || statement_.op == AssignOp::kMinInit) {
      // Those that are the best share alike, as in PyTorch's amax.
      const std::string& name = definition_.tensors[statement_.tensor].name;
      adjoint = fmt::format("({} == {}{} ? {} / {}{}{} : 0.0)", text(*statement_.right), name, subscripts, adjoint,
                            adjoints_.counts, name, subscripts);
    }
    if (auto done = differentiate(*statement_.right, adjoint); !done) return tl::unexpected(done.error());
    return std::move(contributions_);
  }

 private:
  std::string text(const TypedExpr& expr) const { return typed_text(definition_, statement_, expr, widened_); }

  tl::unexpected<Error> refuse(const TypedExpr& expr, const std::string& sentence) const {
    return tl::unexpected(Error(source_, expr.range, sentence));
  }

  /// Whether the value changes with an element whose gradient is wanted.
  bool depends(const TypedExpr& expr) const {
    const auto any = [&](const std::vector<TypedExprPtr>& items) {
      return std::ranges::any_of(items, [&](const TypedExprPtr& item) { return depends(*item); });
    };
    return std::visit(Overloaded{
                          [&](const Read& read) { return adjoints_.names.contains(read.tensor); },
                          [&](const TypedUnary& unary) { return depends(*unary.operand); },
                          [&](const TypedBinary& binary) { return depends(*binary.left) || depends(*binary.right); },
                          [&](const Select& select) { return depends(*select.if_true) || depends(*select.if_false); },
                          [&](const Intrinsic& call) { return any(call.arguments); },
                          [&](const Cast& cast) { return is_float(expr.type) && depends(*cast.operand); },
                          [&](const LetRef& let) { return depends(*let.value); },
                          [](const auto&) { return false; },
                      },
                      expr.node);
  }

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
      texts.push_back(text(subscript));
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
    std::set<int> plain;
    for (const TypedExprPtr& subscript : read.subscripts) {
      if (const auto* index = std::get_if<IndexRef>(&subscript->node)) plain.insert(index->index);
    }
    const bool once = plain.size() == read.subscripts.size() && plain.size() == statement_.indices.size();
    for (Contribution& known : contributions_) {
      if (known.tensor != read.tensor || known.subscripts != subscripts) continue;
      known.value += " + " + adjoint;
      return {};
    }
    const bool all = meets_all(read.tensor, read.subscripts, inferred_, number_);
    contributions_.push_back({read.tensor, subscripts, adjoint, once, all, widened_});
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
    const TypedExpr& first = *call.arguments[0];
    const std::string x = text(first);
    if (const auto known = derivatives().find(call.name); known != derivatives().end()) {
      const ScalarType type = is_narrow_float(expr.type) ? ScalarType::kFloat32 : expr.type;
      const std::string slope =
          fmt::format(fmt::runtime(known->second), fmt::arg("x", x), fmt::arg("t", name_of(type)));
      return differentiate(first, fmt::format("({} * {})", adjoint, slope));
    }
    if (call.name == "relu") return where({x + " > 0.0"}, first, adjoint);
    const bool is_max = call.name == "max" || call.name == "fmax";
    if ((is_max || call.name == "min" || call.name == "fmin") && call.arguments.size() == 2) {
      const std::string y = text(*call.arguments[1]);
      const char* const better = is_max ? ">" : "<";
      // Of equal operands each gets half, as PyTorch has it.
      const std::string share = fmt::format("(({} == {} ? 0.5 : 1.0) * {})", x, y, adjoint);
      if (auto done = where({fmt::format("{} {}= {}", x, better, y)}, first, share); !done) return done;
      return where({fmt::format("{} {}= {}", y, better, x)}, *call.arguments[1], share);
    }
    if (call.name == "pow") {
      const std::string y = text(*call.arguments[1]);
      return both(first, fmt::format("({} * {} * pow({}, {} - 1.0))", adjoint, y, x, y), *call.arguments[1],
                  fmt::format("({} * log({}) * pow({}, {}))", adjoint, x, x, y));
    }
    return refuse(expr, fmt::format("no derivative is known for '{}' of {}", call.name,
                                    plural(static_cast<int64_t>(call.arguments.size()), "argument")));
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
                                                     const Adjoints& adjoints, bool widened) {
  return StatementGradient(definition, number, source, inferred, adjoints, widened).run();
}

}  // namespace tc::lang
