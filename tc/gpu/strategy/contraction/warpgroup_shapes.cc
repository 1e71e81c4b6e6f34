#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>

#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/support/round.h"
#include "tc/tile/matrix_descriptor.h"

/// The tiles of warpgroups that are tried.
namespace tc::gpu {
namespace {

using tile::WarpgroupAtom;

/// The axes of a side of which a block may have several values, each along a dimension of its own, the fastest first.
std::vector<size_t> boxed_axes(const Contraction& c, size_t operand, size_t main, const std::vector<size_t>& axes) {
  const Operand& o = in_memory(c, operand);
  const int along_main = dimension_along(o, &Subscript::reduction, main);
  std::map<int, size_t, std::greater<>> by_dimension;
  for (size_t axis : axes) {
    const int along = dimension_along(o, &Subscript::parallel, axis);
    if (along >= 0 && along != along_main) by_dimension.emplace(along, axis);
  }
  std::vector<size_t> result;
  for (const auto& [dimension, axis] : by_dimension) result.push_back(axis);
  return result;
}

using Tiles = std::vector<int64_t>;  ///< along the axes of a side

/// The tiles of one side.
class Side {
 public:
  Side(const Contraction& c, size_t operand, size_t main, const std::vector<size_t>& axes, const Tiles& wanted,
       bool are_rows, bool has_any_width)
      : axes_(axes.size()),
        row_(row_of(in_memory(c, operand))),
        step_(WarpgroupAtom::step_n(ir::from_halide(c.operands[operand].type))),
        are_rows_(are_rows),
        has_any_width_(has_any_width) {
    for (size_t axis : boxed_axes(c, operand, main, axes)) {
      extents_.push_back(c.parallel[axis].extent);
      wanted_.push_back(wanted[axis]);
    }
    is_across_ = in_memory(c, operand).subscripts.back().reduction[main] == 0;
  }

  /// Whether so many values are not so many more than there are that fewer do as well: 2048 x 32 by 320 took 2.1 us on
  /// an H200 in tiles of 64 columns, and 1.9 of 32.
  bool fills(int64_t values) const {
    constexpr int64_t kStep = 32;
    int64_t all = 1;
    for (int64_t extent : extents_) all *= extent;
    return std::any_of(wanted_.begin(), wanted_.end(), [](int64_t tile) { return tile > 0; }) || values < all + kStep;
  }

  /// Those of so many values that take the fewest blocks; of several of them one with more values along the first axes.
  std::vector<Tiles> best(int64_t values) const {
    constexpr size_t kTried = 2;
    std::vector<Tiles> found;
    add(values, {}, found);
    std::stable_sort(found.begin(), found.end(), [&](const Tiles& a, const Tiles& b) { return blocks(a) < blocks(b); });
    if (found.size() > kTried) found.resize(kTried);
    for (Tiles& tiles : found) tiles.resize(axes_, 1);
    return found;
  }

  /// Numbers of columns that are tried: multiples of 32, of which threads store whole vectors; where they do not fit
  /// the first axis, equal parts of it, or all of it times a part of the second. Where any width is stored as well, all
  /// equal parts of the first axis.
  std::vector<int64_t> widths() const {
    constexpr int64_t kWhole = 32, kParts = 4, kLong = 1024, kNarrow = 40;
    constexpr int64_t kMost = WarpgroupAtom::kMostN;
    std::vector<int64_t> result;
    const auto add = [&](int64_t width) {
      if (width <= kMost && std::find(result.begin(), result.end(), width) == result.end()) result.push_back(width);
    };
    if (extents_.empty()) return result;
    if (std::all_of(wanted_.begin(), wanted_.end(), [](int64_t tile) { return tile > 0; })) {
      const int64_t width = std::accumulate(wanted_.begin(), wanted_.end(), int64_t{1}, std::multiplies<>());
      if (width % step_ == 0) add(width);
      return result;
    }
    for (int64_t width = kWhole; width <= kMost; width += kWhole) add(width);
    for (int64_t width = round_up(kNarrow, step_); has_any_width_ && width <= kMost; width += step_) {
      const bool is_part = round_up(ceil_div(extents_[0], ceil_div(extents_[0], width)), step_) == width;
      if (is_part) add(width);
    }
    if (round_up(extents_[0], step_) % kWhole == 0 || extents_[0] > kLong) return result;
    const int64_t first = ceil_div(extents_[0], kMost);
    for (int64_t parts = first; parts < first + kParts; ++parts) add(round_up(ceil_div(extents_[0], parts), step_));
    for (int64_t part = 2; extents_.size() > 1 && part <= extents_[1]; ++part) {
      if (extents_[1] % part == 0) add(round_up(extents_[0], step_) * part);
    }
    return result;
  }

  int64_t blocks(const Tiles& tiles) const {
    int64_t result = 1;
    for (size_t i = 0; i < extents_.size(); ++i) result *= ceil_div(extents_[i], tiles[i]);
    return result;
  }

 private:
  /// Whether the next axis may have so many of the values that are left. Rows of a thread are counted in bits.
  bool takes(int64_t tile, int64_t left, size_t axis) const {
    if (left % tile != 0 || (wanted_[axis] > 0 && wanted_[axis] != tile)) return false;
    if (are_rows_ && tile != left && !std::has_single_bit(static_cast<uint64_t>(tile))) return false;
    if (axis > 0) return true;
    if (is_across_ && tile != left && tile % row_ != 0) return false;
    return are_rows_ || tile % step_ == 0;
  }

  void add(int64_t left, const Tiles& before, std::vector<Tiles>& found) const {
    if (before.size() == extents_.size()) {
      if (left == 1) found.push_back(before);
      return;
    }
    for (int64_t tile = left; tile >= 1; --tile) {
      if (!takes(tile, left, before.size())) continue;
      Tiles more = before;
      more.push_back(tile);
      add(left / tile, more, found);
    }
  }

  size_t axes_;
  int64_t row_;   ///< elements of a row of shared memory
  int64_t step_;  ///< numbers of columns are multiples of it
  bool are_rows_, has_any_width_, is_across_ = false;
  Tiles extents_, wanted_;
};

/// Instructions of a warpgroup beside each other. Four warpgroups have no registers for more than 128 columns; two of
/// them do, if the one that copies gives them its own.
int64_t row_atoms(const Tiles& rows, const Tiles& columns) {
  constexpr int64_t kRows = 4 * WarpgroupAtom::kM, kColumns = 128;
  const auto all = [](const Tiles& tiles) {
    return std::accumulate(tiles.begin(), tiles.end(), int64_t{1}, std::multiplies<>());
  };
  return all(rows) == kRows && all(columns) > kColumns ? 2 : 1;
}

std::vector<Tiles> tiles_of_rows(const Side& side) {
  std::vector<Tiles> result;
  for (const int64_t warpgroups : {1, 2, 3, 4}) {
    const std::vector<Tiles> tiles = side.best(warpgroups * WarpgroupAtom::kM);
    result.insert(result.end(), tiles.begin(), tiles.end());
    if (!tiles.empty() && side.blocks(tiles[0]) == 1) break;
  }
  return result;
}

std::vector<Tiles> tiles_of_columns(const Side& side) {
  std::vector<Tiles> result;
  for (const int64_t width : side.widths()) {
    if (width > 32 && !side.fills(width)) continue;
    const std::vector<Tiles> tiles = side.best(width);
    result.insert(result.end(), tiles.begin(), tiles.end());
  }
  return result;
}

}  // namespace

TensorCores in_order_of_boxes(const Contraction& c, size_t main, TensorCores cores) {
  const auto sorted = [&](size_t operand, const std::vector<size_t>& axes) {
    std::vector<size_t> result = boxed_axes(c, operand, main, axes);
    for (size_t axis : axes) {
      if (std::find(result.begin(), result.end(), axis) == result.end()) result.push_back(axis);
    }
    return result;
  };
  cores.rows = sorted(cores.a, cores.rows);
  cores.columns = sorted(cores.b, cores.columns);
  return cores;
}

std::vector<WarpgroupShape> warpgroup_shapes(const Contraction& c, size_t main, const TensorCores& cores,
                                             const std::vector<int64_t>& wanted, bool has_any_width) {
  constexpr int64_t kPair = 2, kVector = 8, kWhole = 32;
  std::vector<WarpgroupShape> result;
  const std::vector<Tiles> columns = tiles_of_columns({c, cores.b, main, cores.columns, wanted, false, has_any_width});
  for (const Tiles& of_rows : tiles_of_rows({c, cores.a, main, cores.rows, wanted, true, false})) {
    for (const Tiles& of_columns : columns) {
      const int64_t width = std::accumulate(of_columns.begin(), of_columns.end(), int64_t{1}, std::multiplies<>());
      for (const int64_t group : {kVector, kPair}) {
        if (has_any_width && group == kVector && width % kWhole != 0) continue;  // threads have no whole vectors
        result.push_back({of_rows, of_columns, group, row_atoms(of_rows, of_columns)});
      }
    }
  }
  return result;
}

}  // namespace tc::gpu
