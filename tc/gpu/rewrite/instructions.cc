#include "tc/gpu/rewrite/instructions.h"

#include <algorithm>

#include "tc/gpu/atoms/functions.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;

class InstructionCount : public hi::IRVisitor {
 public:
  explicit InstructionCount(const InstructionsOfCall& of_call) : of_call_(of_call) {}
  double count = 0;

 private:
  using IRVisitor::visit;
  template <typename Operation>
  void add(const Operation* op, double by) {
    count += by;
    IRVisitor::visit(op);
  }
  void visit(const hi::Call* op) override {
    if (const std::optional<double> known = of_call_(op)) {
      count += *known;
      return;
    }
    const bool is_constant = std::all_of(op->args.begin(), op->args.end(),
                                         [](const Halide::Expr& e) { return hi::is_const(hi::simplify(e)); });
    if (!is_constant) add(op, instructions_of_function(op->name));
  }
  void visit(const hi::Cast* op) override { add(op, 1); }
  void visit(const hi::Add* op) override { add(op, 1); }
  void visit(const hi::Sub* op) override { add(op, 1); }
  void visit(const hi::Mul* op) override { add(op, 1); }
  void visit(const hi::Div* op) override { add(op, kDivisionInstructions); }
  void visit(const hi::Min* op) override { add(op, 1); }
  void visit(const hi::Max* op) override { add(op, 1); }
  void visit(const hi::Select* op) override { add(op, 2); }

  const InstructionsOfCall& of_call_;
};

}  // namespace

double instructions_of(const Halide::Expr& value, const InstructionsOfCall& of_call) {
  InstructionCount all(of_call);
  value.accept(&all);
  return all.count;
}

}  // namespace tc::gpu
