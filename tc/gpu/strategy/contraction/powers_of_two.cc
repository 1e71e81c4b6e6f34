#include "tc/gpu/strategy/contraction/powers_of_two.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/exponential.h"
#include "tc/ir/index_expr.h"
#include "tc/tile/program.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

class Powers : public hi::IRMutator {
 public:
  Powers(const std::set<std::string>& tensors, Differences differences)
      : tensors_(tensors), differences_(differences) {}

 private:
  using IRMutator::visit;
  Expr visit(const hi::Cast* op) override {
    const Expr value = mutate(op->value);
    const auto* power = value.as<hi::Call>();
    if (op->type != Halide::Float(16) || power == nullptr || power->name != "exp2" ||
        power->type != Halide::Float(32)) {
      return hi::Cast::make(op->type, value);
    }
    return hi::Cast::make(op->type,
                          hi::Call::make(power->type, tile::kExp2ForFloat16, power->args, hi::Call::PureExtern));
  }
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
    const auto scaled = [&](const Expr& e) { return hi::Mul::make(e, hi::FloatImm::make(op->type, rounded)); };
    const auto* apart = exponent.as<hi::Sub>();
    const bool deals_out = differences_ == Differences::kDealtOut && apart != nullptr && std::abs(rounded) <= 1;
    const Expr power = deals_out ? hi::Sub::make(scaled(apart->a), scaled(apart->b)) : scaled(exponent);
    return hi::Call::make(op->type, "exp2", {power}, hi::Call::PureExtern);
  }

  const std::set<std::string>& tensors_;
  const Differences differences_;
};

}  // namespace

Expr with_powers_of_two(const Expr& value, const std::set<std::string>& tensors, Differences differences) {
  return Powers(tensors, differences).mutate(value);
}

bool has_large_number(const Expr& value) {
  struct Largest : hi::IRVisitor {
    double magnitude = 0;
    using IRVisitor::visit;
    void visit(const hi::FloatImm* op) override { take(op->value); }
    void visit(const hi::Cast* op) override {
      const int64_t* integer = op->type.is_float() ? ir::constant_int(op->value) : nullptr;
      if (integer != nullptr) take(static_cast<double>(*integer));
      IRVisitor::visit(op);
    }
    void take(double number) {
      if (std::isfinite(number)) magnitude = std::max(magnitude, std::abs(number));
    }
  } largest;
  constexpr double kLarge = 4096;  // up to there float32 rounds by no more than 2^-12
  value.accept(&largest);
  return largest.magnitude > kLarge;
}

}  // namespace tc::gpu
