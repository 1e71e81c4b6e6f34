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
#include "tc/lang/statement_gradient.h"
#include "tc/lang/typed_text.h"
#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

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

/// The gradient of a whole def, as text. Each tensor is written by one statement, but for sums into it.
class DefGradient {
 public:
  DefGradient(TypedDefinition definition, const SourcePtr& source, InferredRanges inferred)
      : definition_(std::move(definition)),
        source_(source),
        inferred_(std::move(inferred)),
        names_(names_in(definition_)) {}

  Result<std::string> run() {
    for (const TypedStatement& statement : definition_.statements) {
      if (auto fits = check(statement); !fits) return tl::unexpected(fits.error());
    }
    name_adjoints();
    for (const auto& [t, name] : adjoints_.names) {
      if (!names_.contains(d(definition_.tensors[t]))) continue;
      return tl::unexpected(
          Error(source_, definition_.range,
                fmt::format("the gradient of '{}' is named '{}', a name that '{}' has already",
                            definition_.tensors[t].name, d(definition_.tensors[t]), definition_.name)));
    }
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

  /// A prefix that no name of the def has.
  std::string unused(std::string prefix) const {
    while (std::ranges::any_of(names_, [&](const std::string& name) { return name.starts_with(prefix); }))
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
      std::string index = fmt::format("i{}", indices.size());
      while (names_.contains(index)) index += "_";
      indices.push_back(std::move(index));
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
    auto contributions = statement_gradient(definition_, number, source_, inferred_, adjoints_, true);
    if (!contributions) return tl::unexpected(contributions.error());
    const bool is_best = statement.op == AssignOp::kMaxInit || statement.op == AssignOp::kMinInit;
    if (is_best) count(number);
    if (!is_best && is_summed_exactly(*statement.right, definition_.tensors[statement.tensor].type)) {
      // Products of narrow elements are what a matrix product's units take.
      const auto narrow = statement_gradient(definition_, number, source_, inferred_, adjoints_, false);
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
  const std::set<std::string> names_;
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
