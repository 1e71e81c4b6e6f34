#pragma once

#include <optional>

#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/ir/reads.h"

namespace tc::gpu {

/// Whether other elements of the operand are read at other values of a parallel axis.
bool depends(const Operand& operand, size_t axis);

/// What memory has of an operand: of a computed one its source, if it has one.
const Operand& in_memory(const Contraction& contraction, size_t operand);

/// The elements of a dimension that a contraction reads, where it is not data that choose them.
ir::Range range_read(const Contraction& contraction, const Operand& operand, size_t dimension);

/// Bytes of an operand's tensor that a contraction may read: from the first element of each dimension to the last.
double bytes_read(const Contraction& contraction, const Operand& operand);

/// Whether an operand counts along an axis of the reduction by a dimension of its own, so that what lies behind the
/// axis can be set to zero.
bool has_axis_alone(const Operand& operand, size_t axis);

/// Whether neighbours on a parallel axis read neighbours of a dimension, and nothing else moves within a block's box.
bool steps_along(const Operand& operand, size_t dimension, size_t axis, const ContractionPlan& plan);

/// The operand, if there is one, whose `dimension` becomes the innermost in shared memory, though its tensor has rows
/// along the reduction.
struct Turned {
  std::optional<size_t> operand = {};
  size_t dimension = 0;
  std::optional<size_t> of(size_t number) const { return operand == number ? std::optional(dimension) : std::nullopt; }
};
Turned turned(const Contraction& contraction, const ContractionPlan& plan);

/// What a block holds of an operand, but for the strides. After the plan's tiles, registers, groups and steps are
/// known.
OperandPlan operand_plan(const Contraction& contraction, size_t operand, Turned turned, const ContractionPlan& plan);

/// The same of an operand that another product has left in shared memory, its reduction along rows.
OperandPlan kept_operand(const Contraction& contraction, size_t operand, const ContractionPlan& plan);

/// Of a transposition: the axes that count through the dimensions of an operand behind that of the results' last axis,
/// the fastest first, if each of these dimensions has one for itself and is read whole; else none. Elements that
/// differ in them are a run of memory.
std::vector<size_t> run_across(const Contraction& contraction, const Operand& operand);

}  // namespace tc::gpu
