#include "tc/cpu/machine.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/BasicAliasAnalysis.h>
#include <llvm/Analysis/TypeBasedAliasAnalysis.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/Instructions.h>
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

/// What -O3 does in three times the time, less what serves other programs than loops over tensors: tiles become
/// registers, subscripts are shared and moved out of loops, and what has no vectors yet gets them where that is easy.
constexpr char kPasses[] =
    "always-inline,"
    "function<eager-inv>("
    "sroa,early-cse,simplifycfg,instcombine,loop-mssa(licm),"
    "loop(loop-idiom,indvars,loop-deletion,loop-unroll-full),"
    "sroa,early-cse,instcombine,loop-mssa(licm),"
    "loop-vectorize,simplifycfg),"
    "globaldce";

/// The metadata of the code generator first: it tells buffers apart at once, where a look at addresses takes long.
llvm::AAManager alias_analysis() {
  llvm::AAManager result;
  result.registerFunctionAnalysis<llvm::TypeBasedAA>();
  result.registerFunctionAnalysis<llvm::BasicAA>();
  return result;
}

/// Leaves nothing to do of a function that is reached after a request to stop.
class StopBeforeFunction : public llvm::FunctionPass {
 public:
  StopBeforeFunction(const std::function<bool()>& stop) : FunctionPass(id), stop_(stop) {}

  bool runOnFunction(llvm::Function& function) override {
    if (!stop_()) return false;
    function.dropAllReferences();
    new llvm::UnreachableInst(function.getContext(),
                              llvm::BasicBlock::Create(function.getContext(), "stopped", &function));
    return true;
  }

 private:
  static char id;  // its address tells passes apart
  const std::function<bool()>& stop_;
};
char StopBeforeFunction::id = 0;

/// What TargetMachine::addPassesToEmitFile() does, and a look at `stop` before each function's way through it.
std::string emit(llvm::Module& module, llvm::TargetMachine& target_machine, llvm::CodeGenFileType type,
                 const std::function<bool()>& stop) {
  auto& machine = static_cast<llvm::LLVMTargetMachine&>(target_machine);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  auto* modules = new llvm::MachineModuleInfoWrapperPass(&machine);  // the pass manager owns what it is given
  llvm::TargetPassConfig* config = machine.createPassConfig(passes);
  config->setDisableVerify(true);
  // The first pass of functions: behind it, all others take one function after the other.
  config->insertPass(&llvm::AtomicExpandID, new StopBeforeFunction(stop));
  passes.add(config);
  passes.add(modules);
  const bool refused = config->addISelPasses();
  TC_CHECK(!refused, "LLVM has no code generator for the target");
  config->addMachinePasses();
  config->setInitialized();
  const bool unsupported = machine.addAsmPrinter(passes, stream, nullptr, type, modules->getMMI().getContext());
  TC_CHECK(!unsupported, "LLVM cannot write this kind of file");
  passes.add(llvm::createFreeMachineFunctionPass());
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

void optimise(llvm::Module& module, llvm::TargetMachine& machine, const std::function<bool()>& stop) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopInterleaving = false;
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback([&stop](llvm::StringRef, llvm::Any) { return !stop(); });
  llvm::PassBuilder builder(&machine, tuning, llvm::None, &callbacks);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  functions.registerPass([] { return alias_analysis(); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  llvm::ModulePassManager passes;
  llvm::Error error = builder.parsePassPipeline(passes, kPasses);
  TC_CHECK(!error, "LLVM does not know the passes: {}", llvm::toString(std::move(error)));
  passes.run(module, modules);
}

std::string emit_object(llvm::Module& module, llvm::TargetMachine& machine, const std::function<bool()>& stop) {
  return emit(module, machine, llvm::CGFT_ObjectFile, stop);
}
std::string emit_assembly(llvm::Module& module, llvm::TargetMachine& machine, const std::function<bool()>& stop) {
  return emit(module, machine, llvm::CGFT_AssemblyFile, stop);
}

}  // namespace tc::cpu
