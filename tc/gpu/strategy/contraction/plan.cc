#include "tc/gpu/strategy/contraction/plan.h"

#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/planner.h"
#include "tc/gpu/strategy/contraction/row_stores.h"
#include "tc/gpu/strategy/contraction/selection.h"
#include "tc/gpu/strategy/contraction/stored.h"
#include "tc/gpu/strategy/contraction/tile_reductions.h"
#include "tc/support/round.h"
#include "tc/tile/matrix_descriptor.h"
#include "tc/tile/program.h"

namespace tc::gpu {

int64_t ContractionPlan::points_threads() const {
  int64_t result = 1;
  for (const AxisPlan& axis : parallel) result *= axis.threads();
  return result;
}

int64_t ContractionPlan::block_threads() const {
  const int64_t copying = gives_registers ? int64_t{tile::WarpgroupAtom::kThreads} : kProducerThreads;
  return threads() * teams() + (by_warpgroups() ? copying : 0);
}

int64_t ContractionPlan::cluster_blocks() const {
  int64_t result = 1;
  for (const AxisPlan& axis : parallel) result *= axis.cluster;
  return result;
}

int64_t ContractionPlan::registers() const {
  int64_t result = 1;
  for (const AxisPlan& axis : parallel) result *= axis.registers;
  return result;
}

bool ContractionPlan::has_windows(const Contraction& contraction) const {
  for (const Operand& operand : contraction.operands) {
    for (const Subscript& s : operand.subscripts) {
      bool slides = false, whole = false;
      for (size_t i = 0; i < parallel.size(); ++i) slides = slides || (s.parallel[i] != 0 && parallel[i].registers > 1);
      for (size_t r = 0; r < chunk.size(); ++r) whole = whole || (r != main && s.reduction[r] != 0 && chunk[r] > 1);
      if (slides && whole) return true;
    }
  }
  return false;
}

int64_t ContractionPlan::steps(const Contraction& contraction) const {
  int64_t result = 1;
  for (size_t r = 0; r < chunk.size(); ++r) {
    const int64_t extent = contraction.reduction[r].extent;
    result *= r == main && fills_last_step() ? ceil_div(extent, chunk[r]) : extent / chunk[r];
  }
  return result;
}

int64_t ContractionPlan::left(const Contraction& contraction) const {
  return fills_last_step() ? 0 : contraction.reduction[main].extent % chunk[main];
}

int64_t ContractionPlan::shared_bytes(const Contraction& contraction) const {
  int64_t end = 0;  // of what is allocated so far, one behind the other
  const int64_t alignment = by_warpgroups() ? tile::kSwizzledAlignment : tile::kSharedAlignment;
  const auto allocate = [&](int64_t bytes) { end = round_up(end, alignment) + bytes; };
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].kept) continue;
    const int64_t elements = operands[i].stage * (stages - 1) + operands[i].last_stage;
    const Operand& copied = by_warpgroups() ? in_memory(contraction, i) : contraction.operands[i];
    allocate(elements * copied.type.bytes());
    for (int64_t j = 0; j < (i == joined_operand ? 0 : joined); ++j) allocate(elements * copied.type.bytes());
  }
  const int64_t sums = registers() * threads() * contraction.update.accumulator.bytes();
  if (groups > 1) allocate(sums);
  if (cluster_parts > 1) end = std::max(end, sums);  // where the operands were
  end = shared_end_of_selection(contraction, *this, end);
  end = shared_end_of_reductions(contraction, *this, end);
  if (store_boxes) {
    for (const StoredTensor& stored : contraction.stored) allocate(staging_bytes(stored, contraction, *this));
  }
  end = shared_end_of_rows(contraction, *this, end);
  if (by_warpgroups()) end += tile::RingBarriers::kBytes * (2 * stages + (ping_pong ? teams() : 0));
  return end;
}

namespace {

Result<std::vector<ContractionPlan>> planned(const Contraction& contraction, const options::MappingOptions& options,
                                             const Device& device, size_t count, double most_cycles) {
  const Planner planner(contraction, options, device, most_cycles);
  TC_TRY_VOID(planner.fault());
  std::vector<ContractionPlan> plans =
      contraction.update.assign == ir::Assign::kSet ? planner.transpositions() : planner.best(count);
  if (plans.empty()) return fail("{}", planner.why_not());
  return plans;
}

}  // namespace

Result<ContractionPlan> plan_contraction(const Contraction& contraction, const options::MappingOptions& options,
                                         const Device& device, double most_cycles) {
  TC_TRY(plans, planned(contraction, options, device, 1, most_cycles));
  return std::move(plans[0]);
}

std::vector<ContractionPlan> best_plans(const Contraction& contraction, const options::MappingOptions& options,
                                        const Device& device, size_t count) {
  Result<std::vector<ContractionPlan>> plans = planned(contraction, options, device, count, kNoLimit);
  return plans ? *std::move(plans) : std::vector<ContractionPlan>();
}

Result<ContractionPlan> plan_tensor_cores(const Contraction& contraction, const options::MappingOptions& options,
                                          const Device& device) {
  const Planner planner(contraction, options, device);
  TC_TRY_VOID(planner.fault());
  std::vector<ContractionPlan> plans = planner.by_tensor_cores(1);
  if (plans.empty()) return fail("{}", planner.why_not());
  return std::move(plans[0]);
}

Result<ContractionPlan> plan_warpgroups(const Contraction& contraction, const options::MappingOptions& options,
                                        const Device& device, double most_cycles) {
  const Planner planner(contraction, options, device, most_cycles);
  if (std::optional<ContractionPlan> plan = planner.by_warpgroups()) return *std::move(plan);
  return fail("{}", planner.why_not().empty() ? "warpgroups have no such rows and columns" : planner.why_not());
}

Result<ContractionPlan> plan_joined(const Contraction& contraction, size_t operand,
                                    const options::MappingOptions& options, const Device& device) {
  const Planner planner(contraction, options, device, kNoLimit, operand);
  if (std::optional<ContractionPlan> plan = planner.by_warpgroups()) return *std::move(plan);
  return fail("{}", planner.why_not());
}

std::optional<ContractionPlan> plan_in_steps_of(const ContractionPlan& first, const Contraction& contraction,
                                                const options::MappingOptions& options, const Device& device) {
  return Planner(contraction, options, device).in_steps_of(first);
}

Result<ContractionPlan> plan_atoms(const Contraction& contraction, const options::MappingOptions& options,
                                   const Device& device, double most_cycles) {
  const Planner planner(contraction, options, device);
  if (std::optional<ContractionPlan> plan = planner.by_warps(most_cycles)) return *std::move(plan);
  return fail("{}", planner.why_not().empty() ? "the device multiplies no such tiles" : planner.why_not());
}

}  // namespace tc::gpu
