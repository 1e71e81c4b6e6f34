#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tc/poly/scop.h"
#include "tc/support/result.h"

namespace tc::gpu {

/// How a named loop cuts an index of a statement:
///     iteration = floor((index mod period) / step)
/// where the index counts from 0, or from its first value. The period is the step of the next loop above that cuts the
/// same index; the outermost one has none.
struct LoopCut {
  std::string loop;
  std::string index;
  int64_t step = 1;   ///< values of the index from one iteration to the next
  int64_t count = 1;  ///< iterations, with those that lie behind the index's range
};

/// The loops above a statement, outermost first. Loops of one iteration that use no index are left out.
struct LoopCuts {
  std::vector<LoopCut> outside;  ///< above the tile
  std::vector<LoopCut> inside;   ///< the tile's first loop, and those below it
  std::string above;             ///< the loop right above the tile; empty: there is none
};

/// What the loops above a statement do to its indices. `tile` is a loop's name. `sizes` has the iterations of loops
/// that a split has made, of which an index may have fewer. Errors: the loop `tile` is not above the statement; a loop
/// that does not cut one index so.
Result<LoopCuts> cuts_of(const poly::Scop& launch, const std::string& statement, const std::string& tile,
                         const std::map<std::string, int64_t>& sizes);

}  // namespace tc::gpu
