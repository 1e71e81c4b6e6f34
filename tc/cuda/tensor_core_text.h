#pragma once

#include <string>
#include <string_view>

#include "tc/support/scalar_type.h"

/// The helpers of kernels that use tensor cores.
namespace tc::cuda {

/// Two floats of 16 bits as a register of 32.
std::string_view pair_text();
/// Loads of matrices by a warp (PTX ISA, ldmatrix).
std::string_view matrix_load_text();
/// Stores of matrices by a warp (PTX ISA, stmatrix).
std::string_view matrix_store_text();
/// Products of tiles of an operand type: a function for each atom (tc/tile/atoms.h), made from its row of the table.
const std::string& matmul_text(ScalarType operand);

}  // namespace tc::cuda
