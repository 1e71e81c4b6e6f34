#include "tc/cpu/lower_stmt.h"

#include "tc/cpu/finish_accesses.h"
#include "tc/cpu/hidden_allocations.h"
#include "tc/cpu/moves.h"
#include "tc/cpu/opaque_values.h"

namespace tc::cpu {

using namespace Halide::Internal;

namespace {

class HasAssert : public IRVisitor {
 public:
  bool found = false;

 private:
  using IRVisitor::visit;
  void visit(const AssertStmt*) override { found = true; }
};
bool has_assert(const Stmt& s) {
  HasAssert visitor;
  s.accept(&visitor);
  return visitor.found;
}

/// The order matters: names must be unique before anything is substituted; vector loops must be gone before loops are
/// split by their conditions; what is invariant is hoisted when nothing simplifies any more. Values are left to LLVM,
/// which shares and hoists them in a third of the time.
Stmt lower_loops(Stmt s, std::span<const KernelArgument> arguments) {
  HiddenAllocations allocations;
  s = allocations.hide(s);
  s = unify_duplicate_lets(simplify(s));
  s = rewrite_moves(s, arguments);
  s = unroll_loops(s);
  s = vectorize_loops(s, {});
  s = simplify(s);
  s = rewrite_interleavings(s);
  s = partition_loops(s);
  s = simplify(s);
  if (!has_assert(s)) s = trim_no_ops(s);  // holds a loop that only checks for one that does nothing
  s = hoist_loop_invariant_if_statements(s);
  s = flatten_nested_ramps(s);
  s = simplify(s);
  s = hoist_loop_invariant_if_statements(s);
  return remove_dead_allocations(allocations.restore(s));
}

}  // namespace

LoweredKernel lower_kernel(const Kernel& kernel, const Halide::Target& target, bool strict) {
  Stmt body = uniquify_variable_names(kernel.body);
  body = lower_loops(make_values_opaque(body, kernel.arguments, strict), kernel.arguments);
  LoweredKernel result;
  body = lower_parallel_tasks(body, result.functions, kernel.name, target);
  result.functions.emplace_back(kernel.name, passed_arguments(kernel.arguments), body, Halide::LinkageType::External);
  for (LoweredFunc& function : result.functions) function.body = finish_accesses(function.body, kernel.arguments);
  return result;
}

}  // namespace tc::cpu
