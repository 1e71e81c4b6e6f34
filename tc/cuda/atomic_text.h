#pragma once

#include <string_view>

namespace tc::cuda {

/// The helpers of atomic updates (tile::Atomic): of integers of 32 and 64 bits; of float and double; of 2 or 4 floats
/// that are neighbours; by compare and swap, for what has no instruction, and what is built on that.
std::string_view atomic_integer_text();
std::string_view atomic_float_text();
std::string_view atomic_vector_text();
std::string_view atomic_update_text();
std::string_view atomic_narrow_text();
std::string_view atomic_float16_text();
std::string_view atomic_bfloat16_text();

}  // namespace tc::cuda
