#include "tc/gpu/strategy/contraction/shapes.h"

#include <algorithm>

#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

/// Lengths of a step along the main axis; those that leave a rest only where it is little.
std::vector<int64_t> chunks(const Contraction& c, const MainAxis& main) {
  constexpr int64_t kLong = 8, kWhole = 128, kManySteps = 16;
  const int64_t extent = c.reduction[main.index].extent;
  std::vector<int64_t> any, good;
  for (const int64_t chunk : {1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 128}) {
    if ((chunk == 40 || chunk == 128) && converts_operands(c)) continue;  // measured for 32 bits only
    if (chunk > extent || (chunk < 4 && extent >= kLong && !main.is_inner)) continue;
    if (extent % chunk == 0 || (extent >= kManySteps * chunk && chunk % 16 == 0 && chunk != 48 && !main.is_inner)) {
      good.push_back(chunk);
    } else {
      any.push_back(chunk);
    }
  }
  const bool enough = main.is_inner || (!good.empty() && good.back() >= std::min(extent, kLong));
  if (!enough) good.insert(good.end(), any.begin(), any.end());
  if (extent <= kWhole && std::find(good.begin(), good.end(), extent) == good.end()) good.push_back(extent);
  return good;
}

/// How many results of a thread along axes are tried: powers of two, and what fills a short axis better.
std::vector<int64_t> registers_along(const Contraction& c, const std::vector<size_t>& axes) {
  constexpr int64_t kShort = 64;
  std::vector<int64_t> result = {1, 2, 4, 8};
  const int64_t extent = axes.size() == 1 ? c.parallel[axes[0]].extent : kShort;
  const auto filled = [&](int64_t registers) { return round_up(extent, registers); };
  if (extent < kShort && filled(7) < filled(8)) result.push_back(7);
  return result;
}

}  // namespace

std::vector<Shape> shapes(const Contraction& c, const Classes& classes, const MainAxis& main,
                          const RequestedTile& request) {
  using Choices = std::vector<int64_t>;
  const Choices one = {1};
  const bool one_class = classes.rows.empty(), fixed = request.says_all_tiles();
  const Choices few = one_class || fixed ? one : Choices{8, 16, 32, 64, 128};
  const Choices many = fixed ? one : Choices{8, 16, 32, 64, 128, 256, 512, 1024, 2048};
  const bool given = request.says_all_registers();
  const Choices registers = given || one_class ? one : registers_along(c, classes.rows);
  const Choices more = given ? one : one_class ? Choices{1, 2, 4, 8, 16} : registers_along(c, classes.columns);
  const Choices lengths = request.chunk[main.index] > 0 ? Choices{request.chunk[main.index]} : chunks(c, main);
  const int64_t most_groups = request.groups > 0 ? 1 : 16;
  std::vector<Shape> result;
  for (int64_t rows : few) {
    for (int64_t columns : many) {
      for (int64_t row_registers : registers) {
        for (int64_t column_registers : more) {
          if (row_registers == 7 && column_registers == 7) continue;  // 1.6 times as long as 7 x 4 on an H200
          const int64_t threads = rows / std::min(rows, row_registers) * columns / std::min(columns, column_registers);
          for (const int64_t groups : {1, 2, 4, 5, 8, 10, 16}) {
            if (groups > most_groups || (!fixed && threads * groups > 1024)) break;
            for (int64_t chunk : lengths) {
              if (chunk % groups == 0)
                result.push_back({rows, columns, row_registers, column_registers, groups, chunk});
            }
          }
        }
      }
    }
  }
  if (fixed || given) return result;
  for (const Tiles& tiles : window_tiles(c)) {
    for (int64_t groups = 1; groups <= std::min<int64_t>(most_groups, 4); groups *= 2) {
      for (int64_t chunk : lengths) {
        const bool whole = chunk % groups == 0 && c.reduction[main.index].extent % chunk == 0;
        if (whole) result.push_back({.groups = groups, .chunk = chunk, .tiles = tiles});
      }
    }
  }
  return result;
}

}  // namespace tc::gpu
