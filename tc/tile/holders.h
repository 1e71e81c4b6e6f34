#pragma once

#include <map>
#include <string>
#include <vector>

#include "tc/tile/affine.h"
#include "tc/tile/coverage.h"

namespace tc::tile {

/// What is known of the registers and the shared memory of a kernel.
struct Holders {
  std::map<std::string, std::string> tensors;  ///< of those that hold what is read from them: whose elements
  std::vector<std::string> unproved;           ///< names of the others
  std::vector<std::string> faults;             ///< what is read from a register is another element's: a sentence each
};

/// Proves of registers that each holds values of one element of one of the program's tensors, as long as it is
/// allocated, and that this is the element that is wanted from it:
///     sum(0) = sum(0) + ...          carries out S0[m, k], which writes C[m]: sum(0) holds C[m]
///     C(m) = sum(0)                  stores it: in C[m]
/// An operation that carries out no statement must copy, or write a constant. In which order a thread does these things
/// is not looked at.
/// Shared memory, and registers that hold several elements in turn, are unproved. `context` bounds isl's work on each.
Holders check_holders(const Kernel& kernel, const Flow& flow, const Work& work, IslContext& context);

}  // namespace tc::tile
