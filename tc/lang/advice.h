#pragma once

#include <cstddef>
#include <string_view>

/// What to write here instead of what other languages have, as the notes of errors say it.
namespace tc::lang {

/// For a word where the grammar does not expect it: `and`, `for`, `bf16`; empty if there is no advice.
std::string_view advice_for_word(std::string_view word);

/// For a call of what is neither a tensor nor an intrinsic: `sum`, `maximum`, `len`; empty if there is no advice.
std::string_view advice_for_function(std::string_view name);

/// For a call of an intrinsic with a number of arguments that it does not take: `max(x(i))`; empty if there is no
/// advice.
std::string_view advice_for_intrinsic(std::string_view name, size_t arguments);

/// For what stands after the dot of `A.shape` or `torch.exp`; empty if there is no advice.
std::string_view advice_for_member(std::string_view object, std::string_view member);

/// How a range is written, and which types there are.
inline constexpr std::string_view kRangeAdvice = "a range is written 'k in low:high', as in 'where k in 0:K'";
inline constexpr std::string_view kDefAdvice = "a def is written 'def f(float(N) x) -> (y) { y(i) = x(i) }'";
inline constexpr std::string_view kCastAdvice = "a cast is written 'float32(x)'";
inline constexpr std::string_view kTypesAdvice =
    "the types are bool, int8 to int64, uint8 to uint64, float8_e4m3, float8_e5m2, float16, bfloat16, float32 and "
    "float64; a parameter is written 'float32(M,K) A'";

}  // namespace tc::lang
