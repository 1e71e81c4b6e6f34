#include "tc/tile/matrix_descriptor.h"

namespace tc::tile {
namespace {

/// A mode as extents and strides, without extents of 1.
struct Mode {
  std::vector<int64_t> extents, strides;
};

Mode mode_of(const Tensor& tensor, int dimension) {
  const Layout layout = tensor.layout[dimension];
  const std::vector<int64_t> extents = flatten(layout.shape()), strides = flatten(layout.stride());
  Mode mode;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1) continue;
    mode.extents.push_back(extents[i]);
    mode.strides.push_back(strides[i]);
  }
  return mode;
}

bool is_plain(const Mode& mode, int64_t extent, int64_t stride) {
  if (extent == 1) return true;
  return mode.extents.size() == 1 && mode.extents[0] >= extent && mode.strides[0] == stride;
}

}  // namespace

uint64_t MatrixDescriptor::bits(uint64_t address) const {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  const auto field = [](int64_t bytes) { return (static_cast<uint64_t>(bytes) & 0x3ffff) >> 4; };
  return ((address & 0x3ffff) >> 4) | field(leading) << 16 | field(stride) << 32 | kSwizzle128;
}

std::optional<MatrixDescriptor> descriptor_of(const Tensor& tensor, const MatrixTile& tile, int64_t mn, int64_t k) {
  const int64_t bytes = tensor.type.bytes(), row = row_elements(bytes);
  if (tensor.memory != Memory::kShared || bytes > 4 || tensor.swizzle != row_swizzle(bytes)) return {};
  const Mode along_mn = mode_of(tensor, tile.mn_dimension), along_k = mode_of(tensor, tile.k_dimension);
  if (k <= row && is_plain(along_k, k, 1) && is_plain(along_mn, mn, row)) return MatrixDescriptor{};
  if (bytes != 2 || !is_plain(along_k, k, row)) return {};
  MatrixDescriptor result = {.mn_major = true, .slice = 16 * row * bytes};
  if (is_plain(along_mn, mn, 1) && mn <= row) return result;
  const bool slabs = along_mn.extents.size() == 2 && along_mn.extents[0] == row && along_mn.strides[0] == 1 &&
                     along_mn.extents[0] * along_mn.extents[1] >= mn;
  if (!slabs) return {};
  result.leading = along_mn.strides[1] * bytes;
  return result;
}

}  // namespace tc::tile
