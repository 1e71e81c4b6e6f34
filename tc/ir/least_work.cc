#include "tc/ir/least_work.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tc/ir/index_expr.h"

namespace tc::ir {
namespace {

using Halide::Expr;

double instances_of(const Statement& statement) {
  double instances = 1;
  for (const Index& index : statement.indices) {
    const auto begin = constant_value(index.begin), end = constant_value(index.end);
    instances *= begin && end ? static_cast<double>(std::max<int64_t>(*end - *begin, 0)) : 0;
  }
  return instances;
}

/// Whether the tensors that every instance reads depend on all indices: otherwise some update might leave a loop.
bool reads_by_all_indices(const Statement& statement) {
  std::set<std::string> used;
  for (const Access& access : statement.accesses) {
    if (access.is_write || access.exists_only || access.guard.defined()) continue;
    for (const Expr& subscript : access.subscripts) used.merge(variables_of(subscript));
  }
  return std::ranges::all_of(statement.indices, [&](const Index& index) { return used.contains(index.name); });
}

int lane_bits_of(const Program& program, const Statement& statement) {
  int bits = statement.accumulator.bits();
  for (const Access& access : statement.accesses) {
    if (!access.exists_only) bits = std::min(bits, program.tensor(access.tensor).type.bits());
  }
  return std::max(bits, 8);
}

/// Elements that the statement stores for certain: one for each value of indices that stand alone on the left.
double elements_written(const Statement& statement) {
  if (statement.guard.defined()) return 0;
  std::set<std::string> alone;
  for (const Expr& subscript : statement.subscripts) {
    if (const auto* variable = subscript.as<Halide::Internal::Variable>()) alone.insert(variable->name);
  }
  double elements = 1;
  for (const Index& index : statement.indices) {
    const auto begin = constant_value(index.begin), end = constant_value(index.end);
    if (!begin || !end || *end <= *begin) return 0;
    if (alone.contains(index.name)) elements *= static_cast<double>(*end - *begin);
  }
  return elements;
}

/// Statements on which a result depends. What a later statement may write over is not among them.
std::vector<const Statement*> live_statements(const Program& program) {
  std::set<std::string> live(program.results.begin(), program.results.end());
  std::vector<const Statement*> statements;
  for (auto s = program.statements.rbegin(); s != program.statements.rend(); ++s) {
    if (!live.contains(s->tensor)) continue;
    statements.push_back(&*s);
    if (!s->reduces() || s->initialises) live.erase(s->tensor);
    for (const Access& access : s->accesses) {
      if (!access.is_write && !access.exists_only) live.insert(access.tensor);
    }
  }
  return statements;
}

}  // namespace

LeastWork least_work(const Program& program) {
  LeastWork work;
  std::map<std::string, double> stored;
  for (const Statement* s : live_statements(program)) {
    const Tensor& tensor = program.tensor(s->tensor);
    double& bytes = stored[s->tensor];
    if (tensor.role != Role::kTemporary) bytes = std::max(bytes, elements_written(*s) * tensor.type.bytes());
    if (!s->reduces() || s->guard.defined() || !reads_by_all_indices(*s)) continue;
    const double updates = instances_of(*s);
    const int bits = lane_bits_of(program, *s);
    if (updates * bits > work.updates * work.lane_bits) work.updates = updates, work.lane_bits = bits;
  }
  for (const auto& [tensor, bytes] : stored) work.result_bytes += bytes;
  return work;
}

}  // namespace tc::ir
