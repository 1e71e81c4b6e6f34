#pragma once

#include <Halide.h>

#include <isl/cpp.h>

#include <map>
#include <string>

namespace tc::cpu {

/// What the loops and conditions around a place say of the variables there: linear inequalities. A value, so that a
/// scope ends by going back to the one from before it.
class LoopFacts {
 public:
  explicit LoopFacts(isl::ctx ctx);

  /// From here on a condition holds. Conjunctions of comparisons of linear expressions, and of their minima and maxima,
  /// are taken in as far as they are conjunctions again; the rest says nothing.
  void assume(const Halide::Expr& condition);

  /// True if such a condition follows, by linear arithmetic over rationals. False also where that cannot tell.
  bool imply(const Halide::Expr& condition) const;

 private:
  isl::basic_set facts_;                  ///< { [v0, v1, ...] }
  std::map<std::string, int> dimension_;  ///< of each variable met so far
};

}  // namespace tc::cpu
