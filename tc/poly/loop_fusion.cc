#include "tc/poly/loop_fusion.h"

#include <isl/map.h>
#include <isl/schedule_node.h>
#include <isl/union_map.h>

#include <algorithm>
#include <map>

#include "tc/poly/dependences.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/loop_tree.h"
#include "tc/poly/rebuild.h"

namespace tc::poly {
namespace {

/// What stands below a sequence without one child, and with another thing in place of a second one.
isl::schedule siblings(const isl::schedule_node& sequence, int without, int place, const isl::schedule& there) {
  isl::schedule whole;
  for (int i = 0; i < static_cast<int>(sequence.n_children()); ++i) {
    if (i == without) continue;
    const isl::schedule part = i == place ? there : subtree(sequence.child(i).child(0));
    whole = whole.is_null() ? part : poly::sequence(whole, part);
  }
  return whole;
}

Result<Scop> proved(const Scop& scop, const NodeRef& ref, const isl::schedule& part, const std::string& verb) {
  Scop result = scop;
  result.schedule = replace(scop.schedule, ref, part);
  if (const auto violation = find_violation(result)) return fail("cannot {}: {}", verb, violation->sentence());
  return result;
}

/// A loop by its name, or what a sequence has of one statement alone.
Result<NodeRef> find_part(const Scop& scop, const std::string& name) {
  std::optional<NodeRef> found = find_mark(scop, kLoopMark + name);
  if (found) return *found;
  scop.schedule.root().foreach_descendant_top_down([&](const isl::schedule_node& node) {
    const bool is_part = node.has_parent() && node.parent().isa<isl::schedule_node_filter>();
    if (!found && is_part && statements_at(scop, node) == std::vector<std::string>{name}) {
      found = NodeRef{path_of(node)};
    }
    return !found;
  });
  if (found) return *found;
  return find_loop(scop, name);
}

/// Refused where a launch begins at the place: what moves away would take the launch along, or leave it to others.
Result<void> check_begins_no_launch(const Scop& scop, const NodeRef& part, const std::string& verb,
                                    const std::string& name) {
  const isl::schedule_node node = node_at(scop, part);
  const bool begins = is_launch(node) || (node.has_parent() && is_launch(node.parent()));
  if (begins) return fail("cannot {}: a launch begins with '{}'", verb, name);
  return {};
}

/// The loop's iteration for each instance below its mark. If `others` are of the same statements, for no other
/// instance: the two are to be one function.
isl::union_pw_aff value_beside(const isl::schedule_node& mark, const isl::union_set& others) {
  const isl::union_set own = node_domain(mark);
  const bool share = !own.universe().intersect(others.universe()).is_empty();
  return share ? loop_value(mark).intersect_domain(own) : loop_value(mark);
}

/// Where a part and the loop that it is to stand below part ways.
struct Ways {
  isl::schedule_node sequence;
  int from = 0, to = 0;  ///< children of the sequence
};

std::optional<Ways> ways_of(const Scop& scop, const NodeRef& part, const NodeRef& loop) {
  const isl::schedule_node node = node_at(scop, part);
  if (!node.has_parent() || !node.parent().isa<isl::schedule_node_filter>()) return std::nullopt;
  const isl::schedule_node sequence = node.parent().parent();
  const std::vector<int> path = path_of(sequence);
  if (loop.path.size() <= path.size() || !std::equal(path.begin(), path.end(), loop.path.begin())) return std::nullopt;
  const Ways ways{sequence, static_cast<int>(node.parent().child_position()), loop.path[path.size()]};
  if (ways.from == ways.to) return std::nullopt;
  return ways;
}

/// Below a sequence, above and at a loop: the tree with another thing below the loop, of which each statement has the
/// values of `iterations` { S[i] -> [values of the loops] } there.
isl::schedule around(isl::schedule_node node, size_t depth, isl::schedule whole, const isl::union_map& iterations,
                     int outer) {
  while (path_of(node).size() > depth) {
    node = node.parent();
    if (node.isa<isl::schedule_node_mark>()) {
      whole = insert_mark(whole, mark_name(node));
    } else if (node.isa<isl::schedule_node_band>()) {
      const auto band = node.as<isl::schedule_node_band>();
      isl::union_pw_aff value = value_beside(band.parent(), iterations.domain());
      for (const isl::map& map : maps_of(iterations)) {
        const isl::pw_multi_aff values = isl::manage(isl_pw_multi_aff_from_map(map.copy()));
        value = value.union_add(values.at(schedule_depth(band) - outer).to_union_pw_aff());
      }
      const isl::space space = isl::space::unit(node.ctx()).add_unnamed_tuple(1);
      const isl::union_pw_aff_list one(value);
      whole = under_band(space.multi_union_pw_aff(one), flags_of(band), whole);
    } else if (node.isa<isl::schedule_node_filter>()) {
      whole = siblings(node.parent(), -1, static_cast<int>(node.child_position()), whole);
      node = node.parent();
    }
  }
  return whole;
}

/// { instance of the part -> iteration of the loops above the place that it goes to }
isl::union_map iterations_for(const Scop& scop, const Ways& ways, const isl::schedule_node& below) {
  const isl::union_set part = node_domain(ways.sequence.child(ways.from));
  const bool in_front = ways.from < ways.to;
  const isl::union_map all = active_dependences(ways.sequence, scop.dependences.ordered());
  const isl::union_map needs =  // { of the part -> below the loop }
      (in_front ? all : all.reverse()).intersect_domain(part).intersect_range(node_domain(below));
  const isl::union_map met = needs.apply_range(below.prefix_schedule_union_map());
  const int outer = schedule_depth(ways.sequence);
  isl::union_map result = isl::union_map::empty(part.ctx());
  for (const isl::map& map : maps_of(met)) {
    const isl::map own = isl::manage(isl_map_project_out(map.copy(), isl_dim_out, 0, static_cast<unsigned>(outer)));
    result = result.unite(own.to_union_map());
  }
  return in_front ? result.lexmin() : result.lexmax();
}

}  // namespace

Result<Scop> merge_loops(const Scop& scop, const std::string& first, const std::string& second) {
  TC_TRY(ref, find_loop(scop, first));
  TC_TRY(other, find_loop(scop, second));
  const std::string verb = fmt::format("merge '{}' and '{}'", first, second);
  TC_TRY_VOID(check_begins_no_launch(scop, ref, verb, first));
  TC_TRY_VOID(check_begins_no_launch(scop, other, verb, second));
  const std::optional<Ways> ways = ways_of(scop, ref, other);
  if (!ways || ways->to != ways->from + 1 || other.path.size() != ref.path.size()) {
    return fail("cannot {}: the second does not stand right behind the first", verb);
  }
  const isl::schedule_node one = node_at(scop, ref), two = node_at(scop, other);
  const isl::schedule both = sequence(subtree(one.child(0).child(0)), subtree(two.child(0).child(0)));
  const isl::union_pw_aff value = value_beside(one, node_domain(two)).union_add(value_beside(two, node_domain(one)));
  const isl::schedule merged = under_loop(first, value, both);
  return proved(scop, {path_of(ways->sequence)}, siblings(ways->sequence, ways->to, ways->from, merged), verb);
}

Result<Scop> sink_below(const Scop& scop, const std::string& name, const std::string& loop) {
  TC_TRY(part, find_part(scop, name));
  TC_TRY(target, find_loop(scop, loop));
  const std::string verb = fmt::format("sink '{}' below '{}'", name, loop);
  TC_TRY_VOID(check_begins_no_launch(scop, part, verb, name));
  const std::optional<Ways> ways = ways_of(scop, part, target);
  if (!ways) return fail("cannot {}: it does not stand beside that loop in a sequence", verb);
  const isl::schedule_node below = node_at(scop, target.below(2));
  const isl::union_map iterations = iterations_for(scop, *ways, below);
  const isl::union_set alone = node_domain(ways->sequence.child(ways->from)).subtract(iterations.domain());
  if (!alone.is_empty()) {
    return fail("cannot {}: {} has nothing to do with it", verb, first_pair(scop, alone.identity()).earlier);
  }
  const bool in_front = ways->from < ways->to;
  const isl::schedule moved = subtree(ways->sequence.child(ways->from).child(0)), there = subtree(below);
  const isl::schedule whole = in_front ? sequence(moved, there) : sequence(there, moved);
  const size_t depth = path_of(ways->sequence).size() + 2;  // of what stands below the filter
  const isl::schedule sunk = around(below, depth, whole, iterations, schedule_depth(ways->sequence));
  return proved(scop, {path_of(ways->sequence)}, siblings(ways->sequence, ways->from, ways->to, sunk), verb);
}

}  // namespace tc::poly
