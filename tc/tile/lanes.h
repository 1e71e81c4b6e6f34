#pragma once

#include <cstdint>

#include "tc/tile/bytecode.h"

namespace tc::tile {

/// Does what an instruction of arithmetic says, in all lanes.
void execute(const Instruction& instruction, Lanes* registers);

/// float16 and bfloat16 to and from their bits.
float float_from_bits(ScalarType type, uint16_t bits);
uint16_t bits_from_float(ScalarType type, float value);

}  // namespace tc::tile
