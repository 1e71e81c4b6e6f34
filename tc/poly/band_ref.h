#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tc/poly/scop.h"

namespace tc::poly {

/// A place in a schedule tree: child positions from the root down. A change of the tree keeps the places above it.
struct NodeRef {
  std::vector<int> path;

  /// The place `generations` below, always in the first child.
  NodeRef below(int generations = 1) const;
  bool operator==(const NodeRef&) const = default;
};

/// A band of the tree.
using BandRef = NodeRef;

/// What a strategy wants to know of a band.
struct BandInfo {
  BandRef ref;
  std::vector<std::string> statements;  ///< those below it
  /// Per member, per statement: the index that the member runs over ("i"), or "" if it is not one index alone.
  std::vector<std::vector<std::string>> indices;
  std::vector<bool> coincident;  ///< per member
  std::vector<int64_t> extents;  ///< per member: iterations for one iteration of what is above it, at most
  bool permutable = false;

  int members() const { return static_cast<int>(coincident.size()); }
  /// The index of `statement` in `member`; "" if the statement is not below the band.
  std::string index_of(int member, const std::string& statement) const;
};

isl::schedule_node node_at(const Scop& scop, const NodeRef& ref);
/// TC_CHECKs that a band stands there.
isl::schedule_node_band band_at(const Scop& scop, const BandRef& ref);
BandInfo band_info(const Scop& scop, const BandRef& ref);
/// Its extents alone: per member the iterations for one iteration of what is above the band, at most.
std::vector<int64_t> band_extents(const isl::schedule_node_band& band);

/// All bands, a band before those below it, in the order of execution.
std::vector<BandRef> bands(const Scop& scop);
/// The bands above a statement, outermost first.
std::vector<BandRef> bands_of(const Scop& scop, const std::string& statement);
/// The band below everything else that all of the statements share; nothing if they share none.
std::optional<BandRef> shared_band(const Scop& scop, const std::vector<std::string>& statements);
/// The first mark of that name, from the top.
std::optional<NodeRef> find_mark(const Scop& scop, const std::string& name);
/// The names of the statements with instances at the node, in program order.
std::vector<std::string> statements_at(const Scop& scop, const isl::schedule_node& node);
/// Whether a statement has no instances at `outer` that are not at `inner`, a node below. A partition of a loop leaves
/// some of a statement's instances in each part.
bool has_all_instances(const isl::schedule_node& inner, const isl::schedule_node& outer, const std::string& statement);

}  // namespace tc::poly
