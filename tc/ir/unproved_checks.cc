#include "tc/ir/unproved_checks.h"

#include <algorithm>
#include <set>

#include "tc/ir/check_subscripts.h"
#include "tc/ir/index_expr.h"

namespace tc::ir {
namespace {

using Halide::Expr;
namespace hi = Halide::Internal;

/// Whether an expression reads a tensor, or a scalar that is not compiled in, or computes with floats, in which
/// backends differ in the last bits.
class FindData : public hi::IRVisitor {
 public:
  explicit FindData(const Program& program) : program_(program) {}
  bool in(const Expr& e) {
    found_ = false;
    if (e.defined()) e.accept(this);
    return found_;
  }

 private:
  using IRVisitor::visit;
  void visit(const hi::Call* call) override {
    found_ |= is_tensor_read(program_, call) || call->type.is_float();
    IRVisitor::visit(call);
  }
  void visit(const hi::Cast* cast) override {
    found_ |= cast->value.type().is_float() || cast->type.is_float();
    IRVisitor::visit(cast);
  }
  void visit(const hi::Variable* op) override {
    const Scalar* const scalar = program_.find_scalar(op->name);
    found_ |= scalar && !scalar->specialised;
  }

  const Program& program_;
  bool found_ = false;
};

/// How many values the indices of a check take together; more than kMaxIndexValues: at least so many.
int64_t values_of(const Program& program, const RunTimeCheck& check) {
  std::set<std::string> names = variables_of(check.subscript);
  names.merge(variables_of(check.guard));
  int64_t values = 1;
  for (const Statement& statement : program.statements) {
    if (statement.id != check.statement) continue;
    for (const Index& index : statement.indices) {
      const auto begin = constant_value(index.begin), end = constant_value(index.end);
      if (!names.contains(index.name) || !begin || !end) continue;
      if (__builtin_mul_overflow(values, *end - *begin, &values)) return kMaxIndexValues + 1;
      values = std::min(values, kMaxIndexValues + 1);
    }
  }
  return values;
}

/// The check with the conditions that are tried with it.
RunTimeCheck to_try(const Program& program, FindData& data, RunTimeCheck check) {
  Expr all, own;  // conditions that need no data; of those the ones with no other index than the subscript's
  const std::set<std::string> known = variables_of(check.subscript);
  for (const Expr& condition : conjuncts_of(check.guard)) {
    if (data.in(condition)) continue;
    all = conjunction(all, condition);
    if (std::ranges::includes(known, variables_of(condition))) own = conjunction(own, condition);
  }
  check.guard = all;
  if (!can_be_tried(program, check)) check.guard = own;
  return check;
}

}  // namespace

std::vector<RunTimeCheck> checks_to_try(const Program& program) {
  FindData data(program);
  std::vector<RunTimeCheck> checks;
  for (RunTimeCheck& check : run_time_checks(program)) {
    if (!data.in(check.subscript)) checks.push_back(to_try(program, data, std::move(check)));
  }
  return checks;
}

bool can_be_tried(const Program& program, const RunTimeCheck& check) {
  return values_of(program, check) <= kMaxIndexValues;
}

std::vector<RunTimeCheck> unproved_checks(const Program& program) {
  FindData data(program);
  std::vector<RunTimeCheck> checks;
  for (RunTimeCheck& check : run_time_checks(program)) {
    const bool is_tried = !data.in(check.subscript) && can_be_tried(program, to_try(program, data, check));
    if (!is_tried) checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace tc::ir
