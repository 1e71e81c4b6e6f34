#include "tc/gpu/mapping/thread_tile.h"

#include <isl/aff.h>
#include <isl/schedule_node.h>
#include <isl/union_map.h>

#include "tc/gpu/mapping/registers.h"
#include "tc/gpu/mapping/thread_index_map.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/promote.h"

namespace tc::gpu {
namespace {

constexpr int64_t kMostRegisters = 256;

/// { [prefix, thread along x, y, z] -> T[x] } of the accesses of one kind below the node.
isl::map elements_of_threads(const Kernel& kernel, const isl::schedule_node& node, const std::string& tensor,
                             bool must_write) {
  const isl::union_map prefix = node.prefix_schedule_union_map();
  const isl::union_map threads = isl::union_map::from(thread_index_map(kernel, node, Dealt::To::kThreads));
  const isl::union_map both = isl::manage(isl_union_map_flat_range_product(prefix.copy(), threads.copy()));
  isl::union_map touched = isl::union_map::empty(node.ctx());
  for (const poly::Access& access : kernel.scop.accesses) {
    if (access.tensor != tensor || (must_write && access.kind != poly::Access::Kind::kWrite)) continue;
    touched = touched.unite(access.relation.to_union_map());
  }
  const isl::space space = isl::space::unit(node.ctx())
                               .add_unnamed_tuple(static_cast<unsigned>(poly::schedule_depth(node) + 3))
                               .add_named_tuple(tensor, kernel.scop.program->tensor(tensor).rank());
  return touched.intersect_domain(poly::node_domain(node)).apply_domain(both).extract_map(space).coalesce();
}

/// All threads of a block in the iterations { [prefix, thread] } that have some.
isl::set all_threads(const Kernel& kernel, const isl::set& present, int depth) {
  isl::set all = poly::project_out(present, depth, 3);
  all = isl::manage(isl_set_add_dims(all.release(), isl_dim_set, 3));
  for (int axis = 0; axis < 3; ++axis) {
    const int at = depth + axis;
    all = isl::manage(isl_set_lower_bound_si(all.release(), isl_dim_set, static_cast<unsigned>(at), 0));
    all = isl::manage(isl_set_upper_bound_si(all.release(), isl_dim_set, static_cast<unsigned>(at),
                                             static_cast<int>(kernel.block[static_cast<size_t>(axis)] - 1)));
  }
  return all;
}

bool is_linear(const isl::multi_aff& offset) {
  for (int d = 0; d < static_cast<int>(isl_multi_aff_dim(offset.get(), isl_dim_out)); ++d) {
    const isl::aff at = offset.at(d);
    if (isl_aff_dim(at.get(), isl_dim_div) != 0) return false;
  }
  return true;
}

}  // namespace

Result<Kernel> hold_in_threads_at(const Kernel& kernel, const poly::NodeRef& ref, const std::string& tensor) {
  const auto refuse = [&](const std::string& reason) {
    return fail("cannot hold '{}' in registers: {}", tensor, reason);
  };
  const isl::schedule_node node = poly::node_at(kernel.scop, ref);
  const isl::map elements = elements_of_threads(kernel, node, tensor, false);
  if (elements.is_empty()) return refuse("it is not used there");
  const isl::fixed_box hull = elements.range_simple_fixed_box_hull();
  if (!hull.is_valid() || !is_linear(hull.offset())) return refuse("what a thread uses has no box of constant size");
  ThreadTile tile{hull.offset(), {}};
  int64_t count = 1;
  for (int d = 0; d < kernel.scop.program->tensor(tensor).rank(); ++d) {
    tile.extents.push_back(poly::to_int64(hull.size().at(d)));
    count = std::min(count * std::min(tile.extents.back(), kMostRegisters + 1), kMostRegisters + 1);
  }
  if (count > kMostRegisters) return refuse(fmt::format("a thread has more than {} elements", kMostRegisters));
  const int depth = poly::schedule_depth(node);
  if (!iterations_of_loops(node).is_subset(poly::project_out(elements.domain(), depth, 3))) {
    return refuse("in some iterations of the loops above it is not used");
  }
  isl::map sharing = elements.apply_range(elements.reverse());  // { [prefix, t] -> [prefix', t'] of one element }
  for (int d = 0; d < depth; ++d) sharing = sharing.eq_at(poly::variable(sharing.domain().space(), d));
  if (!sharing.is_subset(sharing.domain().identity())) return refuse("several threads use the same element");

  poly::PromoteOptions options;
  options.in_registers = true;
  TC_TRY(promoted, poly::promote(kernel.scop, ref, tensor, options));
  const poly::Promotion& promotion = promoted.promotions.back();
  const isl::map box = poly::box_elements(kernel.scop, tile.offset, tile.extents)
                           .intersect_domain(all_threads(kernel, elements.domain(), depth));
  if (promotion.copy_in && !box.is_subset(elements)) return refuse("a thread does not use all of its box");
  const auto first_thread = static_cast<unsigned>(depth);
  const isl::map of_block = isl::manage(isl_map_project_out(box.copy(), isl_dim_in, first_thread, 3));
  if (promotion.copy_in && !poly::has_values_before(kernel.scop, node, of_block)) {
    return refuse("some of its box holds nothing yet");
  }
  if (promotion.copy_out && !box.is_subset(elements_of_threads(kernel, node, tensor, true))) {
    return refuse("a thread does not write all of its box");
  }
  Kernel result = kernel;
  result.thread_tiles.emplace(promotion.name, std::move(tile));
  result.scop = std::move(promoted);
  return result;
}

}  // namespace tc::gpu
