#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tc/tile/accesses.h"

namespace tc::tile {

using Exprs = std::vector<Halide::Expr>;
using Points = std::vector<Exprs>;

/// Sums of index expressions whose types may differ: of the first one's type.
Halide::Expr plus(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr plus(const Halide::Expr& a, int64_t b);
/// An Int(32) constant.
Halide::Expr number(int64_t value);

/// Points that follow each other as the sums of one multiple of each step do, the first step fastest.
struct Steps {
  Exprs first;
  std::vector<std::pair<int64_t, std::vector<int64_t>>> steps;  ///< how many, and what is added to each coordinate
};
/// None if the points lie otherwise.
std::optional<Steps> steps_of(const Points& points);
/// The point of a number.
Exprs at_step(const Steps& steps, const Halide::Expr& index);

/// What a thread's number, or a value's, adds to the place in a tile.
struct TilePlace {
  Halide::Expr row, column;
};
/// The place in a tile of `rows` rows of an index into a mode of a layout that counts down columns. None if the mode
/// runs over the end of a column.
std::optional<TilePlace> tile_place(const Layout& mode, const Halide::Expr& index, int rows);

/// The coordinates of the element that lies `offset` (at most `last`) behind another one, at a path. None if the tensor
/// has gaps there, or if the first one does not lie at the beginning of a slice.
std::optional<Exprs> coordinates_behind(const Tensor& tensor, const Path& path, Exprs first, const Halide::Expr& offset,
                                        int64_t last);

}  // namespace tc::tile
