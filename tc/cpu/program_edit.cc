#include "tc/cpu/program_edit.h"

#include <algorithm>
#include <set>

namespace tc::cpu {

using Halide::Expr;
namespace hi = Halide::Internal;

Expr read(const ir::Tensor& tensor, const std::vector<Expr>& subscripts) {
  return hi::Call::make(tensor.type, tensor.name, subscripts, hi::Call::PureExtern);
}

bool has_plain_subscripts(const ir::Statement& statement) {
  return std::all_of(statement.subscripts.begin(), statement.subscripts.end(),
                     [](const Expr& subscript) { return subscript.as<hi::Variable>() != nullptr; });
}

std::string fresh(const ir::Program& program, const std::string& wish) {
  std::set<std::string> taken;
  for (const ir::Tensor& t : program.tensors) taken.insert(t.name);
  for (const ir::Scalar& s : program.scalars) taken.insert(s.name);
  for (const ir::Statement& s : program.statements) {
    taken.insert(s.id);
    for (const ir::Index& i : s.indices) taken.insert(i.name);
  }
  std::string name = wish;
  for (int i = 1; taken.count(name) > 0; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

ir::Tensor& add_temporary(ir::Program& program, const std::string& wish, Halide::Type type, std::vector<Expr> extents) {
  ir::Tensor tensor;
  tensor.name = fresh(program, wish);
  tensor.type = type;
  tensor.extents = std::move(extents);
  tensor.role = ir::Role::kTemporary;
  program.tensors.push_back(std::move(tensor));
  return program.tensors.back();
}

}  // namespace tc::cpu
