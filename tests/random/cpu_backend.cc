#include <fmt/format.h>

#include <cstddef>
#include <memory>

#include "tc/api/elements.h"
#include "tc/compile/pipeline.h"
#include "tc/support/check.h"
#include "tests/random/differential.h"
#include "tests/random/random.h"

namespace tc::testing {
namespace {

std::vector<std::byte> packed(const interp::Value& value) {
  const int bytes = bytes_of(value.type);
  std::vector<std::byte> result(static_cast<size_t>(value.elements()) * bytes);
  for (int64_t at = 0; at < value.elements(); ++at) {
    if (is_float(value.type)) {
      api::store_float(value.type, value.floats[at], &result[at * bytes]);
    } else {
      api::store_integer(value.type, value.integers[at], &result[at * bytes]);
    }
  }
  return result;
}

interp::Value unpacked(const std::vector<std::byte>& bytes, interp::Value value) {
  const int size = bytes_of(value.type);
  for (int64_t at = 0; at < value.elements(); ++at) {
    if (is_float(value.type)) {
      value.floats[at] = api::load_float(value.type, &bytes[at * size]);
    } else {
      value.integers[at] = api::load_integer(value.type, &bytes[at * size]);
    }
  }
  return value;
}

Result<interp::Environment> run_compiled(const compile::Compilation& compilation, const interp::Environment& data) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> arguments;
  const std::vector<cpu::KernelArgument>& wanted = compilation.stmt->arguments;
  for (const cpu::KernelArgument& argument : wanted) {
    const auto value = data.find(argument.name);
    // The buffer in which a kernel says which check failed has no name of the program's.
    memory.push_back(value == data.end() ? std::vector<std::byte>(1024) : packed(value->second));
    memory.back().reserve(64);  // an address, even of a tensor without elements
    arguments.push_back(memory.back().data());
  }
  const int code = compilation.loaded->call(arguments.data());
  if (code != 0) return fail("the kernel returns {}", code);
  interp::Environment results;
  for (size_t n = 0; n < wanted.size(); ++n) {
    const ir::Tensor* tensor = compilation.specialised->find_tensor(wanted[n].name);
    if (!tensor || tensor->role == ir::Role::kInput) continue;
    results.emplace(tensor->name, unpacked(memory[n], data.at(tensor->name)));
  }
  return results;
}

}  // namespace

Backend cpu_backend(const options::CpuOptions& options) {
  const auto compile = [options](const RandomProgram& source, const ir::Program& program) -> Result<Runner> {
    compile::Settings settings;
    settings.given = source.given();
    for (const ir::Tensor& tensor : program.tensors) {
      if (tensor.role == ir::Role::kTemporary) continue;
      settings.given.shapes[tensor.name] = ir::constant_shape(tensor);
    }
    settings.options = options;
    settings.verify = true;
    auto compilation = std::make_shared<compile::Compilation>();
    compilation->source = std::make_shared<const Source>("random.tc", source.source());
    TC_TRY_VOID(compile::run_passes(settings, *compilation));
    return [compilation](const interp::Environment& data) { return run_compiled(*compilation, data); };
  };
  return {compile, options::to_text(options)};
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
