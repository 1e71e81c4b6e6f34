#include "tc/cpu/object.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>

#include <sstream>

#include "tc/cpu/code_size.h"
#include "tc/cpu/codegen.h"
#include "tc/cpu/llvm_compat.h"
#include "tc/cpu/llvm_thread.h"
#include "tc/cpu/lower_stmt.h"
#include "tc/cpu/machine.h"
#include "tc/cpu/target.h"
#include "tc/support/check.h"

namespace tc::cpu {
namespace {

/// Runs what calls Halide; its errors are faults of ours, since it sees nothing that a user wrote.
template <typename Function>
auto without_halide_errors(const Kernel& kernel, Function&& function) {
  try {
    return function();
  } catch (const Halide::Error& error) {
    fail_check(__FILE__, __LINE__, "Halide accepts the Stmt",
               fmt::format("{}\nkernel '{}':\n{}", error.what(), kernel.name, to_text(kernel.body)));
  }
}

/// LLVM tells of code that it cannot make through its context, and ends the process if nobody listens.
void collect_errors(llvm::LLVMContext& context, std::string& errors) {
  context.setDiagnosticHandlerCallBack(
      [](Reported reported, void* to) {
        const llvm::DiagnosticInfo& info = info_of(reported);
        if (info.getSeverity() != llvm::DS_Error) return;
        llvm::raw_string_ostream stream(*static_cast<std::string*>(to));
        llvm::DiagnosticPrinterRawOStream printer(stream);
        info.print(printer);
      },
      &errors);
}

Error stopped() { return Error("the compilation was stopped").with_kind(ErrorKind::kCancelled); }

Result<void> check_size(const Kernel& kernel) {
  const double size = unrolled_size(kernel.body);
  if (size <= kMaxCodeSize) return {};
  return tl::unexpected(Error(fmt::format("this def makes code of {:.1f} million operations with its loops unrolled; "
                                          "at most {:.1f} million are compiled",
                                          size / 1e6, kMaxCodeSize / 1e6))
                            .with_kind(ErrorKind::kBudget));
}

using Finish = std::string (*)(llvm::Module& module, llvm::TargetMachine& machine, const Stop& stops);

/// All steps up to the optimised module, then `finish`.
Result<std::string> generate_here(const Kernel& kernel, const CodeTarget& target, bool strict, Finish finish,
                                  const Stop& stops) {
  return without_halide_errors(kernel, [&]() -> Result<std::string> {
    const std::optional<LoweredKernel> lowered = lower_kernel(kernel, target.halide, strict, stops);
    if (!lowered || stops()) return tl::unexpected(stopped());
    std::unique_ptr<llvm::TargetMachine> machine = make_target_machine(target, strict);
    llvm::LLVMContext context;
    std::string errors;
    collect_errors(context, errors);
    std::unique_ptr<llvm::Module> module =
        generate_module(kernel, *lowered, target, machine->createDataLayout(), context);
    if (stops()) return tl::unexpected(stopped());
    optimise(*module, *machine, stops);
    if (stops()) return tl::unexpected(stopped());
    std::string result = finish(*module, *machine, stops);
    TC_CHECK(errors.empty(), "LLVM reports: {}", errors);
    if (stops()) return tl::unexpected(stopped());
    return result;
  });
}

Result<std::string> generate(const Kernel& kernel, const CodeTarget& target, const ObjectOptions& options,
                             Finish finish) {
  TC_TRY_VOID(check_size(kernel));
  return on_llvm_thread<std::string>(
      [=, strict = options.strict](const Stop& stops) { return generate_here(kernel, target, strict, finish, stops); },
      options.stop);
}

}  // namespace

KernelArgument buffer_argument(std::string name, Halide::Type type, int64_t elements, int alignment_bytes) {
  return {std::move(name), type, true, elements, alignment_bytes};
}
KernelArgument scalar_argument(std::string name, Halide::Type type) { return {std::move(name), type, false, 0, 0}; }

Result<Object> compile_object(const Kernel& kernel, const ObjectOptions& options) {
  TC_TRY(target, parse_target(options.target));
  Object object{kernel.name, target.halide.to_string(), {}, static_cast<int>(kernel.arguments.size())};
  TC_TRY(bytes, generate(kernel, target, options, emit_object));
  object.bytes = std::move(bytes);
  return object;
}

std::string to_text(const Halide::Internal::Stmt& stmt) {
  std::ostringstream stream;
  stream << stmt;
  return stream.str();
}

Result<std::string> lowered_text(const Kernel& kernel, const ObjectOptions& options) {
  TC_TRY(target, parse_target(options.target));
  return without_halide_errors(kernel, [&]() -> Result<std::string> {
    std::string text;
    for (const auto& function : lower_kernel(kernel, target.halide, options.strict)->functions) {
      text += fmt::format("function {}\n{}\n", function.name, to_text(function.body));
    }
    return text;
  });
}

Result<std::string> assembly_text(const Kernel& kernel, const ObjectOptions& options) {
  TC_TRY(target, parse_target(options.target));
  return generate(kernel, target, options, emit_assembly);
}

}  // namespace tc::cpu
