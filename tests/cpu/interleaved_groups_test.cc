#include "tc/cpu/interleaved_groups.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/SourceMgr.h>

#include <string>

#include "tc/cpu/machine.h"

namespace tc::cpu {
namespace {

/// for (i = 0; i < 1024; ++i) { body }: t + 16 i is %t, and its elements 0 to 3 are %t0 to %t3.
std::string loop_of(const std::string& body) {
  std::string text = R"(
define void @f(float* noalias %T, float* noalias %B, float* noalias %O) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %end ]
  %first = shl nuw nsw i64 %i, 2
)";
  for (int e = 0; e < 4; ++e) {
    text += fmt::format("  %at{0} = add nuw nsw i64 %first, {0}\n", e);
    for (const char* buffer : {"T", "B", "O"}) {
      text += fmt::format("  %{1}{0} = getelementptr inbounds float, float* %{1}, i64 %at{0}\n", e, buffer);
    }
  }
  return text + body + R"(
  br label %end
end:
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, 1024
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
)";
}

std::string load(const std::string& to, const std::string& place) {
  return fmt::format("  %{} = load float, float* %{}, align 4\n", to, place);
}
std::string store(const std::string& value, const std::string& place) {
  return fmt::format("  store float %{}, float* %{}, align 4\n", value, place);
}

/// Whether the pass forbids vectors of the loop.
bool is_forbidden(const std::string& body) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  const auto module = llvm::parseAssemblyString(loop_of(body), error, context);
  if (module == nullptr) {
    ADD_FAILURE() << error.getMessage().str();
    return false;
  }
  const auto machine = make_target_machine(parse_target("x86-64-linux-sse41").value(), false);
  optimise(*module, *machine, [] { return false; });
  for (const llvm::BasicBlock& block : *module->getFunction("f")) {
    const llvm::MDNode* loop = block.getTerminator()->getMetadata(llvm::LLVMContext::MD_loop);
    for (unsigned i = 1; loop != nullptr && i < loop->getNumOperands(); ++i) {
      const auto* property = llvm::dyn_cast<llvm::MDNode>(loop->getOperand(i));
      if (property == nullptr || property->getNumOperands() == 0) continue;
      const auto* name = llvm::dyn_cast<llvm::MDString>(property->getOperand(0));
      if (name != nullptr && name->getString() == "llvm.loop.vectorize.enable") return true;
    }
  }
  return false;
}

TEST(InterleavedGroups, ALoadMayNotPassAStoreThatItDependsOn) {
  // `c` may be what the store writes, and would be read where `a` is.
  const std::string wrong = load("b", "B0") + load("a", "T0") + store("a", "O0") +
                            "  %big = fcmp ogt float %b, 1.0\n  br i1 %big, label %then, label %rest\nthen:\n" +
                            store("b", "T1") + "  br label %rest\nrest:\n" + load("c", "T1") + load("d", "T2") +
                            store("c", "O1") + store("d", "O2");
  EXPECT_TRUE(is_forbidden(wrong));
}

TEST(InterleavedGroups, AStoreMayNotPassOneToTheSameElement) {
  // `a` would be stored to T0 together with T1.
  const std::string wrong = load("a", "B0") + load("b", "B1") + store("a", "T0") +
                            "  %big = fcmp ogt float %b, 1.0\n  br i1 %big, label %then, label %rest\nthen:\n" +
                            store("b", "T0") + store("b", "O0") + "  br label %rest\nrest:\n" + store("a", "T1");
  EXPECT_TRUE(is_forbidden(wrong));
}

TEST(InterleavedGroups, StoresAndLoadsMayNotPassEachOther) {
  // T1 would be stored together with the sum, and `y` be read together with `x`.
  const std::string wrong = load("a", "B0") + load("b", "B1") + store("a", "T0") + store("b", "T1") + load("x", "T0") +
                            "  %s = fadd float %x, 1.0\n" + store("s", "T0") + load("y", "T1") + store("y", "O0");
  EXPECT_TRUE(is_forbidden(wrong));
}

TEST(InterleavedGroups, ACounterOfAFewBitsStartsAnew) {
  const std::string text = "  %s = mul nuw nsw i64 %i, 3\n  %m = and i64 %s, 31\n" +
                           std::string("  %p = getelementptr inbounds float, float* %T, i64 %m\n") + load("a", "p") +
                           store("a", "O0");
  EXPECT_TRUE(is_forbidden(text));
}

TEST(InterleavedGroups, OtherLoopsKeepTheirVectors) {
  const std::string before = load("a", "T0") + load("b", "T1") + load("c", "T2");
  EXPECT_FALSE(is_forbidden(before + store("a", "T1") + store("b", "T2") + store("c", "T0"))) << "all read first";
  EXPECT_FALSE(is_forbidden(load("a", "T0") + store("a", "O0") + load("b", "T1") + store("b", "O1")))
      << "another tensor is written";
  EXPECT_FALSE(is_forbidden(load("a", "B0") + store("a", "T0") + store("a", "T1") + store("a", "O0")))
      << "each element is written once";
  EXPECT_FALSE(is_forbidden(load("a", "B0") + load("b", "B1") + load("x", "T0") + "  %s = fadd float %x, %a\n" +
                            store("s", "T0") + load("y", "T1") + "  %u = fadd float %y, %b\n" + store("u", "T1")))
      << "each element is read before it is written";
}

}  // namespace
}  // namespace tc::cpu
