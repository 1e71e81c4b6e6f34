#include "tc/gpu/strategy/pieces.h"

#include <algorithm>
#include <set>

#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/rewrite/kernel_options.h"
#include "tc/gpu/strategy/chains.h"
#include "tc/gpu/strategy/contraction/pooled.h"
#include "tc/gpu/strategy/contraction/prologue.h"
#include "tc/gpu/strategy/contraction/sharing.h"
#include "tc/gpu/strategy/contraction/tile_reductions.h"
#include "tc/gpu/verbs/partition_launches.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/restricted.h"

namespace tc::gpu {
namespace {

/// Lets the contraction, with its pooled statements, carry out those that follow it right away and reduce in tiles of
/// the plan. Returns those that would if they had parts.
std::vector<TileReduction> add_reductions(const poly::Scop& scop, const std::vector<ReductionBehind>& behind,
                                          const ContractionPlan& plan, Contraction& contraction) {
  contraction.reductions.clear();
  std::vector<TileReduction> uncut;
  for (const ReductionBehind& one : behind) {
    const TileReduction& reduction = one.reduction;
    if (!thread_reduction(plan, reduction)) continue;
    const bool has_parts = std::any_of(reduction.part.begin(), reduction.part.end(),
                                       [](const std::string& part) { return !part.empty(); });
    const size_t first = reduction.start ? one.statement - 1 : one.statement;
    const bool sets_results =
        reduction.start && reduction.statement.accumulator == scop.program->tensor(reduction.statement.tensor).type;
    if (first == contraction.last && sets_results && reduces_in_tiles(contraction, plan, reduction)) {
      contraction.reductions.push_back(reduction);
      contraction.last = one.statement + 1;
    } else if (!has_parts) {
      uncut.push_back(reduction);
    }
  }
  return uncut;
}

}  // namespace

options::MappingOptions without_sizes(options::MappingOptions options) {
  options.tile = options.register_tile = options.map_to_threads = options.cluster = options.split_results = {};
  options.unroll = options.copy_stages = options.shared_depth = std::nullopt;
  options.tensor_cores = options.chain = options.store_boxes = options.persistent = options.ping_pong = std::nullopt;
  return options;
}

namespace {

/// A transposition that is worth a launch, since whatever else its loops share would read or write across rows too.
std::optional<Contraction> large_transposition_at(const poly::Scop& scop, size_t statement, const Device& device) {
  constexpr int64_t kLaunches = 8;
  std::optional<Contraction> result = transposition_at(scop, statement);
  if (!result) return std::nullopt;
  int64_t instances = 1;
  for (const Axis& axis : result->parallel) instances *= axis.extent;
  return instances >= kLaunches * device.instances_of_launch ? result : std::nullopt;
}

/// `apart`: updates that share no kernel with the product before them.
Pieces cut_out(const poly::Scop& scop, const options::MappingOptions& options, const Device& device,
               std::set<std::string> apart) {
  Pieces result;
  std::vector<Piece>& pieces = result.pieces;
  // Those of the kernel that a contraction would have. Where a chain is asked for, sizes are those of one product of
  // it.
  const auto own = [&](const Contraction& c) {
    const size_t largest = largest_product(c);
    options::MappingOptions result =
        options_at(*scop.program, (largest == 0 ? c : c.further[largest - 1]).update.id, options);
    if (!result.chain.value_or(false)) return result;
    result.tile = result.register_tile = result.map_to_threads = result.cluster = {};
    result.copy_stages = result.shared_depth = std::nullopt;
    return result;
  };
  const auto planned = [&](const Contraction& contraction) {
    Result<ContractionPlan> plan = plan_contraction(contraction, own(contraction), device);
    if (!plan) {
      result.reasons.options.push_back(plan.error().diagnostics().at(0).message);
      result.refused[contraction.update.id] = result.reasons.options.back();
    }
    return plan ? std::optional(*std::move(plan)) : std::nullopt;
  };
  size_t other = 0;  // the first statement that is in no piece yet
  // Options may be those of a kernel that computes an operand, and of none that finds it in memory.
  const auto planned_with_prologue = [&](Contraction& contraction) -> std::optional<ContractionPlan> {
    const std::optional<ContractionPlan> plan = planned(contraction);
    if (plan) return plan;
    std::optional<Contraction> longer = with_prologue(scop, contraction);
    if (!longer || longer->first < other) return std::nullopt;
    Result<ContractionPlan> found = plan_warpgroups(*longer, own(contraction), device);
    if (!found) return std::nullopt;
    result.reasons.options.pop_back();
    result.refused.erase(contraction.update.id);
    contraction = *std::move(longer);
    return *std::move(found);
  };
  const auto close = [&](size_t last) {
    if (other < last) pieces.push_back({poly::restricted(scop, other, last), {}, {}});
    other = last;
  };
  // What options of the def rule out, those of a kernel may allow, and the other way round.
  const bool contractions = takes_contractions(options) || !options.kernel.empty();
  if (contractions) {
    std::optional<Contraction> whole = transposition_at(scop, 0);
    std::optional<ContractionPlan> plan;
    const bool is_all = whole && whole->last == scop.statements.size();
    if (is_all && takes_contractions(own(*whole))) plan = planned(*whole);
    if (plan) {
      pieces.push_back({scop, std::move(whole), {*std::move(plan)}});
      return result;
    }
  }
  const bool free = takes_recipes(options) && !options.outer_schedule_options.fusion;
  const std::vector<size_t> cuts = free ? sensible_cuts(scop, device) : std::vector<size_t>();
  for (size_t s = 0; s < scop.statements.size(); ++s) {
    if (std::count(cuts.begin(), cuts.end(), s) > 0) close(s);
    std::optional<Contraction> across = contractions ? transposed_copy_at(scop, s) : std::nullopt;
    if (contractions && !across) across = large_transposition_at(scop, s, device);
    if (across) {
      // Sizes that the def's options have are those of its products.
      const options::MappingOptions own = options_at(*scop.program, across->update.id, without_sizes(options));
      Result<ContractionPlan> plan = plan_contraction(*across, own, device);
      if (!plan) continue;
      close(s);
      other = across->last;
      pieces.push_back({poly::restricted(scop, s, other), std::move(across), {*std::move(plan)}});
      s = other - 1;
      continue;
    }
    std::optional<Contraction> contraction = contractions ? contraction_at(scop, s, true) : std::nullopt;
    const bool is_behind = contractions && other == s && !pieces.empty() && pieces.back().contraction;
    bool needs_chain = false;
    if (!contraction && is_behind) {
      contraction = small_contraction_at(scop, s);
      needs_chain = contraction && apart.count(contraction->update.id) == 0 &&
                    link_between(scop, *pieces.back().contraction, *contraction);
      if (!needs_chain) contraction.reset();
    }
    if (!contraction || !takes_contractions(own(*contraction))) continue;
    std::optional<std::vector<ContractionPlan>> plans;
    // Plans leave room for all reductions of their tiles.
    std::vector<ReductionBehind> behind;
    const auto find_reductions = [&] {
      behind.clear();
      if (own(*contraction).split_reduction.value_or(1) > 1) return;
      behind = reductions_behind(scop, with_pooled(scop, *contraction));
      std::erase_if(behind, [&](const ReductionBehind& one) {
        return !gains_in_tiles(scop, *contraction, one.reduction, device);
      });
      for (const ReductionBehind& one : behind) contraction->reductions.push_back(one.reduction);
    };
    find_reductions();
    if (!contraction->further.empty()) {
      plans = plan_together(*contraction, own(*contraction), device);
      if (!plans) contraction = contraction_at(scop, s);
      if (!plans && contraction) find_reductions();
    }
    if (!contraction || !takes_contractions(own(*contraction))) continue;
    if (!plans) {
      std::optional<ContractionPlan> plan;
      if (!needs_chain) {
        plan = planned_with_prologue(*contraction);
      } else if (Result<ContractionPlan> found = plan_contraction(*contraction, own(*contraction), device)) {
        plan = *std::move(found);
      }
      if (!plan) continue;
      plans = {*std::move(plan)};
    }
    add_prologues(scop, other, own(*contraction), device, *contraction, plans->at(0));
    if (Contraction pooled = with_pooled(scop, *contraction); pooled.last > contraction->last) {
      const auto takes_pooled = [&](const ContractionPlan& plan) {
        return !plan.store_boxes && has_runs(pooled, plan);
      };
      if (!takes_pooled(plans->at(0)) && plans->size() == 1 && !needs_chain) {
        // The best plan of the product alone is none of both.
        Result<ContractionPlan> again = plan_contraction(pooled, own(pooled), device);
        if (again && takes_pooled(*again)) plans = {*std::move(again)};
      }
      if (takes_pooled(plans->at(0))) {
        contraction = std::move(pooled);
      } else {
        behind.clear();  // other kernels go through the results
      }
    }
    std::vector<TileReduction> uncut = add_reductions(scop, behind, plans->at(0), *contraction);
    close(contraction->first);
    other = contraction->last;
    pieces.push_back({poly::restricted(scop, contraction->first, other), std::move(contraction), *std::move(plans),
                      std::move(uncut), needs_chain});
    s = other - 1;
  }
  if (pieces.empty()) {
    pieces.push_back({scop, {}, {}});
  } else {
    close(scop.statements.size());
  }
  pieces = join_chains(scop, std::move(pieces), options, device);
  const size_t known = apart.size();
  for (const Piece& piece : pieces) {
    if (piece.needs_chain && !piece.chain) apart.insert(piece.contraction->update.id);
  }
  return apart.size() == known ? std::move(result) : cut_out(scop, options, device, std::move(apart));
}

}  // namespace

Pieces cut_out_contractions(const poly::Scop& scop, const options::MappingOptions& options, const Device& device) {
  return cut_out(scop, options, device, {});
}

}  // namespace tc::gpu
