#pragma once

#include <string>

#include "tc/ir/names.h"
#include "tc/ir/program.h"
#include "tc/poly/ranged.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// Combines a register of each of `lanes` threads that follow each other along x: then all hold the result, each the
/// same bits. `lanes` is a power of two; all threads of the block, which has `rows` such groups along y, come here.
/// Within warps by shuffles; of several warps by way of shared memory, which is added to `shared`, and a barrier.
tile::NodePtr reduce_lanes(const tile::Tensor& partial, ir::Assign assign, int64_t lanes, int64_t rows,
                           ir::Names& names, std::vector<tile::Tensor>& shared);

}  // namespace tc::gpu
