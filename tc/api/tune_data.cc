#include "tc/api/tune_data.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tc/api/call.h"
#include "tc/api/kernel.h"
#include "tc/api/oracle.h"
#include "tc/api/random.h"
#include "tc/api/request.h"
#include "tc/interp/compare.h"
#include "tc/interp/tf32_factors.h"
#include "tc/ir/accumulators.h"
#include "tc/ir/float8_products.h"
#include "tc/ir/halide_compat.h"
#include "tc/lang/parser.h"
#include "tc/support/result.h"

namespace tc::api {
namespace {

/// Instances that the oracle runs through in about a minute.
constexpr double kMaxOracleInstances = 536'870'912;

std::vector<std::string> names_of(const std::vector<Argument>& arguments) {
  std::vector<std::string> names;
  for (const Argument& argument : arguments) {
    if (argument.role != Role::kScalar) names.push_back(argument.name);
  }
  return names;
}

double instances_of(const ir::Program& specialised) {
  double total = 0;
  for (const ir::Statement& statement : specialised.statements) {
    double instances = 1;
    for (const ir::Index& index : statement.indices) {
      const int64_t* begin = ir::constant_int(index.begin);
      const int64_t* end = ir::constant_int(index.end);
      if (begin && end) instances *= static_cast<double>(std::max<int64_t>(*end - *begin, 0));
    }
    total += instances;
  }
  return total;
}

/// Files of one number type after another; a file that is not of the expected size is as if there were none.
class Archive {
 public:
  explicit Archive(std::filesystem::path path) : path_(std::move(path)) {}

  template <typename T>
  void put(const std::vector<T>& values) {
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  /// Under another name first: nobody reads a part of it. On a machine that has no such folder there is nothing to
  /// keep.
  void write() const {
    const std::filesystem::path part = path_.string() + fmt::format(".{}", ::getpid());
    std::ofstream file(part, std::ios::binary);
    file.write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    file.close();
    std::error_code ignored;
    if (file) std::filesystem::rename(part, path_, ignored);
  }
  bool read(size_t bytes) {
    std::ifstream file(path_, std::ios::binary);
    if (!file) return false;
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    return bytes_.size() == bytes;
  }
  template <typename T>
  std::vector<T> take(size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes_.data() + at_, count * sizeof(T));
    at_ += count * sizeof(T);
    return values;
  }

 private:
  std::filesystem::path path_;
  std::string bytes_;
  size_t at_ = 0;
};

std::filesystem::path results_path(const std::string& folder) { return std::filesystem::path(folder) / "expected.bin"; }

std::filesystem::path data_path(const std::string& folder, size_t input) {
  return std::filesystem::path(folder) / fmt::format("input-{}.bin", input);
}

/// A tensor of any layout that an input may have: broadcasting puts several elements at one address.
Result<Tensor> allocate_input(const TensorSpec& spec) {
  const TensorSpec full = with_strides(spec);
  if (elements_are_apart(full.shape, full.strides)) return Tensor::allocate(spec);
  struct Held {
    Tensor memory;
    TensorSpec spec;
    DLManagedTensor managed{};
  };
  TC_TRY(memory, Tensor::allocate({.type = spec.type, .shape = {full.span_bytes() / bytes_of(spec.type)}}));
  auto held = std::make_unique<Held>(Held{.memory = std::move(memory), .spec = full});
  DLTensor& view = held->managed.dl_tensor;
  view = held->memory.dl();
  view.ndim = static_cast<int>(held->spec.shape.size());
  view.shape = held->spec.shape.data();
  view.strides = held->spec.strides.data();
  held->managed.manager_ctx = held.get();
  held->managed.deleter = [](DLManagedTensor* self) { delete static_cast<Held*>(self->manager_ctx); };
  return Tensor::adopt(&held.release()->managed);
}

Result<Tensor> read_input(const TuneSetup& setup, size_t input) {
  const TensorSpec& spec = setup.specs.inputs[input];
  TC_TRY(tensor, allocate_input(spec));
  const std::filesystem::path path = data_path(setup.problem.folder, input);
  std::ifstream file(path, std::ios::binary);
  const auto bytes = static_cast<std::streamsize>(spec.span_bytes());
  if (!file.read(tensor.data_as<char>(), bytes))
    return fail("'{}' does not hold the {} bytes of an input", path.string(), bytes);
  return tensor;
}

/// Random elements in a tensor of any layout.
Result<Tensor> random_tensor(const std::string& name, const TensorSpec& spec, uint64_t seed,
                             const std::map<std::string, IntegerRange>& ranges) {
  TC_TRY(dense, Tensor::allocate({.type = spec.type, .shape = spec.shape}));
  const auto range = ranges.find(name);
  fill_random(name, seed, range == ranges.end() ? std::nullopt : std::optional(range->second), dense);
  if (is_dense(spec.shape, with_strides(spec).strides)) return dense;
  TC_TRY(tensor, allocate_input(spec));
  const auto bytes = static_cast<size_t>(bytes_of(spec.type));
  const char* from = dense.data_as<char>();
  for_each_element(tensor, [&](const char* to) {
    std::memcpy(const_cast<char*>(to), from, bytes);
    from += bytes;
  });
  return tensor;
}

interp::Environment environment_of(const TuneSetup& setup, const TuneData& data) {
  interp::Environment environment;
  const std::vector<std::string> inputs = names_of(setup.signature.parameters);
  const std::vector<std::string> outputs = names_of(setup.signature.results);
  for (size_t i = 0; i < inputs.size(); ++i) environment[inputs[i]] = to_value(data.inputs[i]);
  for (size_t o = 0; o < outputs.size(); ++o) environment[outputs[o]] = to_value(data.outputs[o]);
  size_t next = 0;
  for (const Argument& parameter : setup.signature.parameters) {
    if (parameter.role != Role::kScalar) continue;
    const Scalar& scalar = data.scalars[next++];
    if (parameter.compiled_in) continue;
    environment[parameter.name] = scalar_value(parameter.type, *scalar_bits(scalar, parameter.type));
  }
  return environment;
}

bool takes_tf32(const TuneSetup& setup) {
  return setup.settings.backend != Backend::kCpu && setup.settings.mapping.tf32;
}

/// How far a result may be from one that another order of operations gives, relative to the largest. `cuts`: sums of
/// products of 8-bit floats may have kept few bits, or products of float32 taken operands as TF32 (T5).
double tolerance_of(ScalarType type, bool cuts) {
  if (type == ScalarType::kFloat16) return 1e-2;
  if (type == ScalarType::kBFloat16) return 5e-2;
  if (is_float8(type)) return type == ScalarType::kFloat8E4M3 ? 0.1 : 0.2;
  if (cuts) return 1e-2;
  return type == ScalarType::kFloat32 ? 1e-4 : 1e-10;
}

/// The strict kernel of the CPU in place of the oracle, whose sums are as exact.
Result<interp::BoundedEnvironment> stand_in(const TuneSetup& setup, const TuneData& data) {
  compile::Settings settings = setup.settings;
  settings.backend = Backend::kCpu;
  settings.options = {.scheduler = {.fusion = options::Fusion::kMin}, .strict = true};
  compile::Compilation compilation = setup.compilation;
  compilation.specialised =
      std::make_shared<const ir::Program>(ir::accumulated_in_float64(*setup.compilation.specialised));
  compilation.checked = compilation.specialised;
  compilation.checks.clear();
  TC_TRY_VOID(compile::run_passes(settings, compilation));
  std::vector<Tensor> outputs;
  for (const Tensor& output : data.outputs) {
    TC_TRY(copy, copy_of(output));
    outputs.push_back(std::move(copy));
  }
  TC_TRY_VOID(kernel_of(settings, compilation).run(data.inputs, outputs, data.scalars));
  interp::BoundedEnvironment expected;
  const ir::Program& program = *setup.compilation.specialised;
  const bool cuts = takes_tf32(setup) || std::ranges::any_of(program.statements, [&](const auto& s) {
                      return ir::sums_float8_products(program, s);
                    });
  const std::vector<std::string> names = names_of(setup.signature.results);
  for (size_t o = 0; o < outputs.size(); ++o) {
    interp::BoundedValue& bounded = expected[names[o]];
    bounded.value = to_value(outputs[o]);
    double largest = 0;
    for (const double value : bounded.value.floats) {
      if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
    }
    bounded.errors.assign(static_cast<size_t>(bounded.value.elements()),
                          tolerance_of(bounded.value.type, cuts) * largest);
  }
  return expected;
}

size_t bytes_of_expected(const Specs& specs) {
  size_t elements = 0;
  for (const TensorSpec& spec : specs.outputs) elements += static_cast<size_t>(spec.elements());
  return 16 * elements;
}

}  // namespace

/// The request's entry; of a generic def the instance that the request decides.
Result<std::string> entry_of(const TuneProgram& program) {
  TC_TRY(file, lang::parse(std::make_shared<const Source>(program.name, program.text)));
  std::string entry = program.request.entry;
  if (entry.empty() && file.definitions.size() == 1) entry = file.definitions[0].name.text;
  for (const lang::Definition& definition : file.definitions) {
    if (!lang::is_generic(definition) || definition.name.text != entry.substr(0, entry.find('<'))) continue;
    TC_TRY(types, types_of(program.request, definition, entry));
    return lang::instance_name(definition, types);
  }
  return entry;
}

Result<TuneSetup> set_up(const TuneProblem& problem) {
  TuneSetup setup{.problem = problem};
  compile::Compilation& c = setup.compilation;
  c.source = std::make_shared<const Source>(problem.program.name, problem.program.text);
  compile::Settings front;
  TC_TRY(entry, entry_of(problem.program));
  front.entry = entry;
  setup.problem.program.request.entry = entry;  // workers are told no types
  TC_TRY_VOID(compile::run_passes(front, c, "analyse"));
  TC_TRY_VOID(compile::run_passes(front, c, "program"));
  TC_TRY(settings, settings_of(problem.program.request, *c.program));
  setup.settings = std::move(settings);
  TC_TRY_VOID(check_sizes(setup.settings, *c.program));
  if (setup.settings.backend == Backend::kCuda && problem.arch.empty()) {
    TC_TRY(target, compile::target_of_device(problem.program.request.device));
    setup.settings.gpu = target;
  } else if (setup.settings.backend != Backend::kCpu) {
    TC_TRY(target, compile::target_of_arch(problem.arch.empty() ? "sm_90a" : problem.arch));
    setup.settings.gpu = target;
  }
  TC_TRY_VOID(compile::run_passes(setup.settings, c, "specialise"));
  setup.signature = signature_of(*c.program);
  setup.specs = specs_of(setup.settings, c);
  return setup;
}

Result<Tensor> copy_of(const Tensor& tensor) {
  TC_TRY(copy, Tensor::allocate(tensor.spec()));
  std::memcpy(copy.data(), tensor.data(), static_cast<size_t>(tensor.spec().span_bytes()));
  return copy;
}

Result<TuneData> make_data(const TuneSetup& setup) {
  TuneData data;
  const std::map<std::string, IntegerRange> ranges = subscript_ranges(*setup.compilation.specialised);
  const std::vector<std::string> inputs = names_of(setup.signature.parameters);
  for (size_t i = 0; i < inputs.size(); ++i) {
    TC_TRY(tensor, setup.problem.data_given
                       ? read_input(setup, i)
                       : random_tensor(inputs[i], setup.specs.inputs[i], setup.problem.seed, ranges));
    data.inputs.push_back(std::move(tensor));
  }
  for (size_t o = 0; o < setup.specs.outputs.size(); ++o) {
    const Argument& result = setup.signature.results[o];
    const TensorSpec& spec = setup.specs.outputs[o];
    TC_TRY(tensor, result.role == Role::kInOut ? random_tensor(result.name, spec, setup.problem.seed, ranges)
                                               : Tensor::allocate(spec));
    data.outputs.push_back(std::move(tensor));
  }
  for (const Argument& parameter : setup.signature.parameters) {
    if (parameter.role != Role::kScalar) continue;
    const auto& scalars = setup.problem.program.request.scalars;
    const auto found = scalars.find(parameter.name);
    if (found == scalars.end()) return fail("scalar '{}' has no value", parameter.name);
    data.scalars.push_back(found->second);
  }
  return data;
}

Result<void> write_data(const std::string& folder, const Specs& specs, std::span<const Tensor> inputs) {
  if (inputs.size() != specs.inputs.size()) {
    return fail("{} inputs are given; the def has {}", inputs.size(), specs.inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec found = inputs[i].spec();
    if (!(with_strides(found) == with_strides(specs.inputs[i]))) {
      return fail("input {} is {}; the def takes {}", i, found.to_string(), specs.inputs[i].to_string());
    }
    std::ofstream file(data_path(folder, i), std::ios::binary);
    file.write(inputs[i].data_as<char>(), static_cast<std::streamsize>(found.span_bytes()));
    file.close();
    if (!file) return fail("cannot write '{}'", data_path(folder, i).string());
  }
  return {};
}

bool has_stand_in(const TuneSetup& setup) { return instances_of(*setup.compilation.specialised) > kMaxOracleInstances; }

void forget_results(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove(results_path(folder), ignored);
}

Result<interp::BoundedEnvironment> expected_results(const TuneSetup& setup, const TuneData& data,
                                                    std::stop_token cancel) {
  const std::vector<std::string> names = names_of(setup.signature.results);
  const std::string& folder = setup.problem.folder;
  Archive archive(results_path(folder));
  if (!folder.empty() && archive.read(bytes_of_expected(setup.specs))) {
    interp::BoundedEnvironment expected;
    for (size_t o = 0; o < names.size(); ++o) {
      const TensorSpec& spec = setup.specs.outputs[o];
      const auto count = static_cast<size_t>(spec.elements());
      interp::BoundedValue& bounded = expected[names[o]];
      bounded.value = {.type = spec.type, .shape = spec.shape, .floats = {}, .integers = {}};
      if (is_float(spec.type)) bounded.value.floats = archive.take<double>(count);
      if (!is_float(spec.type)) bounded.value.integers = archive.take<int64_t>(count);
      bounded.errors = archive.take<double>(count);
    }
    return expected;
  }
  const ir::Program& program = *setup.compilation.specialised;
  TC_TRY(expected, has_stand_in(setup)
                       ? stand_in(setup, data)
                       : interp::run_bounded(takes_tf32(setup) ? interp::with_tf32_factors(program) : program,
                                             environment_of(setup, data), interp::default_accuracy, cancel));
  if (folder.empty()) return expected;
  for (const std::string& name : names) {
    const interp::BoundedValue& bounded = expected.at(name);
    if (is_float(bounded.value.type)) archive.put(bounded.value.floats);
    if (!is_float(bounded.value.type)) archive.put(bounded.value.integers);
    archive.put(bounded.errors);
  }
  archive.write();
  return expected;
}

std::string mismatch(const TuneSetup& setup, std::span<const Tensor> outputs,
                     const interp::BoundedEnvironment& expected) {
  const std::vector<std::string> names = names_of(setup.signature.results);
  for (size_t o = 0; o < names.size(); ++o) {
    const interp::Comparison comparison = interp::compare(names[o], to_value(outputs[o]), expected.at(names[o]));
    if (!comparison.agrees) return comparison.sentence;
  }
  return {};
}

}  // namespace tc::api
