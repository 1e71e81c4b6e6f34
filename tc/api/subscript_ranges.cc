#include <Halide.h>

#include <algorithm>

#include "tc/api/random.h"
#include "tc/ir/bounds.h"
#include "tc/ir/halide_compat.h"

namespace tc::api {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// Replaces reads of tensors by variables of the tensors' names, and lists them.
class ReadsAsVariables : public hi::IRMutator {
 public:
  explicit ReadsAsVariables(const ir::Program& program) : program_(program) {}
  std::map<std::string, Halide::Type> tensors;

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* call) override {
    if (!ir::is_tensor_read(program_, call)) return IRMutator::visit(call);
    tensors[call->name] = call->type;
    return hi::Variable::make(call->type, call->name);
  }
  const ir::Program& program_;
};

/// Whether the subscript stays in [0, extent) when the tensors it reads hold values in [0, end).
bool stays_inside(const Expr& subscript, const hi::Scope<hi::Interval>& indices,
                  const std::map<std::string, Halide::Type>& tensors, int64_t end, int64_t extent) {
  hi::Scope<hi::Interval> scope;
  scope.set_containing_scope(&indices);
  for (const auto& [name, type] : tensors) scope.push(name, {hi::make_const(type, 0), hi::make_const(type, end - 1)});
  const hi::Interval bounds = hi::bounds_of_expr_in_scope(subscript, scope);
  if (!bounds.is_bounded()) return false;
  return hi::is_const_one(hi::simplify(bounds.min >= 0 && bounds.max < hi::make_const(bounds.max.type(), extent)));
}

/// The largest integer that both the type and int64 hold, plus one where that fits.
int64_t end_of_type(Halide::Type type) {
  const int value_bits = type.bits() - (type.is_int() ? 1 : 0);
  return value_bits >= 62 ? int64_t{1} << 62 : int64_t{1} << value_bits;
}

}  // namespace

std::map<std::string, IntegerRange> subscript_ranges(const ir::Program& specialised) {
  std::map<std::string, IntegerRange> ranges;
  for (const ir::RunTimeCheck& check : ir::run_time_checks(specialised)) {
    const auto statement =
        std::ranges::find_if(specialised.statements, [&](const auto& s) { return s.id == check.statement; });
    hi::Scope<hi::Interval> indices;
    for (const ir::Index& index : statement->indices) indices.push(index.name, {index.begin, index.end - 1});
    ReadsAsVariables reads(specialised);
    const Expr subscript = reads.mutate(check.subscript);
    const std::optional<int64_t> extent = [&]() -> std::optional<int64_t> {
      const int64_t* constant = ir::constant_int(check.extent);
      return constant ? std::optional(*constant) : std::nullopt;
    }();
    if (!extent) continue;
    // What is inside for one end is inside for every smaller one.
    int64_t low = 1, high = std::max<int64_t>(1, *extent);
    for (const auto& [name, type] : reads.tensors) high = std::min(high, end_of_type(type));
    while (low < high) {
      const int64_t middle = low + (high - low + 1) / 2;
      if (stays_inside(subscript, indices, reads.tensors, middle, *extent)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    for (const auto& [name, type] : reads.tensors) {
      if (!type.is_int() && !type.is_uint()) continue;
      const auto [entry, is_new] = ranges.emplace(name, IntegerRange{0, low});
      if (!is_new) entry->second.end = std::min(entry->second.end, low);
    }
  }
  return ranges;
}

}  // namespace tc::api
