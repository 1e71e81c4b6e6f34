#pragma once

#include <functional>

#include "tc/ir/program.h"

namespace tc::ir {

/// A sum in a temporary with an element for each value of its map indices, and the statement that stores it:
///     C(N - 1 - n, m) += v   ==>   C_sum(n, m) +=! v
///                                  C(N - 1 - n, m) = C(N - 1 - n, m) + C_sum(n, m)
struct SumApart {
  Tensor sums;
  Statement sum;
  Statement store;
};

/// Whether a reduction's left side tells its map indices: each element is written for one value of them, and exists
/// whatever the data. The ranges of the map indices have been inferred.
bool may_be_apart(const Statement& statement);

/// Of a statement that may be apart. The sum is of the statement's accumulator type, and the store converts it.
SumApart sum_apart(const Program& program, const Statement& statement);

/// Which reductions are put apart: of a program that has the statement and, alone, its sum.
using IsPutApart = std::function<bool(const Program&, const Statement& whole, const SumApart& apart)>;

/// Puts sums apart whose left sides are no distinct indices, so that whatever knows sums of plain left sides knows
/// these. The order of the additions changes where the statement adds to what is there: not for strict kernels. Of a
/// specialised Program.
Program sums_apart(Program program, const IsPutApart& is_put_apart);

/// Puts sums of products apart that a condition chooses which no reduction index changes, so that they are plain:
///     S(t, s) +=! s <= t ? Q(t, d) * K(s, d) : 0
///         ==>   S_sum(t, s) +=! Q(t, d) * K(s, d)
///               S(t, s) = s <= t ? S_sum(t, s) : 0
/// So with a minimum, a maximum or a product, and its identity. Only where both values may be computed (a Select). Of a
/// specialised Program, after plain_choices(). The values are the same.
Program choices_behind_sums(Program program, const IsPutApart& is_put_apart);

}  // namespace tc::ir
