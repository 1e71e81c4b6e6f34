#include "tc/gpu/rewrite/drop_overwritten.h"

#include <algorithm>
#include <set>
#include <string>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {
namespace {

/// Whether a statement leaves nothing of what any element of its tensor held.
bool sets_all(const ir::Program& program, const ir::Statement& s) {
  if (s.guard.defined() || (s.reduces() && !s.initialises)) return false;
  if (std::any_of(s.indices.begin(), s.indices.end(), [](const auto& i) { return extent_of(i) <= 0; })) return false;
  const ir::Shape shape = ir::constant_shape(program.tensor(s.tensor));
  std::set<std::string> used;
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::optional<ir::LinearForm> form = ir::linear_form(s.subscripts[d]);
    if (!form || form->coefficients.size() != 1 || form->coefficients.begin()->second != 1) return false;
    const std::string& name = form->coefficients.begin()->first;
    const auto index =
        std::find_if(s.indices.begin(), s.indices.end(), [&](const ir::Index& i) { return i.name == name; });
    if (index == s.indices.end() || !used.insert(name).second) return false;
    if (begin_of(*index) + form->constant != 0 || extent_of(*index) != shape[d]) return false;
  }
  return true;
}

/// Whether what statement `at` writes is gone before anybody reads it.
bool is_overwritten(const ir::Program& program, size_t at) {
  const std::string& tensor = program.statements[at].tensor;
  for (size_t s = at + 1; s < program.statements.size(); ++s) {
    const ir::Statement& statement = program.statements[s];
    if (reads_tensor(statement, tensor)) return false;
    if (statement.tensor == tensor && sets_all(program, statement)) return true;
    if (statement.tensor == tensor && statement.reduces() && !statement.initialises) return false;
  }
  return program.tensor(tensor).role == ir::Role::kTemporary;
}

}  // namespace

ir::Program drop_overwritten(ir::Program program) {
  for (size_t s = program.statements.size(); s-- > 0;) {
    if (is_overwritten(program, s)) program.statements.erase(program.statements.begin() + static_cast<long>(s));
  }
  return program;
}

}  // namespace tc::gpu
