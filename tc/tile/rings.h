#pragma once

#include <set>
#include <string>
#include <vector>

#include "tc/tile/program.h"

namespace tc::tile {

/// The tensors that boxes fill. Rings order their accesses, not barriers.
std::set<std::string> tensors_of_rings(const Kernel& kernel);

/// Proves that a kernel's ring orders all accesses to the tensors that boxes fill, that nobody waits forever, and that
/// sums of products are touched behind the wait for them (docs/design/0023-rings.md). Returns the first thing that it
/// cannot prove, as a sentence; none if all holds, or if there is nothing to prove.
/// For a kernel that verify() finds right. `operations` bounds isl's work.
std::vector<std::string> unproved_rings(const Kernel& kernel, unsigned long operations);

}  // namespace tc::tile
