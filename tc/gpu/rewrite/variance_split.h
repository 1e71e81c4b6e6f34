#pragma once

#include <set>
#include <string>

#include "tc/gpu/atoms/device.h"
#include "tc/ir/program.h"

namespace tc::gpu {

struct VarianceSplit {
  ir::Program program;
  std::set<std::string> over_parts;  ///< the ids of reductions that go over one part each
};

/// Where a sum and the squares of the same values' distances from a mean, a positive constant's multiple of the sum, go
/// over rows that no block holds, or that are too few for the device: both in parts that a block holds, so that memory
/// is read once.
///     s(n) +=! x(n,k)                   s_parts(n,p) +=! x(n, 4000 * p + k)
///     m(n) = s(n) / K                   s_center(n,p) = s_parts(n,p) / 4000
///     v(n) +=! (x(n,k) - m(n)) *   ==>  v_first(n,p) +=! x(n, 4000 * p + k) - s_center(n,p)
///              (x(n,k) - m(n))          v_parts(n,p) +=! (x(n, 4000 * p + k) - s_center(n,p)) ^ 2
///                                       s(n) +=! s_parts(n,p)
///                                       m(n) = s(n) / K
///                                       v(n) +=! v_parts(n,p) + d * (4000 * d + 2 * v_first(n,p))
///                                                                       where d = s_center(n,p) - m(n)
/// (Chan, Golub and LeVeque 1983, "Algorithms for computing the sample variance", (2.1) and (1.7)). The last sum is
/// v(n) for any m and any finite centers; centers near the means keep it free of cancellation. Infinities and NaNs go
/// where they do in the source because m is a multiple of s: where a part has one, or overflows, its center is not
/// finite, and neither is m. Around another m (x - m)^2 may be infinite where (x - s_center)^2 is NaN. Of a specialised
/// Program, after recompute_temporaries() and flatten_dims(), before split_into_parts(), which is to leave the
/// reductions over parts alone.
VarianceSplit split_variances(ir::Program program, const Device& device);

}  // namespace tc::gpu
