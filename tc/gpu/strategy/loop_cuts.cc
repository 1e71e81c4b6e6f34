#include "tc/gpu/strategy/loop_cuts.h"

#include <isl/aff.h>

#include <algorithm>
#include <optional>

#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/loop_tree.h"

namespace tc::gpu {
namespace {

/// The marks of the loops above a statement, outermost first.
std::vector<isl::schedule_node> loops_above(const poly::Scop& scop, const std::string& statement) {
  std::vector<isl::schedule_node> marks;
  isl::schedule_node node = scop.schedule.root();
  while (node.n_children() > 0) {
    if (poly::is_loop(node)) marks.push_back(node);
    int next = 0;
    for (int i = 0; i < static_cast<int>(node.n_children()); ++i) {
      const std::vector<std::string> here = poly::statements_at(scop, node.child(i));
      if (std::count(here.begin(), here.end(), statement) > 0) next = i;
    }
    node = node.child(next);
  }
  return marks;
}

/// The loop's iteration for the instances of the statement.
std::optional<isl::pw_aff> value_of(const isl::schedule_node& mark, const std::string& statement) {
  for (const isl::pw_aff& value : poly::pw_affs_of(poly::loop_value(mark))) {
    if (poly::tuple_name(value.domain()) == statement) return value;
  }
  return std::nullopt;
}

/// The dimensions that the value of some piece uses.
std::vector<int> used_dimensions(const isl::pw_aff& value, int dimensions) {
  std::vector<int> result;
  for (int d = 0; d < dimensions; ++d) {
    bool used = false;
    value.foreach_piece([&](const isl::set&, const isl::multi_aff& piece) {
      used = used || isl_aff_involves_dims(piece.at(0).get(), isl_dim_in, static_cast<unsigned>(d), 1) == isl_bool_true;
    });
    if (used) result.push_back(d);
  }
  return result;
}

struct Found {
  LoopCut cut;
  int dimension = 0;
  isl::pw_aff value;
  bool inside = false;
};

/// Whether iterations are floor((index mod period) / step), of an index that counts from `first`; without a period:
/// floor(index / step).
bool is_cut(const Found& found, const isl::set& instances, std::optional<int64_t> period, const isl::val& first) {
  const isl::ctx ctx = instances.ctx();
  isl::aff index = poly::variable(instances.space(), found.dimension).add_constant(first.neg());
  if (period) index = index.mod(poly::make_val(ctx, *period));
  const isl::aff expected = index.scale_down(poly::make_val(ctx, found.cut.step)).floor();
  return instances.is_subset(found.value.eq_set(isl::pw_aff(expected)));
}

/// The first loop over a dimension that does not cut it so; null: they all do.
const Found* first_fault(const std::vector<Found>& all, int dimension, const isl::set& instances,
                         const isl::val& first) {
  std::optional<int64_t> period;
  for (const Found& found : all) {
    if (found.dimension != dimension) continue;
    if (!is_cut(found, instances, period, first)) return &found;
    period = found.cut.step;
  }
  return nullptr;
}

}  // namespace

Result<LoopCuts> cuts_of(const poly::Scop& launch, const std::string& statement, const std::string& tile,
                         const std::map<std::string, int64_t>& sizes) {
  const std::vector<std::string>& indices = launch.statement(statement).indices;
  LoopCuts result;
  std::vector<Found> all;
  bool inside = false;
  isl::set instances;
  for (const isl::set& set : poly::sets_of(poly::node_domain(launch.schedule.root()))) {
    if (poly::tuple_name(set) == statement) instances = set;
  }
  for (const isl::schedule_node& mark : loops_above(launch, statement)) {
    const std::string name = poly::loop_name(mark);
    inside = inside || name == tile;
    if (!inside) result.above = name;
    const std::optional<isl::pw_aff> value = value_of(mark, statement);
    if (!value) continue;
    const std::vector<int> used = used_dimensions(*value, static_cast<int>(indices.size()));
    if (used.empty()) continue;
    if (used.size() > 1)
      return fail("'{}' runs over several indices of {}; a tile has loops over one", name, statement);
    const auto size = sizes.find(name);
    TC_TRY(ref, poly::find_loop(launch, name));
    const int64_t count = size != sizes.end() ? size->second : poly::loop_range(launch, ref).extent;
    all.push_back({{name, indices[static_cast<size_t>(used[0])], 1, count}, used[0], *value, inside});
  }
  if (!inside) return fail("'{}' does not stand above {}", tile, statement);
  std::map<int, int64_t> below;  // values of each index that the loops further in have
  for (auto found = all.rbegin(); found != all.rend(); ++found) {
    int64_t& step = below.emplace(found->dimension, 1).first->second;
    found->cut.step = step;
    step *= found->cut.count;
  }
  // Loops over a part of a range count from its beginning, others from 0.
  for (const auto& [dimension, values] : below) {
    const Found* fault = first_fault(all, dimension, instances, isl::val::zero(instances.ctx()));
    if (fault && first_fault(all, dimension, instances, instances.dim_min_val(dimension))) {
      return fail("'{}' does not cut '{}' into runs of {} values", fault->cut.loop, fault->cut.index, fault->cut.step);
    }
  }
  for (const Found& found : all) (found.inside ? result.inside : result.outside).push_back(found.cut);
  return result;
}

}  // namespace tc::gpu
