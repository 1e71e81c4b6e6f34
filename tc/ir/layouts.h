#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tc/ir/program.h"

namespace tc::ir {

/// Strides in elements, per dimension, none negative, of the caller's tensors by name. A tensor that is not here is
/// dense and row-major.
using Layouts = std::map<std::string, std::vector<int64_t>>;

/// Returns the strides of a dense row-major tensor, in elements. A dimension without elements counts as one element.
std::vector<int64_t> row_major_strides(std::span<const int64_t> shape);

/// Returns the strides of a tensor of a specialised Program, in elements: its own, or those of a dense one.
std::vector<int64_t> strides_of(const Tensor& tensor);

/// Returns a divisor of the offset of each row of the last dimension, in elements: of vectors that begin at rows. 0 if
/// there is no more than one dimension, so no other row; 1 at any address.
int64_t pitch_of(const std::vector<int64_t>& strides, bool at_any_address);
int64_t pitch_of(const Tensor& tensor);

/// Returns a divisor of the length of each row of the last dimension, and of its offset: vectors of so many elements
/// fill rows.
int64_t row_divisor(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides, bool at_any_address);
int64_t row_divisor(const Tensor& tensor);

/// Gives tensors of a specialised Program their strides.
Program with_layouts(Program program, const Layouts& layouts);

}  // namespace tc::ir
