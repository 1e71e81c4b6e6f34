#include "tc/lang/single_assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tc/lang/typed_text.h"
#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

/// A tree in which reads of tensors are reads of those that stand for them now.
class Renaming {
 public:
  explicit Renaming(const std::map<int, int>& current) : current_(current) {}

  TypedExprPtr operator()(const TypedExprPtr& expr) const {
    TypedExpr copy = *expr;
    std::visit(Overloaded{
                   [&](Read& read) {
                     if (const auto found = current_.find(read.tensor); found != current_.end())
                       read.tensor = found->second;
                     rename(read.subscripts);
                   },
                   [&](TypedUnary& unary) { rename(unary.operand); },
                   [&](TypedBinary& binary) { rename(binary.left), rename(binary.right); },
                   [&](Select& select) { rename(select.condition), rename(select.if_true), rename(select.if_false); },
                   [&](Intrinsic& call) { rename(call.arguments); },
                   [&](Cast& cast) { rename(cast.operand); },
                   [&](LetRef& let) { rename(let.value); },
                   [](auto&) {},
               },
               copy.node);
    return std::make_shared<const TypedExpr>(std::move(copy));
  }

  void rename(TypedExprPtr& expr) const { expr = (*this)(expr); }
  void rename(std::vector<TypedExprPtr>& exprs) const {
    for (TypedExprPtr& expr : exprs) rename(expr);
  }

 private:
  const std::map<int, int>& current_;
};

void collect_reads(const TypedExpr& expr, std::set<int>& tensors) {
  for_each_read(expr, [&](const Read& read) { tensors.insert(read.tensor); });
}

/// PREFIX_NAME, or PREFIX2_NAME where the def has that name, ...
std::string fresh_name(const TypedDefinition& definition, const std::string& prefix, const std::string& name) {
  const std::set<std::string> taken = names_in(definition);
  std::string fresh = fmt::format("{}_{}", prefix, name);
  for (int n = 2; taken.contains(fresh); ++n) fresh = fmt::format("{}{}_{}", prefix, n, name);
  return fresh;
}

/// Follows the statements in order.
class Versions {
 public:
  Versions(TypedDefinition definition, InferredRanges& inferred)
      : definition_(std::move(definition)), inferred_(inferred) {}

  SingleAssignment run() {
    number();
    std::map<int, int> current;
    const size_t tensors = definition_.tensors.size();
    for (size_t t = 0; t < tensors; ++t) {
      if (definition_.tensors[t].role == Role::kInOut) current[static_cast<int>(t)] = old_values(static_cast<int>(t));
    }
    for (size_t s = 0; s < definition_.statements.size(); ++s) {
      TypedStatement& statement = definition_.statements[s];
      const Renaming rename(current);
      rename.rename(statement.right);
      rename.rename(statement.subscripts);
      rename.rename(statement.exists);
      const int tensor = statement.tensor;
      const bool first = s == histories_[tensor].first_of[static_cast<size_t>(state_of_[s])];
      const auto held = current.find(tensor);
      const int state = state_of_[s] == histories_[tensor].last() ? tensor : earlier(tensor, state_of_[s]);
      if (first && held != current.end() && keeps_[s]) before_[state] = held->second;
      definition_.statements[s].tensor = state;
      current[tensor] = state;
    }
    return {std::move(definition_), std::move(before_)};
  }

 private:
  struct History {
    std::vector<size_t> first_of = {0};  ///< for each state, its first statement; the caller's values come before
    std::vector<size_t> writers;         ///< of the last state
    int last() const { return static_cast<int>(first_of.size()) - 1; }
  };

  /// Which state of its tensor each statement leaves.
  void number() {
    std::set<int> read;  // since their states began
    for (size_t s = 0; s < definition_.statements.size(); ++s) {
      const TypedStatement& statement = definition_.statements[s];
      collect_reads(*statement.right, read);
      for (const TypedExprPtr& subscript : statement.subscripts) collect_reads(*subscript, read);
      History& history = histories_[statement.tensor];
      if (history.last() == 0 || read.contains(statement.tensor) || !goes_on(s, history)) {
        history.first_of.push_back(s);
        history.writers.clear();
        read.erase(statement.tensor);
      }
      history.writers.push_back(s);
      state_of_.push_back(history.last());
      keeps_.push_back(!replaces_all(s));
    }
  }

  Access left_of(size_t s) const {
    const TypedStatement& statement = definition_.statements[s];
    return {definition_, s, statement.tensor, statement.subscripts};
  }

  /// Whether a statement adds to the state that the one before it left.
  bool goes_on(size_t s, const History& history) const {
    const auto is_sum = [&](size_t writer) {
      const AssignOp op = definition_.statements[writer].op;
      return op == AssignOp::kSet || op == AssignOp::kSumInit || op == AssignOp::kSum;
    };
    if (!is_sum(s) || !std::ranges::all_of(history.writers, is_sum)) return false;
    if (definition_.statements[s].op == AssignOp::kSum) return true;
    if (data_choose(s)) return false;  // C2: all elements begin anew
    return std::ranges::all_of(history.writers,
                               [&](size_t writer) { return are_apart(left_of(writer), left_of(s), inferred_); });
  }

  bool data_choose(size_t s) const {
    return std::ranges::any_of(definition_.statements[s].subscripts,
                               [](const TypedExprPtr& subscript) { return reads_elements(*subscript); });
  }

  /// Whether nothing of the state before is left (C2: where data choose the elements, all begin anew).
  bool replaces_all(size_t s) const {
    return overwrites(definition_.statements[s].op) && (data_choose(s) || covers(left_of(s), inferred_));
  }

  /// The tensor that stands for an earlier state; made when it is first asked for.
  int earlier(int tensor, int state) {
    const auto [place, fresh] = made_.try_emplace({tensor, state}, static_cast<int>(definition_.tensors.size()));
    if (!fresh) return place->second;
    std::string name = fmt::format("{}_{}", definition_.tensors[static_cast<size_t>(tensor)].name, state);
    const std::set<std::string> taken = names_in(definition_);
    while (taken.contains(name)) name += "_";
    return add(tensor, name, Role::kTemporary);
  }

  /// The caller's values of a tensor that the def updates.
  int old_values(int tensor) {
    Tensor& updated = definition_.tensors[static_cast<size_t>(tensor)];
    updated.role = Role::kResult;
    const int old = add(tensor, fresh_name(definition_, "old", updated.name), Role::kInput);
    definition_.arguments.push_back({false, old});
    return old;
  }

  int add(int like, const std::string& name, Role role) {
    Tensor tensor = definition_.tensors[static_cast<size_t>(like)];
    tensor.name = name;
    tensor.role = role;
    tensor.dimensions.reset();
    definition_.tensors.push_back(std::move(tensor));
    inferred_.extents.push_back(inferred_.extents[static_cast<size_t>(like)]);
    return static_cast<int>(definition_.tensors.size()) - 1;
  }

  TypedDefinition definition_;
  InferredRanges& inferred_;
  std::map<int, History> histories_;
  std::vector<int> state_of_;                ///< that a statement leaves its tensor in
  std::vector<bool> keeps_;                  ///< whether a statement leaves elements as they were, or uses them
  std::map<std::pair<int, int>, int> made_;  ///< tensors for earlier states
  std::map<int, int> before_;
};

bool is_reducing_by_order(AssignOp op) {
  return op == AssignOp::kMax || op == AssignOp::kMaxInit || op == AssignOp::kMin || op == AssignOp::kMinInit;
}

/// Gives what maxima, minima and products reduce a tensor of its own.
class NamedValues {
 public:
  NamedValues(TypedDefinition& definition, InferredRanges& inferred) : definition_(definition), inferred_(inferred) {}

  void run() {
    for (size_t s = 0; s < definition_.statements.size(); ++s) {
      if (needs_name(definition_.statements[s])) name_value(s++);
    }
  }

 private:
  bool needs_name(const TypedStatement& statement) const {
    const bool ordered = is_reducing_by_order(statement.op);
    const ScalarType type = definition_.tensors[static_cast<size_t>(statement.tensor)].type;
    if (!is_float(type)) return false;
    if (!ordered && statement.op != AssignOp::kProduct && statement.op != AssignOp::kProductInit) return false;
    if (ordered && is_exact(definition_, *statement.right)) return false;
    const bool is_read = std::holds_alternative<Read>(statement.right->node);
    return !is_read || (ordered && is_narrow_float(type));
  }

  void name_value(size_t s) {
    TypedStatement value = definition_.statements[s];
    const Tensor& reduced = definition_.tensors[static_cast<size_t>(value.tensor)];
    const ScalarType type = is_narrow_float(reduced.type) ? ScalarType::kFloat32 : reduced.type;
    Tensor tensor{fresh_name(definition_, "v", reduced.name),
                  type,
                  static_cast<int>(value.indices.size()),
                  Role::kTemporary,
                  std::nullopt,
                  reduced.range};
    value.tensor = static_cast<int>(definition_.tensors.size());
    value.op = AssignOp::kSet;
    value.map_indices = static_cast<int>(value.indices.size());
    value.subscripts.clear();
    for (size_t i = 0; i < value.indices.size(); ++i) {
      value.indices[i].kind = IndexKind::kMap;
      value.subscripts.push_back(std::make_shared<const TypedExpr>(
          TypedExpr{IndexRef{static_cast<int>(i)}, ScalarType::kInt64, value.left_range}));
    }
    TypedExprPtr read =
        std::make_shared<const TypedExpr>(TypedExpr{Read{value.tensor, value.subscripts}, type, value.right->range});
    const auto cast_to = [](ScalarType to, const TypedExprPtr& expr, bool implicit) {
      return expr->type == to ? expr
                              : std::make_shared<const TypedExpr>(TypedExpr{Cast{expr, implicit}, to, expr->range});
    };
    definition_.statements[s].right = cast_to(reduced.type, read, false);
    value.right = cast_to(type, value.right, true);
    std::vector<std::string> extents;
    for (const auto& range : inferred_.indices[s]) extents.push_back(range.second);
    inferred_.extents.push_back(std::move(extents));
    inferred_.indices.insert(inferred_.indices.begin() + static_cast<long>(s), inferred_.indices[s]);
    definition_.tensors.push_back(std::move(tensor));
    definition_.statements.insert(definition_.statements.begin() + static_cast<long>(s), std::move(value));
  }

  TypedDefinition& definition_;
  InferredRanges& inferred_;
};

/// Functions that round nothing.
bool is_exact_function(const std::string& name) {
  static constexpr std::array<std::string_view, 17> kNames = {
      "abs",  "fabs",  "max",  "min",       "fmax",  "fmin",  "relu",     "clamp", "sign",
      "ceil", "floor", "rint", "nearbyint", "round", "trunc", "copysign", "select"};
  return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

void for_each_read(const TypedExpr& expr, const std::function<void(const Read&)>& visit) {
  walk(expr, [&](const TypedExpr& e) {
    if (const auto* read = std::get_if<Read>(&e.node)) visit(*read);
  });
}

std::set<int> tensors_read(const TypedExpr& expr) {
  std::set<int> tensors;
  collect_reads(expr, tensors);
  return tensors;
}

bool is_exact(const TypedDefinition& definition, const TypedExpr& expr) {
  const auto each = [&](const TypedExprPtr& child) { return is_exact(definition, *child); };
  const auto rounds = [](const TypedBinary& binary) {
    return is_float(binary.left->type) && !is_comparison(binary.op);
  };
  return std::visit(
      Overloaded{
          [&](const Read& read) {
            const Tensor& tensor = definition.tensors[static_cast<size_t>(read.tensor)];
            return tensor.role == Role::kInput && std::ranges::all_of(read.subscripts, each);
          },
          [&](const TypedUnary& unary) { return each(unary.operand); },
          [&](const TypedBinary& binary) { return !rounds(binary) && each(binary.left) && each(binary.right); },
          [&](const Select& select) { return each(select.condition) && each(select.if_true) && each(select.if_false); },
          [&](const Intrinsic& call) {
            return (!is_float(expr.type) || is_exact_function(call.name)) && std::ranges::all_of(call.arguments, each);
          },
          [&](const Cast& cast) { return each(cast.operand); },
          [&](const LetRef& let) { return each(let.value); },
          [](const auto&) { return true; },
      },
      expr.node);
}

bool overwrites(AssignOp op) { return op == AssignOp::kSet || starts_from_identity(op); }

SingleAssignment single_assignment(TypedDefinition definition, InferredRanges& inferred) {
  SingleAssignment single = Versions(std::move(definition), inferred).run();
  NamedValues(single.definition, inferred).run();
  return single;
}

}  // namespace tc::lang
