#pragma once

#include <chrono>

#include "tc/options/backend.h"

namespace tc::api {

/// Held while a candidate runs: tuners side by side on one machine take turns on its devices. Where the lock cannot be
/// had (no folder for temporary files), there is none. The simulator needs none.
class DeviceLock {
 public:
  /// Waits its turn, but no longer than `patience`, and then does without: who keeps the others waiting for so long
  /// hangs, and the time limit of a job, which runs meanwhile, must not make them look as if they hung too.
  DeviceLock(options::Backend backend, int device, std::chrono::milliseconds patience = std::chrono::seconds(10));
  ~DeviceLock();
  bool is_held() const { return file_ >= 0; }
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace tc::api
