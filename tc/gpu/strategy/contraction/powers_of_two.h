#pragma once

#include <Halide.h>

#include <set>
#include <string>

namespace tc::gpu {

/// A value with float32 powers exp(x) as powers of two, which take half as many instructions on a GPU, if x reads one
/// of some tensors:
///     exp((S(m,n) - top(m)) * 0.125)   ==>   exp2((S(m,n) - top(m)) * 0.18033688)
/// The exponent is rounded once more. So x should be near to 0 where the power counts, as behind a maximum.
Halide::Expr with_powers_of_two(const Halide::Expr& value, const std::set<std::string>& tensors);

}  // namespace tc::gpu
