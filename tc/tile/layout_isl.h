#pragma once

#include <isl/cpp.h>

#include <optional>

#include "tc/tile/layout.h"

namespace tc::tile {

/// { [c0, ..., cn-1] -> [offset] }: the layout as a relation from the coordinates of its modes (each counted by one
/// integer, however it is nested) to offsets, and through the swizzle.
isl::map to_isl(isl::ctx ctx, const Layout& layout, const std::optional<Swizzle>& swizzle = std::nullopt);

/// { [i] -> [offset] }: the layout as a function of one integer.
isl::map to_isl_1d(isl::ctx ctx, const Layout& layout);

}  // namespace tc::tile
