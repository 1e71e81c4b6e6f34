#include "tc/poly/schedule.h"

#include <algorithm>
#include <numeric>

#include "tc/poly/cluster.h"
#include "tc/poly/dependences.h"
#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::poly {
namespace {

using options::Fusion;

/// Turns clusters into a schedule tree, level by level.
class TreeBuilder {
 public:
  TreeBuilder(const Alignment& alignment, Fusion fusion, isl::ctx ctx) : a_(alignment), fusion_(fusion), ctx_(ctx) {}

  isl::schedule build() {
    std::vector<size_t> all(a_.statements());
    std::iota(all.begin(), all.end(), 0);
    std::vector<std::vector<int>> open;
    for (size_t s : all) {
      std::vector<int>& dimensions = open.emplace_back(a_.dimensions(s));
      std::iota(dimensions.begin(), dimensions.end(), 0);
    }
    return level(all, open);
  }

 private:
  isl::schedule level(const std::vector<size_t>& statements, const std::vector<std::vector<int>>& open) {
    isl::schedule whole;
    for (const Cluster& c : cluster(a_, statements, open, fusion_)) {
      const isl::schedule part = nest(c);
      whole = whole.is_null() ? part : sequence(whole, part);
    }
    return whole;
  }

  isl::schedule nest(const Cluster& c) {
    isl::schedule inner = c.statements.size() == 1
                              ? isl::schedule::from_domain(a_.domain(c.statements[0]).to_union_set())
                              : level(c.statements, c.remaining);
    if (c.members.empty()) return inner;
    std::vector<std::vector<isl::aff>> rows;
    for (const std::vector<int>& member : c.members) {
      std::vector<isl::aff>& row = rows.emplace_back();
      for (size_t s = 0; s < c.statements.size(); ++s) {
        row.push_back(variable(a_.domain(c.statements[s]).space(), member[s]));
      }
    }
    auto band = insert_band(inner, band_schedule(ctx_, rows)).root().child(0).as<isl::schedule_node_band>();
    bool permutable = true;
    for (size_t s : c.statements) permutable = permutable && a_.permutable(s);
    for (size_t m = 0; m < c.members.size(); ++m) {
      const bool free = coincident(a_, c, m);
      permutable = permutable || free;
      band = band.member_set_coincident(m, free);
    }
    return band.set_permutable(permutable).schedule();
  }

  const Alignment& a_;
  Fusion fusion_;
  isl::ctx ctx_;
};

}  // namespace

Result<Scop> schedule(const Scop& scop, const options::SchedulerOptions& options) {
  return within_budget(*scop.context, [&] {
    Scop result = scop;
    const Fusion fusion = options.fusion.value_or(Fusion::kMax);
    if (!scop.domain.is_empty()) {
      const Alignment alignment(scop);
      result.schedule = TreeBuilder(alignment, fusion, scop.context->get()).build();
      if (find_violation(result)) result.schedule = canonical_schedule(scop);
    }
    return result;
  });
}

}  // namespace tc::poly
