#include "tc/lang/gradient.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <ranges>
#include <set>

#include "tc/lang/ast.h"
#include "tc/lang/format.h"
#include "tc/lang/parser.h"
#include "tc/lang/single_assignment.h"
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

/// Sums and products of elements of one narrow type, which a sum of that type takes without a rounding (T3).
bool is_summed_exactly(const TypedExpr& expr, ScalarType type) {
  if (expr.type != type || !is_narrow_float(type)) return false;
  return std::visit(Overloaded{
                        [](const Read&) { return true; },
                        [&](const TypedUnary& unary) { return is_summed_exactly(*unary.operand, type); },
                        [&](const TypedBinary& binary) {
                          const bool is_exact =
                              binary.op == BinaryOp::kAdd || binary.op == BinaryOp::kSub || binary.op == BinaryOp::kMul;
                          return is_exact && is_summed_exactly(*binary.left, type) &&
                                 is_summed_exactly(*binary.right, type);
                        },
                        [&](const LetRef& let) { return is_summed_exactly(*let.value, type); },
                        [](const auto&) { return false; },
                    },
                    expr.node);
}

/// What one statement adds to the gradient of one input, at one tuple of subscripts.
struct Contribution {
  int tensor = 0;
  std::string subscripts;
  std::string value;
  bool once = false;  ///< the subscripts are the statement's indices: each element is written once
  bool all = false;   ///< each element is written
  bool wide = false;  ///< of float32 or wider, where the tensor's type may be narrower
};

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

/// What statements hand on to the tensors that they read.
struct Adjoints {
  std::map<int, std::string> names;  ///< of tensors whose gradients are wanted
  std::string counts;                ///< a prefix that no name of the def begins with
};

/// Reverse-mode differentiation of one statement.
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

  /// Where the source reads, but for places that data choose where it does not read: nothing is added there, and that
  /// to the first element.
  std::string subscripts_of(const Read& read) const {
    if (std::ranges::none_of(guards_, &Guard::is_read) ||
        std::ranges::none_of(read.subscripts, [](const TypedExprPtr& s) { return reads_elements(*s); })) {
      return subscripts_text(definition_, statement_, read.subscripts);
    }
    std::vector<std::string> texts;
    for (const TypedExprPtr& subscript : read.subscripts) {
      texts.push_back(text(*subscript));
      if (!reads_elements(*subscript)) continue;
      for (const Guard& guard : guards_ | std::views::reverse) {
        if (guard.is_read) texts.back() = guard.of(texts.back(), "0");
      }
    }
    return fmt::format("({})", fmt::join(texts, ", "));
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
    return refuse(expr, fmt::format("no derivative is known for '{}' of {} argument{}", call.name,
                                    call.arguments.size(), call.arguments.size() == 1 ? "" : "s"));
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

/// The gradient of a whole def, as text. Each tensor is written by one statement, but for sums into it.
class DefGradient {
 public:
  DefGradient(TypedDefinition definition, const SourcePtr& source, InferredRanges inferred)
      : definition_(std::move(definition)), source_(source), inferred_(std::move(inferred)) {}

  Result<std::string> run() {
    for (const TypedStatement& statement : definition_.statements) {
      if (auto fits = check(statement); !fits) return tl::unexpected(fits.error());
    }
    name_adjoints();
    std::vector<size_t> order(definition_.statements.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (chained_) std::ranges::reverse(order);
    for (const size_t number : order) {
      if (auto done = add(number); !done) return tl::unexpected(done.error());
    }
    if (gradients_.empty()) {
      return tl::unexpected(Error(source_, definition_.range,
                                  fmt::format("no result of '{}' depends on a float input", definition_.name)));
    }
    lines_ = computed_again() + lines_;
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
    switch (statement.op) {
      case AssignOp::kSet:
      case AssignOp::kSumInit:
      case AssignOp::kSum:
        return {};
      case AssignOp::kMaxInit:
      case AssignOp::kMinInit: {
        // What is computed twice need not be equal to the last bit.
        const auto* read = std::get_if<Read>(&statement.right->node);
        if (read && definition_.tensors[read->tensor].role == Role::kInput) return {};
        return refuse(
            fmt::format("which is reduced by '{}' from what is not an input's elements", spelling_of(statement.op)));
      }
      default:
        return refuse(fmt::format("which is reduced by '{}'", spelling_of(statement.op)));
    }
  }

  /// Finds the tensors that change with a float input, and names what their gradients are kept in.
  void name_adjoints() {
    std::set<int> read;
    for (size_t t = 0; t < definition_.tensors.size(); ++t) {
      const Tensor& tensor = definition_.tensors[t];
      if (tensor.role == Role::kInput && is_float(tensor.type)) adjoints_.names[static_cast<int>(t)] = d(tensor);
    }
    std::set<int> written;
    for (const TypedStatement& statement : definition_.statements) {
      const Tensor& tensor = definition_.tensors[statement.tensor];
      for (int t : tensors_read(*statement.right)) {
        if (definition_.tensors[t].role != Role::kInput) read.insert(t);
        if (is_float(tensor.type) && adjoints_.names.contains(t)) adjoints_.names[statement.tensor] = d(tensor);
      }
      const bool again = !written.insert(statement.tensor).second;
      chained_ = chained_ || again || tensor.role == Role::kTemporary || statement.op == AssignOp::kMaxInit ||
                 statement.op == AssignOp::kMinInit;
    }
    chained_ = chained_ || !read.empty();
    adjoints_.counts = unused("n_");
    // A result that is read has more of a gradient than the caller's.
    for (int t : definition_.results) {
      if (!read.contains(t) || !adjoints_.names.contains(t)) continue;
      const Tensor& tensor = definition_.tensors[t];
      adjoints_.names[t] = unused("g_") + tensor.name;
      begin(t, d(tensor));
    }
  }

  static std::string d(const Tensor& tensor) { return "d_" + tensor.name; }

  /// A prefix that no tensor's name has.
  std::string unused(std::string prefix) const {
    while (std::ranges::any_of(definition_.tensors, [&](const Tensor& t) { return t.name.starts_with(prefix); }))
      prefix += "_";
    return prefix;
  }

  /// First contents of all of an adjoint: those of another tensor, or zero.
  void begin(int tensor, const std::string& from) {
    const std::string type = type_of(tensor);
    const bool typed = definition_.tensors[static_cast<size_t>(tensor)].role != Role::kInput;
    lines_ += fill((typed ? type + " " : "") + adjoints_.names.at(tensor), tensor, type + "(0.0)", from);
    begun_.insert(tensor);
  }

  /// All elements of `left`, which has a tensor's extents, are one value or those of `from`.
  std::string fill(const std::string& left, int tensor, const std::string& value, const std::string& from) const {
    return everywhere(tensor, [&](const std::string& subscripts) {
      return fmt::format("{}{} = {}", left, subscripts, from.empty() ? value : from + subscripts);
    });
  }

  /// A line for all elements of a tensor's extents.
  template <typename Line>
  std::string everywhere(int tensor, Line line) const {
    std::vector<std::string> indices, ranges;
    for (const std::string& extent : inferred_.extents[static_cast<size_t>(tensor)]) {
      indices.push_back(fmt::format("{}{}", unused("i"), indices.size()));
      ranges.push_back(fmt::format("{} in 0:{}", indices.back(), extent));
    }
    const std::string subscripts = indices.empty() ? "" : fmt::format("({})", fmt::join(indices, ", "));
    return fmt::format("  {}{}\n", line(subscripts),
                       ranges.empty() ? "" : fmt::format(" where {}", fmt::join(ranges, ", ")));
  }

  /// Whether a statement alone says how many elements its tensor has, and writes them all.
  bool writes_all(size_t number) const {
    const TypedStatement& statement = definition_.statements[number];
    return meets_all(statement.tensor, statement.subscripts, inferred_, number);
  }

  std::string type_of(int tensor) const { return std::string(name_of(definition_.tensors[tensor].type)); }

  std::set<ScalarType> float_types() const {
    std::set<ScalarType> types;
    for (const Tensor& tensor : definition_.tensors) {
      if (is_float(tensor.type)) types.insert(tensor.type);
    }
    for (const Scalar& scalar : definition_.scalars) {
      if (is_float(scalar.type)) types.insert(scalar.type);
    }
    return types;
  }
  /// One value type for all floats: then nothing has to be narrowed.
  bool uniform() const { return float_types().size() == 1; }
  bool has_float64() const { return float_types().contains(ScalarType::kFloat64); }

  /// What a statement hands on.
  Result<void> add(size_t number) {
    const TypedStatement& statement = definition_.statements[number];
    const bool is_result = definition_.tensors[statement.tensor].role == Role::kResult;
    if (!adjoints_.names.contains(statement.tensor) || (!is_result && !begun_.contains(statement.tensor))) return {};
    auto contributions = StatementGradient(definition_, number, source_, inferred_, adjoints_, true).run();
    if (!contributions) return tl::unexpected(contributions.error());
    const bool is_best = statement.op == AssignOp::kMaxInit || statement.op == AssignOp::kMinInit;
    if (is_best) count(number);
    if (!is_best && is_summed_exactly(*statement.right, definition_.tensors[statement.tensor].type)) {
      // Products of narrow elements are what a matrix product's units take.
      const auto narrow = StatementGradient(definition_, number, source_, inferred_, adjoints_, false).run();
      for (size_t c = 0; c < contributions->size(); ++c) {
        if (!(*contributions)[c].once) (*contributions)[c] = (*narrow)[c];
      }
    }
    for (const Contribution& contribution : *contributions) add(number, contribution);
    return {};
  }

  /// How many elements are as good as the best.
  void count(size_t number) {
    const TypedStatement& statement = definition_.statements[number];
    const std::string& name = definition_.tensors[statement.tensor].name;
    const std::string place = name + subscripts_text(definition_, statement, statement.subscripts);
    const std::string value = fmt::format(
        "({} == {} ? 1.0 : 0.0){}", typed_text(definition_, statement, *statement.right), place, clauses(number, ""));
    if (writes_all(number)) {
      lines_ += fmt::format("  float32 {}{} +=! {}\n", adjoints_.counts, place, value);
    } else {
      lines_ += fill("float32 " + adjoints_.counts + name, statement.tensor, "0.0", "");
      lines_ += fmt::format("  {}{} += {}\n", adjoints_.counts, place, value);
    }
  }

  void add(size_t number, const Contribution& contribution) {
    const Tensor& tensor = definition_.tensors[contribution.tensor];
    const bool is_input = tensor.role == Role::kInput;
    if (is_input) gradients_.insert(contribution.tensor);
    if (is_narrow_float(tensor.type) && contribution.wide && !contribution.once) return add_sum(number, contribution);
    if (chained_ && !contribution.all && !begun_.contains(contribution.tensor)) begin(contribution.tensor, "");
    const bool first = begun_.insert(contribution.tensor).second;
    const char* const op = !first ? "+=" : contribution.once ? "=" : "+=!";
    const AssignOp of = definition_.statements[number].op;
    const bool cast = is_narrow_float(tensor.type) ? contribution.wide
                                                   : !uniform() || of == AssignOp::kMaxInit || of == AssignOp::kMinInit;
    const std::string value =
        cast ? fmt::format("{}({})", name_of(tensor.type), contribution.value) : contribution.value;
    const std::string line = fmt::format("{}{}{} {} {}", first && !is_input ? type_of(contribution.tensor) + " " : "",
                                         adjoints_.names.at(contribution.tensor), contribution.subscripts, op, value);
    lines_ += fmt::format("  {}{}\n", line, clauses(number, line));
  }

  /// What a narrow tensor gets of a wide sum, whose terms are not rounded one by one.
  void add_sum(size_t number, const Contribution& contribution) {
    const Tensor& tensor = definition_.tensors[contribution.tensor];
    const std::string sum = fmt::format("{}{}", unused(fmt::format("s{}_", ++sums_)), tensor.name);
    const std::string terms = fmt::format("{}{} {} {}{}\n", sum, contribution.subscripts,
                                          contribution.all ? "+=!" : "+=", contribution.value, clauses(number, ""));
    const std::string wide = fmt::format("{} ", name_of(has_float64() ? ScalarType::kFloat64 : ScalarType::kFloat32));
    if (!contribution.all) lines_ += fill(wide + sum, contribution.tensor, "0.0", "");
    lines_ += fmt::format("  {}{}", contribution.all ? wide : "", terms);
    const bool first = begun_.insert(contribution.tensor).second;
    const std::string type = first && tensor.role != Role::kInput ? type_of(contribution.tensor) + " " : "";
    lines_ += everywhere(contribution.tensor, [&](const std::string& subscripts) {
      return fmt::format("{}{}{} {} {}({}{})", type, adjoints_.names.at(contribution.tensor), subscripts,
                         first ? "=" : "+=", name_of(tensor.type), sum, subscripts);
    });
  }

  /// The ranges of a statement's indices, unless `line` has them in subscripts that say as much.
  std::string clauses(size_t number, const std::string& line) const {
    const TypedStatement& statement = definition_.statements[number];
    std::vector<std::string> clauses;
    for (size_t i = 0; i < statement.indices.size(); ++i) {
      const Index& index = statement.indices[i];
      const auto& [low, high] = inferred_.indices[number][i];
      if (chained_ || index.given || !mentions(line, index.name))
        clauses.push_back(fmt::format("{} in {}:{}", index.name, low, high));
    }
    for (const TypedExprPtr& exists : statement.exists) {
      clauses.push_back("exists " + typed_text(definition_, statement, *exists));
    }
    return clauses.empty() ? "" : fmt::format(" where {}", fmt::join(clauses, ", "));
  }

  /// The statements that make the temporaries which the gradients' lines read.
  std::string computed_again() const {
    std::string lines, wanted = lines_;
    for (size_t number = definition_.statements.size(); number-- > 0;) {
      const TypedStatement& statement = definition_.statements[number];
      const Tensor& tensor = definition_.tensors[statement.tensor];
      if (tensor.role != Role::kTemporary || !mentions(wanted, tensor.name)) continue;
      const std::string type = statement.op == AssignOp::kSum ? "" : type_of(statement.tensor) + " ";
      const bool filled = !type.empty() && !writes_all(number);
      std::string line =
          fmt::format("  {}{}{} {} {}{}\n", filled ? "" : type, tensor.name,
                      subscripts_text(definition_, statement, statement.subscripts), spelling_of(statement.op),
                      typed_text(definition_, statement, *statement.right), clauses(number, ""));
      // Nothing else gives a tensor that was declared its extents, now that it is a temporary.
      if (filled) line = fill(type + tensor.name, statement.tensor, type_of(statement.tensor) + "(0)", "") + line;
      lines = line + lines;
      wanted += line;
    }
    return lines;
  }

  const std::vector<std::string>& extents_of_result(size_t r) const {
    return inferred_.extents[static_cast<size_t>(definition_.results[r])];
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
    for (size_t r = 0; r < definition_.results.size(); ++r) {
      if (has_adjoint(r) && std::ranges::find(extents_of_result(r), size) != extents_of_result(r).end()) return true;
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

  std::string result_parameter(size_t r, const std::string& name) const {
    const std::vector<std::string>& extents = extents_of_result(r);
    return fmt::format("{}{} {}", type_of(definition_.results[r]),
                       extents.empty() ? "" : fmt::format("({})", fmt::join(extents, ", ")), name);
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
      const std::string& name = definition_.tensors[definition_.results[r]].name;
      if (mentions(lines_, name)) parameters.push_back(result_parameter(r, name));
    }
    for (size_t r = 0; r < definition_.results.size(); ++r) {
      if (has_adjoint(r)) parameters.push_back(result_parameter(r, d(definition_.tensors[definition_.results[r]])));
    }
    std::vector<std::string> results;
    for (int t : gradients_) {
      const Tensor& tensor = definition_.tensors[t];
      results.push_back(fmt::format("{}{} {}", name_of(tensor.type), dimensions_of(tensor), d(tensor)));
    }
    return fmt::format("def {}_gradient({}) -> ({}) {{\n{}}}\n", definition_.name, fmt::join(parameters, ", "),
                       fmt::join(results, ", "), lines_);
  }

  const TypedDefinition definition_;
  const SourcePtr& source_;
  const InferredRanges inferred_;
  Adjoints adjoints_;
  bool chained_ = false;     ///< statements read what others write: ranges are written out
  std::set<int> begun_;      ///< tensors whose adjoints have contents
  std::set<int> gradients_;  ///< inputs among them
  int sums_ = 0;
  std::string lines_;
};

}  // namespace

Result<std::string> gradient(const TypedDefinition& definition, const SourcePtr& source, InferredRanges inferred) {
  auto single = single_assignment(definition, source, inferred);
  if (!single) return tl::unexpected(single.error());
  return DefGradient(std::move(*single), source, std::move(inferred)).run();
}

}  // namespace tc::lang
