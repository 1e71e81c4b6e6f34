#pragma once

#include <optional>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/rewrite/parts.h"
#include "tc/gpu/strategy/contraction/contraction.h"
#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// Parts of a reduction that is a contraction: as many as give the least estimated time, with the launch that adds them
/// up. Nothing where it is best left whole, or the options ask for another kernel.
std::optional<Parts> contraction_parts(const ir::Program& program, const ir::Statement& statement,
                                       const Reduction& reduction, const options::MappingOptions& options,
                                       const Device& device);

/// Microseconds of a statement that is the contraction, in those parts or whole; if these are more than `most_us`, any
/// number that is more.
double least_us(const ir::Program& program, const ir::Statement& statement, const Contraction& contraction,
                const options::MappingOptions& options, const Device& device, double most_us = kNoLimit);

}  // namespace tc::gpu
