#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tc/lang/typed_ast.h"
#include "tc/support/result.h"

namespace tc::lang {

/// What range inference knows of a def, as text over size names.
struct InferredRanges {
  std::vector<std::vector<std::string>> extents;  ///< of each tensor
  /// Of each statement's indices: [low, high).
  std::vector<std::vector<std::pair<std::string, std::string>>> indices;
};

/// Whether an access of statement number `statement` meets every element of a tensor: its subscripts are indices, each
/// once, over whole extents.
bool meets_all(int tensor, const std::vector<TypedExprPtr>& subscripts, const InferredRanges& inferred,
               size_t statement);

/// The tensors that a value is made of, those in subscripts too.
std::set<int> tensors_read(const TypedExpr& expr);

/// The same def with a tensor for each state that a tensor is read in: a statement that overwrites all of a tensor
/// writes one of its own, and what is read before it is a temporary NAME_1, NAME_2, ... Several statements may write a
/// tensor if all but the first are sums into it. `inferred` gets the extents of the new tensors.
///     O(n) = exp(I(n));  O(n) = O(n) / 2   ==>   O_1(n) = exp(I(n));  O(n) = O_1(n) / 2
/// Errors: a part of a tensor is overwritten; a tensor is read between sums into it; a minimum, maximum or product is
/// summed into.
Result<TypedDefinition> single_assignment(TypedDefinition definition, const SourcePtr& source,
                                          InferredRanges& inferred);

}  // namespace tc::lang
