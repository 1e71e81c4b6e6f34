#include "tc/gpu/mapping/registers.h"

#include <isl/schedule_node.h>
#include <isl/set.h>

#include <algorithm>
#include <set>

#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/promote.h"

namespace tc::gpu {
namespace {

using Path = std::vector<int>;

/// The places of the regions' marks.
std::vector<Path> regions_of(const Kernel& kernel) {
  std::vector<Path> result;
  kernel.scop.schedule.root().foreach_descendant_top_down([&](const isl::schedule_node& node) {
    if (!node.isa<isl::schedule_node_mark>() || !poly::mark_name(node).starts_with(kBindMark)) return true;
    const Binding& binding = kernel.binding(poly::mark_name(node));
    if (binding.to != Dealt::To::kThreads) return true;
    if (!binding.cooperative) result.push_back(poly::path_of(node));
    return false;
  });
  return result;
}

/// The place below the members that are dealt out; the others of their band, which run in order, stand there. Nothing
/// if one of them runs around a member that is dealt out.
std::optional<Path> below_dealt(Kernel& kernel, Path path) {
  isl::schedule_node node = poly::node_at(kernel.scop.schedule, path);
  Binding& binding = kernel.bindings.at(std::stoul(poly::mark_name(node).substr(sizeof(kBindMark) - 1)));
  path.push_back(0);
  node = node.child(0);
  const auto absent = [](const std::optional<Dealt>& member) { return !member; };
  auto& members = binding.members;
  const auto dealt = static_cast<size_t>(members.rend() - std::find_if_not(members.rbegin(), members.rend(), absent));
  if (dealt == 0) return path;
  if (std::any_of(members.begin(), members.begin() + static_cast<long>(dealt), absent)) {
    const std::vector<int64_t> extents = poly::band_extents(node.as<isl::schedule_node_band>());
    for (size_t i = 0; i < dealt; ++i) {
      if (!members[i] && extents[i] > 1) return std::nullopt;
    }
  }
  if (dealt < members.size()) {
    kernel.scop.schedule = node.as<isl::schedule_node_band>().split(static_cast<int>(dealt)).schedule();
    members.resize(dealt);
  }
  path.push_back(0);
  return path;
}

/// { [prefix] }: the iterations of the loops above in which something stands at the node.
isl::set iterations_at(const isl::schedule_node& node) {
  const int depth = poly::schedule_depth(node);
  isl::set result = isl::set::empty(isl::space::unit(node.ctx()).add_unnamed_tuple(static_cast<unsigned>(depth)));
  const isl::union_set domain = poly::node_domain(node);
  for (const isl::set& set : poly::sets_of(domain.apply(node.prefix_schedule_union_map()))) result = result.unite(set);
  return result;
}

}  // namespace

isl::set iterations_of_loops(const isl::schedule_node& node) {
  std::vector<isl::schedule_node> inside;  // right below a band, outermost first
  for (isl::schedule_node at = node; at.has_parent(); at = at.parent()) {
    if (at.parent().isa<isl::schedule_node_band>()) inside.insert(inside.begin(), at);
  }
  isl::set result(node.ctx(), "{ [] }");
  for (const isl::schedule_node& below : inside) {
    const std::vector<int64_t> extents = poly::band_extents(below.parent().as<isl::schedule_node_band>());
    const auto members = static_cast<unsigned>(extents.size());
    const int above = poly::schedule_depth(below) - static_cast<int>(members);
    const isl::set hull = isl::manage(isl_set_from_basic_set(isl_set_simple_hull(iterations_at(below).release())));
    const isl::set all = isl::manage(isl_set_add_dims(result.copy(), isl_dim_set, members)).intersect(hull);
    // A loop of one iteration is not in the code, and a condition of it stands below the copies.
    const bool is_hidden = std::any_of(extents.begin(), extents.end(), [](int64_t extent) { return extent == 1; });
    if (is_hidden && !result.is_subset(poly::project_out(all, above, static_cast<int>(members)))) {
      const auto depth = static_cast<unsigned>(poly::schedule_depth(node));
      return isl::set::universe(isl::space::unit(node.ctx()).add_unnamed_tuple(depth));
    }
    result = all;
  }
  return result;
}

namespace {

/// Whether no loop around an instance can be empty: a buffer's copies run in each iteration of the loops above.
bool domains_are_boxes(const isl::schedule_node& node) {
  for (const isl::set& set : poly::sets_of(poly::node_domain(node))) {
    if (isl_set_is_box(set.get()) != isl_bool_true) return false;
  }
  return true;
}

std::set<std::string> written_below(const poly::Scop& scop, const isl::schedule_node& node) {
  const std::vector<std::string> here = poly::statements_at(scop, node);
  std::set<std::string> result;
  for (const poly::Access& access : scop.accesses) {
    if (access.writes() && std::find(here.begin(), here.end(), access.statement) != here.end()) {
      result.insert(access.tensor);
    }
  }
  return result;
}

/// Whether the tensor's element is touched more than once below the node: else a register gains nothing.
bool touched_again(const poly::Scop& scop, const isl::schedule_node& node, const std::string& tensor) {
  if (node.isa<isl::schedule_node_band>()) return true;
  const std::vector<std::string> here = poly::statements_at(scop, node);
  std::set<std::string> users;
  for (const poly::Access& access : scop.accesses) {
    if (access.tensor == tensor && std::find(here.begin(), here.end(), access.statement) != here.end()) {
      users.insert(access.statement);
    }
  }
  return users.size() > 1;
}

/// Whether registers that are wanted at a depth are filled at the node.
bool is_wanted_depth(const isl::schedule_node& node, std::optional<int64_t> depth) {
  if (!depth) return true;
  const int64_t here = poly::schedule_depth(node);
  bool has_loop = false;
  node.foreach_descendant_top_down([&](const isl::schedule_node& below) {
    has_loop = has_loop || below.isa<isl::schedule_node_band>();
    return !has_loop;
  });
  return here == *depth || (here < *depth && !has_loop);
}

/// Whether a register that is written back in every iteration of the loops above puts back elements that the iteration
/// does not write, and that something else in the launch touches: an update by another thread would be lost.
bool puts_back_others(const poly::Scop& scop, const isl::schedule_node& node, const poly::Footprint& print,
                      const std::string& tensor) {
  const isl::map box = poly::box_elements(scop, print.offset, print.extents).intersect_domain(iterations_at(node));
  const isl::map unwritten = box.subtract(poly::elements_touched(scop, node, tensor, poly::Touch::kMustWrite));
  if (unwritten.is_empty()) return false;
  for (const poly::Access& access : scop.accesses) {
    if (access.tensor != tensor || poly::has_all_instances(node, scop.schedule.root(), access.statement)) continue;
    if (!access.relation.range().intersect(unwritten.range()).is_empty()) return true;
  }
  // { [prefix] -> [prefix'] : the second touches what the first puts back }
  const isl::map meets = unwritten.apply_range(poly::elements_touched(scop, node, tensor, poly::Touch::kAny).reverse());
  return !meets.subtract(meets.domain().identity()).is_empty();
}

/// Whether a buffer around the node writes a tensor back, also what nobody reads.
bool is_put_back_above(const poly::Scop& scop, isl::schedule_node node, const std::string& tensor) {
  for (; node.has_parent(); node = node.parent()) {
    if (!node.isa<isl::schedule_node_mark>()) continue;
    const std::string mark = poly::mark_name(node);
    for (const poly::Promotion& p : scop.promotions) {
      if (p.tensor == tensor && p.copy_out && mark == "promote:" + p.name) return true;
    }
  }
  return false;
}

/// Promotes what it can at the node, and below it what it cannot there. A tensor's element must be touched in every
/// iteration of the loops above: the copies are made in each.
void hold_at(poly::Scop& scop, const Path& path, std::set<std::string> held, std::optional<int64_t> depth) {
  const isl::schedule_node node = poly::node_at(scop.schedule, path);
  if (node.isa<isl::schedule_node_leaf>() || !domains_are_boxes(node)) return;
  Path inner = path;
  if (!node.isa<isl::schedule_node_filter>() && is_wanted_depth(node, depth)) {
    for (const std::string& tensor : written_below(scop, node)) {
      const poly::NodeRef here{inner};
      if (held.count(tensor) > 0 || !touched_again(scop, node, tensor)) continue;
      const std::optional<poly::Footprint> footprint = poly::footprint(scop, here, tensor);
      if (!footprint || footprint->box_elements() != 1) continue;
      if (!iterations_of_loops(node).is_subset(footprint->elements.domain())) continue;
      poly::PromoteOptions options;
      options.in_registers = true;
      options.max_elements = 1;
      Result<poly::Scop> promoted = poly::promote(scop, here, tensor, options);
      if (!promoted) continue;
      const isl::map box = poly::box_elements(scop, footprint->offset, footprint->extents);
      const bool copy_in = promoted->promotions.back().copy_in, copy_out = promoted->promotions.back().copy_out;
      if (copy_in && !poly::has_values_before(scop, node, box.intersect_domain(iterations_of_loops(node)))) continue;
      if (copy_out && puts_back_others(scop, node, *footprint, tensor)) continue;
      if (!copy_out && is_put_back_above(scop, node, tensor)) continue;
      scop = *std::move(promoted);
      held.insert(tensor);
      inner.push_back(0);
    }
  }
  const int children = static_cast<int>(poly::node_at(scop.schedule, inner).n_children());
  for (int i = 0; i < children; ++i) {
    Path child = inner;
    child.push_back(i);
    hold_at(scop, child, held, depth);
  }
}

}  // namespace

Kernel hold_in_registers(Kernel kernel, std::optional<int64_t> depth) {
  for (const Path& region : regions_of(kernel)) {
    if (const std::optional<Path> inside = below_dealt(kernel, region)) hold_at(kernel.scop, *inside, {}, depth);
  }
  return kernel;
}

std::optional<int64_t> register_depth(const Kernel& kernel) {
  std::optional<int64_t> least;
  Kernel changed = kernel;
  for (const Path& region : regions_of(kernel)) {
    const std::optional<Path> inside = below_dealt(changed, region);
    if (!inside) continue;
    const int64_t depth = poly::schedule_depth(poly::node_at(changed.scop.schedule, *inside));
    least = std::min(least.value_or(depth), depth);
  }
  return least;
}

}  // namespace tc::gpu
