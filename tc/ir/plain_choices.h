#pragma once

#include "tc/ir/program.h"

namespace tc::ir {

/// One spelling of choices between an element and a constant, whatever the text says:
///     y < 0 || y >= H ? 0 : I(y)                      ==>   y >= 0 && y < H ? I(y) : 0
///     y >= 0 ? (y < H ? I(y) : 0) : 0                 ==>   y >= 0 && y < H ? I(y) : 0
///     float16(y >= 0 ? float32(I(y)) : float32(0))    ==>   y >= 0 ? I(y) : 0
///     y <= H ? I(y) : 0      y in 0:H                 ==>   I(y)
/// So guarded_read() finds the zeros around an operand. Values stay the same, bit for bit. What is read does, too, but
/// for what the ranges of indices never choose. Of a specialised Program, first of a backend's passes.
Program plain_choices(Program program);

}  // namespace tc::ir
