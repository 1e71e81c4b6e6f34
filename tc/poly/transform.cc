#include "tc/poly/transform.h"

#include <algorithm>
#include <numeric>

#include "tc/poly/dependences.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/promote.h"
#include "tc/poly/rebuild.h"
#include "tc/support/check.h"

namespace tc::poly {
namespace {

Scop with_schedule(const Scop& scop, const isl::schedule& schedule) {
  Scop result = scop;
  result.schedule = schedule;
  return result;
}

/// The Scop under a schedule that may be illegal: refused if it is.
Result<Scop> proved(const Scop& scop, const isl::schedule& schedule, const std::string& verb) {
  Scop result = with_schedule(scop, schedule);
  if (std::optional<Violation> violation = find_violation(result)) {
    return fail("cannot {}: {}", verb, violation->sentence());
  }
  return result;
}

Result<Scop> unless_needless(const Scop& scop, const isl::schedule& schedule, bool legal, const std::string& verb) {
  if (legal) return with_schedule(scop, schedule);
  return proved(scop, schedule, verb);
}

isl::multi_union_pw_aff rows(const isl::multi_union_pw_aff& partial, std::span<const int> members) {
  isl::union_pw_aff_list list(partial.ctx(), members.size());
  for (int member : members) list = list.add(partial.at(member));
  return isl::space::unit(partial.ctx()).add_unnamed_tuple(members.size()).multi_union_pw_aff(list);
}

bool all_coincident(const isl::schedule_node_band& band) {
  const BandFlags flags = flags_of(band);
  return std::all_of(flags.coincident.begin(), flags.coincident.end(), [](bool c) { return c; });
}

/// Whether a mark speaks of this band.
bool is_marked(const isl::schedule_node_band& band) {
  return band.parent().isa<isl::schedule_node_mark>() && mark_name(band.parent()).rfind("promote:", 0) != 0;
}

/// The first `count` members of a band as a band of their own.
isl::schedule_node_band split_band(const isl::schedule_node_band& band, int count) {
  if (count == static_cast<int>(band.n_member())) return band;
  return band.split(count);
}

}  // namespace

Result<Scop> tile(const Scop& scop, const BandRef& ref, std::span<const int64_t> sizes) {
  isl::schedule_node_band band = band_at(scop, ref);
  TC_CHECK(!sizes.empty() && sizes.size() <= band.n_member(), "{} tile sizes for {} band members", sizes.size(),
           band.n_member());
  const bool legal = band.permutable() || band.n_member() == 1;
  std::vector<int64_t> whole(sizes.begin(), sizes.end());
  const BandInfo info = band_info(scop, ref);
  for (size_t m = 0; m < whole.size(); ++m) {
    TC_CHECK(whole[m] >= 0, "tile size {}", whole[m]);
    if (whole[m] == 0) whole[m] = info.extents[m];
  }
  band = split_band(band, whole.size());
  band = band.tile(band_sizes(band, whole));
  return unless_needless(scop, band.schedule(), legal, "tile a band that is not permutable");
}

Result<Scop> strip_mine(const Scop& scop, const BandRef& ref, int member, int64_t size) {
  isl::schedule_node_band band = band_at(scop, ref);
  TC_CHECK(0 <= member && member < static_cast<int>(band.n_member()) && size > 0, "member {}, size {}", member, size);
  if (member > 0) band = band.split(member).child(0).as<isl::schedule_node_band>();
  band = split_band(band, 1);
  return with_schedule(scop, band.tile(band_sizes(band, std::vector<int64_t>{size})).schedule());
}

Scop split(const Scop& scop, const BandRef& ref, int position) {
  const isl::schedule_node_band band = band_at(scop, ref);
  TC_CHECK(0 < position && position < static_cast<int>(band.n_member()), "a split of {} members at {}", band.n_member(),
           position);
  return with_schedule(scop, band.split(position).schedule());
}

Scop fuse(const Scop& scop, const BandRef& ref) {
  const isl::schedule_node_band outer = band_at(scop, ref), inner = band_at(scop, ref.below());
  const isl::multi_union_pw_aff both = outer.partial_schedule().flat_range_product(inner.partial_schedule());
  const auto band = delete_node(delete_node(outer)).insert_partial_schedule(both).as<isl::schedule_node_band>();
  return with_schedule(scop, with_flags(band, exact_flags(scop, band)).schedule());
}

Result<Scop> reorder(const Scop& scop, const BandRef& ref, std::span<const int> permutation) {
  const isl::schedule_node_band band = band_at(scop, ref);
  std::vector<int> sorted(permutation.begin(), permutation.end()), all(band.n_member());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  TC_CHECK(sorted == all, "not a permutation of {} band members", band.n_member());
  BandFlags flags = flags_of(band);
  for (size_t p = 0; p < permutation.size(); ++p) flags.coincident[p] = band.member_get_coincident(permutation[p]);
  const isl::schedule_node made = delete_node(band).insert_partial_schedule(rows(band.partial_schedule(), permutation));
  const isl::schedule schedule = with_flags(made.as<isl::schedule_node_band>(), flags).schedule();
  return unless_needless(scop, schedule, band.permutable() && !is_marked(band), "reorder the members of a band");
}

Result<Scop> sink(const Scop& scop, const BandRef& ref) {
  const isl::schedule_node_band band = band_at(scop, ref);
  TC_CHECK(!is_marked(band), "a marked band to sink");
  return unless_needless(scop, band_sink(band).schedule(), all_coincident(band), "sink a band");
}

Result<Scop> distribute(const Scop& scop, const BandRef& ref) {
  const isl::schedule_node_band band = band_at(scop, ref);
  const isl::schedule_node children = band.child(0);
  TC_CHECK(children.isa<isl::schedule_node_sequence>() && !is_marked(band),
           "a band to distribute that is marked, or not above a sequence");
  isl::schedule whole;
  for (unsigned i = 0; i < children.n_children(); ++i) {
    const isl::schedule below = subtree(children.child(i));
    const isl::multi_union_pw_aff partial = band.partial_schedule().intersect_domain(below.domain().universe());
    const isl::schedule part = under_band(partial, flags_of(band), below);
    whole = whole.is_null() ? part : sequence(whole, part);
  }
  return proved(scop, replace(scop.schedule, ref, whole), "distribute a band");
}

Result<Scop> merge(const Scop& scop, const NodeRef& ref, int first) {
  const isl::schedule_node node = node_at(scop, ref);
  TC_CHECK(node.isa<isl::schedule_node_sequence>() && first >= 0 && first + 1 < static_cast<int>(node.n_children()),
           "no neighbours to merge at {}", first);
  auto band_of = [&](int child) {
    const isl::schedule_node below = node.child(child).child(0);
    TC_CHECK(below.isa<isl::schedule_node_band>(), "a child to merge that does not begin with a band");
    return below.as<isl::schedule_node_band>();
  };
  isl::schedule_node_band one = band_of(first), two = band_of(first + 1);
  const int members = std::min(one.n_member(), two.n_member());
  one = split_band(one, members);
  two = split_band(two, members);
  const isl::multi_union_pw_aff both = one.partial_schedule().union_add(two.partial_schedule());
  const isl::schedule inner = sequence(subtree(one.child(0)), subtree(two.child(0)));
  isl::schedule whole;
  for (int i = 0; i < static_cast<int>(node.n_children()); ++i) {
    if (i == first + 1) continue;
    const isl::schedule part =
        i == first ? under_band(both, {false, std::vector<bool>(members, false)}, inner) : subtree(node.child(i));
    whole = whole.is_null() ? part : sequence(whole, part);
  }
  TC_TRY(merged, proved(scop, replace(scop.schedule, ref, whole), "merge two bands"));
  BandRef made = ref;
  if (node.n_children() > 2) made.path.insert(made.path.end(), {first, 0});
  const isl::schedule_node_band band = band_at(merged, made);
  return with_schedule(merged, with_flags(band, exact_flags(merged, band)).schedule());
}

namespace {

Result<Scop> marked(const Scop& scop, const BandRef& ref, const std::string& name, bool proved_legal) {
  const isl::schedule_node_band band = band_at(scop, ref);
  const isl::schedule schedule = band.insert_mark(make_id(band.ctx(), name)).schedule();
  return unless_needless(scop, schedule, proved_legal, "mark a band '" + name + "'");
}

}  // namespace

Result<Scop> mark_parallel(const Scop& scop, const BandRef& ref) {
  TC_TRY(result, marked(scop, ref, "parallel", band_at(scop, ref).member_get_coincident(0)));
  if (std::optional<std::string> fault = promotion_fault(result))
    return fail("cannot mark a band 'parallel': {}", *fault);
  return result;
}

Result<Scop> mark_vector(const Scop& scop, const BandRef& ref) {
  const isl::schedule_node_band band = band_at(scop, ref);
  TC_CHECK(band.n_member() == 1, "a vector of {} band members", band.n_member());
  return marked(scop, ref, "vector", band.member_get_coincident(0));
}

Scop mark_unroll(const Scop& scop, const BandRef& ref) { return *marked(scop, ref, "unroll", true); }

}  // namespace tc::poly
