#pragma once

#include <string>

namespace tc::cuda {

/// A float intrinsic of the language that is one function of CUDA's math library, without fast-math.
struct DeviceFunction {
  const char* name;   ///< in the language
  const char* in_32;  ///< on float
  const char* in_64;  ///< on double
  /// The result on numbers of a 16-bit float type is such a number: it needs no rounding.
  bool exact = false;
};

const DeviceFunction* find_device_function(const std::string& name);

/// True for an identifier of CUDA's math library that the text of kernels calls.
bool is_device_function(const std::string& identifier);

}  // namespace tc::cuda
