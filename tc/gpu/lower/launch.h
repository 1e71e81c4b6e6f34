#pragma once

#include "tc/gpu/mapping/kernel.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// One launch: what it runs, and its code.
struct Launch {
  Kernel kernel;
  tile::Kernel code;
  bool backwards = false;  ///< see ElementsPlan
};

}  // namespace tc::gpu
