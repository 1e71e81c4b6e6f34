#pragma once

#include <Halide.h>

#include <optional>
#include <set>
#include <string>

namespace tc::gpu {

/// What one tensor's element is more than another's.
struct Difference {
  std::string from, less;
};

/// A value with float32 powers exp(x) as powers of two, which take half as many instructions on a GPU, if x reads one
/// of some tensors:
///     exp((S(m,n) - top(m)) * 0.125)   ==>   exp2((S(m,n) - top(m)) * 0.18033688)
/// The exponent is rounded once more. So x should be near to 0 where the power counts, as behind a maximum. Factors up
/// to 2 of the difference `dealt_out` are multiplied with both elements:
///     exp2(fma(S(m,n), 0.18033688, top(m) * -0.18033688))
/// The multiple of the second one is rounded by itself. So that element should not be large.
Halide::Expr with_powers_of_two(const Halide::Expr& value, const std::set<std::string>& tensors,
                                const std::optional<Difference>& dealt_out = {});

/// Whether a value reads the two elements of a difference nowhere but there.
bool reads_but_difference(const Halide::Expr& value, const Difference& difference);

}  // namespace tc::gpu
