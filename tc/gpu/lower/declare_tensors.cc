#include "tc/gpu/lower/declare_tensors.h"

#include <set>

#include "tc/gpu/lower/translate.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

class Uses : public hi::IRVisitor {
 public:
  std::set<std::string> names;
  std::set<std::string> written;

  void add(const tile::Node& node) {
    tile::for_each_access(node, [&](const tile::NodeAccess& access) {
      names.insert(access.tensor);
      if (access.is_write) written.insert(access.tensor);
    });
    tile::for_each_expr(node, [&](const Expr& e) { e.accept(this); });
  }

 private:
  using IRVisitor::visit;
  void visit(const hi::Call* op) override {
    names.insert(op->name);
    IRVisitor::visit(op);
  }
  void visit(const hi::Variable* op) override { names.insert(op->name); }
};

}  // namespace

void declare_tensors(tile::Kernel& kernel, const ir::Program& program) {
  Uses uses;
  tile::for_each_node(kernel.body, [&](const tile::Node& node) { uses.add(node); });
  for (const ir::Tensor& tensor : program.tensors) {
    if (uses.names.count(tensor.name) == 0) continue;
    kernel.tensors.push_back(global_tensor(tensor, uses.written.count(tensor.name) > 0));
  }
  for (const ir::Scalar& scalar : program.scalars) {
    if (uses.names.count(scalar.name) > 0) kernel.scalars.push_back({scalar.name, scalar.type});
  }
}

int count_barriers(const tile::Kernel& kernel) {
  int count = 0;
  tile::for_each_node(kernel.body, [&](const tile::Node& node) { count += tile::is_barrier(node) ? 1 : 0; });
  return count;
}

}  // namespace tc::gpu
