#pragma once

#include <string>

#include "tc/cuda/launch_plan.h"
#include "tc/tile/program.h"

namespace tc::cuda {

struct PrintOptions {
  /// Tensors that no statement of a launch writes are read through the read-only data cache. Without it no pointer is
  /// __restrict__: one that is tells the compiler enough to do so by itself.
  bool readonly_cache = true;
};

/// CUDA C++ for all kernels of a program, in one translation unit that includes nothing. The same program gives the
/// same text. Its pointers are __restrict__, but for those through which threads of a block, or kernels, pass values
/// on: who launches makes sure that no written tensor overlaps another argument. From sm_90 on a kernel may start while
/// those before it in the program still run, and waits for them ("Programmatic Dependent Launch" in the CUDA
/// programming guide, griddepcontrol in PTX's).
std::string print(const tile::Program& program, const PrintOptions& options = {});

/// How the printed kernels are launched.
LaunchPlan launch_plan(const tile::Program& program);

}  // namespace tc::cuda
