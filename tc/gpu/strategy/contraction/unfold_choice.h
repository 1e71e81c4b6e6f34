#pragma once

#include <optional>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/rewrite/unfold.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// The unfolding with which a product by tensor cores takes the least time, its copies' included, if that is less than
/// it takes otherwise, in other orders of its operands too. For products all of whose reduction indices have few
/// values, as convolutions of images with few channels: tensor cores take no rows of three elements.
std::optional<Unfolding> choose_unfolding(const ir::Program& program, const ir::Statement& statement,
                                          const options::MappingOptions& options, const Device& device);

}  // namespace tc::gpu
