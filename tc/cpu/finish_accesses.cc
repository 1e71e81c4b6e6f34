#include "tc/cpu/finish_accesses.h"

#include <algorithm>
#include <map>

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
      Parameter parameter(argument.type, true, 1, argument.name);
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

  Parameter parameter_of(const std::string& buffer) const {
    auto it = parameters_.find(buffer);
    return it == parameters_.end() ? Parameter() : it->second;
  }

  /// Where a vector access has a constant place, the code generator says in metadata which elements it may touch: those
  /// from its first lane on. Vectors that run backwards touch others; and it fails where the first lane's element would
  /// be negative, as it may be where a predicate switches lanes off.
  Expr hidden(const Expr& index) {
    const auto* ramp = index.as<Ramp>();
    if (ramp == nullptr) return index;
    const int64_t* base = as_const_int(ramp->base);
    const int64_t* stride = as_const_int(ramp->stride);
    if (base == nullptr || stride == nullptr || (*base >= 0 && *stride > 0)) return index;
    hides_ = true;
    Expr zero = Variable::make(Halide::Int(32), kZero);
    if (ramp->base.type() != zero.type()) zero = Cast::make(ramp->base.type(), zero);
    return Ramp::make(Add::make(zero, ramp->base), ramp->stride, ramp->lanes);
  }

  Expr visit(const Load* op) override {
    return Load::make(op->type, op->name, hidden(mutate(op->index)), op->image, parameter_of(op->name),
                      mutate(op->predicate), op->alignment);
  }
  Stmt visit(const Store* op) override {
    return Store::make(op->name, mutate(op->value), hidden(mutate(op->index)), parameter_of(op->name),
                       mutate(op->predicate), op->alignment);
  }

  std::map<std::string, Parameter> parameters_;
  bool hides_ = false;
};

}  // namespace

Stmt finish_accesses(const Stmt& stmt, std::span<const KernelArgument> arguments) {
  return FinishAccesses(arguments).run(stmt);
}

}  // namespace tc::cpu
