#pragma once

#include <string>

#include "tc/cuda/launch_plan.h"
#include "tc/tile/program.h"

namespace tc::cuda {

/// CUDA C++ for all kernels of a program, in one translation unit that includes nothing. The same program gives the
/// same text. What it promises to NVIDIA's compiler about memory and other kernels is what the program says
/// (tile/promise.h): only restricted tensors have __restrict__ pointers, through which it infers read-only loads; other
/// read_only tensors are loaded by __ldg, which it merges with no ordinary load. Beside restricted tensors it promises
/// itself more of the others: these get addresses whose origin it does not know, behind a wait and in kernels with
/// barriers. Whoever launches makes sure that no written tensor overlaps another argument. From sm_90 on a kernel that
/// waits for those before it may start while they still run ("Programmatic Dependent Launch" in the CUDA programming
/// guide, griddepcontrol in PTX's). A kernel takes its tensors, scalars and tensor maps, in this order.
std::string print(const tile::Program& program);

/// How the printed kernels are launched.
LaunchPlan launch_plan(const tile::Program& program);

}  // namespace tc::cuda
