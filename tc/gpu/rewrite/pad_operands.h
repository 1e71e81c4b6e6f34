#pragma once

#include <functional>
#include <vector>

#include "tc/ir/program.h"

namespace tc::gpu {

/// What a statement of a program would be in another, which has the temporaries.
struct PaddedProduct {
  const ir::Program& before;
  const ir::Statement& whole;
  const ir::Program& after;
  const ir::Statement& padded;
  const std::vector<ir::Tensor>& temporaries;
};
/// Whether a statement is to read its operands from temporaries.
using IsPadded = std::function<bool(const PaddedProduct&)>;

/// Copies operands whose subscripts are clamped, wrapped or reflected at borders, divided, or reversed, into
/// temporaries over the linear forms within their subscripts, so that blocks have boxes of them in shared memory:
///     O(f,x) +=! I(c,clamp(x + r - 1, 0, W - 1)) * F(f,c,2 - r)
///         ==>   I_padded(d0,d1) = I(d0,clamp(d1 - 1, 0, W - 1))
///               F_padded(d0,d1,d2) = F(d0,d1,2 - d2)
///               O(f,x) +=! I_padded(c,x + r) * F_padded(f,c,r)
/// Reduction indices are counted from their ends where that leaves fewer elements to copy. Only where a temporary has
/// not many more elements than the tensor that it copies. Of a statement that is a contraction by itself only reversed
/// reads are copied. Subscripts that data decide stay (gather_rows.h). Of a specialised Program.
ir::Program pad_operands(ir::Program program,
                         const std::function<bool(const ir::Program&, const ir::Statement&)>& is_contraction,
                         const IsPadded& is_padded);

}  // namespace tc::gpu
