#include "tc/tile/last_writes.h"

#include <fmt/format.h>
#include <isl/flow.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/union_map.h>

namespace tc::tile {

isl::map joined(const isl::map& a, const isl::map& b) {
  return isl::manage(isl_map_flat_range_product(a.copy(), b.copy()));
}

namespace {

/// { name[time] -> place }
isl::union_map accessed(const Touches& touches, const std::string& name) {
  const isl::map places = touches.times.reverse().apply_range(touches.places);
  return isl::union_map(isl::manage(isl_map_set_tuple_name(places.copy(), isl_dim_in, name.c_str())));
}

/// { name[time] -> time }
isl::union_map ordered(const Touches& touches, const std::string& name) {
  isl_map* same = isl_set_identity(touches.times.range().release());
  return isl::union_map(isl::manage(isl_map_set_tuple_name(same, isl_dim_in, name.c_str())));
}

std::string name_of(size_t write) { return fmt::format("write{}", write); }

/// { [time of the read, place] -> [time of the write, place] } of { write[time] -> [read[time] -> place] }.
isl::map by_read(const isl::union_map& found, const std::string& write, unsigned time, unsigned place) {
  isl_space* space = isl_space_alloc(found.ctx().get(), 0, time + place, time + place);
  isl::map result = isl::manage(isl_map_empty(space));
  found.foreach_map([&](isl::map each) {
    const char* name = isl_map_get_tuple_name(each.get(), isl_dim_in);
    if (!name || write != name) return;
    isl_map* last = isl_map_flatten_range(each.copy());
    last = isl_map_reverse(isl_map_reset_tuple_id(isl_map_reset_tuple_id(last, isl_dim_in), isl_dim_out));
    isl_map* same = isl_set_identity(isl_map_domain(isl_map_copy(last)));
    same = isl_map_project_out(same, isl_dim_out, 0, time);
    result = result.unite(isl::manage(isl_map_flat_range_product(last, same)));
  });
  return result;
}

}  // namespace

std::vector<isl::map> last_writes(const Touches& read, const std::vector<Touches>& writes) {
  isl::union_map schedule = ordered(read, "read");
  isl::union_map all = isl::manage(isl_union_map_read_from_str(read.places.ctx().get(), "{ }"));
  for (size_t w = 0; w < writes.size(); ++w) {
    all = all.unite(accessed(writes[w], name_of(w)));
    schedule = schedule.unite(ordered(writes[w], name_of(w)));
  }
  isl_union_access_info* info = isl_union_access_info_from_sink(accessed(read, "read").release());
  info = isl_union_access_info_set_must_source(info, all.release());
  info = isl_union_access_info_set_schedule_map(info, schedule.release());
  isl_union_flow* flow = isl_union_access_info_compute_flow(info);
  const isl::union_map found = isl::manage(isl_union_flow_get_full_must_dependence(flow));
  isl_union_flow_free(flow);
  const isl::map at = joined(read.times, read.places);
  std::vector<isl::map> result;
  for (size_t w = 0; w < writes.size(); ++w) {
    const isl::map last = by_read(found, name_of(w), outputs(read.times), outputs(read.places));
    result.push_back(at.apply_range(last).apply_range(joined(writes[w].times, writes[w].places).reverse()));
  }
  return result;
}

}  // namespace tc::tile
