#pragma once

#include <memory>
#include <vector>

#include "tc/gpu/mapping/fused_group.h"

namespace tc::gpu {

/// A part with statements of its own.
struct RowsPart {
  FusedGroup group;
  std::vector<std::unique_ptr<const poly::Statement>> own;
};

/// The part without temporaries that hold a value for each element of a row; their readers compute the value:
///     E(n,d) = exp(I(n,d) - m(n))
///     s(n) +=! E(n,d)                   s(n) +=! exp(I(n,d) - m(n))
///     O(n,d) = E(n,d) / s(n)     ==>    O(n,d) = exp(I(n,d) - m(n)) / s(n)
/// A temporary stays if a float of it is compared (compares_floats()), if what its value is made of changes before the
/// last reader, or if a statement would read more than a few elements. Null: all of them stay.
std::shared_ptr<const RowsPart> recompute_elements(const FusedGroup& part);

}  // namespace tc::gpu
