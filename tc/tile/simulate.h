#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tc/support/result.h"
#include "tc/tile/program.h"

namespace tc::tile {

/// What a program is called with. Buffers hold at least layout.cosize() elements of the tensor's type (a bool takes a
/// byte), and are written in place.
struct Arguments {
  std::map<std::string, std::span<std::byte>> tensors;
  std::map<std::string, std::variant<int64_t, double>> scalars;
  std::set<std::string> undefined;  ///< tensors whose elements hold nothing yet: reading one before it is written is a
                                    ///< finding
};

struct SimulatorOptions {
  uint64_t seed = 1;  ///< of the order of blocks, and of warps between barriers
  bool check = true;  ///< look for races and reads of what was never written
  bool count = true;  ///< bank conflicts and sectors
  int findings = 32;  ///< at most; one for each kind and place in the program
};

struct Finding {
  enum class Kind {
    kOutOfBounds,    ///< the access was left out
    kRace,           ///< two threads, one element, one of them writes, nothing in between orders them
    kUninitialised,  ///< read before it is written
    kPending,        ///< an asynchronous copy has not been waited for
    kDivergence,     ///< a barrier or shuffle that not all threads reach
    kMisaligned,     ///< of a vector
    kEarly,          ///< touches what the kernels before may still touch, or ends before they have
    kProxy,          ///< a box store that does not see what a thread has written, for want of a fence
    kRing,           ///< a step of a ring out of order, or what touches a buffer outside of its turn
    kDeadlock,       ///< threads that wait for each other; the kernel ends there
  };
  Kind kind;
  std::string kernel;
  std::string sentence;  ///< names the kernel, the threads, the element and the statement
};

/// Sums over a launch.
struct Counters {
  int64_t thread_operations = 0;  ///< stores, moves, atomics and shuffles, one for each thread
  int64_t global_bytes_read = 0;  ///< as asked for by threads
  int64_t global_bytes_written = 0;
  int64_t global_requests = 0;    ///< of a warp
  int64_t global_sectors = 0;     ///< of 32 bytes, distinct within a request
  int64_t shared_requests = 0;    ///< of a warp; vectors of 8 (16) bytes count 2 (4) times
  int64_t shared_wavefronts = 0;  ///< as many as requests where there is no bank conflict
  int64_t barriers = 0;           ///< of blocks
};

struct Report {
  std::vector<Finding> findings;
  std::vector<Counters> counters;  ///< one for each kernel
};

/// Runs the kernels in order, as a GPU would: blocks and warps in random order, asynchronous copies as late as they
/// may come, workspace and shared memory full of poison. An Error for arguments that are missing or too small.
Result<Report> simulate(const Program& program, const Arguments& arguments, const SimulatorOptions& options = {});

}  // namespace tc::tile
