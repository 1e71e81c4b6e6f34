#include "tc/ir/tf32_values.h"

#include <set>

namespace tc::ir {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

class Finder {
 public:
  explicit Finder(const Program& program) : program_(program) {}

  bool holds(const std::string& tensor) {
    if (program_.tensor(tensor).role != Role::kTemporary) return false;
    if (!seen_.insert(tensor).second) return true;
    bool any = false;
    for (const Statement& s : program_.statements) {
      if (s.tensor != tensor) continue;
      if (s.assign != Assign::kSet || !is_tf32(s.value)) return false;
      any = true;
    }
    return any;
  }

 private:
  bool is_tf32(const Expr& e) {
    if (tf32_argument(e) || hi::is_const_zero(e)) return true;
    if (const auto* cast = e.as<hi::Cast>()) {
      const Halide::Type from = cast->value.type();
      return from.bits() <= 8 || (from.is_float() && from.bits() <= 16);
    }
    if (const auto* select = e.as<hi::Select>()) return is_tf32(select->true_value) && is_tf32(select->false_value);
    const auto* call = e.as<hi::Call>();
    if (!call) return false;
    if (call->is_intrinsic(hi::Call::if_then_else)) return is_tf32(call->args[1]) && is_tf32(call->args[2]);
    return is_tensor_read(program_, call) && holds(call->name);
  }

  const Program& program_;
  std::set<std::string> seen_;
};

}  // namespace

const Expr* tf32_argument(const Expr& e) {
  const auto* call = e.as<hi::Call>();
  return call && call->name == kTf32 && call->args.size() == 1 && e.type() == Halide::Float(32) ? &call->args[0]
                                                                                                : nullptr;
}

Expr tf32_of(const Expr& e) { return hi::Call::make(Halide::Float(32), kTf32, {e}, hi::Call::PureExtern); }

bool holds_tf32(const Program& program, const std::string& tensor) {
  return program.tensor(tensor).type == Halide::Float(32) && Finder(program).holds(tensor);
}

}  // namespace tc::ir
