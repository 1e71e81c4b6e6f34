#pragma once

#include <functional>
#include <set>
#include <string>

#include "tc/gpu/atoms/device.h"
#include "tc/ir/program.h"

namespace tc::gpu {

struct ExponentialSplit {
  ir::Program program;
  std::set<std::string> whole;  ///< the ids of reductions that are not to be cut again
};

/// Where a maximum, or minimum, and sums of exponentials of its values' distances from it have too few results to keep
/// the device busy: all of them in parts, each around the part's own maximum, so that one pass over memory makes both.
///     top(d) max=! x(n,d)                        top_parts(p,d) max=! x(1000 * p + n,d)
///     total(d) +=! exp(x(n,d) - top(d))   ==>    total_parts(p,d) +=! exp(x(1000 * p + n,d) - number(top_parts(p,d)))
///                                                top(d) max=! top_parts(p,d)
///                                                total(d) +=! total_parts(p,d) * exp(top_parts(p,d) - top(d))
/// number(-inf) is the least number. A part of nothing but -inf then adds 0, as it does in the source if another part
/// has more. If none has, the last line is NaN, as in the source. Weighted sums are likewise (exponential_in()). Many
/// parts are put together in parts themselves. `is_apart` says of a tensor that its statements are not to be split. Of
/// a specialised Program, after recompute_temporaries() and flatten_dims(), before split_into_parts().
ExponentialSplit split_exponentials(ir::Program program, const Device& device,
                                    const std::function<bool(const ir::Program&, const std::string&)>& is_apart);

}  // namespace tc::gpu
