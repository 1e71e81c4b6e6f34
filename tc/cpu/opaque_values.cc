#include "tc/cpu/opaque_values.h"

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tc/ir/fold_constant.h"
#include "tc/support/check.h"

namespace tc::cpu {
namespace {

using namespace Halide;
using namespace Halide::Internal;

bool is_narrow_float(Type type) { return type.is_float() && type.bits() == 16; }
/// An 8-bit float is its bits, in registers too: only a cast converts it (T8).
bool is_float8(Type type) { return type.is_float() && type.bits() == 8; }
Type in_registers(Type type) {
  return is_narrow_float(type) ? Float(32, type.lanes()) : is_float8(type) ? UInt(8, type.lanes()) : type;
}
Type in_memory(Type type) {
  if (is_narrow_float(type)) return UInt(16, type.lanes());
  return is_float8(type) || type.is_bool() ? UInt(8, type.lanes()) : type;
}

Expr opaque(Type type, const char* name, const std::vector<Expr>& args) {
  return Call::make(type, name, args, Call::PureExtern);
}
Expr from_memory(Type type, Expr bits) {
  if (type.is_bool()) return NE::make(bits, make_zero(bits.type()));
  if (!is_narrow_float(type)) return bits;
  return opaque(in_registers(type), type.is_bfloat() ? "tc.from_bfloat" : "tc.from_half", {std::move(bits)});
}
Expr to_memory(Type type, Expr value) {
  if (type.is_bool()) return Cast::make(in_memory(type), value);
  if (!is_narrow_float(type)) return value;
  return opaque(in_memory(type), type.is_bfloat() ? "tc.to_bfloat" : "tc.to_half", {std::move(value)});
}
Expr round_to(Type type, Expr value) {
  if (!is_narrow_float(type)) return value;
  return opaque(in_registers(type), type.is_bfloat() ? "tc.round_bfloat" : "tc.round_half", {std::move(value)});
}

/// Whether an expression depends on memory, a scalar of the caller's or an intrinsic, and so is a value rather than a
/// subscript.
class IsValue : public IRGraphVisitor {
 public:
  explicit IsValue(const std::set<std::string>& scalars) : scalars_(scalars) {}
  bool found = false;

 private:
  using IRGraphVisitor::visit;
  void visit(const Load*) override { found = true; }
  void visit(const Variable* op) override { found = found || scalars_.contains(op->name); }
  void visit(const Call* op) override {
    if (op->call_type == Call::PureExtern) found = true;
    IRGraphVisitor::visit(op);
  }

  const std::set<std::string>& scalars_;
};

bool reads_memory(const Expr& e) {
  class HasMemory : public IRGraphVisitor {
   public:
    bool found = false;

   private:
    using IRGraphVisitor::visit;
    void visit(const Load*) override { found = true; }
  } visitor;
  e.accept(&visitor);
  return visitor.found;
}

class MakeOpaque : public IRMutator {
 public:
  MakeOpaque(bool strict, std::set<std::string> scalars) : strict_(strict), scalars_(std::move(scalars)) {}

  using IRMutator::mutate;
  /// Expressions are graphs: each node is rewritten once per context.
  Expr mutate(const Expr& e) override {
    auto key = std::make_pair(e.get(), in_value_);
    if (auto it = done_.find(key); it != done_.end()) return it->second.second;
    Expr result = ir::fold_constant(IRMutator::mutate(e));
    done_.emplace(key, std::make_pair(e, result));  // keeps `e`, so that its address stays its own
    return result;
  }

 private:
  using IRMutator::visit;

  bool is_value(const Expr& e) const {
    IsValue visitor(scalars_);
    e.accept(&visitor);
    return visitor.found;
  }
  Expr value(const Expr& e) { return in_context(e, true); }
  Expr subscript(const Expr& e) { return in_context(e, false); }
  /// Conditions and lets: a value if it depends on memory or a scalar, else left to Halide.
  Expr value_if_loaded(const Expr& e) { return in_context(e, e.type().is_float() || is_value(e)); }
  Expr in_context(const Expr& e, bool in_value) {
    bool saved = std::exchange(in_value_, in_value);
    Expr result = mutate(e);
    in_value_ = saved;
    return result;
  }
  Expr rounded(Type type, Expr e) { return strict_ ? round_to(type, std::move(e)) : e; }

  template <typename Op>
  Expr arithmetic(const Op* op, const char* name) {
    if (op->type.is_float())
      return rounded(op->type, opaque(in_registers(op->type), name, {value(op->a), value(op->b)}));
    if (in_value_ && op->type.is_int() && op->type.bits() >= 32) {
      return opaque(op->type, name, {mutate(op->a), mutate(op->b)});
    }
    return IRMutator::visit(op);
  }
  template <typename Op>
  Expr float_only(const Op* op, const char* name) {
    if (!op->type.is_float()) return IRMutator::visit(op);
    return rounded(op->type, opaque(in_registers(op->type), name, {value(op->a), value(op->b)}));
  }
  /// Halide splits a loop where an extremum in a subscript changes sides, as if memory stayed what it is.
  template <typename Op>
  Expr extremum(const Op* op, const char* name) {
    if (!op->type.is_float() && reads_memory(op)) return opaque(op->type, name, {mutate(op->a), mutate(op->b)});
    return float_only(op, name);
  }
  template <typename Op>
  Expr comparison(const Op* op, const char* name) {
    if (op->a.type().is_float()) return opaque(op->type, name, {value(op->a), value(op->b)});
    bool loaded = is_value(op->a) || is_value(op->b);
    return Op::make(in_context(op->a, loaded), in_context(op->b, loaded));
  }

  Expr visit(const Add* op) override { return arithmetic(op, "tc.add"); }
  Expr visit(const Sub* op) override { return arithmetic(op, "tc.sub"); }
  Expr visit(const Mul* op) override { return arithmetic(op, "tc.mul"); }
  Expr visit(const Div* op) override { return float_only(op, "tc.div"); }
  Expr visit(const Mod* op) override { return float_only(op, "tc.floor_mod"); }
  Expr visit(const Min* op) override { return extremum(op, "tc.min"); }
  Expr visit(const Max* op) override { return extremum(op, "tc.max"); }
  Expr visit(const EQ* op) override { return comparison(op, "tc.eq"); }
  Expr visit(const NE* op) override { return comparison(op, "tc.ne"); }
  Expr visit(const LT* op) override { return comparison(op, "tc.lt"); }
  Expr visit(const LE* op) override { return comparison(op, "tc.le"); }
  Expr visit(const GT* op) override { return comparison(op, "tc.gt"); }
  Expr visit(const GE* op) override { return comparison(op, "tc.ge"); }

  /// Halide holds a NaN equal to every constant, and -0.0 to 0.0.
  Expr visit(const FloatImm* op) override {
    if (std::isnan(op->value) || (op->value == 0 && std::signbit(op->value))) {
      uint64_t bits;
      std::memcpy(&bits, &op->value, sizeof bits);
      return opaque(in_registers(op->type), "tc.constant", {make_const(UInt(64), bits)});
    }
    return FloatImm::make(in_registers(op->type), op->value);
  }

  Expr visit(const Cast* op) override {
    Type from = op->value.type(), to = op->type;
    if (to.is_bool() && !from.is_bool()) return mutate(op->value != make_zero(from));
    if (!from.is_float() && !to.is_float()) {
      const Expr inner = mutate(op->value);
      // Halide may find that an unsigned value is its type's greatest, and calls its cast an overflow.
      const bool may_overflow = from.is_uint() && to.is_int() && to.bits() <= from.bits();
      if (may_overflow && in_value_ && !is_const(inner)) return opaque(to, "tc.cast", {inner});
      return Cast::make(to, inner);
    }
    Expr inner = from.is_float() ? value(op->value) : mutate(op->value);
    if (is_float8(from)) {
      inner = opaque(Float(32, from.lanes()), from.is_bfloat() ? "tc.from_e5m2" : "tc.from_e4m3", {inner});
    }
    if (is_float8(to)) {
      if (!inner.type().is_float()) inner = opaque(Float(32, to.lanes()), "tc.cast", {inner});
      return opaque(in_memory(to), to.is_bfloat() ? "tc.to_e5m2" : "tc.to_e4m3", {inner});
    }
    if (is_narrow_float(to)) {
      if (inner.type().is_float() && inner.type().bits() == 32) return round_to(to, inner);
      // One rounding, not two: by way of float64, which the rounding call accepts.
      return round_to(to, opaque(Float(64, to.lanes()), "tc.cast", {inner}));
    }
    if (inner.type() == to) return inner;
    return opaque(to, "tc.cast", {inner});
  }

  Expr visit(const Select* op) override {
    return Select::make(value_if_loaded(op->condition), mutate(op->true_value), mutate(op->false_value));
  }
  Expr visit(const Variable* op) override { return Variable::make(in_registers(op->type), op->name); }

  Expr visit(const Load* op) override {
    Expr load = Load::make(in_memory(op->type), op->name, subscript(op->index), op->image, op->param,
                           value_if_loaded(op->predicate), op->alignment);
    return from_memory(op->type, load);
  }
  Stmt visit(const Store* op) override {
    Type type = op->value.type();
    Expr stored = op->value;
    // The store rounds; a cast to the same type would do so before it.
    if (const Cast* cast = stored.as<Cast>();
        cast && is_narrow_float(type) && cast->value.type() == Float(32, type.lanes())) {
      stored = cast->value;
    }
    return Store::make(op->name, to_memory(type, value(stored)), subscript(op->index), op->param,
                       value_if_loaded(op->predicate), op->alignment);
  }

  Expr visit(const Call* op) override {
    if (op->is_intrinsic(Call::strict_float)) return mutate(op->args[0]);
    std::vector<Expr> args;
    bool is_function = op->call_type == Call::PureExtern;
    for (const Expr& arg : op->args) args.push_back(is_function ? value(arg) : mutate(arg));
    if (op->is_intrinsic(Call::abs) && op->type.is_float()) return opaque(in_registers(op->type), "fabs", args);
    Expr call = Call::make(in_registers(op->type), op->name, args, op->call_type);
    return is_function ? rounded(op->type, call) : call;
  }

  Expr visit(const Let* op) override { return Let::make(op->name, value_if_loaded(op->value), mutate(op->body)); }
  Stmt visit(const LetStmt* op) override {
    return LetStmt::make(op->name, value_if_loaded(op->value), mutate(op->body));
  }
  /// The simplifier takes a condition for true in all of the branch, also behind a store that changes what it reads. So
  /// such a condition is a name, whose value does not change.
  Stmt visit(const IfThenElse* op) override {
    Expr condition = value_if_loaded(op->condition);
    const bool reads = reads_memory(op->condition);
    const std::string name = reads ? "tc.if." + std::to_string(conditions_++) : "";
    Stmt result = IfThenElse::make(reads ? Variable::make(Bool(), name) : condition, mutate(op->then_case),
                                   op->else_case.defined() ? mutate(op->else_case) : Stmt());
    return reads ? LetStmt::make(name, condition, result) : result;
  }
  Stmt visit(const Allocate* op) override {
    return Allocate::make(op->name, in_memory(op->type), op->memory_type, op->extents, op->condition, mutate(op->body),
                          op->new_expr, op->free_function);
  }

  bool strict_;
  std::set<std::string> scalars_;  ///< arguments
  bool in_value_ = false;
  int conditions_ = 0;  ///< that have got a name
  std::map<std::pair<const BaseExprNode*, bool>, std::pair<Expr, Expr>> done_;
};

}  // namespace

Stmt make_values_opaque(const Stmt& stmt, std::span<const KernelArgument> arguments, bool strict) {
  std::set<std::string> scalars;
  for (const KernelArgument& argument : arguments) {
    if (!argument.is_buffer) scalars.insert(argument.name);
  }
  Stmt body = MakeOpaque(strict, std::move(scalars)).mutate(stmt);
  for (const KernelArgument& argument : arguments) {
    if (argument.is_buffer || in_memory(argument.type) == argument.type) continue;
    Expr passed = Variable::make(in_memory(argument.type), argument.name + ".passed");
    body = LetStmt::make(argument.name, from_memory(argument.type, passed), body);
  }
  return body;
}

std::vector<LoweredArgument> passed_arguments(std::span<const KernelArgument> arguments) {
  std::vector<LoweredArgument> result;
  for (const KernelArgument& argument : arguments) {
    Type type = argument.is_buffer ? Handle() : in_memory(argument.type);
    bool renamed = !argument.is_buffer && type != argument.type;
    result.emplace_back(renamed ? argument.name + ".passed" : argument.name, Argument::InputScalar, type, 0,
                        ArgumentEstimates{});
  }
  return result;
}

}  // namespace tc::cpu
