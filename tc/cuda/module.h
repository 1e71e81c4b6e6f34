#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tc/cuda/device.h"
#include "tc/support/digest.h"

namespace tc::cuda {

/// What the driver tells of a loaded kernel.
struct KernelAttributes {
  int registers = 0;
  int64_t local_bytes = 0;  ///< per thread: stack and spills
  int64_t static_shared_bytes = 0;
  int threads_per_block = 0;  ///< the most that its registers allow
};

/// Machine code in a device's context.
class Module {
 public:
  static Result<std::shared_ptr<const Module>> load(std::shared_ptr<const Context> context, const std::string& cubin);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Result<Driver::Function> function(const std::string& symbol) const;
  Result<KernelAttributes> attributes(Driver::Function function) const;
  const Context& context() const { return *context_; }

 private:
  Module(std::shared_ptr<const Context> context, Driver::Module handle)
      : context_(std::move(context)), handle_(handle) {}

  std::shared_ptr<const Context> context_;
  Driver::Module handle_;
};

/// Loads the same code into the same context once. Thread-safe.
class ModuleCache {
 public:
  Result<std::shared_ptr<const Module>> load(const std::shared_ptr<const Context>& context, const std::string& cubin);

 private:
  std::mutex mutex_;
  std::map<std::pair<Driver::Context, Digest>, std::weak_ptr<const Module>> modules_;
};

}  // namespace tc::cuda
