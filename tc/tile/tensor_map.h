#pragma once

#include <string>
#include <vector>

#include "tc/tile/program.h"

namespace tc::tile {

inline constexpr int64_t kMapAlignment = 16;  ///< bytes: of a map's first element and of its strides

/// Why the driver would not encode the kernel's tensor maps, or why they do not lie in their tensors: a sentence each
/// (CUDA driver API, cuTensorMapEncodeTiled).
std::vector<std::string> tensor_map_faults(const Kernel& kernel);

/// Where elements of 2^s bytes lie when rows of `row` bytes are swizzled by the bits of their address; 0: they are not.
std::optional<Swizzle> swizzle_of(int64_t row, int64_t bytes);

}  // namespace tc::tile
