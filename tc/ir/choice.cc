#include "tc/ir/choice.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

std::optional<Choice> choice_of(const Expr& e) {
  if (const auto* select = e.as<hi::Select>()) {
    return Choice{select->condition, select->true_value, select->false_value, true};
  }
  const auto* call = e.as<hi::Call>();
  if (!call || !call->is_intrinsic(hi::Call::if_then_else) || call->args.size() != 3) return std::nullopt;
  return Choice{call->args[0], call->args[1], call->args[2]};
}

Expr make_choice(const Choice& choice) {
  if (choice.is_select) return hi::Select::make(choice.condition, choice.yes, choice.no);
  return either(choice.condition, choice.yes, choice.no);
}

Expr either(const Expr& condition, const Expr& yes, const Expr& no) {
  return hi::Call::make(yes.type(), hi::Call::if_then_else, {condition, yes, no}, hi::Call::PureIntrinsic);
}

}  // namespace tc::ir
