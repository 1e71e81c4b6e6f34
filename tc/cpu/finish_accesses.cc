#include "tc/cpu/finish_accesses.h"

#include <algorithm>
#include <map>

#include "tc/ir/halide_compat.h"

namespace tc::cpu {
namespace {

using namespace Halide::Internal;
using Halide::Expr;

constexpr char kZero[] = "tc.zero";

class FinishAccesses : public IRMutator {
 public:
  explicit FinishAccesses(std::span<const KernelArgument> arguments) {
    for (const KernelArgument& argument : arguments) {
      if (!argument.is_buffer) continue;
      ir::HalideParameter parameter(argument.type, true, 1, argument.name);
      parameter.set_host_alignment(std::max(argument.alignment_bytes, argument.type.bytes()));
      parameters_.emplace(argument.name, parameter);
    }
  }

  Stmt run(const Stmt& stmt) {
    Stmt result = mutate(stmt);
    return hides_ ? LetStmt::make(kZero, 0, result) : result;
  }

 private:
  using IRMutator::visit;

  ir::HalideParameter parameter_of(const std::string& buffer) const {
    auto it = parameters_.find(buffer);
    return it == parameters_.end() ? ir::HalideParameter() : it->second;
  }

  struct Place {
    Expr index;
    ModulusRemainder alignment;
  };

  /// What the code generator concludes from a vector access at a constant place is wrong unless its elements follow
  /// each other from one of the buffer's on:
  ///   - its metadata say that elements from the first lane's on are touched; it fails where that one is negative, as
  ///     it may be where a predicate switches lanes off;
  ///   - a load of every second to fourth element becomes loads of all from a place before the first lane's, which pass
  ///     for aligned to a vector (a remainder modulo 0 is taken for 0).
  Place hidden(const Expr& index, const ModulusRemainder& alignment) {
    const auto* ramp = index.as<Ramp>();
    if (ramp == nullptr) return {index, alignment};
    const int64_t* base = ir::constant_int(ramp->base);
    if (base == nullptr || (*base >= 0 && is_const_one(ramp->stride))) return {index, alignment};
    hides_ = true;
    Expr zero = Variable::make(Halide::Int(32), kZero);
    if (ramp->base.type() != zero.type()) zero = Cast::make(ramp->base.type(), zero);
    return {Ramp::make(Add::make(zero, ramp->base), ramp->stride, ramp->lanes), ModulusRemainder()};
  }

  Expr visit(const Load* op) override {
    const Place place = hidden(mutate(op->index), op->alignment);
    return Load::make(op->type, op->name, place.index, op->image, parameter_of(op->name), mutate(op->predicate),
                      place.alignment);
  }
  Stmt visit(const Store* op) override {
    const Place place = hidden(mutate(op->index), op->alignment);
    return Store::make(op->name, mutate(op->value), place.index, parameter_of(op->name), mutate(op->predicate),
                       place.alignment);
  }

  std::map<std::string, ir::HalideParameter> parameters_;
  bool hides_ = false;
};

}  // namespace

Stmt finish_accesses(const Stmt& stmt, std::span<const KernelArgument> arguments) {
  return FinishAccesses(arguments).run(stmt);
}

}  // namespace tc::cpu
