#include "tc/gpu/rewrite/memory_order.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>

#include "tc/gpu/rewrite/part_statements.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/layouts.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// Bytes between the elements of two neighbouring values of an index; very many if data choose the element.
int64_t distance_of(const ir::Program& program, const hi::Call* read, const ir::Index& index) {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> strides = ir::strides_of(program.tensor(read->name));
  int64_t distance = 0;
  for (size_t d = strides.size(); d-- > 0;) {
    const Expr next = hi::substitute(index.name, index_variable(index.name) + index_constant(1), read->args[d]);
    const Expr step = hi::simplify(next - read->args[d]);
    const int64_t* constant = ir::constant_int(step);
    if (constant == nullptr) return kFar;
    distance += *constant * strides[d] * read->type.bytes();
  }
  return std::abs(distance);
}

}  // namespace

std::vector<size_t> memory_order(const ir::Program& program, const ir::Statement& statement) {
  const std::vector<const hi::Call*> reads = largest_reads(program, statement);
  std::vector<size_t> order;
  std::map<size_t, int64_t> distances;
  for (size_t i = 0; i < statement.indices.size(); ++i) {
    if (!statement.indices[i].is_reduction) continue;
    order.push_back(i);
    for (const hi::Call* read : reads) {
      distances[i] = std::max(distances[i], distance_of(program, read, statement.indices[i]));
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return distances[a] > distances[b]; });
  return order;
}

ir::Program reduce_along_memory(ir::Program program) {
  for (ir::Statement& statement : program.statements) {
    if (!may_be_cut(program, statement) || shares_operands(program, statement) ||
        !runs_along_reduction(program, statement)) {
      continue;
    }
    const std::vector<ir::Index> before = statement.indices;
    const std::vector<size_t> order = memory_order(program, statement);
    size_t next = 0;
    for (ir::Index& index : statement.indices) {
      if (index.is_reduction) index = before[order[next++]];
    }
  }
  return program;
}

}  // namespace tc::gpu
