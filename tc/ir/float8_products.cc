#include "tc/ir/float8_products.h"

#include <functional>
#include <set>
#include <string>
#include <utility>

namespace tc::ir {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

class Finder {
 public:
  explicit Finder(const Program& program) : program_(program) {}

  /// A product of two elements, or a zero.
  bool is_product(const Expr& e) {
    if (const auto* product = e.as<hi::Mul>()) return is_element(product->a) && is_element(product->b);
    return is_moved(e, true, [&](const Expr& from) { return is_product(from); });
  }

 private:
  using Test = std::function<bool(const Expr&)>;

  /// The value of an element of a tensor of 8-bit floats, or a zero. All other floats have these values.
  bool is_element(const Expr& e) {
    if (const auto* cast = e.as<hi::Cast>()) {
      const Expr& from = cast->value;
      return hi::is_const_zero(from) || (cast->type.is_float() && from.type().is_float() && is_element(from));
    }
    const auto* read = e.as<hi::Call>();
    if (read && is_tensor_read(program_, read) && is_float8(read->type)) return true;
    return is_moved(e, false, [&](const Expr& from) { return is_element(from); });
  }

  /// A zero, a choice, or a read of a temporary, all of whose values pass.
  bool is_moved(const Expr& e, bool products, const Test& passes) {
    if (hi::is_const_zero(e)) return true;
    if (const auto* select = e.as<hi::Select>()) return passes(select->true_value) && passes(select->false_value);
    const auto* call = e.as<hi::Call>();
    if (!call) return false;
    if (call->is_intrinsic(hi::Call::if_then_else)) return passes(call->args[1]) && passes(call->args[2]);
    if (!is_tensor_read(program_, call) || program_.tensor(call->name).role != Role::kTemporary) return false;
    if (!seen_.emplace(call->name, products).second) return true;
    for (const Statement& s : program_.statements) {
      if (s.tensor == call->name && (s.assign != Assign::kSet || !passes(s.value))) return false;
    }
    return true;
  }

  const Program& program_;
  std::set<std::pair<std::string, bool>> seen_;  ///< temporaries, and whether as products
};

}  // namespace

bool sums_float8_products(const Program& program, const Statement& statement) {
  return statement.assign == Assign::kAdd && statement.accumulator == Halide::Float(32) &&
         Finder(program).is_product(statement.value);
}

}  // namespace tc::ir
