#include "tc/tile/layout_isl.h"

#include <fmt/format.h>
#include <isl/map.h>

#include "tc/support/check.h"

namespace tc::tile {
namespace {

isl::map parsed(isl::ctx ctx, const std::string& text) {
  isl_map* map = isl_map_read_from_str(ctx.get(), text.c_str());
  TC_CHECK(map, "isl does not take '{}'", text);
  return isl::manage(map);
}

/// The offset of the coordinate `name` of a mode, as isl writes it.
std::string offset_text(const std::string& name, const Layout& mode) {
  const std::vector<int64_t> extents = flatten(mode.shape());
  const std::vector<int64_t> strides = flatten(mode.stride());
  std::string text = "0";
  int64_t counted = 1;
  for (size_t i = 0; i < extents.size(); ++i) {
    const std::string digit = fmt::format("floor({}/{})", name, counted);
    const bool last = i + 1 == extents.size();
    text += last ? fmt::format(" + {}*{}", strides[i], digit)
                 : fmt::format(" + {}*({} mod {})", strides[i], digit, extents[i]);
    counted *= extents[i];
  }
  return text;
}

/// x xor y, of single bits, is x + y mod 2.
std::string swizzle_text(const Swizzle& swizzle) {
  std::string text = "o";
  for (int b = 0; b < swizzle.bits; ++b) {
    const int64_t low = int64_t{1} << (swizzle.base + b);
    const int64_t high = low << swizzle.shift;
    const std::string low_bit = fmt::format("(floor(o/{}) mod 2)", low);
    const std::string high_bit = fmt::format("(floor(o/{}) mod 2)", high);
    text += fmt::format(" + {0}*(({1} + {2}) mod 2) - {0}*{1}", low, low_bit, high_bit);
  }
  return fmt::format("{{ [o] -> [{}] }}", text);
}

}  // namespace

isl::map to_isl(isl::ctx ctx, const Layout& layout, const std::optional<Swizzle>& swizzle) {
  std::string names;
  std::string ranges = "true";
  std::string offset = "0";
  for (int i = 0; i < layout.rank(); ++i) {
    const std::string name = fmt::format("c{}", i);
    names += (i ? ", " : "") + name;
    ranges += fmt::format(" and 0 <= {} < {}", name, product(layout.shape()[i]));
    offset += " + " + offset_text(name, layout[i]);
  }
  const isl::map plain = parsed(ctx, fmt::format("{{ [{}] -> [{}] : {} }}", names, offset, ranges));
  return swizzle ? plain.apply_range(parsed(ctx, swizzle_text(*swizzle))) : plain;
}

isl::map to_isl_1d(isl::ctx ctx, const Layout& layout) {
  const std::string text = fmt::format("{{ [i] -> [{}] : 0 <= i < {} }}", offset_text("i", layout), layout.size());
  return parsed(ctx, text);
}

}  // namespace tc::tile
