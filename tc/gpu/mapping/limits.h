#pragma once

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/mapping/kernel.h"
#include "tc/options/mapping.h"
#include "tc/support/result.h"

namespace tc::gpu {

/// Holds when the options are valid, their threads and blocks within the device's limits, and none asks for what the
/// mapping does not do; the error names each value that is not.
Result<void> check_limits(const options::MappingOptions& options, const Device& device);

/// Whether parts of a def may be mapped by the recipes for elements and rows. Tiles alone, numbers of blocks, and what
/// else only the classic mapping follows, leave that one; `register_tile`, `tensor_cores` and `chain` ask for a recipe.
bool takes_recipes(const options::MappingOptions& options);

/// The same for the recipe for contractions, which follows tiles.
bool takes_contractions(const options::MappingOptions& options);

/// The options with what a recipe chose, ready to be given: they ask for the same kernel.
options::MappingOptions following(options::MappingOptions options, const options::MappingOptions& chosen);

/// Why a part is not mapped by a recipe.
struct Reasons {
  std::vector<std::string> options;  ///< what the options say and a recipe does not do
  std::vector<std::string> part;     ///< what of the part it cannot do, or not well
};

/// Holds when `register_tile`, which only recipes follow, `tensor_cores`, `cluster` and `chain` are followed by some
/// kernel, and `private_depth` is deep enough in one; the error gives the first reason why not.
Result<void> check_followed(const options::MappingOptions& options, const std::vector<Kernel>& kernels,
                            const Reasons& reasons);

/// Holds when a kernel follows the options that are for it alone; the error names the first that it does not. `reason`
/// says why an earlier recipe has not made it; it may be empty.
Result<void> check_followed(const options::KernelOptions& options, const Kernel& kernel, const std::string& reason);

}  // namespace tc::gpu
