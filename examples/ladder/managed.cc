#include "managed.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <typename Function>
Function* driver(const char* name) {
  static void* const kLibrary = dlopen("libcuda.so.1", RTLD_NOW);
  return kLibrary == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(kLibrary, name));
}

/// The primary context of the first GPU, made current.
bool open_device() {
  auto* init = driver<int(unsigned)>("cuInit");
  auto* retain = driver<int(void**, int)>("cuDevicePrimaryCtxRetain");
  auto* set_current = driver<int(void*)>("cuCtxSetCurrent");
  void* context = nullptr;
  return init != nullptr && retain != nullptr && set_current != nullptr && init(0) == 0 && retain(&context, 0) == 0 &&
         set_current(context) == 0;
}

}  // namespace

bool Managed::available() {
  static const bool kAvailable = open_device();
  return kAvailable;
}

Managed::Managed(const tc::api::TensorSpec& spec) : spec_(spec) {
  constexpr unsigned kAttachGlobal = 1;
  auto* allocate = driver<int(void**, size_t, unsigned)>("cuMemAllocManaged");
  const auto bytes = static_cast<size_t>(spec.span_bytes());
  if (allocate == nullptr || allocate(&data_, bytes, kAttachGlobal) != 0) {
    std::fprintf(stderr, "no memory for %s\n", spec.to_string().c_str());
    std::exit(1);
  }
  std::memset(data_, 0, bytes);
}

tc::api::Tensor Managed::tensor() const {
  DLTensor view{};
  view.data = data_;
  view.device = {kDLCUDAManaged, 0};
  view.ndim = static_cast<int>(spec_.shape.size());
  view.dtype = tc::api::to_dlpack(spec_.type);
  std::vector<int64_t> shape = spec_.shape;
  view.shape = shape.data();
  return tc::api::Tensor::borrow(view);
}
