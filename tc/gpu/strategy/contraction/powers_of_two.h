#pragma once

#include <Halide.h>

#include <set>
#include <string>

namespace tc::gpu {

/// How with_powers_of_two() writes the exponent of a difference.
enum class Differences {
  kKept,
  kDealtOut,  ///< factors are multiplied with both numbers, so one instruction does for each number less the other
};

/// A value with float32 powers exp(x) as powers of two, which take half as many instructions on a GPU, if x reads one
/// of some tensors:
///     exp((S(m,n) - top(m)) * 0.125)   ==>   exp2((S(m,n) - top(m)) * 0.18033688)
///                                            exp2(S(m,n) * 0.18033688 - top(m) * 0.18033688)    dealt out
/// The exponent is rounded once more, or the multiple of one number by itself. So x should be near to 0 where the power
/// counts, as behind a maximum. Factors above 1 are not dealt out: products might leave float32.
Halide::Expr with_powers_of_two(const Halide::Expr& value, const std::set<std::string>& tensors,
                                Differences differences);

/// Whether a value has finite floats in its text, as masks do, so large that their rounded multiples are no exponents.
bool has_large_number(const Halide::Expr& value);

}  // namespace tc::gpu
