#include <fmt/format.h>
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/SourceMgr.h>

#include <thread>

#include "tc/cpu/code_size.h"
#include "tc/cpu/machine.h"
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

/// Loops one after the other, each a function of its own.
Kernel parallel_loops(int count) {
  std::vector<hi::Stmt> loops;
  for (int l = 0; l < count; ++l) {
    const Expr i = hi::Variable::make(Halide::Int(32), "i");
    const hi::Stmt body =
        hi::Store::make("out", Halide::cast<float>(i) * 2.0f + l, i + l * 64, {}, hi::const_true(), {});
    loops.push_back(hi::For::make("i", 0, 64, hi::ForType::Parallel, Halide::DeviceAPI::None, body));
  }
  return {"f", {buffer_argument("out", Halide::Float(32), int64_t{count} * 64)}, hi::Block::make(loops)};
}

/// Stops at each question that a whole compilation asks between its steps; returns how many these are. Those that the
/// waiting thread asks come with the time and are not counted.
int stop_everywhere(const Kernel& kernel) {
  const auto here = std::this_thread::get_id();
  int asked = 0;
  const auto whole =
      compile_object(kernel, {.stop = [&] { return std::this_thread::get_id() != here && ++asked < 0; }});
  EXPECT_EQ(whole.value().bytes, compile_object(kernel).value().bytes);
  for (int last = 1; last <= asked; ++last) {
    int questions = 0;
    const auto stopped =
        compile_object(kernel, {.stop = [&] { return std::this_thread::get_id() != here && ++questions >= last; }});
    EXPECT_TRUE(!stopped && stopped.error().kind() == ErrorKind::kCancelled) << last;
  }
  return asked;
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

TEST(Limits, StopsBetweenStepsAndLLVMsPasses) { EXPECT_GT(stop_everywhere(unrolled(4)), 10); }

TEST(Limits, StopsBetweenStepsOfSeveralLoops) { EXPECT_GT(stop_everywhere(parallel_loops(2)), 20); }

TEST(Limits, CodeGenerationAsksBeforeEachFunction) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  std::string text;
  for (int f = 0; f < 3; ++f)
    text += fmt::format("define i32 @f{}(i32 %x) {{ %y = mul i32 %x, 1234567\n ret i32 %y }}\n", f);
  const auto module = llvm::parseAssemblyString(text, error, context);
  ASSERT_NE(module, nullptr) << error.getMessage().str();
  const auto machine = make_target_machine(parse_target("host").value(), false);
  int asked = 0;
  const std::string code = emit_assembly(*module, *machine, [&] { return ++asked >= 2; });
  EXPECT_EQ(asked, 3);
  EXPECT_NE(code.find("1234567"), std::string::npos) << "f0 has its product";
  EXPECT_EQ(code.find("1234567"), code.rfind("1234567")) << "f1 and f2 have not";
}

}  // namespace
}  // namespace tc::cpu
