#pragma once

#include <isl/cpp.h>
#include <isl/map.h>

#include <vector>

namespace tc::tile {

inline unsigned outputs(const isl::map& map) { return static_cast<unsigned>(isl_map_dim(map.get(), isl_dim_out)); }
/// { x -> [a, b] }
isl::map joined(const isl::map& a, const isl::map& b);

/// Instances that touch places at times: { instance -> place }, { instance -> time }. The times of what happens in an
/// order are in lexicographic order.
struct Touches {
  isl::map places, times;
};

/// For each of the writes { instance of the read -> instance of the write }: which is the last one before it at its
/// place. `writes` are all that there are, and take place (isl's array dataflow analysis, "isl_union_access_info").
std::vector<isl::map> last_writes(const Touches& read, const std::vector<Touches>& writes);

}  // namespace tc::tile
