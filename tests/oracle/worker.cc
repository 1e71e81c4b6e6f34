// Compiles and runs defs for tests/oracle, which knows what their results have to be. One request after the other comes
// on standard input, one answer to each leaves on standard output; a process serves many, and a crash costs one.
//
//     run BACKEND LIMIT_MS TEXT_BYTES OPTIONS_BYTES SCALARS INPUTS OUTPUTS     the text and the options follow
//     NAME VALUE                                                               each scalar, in the order of the text
//     TYPE RANK EXTENT... BYTES                                                each tensor; its elements follow
//
// BACKEND is cpu, sim, cuda or interp. An answer is "ok BYTES" and the results, one behind the other, or
// "KIND BYTES" and a text: KIND is refused (the user's error), budget, internal, run (an error of the run itself).
// Tensors lie between bytes that are compared afterwards, and so are inputs.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tc/api/call.h"
#include "tc/api/oracle.h"
#include "tc/api/request.h"
#include "tc/api/tc.h"
#include "tc/compile/pipeline.h"
#include "tc/cpu/runtime.h"
#include "tc/cuda/device.h"
#include "tc/interp/interpreter.h"
#include "tc/support/check.h"
#include "tc/support/result.h"

namespace tc::testing {
namespace {

constexpr size_t kMargin = 256;  ///< bytes on either side of a tensor
constexpr std::byte kMark{0xa5};

/// A tensor's elements, dense and row-major, between two margins.
struct HostTensor {
  api::TensorSpec spec;
  size_t bytes = 0;
  std::unique_ptr<std::byte, decltype(&std::free)> memory{nullptr, &std::free};
  std::vector<std::byte> given;  ///< the elements as they were

  std::byte* data() const { return memory.get() + kMargin; }

  static HostTensor make(api::TensorSpec spec, size_t bytes) {
    HostTensor tensor;
    tensor.spec = std::move(spec);
    tensor.bytes = bytes;
    const size_t all = (bytes + 2 * kMargin + 63) / 64 * 64;
    tensor.memory.reset(static_cast<std::byte*>(std::aligned_alloc(64, all)));
    TC_CHECK(tensor.memory, "no memory");
    std::memset(tensor.memory.get(), std::to_integer<int>(kMark), all);
    return tensor;
  }

  bool is_intact() const {
    for (size_t at = 0; at < kMargin; ++at) {
      if (memory.get()[at] != kMark || data()[bytes + at] != kMark) return false;
    }
    return true;
  }

  DLTensor view() {
    return {.data = data(),
            .device = {kDLCPU, 0},
            .ndim = static_cast<int>(spec.shape.size()),
            .dtype = api::to_dlpack(spec.type),
            .shape = spec.shape.data(),
            .strides = nullptr,
            .byte_offset = 0};
  }
};

struct Job {
  std::string backend;
  int64_t limit_ms = 0;
  std::string text;
  std::string options;
  std::vector<std::pair<std::string, api::Scalar>> scalars;
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> outputs;
};

/// What becomes of a job: "ok" and the results' bytes, or a kind of error and its text.
struct Answer {
  std::string kind;
  std::string bytes;
};

std::string read_bytes(std::istream& in, size_t count) {
  std::string bytes(count, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(count));
  return bytes;
}

HostTensor read_tensor(std::istream& in) {
  std::string type;
  size_t rank = 0;
  in >> type >> rank;
  const std::optional<ScalarType> known = scalar_type_from_name(type);
  TC_CHECK(known, "no type of elements: {}", type);
  api::TensorSpec spec{.type = *known, .shape = std::vector<int64_t>(rank)};
  for (int64_t& extent : spec.shape) in >> extent;
  size_t bytes = 0;
  in >> bytes;
  in.ignore(1);  // the end of the line
  HostTensor tensor = HostTensor::make(std::move(spec), bytes);
  in.read(reinterpret_cast<char*>(tensor.data()), static_cast<std::streamsize>(bytes));
  tensor.given.assign(tensor.data(), tensor.data() + bytes);
  return tensor;
}

api::Scalar scalar_of(const std::string& text) {
  if (text.find_first_of(".enf") != std::string::npos) return std::stod(text);
  if (text[0] == '-') return static_cast<int64_t>(std::stoll(text));
  return static_cast<uint64_t>(std::stoull(text));
}

/// False at the end of the input.
bool read_job(std::istream& in, Job& job) {
  std::string word;
  size_t text_bytes = 0, options_bytes = 0, scalars = 0, inputs = 0, outputs = 0;
  if (!(in >> word)) return false;
  in >> job.backend >> job.limit_ms >> text_bytes >> options_bytes >> scalars >> inputs >> outputs;
  TC_CHECK(in && word == "run", "no request: {}", word);
  in.ignore(1);
  job.text = read_bytes(in, text_bytes);
  job.options = read_bytes(in, options_bytes);
  for (size_t s = 0; s < scalars; ++s) {
    std::string name, value;
    in >> name >> value;
    job.scalars.emplace_back(name, scalar_of(value));
  }
  for (size_t i = 0; i < inputs; ++i) job.inputs.push_back(read_tensor(in));
  for (size_t o = 0; o < outputs; ++o) job.outputs.push_back(read_tensor(in));
  TC_CHECK(in, "the request ends too early");
  return true;
}

Answer failed(const Error& error, bool at_run = false) {
  const char* kind = error.kind() == ErrorKind::kInternal ? "internal"
                     : at_run                             ? "run"
                     : error.kind() == ErrorKind::kUser   ? "refused"
                                                          : "budget";
  return {kind, error.to_string()};
}

Answer results_of(const Job& job) {
  Answer answer{"ok", {}};
  for (const HostTensor& tensor : job.outputs) {
    answer.bytes.append(reinterpret_cast<const char*>(tensor.data()), tensor.bytes);
  }
  return answer;
}

Result<api::Request> request_of(const Job& job) {
  api::Request request;
  if (job.backend == "cpu") {
    TC_TRY(options, options::cpu_options_from_text(job.options));
    request.options = options;
  } else if (job.backend != "interp") {
    request.backend = job.backend == "sim" ? api::Backend::kSimulator : api::Backend::kCuda;
    TC_TRY(mapping, options::mapping_options_from_text(job.options));
    request.mapping = mapping;
  }
  request.budget.wall_clock_ms = job.limit_ms;
  for (const HostTensor& tensor : job.inputs) request.inputs.emplace_back(tensor.spec);
  for (const HostTensor& tensor : job.outputs) request.outputs.emplace_back(tensor.spec);
  for (const auto& [name, value] : job.scalars) request.scalars.emplace(name, value);
  return request;
}

interp::Value value_of(HostTensor& tensor) { return api::to_value(api::Tensor::borrow(tensor.view())); }

Answer interpret(Job& job, const api::Request& request) {
  compile::Compilation compilation;
  compilation.source = std::make_shared<const Source>("oracle.tc", job.text);
  if (const auto done = compile::run_passes({}, compilation, "program"); !done) return failed(done.error());
  const Result<compile::Settings> settings = api::settings_of(request, *compilation.program);
  if (!settings) return failed(settings.error());
  if (const auto done = compile::run_passes(*settings, compilation, "specialise"); !done) return failed(done.error());
  const ir::Program& program = *compilation.specialised;
  const api::Signature signature = api::signature_of(program);
  interp::Environment environment;
  size_t input = 0, scalar = 0, output = 0;
  for (const api::Argument& parameter : signature.parameters) {
    if (parameter.role != api::Role::kScalar) {
      environment[parameter.name] = value_of(job.inputs.at(input++));
      continue;
    }
    const api::Scalar& given = job.scalars.at(scalar++).second;
    if (parameter.compiled_in) continue;
    const std::optional<int64_t> bits = api::scalar_bits(given, parameter.type);
    if (!bits) return {"refused", "a scalar that its type does not hold"};
    environment[parameter.name] = api::scalar_value(parameter.type, *bits);
  }
  for (const api::Argument& result : signature.results) {
    environment[result.name] = value_of(job.outputs.at(output++));
  }
  const Result<interp::Environment> results = interp::run(program, environment);
  if (!results) return failed(results.error(), true);
  output = 0;
  for (const api::Argument& result : signature.results) {
    api::Tensor tensor = api::Tensor::borrow(job.outputs[output++].view());
    api::from_value(results->at(result.name), tensor);
  }
  return results_of(job);
}

std::vector<api::Scalar> scalars_of(const Job& job) {
  std::vector<api::Scalar> scalars;
  for (const auto& [name, value] : job.scalars) scalars.push_back(value);
  return scalars;
}

/// The tensors' margins and the inputs are as they were.
Result<void> check_memory(const Job& job) {
  for (const auto* tensors : {&job.inputs, &job.outputs}) {
    for (const HostTensor& tensor : *tensors) {
      if (!tensor.is_intact()) return fail("the kernel writes outside its tensors");
    }
  }
  for (const HostTensor& tensor : job.inputs) {
    if (std::memcmp(tensor.data(), tensor.given.data(), tensor.bytes) != 0) return fail("the kernel writes an input");
  }
  return {};
}

/// The GPU's memory for all runs. A context that nobody holds is destroyed, and opening another takes longer than a
/// run.
struct DeviceMemory {
  std::shared_ptr<const cuda::Context> context{};
  std::optional<cuda::Buffer> buffer{};

  Result<void> open() {
    if (context) return {};
    TC_TRY(opened, cuda::Context::open(0));
    context = opened;
    return {};
  }

  /// The address of at least so many bytes.
  Result<cuda::Address> reserve(size_t bytes) {
    const auto wanted = static_cast<int64_t>(bytes);
    if (!buffer || buffer->bytes() < wanted) {
      TC_TRY(larger, cuda::Buffer::allocate(context, std::max<int64_t>(2 * wanted, 1 << 20)));
      buffer = std::move(larger);
    }
    return buffer->address();
  }
};

/// Copies all tensors with their margins to the GPU at once, runs, and copies them back.
Result<void> run_on_device(Job& job, const api::CompiledKernel& kernel, DeviceMemory& memory) {
  std::vector<HostTensor*> tensors;
  for (HostTensor& tensor : job.inputs) tensors.push_back(&tensor);
  for (HostTensor& tensor : job.outputs) tensors.push_back(&tensor);
  std::vector<size_t> places;
  size_t size = 0;
  for (const HostTensor* tensor : tensors) {
    places.push_back(size);
    size += (tensor->bytes + 2 * kMargin + 255) / 256 * 256;
  }
  std::vector<std::byte> image(size, kMark);
  TC_TRY(address, memory.reserve(size));
  std::vector<DLTensor> views;
  for (size_t n = 0; n < tensors.size(); ++n) {
    std::memcpy(&image[places[n]], tensors[n]->memory.get(), tensors[n]->bytes + 2 * kMargin);
    views.push_back(tensors[n]->view());
    views.back().data = reinterpret_cast<void*>(address + places[n] + kMargin);
    views.back().device = {kDLCUDA, 0};
  }
  std::vector<const DLTensor*> inputs;
  std::vector<DLTensor*> outputs;
  for (size_t n = 0; n < tensors.size(); ++n) {
    if (n < job.inputs.size()) {
      inputs.push_back(&views[n]);
    } else {
      outputs.push_back(&views[n]);
    }
  }
  const auto bytes = static_cast<int64_t>(size);
  TC_TRY_VOID(memory.buffer->copy_from(image.data(), bytes));
  TC_TRY_VOID(kernel.run(inputs, outputs, scalars_of(job)));
  TC_TRY_VOID(memory.buffer->copy_to(image.data(), bytes));
  for (size_t n = 0; n < tensors.size(); ++n) {
    std::memcpy(tensors[n]->memory.get(), &image[places[n]], tensors[n]->bytes + 2 * kMargin);
  }
  return check_memory(job);
}

Result<void> run_on_host(Job& job, const api::CompiledKernel& kernel) {
  std::vector<DLTensor> views;
  views.reserve(job.inputs.size() + job.outputs.size());
  std::vector<const DLTensor*> inputs;
  std::vector<DLTensor*> outputs;
  for (HostTensor& tensor : job.inputs) inputs.push_back(&views.emplace_back(tensor.view()));
  for (HostTensor& tensor : job.outputs) outputs.push_back(&views.emplace_back(tensor.view()));
  TC_TRY_VOID(kernel.run(inputs, outputs, scalars_of(job)));
  return check_memory(job);
}

Answer answer(Job& job, DeviceMemory& memory) {
  const Result<api::Request> request = request_of(job);
  if (!request) return failed(request.error());
  if (job.backend == "interp") return interpret(job, *request);
  const bool on_device = job.backend == "cuda";
  if (on_device) {
    if (const auto opened = memory.open(); !opened) return failed(opened.error());
  }
  const Result<api::Engine> engine = api::Engine::create(job.text, "oracle.tc");
  if (!engine) return failed(engine.error());
  const Result<api::CompiledKernel> kernel = engine->compile(*request);
  if (!kernel) return failed(kernel.error());
  const Result<void> done = on_device ? run_on_device(job, *kernel, memory) : run_on_host(job, *kernel);
  return done ? results_of(job) : failed(done.error(), true);
}

int serve() {
  std::ios::sync_with_stdio(false);
  cpu::set_thread_count(2);
  DeviceMemory memory;
  for (;;) {
    Job job;
    if (!read_job(std::cin, job)) return 0;
    Answer reply;
    try {
      reply = answer(job, memory);
    } catch (const std::exception& fault) {
      reply = {"internal", fault.what()};
    }
    std::cout << reply.kind << ' ' << reply.bytes.size() << '\n' << reply.bytes << std::flush;
  }
}

}  // namespace
}  // namespace tc::testing

int main() { return tc::testing::serve(); }
