#include "jax.h"

#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <unordered_map>

#include "errors.h"
#include "function.h"
#include "xla_ffi.h"

namespace nb = nanobind;

namespace tc::python {
namespace {

/// A kernel that programs of XLA's call, with the values of its scalars.
struct Registered {
  api::CompiledKernel kernel;
  std::vector<api::Scalar> scalars;
};

/// Kernels stay: XLA does not say when it has forgotten a program that calls one. Numbers begin at a random one, so
/// that a program of another process finds none.
class Registry {
 public:
  int64_t add(Registered kernel) {
    const std::lock_guard lock(mutex_);
    const auto number = first_ + static_cast<int64_t>(kernels_.size());
    kernels_.emplace(number, std::make_shared<const Registered>(std::move(kernel)));
    return number;
  }
  std::shared_ptr<const Registered> find(int64_t number) const {
    const std::lock_guard lock(mutex_);
    const auto found = kernels_.find(number);
    return found == kernels_.end() ? nullptr : found->second;
  }

 private:
  static int64_t random_number() {
    std::random_device random;
    return (int64_t{random()} << 31 ^ int64_t{random()}) & INT64_MAX >> 1;
  }

  const int64_t first_ = random_number();
  mutable std::mutex mutex_;
  std::unordered_map<int64_t, std::shared_ptr<const Registered>> kernels_;
};

Registry& registry() {
  static auto* const made = new Registry();  // until the process ends
  return *made;
}

xla::Error* refuse(const xla::Call& call, const std::string& sentence) {
  xla::ErrorArguments arguments{sizeof(arguments), nullptr, sentence.c_str(), xla::kInvalidArgument};
  return call.api->create_error(&arguments);
}

/// The attribute "kernel" of a call; -1 where there is none.
int64_t number_of(const xla::Call& call) {
  constexpr std::string_view kName = "kernel";
  for (int64_t a = 0; a < call.attributes.size; ++a) {
    const xla::Text& name = *call.attributes.names[a];
    if (std::string_view(name.begin, name.size) != kName || call.attributes.kinds[a] != xla::kScalarAttribute) continue;
    const auto& value = *static_cast<const xla::Scalar*>(call.attributes.values[a]);
    if (value.type == xla::kSigned64) return *static_cast<const int64_t*>(value.value);
  }
  return -1;
}

/// Buffers of a call as tensors of these specs.
std::vector<DLTensor> tensors_of(const xla::Buffers& buffers, const std::vector<api::TensorSpec>& specs,
                                 DLDevice device) {
  std::vector<DLTensor> tensors;
  for (size_t i = 0; i < specs.size(); ++i) {
    xla::Buffer& buffer = *buffers.buffers[i];
    tensors.push_back({.data = buffer.data,
                       .device = device,
                       .ndim = static_cast<int32_t>(buffer.rank),
                       .dtype = api::to_dlpack(specs[i].type),
                       .shape = buffer.extents,
                       .strides = nullptr,
                       .byte_offset = 0});
  }
  return tensors;
}

Result<void> run(const Registered& registered, const xla::Call& call, void* stream) {
  const api::CompiledKernel& kernel = registered.kernel;
  std::vector<DLTensor> inputs = tensors_of(call.arguments, kernel.inputs(), kernel.device());
  std::vector<DLTensor> outputs = tensors_of(call.results, kernel.outputs(), kernel.device());
  std::vector<const DLTensor*> reads;
  std::vector<DLTensor*> writes;
  for (const DLTensor& input : inputs) reads.push_back(&input);
  for (size_t o = 0; o < outputs.size(); ++o) {
    writes.push_back(&outputs[o]);
    if (!kernel.writes_all(o)) std::memset(outputs[o].data, 0, static_cast<size_t>(kernel.outputs()[o].span_bytes()));
  }
  return kernel.run(reads, writes, registered.scalars, stream);
}

/// Runs the kernel that a call names. In threads of XLA's, without the interpreter.
xla::Error* handle(xla::Call* call) {
  if (call->extensions && call->extensions->type == xla::kMetadata) {
    xla::ApiVersion& version = reinterpret_cast<xla::MetadataExtension*>(call->extensions)->metadata->version;
    constexpr int kKnownMinor = 3;
    version.major = 0;
    version.minor = call->api ? call->api->version.minor : kKnownMinor;
    return nullptr;
  }
  if (call->stage != xla::kExecute) return nullptr;
  const std::shared_ptr<const Registered> registered = registry().find(number_of(*call));
  if (!registered) return refuse(*call, "the program calls a kernel of another process");
  const api::CompiledKernel& kernel = registered->kernel;
  if (call->arguments.size != static_cast<int64_t>(kernel.inputs().size()) ||
      call->results.size != static_cast<int64_t>(kernel.outputs().size())) {
    return refuse(*call, "the program calls a kernel with another number of arrays");
  }
  void* stream = nullptr;
  if (kernel.device().device_type == kDLCUDA) {
    xla::StreamArguments arguments{sizeof(arguments), nullptr, call->context, nullptr};
    if (xla::Error* error = call->api->get_stream(&arguments)) return error;
    stream = arguments.stream;
  }
  const Result<void> done = run(*registered, *call, stream);
  return done ? nullptr : refuse(*call, done.error().to_string());
}

}  // namespace

void bind_jax(nb::module_& module) {
  module.def("jax_handler", [] { return nb::capsule(reinterpret_cast<void*>(&handle), "xla._CUSTOM_CALL_TARGET"); });
  module.def("jax_register", [](const Kernel& kernel, nb::dict values) {
    Registered registered{kernel.get(), {}};
    for (const api::Argument& parameter : kernel.get().signature().parameters) {
      if (parameter.role != api::Role::kScalar) continue;
      registered.scalars.push_back(scalar_of(parameter.name, values[parameter.name.c_str()]));
    }
    for (size_t o = 0; o < kernel.get().outputs().size(); ++o) {
      if (kernel.get().device().device_type != kDLCUDA || kernel.get().writes_all(o)) continue;
      raise_value_error("'" + kernel.get().signature().results[o].name +
                        "' has elements that no statement writes, which a call of XLA's on a GPU cannot set to zero");
    }
    return registry().add(std::move(registered));
  });
}

}  // namespace tc::python
