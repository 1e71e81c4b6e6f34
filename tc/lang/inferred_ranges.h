#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tc/lang/typed_ast.h"

/// What range inference knows of a def, and what follows of the elements that an access meets.
namespace tc::lang {

/// As text over size names and scalars.
struct InferredRanges {
  std::vector<std::vector<std::string>> extents;  ///< of each tensor
  /// Of each statement's indices: [low, high).
  std::vector<std::vector<std::pair<std::string, std::string>>> indices;
};

/// An access of a statement to a tensor.
struct Access {
  const TypedDefinition& definition;
  size_t statement;  ///< its number
  int tensor;
  const std::vector<TypedExprPtr>& subscripts;
};

/// Whether a value, or what chooses it, is read from a tensor.
bool reads_elements(const TypedExpr& expr);

/// Whether the subscripts are indices, each once.
bool is_plain(const std::vector<TypedExprPtr>& subscripts);

/// Whether an access meets every element of its tensor exactly once for each combination of the statement's other
/// indices: its subscripts are plain, over whole extents.
bool meets_all(const Access& access, const InferredRanges& inferred);

/// Whether an access is known to meet every element of its tensor: `x(i + k)` where i + k takes every value up to the
/// extent. False does not say that an element is left out.
bool covers(const Access& access, const InferredRanges& inferred);

/// Whether two accesses are known to meet no element both: their intervals in a dimension lie apart, or a multiple of
/// their steps never lies between them (2 i and 2 i + 1).
bool are_apart(const Access& a, const Access& b, const InferredRanges& inferred);

}  // namespace tc::lang
