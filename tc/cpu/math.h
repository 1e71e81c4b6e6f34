#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tc::cpu {

/// How far a function's result may be from the true one, in units in the last place of the result's type, over its
/// whole domain. A result of 0.5 is the nearest number. Functions that are not here are exact or rounded once.
struct MathAccuracy {
  std::string_view name;
  double ulp_f32;
  double ulp_f64;
};

/// Sorted by name. One entry for each function that is computed by code of ours or by the C library; the test
/// MathAccuracy measures every one.
std::span<const MathAccuracy> math_accuracies();

bool is_math_function(std::string_view name);

/// The runtime's symbol for a function's scalar form: "tc_f32_erf". Takes and gives C types.
std::string math_symbol(std::string_view name, bool is_double);

/// The address of such a symbol, or null.
void* math_address(std::string_view symbol);

}  // namespace tc::cpu
