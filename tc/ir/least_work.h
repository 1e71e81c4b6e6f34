#pragma once

#include "tc/ir/program.h"

namespace tc::ir {

/// What every correct code for a def does at least, whatever its schedule. A lower bound: what a compiler might fold,
/// share or move out of a loop does not count.
struct LeastWork {
  double updates = 0;       ///< of the one reduction that weighs most: each takes a lane of some instruction
  int lane_bits = 64;       ///< width of such a lane: of the narrowest type that the update reads or sums in
  double result_bytes = 0;  ///< that have to be stored
};

/// Of a specialised Program, whose ranges are constants.
LeastWork least_work(const Program& program);

}  // namespace tc::ir
