#pragma once

#include <functional>

#include "tc/ir/program.h"

namespace tc::ir {

/// A reduction some of whose instances add to the same element though their map indices differ, and the same sum as one
/// over the instances that reach each element.
struct GatheredScatter {
  const Program& program;
  const Statement& scattered;
  const Statement& gathered;
};
using IsGathered = std::function<bool(const GatheredScatter&)>;

/// Sums over what reaches an element, in the place of additions to elements by many:
///     O(f,2 * y + r) +=! I(c,y) * W(c,f,r)           r in 0:3
///         ==>   O(f,o) +=! o / 2 - q in 0:H && 2 * q + o % 2 < 3 ? I(c,o / 2 - q) * W(c,f,2 * q + o % 2) : 0
/// Where one index has few values, these are the terms: O(n + m) becomes a sum over the shorter of both. Left sides of
/// two indices in a dimension, one of them with the coefficient 1; a dimension without gaps. The order of the additions
/// changes: not for strict kernels. Of a specialised Program.
Program gather_scatters(Program program, const IsGathered& is_gathered);

}  // namespace tc::ir
