#pragma once

#include <functional>
#include <optional>

#include "tc/poly/band_ref.h"

namespace tc::poly {

/// The flags of a band, which isl loses when a band is made anew.
struct BandFlags {
  bool permutable = false;
  std::vector<bool> coincident;
};
BandFlags flags_of(const isl::schedule_node_band& band);
isl::schedule_node_band with_flags(isl::schedule_node_band band, const BandFlags& flags);

/// The flags as the dependences give them: permutable if no dependence that is active at the band runs backward in any
/// member; a member is coincident if none, reductions included, is between its iterations.
BandFlags exact_flags(const Scop& scop, const isl::schedule_node_band& band);

/// What stands at and below a node, as a schedule of its own instances.
isl::schedule subtree(const isl::schedule_node& node);

/// The schedule with what stands at `ref` replaced by `replacement`, which schedules the same instances.
isl::schedule replace(const isl::schedule& schedule, const NodeRef& ref, const isl::schedule& replacement);

/// A schedule of the band's rows and flags around `below`.
isl::schedule under_band(const isl::multi_union_pw_aff& partial, const BandFlags& flags, const isl::schedule& below);

}  // namespace tc::poly
