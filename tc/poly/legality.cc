#include <fmt/format.h>

#include "tc/poly/dependences.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/plain_equality.h"
#include "tc/poly/promote.h"
#include "tc/support/check.h"

namespace tc::poly {
namespace {

/// "S0[i = 0, j = 3]"
std::string instance_text(const Scop& scop, const std::string& id, std::span<const int64_t> values) {
  const Statement& s = scop.statement(id);
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{}{} = {}", i ? ", " : "", s.indices[i], values[i]);
  }
  return fmt::format("{}[{}]", id, text);
}

/// Names the first pair of `wrong`, and the dependence that it belongs to.
Violation describe(const Scop& scop, Violation::Kind kind, const isl::union_map& wrong) {
  const isl::map pairs = maps_of(wrong).front();
  const isl::point point = pairs.wrap().lexmin().sample_point();
  const std::vector<int64_t> values = coordinates(point);
  const size_t inputs = pairs.domain_tuple_dim();
  const isl::union_map pair = isl::set(point).unwrap().to_union_map();
  Violation v;
  v.kind = kind;
  v.earlier = instance_text(scop, domain_name(pairs), std::span(values).first(inputs));
  v.later = instance_text(scop, range_name(pairs), std::span(values).subspan(inputs));
  const Dependences& d = scop.dependences;
  v.dependence = pair.is_subset(d.flow)     ? "flow"
                 : pair.is_subset(d.anti)   ? "anti"
                 : pair.is_subset(d.output) ? "output"
                                            : "reduction";
  return v;
}

}  // namespace

Violation first_pair(const Scop& scop, const isl::union_map& pairs) {
  return describe(scop, Violation::Kind::kOrder, pairs);
}

namespace {

isl::multi_union_pw_aff member_of(const isl::schedule_node_band& band, int position) {
  const isl::multi_union_pw_aff partial = band.partial_schedule();
  isl::union_pw_aff_list list(band.ctx(), 1);
  return isl::space::unit(band.ctx()).add_unnamed_tuple(1).multi_union_pw_aff(list.add(partial.at(position)));
}

/// Pairs of `dependences` in different iterations of a member.
isl::union_map carried(const isl::schedule_node_band& band, int position, const isl::union_map& dependences) {
  const isl::multi_union_pw_aff member = member_of(band, position);
  const isl::union_map rest = split_plainly_equal(dependences, member).rest;
  return lex_lt_at(rest, member).unite(lex_gt_at(rest, member));
}

/// Pairs of instances of one statement that a vector along the band's member runs at once, the first in the earlier
/// lane: equal in the prefix, and in what is scheduled below.
isl::map at_once(const isl::schedule_node_band& band, const isl::set& instances) {
  isl::union_map pairs = isl::manage(isl_map_from_domain_and_range(instances.copy(), instances.copy()));
  if (schedule_depth(band) > 0) pairs = pairs.eq_at(band.prefix_schedule_multi_union_pw_aff());
  const isl::schedule_node below = band.child(0);
  if (isl_schedule_node_get_type(below.get()) != isl_schedule_node_leaf) {
    const isl::union_map later = isl::manage(isl_schedule_node_get_subtree_schedule_union_map(below.get()));
    pairs = pairs.intersect(later.apply_range(later.reverse()));
  }
  pairs = lex_lt_at(pairs, member_of(band, 0));
  return pairs.is_empty() ? isl::map::empty(instances.space().map_from_set()) : maps_of(pairs).front();
}

/// Walks a tree with the ordered dependences that are still between instances the walk cannot tell apart.
class LegalityWalk {
 public:
  explicit LegalityWalk(const Scop& scop) : scop_(scop) {}

  std::optional<Violation> run() {
    TC_CHECK(scop_.domain.is_subset(scop_.schedule.domain()), "the schedule leaves out instances");
    TC_CHECK(scop_.schedule.domain().is_subset(scop_.domain), "the schedule runs instances that the program has not");
    visit(scop_.schedule.root().child(0), scop_.dependences.ordered());
    return found_;
  }

 private:
  void visit(const isl::schedule_node& node, const isl::union_map& ordered) {
    if (found_) return;
    switch (isl_schedule_node_get_type(node.get())) {
      case isl_schedule_node_leaf:
        if (!ordered.is_empty()) found_ = describe(scop_, Violation::Kind::kOrder, ordered);
        return;
      case isl_schedule_node_band:
        return visit_band(node.as<isl::schedule_node_band>(), ordered);
      case isl_schedule_node_sequence:
      case isl_schedule_node_set:
        return visit_children(node, ordered);
      case isl_schedule_node_mark:
        visit_mark(node, ordered);
        break;
      case isl_schedule_node_filter:
      case isl_schedule_node_context:
      case isl_schedule_node_guard:
        break;
      default:
        TC_CHECK(false, "a schedule tree with extension or expansion nodes");
    }
    visit(node.child(0), ordered);
  }

  void visit_band(const isl::schedule_node_band& band, const isl::union_map& ordered) {
    if (ordered.is_empty()) return visit(band.child(0), ordered);
    const isl::multi_union_pw_aff partial = band.partial_schedule();
    const auto [equal, rest] = split_plainly_equal(ordered, partial);
    const isl::union_map backward = lex_gt_at(rest, partial);
    if (!backward.is_empty()) {
      found_ = describe(scop_, Violation::Kind::kOrder, backward);
      return;
    }
    visit(band.child(0), equal.unite(rest.eq_at(partial)));
  }

  void visit_children(const isl::schedule_node& node, const isl::union_map& ordered) {
    const bool in_order = isl_schedule_node_get_type(node.get()) == isl_schedule_node_sequence;
    isl::union_set seen = isl::union_set::empty(node.ctx());
    const isl::union_set all = node_domain(node);
    for (unsigned i = 0; i < node.n_children(); ++i) {
      const isl::schedule_node child = node.child(i);
      const isl::union_set filter = child.as<isl::schedule_node_filter>().filter().gist(scop_.domain);
      const bool once = seen.is_disjoint(filter) || seen.intersect(filter).intersect(scop_.domain).is_empty();
      TC_CHECK(once, "the schedule runs instances more than once");
      const isl::union_map into = ordered.intersect_range(filter);
      seen = seen.unite(filter);
      const isl::union_map backward = into.subtract_domain(in_order ? seen : filter);
      if (!backward.is_empty()) {
        found_ = describe(scop_, Violation::Kind::kOrder, backward);
        return;
      }
      visit(child.child(0), into.intersect_domain(filter));
      if (found_) return;
    }
    TC_CHECK(all.is_subset(seen), "the schedule leaves out instances");
  }

  void visit_mark(const isl::schedule_node& node, const isl::union_map& ordered) {
    const std::string mark = mark_name(node);
    if (mark != "parallel" && mark != "vector") return;
    TC_CHECK(node.child(0).isa<isl::schedule_node_band>(), "a mark '{}' that is not above a band", mark);
    const auto band = node.child(0).as<isl::schedule_node_band>();
    isl::union_map forbidden = ordered;
    if (mark == "parallel") forbidden = forbidden.unite(active_dependences(band, scop_.dependences.reduction));
    isl::union_map wrong = carried(band, 0, forbidden);
    if (wrong.is_empty() && mark == "vector") wrong = colliding_lanes(scop_, band);
    if (wrong.is_empty()) return;
    found_ = describe(scop_, Violation::Kind::kParallel, wrong);
    found_->member = mark;
  }

  const Scop& scop_;
  std::optional<Violation> found_;
};

}  // namespace

std::string Violation::sentence() const {
  if (kind == Kind::kOrder) {
    return fmt::format("{} must run before {} ({} dependence), and the schedule does not see to it", earlier, later,
                       dependence);
  }
  return fmt::format("{} and {} must not run at once ({} dependence), and a mark '{}' lets them", earlier, later,
                     dependence, member);
}

std::optional<Violation> find_violation(const Scop& scop) { return LegalityWalk(scop).run(); }

Result<void> check_legal(const Scop& scop, const std::string& pass) {
  auto violation = within_budget(*scop.context, [&] { return find_violation(scop); });
  if (!violation) return tl::unexpected(violation.error());
  if (!*violation) {
    auto fault = within_budget(*scop.context, [&] { return promotion_fault(scop); });
    if (!fault) return tl::unexpected(fault.error());
    if (!*fault) return {};
    return tl::unexpected(Error(fmt::format("after '{}': {}", pass, **fault)).with_kind(ErrorKind::kInternal));
  }
  return tl::unexpected(Error(fmt::format("the schedule after '{}' is illegal: {}", pass, (*violation)->sentence()))
                            .with_kind(ErrorKind::kInternal));
}

isl::union_map active_dependences(const isl::schedule_node& node, const isl::union_map& all) {
  const isl::union_set here = node_domain(node).gist(scheduled_domain(node));
  const isl::union_map inside = all.intersect_domain(here).intersect_range(here);
  if (inside.is_empty() || schedule_depth(node) == 0) return inside;
  return inside.eq_at(node.prefix_schedule_multi_union_pw_aff());
}

isl::union_map colliding_lanes(const Scop& scop, const isl::schedule_node_band& band) {
  isl::union_map result = isl::union_map::empty(band.ctx());
  const isl::union_map updates = active_dependences(band, scop.dependences.reduction);
  if (updates.is_empty()) return result;
  for (const isl::map& self : maps_of(updates)) {
    const std::string id = domain_name(self);
    for (const isl::set& instances : sets_of(node_domain(band).gist(scop.domain).intersect(scop.domain))) {
      if (tuple_name(instances) != id) continue;
      const isl::map lanes = at_once(band, instances);
      for (const Access& access : scop.accesses) {
        if (access.statement != id || !access.writes()) continue;
        const isl::map same = lanes.intersect(access.relation.apply_range(access.relation.reverse()));
        const bool one_element = access.kind == Access::Kind::kWrite && lanes.is_subset(same);
        if (!one_element) result = result.unite(same);
      }
    }
  }
  return result;
}

bool carries(const isl::schedule_node_band& band, int position, const isl::union_map& dependences) {
  return !carried(band, position, dependences).is_empty();
}

bool runs_backward(const isl::schedule_node_band& band, int position, const isl::union_map& dependences) {
  return !lex_gt_at(dependences, member_of(band, position)).is_empty();
}

bool carries_reduction(const Scop& scop, const isl::schedule_node_band& band, int position) {
  return carries(band, position, active_dependences(band, scop.dependences.reduction));
}

}  // namespace tc::poly
