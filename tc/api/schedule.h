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
/// Loops go by name. At first they are those that the scheduler finds for the def, named as the indices that they run
/// over (a name that is taken gets a number), none of them on cores, blocks or threads. A step that would change what
/// the def computes is refused with two instances that show it, and leaves the schedule as it was:
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

enum class Axis { kBlockX, kBlockY, kBlockZ, kThreadX, kThreadY, kThreadZ };

enum class Memory {
  kShared,     ///< of a GPU: one buffer for the threads of a block
  kRegisters,  ///< of a GPU: one for each thread, the elements that it alone works on; of a CPU: for an iteration
  kCache,      ///< of a CPU: one for an iteration of the loop, whose elements lie side by side
};

/// How a block fills a buffer in shared memory and writes it back.
enum class Fetch {
  kVectorized,   ///< all threads, 16 bytes at once where both ends are aligned
  kCooperative,  ///< all threads, element by element
  kOneThread,    ///< the block's first thread
};

/// Which iterations of a reduction make a part.
enum class Part {
  kChunk,   ///< neighbours
  kCyclic,  ///< every n-th, of n parts
};

/// The loops that a reduction's is split into: over the parts, within one, and over the partial results; the tensor of
/// these; and how many parts there are.
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

/// What save() has found out.
struct Saved {
  std::string options;   ///< the kernel's name in the file: "by hand ..."
  double time_us = 0;    ///< of one run, median
  double spread_us = 0;  ///< half the distance between the quartiles
};

/// The loops of a def on a CPU; on a GPU its launches, at first one. A copy is a schedule of its own; what runs at the
/// same time needs copies of create()'s. Each step has the request's budget to itself.
class Schedule {
 public:
  using Loops = std::pair<std::string, std::string>;

  /// Of the request's entry, specialised as Engine::compile() does. Errors: as there.
  static Result<Schedule> create(std::string_view text, const Request& request);

  /// All loops, outermost first, in the order of execution.
  std::vector<std::string> loops() const;
  /// The def's shapes and its loop nest: a line for each loop with its range and what has been decided of it, for each
  /// buffer with its extents, and for each statement.
  ///     add(float32(4096) A, float32(4096) B) -> (float32(4096) C) on sim
  ///     for i_outer in 0:16  # block.x
  ///       for i_inner in 0:256  # thread.x
  ///         S0: C(i) = A(i) + B(i)
  Result<std::string> to_text() const;

  /// i  ==>  i_outer, i_inner: i = size * i_outer + i_inner. Their names.
  Result<Loops> split(const std::string& loop, int64_t size);
  /// Splits each loop, and puts all outer loops above all inner ones: their names, outer ones first. The loops stand
  /// right below each other.
  Result<std::vector<std::string>> tile(const std::vector<std::string>& loops, const std::vector<int64_t>& sizes);
  /// i, j right below it  ==>  i_j: i_j = extent of j * i + j. Its name.
  Result<std::string> fuse(const std::string& outer, const std::string& inner);
  /// Puts loops that stand right below each other into this order.
  Result<void> reorder(const std::vector<std::string>& loops);
  /// Gives each statement (or group of them) below the loop a loop of its own. The last keeps the name; others are
  /// named with their first statement: "i_S0_init".
  Result<void> distribute(const std::string& loop);
  /// One loop for two that stand right behind each other, in which the first's statements come first. Keeps its name.
  Result<void> merge(const std::string& first, const std::string& second);
  /// Moves a loop and all below it (or a statement, by name) under a loop beside which it stands in a sequence: each
  /// instance to the first iteration that needs it, or, from behind, to the last that it needs. Its own loops stay: in
  /// an iteration they run over what goes there.
  Result<void> sink(const std::string& name, const std::string& loop);
  /// Gives each of `parts` parts of a reduction a partial result in a temporary, which the statement then reduces:
  ///     s(i) +=! x(i,k)   ==>   s_parts(i,k_part) +=! x(i, k_part + parts * k_rest)    for Part::kCyclic
  ///                             s(i) +=! s_parts(i,k_part)
  /// Parts of neighbours have ceil(extent / parts) iterations, but for the last; where fewer than `parts` already have
  /// all, there are no more: of 10 iterations 7 parts become 5, of 2 each. Cyclic parts are as many as asked for.
  /// Iterations of the loop over parts may then be bound: to threads, with the temporary promoted to shared memory, or
  /// to blocks, with a launch of its own for what adds up. The loop runs over one whole index of one reduction, and no
  /// loop stands below it. Refused where the request is strict.
  Result<ReductionLoops> split_reduction(const std::string& loop, int64_t parts, Part part = Part::kChunk);
  /// Of a GPU: starts another launch, with loops and buffers of its own, at a loop that stands below no other (or at a
  /// statement, by name: "S1"). What stands before it runs before it. What a launch begins with is no longer merged or
  /// sunk.
  Result<void> launch(const std::string& at);
  /// Of a CPU: shares the iterations among the cores.
  Result<void> parallelize(const std::string& loop);
  /// Of a GPU: deals the iterations out to blocks or threads. Loops on threads stand right below each other; what
  /// stands below none is run by the first thread.
  Result<void> bind(const std::string& loop, Axis axis);
  /// Of a GPU: lets the block's first warp share the iterations of a reduction to one element: each lane has every
  /// 32nd, and shuffles combine what they have. Nothing below is bound, and a block has whole warps in x. Refused where
  /// the request is strict, or the loop is unrolled.
  Result<void> reduce_by_warp(const std::string& loop);
  /// Lays all iterations out; on a CPU at most 64.
  Result<void> unroll(const std::string& loop);
  /// On a CPU: makes the iterations of an innermost loop, at most 64, the lanes of a vector. Those of a reduction to
  /// one element are combined at the end. What no vector instruction can do stays a loop: updates of elements that data
  /// choose, a store under a condition that cannot be masked.
  /// On a GPU: lays all iterations out (2 to 16 bytes of neighbours in memory), and moves them as vectors where
  /// aligned.
  Result<void> vectorize(const std::string& loop);
  /// Holds what one iteration of the loop uses of the tensor in a buffer, filled before and written back behind, where
  /// that is needed. On a GPU with barriers; the loop is none on threads, and stands above them, and `fetch` says how
  /// shared memory is filled. On a CPU a buffer in registers needs loops below that are unrolled or vectors.
  Result<void> promote(const std::string& tensor, const std::string& loop, Memory memory,
                       Fetch fetch = Fetch::kVectorized);

  /// Of a GPU: lets the copies of a tensor that is promoted to shared memory below the loop run ahead of it:
  /// asynchronously, into `stages` buffers (2 to 8) that the loop's iterations take in turn. All that is staged over
  /// one loop has as many. The loop is not bound; refused where the launch itself writes what is fetched.
  Result<void> stage(const std::string& tensor, const std::string& loop, int64_t stages);

  /// The text of a stage: schedule, stmt, object (assembly) of a CPU; tile, cuda of a GPU. Errors: no such stage; as
  /// compile().
  Result<std::string> emit(std::string_view stage) const;
  /// The kernels of a GPU as a tile program, or as CUDA. Errors: as compile().
  Result<std::string> tile_text() const;
  Result<std::string> cuda_text() const;

  /// `cancel` ends it, from any thread.
  /// Errors: what a GPU's verifier does not accept: buffers larger than shared memory, registers whose subscripts
  /// hang on loops that are not unrolled; those of Engine::compile().
  Result<CompiledKernel> compile(std::stop_token cancel = {}) const;

  /// Compiles, runs on random data of a seed, and compares with the interpreter; beyond 2^29 instances of statements
  /// with the CPU's strict kernel. All scalars need values in the request. `cancel` ends it, from any thread.
  /// Errors: a wrong element; as compile().
  Result<void> check(uint64_t seed = 1, std::stop_token cancel = {}) const;

  /// Compares as check() does on three seeds, measures, and puts the kernel and its time into a cache's file. Engines
  /// that leave options to the compiler then take it while it is the fastest that the file knows. Errors: the
  /// simulator, whose kernels no file keeps; the file's; as check().
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
