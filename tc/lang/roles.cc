#include "tc/lang/scope.h"
#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

/// Follows the statements in order with what has been written so far.
class Roles {
 public:
  Roles(Scope& scope, Report& report)
      : scope_(scope), report_(report), written_(scope.definition.tensors.size(), false), complained_(written_) {}

  void run() {
    for (size_t s = 0; s < scope_.written.size(); ++s) {
      const Statement& statement = scope_.source->statements[s];
      read_all(*statement.right);
      for (const ExprPtr& subscript : statement.subscripts) read_all(*subscript);
      for (const Clause& clause : statement.clauses) {
        if (const auto* let = std::get_if<LetClause>(&clause.node)) read_all(*let->value);
      }
      if (scope_.written[s] >= 0) write(statement, scope_.written[s]);
    }
  }

 private:
  void read_all(const Expr& expr) {
    walk(expr, [&](const Expr& e) {
      std::string_view name;
      if (const auto* use = std::get_if<NameUse>(&e.node)) name = use->name;
      if (const auto* apply = std::get_if<Apply>(&e.node)) name = apply->name.text;
      const auto tensor = scope_.tensors.find(name);
      // A bare name is a read of a tensor without dimensions only; of others it is an error of its own.
      if (tensor == scope_.tensors.end()) return;
      if (std::holds_alternative<NameUse>(e.node) && scope_.definition.tensors[tensor->second].rank > 0) return;
      read(tensor->second, e.range);
    });
  }

  void read(int id, SourceRange range) {
    Tensor& tensor = scope_.definition.tensors[id];
    if (written_[id] || tensor.role == Role::kInput) return;
    if (tensor.role != Role::kTemporary) {
      tensor.role = Role::kInOut;  // C4
    } else if (!complained_[id]) {
      complained_[id] = true;
      report_
          .error(range, "'{}' is read before it is written, and it is not a result", tensor.name)  // C4
          ->notes.push_back(scope_.declared_here(id));
    }
  }

  void write(const Statement& statement, int id) {
    Tensor& tensor = scope_.definition.tensors[id];
    const bool accumulates = is_reducing(statement.op) && !starts_from_identity(statement.op);
    if (accumulates && !written_[id]) {
      if (tensor.role != Role::kTemporary) {
        tensor.role = Role::kInOut;  // C2
      } else if (!complained_[id]) {
        report_.error(statement.op_range,
                      "'{0}' accumulates into '{1}', which nothing has written and which is not a "
                      "result: write '{0}!' to start from nothing",
                      spelling_of(statement.op), tensor.name);  // C2
      }
    }
    written_[id] = true;
  }

  Scope& scope_;
  Report& report_;
  std::vector<bool> written_;
  std::vector<bool> complained_;
};

}  // namespace

void find_roles(Scope& scope, Report& report) { Roles(scope, report).run(); }

}  // namespace tc::lang
