#include "tc/api/tc.h"
#include "tc/cuda/device.h"

namespace tc::api {

GpuContext GpuContext::current() {
  GpuContext context;
  const Result<const cuda::Driver*> driver = cuda::Driver::get();
  if (driver && (*driver)->current_context(&context.handle_) != 0) context.handle_ = nullptr;
  return context;
}

void GpuContext::enter(const std::function<void()>& work) const {
  if (!handle_) return work();
  const cuda::CurrentContext current(**cuda::Driver::get(), handle_);
  work();
}

}  // namespace tc::api
