#include "tc/gpu/strategy/contraction/windows.h"
#include "tc/support/round.h"

#include <algorithm>

namespace tc::gpu {
namespace {

constexpr int64_t kLeastSums = 6, kMostSums = 48, kMostAlong = 9;
constexpr int64_t kLeastThreads = 32, kMostThreads = 384;
constexpr int64_t kMostImages = 8, kFilters = 32;
constexpr double kWaste = 1.08;  ///< of points computed, to those that exist

/// Neighbours that a thread may have along an axis of `extent`.
std::vector<int64_t> runs_along(int64_t extent) {
  std::vector<int64_t> result;
  for (int64_t run = 1; run <= std::min(extent, kMostAlong); ++run) {
    const auto covered = static_cast<double>(ceil_div(extent, run) * run);
    if (covered <= kWaste * static_cast<double>(extent)) result.push_back(run);
  }
  return result;
}

/// Tiles of whole runs: all of the axis, or a part of it, that leaves little over.
std::vector<int64_t> tiles_along(int64_t extent, int64_t run) {
  constexpr int64_t kMostRuns = 32;
  const int64_t all = ceil_div(extent, run);
  std::vector<int64_t> result;
  for (const int64_t parts : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
    const int64_t runs = ceil_div(all, parts), tile = runs * run;
    const auto covered = static_cast<double>(ceil_div(extent, tile) * tile);
    const bool is_new = result.empty() || result.back() != tile;
    if (is_new && runs <= kMostRuns && covered <= kWaste * static_cast<double>(extent)) result.push_back(tile);
  }
  return result;
}

bool is_window(const Operand& operand, size_t axis) {
  return std::any_of(operand.subscripts.begin(), operand.subscripts.end(), [&](const Subscript& s) {
    return s.parallel[axis] != 0 &&
           std::any_of(s.reduction.begin(), s.reduction.end(), [](int64_t by) { return by != 0; });
  });
}

class Enumerator {
 public:
  explicit Enumerator(const Contraction& c) : c_(c) {
    for (size_t axis = c.parallel.size(); axis-- > 0;) {
      bool shared = false;
      for (const Operand& operand : c.operands) shared = shared || !is_read_along(operand, axis);
      if (slides(c, axis)) {
        sliding_.push_back(axis);
      } else if (shared) {
        others_.push_back(axis);
      } else if (axis + 1 == c.parallel.size()) {
        contiguous_ = true;
      }
    }
    tiles_.block.assign(c.parallel.size(), 1);
    tiles_.thread.assign(c.parallel.size(), 1);
  }

  std::vector<Tiles> run() {
    if (sliding_.empty()) return {};
    if (!contiguous_) {
      window(0);
      return std::move(found_);
    }
    const size_t last = c_.parallel.size() - 1;
    for (const int64_t vector : {1, 4}) {
      for (const int64_t tile : {32, 64}) {
        if (tile > c_.parallel[last].extent || c_.parallel[last].extent % vector != 0) continue;
        tiles_.block[last] = tile;
        tiles_.thread[last] = vector;
        window(0);
      }
    }
    return std::move(found_);
  }

 private:
  static bool is_read_along(const Operand& operand, size_t axis) {
    return std::any_of(operand.subscripts.begin(), operand.subscripts.end(),
                       [&](const Subscript& s) { return s.parallel[axis] != 0; });
  }
  int64_t sums() const {
    int64_t result = 1;
    for (int64_t count : tiles_.thread) result *= count;
    return result;
  }
  int64_t threads() const {
    int64_t result = 1;
    for (size_t axis = 0; axis < tiles_.block.size(); ++axis) result *= tiles_.block[axis] / tiles_.thread[axis];
    return result;
  }

  /// The two innermost axes of a window get registers; what lies around has one value in a block.
  void window(size_t number) {
    if (number == std::min<size_t>(sliding_.size(), 2)) {
      is_whole_ = std::all_of(sliding_.begin(), sliding_.end(),
                              [&](size_t axis) { return tiles_.block[axis] >= c_.parallel[axis].extent; });
      return other(0);
    }
    const size_t axis = sliding_[number];
    for (const int64_t run : runs_along(c_.parallel[axis].extent)) {
      tiles_.thread[axis] = run;
      for (const int64_t tile : tiles_along(c_.parallel[axis].extent, run)) {
        tiles_.block[axis] = tile;
        if (sums() <= kMostSums && threads() <= kMostThreads) window(number + 1);
      }
    }
    tiles_.block[axis] = tiles_.thread[axis] = 1;
  }

  /// How many images a block may have: one, where it has a part of each.
  std::vector<int64_t> images(int64_t extent) const {
    std::vector<int64_t> result = {1};
    if (!is_whole_) return result;
    for (int64_t count = 2; count <= std::min(extent, kMostImages); count *= 2) result.push_back(count);
    if (extent <= kMostImages && extent != result.back()) result.push_back(extent);
    return result;
  }

  /// Axes that use the image again, as filters do, get registers too; of images there are as many as threads want.
  void other(size_t number) {
    if (number == others_.size()) {
      if (threads() >= kLeastThreads && sums() >= kLeastSums) found_.push_back(tiles_);
      return;
    }
    const size_t axis = others_[number];
    const int64_t extent = c_.parallel[axis].extent;
    const bool is_image = is_read_along(image(), axis);
    for (const int64_t run : {1, 2, 4, 8}) {
      if (extent % run != 0 || (is_image && run > 1)) continue;
      tiles_.thread[axis] = run;
      for (const int64_t tile : is_image ? images(extent) : std::vector{std::min(extent, kFilters)}) {
        if (tile % run != 0) continue;
        tiles_.block[axis] = tile;
        if (sums() <= kMostSums && threads() <= kMostThreads) other(number + 1);
      }
    }
    tiles_.block[axis] = tiles_.thread[axis] = 1;
  }

  /// The operand over which the innermost window slides.
  const Operand& image() const {
    return *std::find_if(c_.operands.begin(), c_.operands.end(),
                         [&](const Operand& operand) { return is_window(operand, sliding_[0]); });
  }

  const Contraction& c_;
  std::vector<size_t> sliding_, others_;  ///< innermost first; of the others, those along which an operand is shared
  bool contiguous_ = false;               ///< the last axis neither slides nor shares
  bool is_whole_ = false;                 ///< a block has all of the sliding axes
  Tiles tiles_;
  std::vector<Tiles> found_;
};

}  // namespace

bool slides(const Contraction& contraction, size_t axis) {
  return std::any_of(contraction.operands.begin(), contraction.operands.end(),
                     [&](const Operand& operand) { return is_window(operand, axis); });
}

std::vector<Tiles> window_tiles(const Contraction& contraction) { return Enumerator(contraction).run(); }

}  // namespace tc::gpu
