#include "tc/cpu/machine.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>

#include <mutex>

#include "tc/support/check.h"

namespace tc::cpu {
namespace {

void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

std::string emit(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  bool unsupported = machine.addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true);
  TC_CHECK(!unsupported, "LLVM cannot write this kind of file");
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> make_target_machine(const CodeTarget& target, bool strict) {
  initialise_llvm();
  std::string triple = "x86_64-unknown-linux-gnu", error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  TC_CHECK(found, "{}", error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = strict ? llvm::FPOpFusion::Strict : llvm::FPOpFusion::Fast;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(triple, target.cpu, target.features, options,
                                                                         llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                         llvm::CodeGenOpt::Aggressive));
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopInterleaving = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  functions.registerPass([&] { return builder.buildDefaultAAPipeline(); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  llvm::ModulePassManager passes = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3);
  passes.run(module, modules);
}

std::string emit_object(llvm::Module& module, llvm::TargetMachine& machine) {
  return emit(module, machine, llvm::CGFT_ObjectFile);
}
std::string emit_assembly(llvm::Module& module, llvm::TargetMachine& machine) {
  return emit(module, machine, llvm::CGFT_AssemblyFile);
}

}  // namespace tc::cpu
