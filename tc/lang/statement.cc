#include "tc/lang/statement.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "tc/lang/advice.h"
#include "tc/lang/intrinsics.h"
#include "tc/lang/numbers.h"
#include "tc/lang/typing.h"
#include "tc/lang/walk.h"
#include "tc/support/nearest.h"

namespace tc::lang {
namespace {

class StatementAnalysis {
 public:
  StatementAnalysis(Scope& scope, int statement, Report& report)
      : scope_(scope),
        source_(scope.source->statements[statement]),
        report_(report),
        errors_before_(report.size()),
        names_{scope, {}, {}, {}} {
    typed_.tensor = scope.written[statement];
    typed_.op = source_.op;
    typed_.range = source_.range;
    typed_.left_range = source_.left_range;
  }

  std::optional<TypedStatement> run() {
    declare_lets();
    declare_ranges();
    if (failed() || !small_enough()) return std::nullopt;
    collect_indices();
    check_left();
    check_reductions();
    check_lets_are_used();
    check_exists();
    check_bounds();
    if (failed()) return std::nullopt;
    type_all();
    if (failed()) return std::nullopt;
    return std::move(typed_);
  }

 private:
  bool failed() const { return report_.size() > errors_before_ || report_.size() >= kMaxErrors; }

  // C9, C10: what the clauses name.

  /// False when the name has another meaning.
  bool free_name(const Name& name, std::string_view kind) {
    const Resolved resolved = names_.resolve(name.text);
    const auto clash = [&](std::string_view what, std::optional<SourceRange> where) {
      Diagnostic* error =
          report_.error(name.range, "'{}' is {} already, so it cannot name {}", name.text, what, kind);  // C9
      if (where) error->notes.push_back({where, fmt::format("'{}' is declared here", name.text)});
      return false;
    };
    switch (resolved.kind) {
      case NameKind::kIndex:
        return true;
      case NameKind::kLet:
        return clash("a let", names_.lets[resolved.id].clause->name.range);
      case NameKind::kSize:
        return clash("a size", scope_.definition.sizes[resolved.id].range);
      case NameKind::kScalar:
        return clash("a scalar", scope_.definition.scalars[resolved.id].range);
      case NameKind::kTensor:
        return clash("a tensor", scope_.definition.tensors[resolved.id].range);
      case NameKind::kIntrinsic:
        return clash("an intrinsic", std::nullopt);
    }
    return true;
  }

  /// A let may use the lets before it.
  void declare_lets() {
    std::map<std::string, SourceRange, std::less<>> later;
    for (const Clause& clause : source_.clauses) {
      if (const auto* let = std::get_if<LetClause>(&clause.node)) later.emplace(let->name.text, let->name.range);
    }
    for (const Clause& clause : source_.clauses) {
      const auto* let = std::get_if<LetClause>(&clause.node);
      if (!let || !free_name(let->name, "a let")) continue;
      walk(*let->value, [&](const Expr& expr) {
        const auto* use = std::get_if<NameUse>(&expr.node);
        if (!use || names_.let_ids.contains(use->name) || !later.contains(use->name)) return;
        report_
            .error(expr.range, "the let '{}' is used before it has a value", use->name)  // C10
            ->notes.push_back({later.at(use->name), fmt::format("'{}' is named here", use->name)});
      });
      LetFacts facts{let, names_.classify(*let->value), names_.classify(*let->value, true)};
      facts.height = 1 + measure(*let->value, facts.nodes);
      if (const auto index = scope_.index_names.find(let->name.text); index != scope_.index_names.end()) {
        report_
            .error(let->name.range, "'{}' is a let here and an index elsewhere", let->name.text)  // C9
            ->notes.push_back({index->second, fmt::format("'{}' is an index here", let->name.text)});
      }
      names_.let_ids.emplace(let->name.text, names_.lets.size());
      names_.lets.push_back(facts);
      scope_.let_names.emplace(let->name.text, let->name.range);
    }
  }

  void declare_ranges() {
    for (const Clause& clause : source_.clauses) {
      const auto* range = std::get_if<RangeClause>(&clause.node);
      if (!range || !free_name(range->index, "an index")) continue;
      const auto [at, fresh] = ranges_.emplace(range->index.text, &clause);
      if (fresh) continue;
      report_
          .error(range->index.range, "the index '{}' has a range already", range->index.text)  // C10
          ->notes.push_back({at->second->range, "it is given here"});
    }
  }

  /// The height of a tree with its lets replaced; adds its nodes to `nodes`.
  int measure(const Expr& expr, size_t& nodes) const {
    int height = 0;
    ++nodes;
    if (const auto* use = std::get_if<NameUse>(&expr.node)) {
      if (const auto let = names_.let_ids.find(use->name); let != names_.let_ids.end()) {
        height = names_.lets[let->second].height;
        nodes = std::min(nodes + names_.lets[let->second].nodes, 2 * kMaxNodes);
      }
    }
    for_each_child(expr, [&](const Expr& child) { height = std::max(height, measure(child, nodes)); });
    return std::min(height, 2 * kMaxHeight) + 1;
  }

  /// Lets can multiply a statement: each use counts in full.
  bool small_enough() {
    int height = 0;
    size_t nodes = 0;
    for_each_expression([&](const Expr& expr) { height = std::max(height, measure(expr, nodes)); });
    for (const LetFacts& let : names_.lets) {
      height = std::max(height, let.height);
      nodes = std::max(nodes, let.nodes);
    }
    if (height > kMaxHeight) {
      report_.error(source_.left_range,
                    "this statement is nested too deeply when its lets are replaced: at most {} levels "
                    "are allowed",
                    kMaxHeight);
    } else if (nodes > kMaxNodes) {
      report_.error(source_.left_range,
                    "this statement is too large when its lets are replaced: at most {} operations are "
                    "allowed",
                    kMaxNodes);
    }
    return !failed();
  }

  /// The left subscripts, the right side, the bounds, and what must exist.
  template <typename Visit>
  void for_each_expression(Visit&& visit) const {
    for (const ExprPtr& subscript : source_.subscripts) visit(*subscript);
    visit(*source_.right);
    for (const Clause& clause : source_.clauses) {
      if (const auto* range = std::get_if<RangeClause>(&clause.node)) {
        visit(*range->low);
        visit(*range->high);
      } else if (const auto* exists = std::get_if<ExistsClause>(&clause.node)) {
        visit(*exists->expression);
      }
    }
  }

  // C1: the indices.

  /// Calls visit(name, range) for each index in an expression, in the lets that it uses too; each let once.
  template <typename Visit>
  void for_each_index(const Expr& expr, std::set<int>& seen_lets, Visit&& visit) {
    walk(expr, [&](const Expr& e) {
      const auto* use = std::get_if<NameUse>(&e.node);
      if (!use) return;
      const Resolved resolved = names_.resolve(use->name);
      if (resolved.kind == NameKind::kIndex) {
        visit(use->name, e.range);
      } else if (resolved.kind == NameKind::kLet && seen_lets.insert(resolved.id).second) {
        names_.lets[resolved.id].used = true;
        for_each_index(*names_.lets[resolved.id].clause->value, seen_lets, visit);
      }
    });
  }

  void collect_indices() {
    std::set<int> lets;
    IndexKind kind = IndexKind::kMap;
    const auto add = [&](const std::string& name, SourceRange range) {
      if (!names_.indices.emplace(name, typed_.indices.size()).second) return;
      typed_.indices.push_back({name, kind, range, std::nullopt});
      check_one_meaning(name, range);
    };
    for (const ExprPtr& subscript : source_.subscripts) for_each_index(*subscript, lets, add);
    typed_.map_indices = static_cast<int>(typed_.indices.size());
    kind = IndexKind::kReduction;
    lets.clear();
    for_each_index(*source_.right, lets, add);
    for (const Clause& clause : source_.clauses) {
      // C10: also an index that the right side does not use.
      if (const auto* range = std::get_if<RangeClause>(&clause.node)) add(range->index.text, range->index.range);
    }
  }

  /// C9: an index in one statement is no let in another.
  void check_one_meaning(const std::string& name, SourceRange range) {
    scope_.index_names.emplace(name, range);
    if (const auto let = scope_.let_names.find(name); let != scope_.let_names.end()) {
      report_
          .error(range, "'{}' is an index here and a let elsewhere", name)  // C9
          ->notes.push_back({let->second, fmt::format("'{}' is a let here", name)});
    }
  }

  /// C7. With `=` the left side reads no tensor.
  void check_left() {
    if (is_reducing(source_.op)) {
      if (scope_.definition.tensors[typed_.tensor].type == ScalarType::kBool) {
        report_.error(source_.op_range, "'{}' reduces numbers, and '{}' is bool", spelling_of(source_.op),
                      source_.tensor.text);  // T4
      }
      return;
    }
    for (const ExprPtr& subscript : source_.subscripts) {
      if (is_left_arithmetic(*subscript)) continue;
      if (find_constant(report_.source()->text(subscript->range))) {
        report_.error(subscript->range, "'{}' is a constant, so it cannot be an index",
                      report_.source()->text(subscript->range));  // C9
        continue;
      }
      report_.error(subscript->range,
                    "with '=' a subscript on the left is made of indices, sizes, integer scalars and numbers, and '{}' "
                    "is not: it needs a reducing operator such as '+='",
                    report_.source()->text(subscript->range));  // C7
    }
  }

  /// Indices, sizes, extents, integer scalars and integer numbers with + - * / and %, lets of these too.
  bool is_left_arithmetic(const Expr& expr) const {
    if (const auto* use = std::get_if<NameUse>(&expr.node)) {
      const Resolved name = names_.resolve(use->name);
      if (name.kind == NameKind::kLet) return is_left_arithmetic(*names_.lets[name.id].clause->value);
      return name.kind == NameKind::kIndex || name.kind == NameKind::kSize ||
             (name.kind == NameKind::kScalar && is_integer(scope_.definition.scalars[name.id].type));
    }
    if (const auto* unary = std::get_if<Unary>(&expr.node)) {
      return unary->op == UnaryOp::kNegate && is_left_arithmetic(*unary->operand);
    }
    if (const auto* binary = std::get_if<Binary>(&expr.node)) {
      return !is_logic(binary->op) && !is_comparison(binary->op) && is_left_arithmetic(*binary->left) &&
             is_left_arithmetic(*binary->right);
    }
    return std::holds_alternative<IntegerLiteral>(expr.node) || std::holds_alternative<ExtentUse>(expr.node);
  }

  /// A call of `sum` is why there is a reduction; else the name may be misspelt.
  std::string reduction_note() const {
    std::string note = "a name that is not declared is an index";
    walk(*source_.right, [&](const Expr& expr) {
      const auto* apply = std::get_if<Apply>(&expr.node);
      if (!apply || scope_.tensors.contains(apply->name.text)) return;
      if (find_intrinsic(apply->name.text)) {
        const auto advice = advice_for_intrinsic(apply->name.text, apply->arguments.size());
        if (!advice.empty()) note = advice;
        return;
      }
      if (const auto advice = advice_for_function(apply->name.text); !advice.empty()) note = advice;
    });
    for (size_t i = typed_.map_indices; i < typed_.indices.size(); ++i) {
      if (const auto advice = advice_for_word(typed_.indices[i].name); !advice.empty()) return std::string(advice);
    }
    // Short names are near to too many: the size of an index 'k' is often 'K'.
    const std::string& index = typed_.indices[typed_.map_indices].name;
    std::vector<std::string> declared;
    for (const LetFacts& let : names_.lets) declared.push_back(let.clause->name.text);
    for (const auto* names : {&scope_.sizes, &scope_.scalars, &scope_.tensors}) {
      for (const auto& [name, id] : *names) declared.push_back(name);
    }
    if (const std::string near = nearest(index, declared); index.size() > 2 && !near.empty()) {
      note += fmt::format("; did you mean '{}'?", near);
    }
    return note;
  }

  /// C1.
  void check_reductions() {
    if (is_reducing(source_.op) || typed_.indices.size() == static_cast<size_t>(typed_.map_indices)) return;
    std::string names;
    for (size_t i = typed_.map_indices; i < typed_.indices.size(); ++i) {
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", typed_.indices[i].name);
    }
    const bool many = typed_.indices.size() > static_cast<size_t>(typed_.map_indices) + 1;
    report_
        .error(typed_.indices[typed_.map_indices].range,
               "'=' cannot reduce over {} {}, which {} not on the left: write "
               "'+=!' or another reducing operator",
               many ? "the indices" : "the index", names, many ? "are" : "is")  // C1
        ->notes.push_back({std::nullopt, reduction_note()});
  }

  void check_lets_are_used() {
    std::set<int> lets;
    const auto ignore = [](const std::string&, SourceRange) {};
    for_each_expression([&](const Expr& expr) { for_each_index(expr, lets, ignore); });
    for (const LetFacts& let : names_.lets) {
      if (!let.used) report_.error(let.clause->name.range, "the let '{}' is not used", let.clause->name.text);  // C10
    }
  }

  void check_exists() {
    for (const Clause& clause : source_.clauses) {
      const auto* exists = std::get_if<ExistsClause>(&clause.node);
      if (!exists) continue;
      std::set<int> lets;
      for_each_index(*exists->expression, lets, [&](const std::string& name, SourceRange range) {
        if (names_.indices.contains(name)) return;
        report_.error(range, "the index '{}' appears after 'exists' only, so it has no part in the statement",
                      name);  // C10
      });
    }
  }

  /// Bounds hold for the whole statement: no index, no tensor.
  void check_bounds() {
    for (const auto& [name, clause] : ranges_) {
      const auto& range = std::get<RangeClause>(clause->node);
      for (const ExprPtr& bound : {range.low, range.high}) {
        std::set<int> lets;
        check_bound(*bound, name, lets);
      }
    }
  }

  void check_bound(const Expr& bound, const std::string& index, std::set<int>& seen_lets) {
    walk(bound, [&](const Expr& expr) {
      if (const auto* apply = std::get_if<Apply>(&expr.node); apply && scope_.tensors.contains(apply->name.text)) {
        report_.error(expr.range, "the range of '{}' cannot read the tensor '{}'", index, apply->name.text);  // C10
      }
      const auto* use = std::get_if<NameUse>(&expr.node);
      if (!use) return;
      const Resolved resolved = names_.resolve(use->name);
      if (resolved.kind == NameKind::kIndex) {
        Diagnostic* error = report_.error(
            expr.range, "the range of '{}' cannot depend on the index '{}': guard the right side with '?:'", index,
            use->name);  // C10
        if (names_.indices.contains(use->name)) return;
        std::vector<std::string> declared;
        for (const auto* names : {&scope_.sizes, &scope_.scalars}) {
          for (const auto& [name, id] : *names) declared.push_back(name);
        }
        if (const std::string near = nearest(use->name, declared); !near.empty()) {
          error->notes.push_back({std::nullopt, fmt::format("did you mean '{}'?", near)});
        }
      } else if (resolved.kind == NameKind::kTensor) {
        report_.error(expr.range, "the range of '{}' cannot read the tensor '{}'", index, use->name);  // C10
      } else if (resolved.kind == NameKind::kLet && seen_lets.insert(resolved.id).second) {
        check_bound(*names_.lets[resolved.id].clause->value, index, seen_lets);
      }
    });
  }

  // Types.

  void type_all() {
    Typing typing(scope_, names_, report_);
    for (size_t let = 0; let < names_.lets.size(); ++let) {
      const Name& name = names_.lets[let].clause->name;
      typed_.lets.push_back({name.text, typing.let_value(static_cast<int>(let)), name.range});
    }
    if (failed()) return;
    for (const ExprPtr& subscript : source_.subscripts) {
      typed_.subscripts.push_back(typing.index(*subscript, "a subscript"));
    }
    ScalarType type = scope_.definition.tensors[typed_.tensor].type;
    if (is_float8(type) && is_reducing(source_.op)) type = ScalarType::kFloat32;  // T3
    typed_.right = typing.value_of_type(*source_.right, type, typed_.tensor);
    if (typed_.right && is_reducing(source_.op)) {
      remark_rounded_products(*typed_.right);
      if (source_.op == AssignOp::kSum || source_.op == AssignOp::kSumInit) remark_mixed_product(*typed_.right);
    }
    for (const Clause& clause : source_.clauses) {
      if (const auto* range = std::get_if<RangeClause>(&clause.node)) {
        type_range(*range, clause.range, typing);
      } else if (const auto* exists = std::get_if<ExistsClause>(&clause.node)) {
        typed_.exists.push_back(typing.value(*exists->expression));
      }
    }
  }

  /// T3. In the value of a reduction products of 16-bit floats are float32, but not below '/'.
  void remark_rounded_products(const TypedExpr& e) {
    if (const auto* cast = std::get_if<Cast>(&e.node); cast && !cast->implicit) return;  // it is meant
    if (std::holds_alternative<Intrinsic>(e.node) || std::holds_alternative<Read>(e.node)) return;
    for_each_child(e, [&](const TypedExpr& child) { remark_rounded_products(child); });
    const auto* quotient = std::get_if<TypedBinary>(&e.node);
    if (!quotient || quotient->op != BinaryOp::kDiv) return;
    const TypedExpr* dividend = quotient->left.get();
    while (const auto* cast = std::get_if<Cast>(&dividend->node)) {
      if (!cast->implicit) return;
      dividend = cast->operand.get();
    }
    const auto* product = std::get_if<TypedBinary>(&dividend->node);
    const bool is_rounded = dividend->type == ScalarType::kFloat16 || dividend->type == ScalarType::kBFloat16;
    if (!product || product->op != BinaryOp::kMul || !is_rounded) return;
    scope_.definition.remarks.push_back(
        {dividend->range,
         fmt::format("this product is rounded to {}, as '/' computes its operands in their own type: "
                     "make a factor a float(...) to divide in float32, or name it by 'where' if that is meant",
                     name_of(dividend->type))});
  }

  /// T3. A sum over products of two matrices, float32 and 16-bit: what one cast tells apart takes ten times as long.
  void remark_mixed_product(const TypedExpr& e) {
    const auto* product = std::get_if<TypedBinary>(&e.node);
    if (!product || product->op != BinaryOp::kMul || e.type != ScalarType::kFloat32) return;
    const auto tensor_in = [](const TypedExpr* factor) -> const TypedExpr* {
      while (const auto* cast = std::get_if<Cast>(&factor->node)) {
        if (!cast->implicit) return nullptr;  // it is meant
        factor = cast->operand.get();
      }
      return std::holds_alternative<Read>(factor->node) ? factor : nullptr;
    };
    const TypedExpr *a = tensor_in(product->left.get()), *b = tensor_in(product->right.get());
    if (!a || !b) return;
    const auto is_narrow = [](ScalarType type) {
      return type == ScalarType::kFloat16 || type == ScalarType::kBFloat16;
    };
    const TypedExpr *wide = is_narrow(a->type) ? b : a, *narrow = wide == a ? b : a;
    if (wide->type != ScalarType::kFloat32 || !is_narrow(narrow->type)) return;
    std::set<int> of_wide, of_narrow, shared;
    add_indices(*wide, of_wide);
    add_indices(*narrow, of_narrow);
    std::set_intersection(of_wide.begin(), of_wide.end(), of_narrow.begin(), of_narrow.end(),
                          std::inserter(shared, shared.begin()));
    if (shared.empty() || shared.size() == of_wide.size() || shared.size() == of_narrow.size()) return;
    const std::string& name = scope_.definition.tensors[std::get<Read>(wide->node).tensor].name;
    scope_.definition.remarks.push_back(
        {e.range, fmt::format("'{}' is float32, so this product of matrices is one of float32, which tensor cores do "
                              "not multiply: write {}({}(...)) if its digits suffice, or float32(...) around the other "
                              "factor if that is meant",
                              name, name_of(narrow->type), name)});
  }

  static void add_indices(const TypedExpr& e, std::set<int>& indices) {
    if (const auto* index = std::get_if<IndexRef>(&e.node)) indices.insert(index->index);
    for_each_child(e, [&](const TypedExpr& child) { add_indices(child, indices); });
  }

  void type_range(const RangeClause& range, SourceRange where, Typing& typing) {
    TypedExprPtr low = typing.index(*range.low, "a bound of a range");
    TypedExprPtr high = typing.index(*range.high, "a bound of a range");
    if (!low || !high) return;
    const auto* from = std::get_if<IntegerConstant>(&low->node);
    const auto* to = std::get_if<IntegerConstant>(&high->node);
    if (from && to && from->value >= to->value) {
      report_.error({range.low->range.begin, range.high->range.end}, "the range {}:{} of '{}' is {}", from->value,
                    to->value, range.index.text, from->value == to->value ? "empty" : "reversed");  // C10
    }
    typed_.indices[names_.indices.at(range.index.text)].given = IndexRange{low, high, where};
  }

  Scope& scope_;
  const Statement& source_;
  Report& report_;
  size_t errors_before_;
  StatementScope names_;
  std::map<std::string, const Clause*> ranges_;
  TypedStatement typed_;
};

}  // namespace

std::optional<TypedStatement> analyse_statement(Scope& scope, int statement, Report& report) {
  return StatementAnalysis(scope, statement, report).run();
}

}  // namespace tc::lang
