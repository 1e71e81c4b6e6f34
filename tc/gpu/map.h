#pragma once

#include <string>
#include <vector>

#include "tc/gpu/kernel.h"
#include "tc/options/mapping.h"
#include "tc/support/result.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// A value that goes from one launch to a later one through global memory.
struct Edge {
  std::string tensor;
  int from = 0;  ///< number of the launch
  int to = 0;
  bool operator==(const Edge&) const = default;
};

/// A def on a GPU, and what was decided on the way.
struct Mapping {
  std::vector<Kernel> kernels;
  std::vector<Edge> edges;
  tile::Program program;
};

/// Schedules, cuts into kernels, and makes each of them by the first recipe that fits it: a contraction
/// (contraction_kernel.h), threads with elements of their own (elements.h), rows that threads share (rows.h), or the
/// classic strategy (paper 2018, section 5), which serves every program: maps to blocks and threads, places barriers.
/// Options that say how loops are cut or dealt out leave only the last.
///
/// The parts of the schedule that share no loop become launches of their own, in order, where they have blocks; parts
/// that one block runs join the launch before them, if that is one block's too. Temporaries that are not held in
/// registers are workspace. Tensors are dense and row-major.
/// `scop` is that of from_ir(). Errors: options out of the device's limits; the context's budget.
Result<Mapping> map(const poly::Scop& scop, const options::MappingOptions& options, const Device& device = {});

/// "kernel mlp_0: grid (4, 1, 1), block (32, 8, 1), 2 barriers, runs S0, S1", and a line for each edge.
std::string report(const Mapping& mapping);

}  // namespace tc::gpu
