#include "tc/cpu/lanes.h"

#include <optional>
#include <utility>

#include "tc/ir/halide_compat.h"
#include "tc/ir/program.h"

namespace tc::cpu {

using Halide::Expr;
using Halide::Internal::Stmt;
namespace hi = Halide::Internal;

namespace {

/// The operands of an update `old op value`.
template <typename Operation>
std::optional<std::pair<Expr, Expr>> operands_of(const Expr& expr) {
  const auto* op = expr.as<Operation>();
  if (op == nullptr) return std::nullopt;
  return std::pair(op->a, op->b);
}

}  // namespace

int64_t lane_step(const Expr& index, const std::string& lane) {
  Expr variable = hi::Variable::make(Halide::Int(32), lane);
  Expr step = hi::simplify(hi::substitute(lane, variable + 1, index) - index);
  const int64_t* value = ir::constant_int(step);
  return value != nullptr ? *value : 0;
}

bool has_condition_on(const Stmt& body, const std::string& variable) {
  class Finder : public hi::IRVisitor {
   public:
    explicit Finder(const std::string& variable) : variable_(variable) {}
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::IfThenElse* op) override {
      found = found || hi::expr_uses_var(op->condition, variable_);
      IRVisitor::visit(op);
    }
    const std::string& variable_;
  } finder(variable);
  body.accept(&finder);
  return finder.found;
}

bool can_predicate(const Stmt& body, const std::string& lane, const std::set<std::string>& unrolled) {
  class Finder : public hi::IRVisitor {
   public:
    Finder(const std::string& lane, const std::set<std::string>& unrolled) : lane_(lane), unrolled_(unrolled) {}
    bool fits = true;

   private:
    using IRVisitor::visit;
    void visit(const hi::Load* op) override { check(op->index), IRVisitor::visit(op); }
    void visit(const hi::Store* op) override { check(op->index), IRVisitor::visit(op); }
    void check(const Expr& index) {
      if (!hi::expr_uses_var(index, lane_)) return;
      Expr first = hi::substitute(lane_, 0, index);
      for (const std::string& name : unrolled_) first = hi::substitute(name, 0, first);
      first = hi::simplify(first);  // kept: as_const_int points into it
      const int64_t* constant = ir::constant_int(first);
      fits = fits && lane_step(index, lane_) == 1 && (constant == nullptr || *constant >= 0);
    }
    const std::string& lane_;
    const std::set<std::string>& unrolled_;
  } finder(lane, unrolled);
  body.accept(&finder);
  return finder.fits;
}

bool leaves_one_lane(const Stmt& body, int64_t lanes, int vector_bits) {
  class Finder : public hi::IRVisitor {
   public:
    Finder(int64_t lanes, int vector_bits) : lanes_(lanes), vector_bits_(vector_bits) {}
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Load* op) override { check(op->type), IRVisitor::visit(op); }
    void visit(const hi::Store* op) override { check(op->value.type()), IRVisitor::visit(op); }
    void check(const Halide::Type& type) {
      const int64_t most = vector_bits_ / (8 * type.bytes());
      found = found || (lanes_ > most && lanes_ % most == 1);
    }
    const int64_t lanes_;
    const int vector_bits_;
  } finder(lanes, vector_bits);
  body.accept(&finder);
  return finder.found;
}

bool stores_to_one_place(const Stmt& body, const std::string& lane) {
  class Finder : public hi::IRVisitor {
   public:
    explicit Finder(const std::string& lane) : lane_(lane) {}
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Store* op) override {
      found = found || !hi::expr_uses_var(op->index, lane_);
      IRVisitor::visit(op);
    }
    const std::string& lane_;
  } finder(lane);
  body.accept(&finder);
  return finder.found;
}

bool updates_may_collide(const Stmt& body, const std::string& lane) {
  class Loads : public hi::IRVisitor {
   public:
    explicit Loads(const std::string& buffer) : buffer_(buffer) {}
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Load* op) override {
      found = found || op->name == buffer_;
      IRVisitor::visit(op);
    }
    const std::string& buffer_;
  };
  class Finder : public hi::IRVisitor {
   public:
    explicit Finder(const std::string& lane) : lane_(lane) {}
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Store* op) override {
      Loads loads(op->name);
      op->value.accept(&loads);
      found = found || (loads.found && lane_step(op->index, lane_) == 0);
    }
    const std::string& lane_;
  } finder(lane);
  body.accept(&finder);
  return finder.found;
}

Stmt reduce_lanes(const Stmt& body, const std::string& lane, int lanes) {
  const auto* store = body.as<hi::Store>();
  if (store == nullptr || hi::expr_uses_var(store->index, lane)) return {};
  if (!store->value.type().is_float()) return {};  // the code generator has no such reduction of integers
  auto reduce = [&]<typename Operation>(hi::VectorReduce::Operator op) -> Stmt {
    auto operands = operands_of<Operation>(store->value);
    if (!operands || hi::expr_uses_var(operands->first, lane)) return {};
    const auto* load = operands->second.template as<hi::Load>();
    if (load == nullptr || !hi::is_const_one(load->predicate) || lane_step(load->index, lane) != 1) return {};
    Expr base = hi::simplify(hi::substitute(lane, 0, load->index));
    Expr one = hi::make_one(base.type());
    Expr vector = hi::Load::make(load->type.with_lanes(lanes), load->name, hi::Ramp::make(base, one, lanes), {}, {},
                                 hi::const_true(lanes), {});
    Expr value = Operation::make(operands->first, hi::VectorReduce::make(op, vector, 1));
    return hi::Store::make(store->name, value, store->index, store->param, store->predicate, store->alignment);
  };
  if (Stmt s = reduce.operator()<hi::Add>(hi::VectorReduce::Add); s.defined()) return s;
  if (Stmt s = reduce.operator()<hi::Mul>(hi::VectorReduce::Mul); s.defined()) return s;
  if (Stmt s = reduce.operator()<hi::Min>(hi::VectorReduce::Min); s.defined()) return s;
  return reduce.operator()<hi::Max>(hi::VectorReduce::Max);
}

Stmt blend_lanes(const Stmt& body, const Expr& condition, const std::string& lane, const std::set<std::string>& padded,
                 OtherLanes others) {
  class Mask : public hi::IRMutator {
   public:
    Mask(const Expr& condition, const std::string& lane, const std::set<std::string>& padded)
        : condition_(condition), lane_(lane), padded_(padded) {}
    bool fits = true;

   private:
    using IRMutator::visit;
    Expr visit(const hi::Load* op) override {
      if (padded_.count(op->name) > 0 || !hi::expr_uses_var(op->index, lane_)) return op;
      fits = fits && lane_step(op->index, lane_) == 1 && hi::is_const_one(op->predicate);
      return hi::Load::make(op->type, op->name, op->index, op->image, op->param, condition_, op->alignment);
    }
    const Expr& condition_;
    const std::string& lane_;
    const std::set<std::string>& padded_;
  } mask(condition, lane, padded);
  const auto* store = body.as<hi::Store>();
  if (store == nullptr || padded.count(store->name) == 0 || lane_step(store->index, lane) != 1) return {};
  Expr value = mask.mutate(store->value);
  if (!mask.fits) return {};
  Expr other = hi::Load::make(value.type(), store->name, store->index, {}, {}, store->predicate, store->alignment);
  // Halide has no number of 8-bit floats.
  if (others == OtherLanes::kNobodys && !ir::is_float8(value.type())) other = hi::make_zero(value.type());
  value = hi::Select::make(condition, value, other);
  return hi::Store::make(store->name, value, store->index, store->param, store->predicate, store->alignment);
}

}  // namespace tc::cpu
