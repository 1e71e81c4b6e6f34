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

/// How much of one kernel was looked at, and how much of that was proved.
struct KernelChecks {
  bool structured = true;   ///< false: its structure is wrong, and none of the following was counted
  int accesses = 0;         ///< to elements, of any memory
  int inside = 0;           ///< of those, proved to lie in their tensors
  int conditional = 0;      ///< of those inside: under a condition, which the proof may use
  int vectors = 0;          ///< accesses to several elements at once
  int aligned = 0;          ///< of those, proved to start at a multiple of their size
  int barriers = 0;         ///< of blocks
  int warp_operations = 0;  ///< barriers of warps, and what a warp does together
  int together = 0;         ///< of both, proved to be reached by all threads of the block or warp together
  int broken_promises = 0;  ///< sentences about promises among the faults
};

struct Verification {
  std::vector<std::string> faults;    ///< what is wrong, a sentence each
  std::vector<std::string> unproved;  ///< what could not be decided: subscripts that read memory, conditions on data
  std::vector<KernelChecks> kernels;  ///< one for each kernel of the program
  bool checked_promises = false;      ///< false: the structure of some kernel is wrong
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
