#include "tc/lang/gradient.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "tc/lang/ast.h"
#include "tc/lang/format.h"
#include "tc/lang/parser.h"
#include "tc/lang/typed_text.h"
#include "tc/lang/walk.h"

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

/// Whether a name stands in a text as a word.
bool mentions(const std::string& text, const std::string& name) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

/// What one statement adds to the gradient of one input, at one tuple of subscripts.
struct Contribution {
  int tensor = 0;
  std::string subscripts;
  std::string value;
  bool once = false;  ///< the subscripts are the statement's indices: each element is written once
};

/// Reverse-mode differentiation of one statement.
class StatementGradient {
 public:
  StatementGradient(const TypedDefinition& definition, const TypedStatement& statement, const SourcePtr& source)
      : definition_(definition), statement_(statement), source_(source) {}

  Result<std::vector<Contribution>> run() {
    const Tensor& result = definition_.tensors[statement_.tensor];
    const std::string adjoint = "d_" + result.name + subscripts_text(definition_, statement_, statement_.subscripts);
    if (auto done = differentiate(*statement_.right, adjoint); !done) return tl::unexpected(done.error());
    return std::move(contributions_);
  }

 private:
  std::string text(const TypedExpr& expr) const { return typed_text(definition_, statement_, expr); }

  tl::unexpected<Error> refuse(const TypedExpr& expr, const std::string& sentence) const {
    return tl::unexpected(Error(source_, expr.range, sentence));
  }

  bool differentiable(int tensor) const {
    return definition_.tensors[tensor].role == Role::kInput && is_float(definition_.tensors[tensor].type);
  }

  /// Whether the value changes with an element of a float input.
  bool depends(const TypedExpr& expr) const {
    const auto any = [&](const std::vector<TypedExprPtr>& items) {
      return std::ranges::any_of(items, [&](const TypedExprPtr& item) { return depends(*item); });
    };
    return std::visit(Overloaded{
                          [&](const Read& read) {
                            return definition_.tensors[read.tensor].role != Role::kInput || differentiable(read.tensor);
                          },
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
                          [&](const Read& read) { return take(expr, read, adjoint); },
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

  Result<void> take(const TypedExpr& expr, const Read& read, const std::string& adjoint) {
    const Tensor& tensor = definition_.tensors[read.tensor];
    if (tensor.role != Role::kInput) {
      return refuse(expr, fmt::format("no gradient is derived through '{}', which the def itself writes", tensor.name));
    }
    const std::string subscripts = subscripts_text(definition_, statement_, read.subscripts);
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
    contributions_.push_back({read.tensor, subscripts, adjoint, once});
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

  Result<void> of_select(const Select& select, const std::string& adjoint) {
    const std::string condition = text(*select.condition);
    return both(*select.if_true, fmt::format("({} ? {} : 0.0)", condition, adjoint), *select.if_false,
                fmt::format("({} ? 0.0 : {})", condition, adjoint));
  }

  Result<void> of_call(const TypedExpr& expr, const Intrinsic& call, const std::string& adjoint) {
    const TypedExpr& first = *call.arguments[0];
    const std::string x = text(first);
    if (const auto known = derivatives().find(call.name); known != derivatives().end()) {
      const std::string slope =
          fmt::format(fmt::runtime(known->second), fmt::arg("x", x), fmt::arg("t", name_of(expr.type)));
      return differentiate(first, fmt::format("({} * {})", adjoint, slope));
    }
    if (call.name == "relu") return differentiate(first, fmt::format("({} > 0.0 ? {} : 0.0)", x, adjoint));
    const bool is_max = call.name == "max" || call.name == "fmax";
    if ((is_max || call.name == "min" || call.name == "fmin") && call.arguments.size() == 2) {
      const std::string y = text(*call.arguments[1]);
      const char* const better = is_max ? ">" : "<";
      // Of equal operands each gets half, as PyTorch has it.
      const auto share = [&](const std::string& mine, const std::string& other) {
        return fmt::format("({} {} {} ? {} : ({} == {} ? 0.5 * {} : 0.0))", mine, better, other, adjoint, mine, other,
                           adjoint);
      };
      return both(first, share(x, y), *call.arguments[1], share(y, x));
    }
    if (call.name == "pow") {
      const std::string y = text(*call.arguments[1]);
      return both(first, fmt::format("({} * {} * pow({}, {} - 1.0))", adjoint, y, x, y), *call.arguments[1],
                  fmt::format("({} * log({}) * pow({}, {}))", adjoint, x, x, y));
    }
    return refuse(expr, fmt::format("no derivative is known for '{}' of {} argument{}", call.name,
                                    call.arguments.size(), call.arguments.size() == 1 ? "" : "s"));
  }

  const TypedDefinition& definition_;
  const TypedStatement& statement_;
  const SourcePtr& source_;
  std::vector<Contribution> contributions_;
};

/// The gradient of a whole def, as text.
class DefGradient {
 public:
  DefGradient(const TypedDefinition& definition, const SourcePtr& source,
              const std::vector<std::vector<std::string>>& extents)
      : definition_(definition), source_(source), extents_(extents) {}

  Result<std::string> run() {
    for (const TypedStatement& statement : definition_.statements) {
      if (auto fits = check(statement); !fits) return tl::unexpected(fits.error());
      auto contributions = StatementGradient(definition_, statement, source_).run();
      if (!contributions) return tl::unexpected(contributions.error());
      for (const Contribution& contribution : *contributions) {
        if (auto added = add(statement, contribution); !added) return tl::unexpected(added.error());
      }
    }
    if (written_.empty()) {
      return tl::unexpected(Error(source_, definition_.range,
                                  fmt::format("no result of '{}' depends on a float input", definition_.name)));
    }
    auto file = parse(std::make_shared<const Source>(definition_.name + "_gradient", whole()));
    if (!file) return tl::unexpected(file.error());
    return format(*file);
  }

 private:
  Result<void> check(const TypedStatement& statement) {
    const Tensor& tensor = definition_.tensors[statement.tensor];
    const auto refuse = [&](const std::string& why) {
      return tl::unexpected(Error(source_, statement.left_range,
                                  fmt::format("no gradient is derived through '{}', {}", tensor.name, why)));
    };
    if (tensor.role == Role::kInOut) return refuse("which updates the caller's values");
    if (tensor.role == Role::kTemporary) return refuse("which is a temporary");
    if (!results_.insert(statement.tensor).second) return refuse("which several statements write");
    if (statement.op != AssignOp::kSet && statement.op != AssignOp::kSumInit) {
      return refuse(fmt::format("which is reduced by '{}'", spelling_of(statement.op)));
    }
    return {};
  }

  /// One value type for all floats: then nothing has to be narrowed.
  bool uniform() const {
    std::set<ScalarType> types;
    for (const Tensor& tensor : definition_.tensors) {
      if (is_float(tensor.type)) types.insert(tensor.type);
    }
    for (const Scalar& scalar : definition_.scalars) {
      if (is_float(scalar.type)) types.insert(scalar.type);
    }
    return types.size() == 1 && bits_of(*types.begin()) >= 32;
  }

  Result<void> add(const TypedStatement& statement, const Contribution& contribution) {
    const Tensor& tensor = definition_.tensors[contribution.tensor];
    const bool first = written_.insert(contribution.tensor).second;
    const char* const op = !first ? "+=" : contribution.once ? "=" : "+=!";
    std::string value = contribution.value;
    if (!uniform()) value = fmt::format("{}({})", name_of(tensor.type), value);
    std::string line = fmt::format("d_{}{} {} {}", tensor.name, contribution.subscripts, op, value);
    std::vector<std::string> clauses;
    for (const Index& index : statement.indices) {
      if (index.given) {
        clauses.push_back(fmt::format("{} in {}:{}", index.name, typed_text(definition_, statement, *index.given->low),
                                      typed_text(definition_, statement, *index.given->high)));
      } else if (!mentions(line, index.name)) {
        return tl::unexpected(
            Error(source_, index.range,
                  fmt::format("no gradient is derived for '{}': the sum over '{}' does not depend on it", tensor.name,
                              index.name)));
      }
    }
    for (const TypedExprPtr& exists : statement.exists) {
      clauses.push_back("exists " + typed_text(definition_, statement, *exists));
    }
    if (!clauses.empty()) line += fmt::format(" where {}", fmt::join(clauses, ", "));
    lines_ += "  " + line + "\n";
    return {};
  }

  std::string dimensions_of(const Tensor& tensor) const {
    static const TypedStatement none{};
    return tensor.dimensions ? subscripts_text(definition_, none, *tensor.dimensions) : "";
  }

  bool names_alone(const Tensor& tensor, const std::string& size) const {
    static const TypedStatement none{};
    return tensor.dimensions && std::ranges::any_of(*tensor.dimensions, [&](const TypedExprPtr& dimension) {
             return typed_text(definition_, none, *dimension) == size;
           });
  }

  bool has_adjoint(size_t result) const {
    return mentions(lines_, "d_" + definition_.tensors[definition_.results[result]].name);
  }

  bool is_extent_of_adjoint(const std::string& size) const {
    for (size_t r = 0; r < extents_.size(); ++r) {
      if (has_adjoint(r) && std::ranges::find(extents_[r], size) != extents_[r].end()) return true;
    }
    return false;
  }

  /// Inputs that the statements read, and those by which a call gives the sizes their values.
  std::set<int> needed_inputs() const {
    std::set<int> needed;
    for (size_t t = 0; t < definition_.tensors.size(); ++t) {
      const Tensor& tensor = definition_.tensors[t];
      if (tensor.role == Role::kInput && mentions(lines_, tensor.name)) needed.insert(static_cast<int>(t));
    }
    for (const Size& size : definition_.sizes) {
      const auto by = [&](int t) { return names_alone(definition_.tensors[t], size.name); };
      if (std::ranges::any_of(needed, by) || is_extent_of_adjoint(size.name)) continue;
      for (size_t t = 0; t < definition_.tensors.size(); ++t) {
        if (definition_.tensors[t].role != Role::kInput || !by(static_cast<int>(t))) continue;
        needed.insert(static_cast<int>(t));
        break;
      }
    }
    return needed;
  }

  std::string whole() const {
    const std::set<int> needed = needed_inputs();
    std::vector<std::string> parameters;
    for (const Argument& argument : definition_.arguments) {
      if (argument.is_scalar) {
        const Scalar& scalar = definition_.scalars[argument.id];
        if (mentions(lines_, scalar.name))
          parameters.push_back(fmt::format("{} {}", name_of(scalar.type), scalar.name));
      } else if (needed.contains(argument.id)) {
        const Tensor& tensor = definition_.tensors[argument.id];
        parameters.push_back(fmt::format("{}{} {}", name_of(tensor.type), dimensions_of(tensor), tensor.name));
      }
    }
    for (size_t r = 0; r < definition_.results.size(); ++r) {
      const Tensor& tensor = definition_.tensors[definition_.results[r]];
      if (!has_adjoint(r)) continue;
      const std::string extents = extents_[r].empty() ? "" : fmt::format("({})", fmt::join(extents_[r], ", "));
      parameters.push_back(fmt::format("{}{} d_{}", name_of(tensor.type), extents, tensor.name));
    }
    std::vector<std::string> results;
    for (int t : written_) {
      const Tensor& tensor = definition_.tensors[t];
      results.push_back(fmt::format("{}{} d_{}", name_of(tensor.type), dimensions_of(tensor), tensor.name));
    }
    return fmt::format("def {}_gradient({}) -> ({}) {{\n{}}}\n", definition_.name, fmt::join(parameters, ", "),
                       fmt::join(results, ", "), lines_);
  }

  const TypedDefinition& definition_;
  const SourcePtr& source_;
  const std::vector<std::vector<std::string>>& extents_;
  std::set<int> results_;  ///< written so far
  std::set<int> written_;  ///< inputs that have a gradient
  std::string lines_;
};

}  // namespace

Result<std::string> gradient(const TypedDefinition& definition, const SourcePtr& source,
                             const std::vector<std::vector<std::string>>& extents) {
  return DefGradient(definition, source, extents).run();
}

}  // namespace tc::lang
