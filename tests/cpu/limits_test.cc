#include <gtest/gtest.h>

#include "tc/cpu/code_size.h"
#include "tc/cpu/object.h"

namespace tc::cpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// for (i, 0, n) { for (j, 0, n) { out[i * n + j] = 1 } } with both loops unrolled.
Kernel unrolled(int n) {
  const Expr i = hi::Variable::make(Halide::Int(32), "i");
  const Expr j = hi::Variable::make(Halide::Int(32), "j");
  hi::Stmt body = hi::Store::make("out", 1.0f, i * n + j, {}, hi::const_true(), {});
  for (const char* name : {"j", "i"}) {
    body = hi::For::make(name, 0, n, hi::ForType::Unrolled, Halide::DeviceAPI::None, body);
  }
  return {"f", {buffer_argument("out", Halide::Float(32), int64_t{n} * n)}, body};
}

TEST(Limits, SizeCountsWhatUnrollingMakes) {
  EXPECT_EQ(unrolled_size(unrolled(4).body), 1 + 4 * (1 + 4 * 3));  // a store, a product, a sum in two loops
}

TEST(Limits, AKernelThatIsTooLargeIsAnErrorAtOnce) {
  const auto object = compile_object(unrolled(20'000));
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind(), ErrorKind::kBudget);
  EXPECT_EQ(
      object.error().diagnostics()[0].message,
      "this def makes code of 1200.0 million operations with its loops unrolled; at most 2.0 million are compiled");
}

TEST(Limits, StopsBetweenSteps) {
  int asked = 0;
  const auto whole = compile_object(unrolled(4), {.stop = [&] { return ++asked < 0; }});
  ASSERT_TRUE(whole);
  EXPECT_GT(asked, 10) << "between LLVM's passes too";
  EXPECT_EQ(whole->bytes, compile_object(unrolled(4))->bytes);
  for (int last = 1; last <= asked; ++last) {
    int questions = 0;
    const auto stopped = compile_object(unrolled(4), {.stop = [&] { return ++questions >= last; }});
    ASSERT_FALSE(stopped) << last;
    EXPECT_EQ(stopped.error().kind(), ErrorKind::kCancelled);
  }
}

}  // namespace
}  // namespace tc::cpu
