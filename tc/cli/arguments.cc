#include "tc/cli/arguments.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "tc/api/layout.h"
#include "tc/api/memory.h"
#include "tc/api/random.h"
#include "tc/cli/command_line.h"
#include "tc/cli/flags.h"
#include "tc/cli/npy.h"
#include "tc/support/nearest.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

std::vector<std::string> names_of(const std::vector<api::Argument>& arguments, bool scalars) {
  std::vector<std::string> names;
  for (const api::Argument& argument : arguments) {
    if ((argument.role == api::Role::kScalar) == scalars) names.push_back(argument.name);
  }
  return names;
}

/// A tensor of the run that comes from a file, checked against its spec (the file may have changed since its header
/// was read).
Result<api::Tensor> load(const std::string& path, const std::string& name, const api::TensorSpec& spec, bool dense) {
  TC_TRY(tensor, read_npy(path, spec.type));
  const api::TensorSpec found = tensor.spec();
  if (found.type != spec.type || found.shape != spec.shape) {
    return fail("'{}' holds {}; '{}' is {}", path, found.to_string(), name, spec.to_string());
  }
  if (dense && !api::is_dense(found.shape, found.strides)) return dense_copy(tensor);
  return tensor;
}

Result<std::vector<api::Scalar>> scalars_of(const std::vector<std::string>& names, const api::Request& request) {
  std::vector<api::Scalar> scalars;
  for (const std::string& name : names) {
    const auto found = request.scalars.find(name);
    if (found == request.scalars.end()) {
      return fail("scalar '{}' has no value; give it by --scalars={}=NUMBER", name, name);
    }
    scalars.push_back(found->second);
  }
  return scalars;
}

}  // namespace

Result<void> check_scalars(const api::Signature& signature, const api::Request& request) {
  const auto scalars = scalars_of(names_of(signature.parameters, true), request);
  return scalars ? Result<void>() : tl::unexpected(scalars.error());
}

Result<InputFiles> input_files_of_flags(const api::Signature& signature) {
  std::vector<std::string> names = names_of(signature.parameters, false);
  for (const api::Argument& result : signature.results) names.push_back(result.name);
  TC_TRY(assignments, parse_assignments("inputs", FLAGS_inputs));
  InputFiles files;
  for (auto& [name, path] : assignments) {
    if (std::ranges::find(names, name) == names.end()) {
      const std::string meant = nearest(name, names);
      if (!meant.empty()) return fail("'{}' has no tensor '{}'; did you mean '{}'?", signature.entry, name, meant);
      return fail("'{}' has no tensor '{}'; it has {}", signature.entry, name, fmt::join(names, ", "));
    }
    files[name] = path;
  }
  return files;
}

Result<void> describe_files(const InputFiles& files, const api::Signature& signature, api::Request& request) {
  std::map<std::string, ScalarType> types;
  for (const auto* arguments : {&signature.parameters, &signature.results}) {
    for (const api::Argument& argument : *arguments) types[argument.name] = argument.type;
  }
  const auto describe = [&](const std::vector<std::string>& names, std::vector<std::optional<api::TensorSpec>>& specs,
                            bool dense) -> Result<void> {
    specs.resize(names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      const auto file = files.find(names[i]);
      if (file == files.end()) continue;
      TC_TRY(spec, read_npy_spec(file->second, types.at(names[i])));
      if (dense) spec.strides.clear();
      specs[i] = std::move(spec);
    }
    return {};
  };
  TC_TRY_VOID(describe(names_of(signature.parameters, false), request.inputs, false));
  return describe(names_of(signature.results, false), request.outputs, true);
}

Result<MemoryNeed> check_memory(const api::Specs& specs, bool oracle) {
  MemoryNeed need;
  bool overflow = false;
  const auto add = [&](int64_t& sum, int64_t count, int64_t bytes) {
    int64_t product = 0;
    overflow = overflow || count < 0 || __builtin_mul_overflow(count, bytes, &product) ||
               __builtin_add_overflow(sum, product, &sum);
  };
  for (const auto* list : {&specs.inputs, &specs.outputs}) {
    for (const api::TensorSpec& spec : *list) {
      add(need.tensors, spec.span_bytes(), 1);
      // A value in 8 bytes; for results also the oracle's value and its error bound.
      if (oracle) add(need.oracle, spec.elements(), list == &specs.inputs ? 8 : 24);
    }
  }
  int64_t total = 0;
  overflow = overflow || __builtin_add_overflow(need.tensors, need.oracle, &total);
  if (overflow) return fail("the tensors have more bytes than 64 bits can count");
  const int64_t available = api::available_memory_bytes();
  if (total > available) {
    return fail("the tensors take {}{}; {} are available", api::human_bytes(need.tensors),
                need.oracle ? fmt::format(" and the oracle's copies {}", api::human_bytes(need.oracle)) : "",
                api::human_bytes(available));
  }
  return need;
}

Result<Arguments> make_arguments(const ir::Program& specialised, const api::Signature& signature,
                                 const api::Specs& specs, const InputFiles& files, const api::Request& request,
                                 uint64_t seed) {
  return make_arguments(api::subscript_ranges(specialised), signature, specs, files, request, seed);
}

Result<Arguments> make_arguments(const SubscriptRanges& ranges, const api::Signature& signature,
                                 const api::Specs& specs, const InputFiles& files, const api::Request& request,
                                 uint64_t seed) {
  Arguments arguments;
  arguments.input_names = names_of(signature.parameters, false);
  arguments.output_names = names_of(signature.results, false);
  arguments.scalar_names = names_of(signature.parameters, true);
  TC_TRY(scalars, scalars_of(arguments.scalar_names, request));
  arguments.scalars = std::move(scalars);
  const auto make = [&](const std::string& name, const api::TensorSpec& spec, bool fill,
                        bool dense) -> Result<api::Tensor> {
    if (const auto file = files.find(name); file != files.end()) return load(file->second, name, spec, dense);
    TC_TRY(tensor, api::Tensor::allocate(spec));
    const auto range = ranges.find(name);
    if (fill) api::fill_random(name, seed, range == ranges.end() ? std::nullopt : std::optional(range->second), tensor);
    return tensor;
  };
  for (size_t i = 0; i < specs.inputs.size(); ++i) {
    TC_TRY(tensor, make(arguments.input_names[i], specs.inputs[i], true, false));
    arguments.inputs.push_back(std::move(tensor));
  }
  for (size_t o = 0; o < specs.outputs.size(); ++o) {
    const bool is_read = signature.results[o].role == api::Role::kInOut;
    TC_TRY(tensor, make(arguments.output_names[o], specs.outputs[o], is_read, true));
    arguments.outputs.push_back(std::move(tensor));
  }
  return arguments;
}

Result<api::Tensor> dense_copy(const api::Tensor& tensor) {
  const api::TensorSpec from = api::with_strides(tensor.spec());
  TC_TRY(copy, api::Tensor::allocate({.type = from.type, .shape = from.shape}));
  const auto bytes = static_cast<size_t>(bytes_of(from.type));
  const char* const source = tensor.data_as<char>();
  char* to = copy.data_as<char>();
  std::vector<int64_t> at(from.shape.size(), 0);
  for (int64_t i = from.elements(); i > 0; --i, to += bytes) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * from.strides[d];
    std::memcpy(to, source + offset * static_cast<int64_t>(bytes), bytes);
    for (size_t d = at.size(); d-- > 0 && ++at[d] == from.shape[d];) at[d] = 0;
  }
  return copy;
}

}  // namespace tc::cli
