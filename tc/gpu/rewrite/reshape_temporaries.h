#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tc/ir/program.h"

namespace tc::gpu {

/// A program in which readers of temporaries go along two dimensions where they went along one.
struct Reshaped {
  ir::Program program;
  std::vector<std::string> tensors;  ///< those that have a dimension more
};

/// Cuts a dimension of a temporary in two where a reader's subscript is a sum of two indices' multiples, as those that
/// bring columns to heads do. So do the statements that write it, and the temporaries and inputs that they
/// read alike, which lie in memory as before:
///     S(m,n) +=! X(m,k) * W(n,k)                  S(m,n,n_rest) +=! X(m,k) * W(n,n_rest,k)
///     T(m,n) = S(m,n) + b(n)             ==>      T(m,n,n_rest) = S(m,n,n_rest) + b(n,n_rest)
///     Q(h,m,d) = T(m,64 * h + d)                  Q(h,m,d) = T(m,h,d)
/// Nothing if no reader does so, or if another access of the temporary cannot be cut so. Of a specialised Program.
std::optional<Reshaped> reshape_temporary(const ir::Program& program, const std::string& tensor);

/// Cuts a dimension of a tensor into quotients by a divisor and remainders, and so the indices that run along it. Other
/// subscripts that have such an index stay sums. Nothing if an access cannot be cut so.
std::optional<ir::Program> cut_dimension(ir::Program program, const std::string& tensor, size_t dimension,
                                         int64_t divisor);

}  // namespace tc::gpu
