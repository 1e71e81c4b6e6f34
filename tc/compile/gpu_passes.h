#pragma once

#include "tc/compile/pipeline.h"

/// The passes that only a compilation for a GPU has: from a specialised Program to a kernel in a device.
namespace tc::compile {

/// In order; "scop" stands between the first and the others.
Pass gpu_prepare_pass();
Pass gpu_schedule_pass();
Pass map_pass();
Pass tile_pass();
Pass cuda_pass();
Pass cubin_pass();
Pass gpu_load_pass();

}  // namespace tc::compile
