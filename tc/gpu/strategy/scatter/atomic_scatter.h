#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/mapping/limits.h"
#include "tc/ir/reads.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// One update whose instances meet at elements that no loop tells apart, because data or a quotient choose them:
///     H(I(i)) += 1
/// All instances are dealt out to the threads of all blocks, and each updates its element atomically. Where the tensor
/// is small against the instances of a block, the block's threads update a copy of their own in shared memory, which
/// begins with the operator's identity and is combined with the tensor at the end.
struct ScatterPlan {
  const poly::Statement* statement = nullptr;
  std::vector<ir::Range> ranges;  ///< per index
  int64_t threads = 1;
  int64_t blocks = 1;
  bool in_shared = false;

  int64_t instances() const;
};

/// Whether some updates of a part that data scatter would wait for each other longer than a launch of their own takes.
bool waits_for_updates(const poly::Scop& part);

/// Nothing for more than one statement, for an operator or type without atomics (+ min max on integers and floats of 32
/// and 64 bits), where other dependences order the instances, or where threads find enough to do without; and, if the
/// options are strict, for sums of floats and for min and max of them: they are what depends on the order. `reasons`
/// tells which of the options it does not follow: it takes map_to_threads in x, use_shared_memory, max_shared_memory.
std::optional<ScatterPlan> plan_scatter(const poly::Scop& part, const options::MappingOptions& options,
                                        const Device& device, Reasons& reasons);

/// The options that ask for a plan.
options::MappingOptions options_of(const ScatterPlan& plan);

/// The kernel of a plan. With floats, runs differ in their last bits.
tile::Kernel atomic_scatter(const poly::Scop& part, const ScatterPlan& plan, const std::string& name);

}  // namespace tc::gpu
