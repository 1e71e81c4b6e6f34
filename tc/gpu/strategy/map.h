#pragma once

#include <string>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/cost/estimate.h"
#include "tc/gpu/mapping/kernel.h"
#include "tc/gpu/strategy/pieces.h"
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
  std::vector<Estimate> estimates;  ///< per kernel
  std::vector<Edge> edges;
  tile::Program program;
};

/// Cuts pieces into launches, and makes each of them by the first recipe that fits it: a contraction (contraction/),
/// threads with elements of their own (elements/), rows that threads share (rows/), atomic updates (scatter/), or the
/// classic strategy (classic/), which serves every program: maps to blocks and threads, places barriers.
/// A kernel has the options of its address (rewrite/kernel_options.h), then those of the def.
/// Options that say how loops are cut or dealt out leave the recipes that do exactly so; what none does is mapped by
/// the last, which follows tiles, threads and blocks of any number.
///
/// The parts of the schedule that share no loop become launches of their own, in order, where they have blocks; parts
/// that one block runs join the launch before them, if that is one block's too. Recipes make code, since they are
/// compared by its estimates. `pieces` are those of schedule_pieces() for the same arguments. Errors: options that no
/// kernel follows; addresses that no kernel has; the context's budget.
Result<Mapping> map_pieces(const Pieces& pieces, const poly::Scop& scop, const options::MappingOptions& options,
                           const Device& device = {});

/// The mapping with its program as it is printed. Temporaries that are not held in registers become workspace, no
/// vector goes from or to tensors at any address (lower/element_moves.h), divisors are shared, and what the text
/// promises is proved. Errors: the context's budget.
Result<Mapping> lower(Mapping mapping, const poly::Scop& scop, const options::MappingOptions& options,
                      const Device& device);

/// schedule_pieces(), map_pieces() and lower(). `scop` is that of from_ir(). Errors: theirs.
Result<Mapping> map(const poly::Scop& scop, const options::MappingOptions& options, const Device& device = {});

/// What later launches read of earlier ones.
std::vector<Edge> edges_between(const poly::Scop& scop, const std::vector<Kernel>& kernels);

/// Temporaries that some launch keeps in global memory.
std::vector<tile::Tensor> workspace_of(const poly::Scop& scop, const std::vector<tile::Kernel>& kernels);

/// Whether options name kernels of this mapping one by one: it has several with an address.
bool has_addresses(const Mapping& mapping);

/// What all launches of a mapping are expected to take, in microseconds.
double estimated_us(const Mapping& mapping);

/// The options that ask for one kernel: of a def with several, those of its address and those of the def that kernels
/// share.
options::MappingOptions options_for(const Mapping& mapping, size_t kernel);

/// For each kernel what it runs, the estimate, and the options that ask for it; a line for each edge.
///     kernel mlp_0: grid (4, 1, 1), block (256, 1, 1), 2 barriers, runs S0, S1
///       estimate: 2.12 us, limited by instructions; 0.59 MB of memory, 16.8 MFLOP, 0.03 waves, 12 % of the threads
///       options: tile: [32, 32, 16] map_to_threads: [16, 16, 1] register_tile: [2, 2] copy_stages: 3
/// Of a def with several kernels the options are "kernel { writes: ... }".
std::string report(const Mapping& mapping);

}  // namespace tc::gpu
