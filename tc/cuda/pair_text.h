#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "tc/cuda/expr_text.h"

namespace tc::cuda {

/// The statement that computes two neighbouring float16 of a register tensor at once, if a loop does nothing else, or
/// rounds two float32 to 16 bits:
///     for (int i = 0; i < 2; ++i) { D[i] = half(W[i]) * S }     ==>     split(mul_pair(pair_from(&W[0]), both_of(S)),
///     ...)
/// The packed instructions round as those of single numbers do. Nothing where none of them would do anything. Tensors
/// `of_pairs` lie at multiples of 4 bytes and are read by registers: two of their elements may be written as one.
std::optional<std::string> pair_statement(const tile::For& loop, ExprText& exprs,
                                          const std::set<std::string>& of_pairs);

/// What such statements call.
std::string_view float16_pair_text();
std::string_view rounded_float16_text();
std::string_view rounded_bfloat16_text();

}  // namespace tc::cuda
