#pragma once

#include <vector>

#include "tc/gpu/strategy/contraction/contraction.h"
#include "tc/gpu/strategy/contraction/requested_tile.h"
#include "tc/gpu/strategy/contraction/windows.h"

namespace tc::gpu {

/// What one candidate asks for; 1 for "rows" where all parallel axes are of one class.
struct Shape {
  int64_t rows = 1, columns = 1;                    ///< points of a block
  int64_t row_registers = 1, column_registers = 1;  ///< of a thread
  int64_t groups = 1;
  int64_t chunk = 1;
  Tiles tiles = {};  ///< instead of the above, of each axis
};

/// Parallel axes by what they have in common, each list innermost first.
struct Classes {
  std::vector<size_t> columns, rows;
  int unshared = -1;  ///< the first of columns, if no operand is used again along it: it is there to be contiguous
};

/// The reduction axis that steps go along.
struct MainAxis {
  size_t index = 0;
  bool is_inner = false;  ///< steps of other axes run around it
};

/// All shapes that the options leave open.
std::vector<Shape> shapes(const Contraction& contraction, const Classes& classes, const MainAxis& main,
                          const RequestedTile& request);

}  // namespace tc::gpu
