#pragma once

#include <string>
#include <vector>

#include "tc/tile/program.h"

namespace tc::tile {

/// What is known of the order of accesses.
struct Certificate {
  std::vector<std::string> races;     ///< sentences: two statements, two threads, one element, no barrier in between
  std::vector<std::string> unproved;  ///< the same, where subscripts or conditions are not affine
  int pairs = 0;                      ///< of accesses that were decided

  // Pairs of accesses, as statements of the text. What is in none of the parts is not proved.
  bool finished = true;  ///< false: isl gave up, and the following were not counted
  int conflicts = 0;     ///< of threads of one block: to one tensor, one writes, not both are atomic
  int ordered = 0;  ///< of those: each way from one to the other leads over a barrier (for a copy: a wait, then one)
  int apart = 0;    ///< of those: where no barrier lies between them, two threads never touch the same element
  int block_conflicts = 0;  ///< of threads of different blocks
  int block_apart = 0;      ///< of those: they never touch the same element
  bool holds() const { return races.empty() && unproved.empty(); }
};

/// Proves that every two accesses of different threads to one element of shared or global memory, of which one writes,
/// are ordered by a barrier, and that nothing touches the target of an asynchronous copy before it has arrived: its
/// thread has waited for it, and for the others a barrier follows the wait.
///
/// Follows all ways that control can take from one access to another without a barrier; for each, isl decides whether
/// two threads can meet there in one element, given how many iterations of each loop around both lie in between.
/// What happens in loops without barriers has no order. Conditions around barriers are not looked at: a barrier that
/// is skipped only where it is not needed is not understood.
/// Rings order the tensors that boxes fill: rings.h proves them, or they are unproved.
/// For a kernel whose structure verify() finds right: barriers in uniform control flow. `operations` bounds isl's work.
Certificate certify(const Kernel& kernel, unsigned long operations = 20'000'000);

}  // namespace tc::tile
