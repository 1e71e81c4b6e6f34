#pragma once

#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/strategy/contraction/contraction.h"
#include "tc/options/mapping.h"
#include "tc/support/result.h"
#include "tc/tile/atoms.h"

namespace tc::gpu {

/// How a parallel axis is cut: a block has `tile` of its values; of these a thread has `registers`, `group` of them
/// next to each other:  value = (high * threads + thread) * group + low,  with high * group + low its register.
struct AxisPlan {
  int64_t tile = 1;
  int64_t registers = 1;
  int64_t group = 1;  ///< divides registers
  int64_t blocks = 1;
  int64_t cluster = 1;  ///< neighbouring blocks that share copies; divides blocks, of which the last may have no values
  int64_t threads() const { return tile / registers; }
};

/// How the threads of a warp get an operand's part of an atom from shared memory.
enum class FragmentRead {
  kElements,  ///< one by one
  kAlong,     ///< as matrices whose rows run along the main reduction axis
  kAcross,    ///< as matrices, transposed, whose rows run along the fastest axis that the other operand lacks
};

/// The part of an operand that a block holds in shared memory for a step.
struct OperandPlan {
  std::vector<int64_t> box;      ///< extents, of the last dimension a multiple of `vector`
  size_t innermost = 0;          ///< the dimension whose elements are neighbours in shared memory
  int64_t pitch = 1;             ///< least elements from one row of that dimension to the next
  size_t merged = 0;             ///< from this dimension on the box is one run of the tensor; the last: of a row
  std::vector<int64_t> strides;  ///< per dimension: elements between neighbours in shared memory
  size_t dealt = 0;              ///< a dimension of whose elements those are neighbours there that are `dealt_by` apart
  int64_t dealt_by = 1;          ///< 1: none; divides its extent
  int64_t dealt_stride = 0;      ///< from one of these rows to the next
  int64_t stage = 1;             ///< elements from one buffer's box to the next one's
  int64_t last_stage = 1;        ///< of the box itself, from its first to its last
  int64_t read_vector = 1;       ///< elements that a thread reads at once
  double conflicts = 1;          ///< times that a warp's read takes, of what it would without bank conflicts
  int64_t vector = 1;            ///< elements that one copy brings
  int64_t lead = 0;              ///< elements at the begin of rows, so that copies are aligned, which nobody reads
  int group_axis = -1;           ///< the parallel axis along which a thread reads groups as vectors
  bool along_main = false;       ///< a thread reads vectors along the main reduction axis
  FragmentRead fragment = FragmentRead::kElements;  ///< by tensor cores
  bool kept = false;                                ///< in a chain: shared memory has it, nothing is copied
  std::vector<size_t> axes;                         ///< the parallel axes that it depends on
};

/// What multiplies tiles of two operands: a's rows and b's columns, fastest axis first, which the other one lacks.
struct TensorCores {
  const tile::MatMulAtom* atom = nullptr;  ///< null: there is none, for products by warpgroups alone
  size_t a = 0, b = 1;                     ///< operands
  std::vector<size_t> rows, columns;
  int64_t warpgroups = 0;  ///< that multiply boxes where these lie; 0: warps multiply fragments of their own
  int64_t row_atoms = 1;   ///< of such a warpgroup: instructions beside each other, of 64 rows each
  bool in_parts = false;   ///< the products of a step start a sum of their own, which is then added in float32 (T5)
  std::array<bool, 2> rounds = {};  ///< per operand: its elements are rounded to TF32 on their way to registers
  bool computes_a = false;          ///< threads of warpgroups compute a, and multiply what registers hold
  bool has_many_columns = false;    ///< the operand with the columns is the one that mostly has the rows, and is long
  bool pairs_rows = false;          ///< then: a thread's two rows are neighbours, along which results are stored
  bool cuts = false;                ///< the instruction drops low bits of float32 elements that mean something
};

/// Blocks share the points; each goes over the reduction in steps. For a step it copies boxes of the operands to shared
/// memory, in `stages` buffers by turns, and each thread adds to the points in its registers. `groups` of threads
/// share the points and split each step between them; at the end their sums are added.
struct ContractionPlan {
  std::vector<AxisPlan> parallel;
  std::vector<size_t> order;    ///< parallel axes, that of the fastest threads and blocks first
  size_t main = 0;              ///< the reduction axis that steps go along
  std::vector<int64_t> chunk;   ///< of each reduction axis in a step: of others than main all or 1
  int64_t columns_threads = 1;  ///< of a group, along the axes that share the innermost one's operands
  int64_t vector = 1;           ///< values of main that are read at once
  int64_t groups = 1;
  int64_t stages = 1;
  bool asynchronous = false;     ///< copies go on while the threads compute
  int64_t row_blocks = 0;        ///< by warpgroups: so many rows of blocks go before the next column; divides all
  bool gives_registers = false;  ///< likewise: one copies, and leaves its registers to those that multiply
  bool store_boxes = false;      ///< by warpgroups: boxes store the results, from shared memory
  int64_t cluster_parts = 1;     ///< likewise: blocks of a cluster that have the same tile, and deal out its steps
  int64_t grid = 0;              ///< likewise: blocks that run at once and go through all tiles; 0: one for each tile
  bool ping_pong = false;        ///< then: two teams of such threads have a block's tiles by turns
  int64_t joined = 0;            ///< likewise: further products that are multiplied in the same steps
  size_t joined_operand = 0;     ///< then: the one that all of them have
  int64_t rolled_groups = 0;     ///< by teams: of results that rolled loops finish (rolled.h)
  bool all_ahead = false;        ///< those of all steps begin at once: each has a buffer of its own
  int64_t most_unrolled = 1024;  ///< loops over at most so many sums are laid out in the text
  std::optional<bool> unroll_copies = {};        ///< absent: those of few rounds
  std::optional<TensorCores> tensor_cores = {};  ///< absent: each thread multiplies elements
  std::vector<OperandPlan> operands;
  double cycles = 0;  ///< estimated

  int64_t points_threads() const;  ///< threads of one group
  int64_t threads() const { return points_threads() * groups; }
  int64_t teams() const { return ping_pong ? 2 : 1; }
  bool by_warpgroups() const { return tensor_cores && tensor_cores->warpgroups > 0; }
  int64_t block_threads() const;  ///< of all teams, with those that only copy
  int64_t cluster_blocks() const;
  int64_t registers() const;  ///< points of a thread
  /// Steps of the same form. What is left of the main axis is one of them where `fills_last_step`, else comes after
  /// them.
  int64_t steps(const Contraction& contraction) const;
  /// Whether the last step is filled up with zeros: by asynchronous copies of tiles for tensor cores.
  bool fills_last_step() const { return tensor_cores.has_value() && asynchronous; }
  int64_t left(const Contraction& contraction) const;          ///< values of the main axis that come after the steps
  int64_t shared_bytes(const Contraction& contraction) const;  ///< of the kernel
  /// Whether neighbouring results of a thread read the same elements, for different values of reduction axes that a
  /// step has whole.
  bool has_windows(const Contraction& contraction) const;
};

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// The plan of least estimated time among those that the options allow. What they say of one contraction, whose
/// parallel axes are those of its results' subscripts:
///     tile            values of a block along each parallel axis, then of a step along each reduction axis
///     register_tile   results of a thread along each parallel axis
///     map_to_threads  x along the axes that share the innermost one's operands, y along all others, z for the groups
///                     between which a step is split
///     cluster         blocks along each parallel axis that share copies, by warpgroups; absent: as estimated, or none
///                     where tiles are given
///                     Behind these, of a product by warpgroups: blocks between which the steps of a tile are dealt
///                     out, which put their sums together in the kernel
///     store_boxes     results are stored by boxes, by warpgroups
///     persistent      blocks go through several tiles, likewise
///     ping_pong       two teams of warpgroups have these by turns
///     copy_stages     buffers, where copies are asynchronous and there are as many steps; more than there are steps:
///                     all of these are copied at once, and laid out
///     tensor_cores    true: by products of tiles; of warpgroups by estimate, or if threads and registers are theirs.
///                     False: element by element. Absent: by tiles where there is an atom and none of the first three
///                     above is given
///     shared_depth    axes above the copies: all parallel ones (copied once, whole), or the reduction's too (by steps)
/// Sizes beyond an axis's extent are cut to it. A plan that takes longer than `most_cycles` need not be found, nor be
/// the best: that takes less time. Errors: the reason why there is no such plan.
Result<ContractionPlan> plan_contraction(const Contraction& contraction, const options::MappingOptions& options,
                                         const Device& device, double most_cycles = kNoLimit);

/// The plans of least estimated time, best first, `count` at most.
std::vector<ContractionPlan> best_plans(const Contraction& contraction, const options::MappingOptions& options,
                                        const Device& device, size_t count);

/// The same by tensor cores alone. Errors: likewise, or that the options leave them out.
Result<ContractionPlan> plan_tensor_cores(const Contraction& contraction, const options::MappingOptions& options,
                                          const Device& device);

/// The plan of least estimated time by products of warpgroups, with `most_cycles` as above. Errors: the reason why the
/// options allow none.
Result<ContractionPlan> plan_warpgroups(const Contraction& contraction, const options::MappingOptions& options,
                                        const Device& device, double most_cycles = kNoLimit);

/// The same of a contraction whose further products are multiplied in its own steps: they have the operand `operand`,
/// and are no sums of each other.
Result<ContractionPlan> plan_joined(const Contraction& contraction, size_t operand,
                                    const options::MappingOptions& options, const Device& device);

/// The plan of a further product that is multiplied in the steps of such a plan. None if its boxes are no such tiles.
std::optional<ContractionPlan> plan_in_steps_of(const ContractionPlan& first, const Contraction& contraction,
                                                const options::MappingOptions& options, const Device& device);

/// The plan of least estimated time by products of tiles of single warps. Errors: likewise.
Result<ContractionPlan> plan_atoms(const Contraction& contraction, const options::MappingOptions& options,
                                   const Device& device, double most_cycles = kNoLimit);

/// The options that ask for a plan: plan_contraction() of them is this plan, on the same device.
options::MappingOptions options_of(const ContractionPlan& plan);

}  // namespace tc::gpu
