#include "tc/ir/accumulators.h"

#include <fmt/format.h>

#include <algorithm>

#include "tc/ir/combine.h"
#include "tc/ir/in_place.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/single_writes.h"
#include "tc/ir/sum_apart.h"
#include "tc/ir/whole_tensor.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// tensor(map indices) = ..., over the instances' map indices.
Statement store_of(const Statement& sum, const std::string& tensor, Halide::Type type) {
  Statement store;
  store.tensor = tensor;
  store.subscripts = sum.subscripts;
  store.accumulator = type;
  store.range = sum.range;
  for (const Index& index : sum.indices) {
    if (!index.is_reduction) store.indices.push_back(index);
  }
  store.accesses.push_back({tensor, store.subscripts, Expr(), true, false, sum.range});
  return store;
}

/// The sum goes to another tensor.
void redirect(Statement& sum, const Tensor& to) {
  sum.tensor = to.name;
  for (Access& a : sum.accesses) {
    if (a.is_write) a.tensor = to.name;
  }
}

void widen_pointwise(Statement& s, const Tensor& tensor, std::vector<Statement>& out) {
  const Expr start = s.initialises ? identity_of(s.assign, s.accumulator)
                                   : Expr(hi::Cast::make(s.accumulator, read_in(s, tensor, s.subscripts)));
  s.value = hi::Cast::make(tensor.type, combine(s.assign, start, s.value));
  s.assign = Assign::kSet;
  s.initialises = false;
  s.accumulator = tensor.type;
  out.push_back(std::move(s));
}

void widen_reduction(Statement& s, const Tensor& tensor, const Tensor& sums, std::vector<Statement>& out) {
  Statement store = store_of(s, tensor.name, tensor.type);
  Expr total = read_in(store, sums, store.subscripts);
  if (!s.initialises) {
    total = combine(s.assign, hi::Cast::make(sums.type, read_in(store, tensor, store.subscripts)), total);
  }
  store.value = hi::Cast::make(tensor.type, total);
  s.initialises = true;
  redirect(s, sums);
  out.push_back(std::move(s));
  out.push_back(std::move(store));
}

void widen_scattered(const Program& program, Statement& s, const Tensor& tensor, const Tensor& sums,
                     std::vector<Statement>& out) {
  Statement load = whole_tensor_set(program, sums, s.range);
  load.value = hi::Cast::make(sums.type, read_in(load, tensor, load.subscripts));
  Statement store = whole_tensor_set(program, tensor, s.range);
  store.value = hi::Cast::make(tensor.type, read_in(store, sums, store.subscripts));
  redirect(s, sums);
  out.push_back(std::move(load));
  out.push_back(std::move(s));
  out.push_back(std::move(store));
}

}  // namespace

Program widen_accumulators(Program program) {
  std::vector<Statement> statements;
  for (Statement& s : program.statements) {
    const Tensor tensor = program.tensor(s.tensor);
    if (s.accumulator == tensor.type) {
      statements.push_back(std::move(s));
      continue;
    }
    const bool reduces =
        std::any_of(s.indices.begin(), s.indices.end(), [](const Index& index) { return index.is_reduction; });
    if (!reduces && (left_is_identity(s) || tells_all_indices(s))) {
      widen_pointwise(s, tensor, statements);
      continue;
    }
    if (may_be_apart(s)) {
      SumApart apart = sum_apart(program, s);
      statements.push_back(std::move(apart.sum));
      statements.push_back(std::move(apart.store));
      program.tensors.push_back(std::move(apart.sums));
      continue;
    }
    Tensor sums = tensor;
    sums.name = fresh_name(program, tensor.name + "_sum");
    sums.type = s.accumulator;
    sums.role = Role::kTemporary;
    if (left_is_identity(s)) {
      widen_reduction(s, tensor, sums, statements);
    } else {
      widen_scattered(program, s, tensor, sums, statements);
    }
    program.tensors.push_back(std::move(sums));
  }
  program.statements = std::move(statements);
  return program;
}

Program accumulated_in_float64(Program program) {
  const Halide::Type narrow = Halide::Float(32), wide = Halide::Float(64);
  for (Statement& s : program.statements) {
    if (!s.reduces() || s.accumulator != narrow || (s.assign != Assign::kAdd && s.assign != Assign::kMul)) continue;
    s.accumulator = wide;
    s.value = hi::Cast::make(wide, s.value);
  }
  program = widen_accumulators(std::move(program));
  for (size_t i = 0; i < program.statements.size(); ++i) program.statements[i].id = fmt::format("S{}", i);
  return program;
}

}  // namespace tc::ir
