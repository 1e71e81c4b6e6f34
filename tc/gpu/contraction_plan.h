#pragma once

#include <optional>
#include <vector>

#include "tc/gpu/contraction.h"
#include "tc/gpu/kernel.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// Loops over at most so many sums are laid out in the text of a contraction.
inline constexpr int64_t kMostUnrolled = 1024;

/// How a parallel axis is cut: a block has `tile` of its values; of these a thread has `registers`, `group` of them
/// next to each other:  value = (high * threads + thread) * group + low,  with high * group + low its register.
struct AxisPlan {
  int64_t tile = 1;
  int64_t registers = 1;
  int64_t group = 1;  ///< divides registers
  int64_t blocks = 1;
  int64_t threads() const { return tile / registers; }
};

/// The part of an operand that a block holds in shared memory for a step.
struct OperandPlan {
  std::vector<int64_t> box;  ///< extents, of the last dimension a multiple of `vector`
  size_t innermost = 0;      ///< the dimension whose elements are neighbours in shared memory
  int64_t pitch = 1;         ///< elements from one row of that dimension to the next
  int64_t vector = 1;        ///< elements that one copy brings
  int group_axis = -1;       ///< the parallel axis along which a thread reads groups as vectors
  bool along_main = false;   ///< a thread reads vectors along the main reduction axis
  std::vector<size_t> axes;  ///< the parallel axes that it depends on
};

/// Blocks share the points; each goes over the reduction in steps. For a step it copies boxes of the operands to shared
/// memory, in `stages` buffers by turns, and each thread adds to the points in its registers. `groups` of threads
/// share the points and split each step between them; at the end their sums are added.
struct ContractionPlan {
  std::vector<AxisPlan> parallel;
  std::vector<size_t> order;   ///< parallel axes, that of the fastest threads and blocks first
  size_t main = 0;             ///< the reduction axis that steps go along
  std::vector<int64_t> chunk;  ///< of each reduction axis in a step: of others than main all or 1
  int64_t vector = 1;          ///< values of main that are read at once
  int64_t groups = 1;
  int64_t stages = 1;
  bool asynchronous = false;  ///< copies go on while the threads compute
  std::vector<OperandPlan> operands;
  double cycles = 0;  ///< estimated

  int64_t points_threads() const;  ///< threads of one group
  int64_t threads() const { return points_threads() * groups; }
  int64_t registers() const;                            ///< points of a thread
  int64_t steps(const Contraction& contraction) const;  ///< full ones
  int64_t shared_bytes(const Contraction& contraction) const;
};

/// The plan of least estimated time; none if no plan keeps the device's limits.
std::optional<ContractionPlan> plan_contraction(const Contraction& contraction, const options::MappingOptions& options,
                                                const Device& device);

}  // namespace tc::gpu
