#include "tc/gpu/strategy/split_waves.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/rewrite/kernel_options.h"
#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/restricted.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

/// Where the results of a contraction are cut in two: `count` values of a parallel axis come first.
struct Cut {
  size_t axis = 0;
  int64_t count = 0;
  auto operator<=>(const Cut&) const = default;
};

/// Both sides of a cut, with their plans.
struct Split {
  Cut cut;
  Contraction first, rest;
  ContractionPlan of_first, of_rest;
};

/// The contraction with the values [first, first + count) of an axis alone.
Contraction with_values(Contraction c, size_t axis, int64_t first, int64_t count) {
  Axis& part = c.parallel[axis];
  part.begin += first;
  part.extent = count;
  for (StoredTensor& stored : c.stored) {
    for (size_t d = 0; d < stored.axes.size(); ++d) {
      if (stored.axes[d] == part.name && !stored.may_be_counted_by(part, d)) stored.axes[d].clear();
    }
  }
  return c;
}

double us_of(const ContractionPlan& plan, const Device& device) { return plan.cycles / (1e3 * device.gigahertz); }

/// What the launches save that the second one starts while the first one ends. Of 59 pairs on an H200 whose first
/// launch takes 10 to 160 us, 51 save as much or more; short second launches less.
double saved_us(double first_us, double rest_us = kNoLimit) {
  constexpr double kStart = 1, kShare = 0.035, kShareOfRest = 0.25;
  return std::min(kStart + kShare * first_us, kShareOfRest * rest_us);
}

/// In which tensor cores multiply all points at best; 0: the device has none.
double least_product_us(const Contraction& c, const Device& device) {
  constexpr double kBits = 16;  // of the operands that the device's rate is of
  double products = 1;
  for (const auto* axes : {&c.parallel, &c.reduction}) {
    for (const Axis& axis : *axes) products *= static_cast<double>(axis.extent);
  }
  const double rate = std::max(device.warpgroup_products, device.tensor_products) * kBits / c.operands[0].type.bits();
  if (rate == 0) return 0;
  return products / (rate * static_cast<double>(device.processors) * 1e3 * device.gigahertz);
}

/// Blocks of a plan that run at once.
int64_t blocks_at_once(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  if (plan.grid > 0) return plan.grid;
  const BlocksOfProcessor of = blocks_of_processor(plan, device, registers_of_thread(c, plan), plan.shared_bytes(c));
  return device.processors * static_cast<int64_t>(std::ceil(of.each / of.waves));
}

/// A tile of a contraction, and how many of its blocks run at once.
struct Waves {
  std::vector<int64_t> tile;  ///< per parallel axis
  int64_t at_once = 1;
};

int64_t tiles_of(const Contraction& c, const std::vector<int64_t>& tile) {
  int64_t tiles = 1;
  for (size_t a = 0; a < tile.size(); ++a) tiles *= ceil_div(c.parallel[a].extent, tile[a]);
  return tiles;
}

/// In which tensor cores multiply all tiles at best, wave by wave.
double least_wave_us(const Contraction& c, const Waves& waves, const Device& device) {
  Contraction wave = c;
  for (size_t a = 0; a < waves.tile.size(); ++a) wave.parallel[a].extent = waves.tile[a];
  const auto count = static_cast<double>(ceil_div(tiles_of(c, waves.tile), waves.at_once));
  return count * static_cast<double>(device.processors) * least_product_us(wave, device);
}

/// Cuts, by about what both sides take if they multiply `by` times as long as tensor cores do at best.
using RatedCuts = std::map<Cut, double>;

/// Adds cuts behind as many tiles as whole waves have, and before tiles that reach beyond an axis's end.
void add_cuts(const Contraction& c, const Waves& waves, double by, const Device& device, RatedCuts& cuts) {
  constexpr double kLeastRestUs = 2.5;
  const int64_t tiles = tiles_of(c, waves.tile);
  for (size_t a = 0; a < waves.tile.size(); ++a) {
    const int64_t extent = c.parallel[a].extent, tile = waves.tile[a], across = tiles / ceil_div(extent, tile);
    const auto add = [&](int64_t count) {
      const int64_t values = count * tile;
      if (count == 0 || values >= extent) return;
      const double first = by * least_wave_us(with_values(c, a, 0, values), waves, device);
      const double rest = by * least_product_us(with_values(c, a, values, extent - values), device);
      const double us = first + std::max(rest, kLeastRestUs) - saved_us(first);
      const auto [known, is_new] = cuts.emplace(Cut{a, values}, us);
      if (!is_new) known->second = std::min(known->second, us);
    };
    add(tiles / waves.at_once * waves.at_once / across);
    add((tiles - 1) / waves.at_once * waves.at_once / across);
    if (extent / tile * across <= tiles / waves.at_once * waves.at_once) add(extent / tile);
  }
}

/// Those that look best, the best one first.
std::vector<Cut> cuts_of(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  constexpr size_t kTried = 3;
  Waves waves{{}, blocks_at_once(c, plan, device)};
  for (const AxisPlan& axis : plan.parallel) waves.tile.push_back(axis.tile);
  const double by = std::max(us_of(plan, device) / least_wave_us(c, waves, device), 1.0);
  RatedCuts rated;
  add_cuts(c, waves, by, device, rated);
  const TensorCores& cores = *plan.tensor_cores;
  if (cores.rows.size() == 1 && cores.columns.size() == 1) {
    // The best tile of all waves may be the one that leaves little over; these are the fastest ones.
    waves.at_once = device.processors;
    for (const auto& [rows, columns] : {std::pair(128, 256), std::pair(256, 128), std::pair(256, 192)}) {
      waves.tile[cores.rows[0]] = rows;
      waves.tile[cores.columns[0]] = columns;
      add_cuts(c, waves, by, device, rated);
    }
  }
  std::vector<std::pair<double, Cut>> sorted;
  for (const auto& [cut, us] : rated) sorted.emplace_back(us, cut);
  std::sort(sorted.begin(), sorted.end());
  std::vector<Cut> result;
  for (const auto& [us, cut] : sorted) {
    if (result.size() < kTried) result.push_back(cut);
  }
  return result;
}

/// Both sides of a cut. Errors: one has no plan; they take clearly longer than `most_us`.
Result<Split> split_at(const Contraction& c, const Cut& cut, const options::MappingOptions& options,
                       const Device& device, double most_us) {
  constexpr double kSlack = 1.2;  // of two plans that take longer than they may, the better one need not be found
  const int64_t left = c.parallel[cut.axis].extent - cut.count;
  Split split{cut, with_values(c, cut.axis, 0, cut.count), with_values(c, cut.axis, cut.count, left), {}, {}};
  const double least_rest = least_product_us(split.rest, device);
  const double most_first = most_us + saved_us(most_us) - least_rest;
  if (least_product_us(split.first, device) > most_first) return fail("the first launch takes longer");
  TC_TRY(first, plan_contraction(split.first, options, device, cycles_within(kSlack * most_first, device)));
  const double most_rest = most_us + saved_us(us_of(first, device)) - us_of(first, device);
  if (least_rest > most_rest) return fail("both launches take longer");
  TC_TRY(rest, plan_contraction(split.rest, without_sizes(options), device, cycles_within(kSlack * most_rest, device)));
  split.of_first = std::move(first);
  split.of_rest = std::move(rest);
  // What the second launch adds to the time of the first.
  split.of_rest.cycles -= cycles_within(saved_us(us_of(split.of_first, device), us_of(split.of_rest, device)), device);
  return split;
}

/// The sides of least time, if they gain clearly. Where an H200 lost by a split, by 3 to 5 %, it was to gain 2 us.
std::optional<Split> best_split(const Contraction& c, const ContractionPlan& plan,
                                const options::MappingOptions& options, const Device& device) {
  constexpr double kGain = 0.04, kLeastGainUs = 2.5;
  const double whole = us_of(plan, device);
  double most = whole - std::max(kGain * whole, kLeastGainUs);
  std::optional<Split> best;
  if (least_product_us(c, device) > most + saved_us(most)) return best;
  for (const Cut& cut : cuts_of(c, plan, device)) {
    Result<Split> split = split_at(c, cut, options, device, most);
    if (!split || !split->of_first.by_warpgroups() || !split->of_rest.by_warpgroups()) continue;
    const double us = us_of(split->of_first, device) + us_of(split->of_rest, device);
    if (us > most) continue;
    most = us;
    best = *std::move(split);
  }
  return best;
}

/// Those that options ask for: these have a number for each parallel axis, of which one is less than all values.
/// Errors: they have not; those of split_at().
Result<Split> requested_split(const Contraction& c, const options::MappingOptions& options, const Device& device) {
  const auto refuse = [&] {
    std::vector<int64_t> extents;
    for (const Axis& axis : c.parallel) extents.push_back(axis.extent);
    return fail("it must be [{}] but for one number, which is less", fmt::join(extents, ", "));
  };
  if (options.split_results.size() != c.parallel.size()) return refuse();
  std::optional<Cut> cut;
  for (size_t a = 0; a < c.parallel.size(); ++a) {
    if (options.split_results[a] == c.parallel[a].extent) continue;
    if (cut || options.split_results[a] > c.parallel[a].extent) return refuse();
    cut = Cut{a, options.split_results[a]};
  }
  return split_at(c, *cut, options, device, kNoLimit);
}

/// Whether options ask for all results in one launch.
bool asks_for_one(const Contraction& c, const options::MappingOptions& options) {
  return std::equal(c.parallel.begin(), c.parallel.end(), options.split_results.begin(), options.split_results.end(),
                    [](const Axis& axis, int64_t count) { return axis.extent == count; });
}

bool has_sizes(const options::MappingOptions& options) { return without_sizes(options) != options; }

/// Whether a kernel for some of the results needs nothing of the others, and nobody puts more into the kernel.
bool may_be_split(const Piece& piece) {
  if (!piece.contraction || piece.plans.size() != 1 || piece.chain || piece.needs_chain) return false;
  const Contraction& c = *piece.contraction;
  return c.update.assign != ir::Assign::kSet && c.further.empty() && c.pooled.empty() && c.reductions.empty() &&
         !c.selection && piece.uncut.empty() && !has_computed(c);
}

/// The instances of a piece that belong to the first values of an axis: those of the update, and all that depends on
/// them or that they depend on.
isl::union_set instances_of(const Piece& piece, const Cut& cut) {
  const Contraction& c = *piece.contraction;
  const auto at = std::find(c.update.indices.begin(), c.update.indices.end(), c.parallel[cut.axis].name);
  const auto position = static_cast<int>(at - c.update.indices.begin());
  isl::union_set found = isl::union_set::empty(piece.scop.context->get());
  for (const isl::set& domain : poly::sets_of(piece.scop.domain)) {
    if (poly::tuple_name(domain) != c.update.id) continue;
    const isl::aff value = poly::variable(domain.space(), position);
    const isl::aff end = poly::constant(domain.space(), c.parallel[cut.axis].begin + cut.count);
    found = isl::union_set(domain.intersect(value.lt_set(end)));
  }
  const isl::union_map& later = piece.scop.dependences.ordered();
  const isl::union_map around = later.unite(later.reverse());
  for (size_t s = 0; s < c.last - c.first + 1; ++s) found = found.unite(found.apply(around));
  return found.coalesce();
}

/// Whether a piece reads what another one writes. Then its second launch waits for the first one before it does so.
bool reads_another(const Piece& piece, const std::vector<Piece>& pieces) {
  for (const Piece& other : pieces) {
    if (&other == &piece) continue;
    for (const poly::Access& write : other.scop.accesses) {
      if (!write.writes()) continue;
      for (const poly::Access& read : piece.scop.accesses) {
        if (read.reads() && read.tensor == write.tensor) return true;
      }
    }
  }
  return false;
}

}  // namespace

Pieces split_waves(Pieces cut, const ir::Program& program, const options::MappingOptions& options,
                   const Device& device) {
  std::vector<Piece> result;
  for (const Piece& piece : cut.pieces) {
    std::optional<Split> split;
    std::vector<int64_t> asked = {};
    if (may_be_split(piece)) {
      const Contraction& c = *piece.contraction;
      const options::MappingOptions own = options_at(program, c.update.id, options);
      if (asks_for_one(c, own)) {
        asked = own.split_results;
      } else if (!own.split_results.empty()) {
        Result<Split> requested = requested_split(c, own, device);
        if (requested) {
          split = *std::move(requested);
        } else {
          cut.refused[c.update.id] = requested.error().diagnostics().at(0).message;
          cut.reasons.options.insert(cut.reasons.options.begin(), cut.refused[c.update.id]);
        }
      } else if (!has_sizes(own) && piece.plans[0].by_warpgroups() && !reads_another(piece, cut.pieces)) {
        split = best_split(c, piece.plans[0], own, device);
      }
    }
    if (!split) {
      result.push_back(piece);
      result.back().split_results = std::move(asked);
      continue;
    }
    const isl::union_set first = instances_of(piece, split->cut);
    const isl::union_set rest = piece.scop.domain.subtract(first);
    std::vector<int64_t> extents;
    for (const Axis& axis : split->first.parallel) extents.push_back(axis.extent);
    result.push_back({poly::restricted(piece.scop, first), std::move(split->first), {std::move(split->of_first)}});
    result.back().split_results = std::move(extents);
    result.push_back({poly::restricted(piece.scop, rest), std::move(split->rest), {std::move(split->of_rest)}});
    result.back().is_rest = true;
  }
  cut.pieces = std::move(result);
  return cut;
}

}  // namespace tc::gpu
