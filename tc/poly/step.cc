#include "tc/poly/step.h"

#include <isl/ctx.h>

namespace tc::poly {
namespace {

/// The context, ready for a step.
isl_ctx* refreshed(const Context& context) {
  isl_ctx* ctx = context.get().get();
  isl_ctx_resume(ctx);
  isl_ctx_reset_error(ctx);
  isl_ctx_reset_operations(ctx);
  return ctx;
}

}  // namespace

Step::Step(const Context& context) : watchdog_(refreshed(context), ir::after(context.budget().wall_clock_ms)) {}

}  // namespace tc::poly
