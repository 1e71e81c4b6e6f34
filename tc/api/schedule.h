#pragma once

/// A GPU's kernel written loop by loop, each step proved.
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
/// Loops go by name. At first they are those that the scheduler finds for the def, named as the indices that they run
/// over (a name that is taken gets a number), none of them on blocks or threads. A step that would change what the def
/// computes is refused with two instances that show it, and leaves the schedule as it was:
///     cannot run iterations of 'k' at once: S0[i = 0, k = 0] and S0[i = 0, k = 1] must not (reduction dependence)

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tc/api/tc.h"

namespace tc::api {

enum class Axis { kBlockX, kBlockY, kBlockZ, kThreadX, kThreadY, kThreadZ };

enum class Memory {
  kShared,     ///< one buffer for the threads of a block
  kRegisters,  ///< one for each thread: the elements that it alone works on
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

/// The launches of a def, at first one. A copy is a schedule of its own; what runs at the same time needs copies of
/// create()'s.
class Schedule {
 public:
  using Loops = std::pair<std::string, std::string>;

  /// Of the request's entry, specialised as Engine::compile() does; the backend is kCuda or kSimulator. Errors: as
  /// there; a backend without blocks and threads.
  static Result<Schedule> create(std::string_view text, const Request& request);

  /// All loops, outermost first, in the order of execution.
  std::vector<std::string> loops() const;

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
  /// Starts another launch, with loops and buffers of its own, at a loop that stands below no other (or at a statement,
  /// by name: "S1"). What stands before it runs before it. What a launch begins with is no longer merged or sunk.
  Result<void> launch(const std::string& at);
  /// Deals the iterations out to blocks or threads. Loops on threads stand right below each other; what stands below
  /// none is run by the first thread.
  Result<void> bind(const std::string& loop, Axis axis);
  /// Lets the block's first warp share the iterations of a reduction to one element: each lane has every 32nd, and
  /// shuffles combine what they have. Nothing below is bound, and a block has whole warps in x. Refused where the
  /// request is strict, or the loop is unrolled.
  Result<void> reduce_by_warp(const std::string& loop);
  /// Lays all iterations out.
  Result<void> unroll(const std::string& loop);
  /// Lays all iterations out (2 to 16 bytes of neighbours in memory), and moves them as vectors where aligned.
  Result<void> vectorize(const std::string& loop);
  /// Holds what one iteration of the loop uses of the tensor in a buffer, filled before and written back behind, with
  /// barriers where they are needed. The loop is none on threads, and stands above them.
  Result<void> promote(const std::string& tensor, const std::string& loop, Memory memory,
                       Fetch fetch = Fetch::kVectorized);

  /// Lets the copies of a tensor that is promoted to shared memory below the loop run ahead of it: asynchronously, into
  /// `stages` buffers (2 to 8) that the loop's iterations take in turn. All that is staged over one loop has as many.
  /// The loop is not bound; refused where the launch itself writes what is fetched.
  Result<void> stage(const std::string& tensor, const std::string& loop, int64_t stages);

  /// The kernels as a tile program, or as CUDA. Errors: as compile().
  Result<std::string> tile_text() const;
  Result<std::string> cuda_text() const;

  /// Errors: what the kernel's verifier does not accept: buffers larger than shared memory, registers whose subscripts
  /// hang on loops that are not unrolled; those of Engine::compile().
  Result<CompiledKernel> compile() const;

  /// Runs on the simulator as CompiledKernel::run() does (tensors in the CPU's memory), and counts.
  Result<Counters> count(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                         std::span<const Scalar> scalars = {}) const;

 private:
  struct Impl;
  explicit Schedule(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tc::api
