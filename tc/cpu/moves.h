#pragma once

#include <Halide.h>

namespace tc::cpu {

/// The function of the runtime that copies memory, under a name that no kernel has: int32(uint64 to, uint64 from,
/// uint64 bytes).
inline constexpr char kCopyFunction[] = "tc.copy";

/// Loops that only move elements, done as machines do that best:
///   - a square tile that is read along one loop and written along the other: whole vectors are loaded, transposed in
///     registers, and stored;
///   - one run of memory to another: kCopyFunction.
///
/// Before loops are unrolled and vectorized; names of loops are unique.
Halide::Internal::Stmt rewrite_moves(const Halide::Internal::Stmt& stmt);

}  // namespace tc::cpu
