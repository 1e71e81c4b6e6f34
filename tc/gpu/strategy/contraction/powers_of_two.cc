#include "tc/gpu/strategy/contraction/powers_of_two.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tc/gpu/rewrite/exponential.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/tile/program.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

bool is_difference(const hi::Sub& op, const Difference& difference) {
  const auto *from = op.a.as<hi::Call>(), *less = op.b.as<hi::Call>();
  return op.type == Halide::Float(32) && from != nullptr && less != nullptr && from->name == difference.from &&
         less->name == difference.less;
}

Expr power_of_two(const Expr& e) { return hi::Call::make(e.type(), "exp2", {e}, hi::Call::PureExtern); }

class Powers : public hi::IRMutator {
 public:
  Powers(const std::set<std::string>& tensors, const std::optional<Difference>& dealt_out)
      : tensors_(tensors), dealt_out_(dealt_out) {}

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
    const Expr multiple = hi::FloatImm::make(op->type, rounded), opposite = hi::FloatImm::make(op->type, -rounded);
    const auto* apart = exponent.as<hi::Sub>();
    constexpr float kMostFactor = 2;
    const bool deals_out =
        dealt_out_ && apart != nullptr && is_difference(*apart, *dealt_out_) && std::abs(rounded) <= kMostFactor;
    if (!deals_out) return power_of_two(hi::Mul::make(exponent, multiple));
    return power_of_two(
        hi::Call::make(op->type, "fma", {apart->a, multiple, hi::Mul::make(apart->b, opposite)}, hi::Call::PureExtern));
  }

  const std::set<std::string>& tensors_;
  const std::optional<Difference>& dealt_out_;
};

}  // namespace

Expr with_powers_of_two(const Expr& value, const std::set<std::string>& tensors,
                        const std::optional<Difference>& dealt_out) {
  return Powers(tensors, dealt_out).mutate(value);
}

bool reads_but_difference(const Expr& value, const Difference& difference) {
  struct Reads : hi::IRVisitor {
    explicit Reads(const Difference& difference) : difference(difference) {}
    const Difference& difference;
    bool others = false;
    using IRVisitor::visit;
    void visit(const hi::Sub* op) override {
      if (!is_difference(*op, difference)) IRVisitor::visit(op);
    }
    void visit(const hi::Call* op) override {
      others = others || op->name == difference.from || op->name == difference.less;
      IRVisitor::visit(op);
    }
  } reads(difference);
  value.accept(&reads);
  return !reads.others;
}

}  // namespace tc::gpu
