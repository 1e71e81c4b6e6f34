#include "tc/gpu/strategy/fuse_halos.h"

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

double us_of(const tile::Kernel& code, const Kernel& kernel, const Device& device) {
  return estimate(code, device, expected_of(kernel)).us;
}

/// The fastest launch for the statements of two, if it is faster than they are.
std::optional<Launch> fused(const Launch& first, const Launch& second, const poly::Scop& scop,
                            const options::MappingOptions& options, const Device& device) {
  Launch launch;
  launch.kernel.scop = scop;
  // Without the copies to shared memory that a launch has of its own: two that copy one tensor name them alike.
  std::vector<std::string> runs;
  const auto own = [&](const Launch& part) {
    launch.kernel.scop.schedule =
        isl::manage(isl_schedule_intersect_domain(part.kernel.scop.schedule.copy(), scop.domain.copy()));
    const std::vector<std::string> here = poly::statements_at(launch.kernel.scop, launch.kernel.scop.schedule.root());
    runs.insert(runs.end(), here.begin(), here.end());
    return launch.kernel.scop.schedule;
  };
  const isl::schedule before = own(first);
  launch.kernel.scop.schedule = poly::sequence(before, own(second));
  launch.kernel.recipe = Recipe::kHalo;
  launch.kernel.anchor = second.kernel.anchor;
  launch.kernel.chosen = options_at(*scop.program, second.kernel.anchor, options);
  double best_us = us_of(first.code, first.kernel, device) + us_of(second.code, second.kernel, device);
  bool any = false;
  for (const HaloPlan& plan : plan_halo(launch.kernel.scop, runs, device)) {
    tile::Kernel code = halo(launch.kernel.scop, plan, device, second.code.name);
    const double us = estimate(code, device).us;
    if (us >= best_us) continue;
    best_us = us;
    any = true;
    launch.kernel.grid = code.grid;
    launch.kernel.block = code.block;
    launch.code = std::move(code);
    launch.kernel.in_shared.clear();
    for (const auto& [tensor, reach] : plan.locals) launch.kernel.in_shared.insert(tensor);
    launch.kernel.loops.clear();
    const HaloStage& last = plan.stages.back();
    for (size_t m = 0; m < plan.members.size(); ++m) {
      const std::string& index = last.statement.statement->indices[static_cast<size_t>(last.indices[m])];
      launch.kernel.loops.push_back({index, plan.members[m].extent, plan.tile[m], 1});
    }
  }
  return any ? std::optional(std::move(launch)) : std::nullopt;
}

}  // namespace

Mapping fuse_halos(Mapping mapping, const poly::Scop& scop, const options::MappingOptions& options,
                   const Device& device) {
  std::vector<Launch> launches;
  for (size_t k = 0; k < mapping.kernels.size(); ++k) {
    Launch next{mapping.kernels[k], mapping.program.kernels[k]};
    const auto silent = [&](const Launch& launch) {
      return is_silent(options_at(*scop.program, launch.kernel.anchor, options));
    };
    if (!launches.empty() && silent(launches.back()) && silent(next)) {
      if (std::optional<Launch> both = fused(launches.back(), next, scop, options, device)) {
        launches.back() = *std::move(both);
        continue;
      }
    }
    launches.push_back(std::move(next));
  }
  if (launches.size() == mapping.kernels.size()) return mapping;
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
