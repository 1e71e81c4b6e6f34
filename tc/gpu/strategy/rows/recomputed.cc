#include "tc/gpu/strategy/rows/recomputed.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tc/gpu/mapping/row_access.h"
#include "tc/gpu/rewrite/recompute.h"
#include "tc/gpu/rewrite/statements.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr size_t kMostReads = 16;  ///< of a value

/// A definition's value over a reader's indices.
Expr value_for(const GroupStatement& definition, const GroupStatement& reader) {
  std::map<std::string, Expr> indices;
  const auto name = [](const GroupStatement& s, int index) -> const std::string& {
    return s.statement->indices[static_cast<size_t>(index)];
  };
  for (size_t m = 0; m < definition.shared.size(); ++m) {
    indices[name(definition, definition.shared[m])] = index_variable(name(reader, reader.shared[m]));
  }
  const std::vector<int> from = loops_of(definition), to = loops_of(reader);
  for (size_t l = 0; l < from.size(); ++l) indices[name(definition, from[l])] = index_variable(name(reader, to[l]));
  for (const int i : definition.inner) {
    const ir::Range& range = definition.ranges[static_cast<size_t>(i)];
    if (range.extent == 1) indices[name(definition, i)] = index_constant(range.begin);
  }
  return hi::substitute(indices, definition.statement->value);
}

class Recompute {
 public:
  explicit Recompute(const FusedGroup& part) : result_(std::make_shared<RowsPart>(RowsPart{part, {}})) {}

  std::shared_ptr<const RowsPart> run() {
    std::vector<GroupStatement>& statements = result_->group.statements;
    bool any = false;
    for (size_t at = 0; at < statements.size();) {
      if (may_replace(at)) {
        replace(at);
        statements.erase(statements.begin() + static_cast<long>(at));
        any = true;
      } else {
        ++at;
      }
    }
    return any ? result_ : nullptr;
  }

 private:
  bool is_definition(const GroupStatement& s) const;
  bool may_replace(size_t at) const;
  bool is_read_alike(const GroupStatement& definition, const GroupStatement& reader) const;
  void replace(size_t at);

  std::shared_ptr<RowsPart> result_;
};

/// Whether the statement sets an element of a temporary, which nobody else sees, for each element of the row.
bool Recompute::is_definition(const GroupStatement& s) const {
  if (work_of(s) != RowWork::kElements || s.statement->kind != poly::Statement::Kind::kSet) return false;
  if (result_->group.is_seen_outside(s.statement->tensor)) return false;
  const Signature signature = signature_of(s, s.statement->subscripts);
  const size_t loops = loops_of(s).size();
  return is_plain(signature) && static_cast<size_t>(count_loops(signature, loops)) == loops;
}

/// Whether all that a statement reads of the definition's tensor is the element at its own place.
bool Recompute::is_read_alike(const GroupStatement& definition, const GroupStatement& reader) const {
  const Signature element = signature_of(definition, definition.statement->subscripts);
  const ir::Program& program = *result_->group.scop->program;
  for (const Expr& subscript : reader.statement->subscripts) {
    if (reads_tensor(subscript, definition.statement->tensor)) return false;
  }
  for (const hi::Call* read : ir::reads_in(program, reader.statement->value)) {
    if (read->name != definition.statement->tensor) continue;
    if (!same_loops(definition, reader) || !is_same(signature_of(reader, read->args), element)) return false;
  }
  return !compares_floats(reader.statement->value, definition.statement->tensor);
}

bool Recompute::may_replace(size_t at) const {
  const std::vector<GroupStatement>& statements = result_->group.statements;
  const GroupStatement& definition = statements[at];
  if (!is_definition(definition)) return false;
  const ir::Program& program = *result_->group.scop->program;
  std::set<std::string> sources;
  const auto of_value = ir::reads_in(program, definition.statement->value);
  for (const hi::Call* read : of_value) sources.insert(read->name);
  bool changed = false;
  for (size_t i = 0; i < statements.size(); ++i) {
    const poly::Statement& s = *statements[i].statement;
    if (i == at) continue;
    if (s.tensor == definition.statement->tensor) return false;
    changed = changed || (i > at && sources.count(s.tensor) > 0);
    const auto reads = ir::reads_in(program, s.value);
    const auto here = static_cast<size_t>(std::count_if(
        reads.begin(), reads.end(), [&](const hi::Call* read) { return read->name == definition.statement->tensor; }));
    if (!is_read_alike(definition, statements[i])) return false;
    if (here > 0 && (i < at || changed)) return false;
    if (reads.size() + here * of_value.size() > kMostReads) return false;
  }
  return true;
}

void Recompute::replace(size_t at) {
  std::vector<GroupStatement>& statements = result_->group.statements;
  const ir::Tensor& tensor = result_->group.scop->program->tensor(statements[at].statement->tensor);
  for (size_t i = at + 1; i < statements.size(); ++i) {
    if (!reads_tensor(statements[i].statement->value, statements[at].statement->tensor)) continue;
    auto changed = std::make_unique<poly::Statement>(*statements[i].statement);
    const Expr value = value_for(statements[at], statements[i]);
    changed->value = with_reads_as(changed->value, tensor.name,
                                   value.type() == tensor.type ? value : hi::Cast::make(tensor.type, value));
    statements[i].statement = changed.get();
    result_->own.push_back(std::move(changed));
  }
  result_->group.inlined.insert(statements[at].statement->id);
}

}  // namespace

std::shared_ptr<const RowsPart> recompute_elements(const FusedGroup& part) { return Recompute(part).run(); }

}  // namespace tc::gpu
