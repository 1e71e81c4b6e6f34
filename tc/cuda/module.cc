#include "tc/cuda/module.h"

namespace tc::cuda {
namespace {

/// CUfunction_attribute.
enum Attribute { kThreadsPerBlock = 0, kSharedBytes = 1, kLocalBytes = 3, kRegisters = 4 };

}  // namespace

Result<std::shared_ptr<const Module>> Module::load(std::shared_ptr<const Context> context, const std::string& cubin) {
  const CurrentContext current(*context);
  const Driver& driver = context->driver();
  Driver::Module handle = nullptr;
  TC_TRY_VOID(
      driver.check(driver.load_module(&handle, cubin.data()),
                   fmt::format("loading code on {} (sm_{})", context->device().name, context->device().capability)));
  return std::shared_ptr<const Module>(new Module(std::move(context), handle));
}

Module::~Module() {
  const CurrentContext current(*context_);
  context_->driver().unload_module(handle_);
}

Result<Driver::Function> Module::function(const std::string& symbol) const {
  const CurrentContext current(*context_);
  const Driver& driver = context_->driver();
  Driver::Function function = nullptr;
  TC_TRY_VOID(driver.check(driver.get_function(&function, handle_, symbol.c_str()),
                           fmt::format("looking up the kernel '{}'", symbol)));
  return function;
}

Result<KernelAttributes> Module::attributes(Driver::Function function) const {
  const CurrentContext current(*context_);
  const Driver& driver = context_->driver();
  Driver::Status status = 0;
  const auto attribute = [&](int which) {
    int value = 0;
    if (status == 0) status = driver.get_attribute(&value, which, function);
    return value;
  };
  KernelAttributes result;
  result.registers = attribute(kRegisters);
  result.local_bytes = attribute(kLocalBytes);
  result.static_shared_bytes = attribute(kSharedBytes);
  result.threads_per_block = attribute(kThreadsPerBlock);
  TC_TRY_VOID(driver.check(status, "asking for a kernel's attributes"));
  return result;
}

Result<std::shared_ptr<const Module>> ModuleCache::load(const std::shared_ptr<const Context>& context,
                                                        const std::string& cubin) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::weak_ptr<const Module>& entry = modules_[{context->handle(), Digest::of(cubin)}];
  if (std::shared_ptr<const Module> module = entry.lock()) return module;
  TC_TRY(module, Module::load(context, cubin));
  entry = module;
  return module;
}

}  // namespace tc::cuda
