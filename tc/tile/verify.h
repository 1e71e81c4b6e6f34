#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tc/tile/program.h"

namespace tc::tile {

/// What a device allows.
struct Limits {
  int64_t threads = 1024;  ///< of a block
  std::array<int64_t, 3> block = {1024, 1024, 64};
  std::array<int64_t, 3> grid = {2147483647, 65535, 65535};
  int64_t shared_bytes = 232448;
  int architecture = 90;    ///< as 80 for sm_80
  bool accelerated = true;  ///< it has the instructions of this one architecture: sm_90a
  int64_t cluster = 8;      ///< blocks
};

/// How much verify() proved of a kernel.
struct Proved {
  int subscripts = 0;  ///< that lie in their tensor's extent
  int vectors = 0;     ///< whose offset is a multiple of their length, and boxes and tiles
  int together = 0;    ///< barriers, and what warps do together, that all threads reach
};

struct Verification {
  std::vector<std::string> faults;    ///< what is wrong, a sentence each
  std::vector<std::string> unproved;  ///< what could not be decided: subscripts that read memory, conditions on data
  std::vector<Proved> proved;         ///< per kernel
  bool holds() const { return faults.empty(); }
};

/// Checks that a program has a meaning:
///  - names mean something, and one thing; subscripts fit ranks; values have the types of what they are stored in;
///  - unrolled loops have constant trip counts, and subscripts of registers hang on unrolled loops alone;
///  - all threads of a block (warp, warpgroup) reach a barrier (a warp's barrier, or what they do together) together,
///    and name the same tile and turn;
///  - grid, block, cluster and shared memory keep the limits, and instructions are those of the architecture;
///  - tensor maps are such that the driver encodes them, and lie in their tensors;
///  - vectors are contiguous, aligned, and of a size that there is an instruction for;
///  - boxes lie in their tensor as its coordinates say, and what a warpgroup multiplies as a matrix descriptor says;
///  - every access lies in its tensor;
///  - what the text promises to the compiler behind it holds (promise_faults.h).
/// With the synchronisation certificate: certify().
Verification verify(const Program& program, const Limits& limits = {});

}  // namespace tc::tile
