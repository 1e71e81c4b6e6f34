#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace tc::ir {

/// Strides in elements, per dimension, none negative, of the caller's tensors by name. A tensor that is not here is
/// dense and row-major.
using Layouts = std::map<std::string, std::vector<int64_t>>;

/// Returns the strides of a dense row-major tensor, in elements. A dimension without elements counts as one element.
std::vector<int64_t> row_major_strides(std::span<const int64_t> shape);

}  // namespace tc::ir
