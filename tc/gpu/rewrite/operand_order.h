#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tc/ir/names.h"
#include "tc/ir/program.h"
#include "tc/ir/reads.h"

namespace tc::gpu {

/// How a tensor that a product reads is to lie in memory.
struct OperandOrder {
  std::string tensor;
  std::vector<size_t> dimensions;  ///< of the tensor, outermost first
  std::vector<ir::Range> read;     ///< per dimension of the tensor: what the product reads
  int64_t row = 1;                 ///< elements from one row of the last dimension to the next; if it is copied
  bool rounds = false;             ///< the copy rounds float32 elements to TF32
  bool stored = false;             ///< those who write the tensor store it so; else it is copied
  std::vector<std::string> alongside = {};  ///< temporaries of the writers' points, which get the order too
  bool operator==(const OperandOrder&) const;
};

/// The orders that the operands of a statement are to have; none: it stays as it is. The last argument has the copies
/// that there are.
using ChooseOrders = std::function<std::vector<OperandOrder>(const ir::Program&, const ir::Statement&,
                                                             const std::vector<OperandOrder>& copies)>;

/// Whether a temporary may be stored in another order: `statement` alone reads it. `alongside` gets the temporaries of
/// the same points, which a product sums up before, so that its results are computed in that order too.
bool may_be_stored(const ir::Program& program, const ir::Statement& statement, const std::string& tensor,
                   std::vector<std::string>& alongside);

/// Gives operands of products another order and pitch:
///     O(n,f,h,w) +=! I(n,c,h + r,w + s) * W(f,c,r,s)
///         ==>   I_copy(n,h,w,c) = I(n,c,h,w)
///               W_copy(f,r,s,c) = W(f,c,r,s)
///               O(n,f,h,w) +=! I_copy(n,h + r,w + s,c) * W_copy(f,r,s,c)
/// Where rows of a copy become longer, zeros lie behind them. A copy may round to TF32 what the product rounds:
///     C(m,n) +=! tf32(A(m,k)) * ...
///         ==>   A_copy(m,k) = tf32(A(m,k))
///               C(m,n) +=! tf32(A_copy(m,k)) * ...
/// A temporary that nobody else reads is stored in the order, without a copy. Copies of the def's inputs come first,
/// those of equal shape next to each other, so that they may share a launch. Products are asked for from the last to
/// the first, since a temporary's order decides how the product before computes it. On a specialised Program, before
/// its reductions are cut into parts.
ir::Program order_operands(ir::Program program, const ChooseOrders& choose);

/// Where a copy of what earlier statements write goes: before those that prepare the product's results.
size_t place_of_copy(const ir::Program& program, size_t product, const std::string& source);

/// The id of a statement that copies an operand of a product, and whether an id is one.
std::string operand_copy_id(const std::string& product, ir::Names& names);
bool is_operand_copy(const std::string& id);

}  // namespace tc::gpu
