#include "tc/ir/combine.h"

#include "tc/support/check.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

Expr combine(Assign assign, const Expr& old_value, const Expr& value) {
  switch (assign) {
    case Assign::kSet:
      return value;
    case Assign::kAdd:
      return hi::Add::make(old_value, value);
    case Assign::kMul:
      return hi::Mul::make(old_value, value);
    case Assign::kMin:
      return hi::Min::make(old_value, value);
    case Assign::kMax:
      return hi::Max::make(old_value, value);
  }
  TC_CHECK(false, "an operator that does not exist");
}

}  // namespace tc::ir
