#pragma once

#include <memory>
#include <string>

#include "tc/cpu/object.h"
#include "tc/support/result.h"

namespace tc::cpu {

/// A kernel in this process, ready to be called from any number of threads at once. Owns its code: the last
/// copy of the shared pointer must outlive every call.
class Loaded {
 public:
  /// Runs the kernel. arguments[i] is the address of buffer i's first element, or of scalar i's value.
  /// Returns 0, or the code of the first error (kOutOfMemory, or what an AssertStmt says).
  int call(void* const* arguments) const { return entry_(arguments); }

  ~Loaded();
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

 private:
  friend Result<std::shared_ptr<const Loaded>> load_object(const Object& object, const std::string& instance);
  struct Image;
  Loaded(std::unique_ptr<Image> image, int (*entry)(void* const*));

  std::unique_ptr<Image> image_;
  int (*entry_)(void* const*);
};

/// Links an object's code against the runtime. With `instance`, "M=4, K=5", profilers tell kernels of one def apart
/// (tc/cpu/perf_map.h). Errors: bytes that are not such an object, a symbol that this
/// version of the library does not have, a target that this processor cannot run.
Result<std::shared_ptr<const Loaded>> load_object(const Object& object, const std::string& instance = {});

}  // namespace tc::cpu
