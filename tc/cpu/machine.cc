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

#include <algorithm>
#include <mutex>

#include "tc/cpu/block_size.h"
#include "tc/cpu/interleaved_groups.h"
#include "tc/cpu/llvm_compat.h"
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

/// The groups of nested passes in order, as LLVM's text for pipelines has them.
enum class Manager { kModule, kFunction, kLoop, kLoopMemory };

const char* text_of(Manager manager) {
  switch (manager) {
    case Manager::kModule:
      return "";
    case Manager::kFunction:
      return "function<eager-inv>(";
    case Manager::kLoop:
      return "loop(";
    case Manager::kLoopMemory:
      return "loop-mssa(";
  }
  TC_CHECK(false, "a manager of passes that does not exist");
}

struct Optimisation {
  OptimisationPass pass;
  Manager manager;
};

constexpr char kForbidWrongGroups[] = "tc-forbid-wrong-groups";

constexpr char kSroa[] = "Turns tiles on the stack into registers where each access is understood.";
constexpr char kCse[] = "Reuses what is computed twice; what is read twice, where no store between may change it.";
constexpr char kCombine[] = "Local rewriting. No instruction has a fast-math flag: NaNs, zeros and denormals stay.";
constexpr char kLicm[] =
    "Moves what is invariant; memory accesses by alias analysis, and only where they cannot fault.";
constexpr char kCfg[] = "Joins blocks, and makes selects of branches whose values may be computed in any case.";

/// What -O3 does in three times the time, less what serves other programs than loops over tensors: tiles become
/// registers, subscripts are shared and moved out of loops, and what has no vectors yet gets them where that is easy.
constexpr Optimisation kPasses[] = {
    {{"always-inline", "Inlines our own helpers."}, Manager::kModule},
    {{"sroa", kSroa}, Manager::kFunction},
    {{"early-cse", kCse}, Manager::kFunction},
    {{"simplifycfg", kCfg}, Manager::kFunction},
    {{"instcombine", kCombine}, Manager::kFunction},
    {{"licm", kLicm}, Manager::kLoopMemory},
    {{"loop-idiom", "Makes memset and memcpy of loops that are one, by alias analysis."}, Manager::kLoop},
    {{"indvars", "Rewrites counters, which are proved not to overflow."}, Manager::kLoop},
    {{"loop-deletion", "Removes loops without effect; all of ours end."}, Manager::kLoop},
    {{"loop-unroll-full", "Repeats the body in the loop's own order."}, Manager::kLoop},
    {{"sroa", kSroa}, Manager::kFunction},
    {{"early-cse", kCse}, Manager::kFunction},
    {{"instcombine", kCombine}, Manager::kFunction},
    {{"licm", kLicm}, Manager::kLoopMemory},
    {{kForbidWrongGroups, "Ours: forbids vectors for which LLVM 14 would exchange accesses to one element."},
     Manager::kFunction},
    {{"loop-vectorize", "Proves dependences itself; right for the loops that the pass before leaves."},
     Manager::kFunction},
    {{"simplifycfg", kCfg}, Manager::kFunction},
    {{"globaldce", "Removes functions that nothing calls."}, Manager::kModule},
};

/// "always-inline,function<eager-inv>(sroa,loop-mssa(licm)),globaldce"
std::string pipeline_text() {
  std::string text;
  std::vector<Manager> open;  // managers around, outermost first
  for (const auto& [pass, manager] : kPasses) {
    std::vector<Manager> wanted;
    if (manager != Manager::kModule) wanted.push_back(Manager::kFunction);
    if (manager == Manager::kLoop || manager == Manager::kLoopMemory) wanted.push_back(manager);
    size_t same = 0;
    while (same < std::min(open.size(), wanted.size()) && open[same] == wanted[same]) ++same;
    text += std::string(open.size() - same, ')') + (text.empty() ? "" : ",");
    for (size_t i = same; i < wanted.size(); ++i) text += text_of(wanted[i]);
    text += pass.name;
    open = wanted;
  }
  return text + std::string(open.size(), ')');
}

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
  // Behind all that joins blocks, and before what looks at the stack for the last time.
  const std::unique_ptr<llvm::Pass> safe_stack(llvm::createSafeStackPass());
  config->insertPass(safe_stack->getPassID(), create_split_large_blocks_pass());
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
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, target.cpu, target.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, kAggressive));
}

std::vector<OptimisationPass> optimisation_passes() {
  std::vector<OptimisationPass> result;
  for (const Optimisation& optimisation : kPasses) result.push_back(optimisation.pass);
  return result;
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine, const std::function<bool()>& stop) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopInterleaving = false;
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback([&stop](llvm::StringRef, llvm::Any) { return !stop(); });
  llvm::PassBuilder builder(&machine, tuning, {}, &callbacks);
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
  builder.registerPipelineParsingCallback(
      [](llvm::StringRef name, llvm::FunctionPassManager& passes, llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
        if (name != kForbidWrongGroups) return false;
        passes.addPass(ForbidWrongGroups());
        return true;
      });
  llvm::ModulePassManager passes;
  llvm::Error error = builder.parsePassPipeline(passes, pipeline_text());
  TC_CHECK(!error, "LLVM does not know the passes: {}", llvm::toString(std::move(error)));
  passes.run(module, modules);
}

std::string emit_object(llvm::Module& module, llvm::TargetMachine& machine, const std::function<bool()>& stop) {
  return emit(module, machine, kObjectFile, stop);
}
std::string emit_assembly(llvm::Module& module, llvm::TargetMachine& machine, const std::function<bool()>& stop) {
  return emit(module, machine, kAssemblyFile, stop);
}

}  // namespace tc::cpu
