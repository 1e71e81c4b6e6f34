#include "tc/cpu/hidden_allocations.h"

#include <algorithm>

namespace tc::cpu {

using namespace Halide::Internal;
using Halide::Expr;

Stmt HiddenAllocations::hide(const Stmt& stmt) {
  class Hide : public IRMutator {
   public:
    explicit Hide(std::map<std::string, Stmt>& allocations) : allocations_(allocations) {}

   private:
    using IRMutator::visit;
    Stmt visit(const Allocate* op) override {
      const bool constant =
          is_const_one(op->condition) &&
          std::all_of(op->extents.begin(), op->extents.end(), [](const Expr& extent) { return is_const(extent); });
      if (!constant) return IRMutator::visit(op);
      allocations_[op->name] = op;
      return ProducerConsumer::make_produce(op->name, mutate(op->body));
    }
    std::map<std::string, Stmt>& allocations_;
  };
  return Hide(allocations_).mutate(stmt);
}

Stmt HiddenAllocations::restore(const Stmt& stmt) const {
  class Restore : public IRMutator {
   public:
    explicit Restore(const std::map<std::string, Stmt>& allocations) : allocations_(allocations) {}

   private:
    using IRMutator::visit;
    Stmt visit(const ProducerConsumer* op) override {
      auto it = allocations_.find(op->name);
      if (it == allocations_.end()) return IRMutator::visit(op);
      const auto* allocation = it->second.as<Allocate>();
      return Allocate::make(allocation->name, allocation->type, allocation->memory_type, allocation->extents,
                            allocation->condition, mutate(op->body), allocation->new_expr, allocation->free_function);
    }
    const std::map<std::string, Stmt>& allocations_;
  };
  return Restore(allocations_).mutate(stmt);
}

}  // namespace tc::cpu
