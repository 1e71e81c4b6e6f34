#pragma once

#include "tc/ir/program.h"

namespace tc::ir {

/// Whether a statement adds up products of two factors that are elements of tensors of 8-bit floats: read by itself, or
/// through temporaries and choices that only move them. T5 lets sums of such products keep fewer bits.
bool sums_float8_products(const Program& program, const Statement& statement);

}  // namespace tc::ir
