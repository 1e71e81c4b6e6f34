#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/ir/program.h"

/// Products in which data choose the slice of an operand that a row multiplies, as the expert of a token does:
///     Y(t,n) +=! X(t,k) * W(E(t),k,n)
/// A block finds the values of E that occur among its rows. For each of them it multiplies all of its rows by the
/// slice, and stores those that have the value. Rows of other values never meet its results.
namespace tc::gpu {

struct SelectedSlice {
  size_t dimension = 0;    ///< of the tensor, not its last one
  Halide::Expr selection;  ///< its subscript
};
/// Of a read of which one subscript depends on data and on parallel indices, all others on other indices, and on some
/// parallel one. `names`: parallel indices, of which there are so many, then those of the reduction.
std::optional<SelectedSlice> selected_slice(const ir::Program& program, const Halide::Internal::Call* read,
                                            const std::vector<std::string>& names, size_t parallel);

/// Why a block of the plan does not go through slices; empty: it does, or there are none.
std::string selection_fault(const Contraction& contraction, const ContractionPlan& plan);

/// How many slices there are: 1 where nothing is selected.
int64_t slices_of(const Contraction& contraction);

/// How many slices a block is expected to go through: 1 where nothing is selected. What data select is not known. They
/// are taken to be in order, as tokens sorted by expert are, so that each value has rows that follow each other.
double expected_slices(const Contraction& contraction, const ContractionPlan& plan);

/// Bytes of shared memory that a block finds its slices in, behind `end`.
int64_t shared_end_of_selection(const Contraction& contraction, const ContractionPlan& plan, int64_t end);

}  // namespace tc::gpu
