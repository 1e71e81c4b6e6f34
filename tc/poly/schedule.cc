#include "tc/poly/schedule.h"

#include <algorithm>
#include <numeric>

#include "tc/poly/cluster.h"
#include "tc/poly/dependences.h"
#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/shift.h"
#include "tc/support/check.h"

namespace tc::poly {
namespace {

using options::Fusion;

/// Turns clusters into a schedule tree, level by level.
class TreeBuilder {
 public:
  TreeBuilder(const Alignment& alignment, Fusion fusion, isl::ctx ctx) : a_(alignment), fusion_(fusion), ctx_(ctx) {}

  /// The clusters of the outermost level.
  std::vector<Cluster> outermost() const {
    std::vector<size_t> all(a_.statements());
    std::iota(all.begin(), all.end(), 0);
    return cluster(a_, all, open(), fusion_);
  }

  /// With `shifts`, neighbours that share no member at the outermost level may be merged by isl.
  isl::schedule build(const Scop* shifts, const options::SchedulerOptions& options) {
    std::vector<size_t> all(a_.statements());
    std::iota(all.begin(), all.end(), 0);
    if (!shifts) return level(all, open());
    isl::schedule whole;
    const std::vector<Cluster> clusters = outermost();
    for (size_t c = 0; c < clusters.size(); ++c) {
      std::optional<isl::schedule> part;
      if (c + 1 < clusters.size() && linked(clusters[c], clusters[c + 1])) {
        part = pipelined(*shifts, clusters[c], clusters[c + 1], options);
        if (part) c += 1;
      }
      if (!part) part = nest(clusters[c]);
      whole = whole.is_null() ? *part : sequence(whole, *part);
    }
    return whole;
  }

 private:
  /// All dimensions of all statements.
  std::vector<std::vector<int>> open() const {
    std::vector<std::vector<int>> result;
    for (size_t s = 0; s < a_.statements(); ++s) {
      std::vector<int>& dimensions = result.emplace_back(a_.dimensions(s));
      std::iota(dimensions.begin(), dimensions.end(), 0);
    }
    return result;
  }

  bool linked(const Cluster& x, const Cluster& y) const {
    for (size_t s : x.statements) {
      for (size_t t : y.statements) {
        if (a_.depends(s, t)) return true;
      }
    }
    return false;
  }

  /// Two neighbours under common loops, the second behind the first.
  std::optional<isl::schedule> pipelined(const Scop& scop, const Cluster& x, const Cluster& y,
                                         const options::SchedulerOptions& options) {
    if (options.allow_skewing) return skewed(scop, domains_of(x, y), options.positive_orthant);
    if (const std::optional<Cluster> both = shifted(scop, a_, x, y)) return nest(*both);
    return std::nullopt;
  }

  std::vector<isl::set> domains_of(const Cluster& x, const Cluster& y) const {
    std::vector<isl::set> domains;
    for (size_t s : x.statements) domains.push_back(a_.domain(s));
    for (size_t t : y.statements) domains.push_back(a_.domain(t));
    return domains;
  }

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
    for (size_t m = 0; m < c.members.size(); ++m) {
      std::vector<isl::aff>& row = rows.emplace_back();
      for (size_t s = 0; s < c.statements.size(); ++s) {
        const isl::aff index = variable(a_.domain(c.statements[s]).space(), c.members[m][s]);
        row.push_back(c.shifts.empty() ? index : index.add_constant(make_val(ctx_, c.shifts[m][s])));
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
      TreeBuilder builder(alignment, fusion, scop.context->get());
      result.schedule = builder.build(options.fusion == Fusion::kMax ? &scop : nullptr, options);
      if (find_violation(result)) result.schedule = builder.build(nullptr, options);
      if (find_violation(result)) result.schedule = canonical_schedule(scop);
    }
    return result;
  });
}

Result<std::vector<Apart>> why_apart(const Scop& scop, const options::SchedulerOptions& options) {
  return within_budget(*scop.context, [&] {
    std::vector<Apart> result;
    if (scop.domain.is_empty()) return result;
    const Alignment alignment(scop);
    const Fusion fusion = options.fusion.value_or(Fusion::kMax);
    const std::vector<Cluster> clusters = TreeBuilder(alignment, fusion, scop.context->get()).outermost();
    const auto ids = [&](const Cluster& cluster) {
      std::vector<std::string> names;
      for (size_t s : cluster.statements) names.push_back(tuple_name(alignment.domain(s)));
      return names;
    };
    for (Refusal& refusal : why_apart(alignment, clusters, fusion)) {
      if (refusal.reason.empty()) continue;
      result.push_back({ids(clusters[refusal.first]), ids(clusters[refusal.second]), std::move(refusal.reason)});
    }
    return result;
  });
}

}  // namespace tc::poly
