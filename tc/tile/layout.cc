#include "tc/tile/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tc/support/check.h"
#include "tc/support/round.h"

namespace tc::tile {
namespace {

/// One leaf of a layout.
struct Mode {
  int64_t extent;
  int64_t stride;
};

std::vector<Mode> modes_of(const Layout& layout) {
  const std::vector<int64_t> extents = flatten(layout.shape());
  const std::vector<int64_t> strides = flatten(layout.stride());
  std::vector<Mode> modes;
  for (size_t i = 0; i < extents.size(); ++i) modes.push_back({extents[i], strides[i]});
  return modes;
}

/// 4:2, (4,8):(2,8), or 1:0 for no modes at all.
Layout layout_of(const std::vector<Mode>& modes) {
  if (modes.empty()) return Layout(1, 0);
  if (modes.size() == 1) return Layout(modes[0].extent, modes[0].stride);
  std::vector<IntTuple> shape;
  std::vector<IntTuple> stride;
  for (const Mode& mode : modes) {
    shape.emplace_back(mode.extent);
    stride.emplace_back(mode.stride);
  }
  return Layout(std::move(shape), std::move(stride));
}

std::vector<Mode> coalesced_modes(const Layout& layout) {
  std::vector<Mode> result;
  for (const Mode& mode : modes_of(layout)) {
    if (mode.extent == 1) continue;
    if (!result.empty() && mode.stride == result.back().extent * result.back().stride) {
      result.back().extent *= mode.extent;
    } else {
      result.push_back(mode);
    }
  }
  return result;
}

void check_valid(const IntTuple& shape, const IntTuple& stride) {
  TC_CHECK(congruent(shape, stride), "shape {} and stride {} are not nested alike", to_string(shape),
           to_string(stride));
  for (int64_t extent : flatten(shape)) TC_CHECK(extent > 0, "a layout has no extent {}", extent);
}

/// Strides for `shape` that start at `next` and grow mode by mode; `next` ends up at the product.
IntTuple compact_strides(const IntTuple& shape, int64_t& next, bool last_fastest) {
  if (shape.is_leaf()) {
    const int64_t stride = next;
    next *= shape.value();
    return stride;
  }
  std::vector<IntTuple> strides(shape.rank());
  for (int i = 0; i < shape.rank(); ++i) {
    const int mode = last_fastest ? shape.rank() - 1 - i : i;
    strides[mode] = compact_strides(shape[mode], next, last_fastest);
  }
  return strides;
}

int64_t offset_of(const IntTuple& shape, const IntTuple& stride, int64_t index) {
  if (shape.is_leaf()) return index * stride.value();
  int64_t offset = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t extent = product(shape[i]);
    const bool last = i + 1 == shape.rank();
    offset += offset_of(shape[i], stride[i], last ? index : index % extent);
    index /= extent;
  }
  return offset;
}

int64_t offset_of(const IntTuple& shape, const IntTuple& stride, const IntTuple& coordinate) {
  if (coordinate.is_leaf()) return offset_of(shape, stride, coordinate.value());
  TC_CHECK(!shape.is_leaf() && coordinate.rank() == shape.rank(), "coordinate {} does not fit shape {}",
           to_string(coordinate), to_string(shape));
  int64_t offset = 0;
  for (int i = 0; i < shape.rank(); ++i) offset += offset_of(shape[i], stride[i], coordinate[i]);
  return offset;
}

/// A o extent:stride, for the coalesced modes of A. Adds to `digits` the largest coordinate reached in each mode of A.
std::optional<std::vector<Mode>> compose_mode(const std::vector<Mode>& a, Mode b, std::vector<int64_t>& digits) {
  if (b.extent == 1) return std::vector<Mode>{{1, 0}};
  if (b.stride == 0) return std::vector<Mode>{{b.extent, 0}};
  std::vector<Mode> result;
  for (size_t i = 0; i < a.size() && b.extent > 1; ++i) {
    const bool last = i + 1 == a.size();
    if (last) {
      result.push_back({b.extent, b.stride * a[i].stride});
      return result;
    }
    if (b.stride % a[i].extent == 0) {  // steps over this mode entirely
      b.stride /= a[i].extent;
      continue;
    }
    if (a[i].extent % b.stride != 0) return std::nullopt;
    const int64_t taken = std::min(a[i].extent / b.stride, b.extent);
    if (b.extent % taken != 0) return std::nullopt;
    if (taken > 1) result.push_back({taken, b.stride * a[i].stride});
    digits[i] += (taken - 1) * b.stride;
    b.extent /= taken;
    b.stride = 1;
  }
  if (a.empty()) result.push_back({b.extent, 0});
  return result;
}

std::optional<Layout> compose_shape(const std::vector<Mode>& a, const IntTuple& shape, const IntTuple& stride,
                                    std::vector<int64_t>& digits) {
  if (shape.is_leaf()) {
    std::optional<std::vector<Mode>> modes = compose_mode(a, {shape.value(), stride.value()}, digits);
    if (!modes) return std::nullopt;
    return layout_of(*modes);
  }
  std::vector<Layout> modes;
  for (int i = 0; i < shape.rank(); ++i) {
    std::optional<Layout> mode = compose_shape(a, shape[i], stride[i], digits);
    if (!mode) return std::nullopt;
    modes.push_back(*mode);
  }
  return concatenate(modes);
}

}  // namespace

Layout::Layout(IntTuple shape, IntTuple stride) : shape_(std::move(shape)), stride_(std::move(stride)) {
  check_valid(shape_, stride_);
}

Layout Layout::column_major(const IntTuple& shape) {
  int64_t next = 1;
  return Layout(shape, compact_strides(shape, next, false));
}

Layout Layout::row_major(const IntTuple& shape) {
  int64_t next = 1;
  return Layout(shape, compact_strides(shape, next, true));
}

Layout Layout::operator[](int i) const { return Layout(shape_[i], stride_[i]); }

int64_t Layout::cosize() const {
  int64_t largest = 0;
  for (const Mode& mode : modes_of(*this)) largest += (mode.extent - 1) * std::max<int64_t>(mode.stride, 0);
  return largest + 1;
}

int64_t Layout::operator()(int64_t index) const { return offset_of(shape_, stride_, index); }

int64_t Layout::operator()(const IntTuple& coordinate) const { return offset_of(shape_, stride_, coordinate); }

std::string to_string(const Layout& layout) { return to_string(layout.shape()) + ":" + to_string(layout.stride()); }

Layout concatenate(const std::vector<Layout>& modes) {
  std::vector<IntTuple> shape;
  std::vector<IntTuple> stride;
  for (const Layout& mode : modes) {
    shape.push_back(mode.shape());
    stride.push_back(mode.stride());
  }
  return Layout(std::move(shape), std::move(stride));
}

Layout coalesce(const Layout& layout) { return layout_of(coalesced_modes(layout)); }

std::optional<Layout> composition(const Layout& a, const Layout& b) {
  const std::vector<Mode> modes = coalesced_modes(a);
  std::vector<int64_t> digits(modes.size(), 0);
  std::optional<Layout> result = compose_shape(modes, b.shape(), b.stride(), digits);
  // The modes of B were composed one by one, which is right as long as their sum carries nowhere from one mode
  // of A into the next.
  for (size_t i = 0; i + 1 < modes.size(); ++i) {
    if (digits[i] >= modes[i].extent) return std::nullopt;
  }
  return result;
}

std::optional<Layout> complement(const Layout& layout, int64_t size) {
  std::vector<Mode> modes = coalesced_modes(layout);
  std::sort(modes.begin(), modes.end(), [](const Mode& x, const Mode& y) { return x.stride < y.stride; });
  std::vector<Mode> result;
  int64_t reached = 1;  // every offset below it is hit by exactly one pair of coordinates
  for (const Mode& mode : modes) {
    if (mode.stride <= 0 || mode.stride % reached != 0) return std::nullopt;
    if (mode.stride > reached) result.push_back({mode.stride / reached, reached});
    reached = mode.stride * mode.extent;
  }
  const int64_t rest = ceil_div(size, reached);
  if (rest > 1) result.push_back({rest, reached});
  return coalesce(layout_of(result));
}

std::optional<Layout> logical_divide(const Layout& a, const Layout& tile) {
  const std::optional<Layout> rest = complement(tile, a.size());
  if (!rest) return std::nullopt;
  return composition(a, concatenate({tile, *rest}));
}

std::optional<Layout> logical_product(const Layout& a, const Layout& b) {
  const std::optional<Layout> rest = complement(a, a.size() * b.cosize());
  if (!rest) return std::nullopt;
  const std::optional<Layout> copies = composition(*rest, b);
  if (!copies) return std::nullopt;
  return concatenate({a, *copies});
}

Layout right_inverse(const Layout& layout) {
  struct Entry {
    Mode mode;
    int64_t index_stride;
  };
  std::vector<Entry> entries;
  int64_t index_stride = 1;
  for (const Mode& mode : modes_of(layout)) {
    entries.push_back({mode, index_stride});
    index_stride *= mode.extent;
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& x, const Entry& y) { return x.mode.stride < y.mode.stride; });
  std::vector<Mode> result;
  int64_t next = 1;
  for (const Entry& entry : entries) {
    if (entry.mode.extent == 1 || entry.mode.stride < next) continue;
    if (entry.mode.stride != next) break;
    result.push_back({entry.mode.extent, entry.index_stride});
    next *= entry.mode.extent;
  }
  return coalesce(layout_of(result));
}

std::optional<Layout> left_inverse(const Layout& layout) {
  const std::optional<Layout> gaps = complement(layout, layout.cosize());
  if (!gaps) return std::nullopt;
  return right_inverse(concatenate({layout, *gaps}));
}

std::optional<Layout> upcast(const Layout& layout, int64_t factor) {
  std::vector<Mode> result;
  int64_t shrink = factor;  // still to be taken out of the unit-stride modes
  for (Mode mode : modes_of(layout)) {
    if (mode.stride == 0) {
      result.push_back(mode);
    } else if (mode.stride % factor == 0) {
      result.push_back({mode.extent, mode.stride / factor});
    } else {
      const int64_t within = std::gcd(factor / std::gcd(factor, mode.stride), mode.extent);
      if (mode.stride * within % factor != 0) return std::nullopt;
      if (shrink % within != 0) return std::nullopt;
      shrink /= within;
      result.push_back({mode.extent / within, mode.stride * within / factor});
    }
  }
  if (shrink != 1) return std::nullopt;
  return layout_of(result);
}

Layout downcast(const Layout& layout, int64_t factor) {
  std::vector<Mode> result;
  for (const Mode& mode : modes_of(layout)) {
    if (mode.stride == 1) {
      result.push_back({mode.extent * factor, 1});
    } else {
      result.push_back({mode.extent, mode.stride * factor});
    }
  }
  return layout_of(result);
}

int64_t Swizzle::operator()(int64_t offset) const {
  const int64_t mask = ((int64_t{1} << bits) - 1) << (base + shift);
  return offset ^ ((offset & mask) >> shift);
}

std::string to_string(const Swizzle& swizzle) {
  return fmt::format("Sw<{},{},{}>", swizzle.bits, swizzle.base, swizzle.shift);
}

}  // namespace tc::tile
