#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>

#include "tc/api/elements.h"
#include "tc/api/layout.h"
#include "tc/compile/pipeline.h"
#include "tc/cpu/codegen.h"
#include "tc/cpu/lower_stmt.h"
#include "tc/cpu/machine.h"
#include "tc/support/check.h"
#include "tests/random/differential.h"
#include "tests/random/random.h"

namespace tc::testing {
namespace {

constexpr std::byte kPoison{0xa5};

/// A tensor's bytes in memory, and what of them its elements are.
struct Memory {
  std::vector<std::byte> bytes;
  std::vector<size_t> elements;  ///< where each begins, in row-major order

  /// Elements lie apart by the strides given; what is between them is poison.
  Memory(const interp::Value& value, const std::vector<int64_t>& strides) {
    const size_t size = bytes_of(value.type);
    std::vector<int64_t> index(value.shape.size(), 0);
    for (int64_t n = 0; n < value.elements(); ++n) {
      int64_t at = 0;
      for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
      elements.push_back(static_cast<size_t>(at) * size);
      for (size_t d = index.size(); d-- > 0 && ++index[d] == value.shape[d];) index[d] = 0;
    }
    const size_t last = elements.empty() ? 0 : *std::max_element(elements.begin(), elements.end()) + size;
    bytes.reserve(std::max<size_t>(last, 64));  // an address, even of a tensor without elements
    bytes.resize(last, kPoison);
    for (int64_t n = 0; n < value.elements(); ++n) {
      std::byte* to = &bytes[elements[n]];
      is_float(value.type) ? api::store_float(value.type, value.floats[n], to)
                           : api::store_integer(value.type, value.integers[n], to);
    }
  }

  /// The elements, as a tensor of the type and shape of `like`.
  interp::Value read(interp::Value like) const {
    for (size_t n = 0; n < elements.size(); ++n) {
      const std::byte* from = &bytes[elements[n]];
      if (is_float(like.type)) {
        like.floats[n] = api::load_float(like.type, from);
      } else {
        like.integers[n] = api::load_integer(like.type, from);
      }
    }
    return like;
  }

  bool is_intact_between_elements(size_t size) const {
    std::vector<bool> is_element(bytes.size(), false);
    for (const size_t at : elements) std::fill_n(is_element.begin() + static_cast<std::ptrdiff_t>(at), size, true);
    for (size_t at = 0; at < bytes.size(); ++at) {
      if (!is_element[at] && bytes[at] != kPoison) return false;
    }
    return true;
  }
};

std::vector<int64_t> strides_of(const ir::Layouts& layouts, const std::string& name, const interp::Value& value) {
  const auto layout = layouts.find(name);
  return layout == layouts.end() ? api::dense_strides(value.shape) : layout->second;
}

/// For some of the tensors that a caller gives: their dimensions in another order, and with room between them.
ir::Layouts random_layouts(const ir::Program& program, uint64_t seed) {
  Random random(seed);
  ir::Layouts layouts;
  for (const ir::Tensor& tensor : program.tensors) {
    const std::vector<int64_t> shape = ir::constant_shape(tensor);
    if (tensor.role == ir::Role::kTemporary || shape.empty() || random.chance(60)) continue;
    std::vector<size_t> order(shape.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = order.size() - 1 - d;  // innermost first
    if (random.chance(50)) std::swap(order[0], order[random.below(order.size())]);
    std::vector<int64_t> strides(shape.size());
    int64_t step = random.chance(50) ? 1 : random.range(1, 3);
    for (const size_t d : order) {
      strides[d] = step;
      step = step * std::max<int64_t>(shape[d], 1) + random.range(0, 3);
    }
    layouts[tensor.name] = strides;
  }
  return layouts;
}

Result<interp::Environment> run_compiled(const compile::Compilation& compilation, const ir::Layouts& layouts,
                                         const interp::Environment& data) {
  std::map<std::string, Memory> memory;
  // The buffer in which a kernel says which check failed has no name of the program's.
  std::vector<std::byte> report(1024);
  std::vector<void*> arguments;
  for (const cpu::KernelArgument& argument : compilation.stmt->arguments) {
    const auto value = data.find(argument.name);
    if (value == data.end()) {
      arguments.push_back(report.data());
      continue;
    }
    Memory made(value->second, strides_of(layouts, argument.name, value->second));
    arguments.push_back(memory.emplace(argument.name, std::move(made)).first->second.bytes.data());
  }
  const int code = compilation.loaded->call(arguments.data());
  if (code != 0) return fail("the kernel returns {}", code);
  interp::Environment results;
  for (const auto& [name, bytes] : memory) {
    const interp::Value& value = data.at(name);
    if (!bytes.is_intact_between_elements(bytes_of(value.type))) {
      return fail("the kernel writes between the elements of '{}'", name);
    }
    const ir::Tensor* tensor = compilation.specialised->find_tensor(name);
    if (tensor && tensor->role != ir::Role::kInput) results.emplace(name, bytes.read(value));
  }
  return results;
}

/// The module is made for this processor, optimised for the other, and translated for this one.
Result<cpu::Object> object_optimised_for(const cpu::Kernel& kernel, const std::string& target) {
  TC_TRY(here, cpu::parse_target("host"));
  TC_TRY(there, cpu::parse_target(target));
  const auto never = [] { return false; };
  const auto machine = cpu::make_target_machine(here, false);
  llvm::LLVMContext context;
  const cpu::LoweredKernel lowered = *cpu::lower_kernel(kernel, here.halide, false);
  const auto module = cpu::generate_module(kernel, lowered, here, machine->createDataLayout(), context);
  for (llvm::Function& function : *module) {
    for (const char* attribute : {"target-cpu", "target-features", "tune-cpu"}) function.removeFnAttr(attribute);
  }
  cpu::optimise(*module, *cpu::make_target_machine(there, false), never);
  return cpu::Object{kernel.name, here.halide.to_string(), cpu::emit_object(*module, *machine, never),
                     static_cast<int>(kernel.arguments.size())};
}

}  // namespace

Backend cpu_backend(const options::CpuOptions& options, std::optional<uint64_t> strides, const std::string& target) {
  const auto compile = [options, strides, target](const RandomProgram& source,
                                                  const ir::Program& program) -> Result<Runner> {
    compile::Settings settings;
    settings.given = source.given();
    for (const ir::Tensor& tensor : program.tensors) {
      if (tensor.role == ir::Role::kTemporary) continue;
      settings.given.shapes[tensor.name] = ir::constant_shape(tensor);
    }
    if (strides) settings.layouts = random_layouts(program, *strides);
    settings.options = options;
    settings.target = target;
    settings.verify = true;
    auto compilation = std::make_shared<compile::Compilation>();
    compilation->source = std::make_shared<const Source>("random.tc", source.source());
    TC_TRY_VOID(compile::run_passes(settings, *compilation));
    return [compilation, layouts = settings.layouts](const interp::Environment& data) {
      return run_compiled(*compilation, layouts, data);
    };
  };
  return {compile, options::to_text(options) + (strides ? fmt::format("strides of seed {}\n", *strides) : "")};
}

Backend cpu_backend_optimised_for(const std::string& target, const options::CpuOptions& options) {
  const auto compile = [target, options](const RandomProgram& source, const ir::Program& program) -> Result<Runner> {
    compile::Settings settings;
    settings.given = source.given();
    for (const ir::Tensor& tensor : program.tensors) {
      if (tensor.role != ir::Role::kTemporary) settings.given.shapes[tensor.name] = ir::constant_shape(tensor);
    }
    settings.options = options;
    settings.verify = true;
    auto compilation = std::make_shared<compile::Compilation>();
    compilation->source = std::make_shared<const Source>("random.tc", source.source());
    TC_TRY_VOID(compile::run_passes(settings, *compilation, "stmt"));
    const cpu::Kernel kernel{"f", compilation->stmt->arguments, compilation->stmt->body, true};
    TC_TRY(object, object_optimised_for(kernel, target));
    TC_TRY(loaded, cpu::load_object(object));
    compilation->loaded = std::move(loaded);
    return [compilation](const interp::Environment& data) { return run_compiled(*compilation, {}, data); };
  };
  return {compile, options::to_text(options) + "optimised for " + target + "\n"};
}

options::CpuOptions random_cpu_options(uint64_t seed) {
  Random random(seed);
  options::CpuOptions options;
  if (random.chance(60)) {
    static constexpr options::Fusion kFusions[] = {options::Fusion::kMax, options::Fusion::kPreserve3Coincident,
                                                   options::Fusion::kMin};
    options.scheduler.fusion = kFusions[random.below(3)];
  }
  options.scheduler.allow_skewing = random.chance(20);
  options.scheduler.positive_orthant = random.chance(70);
  if (random.chance(60)) {
    static constexpr int64_t kTiles[] = {1, 2, 3, 4, 7, 8, 16, 32};
    for (int64_t n = random.range(1, 3); n > 0; --n) options.tile.push_back(kTiles[random.below(8)]);
  }
  static constexpr int kWidths[] = {1, 4, 8, 16};
  if (random.chance(50)) options.vector_width = kWidths[random.below(4)];
  static constexpr int kUnrolls[] = {1, 2, 4};
  if (random.chance(50)) options.unroll = kUnrolls[random.below(3)];
  if (random.chance(60)) options.parallel = random.chance(50);
  if (random.chance(60)) options.promote = random.chance(50);
  options.strict = random.chance(20);
  return options;
}

}  // namespace tc::testing
