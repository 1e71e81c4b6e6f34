#pragma once

#include <Halide.h>

#include <optional>
#include <vector>

namespace tc::gpu {

/// Two of three factors of float16 as numbers that TF32 holds. Their product has 22 bits at most, of which TF32 holds
/// 11:
///     x * y * z   ==>   leading * z + rest * finite(z)
/// The sum of both products is that of the text in float32: leading + rest is x * y, exactly. `rest` is 0 where x * y
/// is not finite, and finite(z) is 0 where z is not. So infinities and NaNs come from the first product alone.
struct Tf32Parts {
  Halide::Expr leading, rest;  ///< of x * y; both are tf32(...)
  Halide::Expr z, finite;      ///< of z
};

/// The ways to take two of three factors together, in float32; none where one is not a float16 by the text or an
/// integer of 8 bits.
std::vector<Tf32Parts> tf32_parts(const std::vector<Halide::Expr>& factors);

}  // namespace tc::gpu
