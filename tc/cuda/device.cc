#include "tc/cuda/device.h"

#include <optional>

namespace tc::cuda {
namespace {

/// CUdevice_attribute.
enum Attribute {
  kThreadsPerBlock = 1,
  kBlockLimit = 2,  // x, y, z follow one another
  kGridLimit = 5,
  kMultiprocessors = 16,
  kL2Bytes = 38,
  kThreadsPerMultiprocessor = 39,
  kMajor = 75,
  kMinor = 76,
  kSharedPerMultiprocessor = 81,
  kRegistersPerMultiprocessor = 82,
  kSharedPerBlockAtMost = 97,
};

Result<DeviceInfo> describe(const Driver& driver, int ordinal) {
  DeviceInfo info;
  info.ordinal = ordinal;
  Driver::Status status = 0;
  const auto attribute = [&](int which) {
    int value = 0;
    if (status == 0) status = driver.device_attribute(&value, which, ordinal);
    return value;
  };
  char name[256] = {};
  status = driver.device_name(name, sizeof name, ordinal);
  info.name = name;
  info.capability = 10 * attribute(kMajor) + attribute(kMinor);
  info.multiprocessors = attribute(kMultiprocessors);
  info.shared_bytes_per_block = attribute(kSharedPerBlockAtMost);
  info.shared_bytes_per_multiprocessor = attribute(kSharedPerMultiprocessor);
  info.threads_per_block = attribute(kThreadsPerBlock);
  info.threads_per_multiprocessor = attribute(kThreadsPerMultiprocessor);
  info.registers_per_multiprocessor = attribute(kRegistersPerMultiprocessor);
  for (int d = 0; d < 3; ++d) {
    info.block_limits[d] = attribute(kBlockLimit + d);
    info.grid_limits[d] = attribute(kGridLimit + d);
  }
  info.l2_bytes = attribute(kL2Bytes);
  size_t memory = 0;
  if (status == 0) status = driver.device_memory(&memory, ordinal);
  info.memory_bytes = static_cast<int64_t>(memory);
  TC_TRY_VOID(driver.check(status, fmt::format("asking for the properties of device {}", ordinal)));
  return info;
}

/// The context of the device that is current in this thread.
std::optional<Driver::Context> current_of(const Driver& driver, int ordinal) {
  Driver::Context current = nullptr;
  Driver::Device device = -1;
  if (driver.current_context(&current) != 0 || !current) return std::nullopt;
  if (driver.current_device(&device) != 0 || device != ordinal) return std::nullopt;
  return current;
}

bool is_primary(const Driver& driver, Driver::Context context, int ordinal) {
  unsigned flags = 0;
  int is_active = 0;
  // One that nobody has is not made to be asked for its handle.
  if (driver.primary_state(ordinal, &flags, &is_active) != 0 || is_active == 0) return false;
  Driver::Context primary = nullptr;
  if (driver.retain_primary(&primary, ordinal) != 0) return false;
  driver.release_primary(ordinal);
  return primary == context;
}

}  // namespace

Result<std::vector<DeviceInfo>> devices() {
  TC_TRY(driver, Driver::get());
  int count = 0;
  TC_TRY_VOID(driver->check(driver->device_count(&count), "counting devices"));
  std::vector<DeviceInfo> result;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    TC_TRY(info, describe(*driver, ordinal));
    result.push_back(std::move(info));
  }
  return result;
}

Result<std::shared_ptr<const Context>> Context::open(int ordinal) {
  TC_TRY(driver, Driver::get());
  int count = 0;
  TC_TRY_VOID(driver->check(driver->device_count(&count), "counting devices"));
  if (ordinal < 0 || ordinal >= count) return fail("there is no device {}; this machine has {}", ordinal, count);
  const std::shared_ptr<Context> context(new Context());
  context->driver_ = driver;
  TC_TRY(info, describe(*driver, ordinal));
  context->device_ = std::move(info);
  if (const std::optional<Driver::Context> current = current_of(*driver, ordinal)) {
    context->handle_ = *current;
    return context;
  }
  TC_TRY_VOID(
      driver->check(driver->retain_primary(&context->handle_, ordinal), "opening the device's primary context"));
  context->is_primary_ = true;
  return context;
}

uint64_t Context::id_to_open(int ordinal) {
  const Result<const Driver*> got = Driver::get();
  if (!got) return 0;
  const Driver& driver = **got;
  const std::optional<Driver::Context> current = current_of(driver, ordinal);
  if (!current || is_primary(driver, *current, ordinal)) return 0;
  unsigned long long id = 0;
  if (driver.context_id && driver.context_id(*current, &id) == 0) return id;
  return reinterpret_cast<uint64_t>(*current);
}

Context::~Context() {
  if (is_primary_) driver_->release_primary(device_.ordinal);
}

Result<Buffer> Buffer::allocate(std::shared_ptr<const Context> context, int64_t bytes) {
  Buffer buffer;
  buffer.bytes_ = bytes;
  buffer.context_ = std::move(context);
  if (bytes == 0) return buffer;
  const CurrentContext current(*buffer.context_);
  const Driver& driver = buffer.context_->driver();
  TC_TRY_VOID(driver.check(driver.allocate(&buffer.address_, static_cast<size_t>(bytes)),
                           fmt::format("allocating {} bytes on device {}", bytes, buffer.context_->device().ordinal)));
  return buffer;
}

Buffer::~Buffer() {
  if (!address_) return;
  const CurrentContext current(*context_);
  context_->driver().release(address_);
}

Result<void> Buffer::copy_from(const void* host, int64_t bytes, Stream stream) {
  if (bytes > bytes_) return fail("copying {} bytes into a buffer of {}", bytes, bytes_);
  if (bytes == 0) return {};
  const CurrentContext current(*context_);
  const Driver& driver = context_->driver();
  TC_TRY_VOID(
      driver.check(driver.copy_to_device(address_, host, static_cast<size_t>(bytes), stream), "copying to the device"));
  return driver.check(driver.synchronize_stream(stream), "copying to the device");
}

Result<void> Buffer::copy_to(void* host, int64_t bytes, Stream stream) const {
  if (bytes > bytes_) return fail("copying {} bytes out of a buffer of {}", bytes, bytes_);
  if (bytes == 0) return {};
  const CurrentContext current(*context_);
  const Driver& driver = context_->driver();
  TC_TRY_VOID(
      driver.check(driver.copy_to_host(host, address_, static_cast<size_t>(bytes), stream), "copying from the device"));
  return driver.check(driver.synchronize_stream(stream), "copying from the device");
}

}  // namespace tc::cuda
