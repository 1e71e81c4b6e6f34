#include "tc/gpu/uses.h"

#include <set>

#include "tc/gpu/translate.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

class Uses : public hi::IRVisitor {
 public:
  std::set<std::string> names;
  std::set<std::string> written;

  void add(const tile::Node& node) {
    std::visit([this](const auto& spec) { visit_spec(spec); }, node.node);
  }

 private:
  using IRVisitor::visit;
  void visit(const hi::Call* op) override {
    names.insert(op->name);
    IRVisitor::visit(op);
  }
  void visit(const hi::Variable* op) override { names.insert(op->name); }

  void all(const std::vector<Expr>& exprs) {
    for (const Expr& e : exprs) e.accept(this);
  }
  void write(const std::string& tensor, const std::vector<Expr>& subscripts) {
    names.insert(tensor);
    written.insert(tensor);
    all(subscripts);
  }

  void visit_spec(const tile::For& s) { all({s.begin, s.end, s.step}); }
  void visit_spec(const tile::If& s) { s.condition.accept(this); }
  void visit_spec(const tile::Let& s) { s.value.accept(this); }
  void visit_spec(const tile::Store& s) {
    write(s.tensor, s.subscripts);
    s.value.accept(this);
  }
  void visit_spec(const tile::Atomic& s) {
    write(s.tensor, s.subscripts);
    s.value.accept(this);
  }
  void visit_spec(const tile::Shuffle& s) {
    write(s.tensor, s.subscripts);
    s.value.accept(this);
    s.lane.accept(this);
  }
  void visit_spec(const tile::Move& s) {
    write(s.destination, s.destination_subscripts);
    names.insert(s.source);
    all(s.source_subscripts);
  }
  // Neither expressions nor tensors of their own.
  void visit_spec(const tile::Sequence&) {}
  void visit_spec(const tile::Allocate&) {}
  void visit_spec(const tile::Barrier&) {}
  void visit_spec(const tile::WaitForKernels&) {}
  void visit_spec(const tile::StartNextKernel&) {}
  void visit_spec(const tile::CommitGroup&) {}
  void visit_spec(const tile::WaitGroup&) {}
};

}  // namespace

void declare_uses(tile::Kernel& kernel, const ir::Program& program) {
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
  tile::for_each_node(kernel.body,
                      [&](const tile::Node& node) { count += std::holds_alternative<tile::Barrier>(node.node); });
  return count;
}

}  // namespace tc::gpu
