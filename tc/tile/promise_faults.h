#pragma once

#include <string>
#include <vector>

#include "tc/tile/program.h"

namespace tc::tile {

/// What does not hold of a program's promises (promise.h), a sentence each. It is found by following all ways that
/// control can take, not by how promise() decides. Of the arguments of a call it is taken that a written tensor
/// overlaps no other: whoever runs a program checks that at each call, the simulator too.
/// For kernels whose structure is right: what is not marked as written is not written.
std::vector<std::string> promise_faults(const Program& program);

}  // namespace tc::tile
