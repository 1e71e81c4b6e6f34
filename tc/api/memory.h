#pragma once

#include <cstdint>
#include <string>

namespace tc::api {

/// Bytes that this process may still allocate without swapping: what the machine has free, or what the process's
/// control group has left of its limit, whichever is less; pages of files, which the kernel drops first, are free.
/// INT64_MAX where neither is known; a figure that stays 0 when it is read again is not known. `root` stands before the
/// paths of /proc and /sys.
int64_t available_memory_bytes(const std::string& root = "");

/// "512 bytes", "1.5 KiB", "3.2 GiB".
std::string human_bytes(int64_t bytes);

}  // namespace tc::api
