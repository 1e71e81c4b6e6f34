#include "tc/cuda/warp_values.h"

#include <algorithm>

namespace tc::cuda {

namespace hi = Halide::Internal;
using Halide::Expr;

WarpValues::WarpValues(const tile::Kernel& kernel) {
  constexpr int kWarp = 32;
  const bool lines_up = kernel.block[1] * kernel.block[2] == 1 && kernel.block[0] % kWarp == 0;
  is_here_with_rings_ = lines_up && !kernel.rings().empty();
}

bool WarpValues::is_to_be_said(const Expr& value) const {
  constexpr int kWarp = 32;
  const auto* quotient = value.as<hi::Div>();
  const auto* variable = quotient ? quotient->a.as<hi::Variable>() : nullptr;
  if (!is_here_with_rings_ || !variable || branches_ > 0) return false;
  if (variable->name == tile::kThread[0]) return hi::is_const(quotient->b, kWarp);
  int bits = 0;
  return counted_.count(variable->name) > 0 && !hi::is_const_power_of_two_integer(quotient->b, &bits);
}

bool WarpValues::is_alike(const Expr& e) const {
  struct Visitor : hi::IRVisitor {
    explicit Visitor(const WarpValues& v) : values(v) {}
    const WarpValues& values;
    bool alike = true;
    using hi::IRVisitor::visit;
    void visit(const hi::Variable* op) override {
      alike &= std::ranges::find(tile::kBlock, op->name) != tile::kBlock.end() || values.counted_.count(op->name) > 0 ||
               values.alike_.count(op->name) > 0;
    }
    void visit(const hi::Call*) override { alike = false; }
  } visitor(*this);
  e.accept(&visitor);
  return visitor.alike;
}

/// All threads of a warp go through the same values of a loop that begins at the block's number, or a number.
void WarpValues::enter(const tile::For& loop) {
  const auto* first = loop.begin.as<hi::Variable>();
  const bool begins_alike = hi::is_const(loop.begin) || (first && first->name == tile::kBlock[0]);
  if (branches_ == 0 && begins_alike && hi::is_const(loop.end)) counted_.insert(loop.variable);
}

void WarpValues::define(const tile::Let& let) {
  alike_.erase(let.name);  // of another place
  if (is_to_be_said(let.value) || is_alike(let.value)) alike_.insert(let.name);
}

}  // namespace tc::cuda
