#pragma once

#include "tc/tile/program.h"

namespace tc::gpu {

/// Unrolls loops with constant trip counts, inner ones first, as long as no more than `most` copies of a statement are
/// laid out.
tile::NodePtr unroll_loops(const tile::NodePtr& body, int64_t most);

}  // namespace tc::gpu
