#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tc/ir/program.h"

namespace tc::gpu {

/// Reduction indices of a product that become one, along which rows of both operands lie.
struct Unfolding {
  std::vector<std::string> indices;  ///< the slowest first
  int64_t row = 1;                   ///< values of the new index, of which the last ones add zeros
};

/// The copies that an unfolding makes, and the product that reads them.
struct Unfolded {
  std::vector<ir::Statement> copies;
  std::vector<ir::Tensor> tensors;  ///< of the copies
  ir::Statement product;
};

/// What a statement becomes by an unfolding. Windows of an image lie there one by one, as far as their indices are
/// among those that become one (im2col); the others move over the copy as they moved over the image:
///     O(n,f,h,w) +=! I(n,c,2 * h + r,2 * w + s) * W(f,c,r,s)         c in 0:3, s in 0:7
///         ==>   I_copy(n,h,w,j) = j < 21 ? I(n,j % 3,h,2 * w + j / 3) : 0
///               W_copy(f,r,j) = j < 21 ? W(f,j % 3,r,j / 3) : 0
///               O(n,f,h,w) +=! I_copy(n,2 * h + r,w,j) * W_copy(f,r,j)
/// What a guard keeps from being read is zero in the copy. Nothing where the statement is no sum of products of two
/// reads that both use all of the indices, at subscripts that are linear forms. Of a specialised Program.
std::optional<Unfolded> unfold(const ir::Program& program, const ir::Statement& statement, const Unfolding& unfolding);

using ChooseUnfolding = std::function<std::optional<Unfolding>(const ir::Program&, const ir::Statement&)>;

/// Unfolds the products for which `choose` says so. Copies of the def's inputs come first.
ir::Program unfold_products(ir::Program program, const ChooseUnfolding& choose);

}  // namespace tc::gpu
