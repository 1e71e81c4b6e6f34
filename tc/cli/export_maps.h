#pragma once

#include <functional>
#include <string>

#include "tc/cuda/launch_plan.h"

/// C text for kernels that take tensor maps or run in clusters.
namespace tc::cli {

/// Declarations of what such kernels need of the driver; empty for others.
std::string extra_driver_text(const cuda::LaunchPlan& plan);

/// Statements that encode the plan's maps; empty where it has none. `address_of` is the text of the address of a tensor
/// or a buffer of the workspace.
std::string encode_text(const cuda::LaunchPlan& plan,
                        const std::function<std::string(const cuda::KernelArgument&)>& address_of);
/// What a kernel takes as an argument that is map number `index`.
std::string map_text(size_t index);

/// The launch of kernel number k in its cluster, which sets `status`.
std::string cluster_launch_text(size_t k, const cuda::KernelLaunch& launch);

}  // namespace tc::cli
