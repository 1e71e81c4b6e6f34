#pragma once

#include <string>
#include <vector>

#include "tc/tile/program.h"

namespace tc::tile {

/// Proves that barriers of the cluster order what blocks read of each other's shared memory: each such read and each
/// write of its tensor, by whichever blocks; and that no block ends before others have read what it holds
/// (docs/design/0036-reductions-split-over-clusters.md). Returns what it cannot prove, as sentences; none if all
/// holds, or if there is nothing to prove.
/// For a kernel that verify() finds right.
std::vector<std::string> unproved_cluster(const Kernel& kernel);

}  // namespace tc::tile
