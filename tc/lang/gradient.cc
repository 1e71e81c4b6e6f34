#include "tc/lang/gradient.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
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

bool is_order(AssignOp op) {
  return op == AssignOp::kMax || op == AssignOp::kMaxInit || op == AssignOp::kMin || op == AssignOp::kMinInit;
}
bool is_product(AssignOp op) { return op == AssignOp::kProduct || op == AssignOp::kProductInit; }

/// The gradient of a whole def, as text. Each state of a tensor is a tensor (single_assignment.h).
class DefGradient {
 public:
  DefGradient(SingleAssignment single, const SourcePtr& source, InferredRanges inferred)
      : definition_(std::move(single.definition)),
        before_(std::move(single.before)),
        source_(source),
        inferred_(std::move(inferred)),
        names_(names_in(definition_)),
        tensor_names_(names_) {
    for (const TypedStatement& statement : definition_.statements) {
      for (const Index& index : statement.indices) tensor_names_.erase(index.name);
    }
  }

  Result<std::string> run() {
    name_extents();
    name_adjoints();
    std::vector<size_t> order(definition_.statements.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (chained_) std::ranges::reverse(order);
    for (const size_t number : order) {
      if (auto done = add(number); !done) return tl::unexpected(done.error());
    }
    if (gradients().empty()) return tl::unexpected(why_nothing());
    lines_ = computed_again() + lines_;
    auto file = parse(std::make_shared<const Source>(definition_.name + "_gradient", whole()));
    if (!file) return tl::unexpected(file.error());
    return format(*file);
  }

 private:
  // What is known of tensors and statements.

  const Tensor& tensor(int t) const { return definition_.tensors[static_cast<size_t>(t)]; }
  const TypedStatement& statement(size_t number) const { return definition_.statements[number]; }
  const Tensor& written_by(size_t number) const { return tensor(statement(number).tensor); }
  /// That of a tensor's gradient: of an 8-bit float it is a float32.
  ScalarType gradient_type(int t) const { return is_float8(tensor(t).type) ? ScalarType::kFloat32 : tensor(t).type; }
  std::string type_of(int t) const { return std::string(name_of(gradient_type(t))); }
  /// That in which gradients of a tensor are computed.
  std::string wide_type_of(int t) const {
    return std::string(name_of(is_narrow_float(tensor(t).type) ? ScalarType::kFloat32 : gradient_type(t)));
  }

  /// "(i, j + 1)", where a statement writes.
  std::string left_of(size_t number) const {
    return subscripts_text(definition_, statement(number), statement(number).subscripts);
  }
  std::string text_of(size_t number, const TypedExpr& expr) const {
    return typed_text(definition_, statement(number), expr);
  }

  Access left_access(size_t number) const {
    return {definition_, number, statement(number).tensor, statement(number).subscripts};
  }
  /// Whether a statement alone says how many elements its tensor has, and writes them all.
  bool writes_all(size_t number) const { return covers(left_access(number), inferred_); }

  /// Whether a statement is the first that writes this state of its tensor.
  bool begins_state(size_t number) const {
    return std::ranges::none_of(std::views::iota(size_t{0}, number),
                                [&](size_t earlier) { return statement(earlier).tensor == statement(number).tensor; });
  }
  /// The state whose elements a statement keeps or combines with.
  std::optional<int> state_before(size_t number) const {
    const auto found = before_.find(statement(number).tensor);
    return found != before_.end() && begins_state(number) ? std::optional(found->second) : std::nullopt;
  }

  /// The same if the statement's operator combines with it.
  std::optional<int> combined_with(size_t number) const {
    return overwrites(statement(number).op) ? std::nullopt : state_before(number);
  }

  std::set<ScalarType> float_types() const {
    std::set<ScalarType> types;
    for (const Tensor& t : definition_.tensors) {
      if (is_float(t.type) && !is_float8(t.type)) types.insert(t.type);
    }
    for (const Scalar& scalar : definition_.scalars) {
      if (is_float(scalar.type)) types.insert(scalar.type);
    }
    return types;
  }
  bool has_float64() const { return float_types().contains(ScalarType::kFloat64); }
  /// Whether what a gradient of this type is computed from may be wider.
  bool may_narrow(ScalarType type) const { return float_types().size() > 1 && type != ScalarType::kFloat64; }

  Error why_nothing() const {
    const bool has_input = std::ranges::any_of(
        definition_.tensors, [](const Tensor& t) { return t.role == Role::kInput && is_float(t.type); });
    const bool has_result = std::ranges::any_of(definition_.results, [&](int t) { return is_float(tensor(t).type); });
    const char* const why = !has_input ? "there is nothing to differentiate by: no tensor among its inputs is of floats"
                            : !has_result ? "its results are integers or truth values, which change in steps: their "
                                            "derivative is 0 wherever it exists"
                                          : "no result of floats depends on a float input";
    return Error(source_, definition_.range, fmt::format("'{}' has no gradient; {}", definition_.name, why));
  }

  // Names.

  /// Finds the tensors that change with a float input, and names what their gradients are kept in.
  void name_adjoints() {
    std::set<int> read, written;
    for (size_t t = 0; t < definition_.tensors.size(); ++t) {
      if (definition_.tensors[t].role == Role::kInput && is_float(definition_.tensors[t].type) &&
          !is_float8(definition_.tensors[t].type)) {
        adjoints_[static_cast<int>(t)] = "";
      }
    }
    for (size_t number = 0; number < definition_.statements.size(); ++number) {
      const TypedStatement& s = statement(number);
      std::set<int> sources = tensors_read(*s.right);
      for (const TypedExprPtr& subscript : s.subscripts) sources.merge(tensors_read(*subscript));
      const std::optional<int> before = state_before(number);
      if (before) sources.insert(*before);
      for (int t : sources) {
        if (tensor(t).role != Role::kInput) read.insert(t);
      }
      const bool changes = changes_with(*s.right, adjoints_) || (before && adjoints_.contains(*before));
      if (is_float(written_by(number).type) && changes) adjoints_[s.tensor] = "";
      const bool again = !written.insert(s.tensor).second;
      chained_ = chained_ || again || written_by(number).role == Role::kTemporary || is_order(s.op) ||
                 is_product(s.op) || before;
    }
    // An extent that got a name bounds no index.
    chained_ = chained_ || !read.empty() || !named_extents_.empty();
    choose_prefix();
    for (auto& [t, name] : adjoints_) {
      name = tensor(t).role == Role::kResult ? reference_text(d(tensor(t)), t) : d(tensor(t));
    }
    // A result that is read has more of a gradient than the caller's.
    for (int t : definition_.results) {
      if (!read.contains(t) || !adjoints_.contains(t)) continue;
      adjoints_[t] = unused("g") + tensor(t).name;
      begin(t, reference_text(d(tensor(t)), t));
    }
  }

  /// d_, or d2_, d3_, ... where the def has a name that a gradient would get: as the gradient of a gradient does.
  void choose_prefix() {
    const auto clashes = [&] {
      return std::ranges::any_of(adjoints_, [&](const auto& item) { return names_.contains(d(tensor(item.first))); });
    };
    for (int n = 2; clashes(); ++n) prefix_ = fmt::format("d{}_", n);
  }

  std::string d(const Tensor& t) const { return prefix_ + t.name; }

  std::string reference_text(int t) const { return reference_text(tensor(t).name, t); }
  /// That of a parameter which is like a tensor.
  std::string reference_text(std::string name, int like) const {
    Tensor parameter = tensor(like);
    parameter.name = std::move(name);
    return lang::reference_text(parameter);
  }

  /// LETTERS_ or LETTERS2_, LETTERS3_, ...: a prefix that no name of the def has.
  std::string unused(const std::string& letters) const {
    std::string prefix = letters + "_";
    const auto taken = [&] {
      return std::ranges::any_of(names_, [&](const std::string& name) { return name.starts_with(prefix); });
    };
    for (int n = 2; taken(); ++n) prefix = fmt::format("{}{}_", letters, n);
    return prefix;
  }

  /// A name that no tensor has, and none of the indices beside it.
  std::string free_index(std::string name, const std::vector<Index>& beside = {}) const {
    while (tensor_names_.contains(name) || std::ranges::find(beside, name, &Index::name) != beside.end()) name += "_";
    return name;
  }

  // Lines.

  /// First contents of all of an adjoint: those of another tensor, or zero.
  void begin(int t, const std::string& from) {
    const bool typed = tensor(t).role != Role::kInput;
    lines_ += fill((typed ? type_of(t) + " " : "") + adjoints_.at(t), t, type_of(t) + "(0.0)", from);
    begun_.insert(t);
  }

  /// All elements of `left`, which has a tensor's extents, are one value or those of `from`.
  std::string fill(const std::string& left, int t, const std::string& value, const std::string& from) const {
    return everywhere(t, [&](const std::string& subscripts) {
      return fmt::format("{}{} = {}", left, subscripts, from.empty() ? value : from + subscripts);
    });
  }

  /// A line for all elements of a tensor's extents.
  template <typename Line>
  std::string everywhere(int t, Line line) const {
    std::vector<std::string> indices, ranges;
    for (const std::string& extent : inferred_.extents[static_cast<size_t>(t)]) {
      indices.push_back(free_index(fmt::format("i{}", indices.size())));
      ranges.push_back(fmt::format("{} in 0:{}", indices.back(), extent));
    }
    const std::string subscripts = indices.empty() ? "" : fmt::format("({})", fmt::join(indices, ", "));
    return fmt::format("  {}{}\n", line(subscripts),
                       ranges.empty() ? "" : fmt::format(" where {}", fmt::join(ranges, ", ")));
  }

  /// Whether an index goes through a whole dimension of a tensor, of which it is a subscript.
  bool spans_dimension(size_t number, size_t index, int t, const std::vector<TypedExprPtr>& subscripts) const {
    const auto& [low, high] = inferred_.indices[number][index];
    for (size_t d = 0; d < subscripts.size(); ++d) {
      const auto* alone = std::get_if<IndexRef>(&subscripts[d]->node);
      const bool is_it = alone && static_cast<size_t>(alone->index) == index;
      if (is_it && low == "0" && high == inferred_.extents[static_cast<size_t>(t)][d]) return true;
    }
    return false;
  }

  /// Whether range inference gives an index of `line` the range that it has in the statement. All that the line
  /// accesses is in bounds in that range; so it is enough that no larger one is. That is so where a read which no
  /// condition guards has the index alone in a dimension that it goes through, or the left side if no read has it.
  bool is_bounded_by(const std::string& line, size_t number, size_t index) const {
    if (line.empty() || line.find_first_of("?&|") != std::string::npos) return false;
    const TypedStatement& s = statement(number);
    const size_t middle = line.find('=');
    const std::string left = line.substr(0, middle), value = line.substr(middle);
    const auto has = [&](const std::string& text, const std::string& name, int t,
                         const std::vector<TypedExprPtr>& subscripts) {
      return spans_dimension(number, index, t, subscripts) &&
             mentions(text, name + subscripts_text(definition_, s, subscripts));
    };
    const auto adjoint = [&](int t) { return adjoints_.contains(t) ? adjoints_.at(t) : std::string(); };
    const bool is_read = mentions(value, s.indices[index].name);
    bool found = is_read && has(value, adjoint(s.tensor), s.tensor, s.subscripts);
    for_each_read(*s.right, [&](const Read& read) {
      const auto& [text, name] =
          is_read ? std::pair(value, reference_text(read.tensor)) : std::pair(left, adjoint(read.tensor));
      found = found || has(text, name, read.tensor, read.subscripts);
    });
    return found;
  }

  /// The ranges of a statement's indices, but for those that `line` gives them.
  std::string clauses(size_t number, const std::string& line, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> clauses;
    for (size_t i = 0; i < statement(number).indices.size(); ++i) {
      const Index& index = statement(number).indices[i];
      if (chained_ || index.given || !is_bounded_by(line, number, i)) {
        clauses.push_back(range_of(number, i, index.name));
      }
    }
    clauses.insert(clauses.end(), more.begin(), more.end());
    for (const TypedExprPtr& exists : statement(number).exists) {
      clauses.push_back("exists " + text_of(number, *exists));
    }
    return clauses.empty() ? "" : fmt::format(" where {}", fmt::join(clauses, ", "));
  }
  std::string range_of(size_t number, size_t index, const std::string& name) const {
    const auto& [low, high] = inferred_.indices[number][index];
    return fmt::format("{} in {}:{}", name, low, high);
  }
  /// The ranges of the indices that stand on the left.
  std::string clauses_of_left(size_t number) const {
    std::vector<std::string> clauses;
    for (size_t i = 0; i < static_cast<size_t>(statement(number).map_indices); ++i) {
      clauses.push_back(range_of(number, i, statement(number).indices[i].name));
    }
    return clauses.empty() ? "" : fmt::format(" where {}", fmt::join(clauses, ", "));
  }

  /// Makes NAME(left of a statement) +=! or max=! VALUE, over all of the statement's tensor: `nothing` elsewhere, or
  /// what the tensor `from` has.
  void reduce_like(size_t number, const std::string& type, const std::string& name, AssignOp op,
                   const std::string& value, const std::string& nothing, const std::string& from) {
    const std::string operator_text(spelling_of(op));
    if (from.empty() && writes_all(number)) {
      lines_ +=
          fmt::format("  {} {}{} {}! {}{}\n", type, name, left_of(number), operator_text, value, clauses(number, ""));
      return;
    }
    lines_ += fill(type + " " + name, statement(number).tensor, nothing, from);
    lines_ += fmt::format("  {}{} {} {}{}\n", name, left_of(number), operator_text, value, clauses(number, ""));
  }

  // Statements.

  /// What a statement hands on.
  Result<void> add(size_t number) {
    const TypedStatement& s = statement(number);
    const bool is_result = tensor(s.tensor).role == Role::kResult;
    if (!adjoints_.contains(s.tensor) || (!is_result && !begun_.contains(s.tensor))) return {};
    Reduced reduced;
    if (is_order(s.op)) reduced = share_among_best(number);
    if (is_product(s.op)) reduced = products_of_others(number);
    hand_back(number, reduced);
    auto contributions = contributions_of(number, reduced, true);
    if (!contributions) return tl::unexpected(contributions.error());
    const bool sums = !is_order(s.op) && !is_product(s.op);
    if (sums && is_summed_exactly(*s.right, tensor(s.tensor).type)) {
      // Products of narrow elements are what a matrix product's units take.
      const auto narrow = contributions_of(number, reduced, false);
      for (size_t c = 0; c < contributions->size(); ++c) {
        if (!(*contributions)[c].once) (*contributions)[c] = (*narrow)[c];
      }
    }
    for (const Contribution& contribution : *contributions) add(number, contribution);
    return {};
  }

  /// What a maximum, a minimum or a product makes of its gradient: texts over the statement's indices.
  struct Reduced {
    std::string condition = {};  ///< where it is handed on; "" everywhere
    std::string factor = {};     ///< " * ..." or " / ..." behind it
    std::string best = {};       ///< the tensor with the maximum
    std::string count = {};      ///< the tensor with the number of the best
    std::string product = {};    ///< the tensor with the product of what is reduced
  };

  Result<std::vector<Contribution>> contributions_of(size_t number, const Reduced& reduced, bool widened) const {
    const TypedStatement& s = statement(number);
    std::string adjoint = adjoints_.at(s.tensor) + left_of(number);
    if (widened && is_narrow_float(tensor(s.tensor).type)) adjoint = fmt::format("float32({})", adjoint);
    if (!reduced.factor.empty()) adjoint = fmt::format("({}{})", adjoint, reduced.factor);
    if (!reduced.condition.empty()) adjoint = fmt::format("({} ? {} : 0.0)", reduced.condition, adjoint);
    return statement_gradient(definition_, number, source_, inferred_, adjoints_, adjoint, widened);
  }

  /// Gives the state before what a statement leaves it of its own gradient.
  void hand_back(size_t number, const Reduced& reduced) {
    const std::optional<int> before = state_before(number);
    if (!before || !adjoints_.contains(*before)) return;
    const TypedStatement& s = statement(number);
    const std::string& own = adjoints_.at(s.tensor);
    if (s.op == AssignOp::kMax || s.op == AssignOp::kMin) {
      hand_back_each(*before, [&](const std::string& at) {
        return fmt::format("{}{} == {}{} ? {}{} / {}{} : 0.0", reference_text(*before), at, reduced.best, at, own, at,
                           reduced.count, at);
      });
    } else if (s.op == AssignOp::kProduct) {
      hand_back_each(*before,
                     [&](const std::string& at) { return fmt::format("{}{} * {}{}", own, at, reduced.product, at); });
    } else {
      begin(*before, own);
      // Other statements of this state may overwrite elements, too.
      for (size_t later = number; later < definition_.statements.size(); ++later) {
        if (statement(later).tensor == s.tensor && overwrites(statement(later).op)) clear_written(later, *before);
      }
    }
  }

  template <typename Value>
  void hand_back_each(int before, Value value) {
    const std::string type = tensor(before).role == Role::kInput ? "" : type_of(before) + " ";
    const bool narrow = is_narrow_float(tensor(before).type);
    lines_ += everywhere(before, [&](const std::string& at) {
      const std::string of = narrow ? fmt::format("{}({})", type_of(before), value(at)) : value(at);
      return fmt::format("{}{}{} = {}", type, adjoints_.at(before), at, of);
    });
    begun_.insert(before);
  }

  /// Of what a statement overwrites, the state before has no gradient.
  void clear_written(size_t number, int before) {
    const bool is_set = statement(number).op == AssignOp::kSet || is_plain(statement(number).subscripts);
    lines_ += fmt::format("  {}{} {} {}(0.0){}\n", adjoints_.at(before), left_of(number), is_set ? "=" : "+=!",
                          type_of(before), clauses_of_left(number));
  }

  // Maxima and minima.

  /// Those that are the best share alike, as in PyTorch's amax. What a gradient's def computes again need not be equal,
  /// to the last bit, to what the first def computed: if rounding plays a part, the maximum is computed again too.
  Reduced share_among_best(size_t number) {
    const TypedStatement& s = statement(number);
    const Tensor& own = tensor(s.tensor);
    const std::optional<int> before = combined_with(number);
    const bool exact = is_exact(definition_, *s.right) && (!before || tensor(*before).role == Role::kInput);
    const bool again = own.role == Role::kTemporary && !is_narrow_float(own.type);
    const std::string value = text_of(number, compared(*s.right));
    Reduced reduced{.best = reference_text(s.tensor), .count = unused("n") + own.name};
    const bool is_max = s.op == AssignOp::kMax || s.op == AssignOp::kMaxInit;
    if (!exact && !again) {
      reduced.best = unused("b") + own.name;
      reduce_like(number, wide_type_of(s.tensor), reduced.best, is_max ? AssignOp::kMax : AssignOp::kMin, value,
                  fmt::format("{}({}1.0 / 0)", wide_type_of(s.tensor), is_max ? "-" : ""),
                  before ? reference_text(*before) : "");
    }
    const std::string place = left_of(number);
    reduced.condition = fmt::format("{} == {}{}", value, reduced.best, place);
    reduced.factor = fmt::format(" / {}{}", reduced.count, place);
    const std::string counted = fmt::format("({} ? 1.0 : 0.0)", reduced.condition);
    if (before) {
      lines_ += everywhere(s.tensor, [&](const std::string& at) {
        return fmt::format("float32 {0}{1} = {2}{1} == {3}{1} ? 1.0 : 0.0", reduced.count, at, reference_text(*before),
                           reduced.best);
      });
      lines_ += fmt::format("  {}{} += {}{}\n", reduced.count, place, counted, clauses(number, ""));
    } else {
      reduce_like(number, "float32", reduced.count, AssignOp::kSum, counted, "0.0", "");
    }
    return reduced;
  }

  /// What a maximum compares: of a value that is narrowed first, the value.
  const TypedExpr& compared(const TypedExpr& value) const {
    const auto* cast = std::get_if<Cast>(&value.node);
    const bool narrows = cast && is_narrow_float(value.type) && std::holds_alternative<Read>(cast->operand->node) &&
                         !is_exact(definition_, value);
    return narrows ? *cast->operand : value;
  }

  // Products.

  /// The derivative of a product by one factor is the product of the others: no division, so that zeros do no harm.
  ///     p(i) *=! x(i,k)   ==>   r_p(i,k) *=! other_k != k ? x(i,other_k) : 1.0;   d_x(i,k) = d_p(i) * r_p(i,k)
  Reduced products_of_others(size_t number) {
    const TypedStatement& s = statement(number);
    const Tensor& own = tensor(s.tensor);
    const std::string type = wide_type_of(s.tensor);
    const std::optional<int> before = combined_with(number);
    Reduced reduced;
    const std::string place = left_of(number);
    if (before) {
      reduced.factor += fmt::format(" * {}{}", reference_text(*before), place);
      if (adjoints_.contains(*before)) {
        reduced.product = unused("p") + own.name;
        reduce_like(number, type, reduced.product, AssignOp::kProduct, text_of(number, *s.right), "1.0", "");
      }
    }
    // Other instances of the statement write the element, too: those that differ in these indices.
    TypedStatement other = s;
    std::vector<std::string> differs, more, all;
    for (size_t i = 0; i < s.indices.size(); ++i) {
      all.push_back(s.indices[i].name);
      if (is_plain(s.subscripts) && i < static_cast<size_t>(s.map_indices)) continue;
      other.indices[i].name = free_index("other_" + s.indices[i].name, s.indices);
      differs.push_back(fmt::format("{} != {}", other.indices[i].name, s.indices[i].name));
      more.push_back(range_of(number, i, other.indices[i].name));
    }
    if (differs.empty()) return reduced;
    std::string condition = fmt::format("{}", fmt::join(differs, " || "));
    if (!is_plain(s.subscripts)) {
      if (differs.size() > 1) condition = "(" + condition + ")";
      for (const TypedExprPtr& subscript : s.subscripts) {
        // Both sides are index arithmetic, or both are values.
        const auto place_in = [&](const TypedStatement& of) {
          return reads_elements(*subscript) ? typed_text(definition_, of, *subscript)
                                            : index_text(definition_, of, *subscript);
        };
        condition += fmt::format(" && {} == {}", place_in(other), place_in(s));
      }
    }
    const std::string rest = fmt::format("{}{}({})", unused("r"), own.name, fmt::join(all, ", "));
    lines_ += fmt::format("  {} {} *=! {} ? {} : {}(1.0){}\n", type, rest, condition,
                          typed_text(definition_, other, *s.right, true), type, clauses(number, "", more));
    reduced.factor += " * " + rest;
    return reduced;
  }

  // Contributions.

  void add(size_t number, const Contribution& contribution) {
    const Tensor& to = tensor(contribution.tensor);
    const bool is_input = to.role == Role::kInput;
    if (is_narrow_float(to.type) && contribution.wide && !contribution.once) return add_sum(number, contribution);
    const bool all = contribution.all || (contribution.scattered && is_input);
    if (!all && !begun_.contains(contribution.tensor)) begin(contribution.tensor, "");
    const bool first = begun_.insert(contribution.tensor).second;
    const char* const op = !first ? "+=" : contribution.once ? "=" : "+=!";
    const bool cast = is_narrow_float(to.type) ? contribution.wide : may_narrow(to.type);
    const std::string value =
        cast ? fmt::format("{}({})", type_of(contribution.tensor), contribution.value) : contribution.value;
    const std::string line = fmt::format("{}{}{} {} {}", first && !is_input ? type_of(contribution.tensor) + " " : "",
                                         adjoints_.at(contribution.tensor), contribution.subscripts, op, value);
    lines_ += fmt::format("  {}{}\n", line, clauses(number, line));
  }

  /// What a narrow tensor gets of a wide sum, whose terms are not rounded one by one.
  void add_sum(size_t number, const Contribution& contribution) {
    const Tensor& to = tensor(contribution.tensor);
    const std::string sum = fmt::format("{}{}", unused(fmt::format("s{}", ++sums_)), to.name);
    const std::string terms = fmt::format("{}{} {} {}{}\n", sum, contribution.subscripts,
                                          contribution.all ? "+=!" : "+=", contribution.value, clauses(number, ""));
    const std::string wide = fmt::format("{} ", name_of(has_float64() ? ScalarType::kFloat64 : ScalarType::kFloat32));
    if (!contribution.all) lines_ += fill(wide + sum, contribution.tensor, "0.0", "");
    lines_ += fmt::format("  {}{}", contribution.all ? wide : "", terms);
    const bool first = begun_.insert(contribution.tensor).second;
    const std::string type = first && to.role != Role::kInput ? type_of(contribution.tensor) + " " : "";
    lines_ += everywhere(contribution.tensor, [&](const std::string& subscripts) {
      return fmt::format("{}{}{} {} {}({}{})", type, adjoints_.at(contribution.tensor), subscripts,
                         first ? "=" : "+=", type_of(contribution.tensor), sum, subscripts);
    });
  }

  // The def.

  /// The inputs whose gradients the lines make.
  std::vector<int> gradients() const {
    std::vector<int> inputs;
    std::ranges::copy_if(begun_, std::back_inserter(inputs), [&](int t) { return tensor(t).role == Role::kInput; });
    return inputs;
  }

  /// The statements that make the temporaries which the gradients' lines read.
  std::string computed_again() const {
    std::string lines, wanted = lines_;
    for (size_t number = definition_.statements.size(); number-- > 0;) {
      if (written_by(number).role != Role::kTemporary || !mentions(wanted, written_by(number).name)) continue;
      const std::string line = computed_again(number);
      lines = line + lines;
      wanted += line;
    }
    return lines;
  }

  std::string computed_again(size_t number) const {
    const TypedStatement& s = statement(number);
    const std::string& name = written_by(number).name;
    const std::optional<int> before = state_before(number);
    const bool begins = begins_state(number);
    // Nothing else gives a tensor that was declared its extents, now that it is a temporary.
    const bool filled = begins && (before || !writes_all(number));
    const std::string type(name_of(written_by(number).type));
    const std::string line =
        fmt::format("  {}{}{} {} {}{}\n", begins && !filled ? type + " " : "", name, left_of(number), spelling_of(s.op),
                    text_of(number, *s.right), clauses(number, ""));
    if (!filled) return line;
    return fill(type + " " + name, s.tensor, type + "(0)", before ? reference_text(*before) : "") + line;
  }

  const std::vector<std::string>& extents_of(int t) const { return inferred_.extents[static_cast<size_t>(t)]; }

  /// "(N, M + 1)": as declared, or as inferred.
  std::string dimensions_of(int t) const { return fmt::format("({})", fmt::join(declared_dimensions(t), ", ")); }

  std::vector<std::string> declared_dimensions(int t) const {
    static const TypedStatement none{};
    std::vector<std::string> dimensions;
    if (tensor(t).dimensions) {
      for (const TypedExprPtr& dimension : *tensor(t).dimensions) {
        dimensions.push_back(index_text(definition_, none, *dimension));
      }
    }
    for (const std::string& extent : tensor(t).dimensions ? std::vector<std::string>{} : extents_of(t)) {
      const auto named = named_extents_.find(extent);
      dimensions.push_back(named == named_extents_.end() ? extent : named->second);
    }
    if (dimensions.empty()) dimensions.emplace_back("1");
    return dimensions;
  }

  /// A parameter's dimensions are made of sizes: an extent that is not, as max(N, 3) or (H - K) / stride + 1, gets a
  /// size of its own, extent_NAME_DIMENSION.
  void name_extents() {
    for (size_t t = 0; t < definition_.tensors.size(); ++t) {
      if (definition_.tensors[t].dimensions || definition_.tensors[t].role == Role::kTemporary) continue;
      const std::vector<std::string>& extents = extents_of(static_cast<int>(t));
      for (size_t d = 0; d < extents.size(); ++d) {
        if (is_dimension(extents[d])) continue;
        std::string name = fmt::format("extent_{}_{}", definition_.tensors[t].name, d);
        while (names_.contains(name)) name += "_";
        named_extents_.try_emplace(extents[d], name);
      }
    }
  }
  bool is_dimension(const std::string& extent) const {
    const bool has_function = extent.find("max(") != std::string::npos || extent.find("min(") != std::string::npos ||
                              extent.find_first_of("%?<>=!") != std::string::npos;
    return !has_function && std::ranges::none_of(definition_.scalars,
                                                 [&](const Scalar& scalar) { return mentions(extent, scalar.name); });
  }

  bool names_alone(int t, const std::string& size) const {
    const std::vector<std::string> dimensions = declared_dimensions(t);
    return std::ranges::find(dimensions, size) != dimensions.end();
  }

  bool has_adjoint(int result) const { return mentions(lines_, d(tensor(result))); }

  bool is_extent_of_adjoint(const std::string& size) const {
    return std::ranges::any_of(definition_.results, [&](int t) { return has_adjoint(t) && names_alone(t, size); });
  }

  /// Inputs that the statements read, and those by which a call gives the sizes their values.
  std::set<int> needed_inputs() const {
    std::set<int> needed;
    for (size_t t = 0; t < definition_.tensors.size(); ++t) {
      const Tensor& input = definition_.tensors[t];
      if (input.role == Role::kInput && mentions(lines_, input.name)) needed.insert(static_cast<int>(t));
    }
    for (const Size& size : definition_.sizes) {
      const auto by = [&](int t) { return names_alone(t, size.name); };
      if (std::ranges::any_of(needed, by) || is_extent_of_adjoint(size.name)) continue;
      for (size_t t = 0; t < definition_.tensors.size(); ++t) {
        if (definition_.tensors[t].role != Role::kInput || !by(static_cast<int>(t))) continue;
        needed.insert(static_cast<int>(t));
        break;
      }
    }
    return needed;
  }

  std::string parameter(int t) const {
    return fmt::format("{}{} {}", name_of(tensor(t).type), dimensions_of(t), tensor(t).name);
  }
  std::string gradient_parameter(int t) const {
    return fmt::format("{}{} {}", type_of(t), dimensions_of(t), d(tensor(t)));
  }

  std::string whole() const {
    const std::set<int> needed = needed_inputs();
    std::vector<std::string> parameters;
    for (const Argument& argument : definition_.arguments) {
      if (argument.is_scalar) {
        const Scalar& scalar = definition_.scalars[static_cast<size_t>(argument.id)];
        if (mentions(lines_, scalar.name))
          parameters.push_back(fmt::format("{} {}", name_of(scalar.type), scalar.name));
      } else if (needed.contains(argument.id)) {
        parameters.push_back(parameter(argument.id));
      }
    }
    for (int t : definition_.results) {
      if (mentions(lines_, tensor(t).name)) parameters.push_back(parameter(t));
    }
    for (int t : definition_.results) {
      if (has_adjoint(t)) parameters.push_back(gradient_parameter(t));
    }
    std::vector<std::string> results;
    for (int t : gradients()) {
      results.push_back(tensor(t).rank == 0 ? type_of(t) + " " + d(tensor(t)) : gradient_parameter(t));
    }
    return fmt::format("def {}_gradient({}) -> ({}) {{\n{}}}\n", definition_.name, fmt::join(parameters, ", "),
                       fmt::join(results, ", "), lines_);
  }

  const TypedDefinition definition_;
  const std::map<int, int> before_;
  const SourcePtr& source_;
  const InferredRanges inferred_;
  const std::set<std::string> names_;
  std::set<std::string> tensor_names_;                ///< without those of indices, which statements may share
  std::string prefix_ = "d_";                         ///< of gradients
  std::map<std::string, std::string> named_extents_;  ///< sizes for what is no dimension's text
  Adjoints adjoints_;
  bool chained_ = false;  ///< statements read what others write: ranges are written out
  std::set<int> begun_;   ///< tensors whose adjoints have contents
  int sums_ = 0;
  std::string lines_;
};

}  // namespace

Result<std::string> gradient(const TypedDefinition& definition, const SourcePtr& source, InferredRanges inferred) {
  SingleAssignment single = single_assignment(definition, inferred);
  return DefGradient(std::move(single), source, std::move(inferred)).run();
}

}  // namespace tc::lang
