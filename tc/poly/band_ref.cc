#include "tc/poly/band_ref.h"

#include <algorithm>
#include <set>

#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::poly {
namespace {

template <typename Visit>
void top_down(const isl::schedule_node& node, const Visit& visit) {
  visit(node);
  for (unsigned i = 0; i < node.n_children(); ++i) top_down(node.child(i), visit);
}

/// The index that an expression of one statement is, alone; "" otherwise.
std::string index_name(const Scop& scop, const isl::pw_aff& function) {
  const isl::set domain = function.domain();
  const Statement& s = scop.statement(tuple_name(domain));
  for (size_t i = 0; i < s.indices.size(); ++i) {
    if (isl::pw_aff(variable(domain.space(), i)).plain_is_equal(isl::multi_pw_aff(function))) return s.indices[i];
  }
  return "";
}

}  // namespace

NodeRef NodeRef::below(int generations) const {
  NodeRef result = *this;
  result.path.insert(result.path.end(), generations, 0);
  return result;
}

std::string BandInfo::index_of(int member, const std::string& statement) const {
  const auto found = std::find(statements.begin(), statements.end(), statement);
  return found == statements.end() ? "" : indices[member][found - statements.begin()];
}

isl::schedule_node node_at(const Scop& scop, const NodeRef& ref) { return node_at(scop.schedule, ref.path); }

isl::schedule_node_band band_at(const Scop& scop, const BandRef& ref) {
  const isl::schedule_node node = node_at(scop, ref);
  TC_CHECK(node.isa<isl::schedule_node_band>(), "the place in the schedule tree is not a band");
  return node.as<isl::schedule_node_band>();
}

std::vector<int64_t> band_extents(const isl::schedule_node_band& band) {
  std::vector<int64_t> extents;
  const isl::union_set domain = node_domain(band);
  const isl::union_map above = band.prefix_schedule_union_map().intersect_domain(domain).reverse();
  const isl::multi_union_pw_aff partial = band.partial_schedule();
  for (unsigned m = 0; m < band.n_member(); ++m) {
    const isl::union_map values = partial.at(m).as_union_map().intersect_domain(domain);
    int64_t& extent = extents.emplace_back(1);
    for (const isl::map& map : maps_of(above.apply_range(values))) extent = std::max(extent, range_extent(map));
  }
  return extents;
}

std::vector<std::string> statements_at(const Scop& scop, const isl::schedule_node& node) {
  std::set<std::string> present;
  for (const isl::set& set : sets_of(node_domain(node))) {
    if (!set.is_empty()) present.insert(tuple_name(set));
  }
  std::vector<std::string> names;
  for (const Statement& s : scop.statements) {
    if (present.count(s.id)) names.push_back(s.id);
  }
  return names;
}

bool has_all_instances(const isl::schedule_node& inner, const isl::schedule_node& outer, const std::string& statement) {
  const std::vector<isl::set> here = sets_of(node_domain(inner));
  for (const isl::set& all : sets_of(node_domain(outer))) {
    if (tuple_name(all) != statement) continue;
    const auto same =
        std::find_if(here.begin(), here.end(), [&](const isl::set& set) { return tuple_name(set) == statement; });
    return same == here.end() ? all.is_empty() : all.is_subset(*same);
  }
  return true;
}

BandInfo band_info(const Scop& scop, const BandRef& ref) {
  const isl::schedule_node_band band = band_at(scop, ref);
  BandInfo info;
  info.ref = ref;
  info.statements = statements_at(scop, band);
  info.permutable = band.permutable();
  info.extents = band_extents(band);
  const isl::multi_union_pw_aff partial = band.partial_schedule();
  for (unsigned m = 0; m < band.n_member(); ++m) {
    info.coincident.push_back(band.member_get_coincident(m));
    std::vector<std::string>& names = info.indices.emplace_back(info.statements.size());
    for (const isl::pw_aff& function : pw_affs_of(partial.at(m))) {
      const auto at = std::find(info.statements.begin(), info.statements.end(), tuple_name(function.domain()));
      if (at != info.statements.end()) names[at - info.statements.begin()] = index_name(scop, function);
    }
  }
  return info;
}

std::vector<BandRef> bands(const Scop& scop) {
  std::vector<BandRef> result;
  top_down(scop.schedule.root(), [&](const isl::schedule_node& node) {
    if (node.isa<isl::schedule_node_band>()) result.push_back({path_of(node)});
  });
  return result;
}

std::vector<BandRef> bands_of(const Scop& scop, const std::string& statement) {
  std::vector<BandRef> result;
  for (const BandRef& ref : bands(scop)) {
    const std::vector<std::string> here = statements_at(scop, node_at(scop, ref));
    if (std::find(here.begin(), here.end(), statement) != here.end()) result.push_back(ref);
  }
  return result;
}

std::optional<BandRef> shared_band(const Scop& scop, const std::vector<std::string>& statements) {
  std::optional<BandRef> deepest;
  for (const BandRef& ref : bands(scop)) {
    const std::vector<std::string> here = statements_at(scop, node_at(scop, ref));
    const bool all = std::all_of(statements.begin(), statements.end(), [&](const std::string& s) {
      return std::find(here.begin(), here.end(), s) != here.end();
    });
    if (all && (!deepest || ref.path.size() > deepest->path.size())) deepest = ref;
  }
  return deepest;
}

std::optional<NodeRef> find_mark(const Scop& scop, const std::string& name) {
  std::optional<NodeRef> found;
  top_down(scop.schedule.root(), [&](const isl::schedule_node& node) {
    if (!found && node.isa<isl::schedule_node_mark>() && mark_name(node) == name) found = NodeRef{path_of(node)};
  });
  return found;
}

}  // namespace tc::poly
