#include "tc/api/memory_cache.h"

#include <cstring>

#include "tc/cuda/device.h"
#include "tc/options/mapping_fields.h"

namespace tc::api {
namespace {

/// Appends values so that two different lists of values never give the same bytes.
class Bytes {
 public:
  Bytes() { text_.reserve(512); }

  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>>>
  void add(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    text_.append(raw, sizeof(T));
  }
  void add(const std::string& value) {
    add(value.size());
    text_ += value;
  }
  void add(const std::vector<int64_t>& values) {
    add(values.size());
    text_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  }
  template <typename T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  void add(const TensorSpec& spec) {
    add(spec.type);
    add(spec.shape);
    add(spec.strides);
  }
  void add(const std::vector<std::optional<TensorSpec>>& specs) {
    add(specs.size());
    for (const auto& spec : specs) add(spec);
  }
  void add(const options::SchedulerOptions& options) {
    add(options.fusion);
    add(options.allow_skewing);
    add(options.positive_orthant);
  }
  void add(const options::CpuOptions& options) {
    add(options.scheduler);
    add(options.tile);
    add(options.vector_width);
    add(options.unroll);
    add(options.parallel);
    add(options.promote);
    add(options.strict);
    add(options.check_bounds);
  }
  void add(const options::MappingOptions& options) {
    options::visit_fields(options, [&](const char*, const auto& value) { add(value); });
  }
  void add(const std::vector<options::KernelOptions>& kernels) {
    add(kernels.size());
    for (const options::KernelOptions& kernel : kernels) {
      options::visit_fields(kernel, [&](const char*, const auto& value) { add(value); });
    }
  }
  void add(const Scalar& scalar) {
    add(scalar.kind());
    add(scalar.integer());
    add(scalar.floating());
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// What an item costs beside its code: the plan, the mapping's pages, the loader's tables.
constexpr size_t kOverheadBytes = 16384;

}  // namespace

std::string request_bytes(const Request& request, const ir::Program& program) {
  Bytes bytes;
  bytes.add(program.name);
  bytes.add(request.inputs);
  bytes.add(request.outputs);
  bytes.add(request.sizes.size());
  for (const auto& [name, value] : request.sizes) bytes.add(name), bytes.add(value);
  bytes.add(request.scalars.size());
  for (const auto& [name, value] : request.scalars) {
    bytes.add(name);
    const ir::Scalar* scalar = program.find_scalar(name);
    if (scalar && scalar->specialised) bytes.add(value);
  }
  bytes.add(request.backend);
  bytes.add(request.device);
  if (request.backend == Backend::kCuda) bytes.add(cuda::Context::id_to_open(request.device));
  bytes.add(request.verify);
  if (request.backend == Backend::kCpu) {
    bytes.add(request.options);
  } else {
    bytes.add(request.mapping);
    bytes.add(request.element_aligned);
  }
  return bytes.take();
}

std::optional<CompiledKernel> MemoryCache::find(const std::string& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto place = places_.find(request);
  if (place == places_.end()) return std::nullopt;
  items_.splice(items_.begin(), items_, place->second);
  return place->second->kernel;
}

void MemoryCache::put(const std::string& request, const CompiledKernel& kernel, size_t code_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t bytes = code_bytes + request.size() + kOverheadBytes;
  if (bytes > limit_ || places_.contains(request)) return;
  while (bytes_ + bytes > limit_) {
    bytes_ -= items_.back().bytes;
    places_.erase(items_.back().request);
    items_.pop_back();
  }
  items_.push_front({request, kernel, bytes});
  places_[items_.front().request] = items_.begin();
  bytes_ += bytes;
}

}  // namespace tc::api
