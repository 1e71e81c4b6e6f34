#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/mapping/fused_group.h"

namespace tc::gpu {

/// A reduction that a thread does together with others.
struct ReducedTogether {
  const GroupStatement* statement = nullptr;
  /// Its terms are exp(factor * R) times something that R is no part of. 0: they do not read R.
  double factor = 0;
  /// It reads R where that is the identity, too, and is NaN if R stays so.
  bool reads_identity = false;
};

/// Reductions over the same loops, which a thread goes through once. One of them may be a maximum or minimum R that
/// others read: these are sums, which are corrected whenever R has changed (lower/corrections.h).
///     top(d) max=! x(n,d)                        for 8 values of n at a time: 8 values of x; R' = max(R, these);
///     total(d) +=! exp(x(n,d) - top(d))   ==>    total = total * exp(R - R') + exp(x - R') of each
struct Together {
  std::vector<size_t> starts;  ///< initialisations among them, as numbers of statements, which come first
  std::vector<ReducedTogether> reductions;
  std::optional<size_t> extreme;                            ///< R, among these
  std::map<std::string, std::vector<Halide::Expr>> shared;  ///< tensors that several read at one place: subscripts
  size_t end = 0;                                           ///< the statement behind all of them
};

/// Those from a statement on; nothing if there are not two. `held`: the tensors of which a thread has elements of its
/// own.
std::optional<Together> reductions_together(const FusedGroup& part, size_t first, const std::set<std::string>& held);

}  // namespace tc::gpu
