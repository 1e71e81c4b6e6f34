#include "tc/gpu/mapping/copies.h"

#include <isl/aff.h>
#include <isl/schedule_node.h>
#include <isl/union_map.h>

#include <algorithm>

#include "tc/ir/layouts.h"
#include "tc/ir/specialise.h"
#include "tc/poly/dependences.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/promote.h"
#include "tc/poly/rebuild.h"
#include "tc/support/check.h"
#include "tc/support/round.h"
#include "tc/tile/program.h"

namespace tc::gpu {
namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kBankBytes = 4;

/// The tree around a node, with other things there: `whole` in its place schedules `added` { name[prefix] } too, which
/// the bands above order by their prefixes.
isl::schedule around(isl::schedule_node node, isl::schedule whole, const std::vector<isl::set>& added) {
  for (; node.has_parent(); node = node.parent()) {
    const isl::schedule_node parent = node.parent();
    if (parent.isa<isl::schedule_node_mark>()) {
      whole = poly::insert_mark(whole, poly::mark_name(parent));
    } else if (parent.isa<isl::schedule_node_band>()) {
      const auto band = parent.as<isl::schedule_node_band>();
      const int depth = poly::schedule_depth(band);
      isl::multi_union_pw_aff partial = band.partial_schedule().intersect_domain(poly::node_domain(band));
      for (const isl::set& instances : added) {
        std::vector<std::vector<isl::aff>> rows;
        for (unsigned m = 0; m < band.n_member(); ++m) {
          rows.push_back({poly::variable(instances.space(), depth + static_cast<int>(m))});
        }
        partial = partial.union_add(poly::band_schedule(node.ctx(), rows).intersect_domain(instances.to_union_set()));
      }
      whole = poly::under_band(partial, poly::flags_of(band), whole);
    } else if (parent.isa<isl::schedule_node_filter>()) {
      const isl::schedule_node sequence = parent.parent();
      isl::schedule all;
      for (int i = 0; i < static_cast<int>(sequence.n_children()); ++i) {
        const isl::schedule part =
            i == static_cast<int>(parent.child_position()) ? whole : poly::subtree(sequence.child(i).child(0));
        all = all.is_null() ? part : poly::sequence(all, part);
      }
      whole = all;
      node = parent;
    }
  }
  return whole;
}

/// { S[i] -> [prefix] } of the statements that touch the tensor below the node.
isl::union_map users_of(const poly::Scop& scop, const isl::schedule_node& node, const std::string& tensor,
                        bool writers_only) {
  isl::union_set users = isl::union_set::empty(node.ctx());
  const isl::union_set here = poly::node_domain(node);
  for (const poly::Access& access : scop.accesses) {
    if (access.tensor != tensor || (writers_only && !access.writes())) continue;
    users = users.unite(here.intersect(access.relation.domain().to_union_set().universe()));
  }
  return node.prefix_schedule_union_map().intersect_domain(users);
}

/// What the buffer of one promotion asks for: its copies before and behind its users, and nothing new in it before what
/// an earlier iteration has of it is no longer wanted.
isl::union_map order_of(const isl::union_map& users, const isl::union_map& writers, const isl::set& prefixes,
                        const std::vector<Copy>& copies) {
  isl::union_map order = isl::union_map::empty(users.ctx()), writes = writers, all = users;
  for (const Copy& copy : copies) {
    const isl::union_map prefix = prefixes.identity().set_domain_tuple(copy.statement).to_union_map();
    order = order.unite(copy.out ? writers.apply_range(prefix.reverse()) : prefix.apply_range(users.reverse()));
    all = all.unite(prefix);
    if (!copy.out) writes = writes.unite(prefix);
  }
  const isl::union_map later = poly::lex_lt(prefixes.space()).to_union_map();  // { [prefix] -> [a later one] }
  return order.unite(writes.apply_range(later).apply_range(all.reverse()))
      .unite(all.apply_range(later).apply_range(writes.reverse()))
      .coalesce();
}

/// Of the instances that a region deals out along x: which tensor dimensions the thread's own loop moves.
bool moves_across_rows(const poly::Scop& scop, const poly::BandInfo& band, int member, const std::string& tensor) {
  for (const poly::Access& access : scop.accesses) {
    if (access.tensor != tensor) continue;
    const std::vector<std::string>& indices = scop.statement(access.statement).indices;
    const auto index = std::find(indices.begin(), indices.end(), band.index_of(member, access.statement));
    if (index == indices.end()) continue;
    const auto in = static_cast<size_t>(index - indices.begin());
    const size_t rank = access.relation.range_tuple_dim();
    for (const std::vector<int64_t>& row : poly::implied_equalities(access.relation)) {
      for (size_t d = 0; d + 1 < rank; ++d) {
        if (row[in] != 0 && row[indices.size() + d] != 0) return true;
      }
    }
  }
  return false;
}

/// Elements behind a row of that many such that columns meet every bank.
int64_t pad_of(int64_t row, int64_t element_bytes) {
  int64_t pad = 0;
  const auto is_odd = [&] {
    const int64_t bytes = (row + pad) * element_bytes;
    return bytes % kBankBytes == 0 && bytes / std::max(kBankBytes, element_bytes) % 2 == 1;
  };
  while (!is_odd()) ++pad;
  return pad;
}

bool divides(int64_t divisor, const isl::aff& value, const isl::set& where) {
  const isl::aff rest = isl::manage(isl_aff_mod_val(value.copy(), poly::make_val(value.ctx(), divisor).release()));
  const isl::pw_aff zero = poly::constant(where.space(), 0);
  return isl::pw_aff(rest).ne_set(zero).intersect(where).is_empty();
}

/// A promotion to be, and what surrounds it.
struct Plan {
  poly::Footprint print;
  isl::set prefixes;
  ir::Shape shape;  ///< of the tensor
  bool across = false;
  int64_t vector = 1;
  int64_t pad = 0;
  std::vector<bool> guarded;
};

void choose_layout(Plan& plan, const ir::Tensor& tensor, const CopyOptions& options) {
  const size_t rank = plan.shape.size();
  if (rank == 0) return;
  const int64_t bytes = tile::element_bytes(tensor.type);
  int64_t& row = plan.print.extents[rank - 1];
  if (plan.across && rank > 1) {
    plan.pad = pad_of(row, bytes);
  } else {
    const isl::aff offset = plan.print.offset.at(static_cast<int>(rank) - 1);
    const int64_t pitch = ir::pitch_of(tensor);
    int64_t vector = std::max<int64_t>(std::min(kVectorBytes, options.vector_bytes) / bytes, 1);
    // Only what nobody writes may be read where it is not used.
    const auto fits = [&] {
      return plan.shape[rank - 1] % vector == 0 && pitch % vector == 0 && divides(vector, offset, plan.prefixes) &&
             (row % vector == 0 || (tensor.role == ir::Role::kInput && row > vector));
    };
    while (vector > 1 && !fits()) vector /= 2;
    plan.vector = vector;
    row = round_up(row, vector);
  }
}

void find_guards(Plan& plan) {
  const isl::map corner = plan.print.offset.as_map().intersect_domain(plan.prefixes);
  for (size_t d = 0; d < plan.shape.size(); ++d) {
    const int64_t first = poly::to_int64(corner.range().dim_min_val(static_cast<int>(d)));
    const int64_t last = poly::to_int64(corner.range().dim_max_val(static_cast<int>(d)));
    plan.guarded.push_back(first < 0 || last + plan.print.extents[d] > plan.shape[d]);
  }
}

std::optional<Plan> plan_of(const Kernel& kernel, const poly::NodeRef& node, const std::string& tensor,
                            const CopyOptions& options = {}) {
  std::optional<poly::Footprint> print = poly::footprint(kernel.scop, node, tensor);
  if (!print) return std::nullopt;
  Plan plan;
  plan.print = *std::move(print);
  plan.shape = ir::constant_shape(kernel.scop.program->tensor(tensor));
  plan.prefixes = plan.print.elements.domain();
  plan.across = across_rows(kernel, node, tensor);
  choose_layout(plan, kernel.scop.program->tensor(tensor), options);
  find_guards(plan);
  return plan;
}

int64_t bytes_of(const std::vector<int64_t>& extents, int64_t pad, Halide::Type type) {
  int64_t elements = 1;
  for (size_t d = 0; d < extents.size(); ++d) {
    const int64_t extent = extents[d] + (d + 1 == extents.size() ? pad : 0);
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > INT32_MAX) return INT64_MAX;
  }
  return (elements * tile::element_bytes(type) + tile::kSharedAlignment - 1) / tile::kSharedAlignment *
         tile::kSharedAlignment;
}

/// What speaks against buffers of a tensor that is written in this launch or another.
std::optional<std::string> fault_of(const Kernel& kernel, const isl::schedule_node& node, const Plan& plan,
                                    const poly::Promotion& promotion) {
  const poly::Scop& scop = kernel.scop;
  const std::string& tensor = promotion.tensor;
  const std::vector<std::string> launch = poly::statements_at(scop, scop.schedule.root());
  bool written = false, outside = false;
  for (const poly::Access& access : scop.accesses) {
    if (access.tensor != tensor || std::count(launch.begin(), launch.end(), access.statement) == 0) continue;
    if (access.kind == poly::Access::Kind::kMayWrite) return "a data-dependent subscript or condition writes it";
    written = written || access.writes();
    outside = outside || !poly::has_all_instances(node, scop.schedule.root(), access.statement);
  }
  const isl::map box = poly::box_elements(scop, plan.print.offset, plan.print.extents).intersect_domain(plan.prefixes);
  if (written && outside) return "it is written in this launch, and used in other loops too";
  if (written && !box.is_injective() && (promotion.copy_in || promotion.copy_out)) {
    return "iterations of the loops above use the same elements";
  }
  if (promotion.copy_in && !poly::has_values_before(scop, node, box)) return "some of its box holds nothing yet";
  const isl::map sure = poly::elements_touched(scop, node, tensor, poly::Touch::kMustWrite);
  if (promotion.copy_out && !box.is_subset(sure)) return "some of its box is not written";
  return std::nullopt;
}

/// What speaks against copies that run ahead: that they bring what the launch itself writes.
std::optional<std::string> stage_fault(const Kernel& kernel, const poly::Promotion& promotion) {
  const isl::union_set launch = poly::node_domain(kernel.scop.schedule.root());
  for (const poly::Access& writer : kernel.scop.accesses) {
    if (writer.tensor != promotion.tensor || !writer.writes()) continue;
    const isl::set instances = writer.relation.domain();
    if (instances.to_union_set().intersect(launch).is_empty()) continue;
    const isl::union_map needed =
        kernel.scop.dependences.flow.intersect_domain(instances.to_union_set()).intersect_range(launch);
    if (needed.is_empty()) return fmt::format("{} writes it in the same launch", writer.statement);
    const poly::Violation pair = poly::first_pair(kernel.scop, needed);
    return fmt::format("{} reads what {} writes in the same launch", pair.later, pair.earlier);
  }
  if (!promotion.copy_in) return "nothing is copied to its buffer";
  return std::nullopt;
}

/// A copy's statement as a part of the tree.
isl::schedule leaf_of(Kernel& kernel, const isl::set& prefixes, const Copy& copy, std::vector<isl::set>& added) {
  added.push_back(poly::rename_tuple(prefixes, copy.statement));
  Binding binding{Dealt::To::kThreads, {}, true};
  kernel.bindings.push_back(std::move(binding));
  kernel.copies.push_back(copy);
  return poly::insert_mark(isl::schedule::from_domain(added.back().to_union_set()),
                           kBindMark + std::to_string(kernel.bindings.size() - 1));
}

}  // namespace

bool across_rows(const Kernel& kernel, const poly::NodeRef& node, const std::string& tensor) {
  bool found = false;
  poly::node_at(kernel.scop, node).foreach_descendant_top_down([&](const isl::schedule_node& mark) {
    if (found || !mark.isa<isl::schedule_node_mark>() || !poly::mark_name(mark).starts_with(kBindMark)) return !found;
    const Binding& binding = kernel.binding(poly::mark_name(mark));
    for (size_t m = 0; m < binding.members.size() && binding.to == Dealt::To::kThreads; ++m) {
      if (!binding.members[m] || binding.members[m]->axis != 0) continue;
      const poly::BandInfo band = poly::band_info(kernel.scop, {poly::path_of(mark.child(0))});
      found = found || moves_across_rows(kernel.scop, band, static_cast<int>(m), tensor);
    }
    return !found;
  });
  return found;
}

int64_t shared_bytes_at(const Kernel& kernel, const poly::NodeRef& node, const std::string& tensor) {
  const std::optional<Plan> plan = plan_of(kernel, node, tensor);
  return plan ? bytes_of(plan->print.extents, plan->pad, kernel.scop.program->tensor(tensor).type) : INT64_MAX;
}

int64_t shared_bytes(const Kernel& kernel) {
  int64_t bytes = 0;
  for (const poly::Promotion& p : kernel.scop.promotions) {
    if (p.in_registers) continue;
    bytes += bytes_of(p.extents, kernel.pads.at(p.name), kernel.scop.program->tensor(p.tensor).type);
  }
  return bytes;
}

Result<Kernel> hold_in_shared_at(const Kernel& kernel, const poly::NodeRef& ref, const std::string& tensor,
                                 const CopyOptions& options) {
  const std::optional<Plan> plan = plan_of(kernel, ref, tensor, options);
  if (!plan) return fail("cannot promote '{}': the part used there has no box of constant size", tensor);
  Kernel result = kernel;
  TC_TRY(promoted, poly::promote(kernel.scop, ref, tensor));
  poly::Promotion& promotion = promoted.promotions.back();
  const isl::schedule_node node = poly::node_at(promoted, ref.below());
  promotion.extents = plan->print.extents;
  if (const auto fault = fault_of(kernel, node, *plan, promotion)) {
    return fail("cannot promote '{}' to shared memory: {}", tensor, *fault);
  }
  if (options.stages > 1) {
    if (const auto fault = stage_fault(kernel, promotion)) return fail("cannot stage '{}': {}", tensor, *fault);
  }
  std::vector<Copy> copies;
  std::vector<isl::set> added;
  isl::schedule whole = poly::subtree(node);
  const isl::union_map users = users_of(promoted, node, tensor, false),
                       writers = users_of(promoted, node, tensor, true);
  if (promotion.copy_in) {
    copies.push_back(
        {promotion.name + "_in", promotion.name, false, plan->vector, plan->guarded, options.by_one, options.stages});
    whole = poly::sequence(leaf_of(result, plan->prefixes, copies.back(), added), whole);
  }
  if (promotion.copy_out) {
    copies.push_back({promotion.name + "_out", promotion.name, true, plan->vector, plan->guarded, options.by_one});
    whole = poly::sequence(whole, leaf_of(result, plan->prefixes, copies.back(), added));
  }
  if (options.stages == 1) {
    const isl::union_map order = order_of(users, writers, plan->prefixes, copies);
    result.copy_order = result.copy_order ? result.copy_order->unite(order) : order;
  }
  result.pads[promotion.name] = plan->pad;
  promoted.schedule = around(node, whole, added);
  result.scop = std::move(promoted);
  return result;
}

}  // namespace tc::gpu
