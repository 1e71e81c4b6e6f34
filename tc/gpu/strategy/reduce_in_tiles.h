#pragma once

#include <set>
#include <string>

#include "tc/gpu/atoms/device.h"
#include "tc/ir/program.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

struct TileReductions {
  ir::Program program;
  std::set<std::string> whole;  ///< ids of reductions that are not to be cut into parts again
};

/// Cuts reductions of a product's results into parts that are as long as the tiles of its plan, right behind the
/// product, whose blocks then carry them out while the results are in registers; a small launch brings the parts
/// together:
///     C(m,n) +=! A(m,k) * B(k,n)             C(m,n) +=! A(m,k) * B(k,n)
///     L +=! f(C(m,n), T(m,n))        ==>     L_parts(p,q) +=! f(C(128 * p + i, 256 * q + j), T(...))
///                                            L +=! L_parts(p,q)
/// Reductions stay as they are where other statements go through all results, where the options cut them or the
/// product into parts, or where products are. The order is changed, but the same on every run (T5). Of a specialised
/// Program, before split_into_parts().
TileReductions reduce_in_tiles(ir::Program program, const options::MappingOptions& options, const Device& device);

}  // namespace tc::gpu
