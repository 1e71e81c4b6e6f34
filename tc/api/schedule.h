#pragma once

/// A kernel of a CPU or a GPU written loop by loop, each step proved.
///
///     #include <tc/api/schedule.h>
///
///     auto schedule = tc::api::Schedule::create(
///         "def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }",
///         {.sizes = {{"N", 4096}}, .backend = tc::api::Backend::kSimulator});
///     auto [block, thread] = *schedule->split("i", 256);
///     auto bound = schedule->bind(block, Axis::kBlockX);         // a Result: refused, or done
///     bound = schedule->bind(thread, Axis::kThreadX);
///     auto kernel = schedule->compile();                         // a CompiledKernel like any other
///
/// On a CPU, parallelize() takes the place of bind():
///     auto [part, lane] = *schedule->split("i", 8);
///     auto done = schedule->parallelize(part);
///     done = schedule->vectorize(lane);
///
/// Loops have names. The first loops are those that the scheduler finds for the def. Each is named after its index,
/// with a number if the name is taken. None of them is on cores, blocks or threads. A step that would change the def's
/// results is refused with two instances that show it, and leaves the schedule as it was:
///     cannot run iterations of 'k' at once: S0[i = 0, k = 0] and S0[i = 0, k = 1] must not (reduction dependence)

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tc/api/tc.h"

namespace tc::api {

enum class Axis {
  kBlockX,
  kBlockY,
  kBlockZ,
  kThreadX,
  kThreadY,
  kThreadZ,
  // Of a tile operation (Schedule::tensorize()):
  kWarpX,      ///< warps along the columns of a product
  kWarpY,      ///< along its rows
  kWarpZ,      ///< warps that share a step of its reduction
  kWarpgroup,  ///< four warps with 64 rows
  kCluster,    ///< neighbouring blocks, which get boxes together
};

enum class Memory {
  kShared,     ///< of a GPU: one buffer for the threads of a block
  kRegisters,  ///< of a GPU: a buffer for each thread, with the elements that only it uses; of a CPU: for an iteration
  kCache,      ///< of a CPU: a contiguous buffer for an iteration of the loop
};

/// How a block fills a buffer in shared memory and writes it back.
enum class Fetch {
  kVectorized,   ///< all threads, 16 bytes at once where both ends are aligned
  kCooperative,  ///< all threads, element by element
  kOneThread,    ///< the block's first thread
  kBoxes,        ///< the copy engine (TMA), for TileOperation::kWgmma
};

/// What a block does with a tile, as one operation.
enum class TileOperation {
  kFma,        ///< a product: each thread multiplies elements, and has sums in registers
  kMma,        ///< a product: warps multiply 16 x 8 x 16 values by mma.sync
  kWgmma,      ///< a product: warpgroups multiply 64 rows by wgmma, where boxes lie in shared memory
  kPointwise,  ///< each thread has elements of its own, from the first statement to the last
  kReduce,     ///< threads share rows, and reduce each together
};

/// Which iterations of a reduction make a part.
enum class Part {
  kChunk,   ///< neighbours
  kCyclic,  ///< every n-th, of n parts
};

/// The result of Schedule::split_reduction(): the loops over the parts (`part`), within a part (`rest`) and over the
/// partial results (`together`), the tensor of partial results, and the number of parts.
struct ReductionLoops {
  std::string part, rest, together, partial;
  int64_t parts = 1;
};

/// Work as the simulator counts it, over all launches.
struct Counters {
  int64_t global_bytes_read = 0;  ///< as threads ask for them
  int64_t global_bytes_written = 0;
  int64_t global_requests = 0;    ///< of a warp
  int64_t global_sectors = 0;     ///< of 32 bytes, distinct within a request
  int64_t shared_requests = 0;    ///< of a warp
  int64_t shared_wavefronts = 0;  ///< as many as requests where there are no bank conflicts
  int64_t barriers = 0;           ///< of a block, summed over blocks
};

/// The result of Schedule::save().
struct Saved {
  std::string options;   ///< the kernel's name in the file: "by hand ..."
  double time_us = 0;    ///< of one run, median
  double spread_us = 0;  ///< half the distance between the quartiles
};

/// The loops of a def on a CPU, or its launches on a GPU: one at first. Steps of a copy leave the original as it is,
/// but copies share state: each of several threads needs a schedule of its own from create(). Each step has the
/// request's whole budget.
class Schedule {
 public:
  using Loops = std::pair<std::string, std::string>;

  /// Makes the schedule of the request's entry, specialised as by Engine::compile(). Errors: as there.
  static Result<Schedule> create(std::string_view text, const Request& request);

  /// All loops, outermost first, in the order of execution.
  std::vector<std::string> loops() const;
  /// The def's shapes and its loop nest. It has a line for each loop (with its range and binding), each buffer (with
  /// its extents) and each statement.
  ///     add(float32(4096) A, float32(4096) B) -> (float32(4096) C) on sim
  ///     for i_outer in 0:16  # block.x
  ///       for i_inner in 0:256  # thread.x
  ///         S0: C(i) = A(i) + B(i)
  Result<std::string> to_text() const;

  /// Splits a loop: i  ==>  i_outer, i_inner with i = size * i_outer + i_inner. Returns their names.
  Result<Loops> split(const std::string& loop, int64_t size);
  /// Splits each loop, and puts all outer loops above all inner ones. Returns their names, outer loops first. The loops
  /// must be perfectly nested.
  Result<std::vector<std::string>> tile(const std::vector<std::string>& loops, const std::vector<int64_t>& sizes);
  /// Fuses two perfectly nested loops: i, j  ==>  i_j with i_j = extent of j * i + j. Returns its name.
  Result<std::string> fuse(const std::string& outer, const std::string& inner);
  /// Puts perfectly nested loops into this order.
  Result<void> reorder(const std::vector<std::string>& loops);
  /// Gives each statement (or group of them) below the loop a loop of its own. The last keeps the name; others are
  /// named with their first statement: "i_S0_init".
  Result<void> distribute(const std::string& loop);
  /// Partitions a loop's iterations into those before `at` and the rest:
  ///     for i in a:N   ==>   for i in a:at
  ///                          for i_rest in 0:N - at
  /// The second loop runs after the first one, and counts from 0. Copies of loops below it are named with "_rest", too,
  /// and a number where that is taken. Returns the names of both. Each may get tiles of its own; outermost ones may get
  /// a launch. Refused: all iterations lie on one side.
  Result<Loops> partition(const std::string& loop, int64_t at);
  /// Merges two adjacent loops into one that runs the first loop's statements first. It keeps the first loop's name.
  Result<void> merge(const std::string& first, const std::string& second);
  /// Moves a loop and all below it (or a statement, by name) into a sibling loop. From before that loop, each instance
  /// moves to the first iteration that needs it; from behind, to the last iteration that it needs. The moved loops
  /// remain: in each iteration they run over the instances that belong there.
  Result<void> sink(const std::string& name, const std::string& loop);
  /// Gives each of `parts` parts of a reduction a partial result in a temporary, which the statement then reduces:
  ///     s(i) +=! x(i,k)   ==>   s_parts(i,k_part) +=! x(i, k_part + parts * k_rest)    for Part::kCyclic
  ///                             s(i) +=! s_parts(i,k_part)
  /// Chunks have ceil(extent / parts) iterations, except the last. Empty chunks are dropped: of 10 iterations, 7 parts
  /// become 5 of 2 each. Cyclic parts are always `parts` many. The loop over parts may then be bound to threads, with
  /// the temporary promoted to shared memory, or to blocks, with a separate launch for the final sum. The loop must be
  /// innermost and run over one whole index of one reduction. Refused if the request is strict.
  Result<ReductionLoops> split_reduction(const std::string& loop, int64_t parts, Part part = Part::kChunk);
  /// On a GPU: starts another launch at an outermost loop (or at a statement, by name: "S1"). The launch has its own
  /// loops and buffers, and runs after everything before it. The first loop or statement of a launch can no longer be
  /// merged or sunk.
  Result<void> launch(const std::string& at);
  /// On a CPU: shares the iterations among the cores.
  Result<void> parallelize(const std::string& loop);
  /// On a GPU: maps the iterations to blocks or threads. Loops on threads must be perfectly nested. The first thread
  /// runs the statements that are in no loop on threads. Below the first loop of a tile operation a loop over a
  /// reduction may be bound too: the operation combines the parts.
  Result<void> bind(const std::string& loop, Axis axis);
  /// On a GPU: makes the loop and all below it one operation of a block. The loops above it are those of blocks, then
  /// those over the steps of a product's reduction. From here on no loop of the launch can be split or moved. The
  /// verbs after it say how the operation is done; each is refused if no kernel of that form can be made:
  ///   - bind() puts loops of the tile on threads, warps or warpgroups, and loops above it on blocks or a cluster;
  ///   - promote() puts a product's operands in shared memory at the loop right above the tile, and its sums in
  ///     registers at the innermost loop of blocks. There it puts results of kWgmma in shared memory, too, by boxes,
  ///     which store them. For kReduce it keeps rows that are read again, at the tile's loop;
  ///   - stage() lets operands come ahead;
  ///   - persist() lets blocks of kWgmma go through several tiles;
  ///   - vectorize() is for the neighbours that threads of kPointwise and kReduce move together.
  /// At the end all of these must have been said. Errors of compile() name the first that is missing, and its numbers.
  /// Tiles may reach beyond the results. The kernel is the one that the compiler makes by the same choices.
  /// Refused: a launch whose statements are no such operation; unless for kPointwise, if the request is strict.
  Result<void> tensorize(const std::string& loop, TileOperation operation);
  /// On a GPU: the launch has as many blocks as run at once, and each goes on with further tiles until none is left.
  /// `loop` is the innermost loop on blocks, above a tile of TileOperation::kWgmma. With two teams the block has the
  /// warpgroups of a tile twice, and one team stores its tile while the other multiplies the next one (ping-pong).
  /// Refused: loops on a cluster, whose blocks have one tile each; teams other than 1 and 2; a second team for more
  /// than 128 rows of instructions.
  Result<void> persist(const std::string& loop, int64_t teams = 1);
  /// On a GPU: the block's first warp shares the iterations of a reduction to one element. Each lane takes every 32nd
  /// iteration, and shuffles combine the partial results. No loop below may be bound, and a block has whole warps in x.
  /// Refused if the request is strict or the loop is unrolled.
  Result<void> reduce_by_warp(const std::string& loop);
  /// Unrolls all iterations; on a CPU at most 64.
  Result<void> unroll(const std::string& loop);
  /// On a CPU: the iterations of an innermost loop, at most 64, become the lanes of a vector. The lanes of a reduction
  /// to one element are combined at the end. Operations without a vector instruction remain a loop: updates of elements
  /// that data choose, and conditional stores that cannot be masked.
  /// On a GPU: unrolls all iterations (2 to 16 bytes of neighbours in memory), and moves them as vectors where aligned.
  Result<void> vectorize(const std::string& loop);
  /// Keeps the elements of the tensor that one iteration of the loop uses in a buffer. The buffer is filled before the
  /// iteration and written back after it, where needed. On a GPU barriers are added, the loop must be outside all loops
  /// on threads, and `fetch` says how shared memory is filled. On a CPU, a buffer in registers needs the loops below to
  /// be unrolled or vectorized.
  Result<void> promote(const std::string& tensor, const std::string& loop, Memory memory,
                       Fetch fetch = Fetch::kVectorized);

  /// On a GPU: copies of a tensor that is promoted to shared memory below the loop run ahead of the loop. They are
  /// asynchronous, into `stages` buffers (2 to 8) that the iterations use in turn. All tensors staged over one loop
  /// have the same number of buffers. The loop must not be bound. Refused if the launch itself writes the tensor.
  Result<void> stage(const std::string& tensor, const std::string& loop, int64_t stages);

  /// Returns the text of a stage: schedule, stmt or object (assembly) of a CPU; tile or cuda of a GPU. Errors: no such
  /// stage; as compile().
  Result<std::string> emit(std::string_view stage) const;
  /// The kernels of a GPU as a tile program, or as CUDA. Errors: as compile().
  Result<std::string> tile_text() const;
  Result<std::string> cuda_text() const;

  /// Compiles the schedule. `cancel` ends the compilation, from any thread.
  /// Errors: a schedule that a GPU cannot run, such as buffers larger than shared memory, or registers with subscripts
  /// that use the index of a loop that is not unrolled; those of Engine::compile().
  Result<CompiledKernel> compile(std::stop_token cancel = {}) const;

  /// Compiles, runs on random data of a seed, and compares with the interpreter. Beyond 2^29 instances of statements it
  /// compares with the CPU's strict kernel. All scalars need values in the request. `cancel` ends it, from any thread.
  /// Errors: a wrong element; as compile().
  Result<void> check(uint64_t seed = 1, std::stop_token cancel = {}) const;

  /// Checks on three seeds, measures, and writes the kernel and its time to a cache's file. Engines that leave options
  /// to the compiler then use it while it is the fastest in the file. Errors: a schedule for the simulator, as files
  /// keep no such kernels; the file's; as check().
  Result<Saved> save(const std::string& cache, std::stop_token cancel = {}) const;

  /// Runs on the simulator as CompiledKernel::run() does (tensors in the CPU's memory), and counts.
  Result<Counters> count(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                         std::span<const Scalar> scalars = {}) const;
  /// The same on random data of a seed; all scalars need values in the request.
  Result<Counters> count(uint64_t seed = 1) const;

 private:
  struct Impl;
  struct Trial;
  Result<Trial> trial(uint64_t seed, std::stop_token cancel) const;
  explicit Schedule(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tc::api
