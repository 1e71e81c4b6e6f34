#pragma once

#include <Halide.h>

#include <span>

#include "tc/cpu/object.h"

namespace tc::cpu {

/// The function of the runtime that copies memory, under a name that no kernel has: int32(uint64 to, uint64 from,
/// uint64 bytes).
inline constexpr char kCopyFunction[] = "tc.copy";

/// What the code generator makes of calls with these names: a store of a vector that is aligned to its size and goes
/// past the cache, int32(uint64 to, vector); and what has to follow such stores before another thread may see them,
/// int32().
inline constexpr char kStreamFunction[] = "tc.stream";
inline constexpr char kStreamFenceFunction[] = "tc.stream_fence";

/// Loops that only move elements, done as machines do that best:
///   - a square tile that is read along one loop and written along the other: whole vectors are loaded, transposed in
///     registers, and stored; past the cache, by kStreamFunction, if they are whole lines of an argument too large for
///     it;
///   - one run of memory to another: kCopyFunction.
///
/// `arguments` are those of the kernel. Before loops are unrolled and vectorized; names of loops are unique.
Halide::Internal::Stmt rewrite_moves(const Halide::Internal::Stmt& stmt, std::span<const KernelArgument> arguments);

}  // namespace tc::cpu
