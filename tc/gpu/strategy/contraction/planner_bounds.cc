#include <algorithm>
#include <string>

#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/planner.h"

/// What a plan takes at least, before it is planned in full.
namespace tc::gpu {

namespace {

constexpr int64_t kVectorBytes = 16;

}  // namespace

/// The best of the shapes. Where there is none, the reason is that of the first shape which has one.
std::vector<ContractionPlan> Planner::best_of(const BoundedShapes& shapes, size_t count, double most_cycles) const {
  const std::string before = why_not_;
  std::vector<ContractionPlan> found = best_of_shapes(shapes, count, most_cycles);
  why_not_ = before;
  const bool is_bounded = most_cycles < kNoLimit;
  for (size_t i = 0; i < shapes.count && found.empty() && !is_bounded && why_not_.empty(); ++i) shapes.plan(i);
  return found;
}

/// What a plan of these tiles takes at least: with the shortest boxes, copied and read by whole vectors at once,
/// without conflicts. Infinity: there is no plan.
double Planner::least_cycles_of(std::optional<ContractionPlan> tiled) const {
  if (!tiled) return kNoLimit;
  ContractionPlan& plan = *tiled;
  if (ideal_.empty()) {
    for (size_t i = 0; i < c_.operands.size(); ++i) {
      const Operand& operand = c_.operands[i];
      const int64_t vector = kVectorBytes / operand.type.bytes();
      OperandPlan o{.box = std::vector<int64_t>(operand.subscripts.size(), 1), .read_vector = vector, .vector = vector};
      for (size_t axis = 0; axis < c_.parallel.size(); ++axis) {
        if (depends(operand, axis)) o.axes.push_back(axis);
      }
      ideal_.push_back(std::move(o));
    }
  }
  for (size_t i = 0; i < ideal_.size(); ++i) {
    OperandPlan& o = ideal_[i];
    o.stage = 1;
    for (size_t d = 0; d < o.box.size(); ++d) {
      o.box[d] = range(c_.operands[i].subscripts[d], plan);
      o.stage *= o.box[d];
    }
    o.last_stage = o.stage;
    o.fragment = plan.tensor_cores && c_.operands[i].type.bytes() == 2 ? FragmentRead::kAlong : FragmentRead::kElements;
  }
  std::swap(plan.operands, ideal_);
  plan.stages = 1;
  const int64_t shared_bytes = plan.shared_bytes(c_);
  const auto least = [&] { return least_cycles(c_, plan, device_, shared_bytes); };
  double result = 0;
  if (plan.tensor_cores) {
    plan.asynchronous = true;
    plan.stages = std::clamp<int64_t>(options_.copy_stages.value_or(kAtomStages), 1, plan.steps(c_));
    result = least();
    // Copies that the threads wait for have fewer values in the last step.
    if (c_.reduction[main_].extent % plan.chunk[main_] != 0) {
      plan.asynchronous = false;
      plan.stages = 1;
      result = std::min(result, least());
    }
  } else {
    plan.most_unrolled = most_unrolled(plan);
    result = least();
    // Windows are read once where all values of a step are laid out beside each other.
    if (plan.has_windows(c_)) {
      plan.vector = kVectorBytes;
      result = std::min(result, least());
    }
  }
  std::swap(plan.operands, ideal_);
  return result;
}

/// What a plan that is laid out roughly takes at least when it is laid out: its rows may stand further apart, with a
/// buffer less.
double Planner::least_laid_out_cycles(const ContractionPlan& rough) const {
  if (rough.stages == 1 || options_.copy_stages) return least_cycles(c_, rough, device_, rough.shared_bytes(c_));
  ContractionPlan fewer = rough;
  --fewer.stages;
  return least_cycles(c_, rough, device_, fewer.shared_bytes(c_));
}

}  // namespace tc::gpu
