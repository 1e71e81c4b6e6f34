#include "tc/cpu/strategy.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "tc/cpu/explain.h"
#include "tc/cpu/strategy_contraction.h"
#include "tc/cpu/strategy_groups.h"
#include "tc/cpu/strategy_options.h"
#include "tc/cpu/strategy_unit.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/dependences.h"
#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/schedule.h"
#include "tc/poly/transform.h"
#include "tc/support/check.h"

namespace tc::cpu {

namespace {

/// Below this much estimated work a parallel loop costs more than it gains.
constexpr double kParallelNanoseconds = 30'000;
/// The same where another loop of the program is parallel: threads that are awake for both cost little more.
constexpr double kFurtherNanoseconds = 4'000;
/// What one iteration of a parallel loop should take at least.
constexpr double kChunkNanoseconds = 8'000;
/// Operations per nanosecond of one core's scalar code.
constexpr double kScalarRate = 2.0;
/// A temporary's tile that is kept in a buffer of its own.
constexpr int64_t kTileBytes = 256 * 1024;
/// Rows that units of one group do together: a number with many divisors, for their register tiles.
constexpr int64_t kGroupRows = 24;
constexpr int64_t kFewerGroupRows = 16;
constexpr int64_t kChunksPerThread = 4;
/// The same across those rows.
constexpr int64_t kGroupAcross = 8;
/// Of an operand, what stays in a core's cache while other loops turn.
constexpr double kCachedBytes = 512 * 1024;
/// How much less has to be read for loops to change their order.
constexpr double kLessTraffic = 0.5;

/// Whole tiles if that is possible: partial ones need code of their own, which takes as long to make as the rest.
int64_t group_rows(int64_t rows) {
  return rows % kGroupRows != 0 && rows % kFewerGroupRows == 0 ? kFewerGroupRows : kGroupRows;
}

class Strategy {
 public:
  Strategy(const Analysis& analysis, const StrategyOptions& options) : analysis_(analysis), options_(options) {}

  Tree run() {
    const std::vector<Group> groups = make_groups(analysis_, group_options(options_));
    const bool threads = std::any_of(groups.begin(), groups.end(), [&](const Group& g) { return goes_parallel(g); });
    if (threads) least_parallel_ = kFurtherNanoseconds;
    std::vector<std::vector<std::string>> filters;
    std::vector<Tree> parts;
    for (const Group& group : groups) {
      filters.push_back(names_of(group));
      choices.emplace_back();
      parts.push_back(group_tree(group));
    }
    return sequence(std::move(filters), std::move(parts));
  }

  std::vector<poly::Promotion> promotions;
  std::vector<GroupChoice> choices;  ///< what run() has decided: loops and units, per group

 private:
  UnitOptions units_of(const Group& group) const {
    UnitOptions result = unit_options(analysis_, options_, group.shared.size());
    result.follows_others = group.units.size() > 1;
    return result;
  }

  std::vector<std::string> names_of(const Unit& unit) const {
    std::vector<std::string> result;
    for (int s : unit.statements) result.push_back(analysis_.statements[static_cast<size_t>(s)].id());
    return result;
  }

  std::vector<std::string> names_of(const Group& group) const {
    std::vector<std::string> result;
    for (const Unit& unit : group.units) {
      for (const std::string& name : names_of(unit)) result.push_back(name);
    }
    return result;
  }

  /// The index of the dimension, by the name that the group's first statement has for it.
  std::string index_of(const std::vector<Unit>& units, const Dim& dim) const {
    for (const Unit& unit : units) {
      for (int s : unit.statements) {
        const StatementInfo& info = analysis_.statements[static_cast<size_t>(s)];
        if (dim.position.count(info.id()) > 0) return index_name(info, dim);
      }
    }
    return "";
  }

  void note_loop(const Group& group, size_t d, int64_t tile) {
    const Dim& dim = group.shared[d];
    choices.back().loops.push_back({.index = index_of(group.units, dim), .extent = dim.extent, .tile = tile});
  }

  /// A unit of the group, with what note_loop() has of its shared dimensions.
  void note_unit(const Unit& unit, const UnitPlan& plan, const std::vector<Dim>& shared) {
    UnitChoice choice{.statements = names_of(unit), .loops = {}};
    const std::string& first = choice.statements[0];
    for (size_t d = 0; d < unit.dims.size(); ++d) {
      const Dim& dim = unit.dims[d];
      LoopChoice loop{.extent = dim.extent};
      for (size_t s = 0; s < shared.size(); ++s) {
        const auto position = shared[s].position.find(first);
        const bool is_same = position != shared[s].position.end() && position->second == dim.position.at(first);
        if (is_same) loop = choices.back().loops[s];
      }
      loop.index = index_of({unit}, dim);
      loop.registers = plan.tile[d];
      if (static_cast<int>(d) == plan.vector) loop.vector = plan.lanes;
      choice.loops.push_back(std::move(loop));
    }
    choices.back().units.push_back(std::move(choice));
  }

  void note_contraction(const Group& group, const ContractionOptions& options) {
    const Unit& unit = group.units[0];
    choices.back().packs = true;
    const std::optional<ContractionShape> shape = contraction_shape(analysis_, unit, options);
    for (size_t d = 0; d < unit.dims.size(); ++d) {
      const bool is_rows = shape && static_cast<int>(d) == shape->rows;
      const bool is_columns = shape && static_cast<int>(d) == shape->columns;
      note_loop(group, d, is_rows ? shape->block_rows : is_columns ? shape->block_columns : 1);
      if (is_rows && options.parallel) choices.back().loops.back().core = shape->block_rows;
    }
    note_unit(unit, plan_unit(analysis_, unit, options.unit), group.shared);
  }

  /// An estimate of a group's time on one core.
  double nanoseconds(const Group& group) const {
    double result = 0;
    for (const Unit& unit : group.units) {
      // A core is no faster for working in steps of two vectors.
      const UnitPlan plan = plan_unit(analysis_, unit, unit_options(analysis_, options_, group.shared.size()));
      for (int s : unit.statements) {
        const StatementInfo& info = analysis_.statements[static_cast<size_t>(s)];
        result += info.instances() * info.operations / (kScalarRate * static_cast<double>(plan.lanes));
      }
    }
    return result;
  }

  Tree group_tree(const Group& group) {
    if (group.shared.empty()) return inner_tree(group, group.shared, 0);
    if (group.units.size() == 1) {
      const ContractionOptions contraction{units_of(group), options_.cpu.tile, options_.threads, goes_parallel(group)};
      if (auto tree = contraction_tree(analysis_, group.units[0], contraction, promotions)) {
        note_contraction(group, contraction);
        return *std::move(tree);
      }
    }
    std::vector<int64_t> tile = group_tile(group);
    std::vector<int64_t> run = group_runs(group, tile);
    std::vector<Dim> dims = group.shared;
    int depth = 0;
    for (size_t d = 0; d < dims.size(); ++d) note_loop(group, d, tile[d]);
    std::vector<std::map<std::string, isl::aff>> members;
    const std::vector<size_t> order = loop_order(group, tile);
    int parallel = parallel_dim(group, tile, order);
    if (parallel >= 0) {
      auto p = static_cast<size_t>(parallel);
      int64_t chunk = tile[p] * chunk_of(group, parallel, tile);
      if (run[p] > 0) {
        // Runs are a fine thing, but not in place of work for the threads.
        run[p] = std::clamp(dims[p].extent / (2 * options_.threads) / tile[p] * tile[p], tile[p], run[p]);
        chunk = (chunk + run[p] - 1) / run[p] * run[p];
      }
      chunk = std::min(chunk, dims[p].extent);
      choices.back().loops[p].core = chunk;
      members.push_back(cut(dims[p], chunk, depth++));
    }
    for (size_t d : order) {
      const int64_t size = run[d] > 0 ? run[d] : tile[d];
      if (dims[d].rest > size) members.push_back(cut(dims[d], size, depth++));
    }
    for (size_t d : order) {
      if (dims[d].rest > tile[d]) members.push_back(cut(dims[d], tile[d], depth++));
    }
    Tree tree = inner_tree(group, dims, depth);
    for (size_t m = members.size(); m-- > 0;) {
      tree = band(std::move(members[m]), std::move(tree));
      if (m == 0 && parallel >= 0) tree = mark("parallel", std::move(tree));
    }
    return tree;
  }

  /// The tiles of the shared dimensions within which the units follow each other.
  std::vector<int64_t> group_tile(const Group& group) const {
    std::vector<int64_t> tile(group.shared.size(), 1);
    if (group.units.size() == 1) {
      tile = plan_unit(analysis_, group.units[0], units_of(group)).tile;
    } else {
      for (const Unit& unit : group.units) widen_tile(group, unit, tile);
    }
    for (size_t d = 0; d < tile.size() && d < options_.cpu.tile.size(); ++d) {
      tile[d] = std::max<int64_t>(options_.cpu.tile[d], 1);
    }
    for (size_t d = 0; d < tile.size(); ++d) tile[d] = std::min(tile[d], group.shared[d].extent);
    return tile;
  }

  static int64_t tiles_along(const Group& group, const std::vector<int64_t>& tile, size_t d) {
    return (group.shared[d].extent + tile[d] - 1) / tile[d];
  }

  /// The loops over tiles, outermost first: in the order of the indices, or with another one at the front if the
  /// reductions' operands come from memory much less often then.
  std::vector<size_t> loop_order(const Group& group, const std::vector<int64_t>& tile) const {
    std::vector<size_t> best(tile.size());
    std::iota(best.begin(), best.end(), size_t{0});
    const std::vector<size_t> given = best;
    double least = traffic(group, tile, given) * kLessTraffic;
    for (size_t d = 1; d < given.size(); ++d) {
      std::vector<size_t> order = given;
      std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(d),
                  order.begin() + static_cast<std::ptrdiff_t>(d) + 1);
      const double bytes = traffic(group, tile, order);
      if (bytes >= least) continue;
      least = bytes;
      best = order;
    }
    return best;
  }

  /// Bytes that the reductions read from memory if the loops over tiles have this order.
  double traffic(const Group& group, const std::vector<int64_t>& tile, const std::vector<size_t>& order) const {
    double result = 0;
    for (const Unit& unit : group.units) {
      for (int s : unit.statements) {
        const StatementInfo& info = analysis_.statements[static_cast<size_t>(s)];
        if (!info.reduces()) continue;
        for (const Reference& reference : info.references) {
          if (!reference.is_write) result += traffic(group, tile, order, info, reference);
        }
      }
    }
    return result;
  }

  /// The same of one operand: all of it, and again for each turn of a loop on which it does not depend, unless what
  /// the loops inside of that read of it is still in the cache.
  double traffic(const Group& group, const std::vector<int64_t>& tile, const std::vector<size_t>& order,
                 const StatementInfo& info, const Reference& reference) const {
    auto depends = [&](size_t d) {
      const auto position = group.shared[d].position.find(info.id());
      return position != group.shared[d].position.end() &&
             reference.depends_on(info.statement->indices[static_cast<size_t>(position->second)]);
    };
    const ir::Tensor& tensor = analysis_.scop->program->tensor(reference.tensor);
    double inside = tensor.type.bytes();
    for (int64_t extent : constant_extents(tensor)) inside *= static_cast<double>(extent);
    for (size_t d : order) {
      if (depends(d)) inside /= static_cast<double>(tiles_along(group, tile, d));
    }
    double read = inside;
    for (size_t i = order.size(); i-- > 0;) {
      const auto tiles = static_cast<double>(tiles_along(group, tile, order[i]));
      if (depends(order[i])) inside *= tiles;
      if (depends(order[i]) || inside > kCachedBytes) read *= tiles;
    }
    return read;
  }

  /// Runs of tiles along the shared dimensions, for a unit alone.
  std::vector<int64_t> group_runs(const Group& group, const std::vector<int64_t>& tile) const {
    std::vector<int64_t> run(group.shared.size(), 0);
    if (group.units.size() != 1 || !options_.cpu.tile.empty()) return run;
    run = plan_unit(analysis_, group.units[0], units_of(group)).run;
    for (size_t d = 0; d < run.size(); ++d) run[d] = run[d] / tile[d] * tile[d];
    return run;
  }

  /// A unit that uses along a shared dimension again what it has loaded wants several of its points together.
  void widen_tile(const Group& group, const Unit& unit, std::vector<int64_t>& tile) const {
    UnitPlan plan = plan_unit(analysis_, unit, units_of(group));
    const std::string& first = analysis_.statements[static_cast<size_t>(unit.statements[0])].id();
    for (size_t d = 0; d < tile.size(); ++d) {
      for (size_t u = 0; u < unit.dims.size(); ++u) {
        if (group.shared[d].position.at(first) != unit.dims[u].position.at(first)) continue;
        if (static_cast<int>(u) == plan.rows) tile[d] = std::max(tile[d], group_rows(group.shared[d].extent));
        if (static_cast<int>(u) == plan.across) tile[d] = std::max(tile[d], kGroupAcross);
        if (static_cast<int>(u) == plan.vector) tile[d] = std::max(tile[d], plan.tile[u]);
      }
    }
  }

  bool goes_parallel(const Group& group) const {
    if (options_.cpu.parallel) return *options_.cpu.parallel;
    return options_.threads > 1 && nanoseconds(group) >= least_parallel_;
  }

  /// The shared dimension whose tiles run in parallel: the first with enough of them, else that with most; -1: none.
  int parallel_dim(const Group& group, const std::vector<int64_t>& tile, const std::vector<size_t>& order) const {
    if (!goes_parallel(group)) return -1;
    int best = -1;
    int64_t most = 1;
    for (size_t d : order) {
      int64_t tiles = tiles_along(group, tile, d);
      if (tiles >= kChunksPerThread * options_.threads) return static_cast<int>(d);
      if (tiles > most) {
        most = tiles;
        best = static_cast<int>(d);
      }
    }
    return best;
  }

  /// How many tiles one iteration of the parallel loop takes.
  int64_t chunk_of(const Group& group, int parallel, const std::vector<int64_t>& tile) const {
    auto p = static_cast<size_t>(parallel);
    int64_t tiles = tiles_along(group, tile, p);
    double each = nanoseconds(group) / static_cast<double>(tiles);
    int64_t by_time = static_cast<int64_t>(std::ceil(kChunkNanoseconds / std::max(each, 1e-3)));
    int64_t by_balance = std::max<int64_t>(1, tiles / (kChunksPerThread * options_.threads));
    return std::clamp<int64_t>(by_time, 1, by_balance);
  }

  /// What is below the shared loops: the temporaries' buffers and the units in order.
  Tree inner_tree(const Group& group, const std::vector<Dim>& shared, int depth) {
    std::vector<int> all;
    for (const Unit& unit : group.units) all.insert(all.end(), unit.statements.begin(), unit.statements.end());
    std::vector<std::string> marks = promote_temporaries(group, all, shared, depth);
    std::vector<std::vector<std::string>> filters;
    std::vector<Tree> parts;
    for (const Unit& unit : group.units) {
      Unit inner = unit;
      for (Dim& dim : inner.dims) take_remainder(dim, shared, unit);
      UnitPlan plan = plan_unit(analysis_, inner, units_of(group));
      note_unit(inner, plan, shared);
      filters.push_back(names_of(unit));
      parts.push_back(unit_tree(analysis_, inner, plan, depth, units_of(group), promotions));
    }
    Tree tree = sequence(std::move(filters), std::move(parts));
    for (const std::string& name : marks) tree = mark("promote:" + name, std::move(tree));
    return tree;
  }

  /// A unit's dimension that is shared goes on where the shared loops left off.
  void take_remainder(Dim& dim, const std::vector<Dim>& shared, const Unit& unit) const {
    const std::string& first = analysis_.statements[static_cast<size_t>(unit.statements[0])].id();
    for (const Dim& outer : shared) {
      auto position = outer.position.find(first);
      if (position == outer.position.end() || position->second != dim.position.at(first)) continue;
      Dim inner = outer;
      std::erase_if(inner.position, [&](const auto& p) { return dim.position.count(p.first) == 0; });
      std::erase_if(inner.remainder, [&](const auto& r) { return dim.position.count(r.first) == 0; });
      dim = std::move(inner);
      return;
    }
  }

  /// Tiles of temporaries that several units of the group use, and nobody else.
  std::vector<std::string> promote_temporaries(const Group& group, const std::vector<int>& all,
                                               const std::vector<Dim>& shared, int depth) {
    std::vector<std::string> marks;
    if (!units_of(group).promote || group.units.size() < 2) return marks;
    std::set<std::string> seen;
    for (int s : all) {
      const std::string& tensor = analysis_.statements[static_cast<size_t>(s)].statement->tensor;
      if (!seen.insert(tensor).second || !is_private(analysis_, all, tensor)) continue;
      bool in_one_unit = std::any_of(group.units.begin(), group.units.end(),
                                     [&](const Unit& unit) { return is_private(analysis_, unit.statements, tensor); });
      if (in_one_unit) continue;
      Footprint part = footprint(analysis_, all, tensor, shared, depth);
      int64_t bytes = analysis_.scop->program->tensor(tensor).type.bytes();
      bool fits = true;
      for (int64_t e : part.extents) fits = fits && !__builtin_mul_overflow(bytes, e, &bytes);
      if (!fits || bytes > kTileBytes) continue;
      poly::Promotion promotion;
      promotion.name = buffer_name(tensor, promotions);
      promotion.tensor = tensor;
      promotion.offset = part.offset;
      promotion.extents = part.extents;
      for (size_t d = 0; d < part.extents.size(); ++d) promotion.layout.push_back(static_cast<int>(d));
      marks.push_back(promotion.name);
      promotions.push_back(std::move(promotion));
    }
    return marks;
  }

  const Analysis& analysis_;
  const StrategyOptions& options_;
  double least_parallel_ = kParallelNanoseconds;
};

/// The scheduler's own tree; a skewed loop has no unit of ours that fits it.
Result<poly::Scop> skewed_for_cpu(const poly::Scop& scop, const StrategyOptions& options) {
  TC_TRY(scheduled, poly::schedule(scop, options.cpu.scheduler));
  if (options.threads < 2 || !options.cpu.parallel.value_or(true)) return scheduled;
  std::vector<poly::BandRef> outermost;
  for (const poly::BandRef& band : poly::bands(scheduled)) {
    const bool inside = std::any_of(outermost.begin(), outermost.end(), [&](const poly::BandRef& outer) {
      return outer.path.size() < band.path.size() &&
             std::equal(outer.path.begin(), outer.path.end(), band.path.begin());
    });
    if (!inside) outermost.push_back(band);
  }
  for (const poly::BandRef& band : outermost) {
    if (!poly::band_info(scheduled, band).coincident[0]) continue;
    if (auto marked = poly::mark_parallel(scheduled, band)) scheduled = *std::move(marked);
  }
  return scheduled;
}

/// What a strategy that has run has decided.
std::vector<GroupChoice> choices_of(const Analysis& analysis, Strategy strategy, const StrategyOptions& options) {
  const std::vector<Group> groups = make_groups(analysis, group_options(options));
  for (size_t g = 0; g < groups.size(); ++g) {
    GroupChoice& choice = strategy.choices[g];
    choice.estimate = estimate(analysis, groups[g], options);
    choice.rates = rates(options, choice.estimate.bytes);
  }
  for (Refusal& refusal : why_apart(analysis, group_options(options))) {
    strategy.choices[refusal.group].apart = std::move(refusal.reason);
  }
  return std::move(strategy.choices);
}

}  // namespace

Result<StrategyChoice> explain_schedule(const poly::Scop& scop, const StrategyOptions& options) {
  if (options.cpu.scheduler.allow_skewing) return StrategyChoice{.groups = {}, .skewed = true};
  return poly::within_budget(*scop.context, [&]() -> Result<StrategyChoice> {
    const Analysis analysis = analyse(scop, options.layouts);
    StrategyChoice result;
    if (analysis.statements.empty()) return result;
    Strategy strategy(analysis, options);
    poly::Scop scheduled = scop;
    scheduled.schedule = to_schedule(strategy.run(), scop.domain);
    scheduled.promotions = strategy.promotions;
    result.replaced = poly::find_violation(scheduled).has_value();
    if (!result.replaced) result.groups = choices_of(analysis, std::move(strategy), options);
    return result;
  });
}

Result<poly::Scop> schedule_for_cpu(const poly::Scop& scop, const StrategyOptions& options) {
  if (options.cpu.scheduler.allow_skewing) return skewed_for_cpu(scop, options);
  return poly::within_budget(*scop.context, [&]() -> Result<poly::Scop> {
    Analysis analysis = analyse(scop, options.layouts);
    poly::Scop result = scop;
    if (analysis.statements.empty()) return result;
    Strategy strategy(analysis, options);
    Tree tree = strategy.run();
    result.promotions = std::move(strategy.promotions);
    result.schedule = to_schedule(tree, scop.domain);
    if (const auto violation = poly::find_violation(result)) {
      TC_CHECK(!options.verify, "the strategy's schedule is not legal: {}", violation->sentence());
      result.schedule = poly::canonical_schedule(scop);
      result.promotions.clear();
    }
    return result;
  });
}

}  // namespace tc::cpu
