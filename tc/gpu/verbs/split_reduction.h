#pragma once

#include <string>

#include "tc/poly/scop.h"
#include "tc/support/result.h"

namespace tc::gpu {

/// The loops that take the place of a reduction's, the tensor of the partial results, and how many parts there are.
struct ReductionLoops {
  std::string part, rest, together, partial;
  int64_t parts = 1;
};

/// Gives each of `count` parts of a reduction a partial result of its own, which a new statement adds up (rfactor:
/// Suriana, Adams, Kamil: Parallel associative reductions in Halide, 2017). With `cyclic`, part p has every count-th
/// iteration from the p-th on, else neighbours: as many parts of ceil(extent / count) iterations as that makes.
///     loop:k            loop:k_part
///       S0       ==>      S0_parts_init
///                         loop:k_rest
///                           S0_parts
///                       loop:k_together
///                         S0
/// An initialisation that stood right in front of the loop then stands right in front of the last one.
/// The loop runs over a whole reduction index, and over nothing but that statement. Errors: another loop; loops below
/// it; a statement whose condition or subscripts hang on data; a pair of instances in wrong order, if loops around run
/// over another reduction index.
struct SplitReduction {
  poly::Scop scop;
  ReductionLoops loops;
};
Result<SplitReduction> split_reduction(const poly::Scop& scop, const std::string& loop, int64_t count, bool cyclic);

}  // namespace tc::gpu
