#include "tc/tile/steps.h"

#include <algorithm>

#include "tc/ir/halide_compat.h"
#include "tc/tile/digits.h"

namespace tc::tile {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

Expr like(const Expr& model, const Expr& e) { return model.type() == e.type() ? e : hi::Cast::make(model.type(), e); }

}  // namespace

Expr plus(const Expr& a, const Expr& b) { return a + like(a, b); }
Expr plus(const Expr& a, int64_t b) { return b == 0 ? a : a + hi::make_const(a.type(), b); }
Expr number(int64_t value) { return hi::make_const(Halide::Int(32), value); }

std::optional<Steps> steps_of(const Points& points) {
  Steps result{.first = points.at(0), .steps = {}};
  std::vector<std::vector<int64_t>> rest;  // behind the first one
  for (const Exprs& point : points) {
    std::vector<int64_t>& apart = rest.emplace_back();
    for (size_t i = 0; i < point.size(); ++i) {
      const Expr difference = hi::simplify(point[i] - like(point[i], points[0][i]));
      const int64_t* constant = ir::constant_int(difference);
      if (!constant) return std::nullopt;
      apart.push_back(*constant);
    }
  }
  const auto is_sum = [](const std::vector<int64_t>& sum, const std::vector<int64_t>& start,
                         const std::vector<int64_t>& step, size_t times) {
    for (size_t i = 0; i < sum.size(); ++i) {
      if (sum[i] != start[i] + static_cast<int64_t>(times) * step[i]) return false;
    }
    return true;
  };
  while (rest.size() > 1) {
    const std::vector<int64_t> step = rest[1];
    size_t count = 1;
    while (count < rest.size() && is_sum(rest[count], rest[0], step, count)) ++count;
    while (rest.size() % count != 0) --count;
    if (count < 2) return std::nullopt;
    std::vector<std::vector<int64_t>> further;
    for (size_t i = 0; i < rest.size(); ++i) {
      if (i % count == 0) further.push_back(rest[i]);
      if (!is_sum(rest[i], further.back(), step, i % count)) return std::nullopt;
    }
    result.steps.emplace_back(static_cast<int64_t>(count), step);
    rest = std::move(further);
  }
  return result;
}

Exprs at_step(const Steps& steps, const Expr& index) {
  Exprs point = steps.first;
  int64_t before = 1;
  for (const auto& [count, by] : steps.steps) {
    const Expr digit = index / number(before) % number(count);
    before *= count;
    for (size_t i = 0; i < point.size(); ++i) {
      if (by[i] != 0) point[i] = plus(point[i], digit * number(by[i]));
    }
  }
  return point;
}

std::optional<TilePlace> tile_place(const Layout& mode, const Expr& index, int rows) {
  TilePlace result{number(0), number(0)};
  const std::vector<int64_t> extents = flatten(mode.shape()), strides = flatten(mode.stride());
  int64_t before = 1;
  for (size_t i = 0; i < extents.size(); ++i) {
    const Expr digit = index / number(before) % number(extents[i]);
    before *= extents[i];
    if (strides[i] % rows == 0) {
      result.column = result.column + digit * number(strides[i] / rows);
    } else if (strides[i] * extents[i] <= rows) {
      result.row = result.row + digit * number(strides[i]);
    } else {
      return std::nullopt;
    }
  }
  return result;
}

std::optional<Exprs> coordinates_behind(const Tensor& tensor, const Path& path, Exprs first, const Expr& offset,
                                        int64_t last) {
  struct Mode {
    int64_t stride, extent, before;
    size_t dimension;
  };
  std::vector<Mode> modes;
  for (int d = 0; d < tensor.rank(); ++d) {
    const std::vector<int64_t> extents = flatten(tensor.layout[d].shape());
    const std::vector<int64_t> strides = flatten(tensor.layout[d].stride());
    int64_t before = 1;
    for (size_t i = 0; i < extents.size(); ++i) {
      if (extents[i] > 1) modes.push_back({strides[i], extents[i], before, static_cast<size_t>(d)});
      before *= extents[i];
    }
  }
  std::ranges::sort(modes, {}, &Mode::stride);
  const Exprs begin = first;
  int64_t next = 1;
  for (const Mode& mode : modes) {
    if (mode.stride > last) break;
    if (mode.stride != next) return std::nullopt;
    next = mode.stride * mode.extent;
    const int64_t range = std::min(mode.extent, last / mode.stride + 1);
    const int64_t unit = mode.before * range;
    Expr& at = first[mode.dimension];
    const Expr own = without_lets(path, begin[mode.dimension]);
    const Expr rest = hi::simplify(own % hi::make_const(own.type(), unit));
    if (mode.extent % range != 0 || !hi::is_const_zero(rest)) return std::nullopt;
    Expr digit = offset / number(mode.stride);
    if (next <= last) digit = digit % number(mode.extent);
    at = plus(at, digit * number(mode.before));
  }
  if (next <= last) return std::nullopt;
  return first;
}

}  // namespace tc::tile
