#pragma once

#include <functional>
#include <string>

#include "tc/ir/program.h"

namespace tc::gpu {

/// Whether a tensor has the results of a product.
using IsOfProduct = std::function<bool(const ir::Program&, const std::string& tensor)>;

/// Makes a reduction of the maximum (minimum) of neighbours that a text lists:
///     P(m,n) = max(C(2 * m,n), C(2 * m + 1,n))
///         ==>   P(m,n) max=! C(2 * m + part,n)        part in 0:2
/// Terms are alike but for constants in one or two dimensions of what they read, of which each combination occurs once.
/// So pools of a product's rows are reductions in its tiles, however they are spelled. Neighbours along the last
/// dimension stay: a thread has them in its registers (pooled.h). On a specialised Program.
ir::Program gather_extremes(ir::Program program, const IsOfProduct& is_of_product);

}  // namespace tc::gpu
