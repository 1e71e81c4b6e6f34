#include "tc/gpu/rewrite/trailing_units.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {
namespace {

using Halide::Expr;

/// Whether a subscript of a left side has one value because its indices have: others tell instances apart, or data do.
bool has_one_value(const ir::Statement& s, const Expr& subscript) {
  if (ir::is_data_dependent(subscript)) return false;
  return std::all_of(s.indices.begin(), s.indices.end(), [&](const ir::Index& index) {
    return !ir::mentions(subscript, index.name) || (extent_of(index) == 1 && !index.is_reduction);
  });
}

/// The tensors that are read where a guard says so: it may be about the dimension (guarded_read()).
class GuardedReads : public Halide::Internal::IRVisitor {
 public:
  std::set<std::string> tensors;

 private:
  using IRVisitor::visit;
  void visit(const Halide::Internal::Call* op) override {
    const bool before = is_guarded_;
    is_guarded_ = before || op->is_intrinsic(Halide::Internal::Call::if_then_else);
    if (is_guarded_) tensors.insert(op->name);
    IRVisitor::visit(op);
    is_guarded_ = before;
  }
  bool is_guarded_ = false;
};

/// Dimensions that a tensor keeps.
size_t kept_dims(const ir::Program& program, const ir::Tensor& tensor) {
  const ir::Shape shape = ir::constant_shape(tensor);
  const auto is_unit = [&](size_t d) {
    return shape[d] == 1 && std::all_of(program.statements.begin(), program.statements.end(), [&](const auto& s) {
             return s.tensor != tensor.name || has_one_value(s, s.subscripts[d]);
           });
  };
  size_t kept = shape.size();
  while (tensor.strides.empty() && kept > 1 && is_unit(kept - 1)) --kept;
  return kept;
}

bool is_mentioned(const ir::Statement& s, const std::string& index) {
  return std::any_of(s.subscripts.begin(), s.subscripts.end(),
                     [&](const Expr& subscript) { return ir::mentions(subscript, index); });
}

/// Takes out indices of one value that the left side no longer has.
void drop_indices(ir::Statement& s, const ir::Statement& before) {
  for (size_t i = s.indices.size(); i-- > 0;) {
    const ir::Index index = s.indices[i];
    const bool is_gone = !index.is_reduction && is_mentioned(before, index.name) && !is_mentioned(s, index.name);
    if (!is_gone || extent_of(index) != 1) continue;
    const ir::Substitution value = {{index.name, index_constant(begin_of(index))}};
    s.indices.erase(s.indices.begin() + static_cast<long>(i));
    ir::transform_expressions(s, [&](const Expr& e) { return ir::substitute_variables(e, value); });
  }
  s.accesses.clear();
}

}  // namespace

ir::Program drop_trailing_units(ir::Program program) {
  GuardedReads guarded;
  for (const ir::Statement& s : program.statements) s.value.accept(&guarded);
  std::map<std::string, size_t> kept;
  for (const ir::Tensor& tensor : program.tensors) {
    if (guarded.tensors.count(tensor.name) > 0) continue;
    if (const size_t dims = kept_dims(program, tensor); dims < tensor.extents.size()) kept[tensor.name] = dims;
  }
  if (kept.empty()) return program;
  const std::vector<ir::Statement> before = program.statements;
  program = with_subscripts(std::move(program), [&](const std::string& tensor, const std::vector<Expr>& old) {
    const auto found = kept.find(tensor);
    const size_t dims = found == kept.end() ? old.size() : found->second;
    return std::vector<Expr>(old.begin(), old.begin() + static_cast<long>(dims));
  });
  for (ir::Tensor& tensor : program.tensors) {
    if (const auto found = kept.find(tensor.name); found != kept.end()) tensor.extents.resize(found->second);
  }
  for (size_t s = 0; s < before.size(); ++s) drop_indices(program.statements[s], before[s]);
  return program;
}

}  // namespace tc::gpu
