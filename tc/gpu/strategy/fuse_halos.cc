#include "tc/gpu/strategy/fuse_halos.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "tc/gpu/lower/launch.h"
#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/rewrite/kernel_options.h"
#include "tc/gpu/strategy/expected.h"
#include "tc/gpu/strategy/halo/halo.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"

namespace tc::gpu {
namespace {

/// Whether options leave it to the compiler how a kernel is made.
bool is_silent(const options::MappingOptions& o) {
  return takes_recipes(o) && !o.strict && o.tile.empty() && o.map_to_threads.empty() && !o.shared_depth &&
         o.split_reduction.value_or(1) == 1 && !o.copy_stages && !o.tensor_cores && !o.outer_schedule_options.fusion &&
         o.use_shared_memory.value_or(true);
}

/// How often blocks read an element, on average, if what they read reaches as far around their tiles as what they keep.
/// Along the last member they read whole sectors.
double asked_again(const HaloPlan& plan) {
  constexpr int64_t kSector = 8;  // elements of four bytes
  double result = 1;
  for (size_t m = 0; m < plan.members.size(); ++m) {
    const auto tile = static_cast<double>(plan.of_block(m));
    double again = m + 1 == plan.members.size() ? 1 + 2 * kSector / tile : 1;
    for (const auto& [tensor, all] : plan.locals) {
      for (const Reach& r : all) {
        if (r.member != static_cast<int>(m)) continue;
        again = std::max(
            again, 1 + static_cast<double>(r.high - r.low + 1 - r.factor) / (static_cast<double>(r.factor) * tile));
      }
    }
    result *= again;
  }
  return result;
}

/// Tiles' subscripts are quotients, which estimates do not count: what five blurs took on an H200, over the estimate.
constexpr double kSubscriptsOfTiles = 1.25;

/// What a kernel of a plan says of itself.
void decide(Kernel& kernel, const HaloPlan& plan, const tile::Kernel& code) {
  kernel.grid = code.grid;
  kernel.block = code.block;
  kernel.in_shared.clear();
  for (const auto& [tensor, reach] : plan.locals) {
    if (!plan.strip) kernel.in_shared.insert(tensor);
  }
  kernel.loops.clear();
  const HaloStage& results = plan.stages.back();
  for (size_t m = 0; m < plan.members.size(); ++m) {
    const std::string& index = results.statement.statement->indices[static_cast<size_t>(results.indices[m])];
    kernel.loops.push_back({index, plan.members[m].extent, plan.of_block(m), plan.strip ? plan.tile[m] : 1});
  }
}

/// The fastest launch for the statements of some, if it takes less than `share` of their time.
std::optional<Launch> fused(const std::vector<const Launch*>& parts, double share, const poly::Scop& scop,
                            const options::MappingOptions& options, const Device& device) {
  Launch launch;
  launch.kernel.scop = scop;
  // Without the copies to shared memory that a launch has of its own: two that copy one tensor name them alike.
  std::vector<std::string> runs;
  std::optional<isl::schedule> whole;
  double best_us = 0;
  for (const Launch* part : parts) {
    launch.kernel.scop.schedule =
        isl::manage(isl_schedule_intersect_domain(part->kernel.scop.schedule.copy(), scop.domain.copy()));
    const std::vector<std::string> here = poly::statements_at(launch.kernel.scop, launch.kernel.scop.schedule.root());
    runs.insert(runs.end(), here.begin(), here.end());
    whole = whole ? poly::sequence(*whole, launch.kernel.scop.schedule) : launch.kernel.scop.schedule;
    best_us += estimate(part->code, device, expected_of(part->kernel)).us;
  }
  best_us *= share;
  launch.kernel.scop.schedule = *whole;
  const Launch& last = *parts.back();
  launch.kernel.recipe = Recipe::kHalo;
  launch.kernel.anchor = last.kernel.anchor;
  launch.kernel.chosen = options_at(*scop.program, last.kernel.anchor, options);
  bool any = false;
  for (const HaloPlan& plan : plan_halo(launch.kernel.scop, runs, device)) {
    tile::Kernel code = halo(launch.kernel.scop, plan, device, last.code.name);
    if (!std::ranges::equal(code.grid, device.grid, std::ranges::less_equal())) continue;
    const double again = plan.strip ? asked_again(plan) : 0;
    const double us = estimate(code, device, {.asked_again = again}).us * (plan.strip ? 1 : kSubscriptsOfTiles);
    if (us >= best_us) continue;
    best_us = us;
    any = true;
    launch.kernel.asked_again = again;
    decide(launch.kernel, plan, code);
    launch.code = std::move(code);
  }
  return any ? std::optional(std::move(launch)) : std::nullopt;
}

/// Which share of a launch's time strips of its own have to take: their reads may meet in registers. Estimates of
/// unlike kernels are rough, but those of windows times weights, element by element, are never too long: of seven
/// neighbours in 8192 x 8192 floats 147 us, where an H200 took 217. 0: there are none.
double share_for_strips(const Launch& launch) {
  constexpr double kClearly = 0.9, kOfWindows = 0.97;
  switch (launch.kernel.recipe) {
    case Recipe::kElements:
    case Recipe::kClassic:
      return kClearly;
    case Recipe::kContraction:
      return launch.kernel.chosen.tensor_cores.value_or(false) ? 0 : kOfWindows;
    case Recipe::kRows:
    case Recipe::kScatter:
    case Recipe::kHalo:
      return 0;
  }
  return 0;
}

}  // namespace

Mapping fuse_halos(Mapping mapping, const poly::Scop& scop, const options::MappingOptions& options,
                   const Device& device) {
  std::vector<Launch> launches;
  const auto silent = [&](const Launch& launch) {
    return is_silent(options_at(*scop.program, launch.kernel.anchor, options));
  };
  for (size_t k = 0; k < mapping.kernels.size(); ++k) {
    Launch next{mapping.kernels[k], mapping.program.kernels[k]};
    if (!launches.empty() && silent(launches.back()) && silent(next)) {
      if (std::optional<Launch> both = fused({&launches.back(), &next}, 1, scop, options, device)) {
        launches.back() = *std::move(both);
        continue;
      }
    }
    launches.push_back(std::move(next));
  }
  bool any = launches.size() < mapping.kernels.size();
  for (Launch& launch : launches) {
    const double share = share_for_strips(launch);
    if (!silent(launch) || share == 0) continue;
    std::optional<Launch> alone = fused({&launch}, share, scop, options, device);
    any = any || alone;
    if (alone) launch = *std::move(alone);
  }
  if (!any) return mapping;
  std::vector<std::string> names;
  for (const tile::Kernel& kernel : mapping.program.kernels) names.push_back(kernel.name);
  mapping.kernels.clear();
  mapping.program.kernels.clear();
  for (size_t k = 0; k < launches.size(); ++k) {
    launches[k].code.name = names[k];
    mapping.kernels.push_back(std::move(launches[k].kernel));
    mapping.program.kernels.push_back(std::move(launches[k].code));
  }
  return mapping;
}

}  // namespace tc::gpu
