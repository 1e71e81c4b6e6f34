#include "tc/api/device_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

namespace tc::api {
namespace {

constexpr std::chrono::milliseconds kPause{1};

/// False if somebody else has the file at the end too.
bool lock_within(int file, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace

DeviceLock::DeviceLock(options::Backend backend, int device, std::chrono::milliseconds patience) {
  if (backend == options::Backend::kSimulator) return;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return;
  const std::string name = backend == options::Backend::kCpu ? "cpu" : fmt::format("gpu{}", device);
  const std::string path = (folder / fmt::format("tensorc-measures-{}-{}.lock", ::getuid(), name)).string();
  file_ = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file_ >= 0 && !lock_within(file_, patience)) {
    ::close(file_);
    file_ = -1;
  }
}

DeviceLock::~DeviceLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace tc::api
