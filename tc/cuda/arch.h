#pragma once

#include <string>

#include "tc/support/result.h"

namespace tc::cuda {

/// A GPU architecture by NVIDIA's name: "sm_75", "sm_90a", "sm_100f". The letter marks a target whose code runs on that
/// one architecture ('a') or family ('f') only.
struct Arch {
  int number = 0;       ///< 10 * major + minor: 90
  char variant = '\0';  ///< 'a', 'f' or none

  bool operator==(const Arch&) const = default;
};

Result<Arch> parse_arch(const std::string& text);
std::string to_string(Arch arch);  ///< "sm_90a"

/// Whether code for `code` runs on a device of compute capability `device`: the same major number and no newer minor,
/// or exactly the device's for 'a'.
bool runs_on(Arch code, int device);

}  // namespace tc::cuda
