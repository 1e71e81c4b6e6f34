#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tc::api {

/// Bytes that this process may still allocate without swapping: what the machine has free, or what the process's
/// control group has left of its limit, whichever is less; pages of files, which the kernel drops first, are free.
/// INT64_MAX where neither is known; a figure that stays 0 when it is read again is not known. `root` stands before the
/// paths of /proc and /sys.
int64_t available_memory_bytes(const std::string& root = "");

/// The first figure above 0 of a few readings, 30 ms apart; INT64_MAX if all are 0. The kernel updates a group's
/// statistics later than its use, so that all of a group's memory seems to be in use while files are read fast.
int64_t settled_bytes(const std::function<int64_t()>& read);

/// "512 bytes", "1.5 KiB", "3.2 GiB".
std::string human_bytes(int64_t bytes);

}  // namespace tc::api
