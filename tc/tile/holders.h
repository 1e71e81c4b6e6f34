#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tc/tile/accesses.h"
#include "tc/tile/coverage.h"

namespace tc::tile {

/// What is known of the registers and the shared memory of a kernel.
struct Holders {
  std::map<std::string, std::set<std::string>> tensors;  ///< of those that hold what is read from them: whose elements
  std::vector<std::string> parted;                       ///< of those, what parts of sums are added in, by no statement
  std::vector<std::string> unproved;                     ///< names of the others
  std::vector<std::string> faults;  ///< what is read from one is another element's: a sentence each
};

/// Proves of registers and shared memory that what is read from them is of the element that is wanted:
///     sum(0) = sum(0) + ...          carries out S0[m, k], which writes C[m]: sum(0) holds C[m]
///     C(m) = sum(0)                  stores it: in C[m]
/// An operation that carries out no statement copies: what it writes is of the element that all it reads are of. Where
/// it adds, those are parts of one sum; that all parts are added, each once, is not proved. One that carries out a
/// statement reads all elements that its instance names, and no others; where it names none, zeros are believed.
/// A place holds one element in an iteration of the loops around all that use it, and is written before it is read.
/// That of a tensor that boxes fill does for a turn of its ring. Else the last write before each read is looked for. Of
/// shared memory this holds for kernels whose order certify() proves. `operations` bounds isl's work on each tensor,
/// and each read: past it, nothing more is proved.
Holders check_holders(const Kernel& kernel, const Flow& flow, const Work& work, unsigned long operations);

}  // namespace tc::tile
