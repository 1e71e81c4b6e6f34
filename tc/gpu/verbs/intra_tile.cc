#include "tc/gpu/verbs/intra_tile.h"

#include <isl/aff.h>

#include <algorithm>

#include "tc/poly/dependences.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/rebuild.h"
#include "tc/poly/restricted.h"
#include "tc/poly/schedule.h"

namespace tc::gpu {
namespace {

/// Rebuilds a tree with loops that count from the beginning of their tile on.
class FromTile {
 public:
  FromTile(const isl::multi_union_pw_aff& before, const isl::multi_union_pw_aff& points)
      : before_(before), points_(points) {}

  isl::schedule run(const isl::schedule_node& node) const {
    if (node.isa<isl::schedule_node_leaf>()) return isl::schedule::from_domain(poly::node_domain(node));
    if (node.isa<isl::schedule_node_band>()) {
      const auto band = node.as<isl::schedule_node_band>();
      isl::union_pw_aff_list values(node.ctx(), static_cast<int>(band.n_member()));
      for (int m = 0; m < static_cast<int>(band.n_member()); ++m) {
        values = values.add(from_tile(band.partial_schedule().at(m)));
      }
      const isl::space space = isl::space::unit(node.ctx()).add_unnamed_tuple(band.n_member());
      return poly::under_band(space.multi_union_pw_aff(values), poly::flags_of(band), run(node.child(0)));
    }
    isl::schedule whole = run(node.child(0));
    for (unsigned i = 1; i < node.n_children(); ++i) {
      whole = poly::sequence(whole, run(node.child(static_cast<int>(i))));
    }
    return whole;
  }

 private:
  /// The value less where its tile begins, if it is a member of the tiled band but for constants.
  isl::union_pw_aff from_tile(const isl::union_pw_aff& value) const {
    for (int m = 0; m < static_cast<int>(isl_multi_union_pw_aff_size(before_.get())); ++m) {
      const isl::union_pw_aff shift = value.sub(before_.at(m));
      const std::vector<isl::pw_aff> shifts = poly::pw_affs_of(shift);
      const bool constant = std::all_of(shifts.begin(), shifts.end(), [](const isl::pw_aff& one) {
        return isl_pw_aff_is_cst(one.get()) == isl_bool_true;
      });
      if (constant) return shift.add(points_.at(m));
    }
    return value;
  }

  const isl::multi_union_pw_aff &before_, &points_;
};

}  // namespace

poly::Scop schedule_points(const poly::Scop& scop, const poly::BandRef& points, const isl::multi_union_pw_aff& before,
                           const options::SchedulerOptions& options) {
  const isl::schedule_node_band band = poly::band_at(scop, points);
  poly::Scop part = poly::restricted(scop, poly::statements_at(scop, band));
  for (isl::union_map* one : {&part.dependences.flow, &part.dependences.anti, &part.dependences.output,
                              &part.dependences.reduction, &part.dependences.all_ordered}) {
    *one = poly::active_dependences(band, *one);
  }
  const Result<poly::Scop> scheduled = poly::schedule(part, options);
  if (!scheduled) return scop;
  poly::Scop result = scop;
  const isl::schedule tree = FromTile(before, band.partial_schedule()).run(scheduled->schedule.root().child(0));
  result.schedule = poly::replace(scop.schedule, points, tree);
  return result;
}

}  // namespace tc::gpu
