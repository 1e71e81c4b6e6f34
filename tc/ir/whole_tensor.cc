#include "tc/ir/whole_tensor.h"

#include <fmt/format.h>

#include <set>

#include "tc/ir/index_expr.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

std::string fresh_name(const Program& program, std::string wanted) {
  std::set<std::string> taken(program.sizes.begin(), program.sizes.end());
  for (const Scalar& s : program.scalars) taken.insert(s.name);
  for (const Tensor& t : program.tensors) taken.insert(t.name);
  while (taken.contains(wanted)) wanted += "_";
  return wanted;
}

Statement whole_tensor_set(const Program& program, const Tensor& tensor, SourceRange range) {
  Statement s;
  s.tensor = tensor.name;
  s.accumulator = tensor.type;
  s.range = range;
  for (int d = 0; d < tensor.rank(); ++d) {
    Index index;
    index.name = fresh_name(program, fmt::format("d{}", d));
    index.range = range;
    if (tensor.extents[d].defined()) {
      index.begin = index_constant(0);
      index.end = tensor.extents[d];
    }
    s.subscripts.push_back(index_variable(index.name));
    s.indices.push_back(std::move(index));
  }
  s.accesses.push_back({s.tensor, s.subscripts, Expr(), true, false, range});
  return s;
}

Expr read_in(Statement& statement, const Tensor& tensor, const std::vector<Expr>& subscripts) {
  statement.accesses.push_back({tensor.name, subscripts, Expr(), false, false, statement.range});
  return hi::Call::make(tensor.type, tensor.name, subscripts, hi::Call::PureExtern);
}

}  // namespace tc::ir
