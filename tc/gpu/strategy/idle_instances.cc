#include "tc/gpu/strategy/idle_instances.h"

#include <fmt/format.h>
#include <isl/map.h>
#include <isl/set.h>
#include <isl/union_map.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tc/gpu/strategy/contraction/stream.h"
#include "tc/poly/isl_ext.h"

namespace tc::gpu {
namespace {

/// The chain with idle points among the launch's products.
std::optional<Chain> chain_in(const poly::Scop& scop, const std::set<std::string>& statements) {
  std::vector<Contraction> products;
  for (size_t s = 0; s < scop.statements.size(); ++s) {
    const poly::Statement& statement = scop.statements[s];
    if (statements.count(statement.id) == 0) continue;
    std::optional<Contraction> found = contraction_at(scop, s);
    if (!found) found = small_contraction_at(scop, s);
    const auto is_it = [&](const Contraction& c) { return c.update.id == found->update.id; };
    if (!found || std::any_of(products.begin(), products.end(), is_it)) continue;
    products.push_back(*std::move(found));
  }
  // Between the two, a row's sum of exp(S(m,n) - top(m)) has two operands as well.
  for (size_t first = 0; first < products.size(); ++first) {
    for (size_t reader = first + 1; reader < products.size(); ++reader) {
      std::optional<Chain> chain = streamed_chain(scop, products[first], products[reader]);
      if (chain && chain->idle) return chain;
    }
  }
  return std::nullopt;
}

/// { S[i] : the point is idle }, of a statement of which an index, and a number, make each axis of the first product.
isl::set at_points(const isl::set& points, const poly::Statement& statement,
                   const std::vector<std::pair<std::string, int64_t>>& axes) {
  std::string from, to;
  for (size_t i = 0; i < statement.indices.size(); ++i) from += fmt::format("{}i{}", i > 0 ? ", " : "", i);
  for (size_t a = 0; a < axes.size(); ++a) {
    const auto index = std::find(statement.indices.begin(), statement.indices.end(), axes[a].first);
    to += fmt::format("{}i{} + {}", a > 0 ? ", " : "", index - statement.indices.begin(), axes[a].second);
  }
  const std::string text = fmt::format("{{ {}[{}] -> [{}] }}", statement.id, from, to);
  return points.apply(isl::manage(isl_map_read_from_str(points.ctx().get(), text.c_str())).reverse());
}

/// Those of the second product's sum, and of reductions, which idle points have no part in.
isl::union_set idle_terms(const Chain& chain) {
  const Contraction &first = chain.products[0], &second = chain.products[1];
  const isl::set& points = chain.idle->points;
  std::vector<std::pair<std::string, int64_t>> axes(first.parallel.size());
  for (const ChainLink::Dimension& d : chain.links[0].dimensions) {
    const Axis& read = d.is_row ? second.parallel[d.read_by] : second.reduction[d.read_by];
    axes[d.made_by] = {read.name, first.parallel[d.made_by].begin - read.begin};
  }
  isl::union_set result(at_points(points, second.update, axes));
  for (const TileReduction& reduction : first.reductions) {
    for (size_t a = 0; a < axes.size(); ++a) axes[a] = {reduction.index[a], reduction.shift[a]};
    result = result.unite(isl::union_set(at_points(points, reduction.statement, axes)));
  }
  return result;
}

}  // namespace

isl::union_set idle_instances(const poly::Scop& scop, const isl::union_set& launch, const std::set<std::string>& seen) {
  const isl::union_set none = isl::union_set::empty(scop.context->get());
  std::set<std::string> statements;
  for (const isl::set& domain : poly::sets_of(launch)) statements.insert(poly::tuple_name(domain));
  const auto sums = [&](const poly::Statement& s) {
    return statements.count(s.id) > 0 && std::count(s.is_reduction.begin(), s.is_reduction.end(), true) > 0;
  };
  std::optional<Chain> chain;
  if (std::count_if(scop.statements.begin(), scop.statements.end(), sums) > 1) chain = chain_in(scop, statements);
  const auto dies = [&](const poly::Statement& s) { return statements.count(s.id) > 0 && seen.count(s.tensor) == 0; };
  if (!chain && std::none_of(scop.statements.begin(), scop.statements.end(), dies)) return none;
  const isl::union_set idle = chain ? idle_terms(*chain).intersect(launch) : none;
  isl::union_set needed = none;  // from the last statement back
  for (size_t s = scop.statements.size(); s-- > 0;) {
    const poly::Statement& statement = scop.statements[s];
    for (const isl::set& domain : poly::sets_of(launch)) {
      if (poly::tuple_name(domain) != statement.id) continue;
      const isl::union_set own(domain);
      const isl::union_set used = scop.dependences.flow.intersect_range(needed).intersect_domain(own).domain();
      needed = needed.unite((seen.count(statement.tensor) > 0 ? own : used).subtract(idle));
    }
  }
  return launch.subtract(needed).coalesce();
}

}  // namespace tc::gpu
