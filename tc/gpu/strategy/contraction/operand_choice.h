#pragma once

#include <optional>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/rewrite/operand_order.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// Whether a statement sums products of two floats of 16 or 8 bits, or of TF32, as far as its reads tell.
/// `may_cut`: those of float32 may become such.
bool may_be_multiplied(const ir::Program& program, const ir::Statement& statement, bool may_cut);

/// The orders with which the operands of a product come to boxes that warpgroups multiply (warpgroups.h), with the
/// copies' own time in less time than the product takes as it is; nothing if there are none, or if its boxes lie in
/// whole lines as it is. `copy_operands` set to true asks for them whatever the product takes as it is.
std::vector<OperandOrder> choose_orders(const ir::Program& program, const ir::Statement& statement,
                                        const std::vector<OperandOrder>& copies, const options::MappingOptions& options,
                                        const Device& device);

/// The estimated microseconds of a product in the best orders of its operands, copies included, or as it is; nothing if
/// it is no contraction.
std::optional<double> ordered_us(const ir::Program& program, const ir::Statement& statement,
                                 const options::MappingOptions& options, const Device& device);

}  // namespace tc::gpu
