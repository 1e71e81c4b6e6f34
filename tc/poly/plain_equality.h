#pragma once

#include <isl/cpp.h>

namespace tc::poly {

/// True if the equations of a relation say that input i is output j: { S[i] -> T[i, j] } for 0 and 0. No other relation
/// is looked for, so that false says nothing.
bool plainly_equal(const isl::map& map, int i, int j);

/// A union of relations in two parts: `equal`, where the equations of each relation say that a schedule has the same
/// value for both sides of all pairs, and the others.
///     { A[i] -> B[i, j]; A[i] -> C[i + 1] } by { A[i] -> [i]; B[i, j] -> [i]; C[i] -> [i] }
///         ==>   equal { A[i] -> B[i, j] }, rest { A[i] -> C[i + 1] }
/// Costs a hundredth of what isl takes for the pairs that lex_gt_at() or eq_at() find; most dependences are equal in
/// most bands.
struct SplitByEquality {
  isl::union_map equal;
  isl::union_map rest;
};
SplitByEquality split_plainly_equal(const isl::union_map& umap, const isl::multi_union_pw_aff& schedule);

}  // namespace tc::poly
