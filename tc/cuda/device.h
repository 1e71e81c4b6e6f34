#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tc/cuda/arch.h"
#include "tc/cuda/driver.h"

namespace tc::cuda {

struct DeviceInfo {
  int ordinal = 0;
  std::string name;
  int capability = 0;  ///< 90
  int multiprocessors = 0;
  int64_t shared_bytes_per_block = 0;  ///< the most that a kernel can ask for
  int64_t shared_bytes_per_multiprocessor = 0;
  int threads_per_block = 0;
  int threads_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  std::array<int64_t, 3> block_limits = {0, 0, 0};
  std::array<int64_t, 3> grid_limits = {0, 0, 0};
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;

  /// What to compile for: with the variant 'a' from sm_90 on, where instructions of that one architecture live.
  Arch arch() const { return {capability, capability >= 90 ? 'a' : '\0'}; }
};

Result<std::vector<DeviceInfo>> devices();

/// A context of one device, in which modules are loaded and memory lives: the caller's where one of that device is
/// current, else the primary one, which the CUDA runtime, PyTorch and everybody else share.
class Context {
 public:
  static Result<std::shared_ptr<const Context>> open(int ordinal);
  /// Tells the context that open() would open from all other ones of the device, also from those that are gone whose
  /// handle it has. 0: the primary one, or none.
  static uint64_t id_to_open(int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return *driver_; }
  const DeviceInfo& device() const { return device_; }
  Driver::Context handle() const { return handle_; }

 private:
  Context() = default;

  const Driver* driver_ = nullptr;
  DeviceInfo device_;
  Driver::Context handle_ = nullptr;
  bool is_primary_ = false;
};

/// Makes a context current, and the one before it again at the end.
class CurrentContext {
 public:
  explicit CurrentContext(const Context& context) : CurrentContext(context.driver(), context.handle()) {}
  CurrentContext(const Driver& driver, Driver::Context handle) : driver_(driver) {
    driver_.current_context(&before_);
    if (before_ != handle) changed_ = true, driver_.set_context(handle);
  }
  ~CurrentContext() {
    if (changed_) driver_.set_context(before_);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Driver& driver_;
  Driver::Context before_ = nullptr;
  bool changed_ = false;
};

/// Memory on a device, freed at the end.
class Buffer {
 public:
  static Result<Buffer> allocate(std::shared_ptr<const Context> context, int64_t bytes);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  Address address() const { return address_; }
  int64_t bytes() const { return bytes_; }
  /// Both wait until the bytes have been copied.
  Result<void> copy_from(const void* host, int64_t bytes, Stream stream = nullptr);
  Result<void> copy_to(void* host, int64_t bytes, Stream stream = nullptr) const;

 private:
  Buffer() = default;
  void swap(Buffer& other) {
    std::swap(context_, other.context_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
  }

  std::shared_ptr<const Context> context_;
  Address address_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace tc::cuda
