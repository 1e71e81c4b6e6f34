#pragma once

#include <Halide.h>

#include <span>

#include "tc/cpu/object.h"

namespace tc::cpu {

/// Hides values from Halide's passes: they treat floats as reals and int32 as integers that never overflow, so
/// the simplifier turns x - x into 0, x * 0.0f into 0 and !(a < b) into b <= a.
///
///     out[i] = max(x[i] * 0.0f, y)   ==>   out[i] = tc.max(tc.mul(x[i], 0.0f), y)
///
/// Every operation on floats, and every one on int32 and int64 values (not on subscripts, extents and conditions
/// over loop variables, which the passes must understand), becomes a PureExtern call that only our code
/// generator reads. A condition of a statement that reads memory gets a name. An extremum that reads memory becomes a
/// call. Otherwise the passes would assume that memory never changes. float16 and bfloat16 are uint16 in memory and
/// float32 in expressions. They are rounded where the source casts to them (with `strict`, after each operation). 8-bit
/// floats are uint8 wherever they are not cast.
///
/// First of all passes, before anything simplifies.
Halide::Internal::Stmt make_values_opaque(const Halide::Internal::Stmt& stmt, std::span<const KernelArgument> arguments,
                                          bool strict);

/// The arguments as the code generator passes them (address, or a type that C can pass); where the body sees
/// another type, make_values_opaque has bound its name to the converted value.
std::vector<Halide::Internal::LoweredArgument> passed_arguments(std::span<const KernelArgument> arguments);

}  // namespace tc::cpu
