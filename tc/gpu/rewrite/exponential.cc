#include "tc/gpu/rewrite/exponential.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "tc/ir/halide_compat.h"
#include "tc/ir/index_expr.h"
#include "tc/tile/program.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// constant + the sum of coefficient * term; terms are any expressions, each once.
struct Sum {
  std::vector<std::pair<Expr, double>> terms;
  double constant = 0;

  void add(const Expr& term, double coefficient) {
    for (auto& [known, sum] : terms) {
      if (hi::equal(known, term)) {
        sum += coefficient;
        return;
      }
    }
    terms.emplace_back(term, coefficient);
  }
};

/// Adds a multiple of a value to a sum.
void add(const Expr& e, double by, Sum& sum) {
  if (const std::optional<double> value = constant_number(e)) {
    sum.constant += by * *value;
    return;
  }
  if (const auto* cast = e.as<hi::Cast>()) {
    const Halide::Type from = cast->value.type();
    if (from.is_float() && e.type().is_float() && from.bits() <= e.type().bits()) {
      const bool widens = from == e.type() || from.bits() < e.type().bits();
      if (widens) return add(cast->value, by, sum);
    }
  } else if (const auto* plus = e.as<hi::Add>()) {
    add(plus->a, by, sum);
    return add(plus->b, by, sum);
  } else if (const auto* minus = e.as<hi::Sub>()) {
    add(minus->a, by, sum);
    return add(minus->b, -by, sum);
  } else if (const auto* times = e.as<hi::Mul>()) {
    if (const std::optional<double> factor = constant_number(times->a)) return add(times->b, by * *factor, sum);
    if (const std::optional<double> factor = constant_number(times->b)) return add(times->a, by * *factor, sum);
  } else if (const auto* over = e.as<hi::Div>()) {
    const std::optional<double> divisor = constant_number(over->b);
    if (divisor && *divisor != 0) return add(over->a, by / *divisor, sum);
  } else if (const auto* call = e.as<hi::Call>(); call && call->name == "fma") {
    if (const std::optional<double> factor = constant_number(call->args[1])) {
      add(call->args[0], by * *factor, sum);
      return add(call->args[2], by, sum);
    }
  }
  sum.add(e, by);
}

/// Conditions of which undefined ones hold everywhere.
Expr both(const Expr& a, const Expr& b) {
  if (!a.defined() || !b.defined()) return a.defined() ? a : b;
  return hi::equal(a, b) ? a : hi::And::make(a, b);
}
Expr either(const Expr& a, const Expr& b) {
  if (!a.defined() || !b.defined()) return {};
  return hi::equal(a, b) ? a : hi::Or::make(a, b);
}

/// The natural logarithm of the base of a power; nothing if a function is none.
std::optional<double> log_of_base(const hi::Call& call) {
  static const std::map<std::string, double> kBases = {
      {"exp", 1}, {"exp2", std::log(2.0)}, {tile::kExp2ForFloat16, std::log(2.0)}, {"exp10", std::log(10.0)}};
  const auto base = kBases.find(call.name);
  return base == kBases.end() ? std::nullopt : std::optional(base->second);
}

double largest(Halide::Type type) {
  constexpr double kHalf = 65504;
  if (type.is_float() && !type.is_bfloat() && type.bits() == 16) return kHalf;
  return type.bits() == 64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
}

}  // namespace

Expr value_where(const Expr& e, const Expr& condition, bool holds) {
  class Chosen : public hi::IRMutator {
   public:
    Chosen(const Expr& condition, bool holds) : condition_(condition), holds_(holds) {}

   private:
    using IRMutator::visit;
    Expr visit(const hi::Select* op) override {
      return hi::equal(op->condition, condition_) ? mutate(holds_ ? op->true_value : op->false_value)
                                                  : IRMutator::visit(op);
    }
    Expr visit(const hi::Call* op) override {
      const bool is_choice = op->is_intrinsic(hi::Call::if_then_else) && hi::equal(op->args[0], condition_);
      return is_choice ? mutate(op->args[holds_ ? 1 : 2]) : IRMutator::visit(op);
    }
    const Expr& condition_;
    bool holds_;
  } chosen(condition, holds);
  return chosen.mutate(e);
}

namespace {

class Analysis {
 public:
  explicit Analysis(Extreme extreme) : extreme_(std::move(extreme)) {}

  std::optional<Exponential> of(const Expr& e) const {
    if (!ir::mentions(e, extreme_.variable)) return Exponential{0, magnitude(e), {}};
    if (const auto* cast = e.as<hi::Cast>()) return of_cast(*cast);
    if (const auto* times = e.as<hi::Mul>()) {
      const std::optional<Exponential> a = of(times->a), b = of(times->b);
      if (!a || !b) return std::nullopt;
      return Exponential{a->factor + b->factor, a->most * b->most, both(a->present, b->present)};
    }
    if (const auto* over = e.as<hi::Div>()) {
      const std::optional<Exponential> a = of(over->a);
      if (!a || ir::mentions(over->b, extreme_.variable)) return std::nullopt;
      const std::optional<double> divisor = constant_number(over->b);
      return Exponential{a->factor, divisor ? a->most / std::abs(*divisor) : std::numeric_limits<double>::infinity()};
    }
    if (const auto* plus = e.as<hi::Add>()) return of_sum(plus->a, plus->b);
    if (const auto* minus = e.as<hi::Sub>()) return of_sum(minus->a, minus->b);
    if (const auto* choice = e.as<hi::Select>()) {
      return of_choice(choice->condition, choice->true_value, choice->false_value);
    }
    if (const auto* call = e.as<hi::Call>()) return of_call(*call);
    return std::nullopt;
  }

 private:
  /// The greatest finite magnitude that a value may have, by what it is made of.
  static double magnitude(const Expr& e) {
    if (const std::optional<double> value = constant_number(e)) return std::abs(*value);
    if (const auto* cast = e.as<hi::Cast>()) return std::min(magnitude(cast->value), largest(e.type()));
    if (const auto* times = e.as<hi::Mul>()) return magnitude(times->a) * magnitude(times->b);
    if (const auto* choice = e.as<hi::Select>()) {
      return std::max(magnitude(choice->true_value), magnitude(choice->false_value));
    }
    if (const auto* choice = e.as<hi::Call>(); choice && choice->is_intrinsic(hi::Call::if_then_else)) {
      return std::max(magnitude(choice->args[1]), magnitude(choice->args[2]));
    }
    return e.type().is_bool() ? 1 : largest(e.type());
  }

  std::optional<Exponential> of_cast(const hi::Cast& cast) const {
    if (!cast.type.is_float() || !cast.value.type().is_float()) return std::nullopt;
    std::optional<Exponential> value = of(cast.value);
    const bool narrows = cast.type.bits() < cast.value.type().bits();
    if (value && narrows && value->most > largest(cast.type)) return std::nullopt;
    return value;
  }

  std::optional<Exponential> of_sum(const Expr& a, const Expr& b) const {
    const std::optional<Exponential> x = of(a), y = of(b);
    if (!x || !y || x->factor != y->factor) return std::nullopt;
    return Exponential{x->factor, x->most + y->most, either(x->present, y->present)};
  }

  Analysis where(const Expr& condition, bool holds) const {
    Extreme there = extreme_;
    there.value = value_where(extreme_.value, condition, holds);
    return Analysis(there);
  }

  std::optional<Exponential> of_choice(const Expr& condition, const Expr& a, const Expr& b) const {
    if (ir::mentions(condition, extreme_.variable)) return std::nullopt;
    std::optional<Exponential> x = where(condition, true).of(value_where(a, condition, true));
    std::optional<Exponential> y = where(condition, false).of(value_where(b, condition, false));
    if (!x || !y) return std::nullopt;
    const bool is_zero = constant_number(a) == 0.0, is_other_zero = constant_number(b) == 0.0;
    if (is_zero || is_other_zero) {
      Exponential& value = is_zero ? *y : *x;
      value.present = both(is_zero ? hi::Not::make(condition) : condition, value.present);
      return value;
    }
    if (x->factor != y->factor) return std::nullopt;
    const auto or_true = [](const Expr& e) { return e.defined() ? e : hi::const_true(); };
    Expr present;
    if (x->present.defined() || y->present.defined()) {
      present = hi::Select::make(condition, or_true(x->present), or_true(y->present));
    }
    return Exponential{x->factor, std::max(x->most, y->most), present};
  }

  std::optional<Exponential> of_call(const hi::Call& call) const {
    if (call.is_intrinsic(hi::Call::if_then_else)) return of_choice(call.args[0], call.args[1], call.args[2]);
    const std::optional<double> base = log_of_base(call);
    return base ? of_power(call.args[0], *base) : std::nullopt;
  }

  /// exp(by * exponent).
  std::optional<Exponential> of_power(const Expr& exponent, double by) const {
    constexpr double kMostExponent = 10;
    Sum sum;
    add(exponent, by, sum);
    double factor = 0;
    for (const auto& [term, coefficient] : sum.terms) {
      const auto* variable = term.as<hi::Variable>();
      if (variable && variable->name == extreme_.variable) {
        factor = coefficient;
      } else if (ir::mentions(term, extreme_.variable)) {
        return std::nullopt;
      }
    }
    // The greater a maximum, the less the value.
    if (!std::isfinite(factor) || (extreme_.is_maximum ? factor >= 0 : factor <= 0)) return std::nullopt;
    // It is greatest where the extreme is the value itself. What is left then must be a constant.
    Sum at_value = sum;
    for (auto& [term, coefficient] : at_value.terms) {
      const auto* variable = term.as<hi::Variable>();
      if (variable && variable->name == extreme_.variable) coefficient = 0;
    }
    add(extreme_.value, factor, at_value);
    constexpr double kRounding = 1e-12;  // of factors that are multiplied in another order
    for (const auto& [term, coefficient] : at_value.terms) {
      if (std::abs(coefficient) > kRounding * std::abs(factor)) return std::nullopt;
    }
    if (!(at_value.constant <= kMostExponent)) return std::nullopt;
    return Exponential{factor, std::exp(at_value.constant), {}};
  }

  const Extreme extreme_;
};

}  // namespace

std::optional<double> constant_number(const Expr& e) {
  using Function = double (*)(double);
  static const std::map<std::string, Function> kFunctions = {
      {"sqrt", [](double x) { return std::sqrt(x); }}, {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"exp", [](double x) { return std::exp(x); }},   {"exp2", [](double x) { return std::exp2(x); }},
      {"log", [](double x) { return std::log(x); }},   {"log2", [](double x) { return std::log2(x); }}};
  if (const int64_t* value = ir::constant_int(e)) return static_cast<double>(*value);
  if (const uint64_t* value = ir::constant_uint(e)) return static_cast<double>(*value);
  if (const double* value = ir::constant_float(e)) return *value;
  if (const auto* cast = e.as<hi::Cast>()) {
    return cast->type.is_float() ? constant_number(cast->value) : std::nullopt;
  }
  const auto apply_to = [](const auto& op, auto apply) -> std::optional<double> {
    const std::optional<double> a = constant_number(op.a), b = constant_number(op.b);
    return a && b ? std::optional<double>(apply(*a, *b)) : std::nullopt;
  };
  if (!e.type().is_float()) return std::nullopt;
  if (const auto* op = e.as<hi::Add>()) return apply_to(*op, [](double a, double b) { return a + b; });
  if (const auto* op = e.as<hi::Sub>()) return apply_to(*op, [](double a, double b) { return a - b; });
  if (const auto* op = e.as<hi::Mul>()) return apply_to(*op, [](double a, double b) { return a * b; });
  if (const auto* op = e.as<hi::Div>()) return apply_to(*op, [](double a, double b) { return a / b; });
  const auto* call = e.as<hi::Call>();
  const auto function = call ? kFunctions.find(call->name) : kFunctions.end();
  if (function == kFunctions.end()) return std::nullopt;
  const std::optional<double> argument = constant_number(call->args[0]);
  return argument ? std::optional<double>(function->second(*argument)) : std::nullopt;
}

std::optional<Exponential> exponential_in(const Expr& value, const Extreme& extreme) {
  return Analysis(extreme).of(value);
}

/// The finite number that is farthest from zero: Halide has float16's for bfloat16.
static Expr farthest(Halide::Type type, bool is_negative) {
  constexpr double kBFloat16 = 0x1.fep127;
  if (type.is_bfloat()) return hi::make_const(type, is_negative ? -kBFloat16 : kBFloat16);
  return is_negative ? type.min() : type.max();
}

Expr number_of_extreme(const Expr& extreme, bool is_maximum) {
  const Expr limit = farthest(extreme.type(), is_maximum);
  return is_maximum ? hi::Max::make(extreme, limit) : hi::Min::make(extreme, limit);
}

bool is_number_of_extreme(const Expr& e) {
  if (const auto* most = e.as<hi::Max>()) return hi::equal(most->b, farthest(e.type(), true));
  const auto* least = e.as<hi::Min>();
  return least != nullptr && hi::equal(least->b, farthest(e.type(), false));
}

/// exp(by * exponent): zero where nothing but a multiple of the extreme is added to an infinity.
static Vanishing vanishing_power(const Expr& exponent, double by, const Extreme& extreme) {
  Sum sum;
  add(exponent, by, sum);
  double factor = 0;
  for (const auto& [term, coefficient] : sum.terms) {
    const auto* variable = term.as<hi::Variable>();
    if (!variable || variable->name != extreme.variable) return Vanishing::kNo;
    factor = coefficient;
  }
  if (!std::isfinite(factor) || factor == 0 || (factor < 0) != extreme.is_maximum) return Vanishing::kNo;
  if (std::isfinite(sum.constant)) return Vanishing::kFar;
  return sum.constant < 0 ? Vanishing::kAlways : Vanishing::kNo;
}

Vanishing vanishing_of(const Expr& e, const Extreme& extreme) {
  const auto of = [&](const Expr& part) { return vanishing_of(part, extreme); };
  if (const std::optional<double> value = constant_number(e)) return *value == 0 ? Vanishing::kAlways : Vanishing::kNo;
  if (const auto* cast = e.as<hi::Cast>()) {
    return cast->type.is_float() && cast->value.type().is_float() ? of(cast->value) : Vanishing::kNo;
  }
  if (const auto* times = e.as<hi::Mul>()) return std::max(of(times->a), of(times->b));
  if (const auto* over = e.as<hi::Div>()) return of(over->a);
  if (const auto* plus = e.as<hi::Add>()) return std::min(of(plus->a), of(plus->b));
  if (const auto* minus = e.as<hi::Sub>()) return std::min(of(minus->a), of(minus->b));
  if (const auto* choice = e.as<hi::Select>()) return std::min(of(choice->true_value), of(choice->false_value));
  const auto* call = e.as<hi::Call>();
  if (!call) return Vanishing::kNo;
  if (call->is_intrinsic(hi::Call::if_then_else)) return std::min(of(call->args[1]), of(call->args[2]));
  const std::optional<double> base = log_of_base(*call);
  return base ? vanishing_power(call->args[0], *base, extreme) : Vanishing::kNo;
}

}  // namespace tc::gpu
