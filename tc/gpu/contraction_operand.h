#pragma once

#include <optional>

#include "tc/gpu/contraction_plan.h"

namespace tc::gpu {

/// Whether other elements of the operand are read at other values of a parallel axis.
bool depends(const Operand& operand, size_t axis);

/// The dimension of an operand that becomes the innermost in shared memory, though the tensor has rows along the
/// reduction.
std::optional<size_t> turned(const Contraction& contraction, const Operand& operand, const ContractionPlan& plan);

/// What a block holds of an operand, but for the strides. After the plan's tiles, registers, groups and steps are
/// known.
OperandPlan operand_plan(const Contraction& contraction, const Operand& operand, const ContractionPlan& plan);

}  // namespace tc::gpu
