#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tc/poly/scop.h"

namespace tc::poly {

/// The dependences between the statements' instances in the program's own order.
///
/// Exact up to data-dependent accesses: a read depends on the last statement before it that must write the element
/// (all its instances that do) and on those after that which may. What a chain of such dependences implies is left out.
/// The updates of one statement to one element depend on each other only as `reduction`: any order, one at a time.
Dependences compute_dependences(const Scop& scop);

/// A pair of instances that a schedule gets wrong.
struct Violation {
  enum class Kind {
    kOrder,     ///< `earlier` must run before `later`, and does not
    kParallel,  ///< the two may not run at once, and a "parallel" or "vector" mark says that they do
  };
  Kind kind = Kind::kOrder;
  std::string dependence;  ///< "flow", "anti", "output" or "reduction"
  std::string earlier;     ///< "S0[i = 0, j = 3]"
  std::string later;
  std::string member;  ///< kParallel: the band member and its mark
  /// "S0[i = 0] must run before S1[i = 0] (flow through C), ..."
  std::string sentence() const;
};

/// The first pair { earlier -> later } of `pairs`, which is not empty, as a violation of the order.
Violation first_pair(const Scop& scop, const isl::union_map& pairs);

/// The exact legality test: nothing, or a pair of instances that shows what is wrong. A schedule is legal if
///   - every ordered dependence { x -> y } runs forward: S(x) < S(y), and
///   - no ordered or reduction dependence is between two iterations of a loop marked "parallel", and
///   - no ordered dependence is between two iterations of a loop marked "vector", and
///   - of the updates of a statement that such a loop runs at once, all are of one element, which makes it a reduction
///     vector (see carries_reduction), or no two are.
/// Every domain instance must be scheduled.
std::optional<Violation> find_violation(const Scop& scop);

/// find_violation(), and promotion_fault() of promote.h, as an Error that names `pass`: a fault of the compiler's, if a
/// pass made the schedule.
Result<void> check_legal(const Scop& scop, const std::string& pass);

/// Dependences of `all` between instances that a node cannot tell apart: equal in the schedule's prefix at the node,
/// both within the node's domain.
isl::union_map active_dependences(const isl::schedule_node& node, const isl::union_map& all);

/// Whether member `position` of the band has any of `dependences` between two of its iterations: false means that the
/// iterations may run at once as far as these dependences go.
bool carries(const isl::schedule_node_band& band, int position, const isl::union_map& dependences);

/// Whether any of `dependences` leads from a later iteration of the member to an earlier one.
bool runs_backward(const isl::schedule_node_band& band, int position, const isl::union_map& dependences);

/// Pairs of updates of one element that a vector along the band's member would run at once, although it runs updates of
/// other elements of the same statement, too: one update of each such element would be lost. Empty for a legal mark.
isl::union_map colliding_lanes(const Scop& scop, const isl::schedule_node_band& band);

/// Whether the band's member runs updates of one element in several iterations: the query for reduction vectors.
bool carries_reduction(const Scop& scop, const isl::schedule_node_band& band, int position);

}  // namespace tc::poly
