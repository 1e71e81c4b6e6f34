#pragma once

#include <memory>

#include "tc/ir/deadline.h"
#include "tc/poly/scop.h"

namespace tc::poly {

/// One step of work that a caller does step by step in one context, with any time in between. The step has the budget's
/// operations and time to itself, and what an earlier step has used up or failed by is forgotten: isl's values are
/// immutable, and a call that is ended leaves those as they are.
/// The context is made with a deadline that never comes.
class Step {
 public:
  explicit Step(const Context& context);

 private:
  ir::IslWatchdog watchdog_;
};

}  // namespace tc::poly
