#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tc/poly/band_ref.h"

namespace tc::poly {

/// The elements of a tensor that one iteration of all loops above a node touches below it.
struct Footprint {
  isl::map elements;             ///< { [prefix] -> T[x] }, for prefixes that touch any
  isl::multi_aff offset;         ///< { [prefix] -> T[o] }, the least corner of a box around the elements
  std::vector<int64_t> extents;  ///< of that box, the same for every prefix

  int64_t box_elements() const;
};

enum class Touch {
  kAny,
  kRead,       ///< values in the tensor are used, an update's old ones included
  kWrite,      ///< may be written
  kMustWrite,  ///< is written
};

/// { [prefix] -> T[x] } of the accesses of one kind below the node; by statements up to (not including) `before` in
/// program order, if given. Empty if there are none.
isl::map elements_touched(const Scop& scop, const isl::schedule_node& node, const std::string& tensor, Touch touch,
                          const std::string& before = "");

/// The footprint with its box; nothing if nothing is touched or no box of constant size holds it. A box that isl does
/// not find soon is the whole tensor.
/// (paper 2018, appendix A.3: array tiles.)
std::optional<Footprint> footprint(const Scop& scop, const NodeRef& node, const std::string& tensor);

/// { [prefix] -> T[x] : x in the box, and in the tensor }
isl::map box_elements(const Scop& scop, const isl::multi_aff& offset, const std::vector<int64_t>& extents);

}  // namespace tc::poly
