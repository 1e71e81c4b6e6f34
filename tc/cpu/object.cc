#include "tc/cpu/object.h"

#include <sstream>

#include "tc/cpu/codegen.h"
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

/// All steps up to the optimised module, then `finish(module, machine)`.
template <typename Finish>
std::string generate(const Kernel& kernel, const CodeTarget& target, bool strict, Finish&& finish) {
  return without_halide_errors(kernel, [&] {
    LoweredKernel lowered = lower_kernel(kernel, target.halide, strict);
    std::unique_ptr<llvm::TargetMachine> machine = make_target_machine(target, strict);
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module =
        generate_module(kernel, lowered, target, machine->createDataLayout(), context);
    optimise(*module, *machine);
    return finish(*module, *machine);
  });
}

}  // namespace

KernelArgument buffer_argument(std::string name, Halide::Type type, int64_t elements, int alignment_bytes) {
  return {std::move(name), type, true, elements, alignment_bytes};
}
KernelArgument scalar_argument(std::string name, Halide::Type type) { return {std::move(name), type, false, 0, 0}; }

Result<Object> compile_object(const Kernel& kernel, const ObjectOptions& options) {
  TC_TRY(target, parse_target(options.target));
  Object object{kernel.name, target.halide.to_string(), {}, static_cast<int>(kernel.arguments.size())};
  object.bytes = generate(kernel, target, options.strict, emit_object);
  return object;
}

std::string to_text(const Halide::Internal::Stmt& stmt) {
  std::ostringstream stream;
  stream << stmt;
  return stream.str();
}

Result<std::string> lowered_text(const Kernel& kernel, const ObjectOptions& options) {
  TC_TRY(target, parse_target(options.target));
  return without_halide_errors(kernel, [&] {
    std::string text;
    for (const auto& function : lower_kernel(kernel, target.halide, options.strict).functions) {
      text += fmt::format("function {}\n{}\n", function.name, to_text(function.body));
    }
    return text;
  });
}

Result<std::string> assembly_text(const Kernel& kernel, const ObjectOptions& options) {
  TC_TRY(target, parse_target(options.target));
  return generate(kernel, target, options.strict, emit_assembly);
}

}  // namespace tc::cpu
