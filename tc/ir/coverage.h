#pragma once

#include <optional>

#include "tc/ir/program.h"
#include "tc/ir/prover.h"

namespace tc::ir {

/// An index whose range was inferred from reads, and the dimension of a result that it is to cover.
struct InferredDimension {
  size_t statement = 0;
  int dimension = 0;
};

/// Where a statement's reads, not a `where` or an extent, decide which part of a tensor it writes: each dimension of
/// the left side that such an index is in.
std::vector<InferredDimension> inferred_dimensions(const Program& program, const Tensor& tensor);

/// Whether a result with declared extents is written in full, or each inferred dimension in full (R10). None where that
/// is not affine, or too hard.
std::optional<Verdict> written_in_full(Prover& prover, const Program& program, const Tensor& tensor,
                                       const std::vector<InferredDimension>& inferred);

}  // namespace tc::ir
