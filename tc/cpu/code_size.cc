#include "tc/cpu/code_size.h"

#include "tc/ir/halide_compat.h"

namespace tc::cpu {

namespace hi = Halide::Internal;

namespace {

class Size : public hi::IRVisitor {
 public:
  double result = 0;

 private:
  using IRVisitor::visit;

  template <typename Node>
  void count(const Node* op) {
    result += 1;
    IRVisitor::visit(op);
  }
  void visit(const hi::Add* op) override { count(op); }
  void visit(const hi::Sub* op) override { count(op); }
  void visit(const hi::Mul* op) override { count(op); }
  void visit(const hi::Div* op) override { count(op); }
  void visit(const hi::Mod* op) override { count(op); }
  void visit(const hi::Min* op) override { count(op); }
  void visit(const hi::Max* op) override { count(op); }
  void visit(const hi::Cast* op) override { count(op); }
  void visit(const hi::Select* op) override { count(op); }
  void visit(const hi::Call* op) override { count(op); }
  void visit(const hi::Load* op) override { count(op); }
  void visit(const hi::Store* op) override { count(op); }
  void visit(const hi::IfThenElse* op) override { count(op); }
  void visit(const hi::For* op) override {
    const double outside = result;
    result = 0;
    IRVisitor::visit(op);
    const int64_t* extent = ir::constant_int(op->extent);
    const bool repeats = op->for_type == hi::ForType::Unrolled && extent != nullptr;
    result = outside + 1 + result * (repeats ? static_cast<double>(*extent) : 1);
  }
};

}  // namespace

double unrolled_size(const hi::Stmt& body) {
  Size size;
  body.accept(&size);
  return size.result;
}

}  // namespace tc::cpu
