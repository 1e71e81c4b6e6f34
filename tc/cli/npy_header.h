#pragma once

#include <string>
#include <string_view>

#include "tc/api/tensor.h"
#include "tc/support/error.h"

namespace tc::cli {

/// What a .npy header says.
struct NpyHeader {
  api::TensorSpec spec;     ///< strides filled in if in Fortran order
  bool big_endian = false;  ///< bytes must be swapped
};

/// Reads the dictionary of a .npy header: a Python literal such as
///     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
/// `path` is for messages.
Result<NpyHeader> parse_npy_header(std::string_view text, const std::string& path);

}  // namespace tc::cli
