#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tc::cpu {

/// How the caller's tensors lie in memory: strides in elements, per dimension, none negative. A tensor that is not
/// here is dense and row-major.
using Layouts = std::map<std::string, std::vector<int64_t>>;

}  // namespace tc::cpu
