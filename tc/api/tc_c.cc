#include "tc/api/tc_c.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "tc/api/call.h"
#include "tc/api/tc.h"
#include "tc/support/plural.h"
#include "tc/support/result.h"

using tc::Result;
namespace api = tc::api;

struct tc_engine {
  api::Engine engine;
  std::vector<std::string> entries;
};

struct tc_request {
  api::Request request;
  std::stop_source cancel;
};

namespace {

/// A spec as a DLTensor without data, for callers who ask.
struct DescribedTensor {
  api::TensorSpec spec;
  DLTensor view = {};
};

std::vector<std::unique_ptr<DescribedTensor>> describe(const std::vector<api::TensorSpec>& specs, DLDevice device) {
  std::vector<std::unique_ptr<DescribedTensor>> tensors;
  for (const api::TensorSpec& spec : specs) {
    auto tensor = std::make_unique<DescribedTensor>();
    tensor->spec = spec;
    tensor->view.device = device;
    tensor->view.ndim = static_cast<int>(spec.shape.size());
    tensor->view.dtype = api::to_dlpack(spec.type);
    tensor->view.shape = tensor->spec.shape.data();
    tensor->view.strides = tensor->spec.strides.data();
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace

struct tc_kernel {
  explicit tc_kernel(api::CompiledKernel compiled)
      : kernel(std::move(compiled)),
        inputs(describe(kernel.inputs(), kernel.device())),
        outputs(describe(kernel.outputs(), kernel.device())) {
    for (const api::Argument& parameter : kernel.signature().parameters)
      scalars += parameter.role == api::Role::kScalar;
  }
  api::CompiledKernel kernel;
  std::vector<std::unique_ptr<DescribedTensor>> inputs;
  std::vector<std::unique_ptr<DescribedTensor>> outputs;
  size_t scalars = 0;
};

namespace {

/// The calling thread's last error.
std::string& last_error() {
  thread_local std::string text;
  return text;
}

tc_status status_of(tc::ErrorKind kind) {
  switch (kind) {
    case tc::ErrorKind::kUser:
      return TC_ERROR_USER;
    case tc::ErrorKind::kBudget:
      return TC_ERROR_BUDGET;
    case tc::ErrorKind::kCancelled:
      return TC_ERROR_CANCELLED;
    case tc::ErrorKind::kInternal:
      return TC_ERROR_INTERNAL;
  }
  return TC_ERROR_INTERNAL;
}

/// Runs `work`, which returns a Result<void>; nothing that it throws gets out.
template <typename Work>
tc_status call(Work work) noexcept {
  try {
    const Result<void> result = work();
    if (result) return TC_OK;
    last_error() = result.error().to_string();
    return status_of(result.error().kind());
  } catch (const std::bad_alloc&) {
    last_error().clear();  // a text would need memory
    return TC_ERROR_MEMORY;
  } catch (const std::exception& fault) {
    try {
      last_error() = fault.what();
    } catch (const std::bad_alloc&) {
      last_error().clear();
    }
    return TC_ERROR_INTERNAL;
  }
}

/// The error of a null pointer where there must be none.
Result<void> need(const void* pointer, const char* what) {
  if (!pointer) return tc::fail("{} is a null pointer", what);
  return {};
}

api::Scalar scalar_of(const tc_scalar& value) {
  return value.is_float ? api::Scalar(value.floating) : api::Scalar(value.integer);
}

Result<void> set_tensor(std::vector<std::optional<api::TensorSpec>>& specs, size_t position, const DLTensor* tensor) {
  TC_TRY_VOID(need(tensor, "the tensor"));
  if (position >= api::kMaxCallArguments) return tc::fail("no def has a tensor at position {}", position);
  TC_TRY(spec, api::spec_of(*tensor));
  if (specs.size() <= position) specs.resize(position + 1);
  specs[position] = std::move(spec);
  return {};
}

const DLTensor* view_at(const std::vector<std::unique_ptr<DescribedTensor>>& tensors, size_t position) {
  return position < tensors.size() ? &tensors[position]->view : nullptr;
}

/// A handle of what `make` returns, or none.
template <typename Make>
tc_status make_engine(tc_engine** engine, Make make) noexcept {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(engine, "the place for the engine"));
    *engine = nullptr;
    TC_TRY(created, make());
    std::vector<std::string> entries = created.entries();
    *engine = new tc_engine{std::move(created), std::move(entries)};
    return {};
  });
}

}  // namespace

extern "C" {

const char* tc_last_error(void) { return last_error().c_str(); }

const char* tc_version(void) { return api::version(); }

void tc_set_log(tc_log_callback callback, tc_log_level most, void* user) {
  call([&]() -> Result<void> {
    if (!callback || most < TC_LOG_WARNING) {
      tc::set_log({});
      return {};
    }
    const auto limit = static_cast<tc::LogLevel>(std::min(most, TC_LOG_TRACE));
    tc::set_log(
        [callback, user](const tc::LogMessage& message) {
          callback(static_cast<tc_log_level>(message.level), std::string(message.text).c_str(), user);
        },
        limit);
    return {};
  });
}

tc_status tc_engine_create(const char* text, const char* name, tc_engine** engine) {
  return make_engine(engine, [&]() -> Result<api::Engine> {
    TC_TRY_VOID(need(text, "the text"));
    return api::Engine::create(text, name ? name : "tc");
  });
}

tc_status tc_engine_create_cached(const char* text, const char* name, const char* cache, int read_only,
                                  tc_engine** engine) {
  return make_engine(engine, [&]() -> Result<api::Engine> {
    TC_TRY_VOID(need(text, "the text"));
    TC_TRY_VOID(need(cache, "the cache's file name"));
    return api::Engine::create(text, name ? name : "tc", {.cache = cache, .read_only = read_only != 0});
  });
}

tc_status tc_engine_create_production(const char* cache, const char* text, const char* name, tc_engine** engine) {
  return make_engine(engine, [&]() -> Result<api::Engine> {
    TC_TRY_VOID(need(cache, "the cache's file name"));
    return api::Engine::production(cache, {.text = text ? text : "", .name = name ? name : "tc"});
  });
}

void tc_engine_destroy(tc_engine* engine) { delete engine; }

size_t tc_engine_entries(const tc_engine* engine) { return engine ? engine->entries.size() : 0; }

const char* tc_engine_entry(const tc_engine* engine, size_t entry) {
  return entry < tc_engine_entries(engine) ? engine->entries[entry].c_str() : nullptr;
}

tc_status tc_request_create(const char* entry, tc_request** request) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(request, "the place for the request"));
    *request = nullptr;
    auto created = std::make_unique<tc_request>();
    created->request.entry = entry ? entry : "";
    created->request.cancel = created->cancel.get_token();
    *request = created.release();
    return {};
  });
}

void tc_request_destroy(tc_request* request) { delete request; }

tc_status tc_request_input(tc_request* request, size_t position, const DLTensor* tensor) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(request, "the request"));
    return set_tensor(request->request.inputs, position, tensor);
  });
}

tc_status tc_request_output(tc_request* request, size_t position, const DLTensor* tensor) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(request, "the request"));
    return set_tensor(request->request.outputs, position, tensor);
  });
}

tc_status tc_request_size(tc_request* request, const char* name, int64_t value) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(request, "the request"));
    TC_TRY_VOID(need(name, "the size's name"));
    request->request.sizes[name] = value;
    return {};
  });
}

tc_status tc_request_scalar(tc_request* request, const char* name, tc_scalar value) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(request, "the request"));
    TC_TRY_VOID(need(name, "the scalar's name"));
    request->request.scalars.insert_or_assign(name, scalar_of(value));
    return {};
  });
}

tc_status tc_request_device(tc_request* request, DLDevice device) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(request, "the request"));
    if (device.device_type != kDLCPU && device.device_type != kDLCUDA) {
      return tc::fail("kernels run on DLPack's device types {} (CPU) and {} (CUDA), not on {}",
                      static_cast<int>(kDLCPU), static_cast<int>(kDLCUDA), static_cast<int>(device.device_type));
    }
    request->request.backend = device.device_type == kDLCUDA ? api::Backend::kCuda : api::Backend::kCpu;
    request->request.device = device.device_id;
    return {};
  });
}

tc_status tc_request_options(tc_request* request, const char* text) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(request, "the request"));
    TC_TRY_VOID(need(text, "the options' text"));
    TC_TRY(options, tc::options::cpu_options_from_text(text));
    request->request.options = std::move(options);
    return {};
  });
}

tc_status tc_request_mapping(tc_request* request, const char* text) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(request, "the request"));
    TC_TRY_VOID(need(text, "the options' text"));
    TC_TRY(options, tc::options::mapping_options_from_text(text));
    request->request.mapping = std::move(options);
    return {};
  });
}

tc_status tc_request_element_aligned(tc_request* request, int element_aligned) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(request, "the request"));
    request->request.element_aligned = element_aligned != 0;
    return {};
  });
}

tc_status tc_request_budget(tc_request* request, uint64_t isl_operations, int64_t wall_clock_ms) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(request, "the request"));
    request->request.budget = {.isl_operations = isl_operations, .wall_clock_ms = wall_clock_ms};
    return {};
  });
}

void tc_request_cancel(tc_request* request) {
  if (request) request->cancel.request_stop();
}

tc_status tc_compile(const tc_engine* engine, const tc_request* request, tc_kernel** kernel) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(kernel, "the place for the kernel"));
    *kernel = nullptr;
    TC_TRY_VOID(need(engine, "the engine"));
    TC_TRY_VOID(need(request, "the request"));
    TC_TRY(compiled, engine->engine.compile(request->request));
    *kernel = new tc_kernel(std::move(compiled));
    return {};
  });
}

void tc_kernel_destroy(tc_kernel* kernel) { delete kernel; }

tc_status tc_emit(const tc_engine* engine, const tc_request* request, const char* stage, const char* arch,
                  char** text) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(text, "the place for the text"));
    *text = nullptr;
    TC_TRY_VOID(need(engine, "the engine"));
    TC_TRY_VOID(need(request, "the request"));
    TC_TRY_VOID(need(stage, "the stage"));
    TC_TRY(made, engine->engine.emit(request->request, stage, arch ? arch : "sm_90a"));
    auto copy = std::make_unique<char[]>(made.size() + 1);
    std::ranges::copy(made, copy.get());
    *text = copy.release();
    return {};
  });
}

void tc_text_destroy(char* text) { delete[] text; }

const char* tc_kernel_options(const tc_kernel* kernel) {
  return kernel ? kernel->kernel.provenance().options.c_str() : "";
}
int tc_kernel_from_cache(const tc_kernel* kernel) { return kernel && kernel->kernel.provenance().from_file ? 1 : 0; }
const char* tc_kernel_pass(const tc_kernel* kernel, size_t position, double* ms) {
  if (!kernel || position >= kernel->kernel.pass_times().size()) return nullptr;
  const api::PassTime& time = kernel->kernel.pass_times()[position];
  if (ms) *ms = time.ms;
  return time.pass.c_str();
}

size_t tc_kernel_inputs(const tc_kernel* kernel) { return kernel ? kernel->inputs.size() : 0; }
size_t tc_kernel_outputs(const tc_kernel* kernel) { return kernel ? kernel->outputs.size() : 0; }
size_t tc_kernel_scalars(const tc_kernel* kernel) { return kernel ? kernel->scalars : 0; }

const DLTensor* tc_kernel_input(const tc_kernel* kernel, size_t position) {
  return kernel ? view_at(kernel->inputs, position) : nullptr;
}
const DLTensor* tc_kernel_output(const tc_kernel* kernel, size_t position) {
  return kernel ? view_at(kernel->outputs, position) : nullptr;
}

tc_status tc_run(const tc_kernel* kernel, const DLTensor* const* inputs, size_t num_inputs, DLTensor* const* outputs,
                 size_t num_outputs, const tc_scalar* scalars, size_t num_scalars) {
  return tc_run_on_stream(kernel, nullptr, inputs, num_inputs, outputs, num_outputs, scalars, num_scalars);
}

tc_status tc_run_on_stream(const tc_kernel* kernel, void* stream, const DLTensor* const* inputs, size_t num_inputs,
                           DLTensor* const* outputs, size_t num_outputs, const tc_scalar* scalars, size_t num_scalars) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(kernel, "the kernel"));
    if (num_inputs) TC_TRY_VOID(need(inputs, "the list of inputs"));
    if (num_outputs) TC_TRY_VOID(need(outputs, "the list of outputs"));
    if (num_scalars) TC_TRY_VOID(need(scalars, "the list of scalars"));
    if (num_scalars != kernel->scalars) {
      return tc::fail("the call has {}; the kernel takes {}", tc::plural(static_cast<int64_t>(num_scalars), "scalar"),
                      kernel->scalars);
    }
    // Room for as many as any kernel takes, of which only those of this call are made.
    static_assert(std::is_trivially_destructible_v<api::Scalar>);
    alignas(api::Scalar) std::byte room[api::kMaxCallArguments * sizeof(api::Scalar)];
    auto* const values = reinterpret_cast<api::Scalar*>(room);
    for (size_t s = 0; s < num_scalars; ++s) std::construct_at(values + s, scalar_of(scalars[s]));
    return kernel->kernel.run(std::span(inputs, num_inputs), std::span(outputs, num_outputs),
                              std::span<const api::Scalar>(values, num_scalars), stream);
  });
}

tc_status tc_kernel_prepare(const tc_kernel* kernel, void* stream) {
  return call([&]() -> Result<void> {
    TC_TRY_VOID(need(kernel, "the kernel"));
    return kernel->kernel.prepare(stream);
  });
}

}  // extern "C"
