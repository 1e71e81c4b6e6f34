#include "tc/api/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tc/api/layout.h"
#include "tc/api/memory.h"
#include "tc/support/check.h"
#include "tc/support/plural.h"
#include "tc/support/result.h"

namespace tc::api {
namespace {

constexpr size_t kAlignment = 64;

std::optional<ScalarType> from_dlpack(DLDataType type) {
  for (int i = 0; i < kScalarTypes; ++i) {
    const auto candidate = static_cast<ScalarType>(i);
    const DLDataType known = to_dlpack(candidate);
    if (known.code == type.code && known.bits == type.bits && known.lanes == type.lanes) return candidate;
  }
  return std::nullopt;
}

}  // namespace

int64_t TensorSpec::elements() const { return element_count(shape).value_or(-1); }

int64_t TensorSpec::span_bytes() const {
  const std::optional<int64_t> count = element_count(shape);
  if (!count) return -1;
  if (*count == 0) return 0;
  const std::optional<Reach> reach = reach_of(shape, strides.empty() ? dense_strides(shape) : strides);
  int64_t bytes = 0;
  if (!reach || __builtin_sub_overflow(reach->high, reach->low, &bytes) || __builtin_add_overflow(bytes, 1, &bytes) ||
      __builtin_mul_overflow(bytes, int64_t{bytes_of(type)}, &bytes)) {
    return -1;
  }
  return bytes;
}

std::string TensorSpec::to_string() const {
  std::string text = fmt::format("{}{}", name_of(type), tuple_text(shape));
  if (!strides.empty() && !is_dense(shape, strides)) text += " strides " + tuple_text(strides);
  return text;
}

DLDataType to_dlpack(ScalarType type) {
  const auto bits = static_cast<uint8_t>(bits_of(type));
  if (type == ScalarType::kBool) return {TC_DLPACK_BOOL, 8, 1};
  if (type == ScalarType::kBFloat16) return {kDLBfloat, 16, 1};
  if (type == ScalarType::kFloat8E4M3) return {TC_DLPACK_FLOAT8_E4M3FN, 8, 1};
  if (type == ScalarType::kFloat8E5M2) return {TC_DLPACK_FLOAT8_E5M2, 8, 1};
  if (is_float(type)) return {kDLFloat, bits, 1};
  return {static_cast<uint8_t>(is_signed_integer(type) ? kDLInt : kDLUInt), bits, 1};
}

Result<TensorSpec> spec_of(const DLTensor& tensor) {
  const std::optional<ScalarType> type = from_dlpack(tensor.dtype);
  if (!type) {
    return fail("a tensor of DLPack type code {}, {} bits, {} lanes has no type in the language", tensor.dtype.code,
                tensor.dtype.bits, tensor.dtype.lanes);
  }
  if (tensor.ndim < 0) return fail("a tensor of {} dimensions does not exist", tensor.ndim);
  if (tensor.ndim > 0 && !tensor.shape) return fail("a tensor of {} dimensions has no shape", tensor.ndim);
  TensorSpec spec{.type = *type, .shape = {tensor.shape, tensor.shape + tensor.ndim}};
  for (int d = 0; d < tensor.ndim; ++d) {
    if (spec.shape[d] < 0) return fail("a tensor's extent in dimension {} is {}, which is negative", d, spec.shape[d]);
  }
  if (tensor.strides) spec.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  return spec;
}

/// The view, the arrays that it points to, and how to let go of the memory.
struct Tensor::Impl {
  DLTensor dl = {};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  bool read_only = false;
  void* owned = nullptr;  // from calloc
  DLManagedTensor* managed = nullptr;
  DLManagedTensorVersioned* versioned = nullptr;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    std::free(owned);
    if (managed && managed->deleter) managed->deleter(managed);
    if (versioned && versioned->deleter) versioned->deleter(versioned);
  }

  /// Points the view at copies of the shape and strides of `tensor`.
  void view(const DLTensor& tensor) {
    dl = tensor;
    shape.assign(tensor.shape, tensor.shape + (tensor.shape ? tensor.ndim : 0));
    dl.shape = shape.data();
    if (tensor.strides) strides.assign(tensor.strides, tensor.strides + tensor.ndim);
    dl.strides = tensor.strides ? strides.data() : nullptr;
  }
};

Tensor::Tensor() = default;
Tensor::~Tensor() = default;
Tensor::Tensor(Tensor&& other) noexcept = default;
Tensor& Tensor::operator=(Tensor&& other) noexcept = default;
Tensor::Tensor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<Tensor> Tensor::allocate(const TensorSpec& spec) {
  const auto negative = std::ranges::find_if(spec.shape, [](int64_t extent) { return extent < 0; });
  if (negative != spec.shape.end()) return fail("a tensor {} has an extent of {}", spec.to_string(), *negative);
  if (!spec.strides.empty() && spec.strides.size() != spec.shape.size()) {
    return fail("a tensor has {} but {}", plural(static_cast<int64_t>(spec.shape.size()), "dimension"),
                plural(static_cast<int64_t>(spec.strides.size()), "stride"));
  }
  const TensorSpec full = with_strides(spec);
  if (!elements_are_apart(full.shape, full.strides)) {
    return fail("the strides of a tensor {} put several of its elements at one address", spec.to_string());
  }
  const int64_t bytes = full.span_bytes();
  if (bytes < 0) return fail("a tensor {} has more bytes than 64 bits can count", spec.to_string());
  const int64_t available = available_memory_bytes();
  auto impl = std::make_unique<Impl>();
  // Zeroed pages cost nothing until they are touched, which memory cleared by hand would be at once.
  if (bytes <= available) impl->owned = std::calloc(static_cast<size_t>(bytes) + kAlignment, 1);
  if (!impl->owned) {
    return fail("a tensor {} takes {}; {} are available", spec.to_string(), human_bytes(bytes), human_bytes(available));
  }
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(impl->owned) + kAlignment - 1) / kAlignment * kAlignment;
  const int64_t before = -reach_of(full.shape, full.strides)->low * bytes_of(full.type);
  impl->shape = full.shape;
  impl->strides = full.strides;
  impl->dl = {.data = reinterpret_cast<void*>(begin + static_cast<uintptr_t>(before)),
              .device = {kDLCPU, 0},
              .ndim = static_cast<int>(full.shape.size()),
              .dtype = to_dlpack(full.type),
              .shape = impl->shape.data(),
              .strides = impl->strides.data(),
              .byte_offset = 0};
  return Tensor(std::move(impl));
}

Tensor Tensor::borrow(const DLTensor& tensor, bool read_only) {
  auto impl = std::make_unique<Impl>();
  impl->view(tensor);
  impl->read_only = read_only;
  return Tensor(std::move(impl));
}

Tensor Tensor::adopt(DLManagedTensor* tensor) {
  auto impl = std::make_unique<Impl>();
  impl->managed = tensor;
  impl->view(tensor->dl_tensor);
  return Tensor(std::move(impl));
}

Result<Tensor> Tensor::adopt(DLManagedTensorVersioned* tensor) {
  auto impl = std::make_unique<Impl>();
  impl->versioned = tensor;
  // Of another major version only the version, the context and the deleter may be read.
  if (tensor->version.major != 1) {
    return fail("a tensor of DLPack version {}.{}; versions 1.x are understood", tensor->version.major,
                tensor->version.minor);
  }
  impl->view(tensor->dl_tensor);
  impl->read_only = tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
  return Tensor(std::move(impl));
}

DLManagedTensor* Tensor::release() {
  TC_CHECK(impl_, "an empty tensor cannot be released");
  auto handle = std::make_unique<DLManagedTensor>();
  handle->dl_tensor = impl_->dl;
  handle->manager_ctx = impl_.release();
  handle->deleter = [](DLManagedTensor* self) {
    delete static_cast<Impl*>(self->manager_ctx);
    delete self;
  };
  return handle.release();
}

DLManagedTensorVersioned* Tensor::release_versioned() {
  TC_CHECK(impl_, "an empty tensor cannot be released");
  auto handle = std::make_unique<DLManagedTensorVersioned>();
  handle->version = {1, 0};
  handle->flags = impl_->read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  handle->dl_tensor = impl_->dl;
  handle->manager_ctx = impl_.release();
  handle->deleter = [](DLManagedTensorVersioned* self) {
    delete static_cast<Impl*>(self->manager_ctx);
    delete self;
  };
  return handle.release();
}

const DLTensor& Tensor::dl() const {
  TC_CHECK(impl_, "an empty tensor has no view");
  return impl_->dl;
}

DLTensor& Tensor::dl() {
  TC_CHECK(impl_, "an empty tensor has no view");
  return impl_->dl;
}

bool Tensor::read_only() const { return impl_ && impl_->read_only; }

TensorSpec Tensor::spec() const {
  Result<TensorSpec> spec = spec_of(dl());
  TC_CHECK(spec, "{}", spec.error().to_string());
  return *spec;
}

void* Tensor::data() const { return static_cast<char*>(dl().data) + dl().byte_offset; }

}  // namespace tc::api
