#include "tc/gpu/strategy/contraction/parts.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {
namespace {

// Of one index, or of all instances beside it: of four products of three factors on an H200, parts of 128 instances
// took 13 to 25 % longer than estimated beside those of 256.
constexpr int64_t kLeastChunk = 64, kLeastInstances = 256;
constexpr int64_t kTile = 4096, kLargeTile = 8192;  // results that keep a processor busy; with warpgroups

/// The same with the reduction axis `name` in parts, which are a parallel axis in front.
Contraction in_parts(Contraction c, const std::string& name, int64_t count, int64_t chunk) {
  const auto axis = std::find_if(c.reduction.begin(), c.reduction.end(), [&](const Axis& a) { return a.name == name; });
  const auto at = static_cast<size_t>(axis - c.reduction.begin());
  axis->extent = chunk;
  c.parallel.insert(c.parallel.begin(), Axis{name + "_part", 0, count});
  for (Operand& operand : c.operands) {
    for (Subscript& s : operand.subscripts) s.parallel.insert(s.parallel.begin(), s.reduction[at] * chunk);
  }
  return c;
}

/// In which memory delivers the operands once.
double memory_us(const ir::Program& program, const ir::Statement& statement, const Device& device) {
  std::set<std::string> tensors;
  for (const auto* read : ir::reads_in(program, statement.value)) tensors.insert(read->name);
  double bytes = 0;
  for (const std::string& name : tensors) {
    const ir::Tensor& tensor = program.tensor(name);
    double size = tensor.type.bytes();
    for (const int64_t extent : ir::constant_shape(tensor)) size *= static_cast<double>(extent);
    bytes += size;
  }
  return bytes / device.memory_bytes_per_us;
}

/// Whether warpgroups may compute it: their tiles are larger than those of other threads.
bool may_use_warpgroups(const Contraction& c, const Device& device) {
  return device.accelerated && device.warpgroup_products > 0 &&
         std::all_of(c.operands.begin(), c.operands.end(), [](const Operand& o) { return o.type.bits() == 16; });
}

/// Whether another product reads the same matrix, so that one kernel may go through the steps of both.
bool may_be_joined(const ir::Program& program, const ir::Statement& statement) {
  std::set<std::string> read;
  for (const auto* access : ir::reads_in(program, statement.value)) read.insert(access->name);
  return std::any_of(program.statements.begin(), program.statements.end(), [&](const ir::Statement& other) {
    if (other.tensor == statement.tensor || !other.reduces() || !is_contraction(program, other)) return false;
    if (ir::constant_shape(program.tensor(other.tensor)) != ir::constant_shape(program.tensor(statement.tensor)))
      return false;
    const auto reads = ir::reads_in(program, other.value);
    return std::any_of(reads.begin(), reads.end(), [&](const auto* access) { return read.count(access->name) > 0; });
  });
}

/// The parts of least time, if any, and that time.
struct TimedParts {
  std::optional<Parts> parts;
  double us = 0;
};

bool may_have_parts(const Reduction& r, const options::MappingOptions& options, const Device& device) {
  return takes_contractions(options) && options.tile.empty() && options.register_tile.empty() &&
         options.map_to_threads.empty() && options.split_results.empty() &&
         r.elements <= kLargeTile * device.processors && (r.extent >= 2 * kLeastChunk || r.work >= 2 * kLeastInstances);
}

/// Those that take longer than `most_us` need not be found.
TimedParts timed_parts(const ir::Program& program, const ir::Statement& statement, const Contraction& contraction,
                       const std::optional<Reduction>& r, const options::MappingOptions& options, const Device& device,
                       double most_us) {
  constexpr int64_t kVector = 2, kFewParts = 4;
  // Of one kernel with many groups of threads less is estimated, by 8 % on an H200, than of parts that take as long:
  // parts may be 2 % worse. Of warpgroups both are estimated alike, but one kernel's results may be stored by boxes,
  // which is not known here: parts are to be clearly better.
  constexpr double kLaunchUs = 1, kCacheBytesOfUs = 4e6, kWorthIt = 0.98, kOfWarpgroups = 1.1;
  // Two products of 256 x 2816 by 8192 take 38 us in one kernel, where one of them takes 26 alone and in parts.
  constexpr double kIfJoined = 1.4;
  const double least_us = kLaunchUs + memory_us(program, statement, device);
  const auto planned_us = [&](const Contraction& c, double most) {
    const Result<ContractionPlan> plan = plan_contraction(c, options, device, cycles_within(most, device));
    if (!plan) return std::numeric_limits<double>::infinity();
    return std::max(plan->cycles / (1e3 * device.gigahertz), least_us);
  };
  TimedParts result{.us = planned_us(contraction, most_us)};
  if (!r || !may_have_parts(*r, options, device)) return result;
  const bool is_large = r->elements > kTile * device.processors;
  if (is_large && !may_use_warpgroups(contraction, device)) return result;
  const double of_kind = may_use_warpgroups(contraction, device) ? kOfWarpgroups : kWorthIt;
  double best = std::min(result.us / (may_be_joined(program, statement) ? kIfJoined : of_kind), most_us);
  for (const int64_t count : {2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32}) {
    if (is_large && count > kFewParts) break;
    if (r->extent % (count * kVector) != 0) continue;
    if (r->extent / count < kLeastChunk && r->work / count < kLeastInstances) continue;
    const int64_t bytes = r->elements * statement.accumulator.bytes();
    const double adding = kLaunchUs + static_cast<double>(bytes * (count + 1)) / kCacheBytesOfUs;
    if (least_us + adding >= best) continue;
    const std::string& name = statement.indices[r->longest].name;
    const double us = planned_us(in_parts(contraction, name, count, r->extent / count), best - adding) + adding;
    if (us >= best) continue;
    best = us;
    result = {Parts{r->longest, count, r->extent / count, true}, us};
  }
  return result;
}

}  // namespace

std::optional<Parts> contraction_parts(const ir::Program& program, const ir::Statement& statement, const Reduction& r,
                                       const options::MappingOptions& options, const Device& device) {
  if (!may_have_parts(r, options, device)) return std::nullopt;
  const std::optional<Contraction> contraction = contraction_of(program, statement);
  if (!contraction) return std::nullopt;
  return timed_parts(program, statement, *contraction, r, options, device, kNoLimit).parts;
}

double least_us(const ir::Program& program, const ir::Statement& statement, const Contraction& contraction,
                const options::MappingOptions& options, const Device& device, double most_us) {
  const std::optional<Reduction> r = options.split_reduction ? std::nullopt : reduction_of(program, statement);
  return timed_parts(program, statement, contraction, r, options, device, most_us).us;
}

}  // namespace tc::gpu
