#include "tc/gpu/strategy/choose_rows.h"

#include <utility>
#include <vector>

#include "tc/gpu/cost/estimate.h"
#include "tc/gpu/strategy/loop_choices.h"
#include "tc/gpu/strategy/rows/row_reduction.h"

namespace tc::gpu {
namespace {

/// The plans to choose from, the simplest first.
std::vector<RowsPlan> plans_of(const FusedGroup& part, RowsPlan simplest, const options::MappingOptions& options,
                               const Device& device) {
  std::vector<RowsPlan> plans = {std::move(simplest)};
  const std::optional<bool> keep = options.use_shared_memory;
  const bool held = plans[0].holds_elements || !plans[0].rereads();
  if (held && !keep.value_or(false)) return plans;
  const std::shared_ptr<const RowsPart> recomputed = recompute_elements(part);
  const auto add = [&](std::vector<RowsPlan> more) {
    for (RowsPlan& plan : more) plans.push_back(std::move(plan));
  };
  std::vector<RowsPlan> again;
  if (recomputed) {
    Reasons none;
    if (auto plan = plan_rows(recomputed->group, options, device, none)) again.push_back(*std::move(plan));
    if (keep.value_or(true)) {
      for (RowsPlan& plan : plan_kept_rows(recomputed->group, options, device)) again.push_back(std::move(plan));
    }
    for (RowsPlan& plan : again) plan.part = recomputed;
  }
  add(std::move(again));
  if (keep.value_or(true)) add(plan_kept_rows(part, options, device));
  const auto keeps = [](const RowsPlan& plan) { return plan.kept > 0; };
  if (keep.value_or(false) && std::any_of(plans.begin(), plans.end(), keeps)) {
    std::erase_if(plans, [&](const RowsPlan& plan) { return !keeps(plan); });
  }
  return plans;
}

/// Notes where the tensors are that statements share.
void add_places(const RowsPlan& plan, Kernel& kernel) {
  for (const auto& [tensor, row] : plan.tensors) {
    if (!row.of_elements || plan.holds_elements) continue;
    (row.buffer >= 0 && plan.keeps_all() ? kernel.in_shared : kernel.in_memory).insert(tensor);
  }
}

Launch launch_of(const poly::Scop& scop, const FusedGroup& part, const RowsPlan& plan,
                 const options::MappingOptions& options, const Device& device, const std::string& name) {
  Launch launch;
  launch.code = row_reduction(part, plan, device, name);
  launch.kernel.scop = scop;
  launch.kernel.grid = launch.code.grid;
  launch.kernel.block = launch.code.block;
  launch.kernel.recipe = Recipe::kRows;
  const options::MappingOptions chosen = options_of(plan, part);
  launch.kernel.chosen = following(options, chosen);
  launch.kernel.loops = loops_of(part, chosen);
  add_places(plan, launch.kernel);
  return launch;
}

}  // namespace

std::optional<Launch> rows_read_apart(const poly::Scop& scop, const FusedGroup& part,
                                      const options::MappingOptions& options, const Device& device,
                                      const std::string& name) {
  const std::optional<RowsPlan> plan = plan_rows_read_apart(part, options, device);
  return plan ? std::optional(launch_of(scop, part, *plan, options, device, name)) : std::nullopt;
}

std::optional<RowsLaunch> choose_rows(const poly::Scop& scop, const FusedGroup& part,
                                      const options::MappingOptions& options, const Device& device,
                                      const std::string& name, Reasons& reasons) {
  std::optional<RowsPlan> simplest = plan_rows(part, options, device, reasons);
  if (!simplest) return std::nullopt;
  const std::vector<RowsPlan> plans = plans_of(part, *std::move(simplest), options, device);
  std::optional<RowsLaunch> best;
  double best_us = 0;
  for (const RowsPlan& plan : plans) {
    Launch launch = launch_of(scop, part, plan, options, device, name);
    const double us = plans.size() == 1 ? 0 : estimate(launch.code, device, {.in_passes = launch.kernel.in_memory}).us;
    if (best && us >= best_us) continue;
    best = RowsLaunch{std::move(launch), plan};
    best_us = us;
  }
  return best;
}

}  // namespace tc::gpu
