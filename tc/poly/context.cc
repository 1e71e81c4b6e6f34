#include <dlfcn.h>
#include <isl/ctx.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/version.h>

#include <chrono>

#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::poly {

namespace {

/// The library that a function comes from.
template <typename Function>
const void* library_of(Function* function) {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(function), &info) ? info.dli_fbase : nullptr;
}

/// A process may have loaded another library with an isl of its own, of another version: what that lacks would come
/// from ours, and read its objects.
void check_library() {
  static const bool is_one = library_of(&isl_ctx_alloc) == library_of(&isl_map_get_range_simple_fixed_box_hull);
  TC_CHECK(is_one, "another library of this process has an isl of its own, {}, before ours", isl_version());
}

}  // namespace

Context::Context(const options::Budget& budget) : Context(budget, ir::after(budget.wall_clock_ms)) {}

Context::Context(const options::Budget& budget, std::chrono::steady_clock::time_point end)
    : budget_(budget), ctx_(isl_ctx_alloc()) {
  check_library();
  TC_CHECK(ctx_, "isl gives no context");
  isl_options_set_on_error(ctx_, ISL_ON_ERROR_CONTINUE);
  isl_ctx_set_max_operations(ctx_, budget.isl_operations);
  watchdog_ = std::make_unique<ir::IslWatchdog>(ctx_, end);
}

Context::~Context() {
  watchdog_.reset();
  isl_ctx_free(ctx_);
}

void Context::cancel() {
  cancelled_ = true;
  isl_ctx_abort(ctx_);
}

namespace {

/// Whether the context has used up its operations. The failure may surface as any other: a parser that could not
/// allocate reports a syntax error.
bool out_of_operations(const Context& context) {
  try {
    const isl::space space = named_space(context.get(), "probe", 1);
    const isl::pw_aff x = variable(space, 0);
    (void)x.ge_set(constant(space, 0)).intersect(x.le_set(constant(space, 1))).lexmin();
  } catch (const isl::exception&) {
    return true;
  }
  return false;
}

}  // namespace

Error budget_error(const Context& context, const isl::exception& exception) {
  const options::Budget& budget = context.budget();
  if (isl_ctx_aborted(context.get().get())) {
    if (context.cancelled()) return Error("the compilation was cancelled").with_kind(ErrorKind::kCancelled);
    return Error(fmt::format("this def needs more than the compile budget of {} ms", budget.wall_clock_ms))
        .with_kind(ErrorKind::kBudget);
  }
  if (out_of_operations(context)) {
    return Error(fmt::format("this def needs more than the compile budget of {} isl operations", budget.isl_operations))
        .with_kind(ErrorKind::kBudget);
  }
  TC_CHECK(false, "isl: {}", exception.what());
}

}  // namespace tc::poly
