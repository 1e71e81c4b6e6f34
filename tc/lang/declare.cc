#include <set>

#include "tc/lang/intrinsics.h"
#include "tc/lang/literals.h"
#include "tc/lang/numbers.h"
#include "tc/lang/scope.h"
#include "tc/lang/walk.h"
#include "tc/support/nearest.h"
#include "tc/support/plural.h"

namespace tc::lang {
namespace {

class Declarations {
 public:
  Declarations(Scope& scope, Report& report) : scope_(scope), report_(report) {}

  void run() {
    const Definition& source = *scope_.source;
    scope_.definition.name = source.name.text;
    scope_.definition.range = source.name.range;
    for (const Parameter& parameter : source.parameters) {
      if (parameter.dimensions) declare_sizes(*parameter.dimensions, true);
    }
    for (const ResultDeclaration& result : source.results) {
      if (result.dimensions) declare_sizes(*result.dimensions, false);
    }
    for (const Parameter& parameter : source.parameters) declare_parameter(parameter);
    for (const ResultDeclaration& result : source.results) declare_result(result);
    for (const Statement& statement : source.statements) declare_written(statement);
    check_sizes();
    for (int result : scope_.definition.results) check_result(result);
  }

 private:
  std::vector<Tensor>& tensors() { return scope_.definition.tensors; }

  void declare_sizes(const std::vector<ExprPtr>& dimensions, bool of_parameter) {
    for (const ExprPtr& dimension : dimensions) {
      walk(*dimension, [&](const Expr& expr) {
        const auto* use = std::get_if<NameUse>(&expr.node);
        if (!use) return;
        if (scope_.sizes.try_emplace(use->name, scope_.sizes.size()).second) {
          scope_.definition.sizes.push_back({use->name, expr.range, false});
        }
        Size& size = scope_.definition.sizes[scope_.sizes.at(use->name)];
        if (!of_parameter) dimension_of_.try_emplace(use->name, report_.source()->text(dimension->range));
        const bool alone = &expr == dimension.get();
        if (alone && of_parameter) size.bound_by_parameter = true;
        if (alone) alone_somewhere_.insert(use->name);
      });
    }
  }

  /// What to write where a name is meant as both. Only a size that stands alone gets a value without the parameter.
  std::string size_or_scalar(const std::string& name) {
    const auto dimension = dimension_of_.find(name);
    if (alone_somewhere_.contains(name) || dimension == dimension_of_.end()) {
      return fmt::format(
          "leave the parameter out: a call gives '{0}' by the shapes of its tensors, or by name, as in {0}=8", name);
    }
    not_sizes_.insert(name);
    return fmt::format("leave the dimensions out, and give the range of the result's index by 'where i in 0:{}'",
                       dimension->second);
  }

  /// C9. False when the name is taken.
  bool free_name(const Name& name, std::string_view kind, bool may_be_size) {
    if (find_intrinsic(name.text)) {
      report_.error(name.range, "'{}' is an intrinsic, so it cannot name a {}", name.text, kind);  // C9
      return false;
    }
    const auto clash = [&](SourceRange where, std::string_view what) {
      Diagnostic* error =
          report_.error(name.range, "'{}' is a {} already, so it cannot name a {}", name.text, what, kind);  // C9
      error->notes.push_back({where, fmt::format("'{}' is declared here", name.text)});
      if (what == "size" && kind == "scalar") error->notes.push_back({std::nullopt, size_or_scalar(name.text)});
      return false;
    };
    if (auto at = scope_.scalars.find(name.text); at != scope_.scalars.end()) {
      return clash(scope_.definition.scalars[at->second].range, "scalar");
    }
    if (auto at = scope_.tensors.find(name.text); at != scope_.tensors.end()) {
      return clash(tensors()[at->second].range, "tensor");
    }
    if (auto at = scope_.sizes.find(name.text); at != scope_.sizes.end() && !may_be_size) {
      return clash(scope_.definition.sizes[at->second].range, "size");
    }
    return true;
  }

  int add_tensor(Tensor tensor, std::optional<ScalarType> type) {
    const int id = static_cast<int>(tensors().size());
    scope_.tensors.emplace(tensor.name, id);
    scope_.facts.push_back({type, type.has_value()});
    tensors().push_back(std::move(tensor));
    return id;
  }

  void declare_parameter(const Parameter& parameter) {
    const Name& name = parameter.name;
    if (!free_name(name, parameter.dimensions ? "tensor" : "scalar", parameter.dimensions.has_value())) return;
    if (!parameter.dimensions && is_float8(parameter.type)) {
      report_.error(parameter.range, "the scalar '{}' cannot be {}, which is a type of tensors: declare it float",
                    name.text, name_of(parameter.type));  // T8
      return;
    }
    if (!parameter.dimensions) {
      const int id = static_cast<int>(scope_.definition.scalars.size());
      scope_.scalars.emplace(name.text, id);
      scope_.definition.scalars.push_back({name.text, parameter.type, name.range, false});
      scope_.definition.arguments.push_back({true, id});
      return;
    }
    const int rank = static_cast<int>(parameter.dimensions->size());
    const int id = add_tensor(
        {name.text, parameter.type, rank, Role::kInput, dimensions(*parameter.dimensions), name.range}, parameter.type);
    scope_.definition.arguments.push_back({false, id});
  }

  void declare_result(const ResultDeclaration& result) {
    const Statement* first = nullptr;
    for (const Statement& statement : scope_.source->statements) {
      if (!first && statement.tensor.text == result.name.text) first = &statement;
    }
    const size_t rank = result.dimensions ? result.dimensions->size() : first ? first->subscripts.size() : 0;
    if (auto at = scope_.tensors.find(result.name.text);
        at != scope_.tensors.end() && tensors()[at->second].role == Role::kInput) {
      report_
          .error(result.name.range,
                 "'{0}' is a parameter already: a result that is read before it is written is in-out, "
                 "and is declared as a result only",
                 result.name.text)  // C9
          ->notes.push_back({tensors()[at->second].range, fmt::format("'{}' is declared here", result.name.text)});
      return;
    }
    if (!free_name(result.name, "result", rank > 0)) return;
    std::optional<std::vector<TypedExprPtr>> extents;
    if (result.dimensions) extents = dimensions(*result.dimensions);
    const int id = add_tensor({result.name.text, ScalarType::kFloat32, static_cast<int>(rank), Role::kResult,
                               std::move(extents), result.name.range},
                              result.type);
    scope_.definition.results.push_back(id);
  }

  /// The left side of a statement: a temporary, if nothing has declared it (C5).
  void declare_written(const Statement& statement) {
    const Name& name = statement.tensor;
    const auto known = scope_.tensors.find(name.text);
    if (known == scope_.tensors.end()) {
      if (!free_name(name, "tensor", !statement.subscripts.empty())) {
        scope_.written.push_back(-1);
        return;
      }
      const int rank = static_cast<int>(statement.subscripts.size());
      scope_.written.push_back(add_tensor(
          {name.text, ScalarType::kFloat32, rank, Role::kTemporary, std::nullopt, name.range}, statement.type));
      return;
    }
    scope_.written.push_back(check_left(statement, known->second) ? known->second : -1);
  }

  bool check_left(const Statement& statement, int id) {
    Tensor& tensor = tensors()[id];
    TensorFacts& facts = scope_.facts[id];
    if (tensor.role == Role::kInput) {
      report_
          .error(statement.left_range, "'{}' is an input and cannot be written", tensor.name)  // C4
          ->notes.push_back(scope_.declared_here(id));
      return false;
    }
    const auto rank = static_cast<int>(statement.subscripts.size());
    if (rank != tensor.rank) {
      report_
          .error(statement.left_range, "'{}' has {} but is indexed with {}", tensor.name,
                 plural(tensor.rank, "dimension"),
                 rank)  // C9
          ->notes.push_back(scope_.declared_here(id));
      return false;
    }
    if (!statement.type || facts.type == statement.type) return true;
    if (facts.declared) {
      report_
          .error(statement.left_range, "'{}' is {} already, so it cannot be {}", tensor.name, name_of(*facts.type),
                 name_of(*statement.type))  // C9
          ->notes.push_back(scope_.declared_here(id));
      return false;
    }
    facts = {statement.type, true};
    return true;
  }

  /// A result's rank comes from its first statement, so that statement decides which later ones are wrong.
  void check_result(int id) {
    for (const Statement& statement : scope_.source->statements) {
      if (statement.tensor.text == tensors()[id].name) return;
    }
    Diagnostic* error =
        report_.error(tensors()[id].range, "the result '{}' is never written", tensors()[id].name);  // C5
    std::vector<std::string> written;
    for (const Statement& statement : scope_.source->statements) written.push_back(statement.tensor.text);
    if (const std::string near = nearest(tensors()[id].name, written); !near.empty()) {
      error->notes.push_back(
          {std::nullopt, fmt::format("did you mean '{}' where '{}' is written?", tensors()[id].name, near)});
    }
  }

  /// A size gets its value where it stands alone: from a tensor of the caller's, or from the range of a result.
  void check_sizes() {
    for (const Size& size : scope_.definition.sizes) {
      if (find_intrinsic(size.name)) {
        report_.error(size.range, "'{}' is an intrinsic, so it cannot name a size", size.name);  // C9
      } else if (!alone_somewhere_.contains(size.name) && !scope_.scalars.contains(size.name) &&
                 !not_sizes_.contains(size.name)) {
        report_.error(size.range, "the size '{0}' stands alone in no dimension, so nothing gives it a value",
                      size.name);  // C9
      }
    }
  }

  std::vector<TypedExprPtr> dimensions(const std::vector<ExprPtr>& exprs) {
    std::vector<TypedExprPtr> typed;
    for (const ExprPtr& expr : exprs) {
      TypedExprPtr dimension = type_dimension(*expr);
      if (const auto* constant = dimension ? std::get_if<IntegerConstant>(&dimension->node) : nullptr) {
        if (constant->value < 0) {
          report_.error(expr->range, "a dimension cannot be negative: this one is {}", constant->value);
        }
      }
      typed.push_back(std::move(dimension));
    }
    return typed;
  }

  /// integer expression over size names and integers with + - * / and parentheses
  TypedExprPtr type_dimension(const Expr& expr) {
    const auto node = [&](TypedExpr::Node n) {
      return std::make_shared<const TypedExpr>(TypedExpr{std::move(n), ScalarType::kInt64, expr.range});
    };
    if (is_literal(expr)) {
      const auto value = evaluate_literal(expr, report_);
      if (!value) return nullptr;
      if (const auto* integer = std::get_if<int64_t>(&*value)) return node(IntegerConstant{*integer});
    } else if (const auto* use = std::get_if<NameUse>(&expr.node)) {
      return node(SizeRef{scope_.sizes.at(use->name)});
    } else if (const auto* unary = std::get_if<Unary>(&expr.node); unary && unary->op == UnaryOp::kNegate) {
      TypedExprPtr operand = type_dimension(*unary->operand);
      return operand ? node(TypedUnary{unary->op, operand}) : nullptr;
    } else if (const auto* binary = std::get_if<Binary>(&expr.node);
               binary && binary->op >= BinaryOp::kAdd && binary->op != BinaryOp::kMod) {
      TypedExprPtr left = type_dimension(*binary->left);
      TypedExprPtr right = type_dimension(*binary->right);
      return left && right ? node(TypedBinary{binary->op, left, right}) : nullptr;
    }
    if (find_constant(report_.source()->text(expr.range))) {
      report_.error(expr.range, "'{}' is a constant, so it cannot be a size",
                    report_.source()->text(expr.range));  // C9
      return nullptr;
    }
    report_.error(expr.range, "a dimension is made of size names and integers with + - * / and parentheses");
    return nullptr;
  }

  Scope& scope_;
  Report& report_;
  std::set<std::string> alone_somewhere_;
  std::map<std::string, std::string> dimension_of_;  ///< of the results: the first with the size, as text
  std::set<std::string> not_sizes_;                  ///< scalars in the dimensions, which have had their error
};

}  // namespace

void declare_names(Scope& scope, Report& report) { Declarations(scope, report).run(); }

}  // namespace tc::lang
