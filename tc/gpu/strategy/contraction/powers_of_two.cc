#include "tc/gpu/strategy/contraction/powers_of_two.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/exponential.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

class Powers : public hi::IRMutator {
 public:
  explicit Powers(const std::set<std::string>& tensors) : tensors_(tensors) {}

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    const auto is_read = [&](const std::string& tensor) { return reads_tensor(op->args[0], tensor); };
    if (op->name != "exp" || op->type != Halide::Float(32) || std::none_of(tensors_.begin(), tensors_.end(), is_read)) {
      return IRMutator::visit(op);
    }
    constexpr double kLog2OfE = 1.4426950408889634;
    Expr exponent = mutate(op->args[0]);
    double factor = kLog2OfE;
    const auto take = [&](const Expr& rest, double by) {
      exponent = rest;
      factor *= by;
    };
    if (const auto* times = exponent.as<hi::Mul>()) {
      const std::optional<double> a = constant_number(times->a), b = constant_number(times->b);
      if (b) {
        take(times->a, *b);
      } else if (a) {
        take(times->b, *a);
      }
    } else if (const auto* over = exponent.as<hi::Div>()) {
      const std::optional<double> divisor = constant_number(over->b);
      if (divisor && *divisor != 0) take(over->a, 1 / *divisor);
    }
    const auto rounded = static_cast<float>(factor);
    if (!std::isnormal(rounded)) return IRMutator::visit(op);
    const Expr scaled = hi::Mul::make(exponent, hi::FloatImm::make(op->type, rounded));
    return hi::Call::make(op->type, "exp2", {scaled}, hi::Call::PureExtern);
  }

  const std::set<std::string>& tensors_;
};

}  // namespace

Expr with_powers_of_two(const Expr& value, const std::set<std::string>& tensors) {
  return Powers(tensors).mutate(value);
}

}  // namespace tc::gpu
