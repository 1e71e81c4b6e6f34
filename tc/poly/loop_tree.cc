#include "tc/poly/loop_tree.h"

#include <isl/schedule_node.h>
#include <isl/union_map.h>

#include <algorithm>
#include <functional>
#include <map>

#include "tc/poly/dependences.h"
#include "tc/poly/footprint.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/rebuild.h"
#include "tc/support/check.h"
#include "tc/support/nearest.h"

namespace tc::poly {
namespace {

const BandFlags kNoFlags{false, {false}};

Scop with(const Scop& scop, const NodeRef& ref, const isl::schedule& part) {
  Scop result = scop;
  result.schedule = replace(scop.schedule, ref, part);
  return result;
}

Result<Scop> proved(Scop scop, const std::string& verb) {
  if (const std::optional<Violation> violation = find_violation(scop)) {
    return fail("cannot {}: {}", verb, violation->sentence());
  }
  return scop;
}

/// Rebuilds a tree with a mark and a name for each loop.
class Namer {
 public:
  explicit Namer(const Scop& scop) : scop_(scop) {}

  isl::schedule run(const isl::schedule_node& node) {
    if (node.isa<isl::schedule_node_leaf>()) return isl::schedule::from_domain(node_domain(node));
    if (node.isa<isl::schedule_node_band>()) return loops(node.as<isl::schedule_node_band>());
    isl::schedule whole = run(node.child(0));
    for (unsigned i = 1; i < node.n_children(); ++i) whole = sequence(whole, run(node.child(static_cast<int>(i))));
    return whole;
  }

 private:
  isl::schedule loops(const isl::schedule_node_band& band) {
    const BandInfo info = band_info(scop_, {path_of(band)});
    std::vector<std::string> names;
    for (const std::vector<std::string>& indices : info.indices) {
      const auto named = std::find_if(indices.begin(), indices.end(), [](const std::string& i) { return !i.empty(); });
      const std::string wish = named == indices.end() ? "loop" : *named;
      const int number = taken_[wish]++;
      names.push_back(number == 0 ? wish : fmt::format("{}_{}", wish, number));
    }
    isl::schedule whole = run(band.child(0));
    for (int m = info.members() - 1; m >= 0; --m) {
      whole = under_loop(names[static_cast<size_t>(m)], band.partial_schedule().at(m), whole);
    }
    return whole;
  }

  const Scop& scop_;
  std::map<std::string, int> taken_;
};

void collect(const isl::schedule_node& node, std::vector<std::string>& names) {
  if (is_loop(node)) names.push_back(loop_name(node));
  for (unsigned i = 0; i < node.n_children(); ++i) collect(node.child(static_cast<int>(i)), names);
}

/// Visits what stands below no loop: loops and statements, below sequences and marks of launches.
void for_each_top(const isl::schedule_node& node, const std::function<void(const isl::schedule_node&)>& visit) {
  const bool passes =
      node.isa<isl::schedule_node_sequence>() || node.isa<isl::schedule_node_filter>() || is_launch(node);
  if (!passes) return visit(node);
  for (unsigned i = 0; i < node.n_children(); ++i) for_each_top(node.child(static_cast<int>(i)), visit);
}

/// Whether a launch begins with what stands at the node: a mark above it, with nothing in front of it below.
bool begins_launch(isl::schedule_node node) {
  while (node.has_parent()) {
    if (node.has_previous_sibling()) return false;
    node = node.parent();
    if (is_launch(node)) return true;
  }
  return false;
}

/// The mark of the loop right below another's band; none if something else stands there.
std::optional<isl::schedule_node> next_loop(const isl::schedule_node& mark) {
  const isl::schedule_node below = mark.child(0).child(0);
  return is_loop(below) ? std::optional(below) : std::nullopt;
}

/// What stands at and below a loop, for some of its instances. `named` gives loops their names; the uppermost loop
/// counts from `first`.
isl::schedule part_of_loop(const isl::schedule_node& node, const isl::union_set& instances, int64_t first,
                           const std::function<std::string(const std::string&)>& named) {
  if (node.isa<isl::schedule_node_leaf>()) {
    return isl::schedule::from_domain(node_domain(node).intersect(instances));
  }
  if (is_loop(node)) {
    const isl::schedule below = part_of_loop(node.child(0).child(0), instances, 0, named);
    isl::union_pw_aff value = loop_value(node).intersect_domain(below.domain().universe());
    if (first != 0) {
      isl_union_pw_aff* start =
          isl_union_pw_aff_val_on_domain(below.domain().universe().release(), make_val(node.ctx(), first).release());
      value = isl::manage(isl_union_pw_aff_sub(value.release(), start));
    }
    return under_loop(named(loop_name(node)), value, below);
  }
  isl::schedule whole;
  for (int i = 0; i < static_cast<int>(node.n_children()); ++i) {
    const isl::schedule_node child = node.child(i);
    if (node_domain(child).intersect(instances).is_empty()) continue;
    const isl::schedule part = part_of_loop(child, instances, 0, named);
    whole = whole.is_null() ? part : sequence(whole, part);
  }
  return whole;
}

}  // namespace

bool is_loop(const isl::schedule_node& node) {
  return node.isa<isl::schedule_node_mark>() && mark_name(node).starts_with(kLoopMark);
}

std::string loop_name(const isl::schedule_node& mark) { return mark_name(mark).substr(sizeof(kLoopMark) - 1); }

bool is_launch(const isl::schedule_node& node) {
  return node.isa<isl::schedule_node_mark>() && mark_name(node) == kLaunchMark;
}

isl::schedule under_loop(const std::string& name, const isl::union_pw_aff& value, const isl::schedule& below) {
  const isl::schedule band = under_band(isl::multi_union_pw_aff(value), kNoFlags, below);
  return insert_mark(band, kLoopMark + name);
}

Scop name_loops(const Scop& scop) {
  Scop result = scop;
  result.schedule = Namer(scop).run(scop.schedule.root().child(0));
  return result;
}

std::vector<std::string> loop_names(const Scop& scop) {
  std::vector<std::string> names;
  collect(scop.schedule.root(), names);
  return names;
}

Result<NodeRef> find_loop(const Scop& scop, const std::string& name) {
  if (const std::optional<NodeRef> found = find_mark(scop, kLoopMark + name)) return *found;
  const std::vector<std::string> names = loop_names(scop);
  const std::string meant = nearest(name, names);
  if (!meant.empty()) return fail("there is no loop '{}'; did you mean '{}'?", name, meant);
  return fail("there is no loop '{}'; there are {}", name, fmt::join(names, ", "));
}

isl::union_pw_aff loop_value(const isl::schedule_node& mark) {
  const auto band = mark.child(0).as<isl::schedule_node_band>();
  return band.partial_schedule().at(0).intersect_domain(node_domain(band).universe());
}

std::string fresh_loop_name(const Scop& scop, const std::string& name) {
  const std::vector<std::string> taken = loop_names(scop);
  std::string result = name;
  for (int i = 1; std::count(taken.begin(), taken.end(), result) > 0; ++i) result = fmt::format("{}_{}", name, i);
  return result;
}

LoopRange loop_range(const Scop& scop, const NodeRef& loop) {
  const isl::schedule_node mark = node_at(scop, loop);
  const isl::union_map values = loop_value(mark).as_union_map().intersect_domain(node_domain(mark.child(0)));
  LoopRange result{band_extents(band_at(scop, loop.below())).at(0), INT64_MAX};
  for (const isl::map& map : maps_of(values)) {
    result.first = std::min(result.first, to_int64(map.range().dim_min_val(0)));
  }
  return result;
}

Result<Scop> split_loop(const Scop& scop, const std::string& name, int64_t size, const std::string& outer,
                        const std::string& inner) {
  TC_TRY(ref, find_loop(scop, name));
  if (size < 1) return fail("cannot split '{}' by {}", name, size);
  const isl::schedule_node mark = node_at(scop, ref);
  const isl::union_pw_aff value = loop_value(mark);
  const isl::val factor = make_val(mark.ctx(), size);
  const isl::union_pw_aff quotient =
      isl::manage(isl_union_pw_aff_floor(isl_union_pw_aff_scale_down_val(value.copy(), factor.copy())));
  const isl::union_pw_aff rest = isl::manage(isl_union_pw_aff_mod_val(value.copy(), factor.copy()));
  const isl::schedule below = subtree(mark.child(0).child(0));
  return with(scop, ref, under_loop(outer, quotient, under_loop(inner, rest, below)));
}

Result<Scop> fuse_loops(const Scop& scop, const std::string& outer, const std::string& inner,
                        const std::string& fused) {
  TC_TRY(ref, find_loop(scop, outer));
  TC_TRY(inner_ref, find_loop(scop, inner));
  if (ref.below(2) != inner_ref)
    return fail("cannot fuse '{}' and '{}': the second does not stand right below the first", outer, inner);
  const isl::schedule_node mark = node_at(scop, ref), inner_mark = node_at(scop, inner_ref);
  int64_t first = INT64_MAX, last = INT64_MIN;
  const isl::union_map values =
      loop_value(inner_mark).as_union_map().intersect_domain(node_domain(inner_mark.child(0)));
  for (const isl::map& map : maps_of(values)) {
    first = std::min(first, to_int64(map.range().dim_min_val(0)));
    last = std::max(last, to_int64(map.range().dim_max_val(0)));
  }
  isl_union_pw_aff* value =
      isl_union_pw_aff_scale_val(loop_value(mark).release(), make_val(mark.ctx(), last - first + 1).release());
  isl_union_pw_aff* within = loop_value(inner_mark).release();
  isl_union_pw_aff* start =
      isl_union_pw_aff_val_on_domain(node_domain(inner_mark.child(0)).release(), make_val(mark.ctx(), first).release());
  value = isl_union_pw_aff_add(value, isl_union_pw_aff_sub(within, start));
  const isl::schedule below = subtree(inner_mark.child(0).child(0));
  return with(scop, ref, under_loop(fused, isl::manage(value), below));
}

Result<Scop> reorder_loops(const Scop& scop, const std::vector<std::string>& names) {
  std::vector<NodeRef> places;
  for (const std::string& name : names) {
    TC_TRY(ref, find_loop(scop, name));
    places.push_back(ref);
  }
  if (names.empty()) return scop;
  const NodeRef top = *std::min_element(places.begin(), places.end(),
                                        [](const auto& a, const auto& b) { return a.path.size() < b.path.size(); });
  isl::schedule_node mark = node_at(scop, top);
  std::map<std::string, isl::union_pw_aff> values;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string here = loop_name(mark);
    if (std::count(names.begin(), names.end(), here) == 0) {
      return fail("cannot reorder {}: '{}' stands between them", fmt::join(names, ", "), here);
    }
    values.emplace(here, loop_value(mark));
    if (i + 1 == names.size()) break;
    const std::optional<isl::schedule_node> next = next_loop(mark);
    if (!next) return fail("cannot reorder {}: below '{}' stands no single loop", fmt::join(names, ", "), here);
    mark = *next;
  }
  if (values.size() != names.size())
    return fail("cannot reorder {}: one of them is named twice", fmt::join(names, ", "));
  isl::schedule whole = subtree(mark.child(0).child(0));
  for (auto name = names.rbegin(); name != names.rend(); ++name) whole = under_loop(*name, values.at(*name), whole);
  return proved(with(scop, top, whole), fmt::format("reorder {}", fmt::join(names, ", ")));
}

Result<Scop> distribute_loop(const Scop& scop, const std::string& name) {
  TC_TRY(ref, find_loop(scop, name));
  const isl::schedule_node mark = node_at(scop, ref), parts = mark.child(0).child(0);
  if (!parts.isa<isl::schedule_node_sequence>())
    return fail("cannot distribute '{}': below it stands no sequence", name);
  isl::schedule whole;
  const int count = static_cast<int>(parts.n_children());
  for (int i = 0; i < count; ++i) {
    const isl::schedule below = subtree(parts.child(i));
    const isl::union_pw_aff value = loop_value(mark).intersect_domain(below.domain().universe());
    std::string own = name;
    if (i + 1 < count) {
      own = fresh_loop_name(scop, fmt::format("{}_{}", name, statements_at(scop, parts.child(i)).at(0)));
    }
    const isl::schedule part = under_loop(own, value, below);
    whole = whole.is_null() ? part : sequence(whole, part);
  }
  return proved(with(scop, ref, whole), fmt::format("distribute '{}'", name));
}

Result<PartitionedLoop> partition_loop(const Scop& scop, const std::string& name, int64_t at) {
  TC_TRY(ref, find_loop(scop, name));
  const isl::schedule_node mark = node_at(scop, ref);
  isl::union_set before = isl::union_set::empty(mark.ctx());
  for (const isl::pw_aff& value : pw_affs_of(loop_value(mark))) {
    const isl::aff end = constant(value.domain().space(), at);
    before = before.unite(isl::union_set(value.lt_set(isl::pw_aff(end))));
  }
  const isl::union_set all = node_domain(mark), rest = all.subtract(before);
  before = before.intersect(all);
  if (before.is_empty() || rest.is_empty()) {
    return fail("cannot partition '{}' at {}: {} iterations are before it", name, at, rest.is_empty() ? "all" : "no");
  }
  PartitionedLoop result{scop, {}};
  const auto same = [](const std::string& loop) { return loop; };
  const auto renamed = [&](const std::string& loop) {
    return result.rest[loop] = fresh_loop_name(scop, loop + "_rest");
  };
  const isl::schedule first = part_of_loop(mark, before, 0, same), second = part_of_loop(mark, rest, at, renamed);
  result.scop = with(scop, ref, sequence(first, second));
  return result;
}

Result<Scop> begin_launch(const Scop& scop, const std::string& name) {
  std::optional<isl::schedule_node> place;
  for_each_top(scop.schedule.root().child(0), [&](const isl::schedule_node& node) {
    const std::vector<std::string> statements = statements_at(scop, node);
    const bool is_loop_of_that_name = is_loop(node) && loop_name(node) == name;
    const bool is_statement = statements == std::vector<std::string>{name};
    if (!place && (is_loop_of_that_name || is_statement)) place = node;
  });
  if (!place) {
    std::vector<std::string> names;
    for_each_top(scop.schedule.root().child(0), [&](const isl::schedule_node& node) {
      names.push_back(is_loop(node) ? loop_name(node) : statements_at(scop, node).at(0));
    });
    return fail("no launch can begin at '{}'; at the top stand {}", name, fmt::join(names, ", "));
  }
  Scop result = scop;
  result.schedule = place->insert_mark(make_id(place->ctx(), kLaunchMark)).schedule();
  return result;
}

std::vector<isl::schedule> launches_of(const Scop& scop) {
  std::vector<isl::schedule> result;
  for_each_top(scop.schedule.root().child(0), [&](const isl::schedule_node& node) {
    const isl::schedule part = subtree(node);
    if (result.empty() || begins_launch(node)) {
      result.push_back(part);
    } else {
      result.back() = sequence(result.back(), part);
    }
  });
  return result;
}

Result<void> check_reduction(const Scop& scop, const std::string& name) {
  TC_TRY(ref, find_loop(scop, name));
  const isl::schedule_node mark = node_at(scop, ref);
  const std::vector<std::string> below = statements_at(scop, mark);
  const Statement& first = scop.statement(below.at(0));
  const std::optional<Footprint> print = footprint(scop, ref, first.tensor);
  const bool updates = below.size() == 1 && first.kind == Statement::Kind::kUpdate && !first.guard.defined();
  if (!updates || !print || print->box_elements() != 1) {
    return fail("'{}' is no reduction to one element", name);
  }
  const isl::union_map ordered = active_dependences(mark, scop.dependences.ordered())
                                     .intersect_domain(node_domain(mark))
                                     .intersect_range(node_domain(mark));
  if (ordered.is_empty()) return {};
  return fail("cannot reduce '{}' in another order: {}", name, first_pair(scop, ordered).sentence());
}

Result<void> check_at_once(const Scop& scop, const std::string& name, bool as_lanes) {
  TC_TRY(ref, find_loop(scop, name));
  const isl::schedule_node band = node_at(scop, ref.below());
  Scop marked = scop;
  marked.schedule = band.insert_mark(make_id(band.ctx(), as_lanes ? "vector" : "parallel")).schedule();
  if (const std::optional<Violation> violation = find_violation(marked)) {
    return fail("cannot run iterations of '{}' at once: {} and {} must not ({} dependence)", name, violation->earlier,
                violation->later, violation->dependence);
  }
  return {};
}

}  // namespace tc::poly
