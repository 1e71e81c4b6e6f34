#include "tc/gpu/cut.h"

#include "tc/gpu/bind.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/rebuild.h"

namespace tc::gpu {

std::vector<poly::Scop> cut(const poly::Scop& scop) {
  std::vector<poly::Scop> parts;
  if (scop.domain.is_empty()) return parts;
  const isl::schedule_node top = scop.schedule.root().child(0);
  auto add = [&](const isl::schedule_node& node) {
    poly::Scop part = scop;
    part.schedule = poly::subtree(node);
    if (part.schedule.domain().is_empty()) return;
    if (!parts.empty() && !has_blocks(parts.back()) && !has_blocks(part)) {
      parts.back().schedule = poly::sequence(parts.back().schedule, part.schedule);
    } else {
      parts.push_back(std::move(part));
    }
  };
  if (!top.isa<isl::schedule_node_sequence>() && !top.isa<isl::schedule_node_set>()) {
    add(top);
  } else {
    for (unsigned i = 0; i < top.n_children(); ++i) add(top.child(i).child(0));
  }
  return parts;
}

}  // namespace tc::gpu
