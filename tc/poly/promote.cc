#include "tc/poly/promote.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "tc/ir/halide_compat.h"
#include "tc/poly/dependences.h"
#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::poly {
namespace {

using ir::Role;

const std::string kMarkPrefix = "promote:";

/// { [prefix] -> T[x] } read below the node without being written there first. A statement that must write an element
/// runs before those that follow it in the program and read it: the schedule is legal.
bool reads_from_outside(const Scop& scop, const isl::schedule_node& node, const std::string& tensor) {
  for (const Statement& s : scop.statements) {
    isl::union_map reads = isl::union_map::empty(node.ctx());
    for (const Access& a : scop.accesses) {
      if (a.statement == s.id && a.tensor == tensor && a.reads()) reads = reads.unite(a.relation.to_union_map());
    }
    if (reads.is_empty()) continue;
    const isl::union_set here = node_domain(node).intersect(reads.domain().universe());
    const isl::union_map used = reads.apply_domain(node.prefix_schedule_union_map().intersect_domain(here));
    if (used.is_empty()) continue;
    const isl::map written = elements_touched(scop, node, tensor, Touch::kMustWrite, s.id);
    if (!used.subtract(written.to_union_map()).is_empty()) return true;
  }
  return false;
}

/// Whether some pair of `relation`, which begins below the node, ends outside of the same iteration of the loops above.
bool leaves(const isl::schedule_node& node, const isl::map& relation) {
  const isl::union_set here = node_domain(node);  // dependences may go to what another part of the schedule has
  const isl::union_map from_here = relation.to_union_map().intersect_domain(here);
  const isl::union_map inside = from_here.intersect_range(here);
  if (!inside.is_equal(from_here)) return true;
  if (schedule_depth(node) == 0) return false;
  const isl::multi_union_pw_aff prefix = node.prefix_schedule_multi_union_pw_aff();
  return !lex_lt_at(inside, prefix).is_empty() || !lex_gt_at(inside, prefix).is_empty();
}

/// What one statement does to a tensor, { S[i] -> T[x] }.
struct Touches {
  isl::union_map writes;
  isl::union_map reads;
};

/// Whether a value that is written below the node is used outside of the iteration that wrote it.
bool used_outside(const Scop& scop, const isl::schedule_node& node, const std::string& tensor) {
  std::map<std::string, Touches> users;
  const isl::union_map none = isl::union_map::empty(node.ctx());
  for (const Access& a : scop.accesses) {
    if (a.tensor != tensor) continue;
    Touches& touches = users.try_emplace(a.statement, Touches{none, none}).first->second;
    isl::union_map& to = a.writes() ? touches.writes : touches.reads;
    to = to.unite(a.relation.to_union_map());
  }
  for (const isl::union_map* values : {&scop.dependences.flow, &scop.dependences.reduction}) {
    for (const isl::map& relation : maps_of(*values)) {
      const auto source = users.find(domain_name(relation)), sink = users.find(range_name(relation));
      if (source == users.end() || sink == users.end() || !leaves(node, relation)) continue;
      const isl::union_map common = source->second.writes.apply_range(sink->second.reads.reverse());
      for (const isl::map& through : maps_of(common.intersect(relation.to_union_map()))) {
        if (leaves(node, through)) return true;
      }
    }
  }
  return false;
}

bool writes_below(const Scop& scop, const isl::schedule_node& node, const std::string& tensor) {
  return !elements_touched(scop, node, tensor, Touch::kWrite).is_empty();
}

bool needs_copy_out(const Scop& scop, const isl::schedule_node& node, const std::string& tensor) {
  if (!writes_below(scop, node, tensor)) return false;
  return scop.program->tensor(tensor).role != Role::kTemporary || used_outside(scop, node, tensor);
}

bool needs_copy_in(const Scop& scop, const isl::schedule_node& node, const Promotion& p) {
  if (reads_from_outside(scop, node, p.tensor)) return true;
  if (!p.copy_out) return false;
  const isl::map box = box_elements(scop, p.offset, p.extents);
  const isl::map written = elements_touched(scop, node, p.tensor, Touch::kMustWrite);
  const isl::set iterations = elements_touched(scop, node, p.tensor, Touch::kAny).domain();
  return !box.intersect_domain(iterations).is_subset(written);
}

/// { [prefix] -> T[x] } read below the node from what was written in another iteration of the loops above, or
/// elsewhere.
isl::map read_from_outside(const Scop& scop, const isl::schedule_node& node, const std::string& tensor) {
  isl::union_map reads = isl::union_map::empty(node.ctx()), writes = reads;
  for (const Access& a : scop.accesses) {
    if (a.tensor == tensor && a.reads()) reads = reads.unite(a.relation.to_union_map());
    if (a.tensor == tensor && a.writes()) writes = writes.unite(a.relation.to_union_map());
  }
  const isl::union_set here = node_domain(node).intersect(reads.domain().universe());
  const isl::union_map pairs = scop.dependences.flow.unite(scop.dependences.reduction).intersect_range(here);
  isl::union_map inside = pairs.intersect_domain(node_domain(node));
  if (schedule_depth(node) > 0) inside = inside.eq_at(node.prefix_schedule_multi_union_pw_aff());
  const isl::union_map sources = pairs.subtract(inside).reverse();  // { reader -> writer }
  const isl::union_map elements = sources.apply_range(writes).intersect(reads);
  const isl::space space = isl::space::unit(node.ctx())
                               .add_unnamed_tuple(static_cast<unsigned>(schedule_depth(node)))
                               .add_named_tuple(tensor, scop.program->tensor(tensor).rank());
  return elements.apply_domain(node.prefix_schedule_union_map().intersect_domain(here)).extract_map(space);
}

/// The depths of the members above the node that are marked parallel.
std::vector<int> parallel_depths(const isl::schedule_node& node) {
  std::vector<int> depths;
  for (isl::schedule_node at = node; at.has_parent(); at = at.parent()) {
    if (at.isa<isl::schedule_node_mark>() && mark_name(at) == "parallel") depths.push_back(schedule_depth(at));
  }
  return depths;
}

/// Whether two iterations of a parallel loop above the node write back overlapping boxes.
bool boxes_collide(const Scop& scop, const isl::schedule_node& node, const Promotion& p) {
  const std::vector<int> depths = parallel_depths(node);
  if (!p.copy_out || depths.empty()) return false;
  const isl::set iterations = elements_touched(scop, node, p.tensor, Touch::kAny).domain();
  const isl::map box = box_elements(scop, p.offset, p.extents).intersect_domain(iterations);
  const isl::map overlap = box.apply_range(box.reverse());  // { [prefix] -> [prefix'] : boxes overlap }
  for (int depth : depths) {
    isl::aff member = variable(overlap.domain().space(), depth);
    isl::map apart = overlap.subtract(overlap.eq_at(member));
    for (int outer = 0; outer < depth; ++outer) apart = apart.eq_at(variable(overlap.domain().space(), outer));
    if (!apart.is_empty()) return true;
  }
  return false;
}

std::string unique_name(const Scop& scop, const std::string& wanted) {
  auto taken = [&](const std::string& name) {
    return std::any_of(scop.promotions.begin(), scop.promotions.end(),
                       [&](const Promotion& p) { return p.name == name; });
  };
  std::string name = wanted;
  for (int i = 1; taken(name); ++i) name = fmt::format("{}_{}", wanted, i);
  return name;
}

/// Above the marks that belong to the band below them. Those with a colon in their name ("promote:A") do not.
isl::schedule_node above_band_marks(isl::schedule_node node) {
  while (node.has_parent() && node.parent().isa<isl::schedule_node_mark>() &&
         mark_name(node.parent()).find(':') == std::string::npos) {
    node = node.parent();
  }
  return node;
}

const Promotion* find_promotion(const Scop& scop, const std::string& name) {
  for (const Promotion& p : scop.promotions) {
    if (p.name == name) return &p;
  }
  return nullptr;
}

std::optional<std::string> fault_at(const Scop& scop, const isl::schedule_node& mark) {
  const std::string name = mark_name(mark).substr(kMarkPrefix.size());
  const Promotion* p = find_promotion(scop, name);
  if (!p) return fmt::format("the mark 'promote:{}' has no promotion", name);
  const isl::map used = elements_touched(scop, mark, p->tensor, Touch::kAny);
  if (static_cast<int>(p->offset.space().domain().universe_set().tuple_dim()) != schedule_depth(mark)) {
    return fmt::format("the buffer '{}' has an offset over other loops than those above its mark", name);
  }
  if (!used.is_subset(box_elements(scop, p->offset, p->extents))) {
    return fmt::format("an access to '{}' leaves its buffer '{}'", p->tensor, name);
  }
  if (!p->copy_out && needs_copy_out(scop, mark, p->tensor)) {
    return fmt::format("the buffer '{}' of '{}' is written and not copied out", name, p->tensor);
  }
  if (!p->copy_in && needs_copy_in(scop, mark, *p)) {
    return fmt::format("the buffer '{}' of '{}' is read or written back without being filled", name, p->tensor);
  }
  if (boxes_collide(scop, mark, *p)) {
    return fmt::format("iterations of a parallel loop write back overlapping parts of '{}' from the buffer '{}'",
                       p->tensor, name);
  }
  return std::nullopt;
}

}  // namespace

namespace {

/// The Promotion of a footprint, without copies.
Promotion buffer_of(const Scop& scop, const Footprint& print, const PromoteOptions& options) {
  Promotion p;
  p.tensor = print.offset.range_tuple_id().name();
  p.name = unique_name(scop, options.name.empty() ? p.tensor : options.name);
  p.offset = print.offset;
  p.extents = print.extents;
  p.layout = options.layout;
  if (p.layout.empty()) {
    p.layout.resize(p.extents.size());
    std::iota(p.layout.begin(), p.layout.end(), 0);
  }
  p.in_registers = options.in_registers;
  return p;
}

Scop with_promotion(const Scop& scop, const isl::schedule_node& node, Promotion p) {
  Scop result = scop;
  result.schedule = node.insert_mark(make_id(node.ctx(), kMarkPrefix + p.name)).schedule();
  result.promotions.push_back(std::move(p));
  return result;
}

}  // namespace

Result<Scop> promote(const Scop& scop, const NodeRef& ref, const std::string& tensor, const PromoteOptions& options) {
  const std::optional<Footprint> print = footprint(scop, ref, tensor);
  if (!print) return fail("cannot promote '{}': the part used there has no box of constant size", tensor);
  if (print->box_elements() > options.max_elements) {
    return fail("cannot promote '{}': its buffer would have {} elements, more than {}", tensor, print->box_elements(),
                options.max_elements);
  }
  const isl::schedule_node node = above_band_marks(node_at(scop, ref));
  Promotion p = buffer_of(scop, *print, options);
  p.copy_out = needs_copy_out(scop, node, tensor);
  p.copy_in = needs_copy_in(scop, node, p);
  if (boxes_collide(scop, node, p)) {
    return fail("cannot promote '{}': iterations of a parallel loop would write back overlapping parts", tensor);
  }
  return with_promotion(scop, node, std::move(p));
}

namespace {

/// The deepest node below which stand all accesses to the tensor.
std::optional<isl::schedule_node> home_of(const Scop& scop, const std::string& tensor) {
  std::vector<std::string> users;
  for (const Access& a : scop.accesses) {
    if (a.tensor == tensor) users.push_back(a.statement);
  }
  if (users.empty()) return std::nullopt;
  isl::schedule_node node = scop.schedule.root();
  for (;;) {
    std::optional<isl::schedule_node> next;
    for (unsigned i = 0; i < node.n_children() && !next; ++i) {
      const isl::schedule_node below = node.child(static_cast<int>(i));
      const bool all = std::all_of(users.begin(), users.end(), [&](const std::string& user) {
        return has_all_instances(below, scop.schedule.root(), user);
      });
      if (all) next = below;
    }
    if (!next || !next->has_children()) return node;
    node = *next;
  }
}

/// Promotes a temporary at `node` or the nearest place above where nothing has to be copied.
std::optional<Scop> contract(const Scop& scop, isl::schedule_node node, const ir::Tensor& tensor) {
  for (; node.has_parent() && schedule_depth(node) > 0; node = node.parent()) {
    if (node.isa<isl::schedule_node_filter>()) continue;
    const std::optional<Footprint> print = footprint(scop, {path_of(node)}, tensor.name);
    if (!print || used_outside(scop, node, tensor.name) || reads_from_outside(scop, node, tensor.name)) continue;
    bool smaller = false;
    for (int d = 0; d < tensor.rank(); ++d) {
      const int64_t* extent = ir::constant_int(tensor.extents[d]);
      smaller = smaller || !extent || print->extents[d] < *extent;
    }
    if (!smaller) return std::nullopt;
    PromoteOptions options;
    options.in_registers = print->box_elements() == 1;
    return with_promotion(scop, above_band_marks(node), buffer_of(scop, *print, options));
  }
  return std::nullopt;
}

}  // namespace

Scop contract_temporaries(const Scop& scop) {
  Scop result = scop;
  for (const ir::Tensor& tensor : scop.program->tensors) {
    if (tensor.role != Role::kTemporary || contracted(result, tensor.name)) continue;
    const std::optional<isl::schedule_node> home = home_of(result, tensor.name);
    if (!home) continue;
    if (std::optional<Scop> smaller = contract(result, *home, tensor)) result = *smaller;
  }
  return result;
}

bool contracted(const Scop& scop, const std::string& tensor) {
  if (scop.program->tensor(tensor).role != Role::kTemporary) return false;
  for (const Promotion& p : scop.promotions) {
    if (p.tensor != tensor || p.copy_in || p.copy_out) continue;
    const isl::schedule_node mark = node_at(scop, *find_mark(scop, kMarkPrefix + p.name));
    const bool all = std::all_of(scop.accesses.begin(), scop.accesses.end(), [&](const Access& a) {
      return a.tensor != tensor || has_all_instances(mark, scop.schedule.root(), a.statement);
    });
    if (all) return true;
  }
  return false;
}

bool has_values_before(const Scop& scop, const isl::schedule_node& node, const isl::map& box) {
  const std::string tensor = range_name(box);
  const Role role = scop.program->tensor(tensor).role;
  if (role == Role::kInput || role == Role::kInOut) return true;
  // Quotients and remainders in subscripts can make the answer take minutes. Without it nothing is copied.
  constexpr unsigned long kOperations = 100'000;
  return within_operations(node.ctx(), kOperations,
                           [&] { return box.is_subset(read_from_outside(scop, node, tensor)); })
      .value_or(false);
}

bool holds_between(const Scop& scop, const Promotion& promotion, const std::string& from, const std::string& to) {
  const std::optional<NodeRef> ref = find_mark(scop, kMarkPrefix + promotion.name);
  if (!ref) return false;
  const isl::schedule_node mark = node_at(scop, *ref);
  const auto is_below = [&](const std::string& id) { return has_all_instances(mark, scop.schedule.root(), id); };
  if (!is_below(from) || !is_below(to)) return false;
  if (schedule_depth(mark) == 0) return true;
  const isl::multi_union_pw_aff prefix = mark.prefix_schedule_multi_union_pw_aff();
  for (const isl::map& flow : maps_of(scop.dependences.flow)) {
    if (domain_name(flow) != from || range_name(flow) != to) continue;
    const isl::union_map all = flow.to_union_map();
    if (!all.is_subset(all.eq_at(prefix))) return false;
  }
  return true;
}

std::optional<std::string> promotion_fault(const Scop& scop) {
  std::optional<std::string> fault;
  size_t marks = 0;
  scop.schedule.root().foreach_descendant_top_down([&](const isl::schedule_node& node) {
    if (fault || !node.isa<isl::schedule_node_mark>() || mark_name(node).rfind(kMarkPrefix, 0) != 0) return !fault;
    marks += 1;
    fault = fault_at(scop, node);
    return !fault;
  });
  if (!fault && marks != scop.promotions.size()) {
    return fmt::format("{} promotions have {} marks", scop.promotions.size(), marks);
  }
  return fault;
}

}  // namespace tc::poly
