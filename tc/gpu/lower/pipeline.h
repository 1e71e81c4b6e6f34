#pragma once

#include <vector>

#include "tc/tile/program.h"

namespace tc::gpu {

/// A loop whose steps read what copies bring to buffers in shared memory.
struct Steps {
  tile::For loop;
  std::vector<tile::NodePtr> copies;  ///< of the step that the loop's variable counts
  std::vector<tile::Tensor> buffers;  ///< each with a first dimension of `stages` slots, which steps take in turn
  int64_t stages = 2;
};

/// Copies run stages - 1 steps ahead of those that read them (PTX ISA, cp.async: groups):
///     fetch(0); commit group; ...; fetch(stages - 2); commit group
///     for step
///       wait group stages - 2
///       barrier
///       fetch(step + stages - 1); commit group
///       body
/// A slot is filled again behind the barrier that follows its last readers. `again`: a loop around this one has filled
/// the slots before.
tile::NodePtr pipelined(const Steps& steps, bool again);

}  // namespace tc::gpu
