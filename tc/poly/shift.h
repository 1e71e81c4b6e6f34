#pragma once

#include <optional>
#include <vector>

#include "tc/poly/cluster.h"
#include "tc/poly/scop.h"

namespace tc::poly {

/// One cluster of two that no member aligns, where a constant shift does: `later` runs so far behind `earlier` that
/// every value is there when it is used. Members take part where the shift is less than half of their extent; they
/// are permutable and not coincident. Nothing if no member does. Every dependence must lead from the first to the
/// second.
std::optional<Cluster> shifted(const Scop& scop, const Alignment& alignment, const Cluster& earlier,
                               const Cluster& later);

/// A schedule in which all of the statements share an outermost band, by isl's own scheduler, which may skew. Nothing
/// if the band's first member leaves a statement out, a coefficient is negative where the positive orthant is asked
/// for, or the scheduler takes too many operations.
std::optional<isl::schedule> skewed(const Scop& scop, const std::vector<isl::set>& domains, bool positive_orthant);

}  // namespace tc::poly
