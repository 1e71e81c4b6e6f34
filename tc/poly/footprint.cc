#include "tc/poly/footprint.h"

#include <limits>

#include "tc/ir/halide_compat.h"
#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::poly {
namespace {

bool matches(const Access& access, Touch touch) {
  switch (touch) {
    case Touch::kAny:
      return true;
    case Touch::kRead:
      return access.reads();
    case Touch::kWrite:
      return access.writes();
    case Touch::kMustWrite:
      return access.kind == Access::Kind::kWrite;
  }
  return false;
}

}  // namespace

int64_t Footprint::box_elements() const {
  int64_t count = 1;
  for (int64_t extent : extents) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::numeric_limits<int64_t>::max();
  }
  return count;
}

isl::map elements_touched(const Scop& scop, const isl::schedule_node& node, const std::string& tensor, Touch touch,
                          const std::string& before) {
  const isl::ctx ctx = node.ctx();
  isl::union_map accesses = isl::union_map::empty(ctx);
  for (const Statement& s : scop.statements) {
    if (s.id == before) break;
    for (const Access& a : scop.accesses) {
      if (a.statement != s.id || a.tensor != tensor || !matches(a, touch)) continue;
      accesses = accesses.unite(a.relation.to_union_map());
    }
  }
  // Accesses are of all instances, of which the schedule may have a part.
  const isl::union_set here = node_domain(node).intersect(accesses.domain().universe());
  const isl::union_map prefix = node.prefix_schedule_union_map().intersect_domain(here);
  const isl::space space = isl::space::unit(ctx)
                               .add_unnamed_tuple(schedule_depth(node))
                               .add_named_tuple(tensor, scop.program->tensor(tensor).rank());
  return accesses.apply_domain(prefix).extract_map(space).coalesce();
}

namespace {

/// Of all elements of the tensor; nothing if its extents are not known.
std::optional<Footprint> whole_tensor(const ir::Tensor& tensor, const isl::map& elements) {
  Footprint result{elements, elements.space().zero_multi_aff(), {}};
  for (const auto& extent : tensor.extents) {
    const int64_t* number = ir::constant_int(extent);
    if (!number) return std::nullopt;
    result.extents.push_back(*number);
  }
  return result;
}

}  // namespace

std::optional<Footprint> footprint(const Scop& scop, const NodeRef& ref, const std::string& tensor) {
  Footprint result;
  result.elements = elements_touched(scop, node_at(scop, ref), tensor, Touch::kAny);
  if (result.elements.is_empty()) return std::nullopt;
  // Remainders in several subscripts can make a small box take a minute: isl eliminates what both depend on. Elements
  // that are so scattered are in no smaller box as a rule.
  constexpr unsigned long kOperations = 10'000;
  const auto box = within_operations(result.elements.ctx(), kOperations,
                                     [&] { return result.elements.range_simple_fixed_box_hull(); });
  if (!box) return whole_tensor(scop.program->tensor(tensor), result.elements);
  if (!box->is_valid()) return std::nullopt;
  result.offset = box->offset();
  const isl::multi_val size = box->size();
  for (unsigned d = 0; d < size.size(); ++d) result.extents.push_back(to_int64(size.at(d)));
  return result;
}

isl::map box_elements(const Scop& scop, const isl::multi_aff& offset, const std::vector<int64_t>& extents) {
  isl::map box = offset.space().universe_map();
  const isl::space elements = offset.space().range();
  const ir::Tensor& tensor = scop.program->tensor(range_name(box));
  for (size_t d = 0; d < extents.size(); ++d) {
    const isl::map corner = offset.at(d).as_map();                            // { [prefix] -> [o_d] }
    const isl::map projection = isl::pw_aff(variable(elements, d)).as_map();  // { T[x] -> [x_d] }
    isl::map window = corner.apply_range(interval(elements.ctx(), 0, extents[d] - 1));
    box = box.intersect(window.apply_range(projection.reverse()));
    const int64_t* extent = ir::constant_int(tensor.extents[d]);
    if (!extent) continue;
    const isl::pw_aff x = variable(elements, d);
    box = box.intersect_range(x.ge_set(constant(elements, 0)).intersect(x.lt_set(constant(elements, *extent))));
  }
  return box;
}

}  // namespace tc::poly
