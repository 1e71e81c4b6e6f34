#include "tc/gpu/strategy/contraction/sharing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/support/round.h"
#include "tc/tile/program.h"

namespace tc::gpu {
namespace {

constexpr int64_t kWarp = 32;
// One kernel is left for two only where these gain clearly: relu(xW + hU + b) of 4096 x 1024 x 1024 took 38 us on an
// H100, and 40 in two kernels that were estimated at 0.9 of it.
constexpr double kClearly = 1.15;

using Plans = std::vector<ContractionPlan>;

bool is_same(const Subscript& a, const Subscript& b) {
  return a.parallel == b.parallel && a.reduction == b.reduction && a.constant == b.constant;
}

/// Whether two operands are the same elements, read as they are in memory.
bool is_same(const Operand& a, const Operand& b) {
  const auto as_it_is = [](const Operand& o) {
    return !o.chosen_row && !o.computed && !o.selected && o.inside.empty();
  };
  return as_it_is(a) && as_it_is(b) && a.tensor == b.tensor && a.is_tf32 == b.is_tf32 &&
         std::equal(a.subscripts.begin(), a.subscripts.end(), b.subscripts.begin(), b.subscripts.end(),
                    [](const Subscript& x, const Subscript& y) { return is_same(x, y); });
}

/// The operand that all further products have, too, if they reduce over the same values.
std::optional<size_t> common_operand(const Contraction& c) {
  const auto reduces_alike = [&](const Contraction& other) {
    return std::equal(c.reduction.begin(), c.reduction.end(), other.reduction.begin(), other.reduction.end(),
                      [](const Axis& a, const Axis& b) { return a.begin == b.begin && a.extent == b.extent; });
  };
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const auto has_it = [&](const Contraction& other) {
      return reduces_alike(other) && other.operands.size() == c.operands.size() &&
             other.update.assign == c.update.assign &&
             std::any_of(other.operands.begin(), other.operands.end(),
                         [&](const Operand& o) { return is_same(c.operands[i], o); });
    };
    if (std::all_of(c.further.begin(), c.further.end(), has_it)) return i;
  }
  return std::nullopt;
}

class Sharing {
 public:
  Sharing(const Contraction& contraction, const options::MappingOptions& options, const Device& device)
      : options_(options), device_(device) {
    products_.push_back(&contraction);
    for (const Contraction& product : contraction.further) products_.push_back(&product);
    for (size_t p = 0; p < products_.size(); ++p) adds_up_.push_back(accumulator_of(contraction, p) == p);
    largest_ = largest_product(contraction);
  }

  /// In the same steps, where they have an operand alike, else one after the other.
  std::optional<Plans> best() const {
    if (std::optional<Plans> joined = in_same_steps()) return joined;
    constexpr size_t kTried = 12;  // plans of the largest product
    const double most = kClearly * cycles_apart();
    for (const int64_t share : {int64_t{1}, static_cast<int64_t>(products_.size())}) {
      options::MappingOptions options = options_;
      options.max_shared_memory = shared_bytes() / share;
      // Blocks that go on have too few buffers beside several sums: on an H200 a gated pair of 4096 x 1024 by 1024 x
      // 8192 took 252 us with two, and 154 with three and a tile each.
      if (!options.persistent) options.persistent = false;
      double least = most;
      std::optional<Plans> best;
      for (const ContractionPlan& plan : best_plans(*products_[largest_], options, device_, kTried)) {
        std::optional<Plans> plans = beside(plan);
        if (!plans || !fit(*plans)) plans = with_fewer_buffers(plan);
        if (!plans || !fit(*plans)) continue;
        const double cycles = cycles_of(*plans);
        if (cycles >= least) continue;
        least = cycles;
        best = std::move(plans);
      }
      if (best) return best;
    }
    return std::nullopt;
  }

 private:
  /// Steps of all products by warpgroups at once, which copy the operand that they have alike once.
  std::optional<Plans> in_same_steps() const {
    const Contraction& first = *products_[0];
    const std::optional<size_t> operand = common_operand(first);
    if (!operand || std::count(adds_up_.begin(), adds_up_.end(), false) > 0) return std::nullopt;
    const Result<ContractionPlan> plan = plan_joined(first, *operand, options_, device_);
    if (!plan || plan->cycles >= kClearly * cycles_apart()) return std::nullopt;
    Plans result = {*plan};
    for (const Contraction& product : first.further) {
      const std::optional<ContractionPlan> other = plan_in_steps_of(*plan, product, options_, device_);
      if (!other) return std::nullopt;
      const bool is_a = *operand == plan->tensor_cores->a;
      const size_t own = is_a ? other->tensor_cores->a : other->tensor_cores->b;
      if (!is_same(first.operands[*operand], product.operands[own])) return std::nullopt;
      result.push_back(*other);
    }
    return result;
  }

  int64_t shared_bytes() const {
    return std::min(options_.max_shared_memory.value_or(device_.shared_bytes), device_.shared_bytes);
  }

  /// Of a kernel for each product, with what the others read of its results: a write that the plan counts, and a read.
  double cycles_apart() const {
    constexpr double kLaunchUs = 1, kCacheBytesOfUs = 4e6;
    double result = 0;
    for (size_t p = 0; p < products_.size(); ++p) {
      const Result<ContractionPlan> plan = plan_contraction(*products_[p], options_, device_);
      if (!plan) return std::numeric_limits<double>::infinity();
      double points = 1;
      for (const Axis& axis : products_[p]->parallel) points *= static_cast<double>(axis.extent);
      const double bytes = points * static_cast<double>(products_[p]->update.accumulator.bytes());
      const double us = p == 0 ? 0 : kLaunchUs + bytes / kCacheBytesOfUs;
      result += plan->cycles + us * 1e3 * device_.gigahertz;
    }
    return result;
  }

  /// The other products by this plan's tiles, threads and buffers.
  std::optional<Plans> beside(const ContractionPlan& plan) const {
    std::optional<Plans> plans = beside(plan, shared_bytes());
    if (plans && fit(*plans)) return plans;
    return beside(plan, shared_bytes() - plan.shared_bytes(*products_[largest_]));
  }

  std::optional<Plans> beside(const ContractionPlan& plan, int64_t most_shared) const {
    options::MappingOptions same = options_of(plan);
    same.tile.resize(plan.parallel.size());
    same.max_shared_memory = most_shared;
    same.unroll_copy_shared = options_.unroll_copy_shared;
    Plans result;
    for (size_t p = 0; p < products_.size(); ++p) {
      if (p == largest_) {
        result.push_back(plan);
        continue;
      }
      constexpr size_t kForms = 4;  // of one tile
      std::vector<ContractionPlan> others = best_plans(*products_[p], same, device_, kForms);
      const auto alike =
          std::find_if(others.begin(), others.end(), [&](const auto& other) { return is_beside(plan, p, other); });
      if (alike == others.end()) return std::nullopt;
      result.push_back(std::move(*alike));
    }
    return result;
  }

  /// The same where copies run less far ahead.
  std::optional<Plans> with_fewer_buffers(const ContractionPlan& plan) const {
    if (plan.stages < 3 || options_.copy_stages) return std::nullopt;
    options::MappingOptions fewer = options_of(plan);
    fewer.copy_stages = plan.stages - 1;
    fewer.max_shared_memory = shared_bytes();
    fewer.unroll_copy_shared = options_.unroll_copy_shared;
    const Result<ContractionPlan> other = plan_contraction(*products_[largest_], fewer, device_);
    return other ? beside(*other) : std::nullopt;
  }

  /// Whether a plan of a product shares the largest one's tiles; by warpgroups its buffers, too.
  bool is_beside(const ContractionPlan& plan, size_t product, const ContractionPlan& other) const {
    if (!is_alike(plan, other)) return false;
    return !plan.by_warpgroups() || take_turns(*products_[largest_], plan, *products_[product], other);
  }

  static bool is_alike(const ContractionPlan& a, const ContractionPlan& b) {
    const auto same = [](const AxisPlan& x, const AxisPlan& y) {
      return x.tile == y.tile && x.registers == y.registers && x.group == y.group && x.blocks == y.blocks &&
             x.cluster == y.cluster;
    };
    const auto sides = [](const ContractionPlan& plan) {
      return plan.tensor_cores ? std::vector{plan.tensor_cores->rows, plan.tensor_cores->columns}
                               : std::vector<std::vector<size_t>>();
    };
    return a.order == b.order && a.groups == b.groups && a.store_boxes == b.store_boxes && a.grid == b.grid &&
           a.ping_pong == b.ping_pong && a.by_warpgroups() == b.by_warpgroups() && sides(a) == sides(b) &&
           std::equal(a.parallel.begin(), a.parallel.end(), b.parallel.begin(), b.parallel.end(), same);
  }

  int64_t shared_of(const Plans& plans) const {
    int64_t result = 0;
    for (size_t p = 0; p < plans.size(); ++p) {
      const int64_t of_groups =
          plans[p].groups == 1 ? 0
                               : plans[p].registers() * plans[p].threads() * products_[p]->update.accumulator.bytes();
      const bool has_boxes = p == 0 || !take_turns(*products_[0], plans[0], *products_[p], plans[p]);
      result = round_up(result, tile::kSharedAlignment) + (adds_up_[p] ? of_groups : 0) +
               (has_boxes ? plans[p].shared_bytes(*products_[p]) - of_groups : 0);
    }
    return result;
  }

  /// Registers of a thread: what the largest product takes, and the sums of the others. Groups of threads lay out a
  /// product's sums in shared memory before the next one begins.
  int64_t registers_of(const Plans& plans) const {
    int64_t sums = 0, most = 0;
    for (size_t p = 0; p < plans.size(); ++p) {
      const int64_t own = plans[p].registers() * ceil_div(products_[p]->update.accumulator.bytes(), 4);
      most = std::max(most, registers_of_thread(*products_[p], plans[p]) - own);
      if (adds_up_[p]) sums = plans[p].groups == 1 ? sums + own : std::max(sums, own);
    }
    return most + sums;
  }

  int64_t sums_of(const Plans& plans) const {
    int64_t result = 0;
    for (size_t p = 0; p < plans.size(); ++p) result += adds_up_[p] ? plans[p].registers() : 0;
    return result;
  }

  bool fit(const Plans& plans) const {
    constexpr int64_t kRegisters = 224, kAllRegisters = 65536;  // an eighth is left to spare
    const int64_t registers = registers_of(plans);
    if (plans[0].by_warpgroups() && !leaves_registers(plans[0], sums_of(plans))) return false;
    return shared_of(plans) <= shared_bytes() && registers <= kRegisters &&
           registers * round_up(plans[0].threads(), 4 * kWarp) <= kAllRegisters;
  }

  /// The part of the time that a processor's schedulers find a warp, by how many blocks are there at once.
  double busy(const ContractionPlan& plan, int64_t registers, int64_t shared) const {
    constexpr double kProcessorThreads = 2048, kProcessorRegisters = 65536, kProcessorShared = 228 * 1024;
    double blocks = 1;
    for (const AxisPlan& axis : plan.parallel) blocks *= static_cast<double>(axis.blocks);
    const auto threads = static_cast<double>(round_up(plan.threads(), kWarp));
    const double resident =
        std::max(1.0, std::floor(std::min({kProcessorThreads / threads,
                                           kProcessorRegisters / (threads * static_cast<double>(registers)),
                                           kProcessorShared / static_cast<double>(shared + 1024), 32.0})));
    const double warps =
        std::min(resident, std::ceil(blocks / static_cast<double>(device_.processors))) * threads / kWarp;
    return warps / (warps + 2);
  }

  /// One after the other, with fewer blocks on a processor than each product alone would have.
  double cycles_of(const Plans& plans) const {
    const double together = busy(plans[0], registers_of(plans), shared_of(plans));
    double result = 0;
    for (size_t p = 0; p < plans.size(); ++p) {
      const Contraction& c = *products_[p];
      const double alone = busy(plans[p], registers_of_thread(c, plans[p]), plans[p].shared_bytes(c));
      result += plans[p].cycles * std::max(1.0, alone / together);
    }
    return result;
  }

  const options::MappingOptions& options_;
  const Device& device_;
  std::vector<const Contraction*> products_;
  std::vector<bool> adds_up_;  ///< those with sums of their own
  size_t largest_ = 0;
};

}  // namespace

size_t largest_product(const Contraction& contraction) {
  const auto work = [](const Contraction& product) {
    double result = 1;
    for (const Axis& axis : product.reduction) result *= static_cast<double>(axis.extent);
    return result;
  };
  size_t result = 0;
  double most = work(contraction);
  for (size_t f = 0; f < contraction.further.size(); ++f) {
    if (work(contraction.further[f]) <= most) continue;
    most = work(contraction.further[f]);
    result = f + 1;
  }
  return result;
}

bool take_turns(const Contraction& a, const ContractionPlan& plan_a, const Contraction& b,
                const ContractionPlan& plan_b) {
  if (a.operands.size() != b.operands.size() || plan_a.stages != plan_b.stages) return false;
  if (plan_a.by_warpgroups()) return plan_b.by_warpgroups() && share_ring(a, plan_a, b, plan_b);
  for (size_t i = 0; i < a.operands.size(); ++i) {
    const OperandPlan &x = plan_a.operands[i], &y = plan_b.operands[i];
    const bool same = a.operands[i].type == b.operands[i].type && x.box == y.box && x.strides == y.strides &&
                      x.innermost == y.innermost && x.merged == y.merged && x.dealt == y.dealt &&
                      x.dealt_by == y.dealt_by && x.dealt_stride == y.dealt_stride && x.stage == y.stage;
    if (!same) return false;
  }
  return true;
}

std::optional<std::vector<ContractionPlan>> plan_together(const Contraction& contraction,
                                                          const options::MappingOptions& options,
                                                          const Device& device) {
  return Sharing(contraction, options, device).best();
}

}  // namespace tc::gpu
