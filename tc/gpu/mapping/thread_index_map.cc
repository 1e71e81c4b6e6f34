#include "tc/gpu/mapping/thread_index_map.h"

#include <isl/schedule_node.h>
#include <isl/union_map.h>

#include <functional>

#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::gpu {
namespace {

/// Calls `visit` with each node and its path; it says whether to go below.
void walk(const isl::schedule_node& node, const std::function<bool(const isl::schedule_node&)>& visit) {
  if (!visit(node)) return;
  for (unsigned i = 0; i < node.n_children(); ++i) walk(node.child(i), visit);
}

bool is_mark(const isl::schedule_node& node, const std::string& prefix) {
  return node.isa<isl::schedule_node_mark>() && poly::mark_name(node).starts_with(prefix);
}

isl::union_pw_aff manage(isl_union_pw_aff* raw) {
  TC_CHECK(raw != nullptr, "isl has lost a function");
  return isl::manage(raw);
}

}  // namespace

isl::multi_union_pw_aff thread_index_map(const Kernel& kernel, const isl::schedule_node& below, Dealt::To to) {
  const isl::union_set domain = poly::node_domain(below);
  isl_ctx* ctx = below.ctx().get();
  std::array<std::optional<isl::union_pw_aff>, 3> axes;
  walk(below, [&](const isl::schedule_node& node) {
    if (!is_mark(node, kBindMark)) return true;
    const Binding& binding = kernel.binding(poly::mark_name(node));
    if (binding.to != to || !node.child(0).isa<isl::schedule_node_band>()) return true;
    const isl::multi_union_pw_aff partial = node.child(0).as<isl::schedule_node_band>().partial_schedule();
    // Its functions may be defined for instances that another loop has.
    const isl::union_set here = poly::node_domain(node).intersect(domain);
    for (size_t i = 0; i < binding.members.size(); ++i) {
      const std::optional<Dealt>& dealt = binding.members[i];
      if (!dealt) continue;
      isl_union_pw_aff* value = partial.at(static_cast<int>(i)).release();
      value = isl_union_pw_aff_scale_down_val(value, isl_val_int_from_si(ctx, dealt->stride));
      value = isl_union_pw_aff_floor(value);
      value = isl_union_pw_aff_mod_val(value, isl_val_int_from_si(ctx, kernel.count(*dealt)));
      value = isl_union_pw_aff_intersect_domain(value, here.copy());
      auto& axis = axes[static_cast<size_t>(dealt->axis)];
      axis = axis ? axis->union_add(manage(value)) : manage(value);
    }
    return true;
  });
  isl_union_pw_aff_list* list = isl_union_pw_aff_list_alloc(ctx, 3);
  for (auto& axis : axes) {
    isl::union_set rest = axis ? domain.subtract(axis->domain()) : domain;
    isl::union_pw_aff zero = manage(isl_union_pw_aff_val_on_domain(rest.release(), isl_val_zero(ctx)));
    list = isl_union_pw_aff_list_add(list, (axis ? axis->union_add(zero) : zero).release());
  }
  isl_space* space = isl_space_set_alloc(ctx, 0, 3);
  return isl::manage(isl_multi_union_pw_aff_from_union_pw_aff_list(space, list));
}

}  // namespace tc::gpu
