#include "tc/gpu/strategy/contraction/points.h"

#include <isl/constraint.h>
#include <isl/map.h>
#include <isl/set.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "tc/gpu/mapping/fused_group.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/combine.h"
#include "tc/poly/isl_ext.h"

namespace tc::gpu {

namespace hi = Halide::Internal;
using Halide::Expr;

const isl::set* domain_of(const std::vector<isl::set>& domains, const std::string& id) {
  const auto at =
      std::find_if(domains.begin(), domains.end(), [&](const isl::set& s) { return poly::tuple_name(s) == id; });
  return at == domains.end() ? nullptr : &*at;
}

std::optional<std::vector<Axis>> box_of(const isl::set& domain, const std::vector<std::string>& names) {
  if (isl_set_is_box(domain.get()) != isl_bool_true) return std::nullopt;
  std::vector<Axis> axes;
  for (size_t i = 0; i < names.size(); ++i) {
    const int64_t begin = poly::to_int64(domain.dim_min_val(static_cast<int>(i)));
    const int64_t extent = poly::to_int64(domain.dim_max_val(static_cast<int>(i))) - begin + 1;
    if (begin < INT32_MIN / 4 || begin > INT32_MAX / 4 || extent > INT32_MAX / 4) return std::nullopt;
    axes.push_back({names[i], begin, extent});
  }
  return axes;
}

namespace {

/// An update without a reduction, in its tensor's own type, sets the element from the old value:
///     C(m,n) += b(n)   ==>   C(m,n) = C(m,n) + b(n)
poly::Statement as_set(poly::Statement statement) {
  const Expr old = hi::Call::make(statement.accumulator, statement.tensor, statement.subscripts, hi::Call::PureExtern);
  statement.value = ir::combine(statement.assign, old, statement.value);
  statement.kind = poly::Statement::Kind::kSet;
  statement.assign = ir::Assign::kSet;
  return statement;
}

bool is_reduced(const poly::Statement& statement, size_t index) {
  return index < statement.is_reduction.size() && statement.is_reduction[index];
}

}  // namespace

std::vector<std::string> PointGroup::axis_names() const {
  std::vector<std::string> names;
  for (const Axis& axis : axes_) names.push_back(axis.name);
  return names;
}

/// With an index for each axis, if they have the same values there.
std::optional<PointGroup::Placement> PointGroup::placed(const poly::Statement& statement, const std::vector<Axis>& box,
                                                        std::vector<std::optional<ShiftedIndex>> point) const {
  Placement result;
  std::set<std::string> taken;
  for (size_t a = 0; a < axes_.size(); ++a) {
    if (!point[a] || is_reduced(statement, point[a]->index)) return std::nullopt;
    const Axis& mine = box[point[a]->index];
    const int64_t offset = point[a]->constant;
    if (mine.begin + offset != axes_[a].begin || mine.extent != axes_[a].extent) return std::nullopt;
    Expr value = hi::Variable::make(ir::index_type(), axes_[a].name);
    taken.insert(axes_[a].name);
    if (offset != 0) value = value - hi::make_const(ir::index_type(), offset);
    if (!result.renamed.emplace(mine.name, value).second) return std::nullopt;
    result.point.push_back(*point[a]);
  }
  for (size_t i = 0; i < statement.indices.size(); ++i) {
    if (result.renamed.count(statement.indices[i]) > 0) continue;
    if (!is_reduced(statement, i)) return std::nullopt;
    std::string name = statement.indices[i];
    while (taken.count(name) > 0) name += "_";
    taken.insert(name);
    result.renamed[statement.indices[i]] = hi::Variable::make(ir::index_type(), name);
  }
  return result;
}

/// Where these subscripts, over the statement's indices, are those of a point's element.
std::optional<PointGroup::Placement> PointGroup::placed_at(const poly::Statement& statement,
                                                           const std::vector<Axis>& box,
                                                           const std::vector<Expr>& subscripts,
                                                           const std::vector<Expr>& element) const {
  std::vector<std::optional<ShiftedIndex>> point(axes_.size());
  for (size_t d = 0; d < subscripts.size(); ++d) {
    if (hi::is_const(subscripts[d]) && hi::equal(subscripts[d], element[d])) continue;
    const std::optional<ShiftedIndex> own = shifted(subscripts[d], statement.indices);
    const std::optional<ShiftedIndex> of_group = shifted(element[d], axis_names());
    if (!own || !of_group || point[of_group->index]) return std::nullopt;
    point[of_group->index] = ShiftedIndex{own->index, own->constant - of_group->constant};
  }
  return placed(statement, box, std::move(point));
}

/// Where the axes have the names of the statement's indices.
std::optional<PointGroup::Placement> PointGroup::placed_by_names(const poly::Statement& statement,
                                                                 const std::vector<Axis>& box) const {
  std::vector<std::optional<ShiftedIndex>> point(axes_.size());
  for (size_t a = 0; a < axes_.size(); ++a) {
    for (size_t i = 0; i < box.size(); ++i) {
      if (box[i].name == axes_[a].name) point[a] = ShiftedIndex{i, axes_[a].begin - box[i].begin};
    }
  }
  return placed(statement, box, std::move(point));
}

/// Where the axes are the subscripts of what the statement writes, in order.
std::optional<PointGroup::Placement> PointGroup::placed_in_order(const poly::Statement& statement,
                                                                 const std::vector<Axis>& box) const {
  std::vector<std::optional<ShiftedIndex>> point(axes_.size());
  if (statement.subscripts.size() != axes_.size()) return std::nullopt;
  for (size_t a = 0; a < axes_.size(); ++a) {
    const std::optional<ShiftedIndex> own = shifted(statement.subscripts[a], statement.indices);
    if (!own) return std::nullopt;
    point[a] = ShiftedIndex{own->index, axes_[a].begin - box[own->index].begin};
  }
  return placed(statement, box, std::move(point));
}

/// How a statement may be on the points: by what it writes or reads of what the group has written; else by itself.
std::vector<PointGroup::Placement> PointGroup::placements(const poly::Statement& statement,
                                                          const std::vector<Axis>& box) {
  std::vector<Placement> result;
  bool anchored = false;
  const auto add = [&](std::optional<Placement> placement) {
    if (placement) result.push_back(*std::move(placement));
  };
  const auto anchor = [&](const std::string& tensor, const std::vector<Expr>& subscripts) {
    const auto known = elements_.find(tensor);
    if (known == elements_.end()) return;
    anchored = true;
    add(placed_at(statement, box, subscripts, known->second));
  };
  anchor(statement.tensor, statement.subscripts);
  for (const hi::Call* read : reads_in(*scop_.program, statement.value)) anchor(read->name, read->args);
  if (anchored) return result;
  add(placed_in_order(statement, box));
  add(placed_by_names(statement, box));
  const auto differ = [](const ShiftedIndex& a, const ShiftedIndex& b) { return a.index != b.index; };
  if (result.size() == 2 &&
      !std::equal(result[0].point.begin(), result[0].point.end(), result[1].point.begin(), std::not_fn(differ))) {
    is_ambiguous_ = true;
    if (by_ == By::kNames) std::swap(result[0], result[1]);
  }
  return result;
}

bool PointGroup::is_element(const std::string& tensor, const std::vector<Expr>& subscripts) const {
  const auto known = elements_.find(tensor);
  if (known == elements_.end()) return true;
  for (size_t d = 0; d < subscripts.size(); ++d) {
    const std::optional<LinearForm> x = linear(hi::simplify(subscripts[d]), axis_names());
    const std::optional<LinearForm> y = linear(known->second[d], axis_names());
    if (!x || !y || x->coefficients != y->coefficients || x->constant != y->constant) return false;
  }
  return true;
}

/// Whether a statement touches, of each tensor that the group writes, the point's element alone.
bool PointGroup::has_own_elements(const poly::Statement& statement) const {
  const auto reads = reads_in(*scop_.program, statement.value);
  return is_element(statement.tensor, statement.subscripts) &&
         std::all_of(reads.begin(), reads.end(), [&](const auto* read) { return is_element(read->name, read->args); });
}

/// { S[i] -> T[j] } of one point.
isl::map PointGroup::same_point(const isl::map& instances, const std::string& from, const std::string& to) const {
  isl_basic_map* same = isl_basic_map_universe(isl_map_get_space(instances.get()));
  for (size_t a = 0; a < axes_.size(); ++a) {
    const ShiftedIndex &first = points_.at(from)[a], &second = points_.at(to)[a];
    isl_constraint* equal = isl_constraint_alloc_equality(isl_basic_map_get_local_space(same));
    equal = isl_constraint_set_coefficient_si(equal, isl_dim_in, static_cast<int>(first.index), 1);
    equal = isl_constraint_set_coefficient_si(equal, isl_dim_out, static_cast<int>(second.index), -1);
    equal = isl_constraint_set_constant_si(equal, static_cast<int>(first.constant - second.constant));
    same = isl_basic_map_add_constraint(same, equal);
  }
  return isl::manage(isl_map_from_basic_map(same));
}

/// Whether every dependence on earlier statements of the group, and on itself, connects instances of one point.
bool PointGroup::within_points(const poly::Statement& statement) const {
  const auto is_within = [&](const isl::map& all) {
    const std::string from = isl_map_get_tuple_name(all.get(), isl_dim_in);
    const std::string to = isl_map_get_tuple_name(all.get(), isl_dim_out);
    if (points_.count(from) == 0 || to != statement.id) return true;
    const isl::map same = same_point(all, from, to);
    // Most have the equalities of the points among their own, which is found without a look for integer points.
    if (isl_map_plain_is_equal(all.intersect(same).get(), all.get()) == isl_bool_true) return true;
    const isl::set *domain = domain_of(domains_, from), *range = domain_of(domains_, to);
    return bool(all.intersect_domain(*domain).intersect_range(*range).is_subset(same));
  };
  const std::vector<isl::map> ordered = poly::maps_of(scop_.dependences.ordered());
  const std::vector<isl::map> reduction = poly::maps_of(scop_.dependences.reduction);
  return std::all_of(ordered.begin(), ordered.end(), is_within) &&
         std::all_of(reduction.begin(), reduction.end(), is_within);
}

/// Adds a statement over the axes, if that keeps the elements of all to their points.
bool PointGroup::takes(const Member& member) {
  const poly::Statement& s = member.statement;
  // Sums are made before any statement on points runs.
  const auto reads = reads_in(*scop_.program, s.value);
  const auto reads_results = [&](const hi::Call* read) {
    return elements_.count(read->name) > 0 || read->name == s.tensor;
  };
  if (member.sums && std::any_of(reads.begin(), reads.end(), reads_results)) return false;
  // Operands are copied by tiles, which may hold more elements than the sums read.
  const auto sums_read = [&](const Member& m) {
    const auto read = reads_in(*scop_.program, m.statement.value);
    return m.sums && std::any_of(read.begin(), read.end(), [&](const auto* r) { return r->name == s.tensor; });
  };
  if (std::any_of(members_.begin(), members_.end(), sums_read)) return false;
  const bool fresh = elements_.count(s.tensor) == 0;
  if (fresh) {
    for (const Expr& subscript : s.subscripts) elements_[s.tensor].push_back(hi::simplify(subscript));
  }
  // What is written from here on may have been read before, elsewhere.
  const auto keeps = [&](const Member& m) { return m.sums || has_own_elements(m.statement); };
  if (is_element(s.tensor, s.subscripts) && keeps(member) && std::all_of(members_.begin(), members_.end(), keeps)) {
    members_.push_back(member);
    return true;
  }
  if (fresh) elements_.erase(s.tensor);
  return false;
}

std::optional<poly::Statement> PointGroup::add(const poly::Statement& statement) {
  const isl::set* domain = domain_of(domains_, statement.id);
  if (!domain || statement.guard.defined()) return std::nullopt;
  const std::optional<std::vector<Axis>> box = box_of(*domain, statement.indices);
  if (!box) return std::nullopt;
  Member member{statement};
  for (size_t i = 0; i < statement.indices.size(); ++i) member.sums = member.sums || is_reduced(statement, i);
  if (statement.kind == poly::Statement::Kind::kUpdate) {
    if (statement.accumulator != scop_.program->tensor(statement.tensor).type) return std::nullopt;
    if (!member.sums) member.statement = as_set(statement);
  }
  const poly::Statement own = member.statement;
  for (const Placement& placement : placements(own, *box)) {
    member.statement.value = hi::substitute(placement.renamed, own.value);
    member.statement.subscripts.clear();
    for (const Expr& subscript : own.subscripts) {
      member.statement.subscripts.push_back(hi::simplify(hi::substitute(placement.renamed, subscript)));
    }
    for (size_t i = 0; i < own.indices.size(); ++i) {
      const auto* name = placement.renamed.at(own.indices[i]).as<hi::Variable>();
      if (name != nullptr) member.statement.indices[i] = name->name;
    }
    if (!takes(member)) continue;
    points_[statement.id] = placement.point;
    return within_points(statement) ? std::optional(member.statement) : std::nullopt;
  }
  return std::nullopt;
}

bool PointGroup::are_linked(const std::string& tensor, const std::string& other) const {
  std::set<std::string> linked = {tensor};
  for (size_t before = 0; before != linked.size();) {
    before = linked.size();
    for (const Member& member : members_) {
      std::set<std::string> touched = {member.statement.tensor};
      for (const hi::Call* read : reads_in(*scop_.program, member.statement.value)) {
        if (elements_.count(read->name) > 0) touched.insert(read->name);
      }
      const bool meets =
          std::any_of(touched.begin(), touched.end(), [&](const auto& t) { return linked.count(t) > 0; });
      if (meets) linked.insert(touched.begin(), touched.end());
    }
  }
  return linked.count(other) > 0;
}

}  // namespace tc::gpu
