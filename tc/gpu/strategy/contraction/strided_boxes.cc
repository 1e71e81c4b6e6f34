#include "tc/gpu/strategy/contraction/strided_boxes.h"

#include <algorithm>

#include "tc/gpu/strategy/contraction/warpgroups.h"

namespace tc::gpu {
namespace {

/// The step of a dimension's boxes, if the map has room for all remainders.
int64_t step_of(const Operand& o, size_t dimension) {
  constexpr int64_t kMost = 8;
  const auto moves = [](int64_t by) { return by != 0; };
  const std::vector<int64_t>& by = o.subscripts[dimension].parallel;
  const std::vector<int64_t>& along_row = o.subscripts.back().parallel;
  if (dimension + 1 == o.subscripts.size() || std::any_of(along_row.begin(), along_row.end(), moves)) return 1;
  if (std::count_if(by.begin(), by.end(), moves) != 1) return 1;
  const int64_t step = *std::find_if(by.begin(), by.end(), moves);
  const int64_t end =
      o.inside.empty() ? o.extents[dimension] : o.inside[dimension].greatest.value_or(o.extents[dimension] - 1) + 1;
  const bool divides =
      step > 1 && o.extents[dimension] % step == 0 && first_inside(o, dimension) % step == 0 && end % step == 0;
  return divides && step <= kMost ? step : 1;
}

}  // namespace

bool has_remainders_in_rows(const Operand& o, size_t dimension) {
  const int64_t row = o.extents.back();
  const bool is_whole = o.inside.empty() || (!o.inside.back().least && !o.inside.back().greatest);
  return dimension + 2 == o.subscripts.size() && o.strides[dimension] == row && row % row_of(o) == 0 && is_whole;
}

int64_t box_step(const Operand& o, size_t dimension) {
  constexpr size_t kMostDimensions = 5;
  size_t dimensions = o.subscripts.size();
  for (size_t d = 0; d < o.subscripts.size(); ++d) {
    if (step_of(o, d) > 1 && !has_remainders_in_rows(o, d)) ++dimensions;
  }
  return dimensions <= kMostDimensions ? step_of(o, dimension) : 1;
}

bool has_remainders(const Operand& o) {
  for (size_t d = 0; d < o.subscripts.size(); ++d) {
    if (box_step(o, d) > 1) return true;
  }
  return false;
}

}  // namespace tc::gpu
