#include "tc/tile/shared_divisors.h"

namespace tc::tile {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

class Sharer : public hi::IRMutator {
 public:
  NodePtr run(const NodePtr& node) {
    if (!node) return node;
    const NodePtr changed = map_exprs(node, [&](const Expr& e) { return mutate(e); });
    const auto children = [&] { return map_children(changed, [&](const NodePtr& child) { return run(child); }); };
    return match(
        *changed,
        [&](const For& loop) {
          if (!loop.unrolled) return children();
          unrolled_.emplace_back(loop.variable, *constant_trips(loop));
          const NodePtr result = children();
          unrolled_.pop_back();
          return result;
        },
        [&](const OneOf<Sequence, If, Let, Allocate, Ring> auto&) { return children(); },
        [&](const Synchronisation auto&) { return changed; }, [&](const Spec auto&) { return changed; });
  }

 private:
  using IRMutator::visit;
  Expr visit(const hi::Cast* op) override {
    const Expr value = mutate(op->value);
    const auto* quotient = value.as<hi::Call>();
    const bool narrows = op->type.is_float() && op->type.bits() == 16;
    if (!narrows || quotient == nullptr || quotient->name != kQuotient) return hi::Cast::make(op->type, value);
    return hi::Cast::make(op->type,
                          hi::Call::make(value.type(), kNarrowQuotient, quotient->args, hi::Call::PureExtern));
  }
  Expr visit(const hi::Div* op) override {
    constexpr int64_t kOften = 4;
    int64_t values = 1;
    for (const auto& [variable, count] : unrolled_) {
      if (hi::expr_uses_var(op->a, variable) && !hi::expr_uses_var(op->b, variable)) values *= count;
    }
    if (op->type != Halide::Float(32) || values < kOften) return IRMutator::visit(op);
    return hi::Call::make(op->type, kQuotient, {mutate(op->a), mutate(op->b)}, hi::Call::PureExtern);
  }

  std::vector<std::pair<std::string, int64_t>> unrolled_;  ///< loops around, and how often they run
};

}  // namespace

Program share_divisors(Program program) {
  for (Kernel& kernel : program.kernels) kernel.body = Sharer().run(kernel.body);
  return program;
}

}  // namespace tc::tile
