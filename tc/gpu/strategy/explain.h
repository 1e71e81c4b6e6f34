#pragma once

#include <string>
#include <vector>

#include "tc/gpu/strategy/map.h"
#include "tc/poly/schedule.h"

/// What map() decides and its kernels do not show.
namespace tc::gpu {

/// Why statements that follow or depend on each other are in launches of their own, in map()'s result for the same
/// arguments. Pairs that one launch runs after all may be among them. Errors: the context's budget.
Result<std::vector<poly::Apart>> why_apart(const poly::Scop& scop, const options::MappingOptions& options,
                                           const Device& device);

/// Where a kernel holds the elements of a tensor that go from one of its statements to another.
tile::Memory held_between(const Kernel& kernel, const std::string& tensor, const std::string& from,
                          const std::string& to);

}  // namespace tc::gpu
