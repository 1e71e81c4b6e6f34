#pragma once

#include "tc/gpu/mapping/kernel.h"

namespace tc::gpu {

/// { S[i] -> [number along x, y, z] } of the blocks or threads that run the instances below a node; 0 along an axis
/// that nothing is dealt out on.
isl::multi_union_pw_aff thread_index_map(const Kernel& kernel, const isl::schedule_node& below, Dealt::To to);

}  // namespace tc::gpu
