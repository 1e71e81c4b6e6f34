#pragma once

#include "tc/lang/ast.h"

namespace tc::lang {

/// How tightly a binary operator binds; the looser, the smaller. `?:` binds at 0.
constexpr int precedence_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::kOr:
      return 1;
    case BinaryOp::kAnd:
      return 2;
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
      return 4;
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
      return 5;
    default:
      return 3;  // comparisons
  }
}

/// Unary operators and all that is no operator.
inline constexpr int kTightest = 6;

}  // namespace tc::lang
