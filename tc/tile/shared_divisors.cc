#include "tc/tile/shared_divisors.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace tc::tile {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

class Sharer : public hi::IRMutator {
 public:
  explicit Sharer(bool strict) : strict_(strict) {}

  NodePtr run(const NodePtr& node) {
    if (!node) return node;
    const NodePtr changed = map_exprs(node, [&](const Expr& e) { return mutate(e); });
    const auto children = [&] { return map_children(changed, [&](const NodePtr& child) { return run(child); }); };
    return match(
        *changed,
        [&](const For& loop) {
          if (!loop.unrolled) return children();
          unrolled_.push_back({loop.variable, *constant_trips(loop), written_in(loop.body)});
          const NodePtr result = children();
          unrolled_.pop_back();
          return result;
        },
        [&](const OneOf<Sequence, If, Let, Allocate, Ring> auto&) { return children(); },
        [&](const Synchronisation auto&) { return changed; }, [&](const Spec auto&) { return changed; });
  }

 private:
  struct Unrolled {
    std::string variable;
    int64_t count;
    std::set<std::string> written;  ///< tensors, in the loop
  };

  static std::set<std::string> written_in(const NodePtr& body) {
    std::set<std::string> result;
    for_each_node(body, [&](const Node& node) {
      for_each_access(node, [&](const NodeAccess& access) {
        if (access.is_write) result.insert(access.tensor);
      });
    });
    return result;
  }

  /// Whether a value may be another one in each turn of a loop.
  static bool varies(const Expr& value, const Unrolled& loop) {
    struct Finder : hi::IRVisitor {
      explicit Finder(const std::set<std::string>& tensors) : tensors(tensors) {}
      const std::set<std::string>& tensors;
      bool found = false;
      using IRVisitor::visit;
      void visit(const hi::Call* op) override {
        found = found || tensors.count(op->name) > 0;
        IRVisitor::visit(op);
      }
    } finder(loop.written);
    value.accept(&finder);
    return finder.found || hi::expr_uses_var(value, loop.variable);
  }

  using IRMutator::visit;
  Expr visit(const hi::Cast* op) override {
    const bool narrows = !strict_ && op->type.is_float() && op->type.bits() == 16;
    const auto* quotient = op->value.as<hi::Div>();
    if (!narrows || quotient == nullptr || quotient->type != Halide::Float(32) || is_power_of_two(quotient->b))
      return IRMutator::visit(op);
    const std::vector<Expr> operands = {mutate(quotient->a), mutate(quotient->b)};
    return hi::Cast::make(op->type, hi::Call::make(quotient->type, kNarrowQuotient, operands, hi::Call::PureExtern));
  }
  /// By which a division is a multiplication.
  static bool is_power_of_two(const Expr& e) {
    const double* number = hi::as_const_float(e);
    int exponent = 0;
    return number != nullptr && std::fabs(std::frexp(*number, &exponent)) == 0.5;
  }
  Expr visit(const hi::Div* op) override {
    constexpr int64_t kOften = 4;
    int64_t values = 1;
    for (const Unrolled& loop : unrolled_) {
      if (varies(op->a, loop) && !varies(op->b, loop)) values *= loop.count;
    }
    if (op->type != Halide::Float(32) || values < kOften) return IRMutator::visit(op);
    return hi::Call::make(op->type, kQuotient, {mutate(op->a), mutate(op->b)}, hi::Call::PureExtern);
  }

  const bool strict_;
  std::vector<Unrolled> unrolled_;  ///< loops around
};

}  // namespace

Program share_divisors(Program program, bool strict) {
  for (Kernel& kernel : program.kernels) kernel.body = Sharer(strict).run(kernel.body);
  return program;
}

}  // namespace tc::tile
