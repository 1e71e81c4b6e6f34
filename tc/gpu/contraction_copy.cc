#include <algorithm>

#include "tc/gpu/contraction_builder.h"

/// The copies of a contraction's operands to shared memory.
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t to) { return ceil_div(a, to) * to; }

}  // namespace

/// The least value of a subscript in a step of the block.
Expr ContractionBuilder::first_of(const Subscript& s, const ReductionStep& step) const {
  Expr result = static_cast<int>(s.constant);
  for (size_t i = 0; i < s.parallel.size(); ++i) {
    const auto by = static_cast<int>(s.parallel[i]);
    if (by == 0) continue;
    result = result + first_[i] * by;
    if (by < 0) result = result + by * static_cast<int>(plan_.parallel[i].tile - 1);
  }
  for (size_t r = 0; r < s.reduction.size(); ++r) {
    const auto by = static_cast<int>(s.reduction[r]);
    if (by == 0) continue;
    result = result + step.first[r] * by;
    if (by < 0) result = result + by * static_cast<int>((r == plan_.main ? step.length : plan_.chunk[r]) - 1);
  }
  return hi::simplify(result);
}

/// Brings a subscript of a vector that may lie outside of the tensor to its last elements (or first).
Expr ContractionBuilder::within(const Operand& operand, size_t dimension, const Expr& value, int64_t length) const {
  const Subscript& s = operand.subscripts[dimension];
  const int64_t extent = operand.extents[dimension];
  int64_t least = s.constant, greatest = s.constant;
  const auto add = [&](int64_t by, const Axis& axis, int64_t values) {
    (by < 0 ? least : greatest) += by * (axis.begin + values - 1);
    (by < 0 ? greatest : least) += by * axis.begin;
  };
  for (size_t i = 0; i < s.parallel.size(); ++i) {
    add(s.parallel[i], c_.parallel[i], plan_.parallel[i].blocks * plan_.parallel[i].tile);
  }
  for (size_t r = 0; r < s.reduction.size(); ++r) add(s.reduction[r], c_.reduction[r], c_.reduction[r].extent);
  Expr result = value;
  // A box's last vector may have room for more than is asked for.
  if (round_up(greatest + 1, length) > extent) result = Halide::min(result, static_cast<int>(extent - length));
  if (least < 0) result = Halide::max(result, 0);
  return result;
}

/// The element of a box, of so many copies along each dimension, that copy `number` brings (or begins with). Neighbours
/// go along the last dimension; where another is the innermost in shared memory, 8 of each row.
std::vector<Expr> ContractionBuilder::copied_element(size_t operand, const std::vector<int64_t>& box,
                                                     const Expr& number) const {
  struct Digit {
    size_t dimension;
    int64_t count, scale;
  };
  constexpr int64_t kRun = 8;
  const OperandPlan& plan = plan_.operands[operand];
  const size_t last = box.size() - 1;
  std::vector<Digit> digits;  // fastest first
  const int64_t length = std::max(plan.vector, plan.through), run = kRun / length;
  const bool in_runs = plan.innermost != last && run > 0 && box[last] % run == 0;
  if (in_runs) {
    digits = {{last, run, length}, {plan.innermost, box[plan.innermost], 1}, {last, box[last] / run, kRun}};
  } else {
    digits = {{last, box[last], length}};
  }
  for (size_t d = last; d-- > 0;) {
    if (!in_runs || d != plan.innermost) digits.push_back({d, box[d], 1});
  }
  std::vector<Expr> result(box.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < digits.size(); ++i) {
    Expr at = number / static_cast<int>(stride);
    if (i + 1 < digits.size()) at = at % static_cast<int>(digits[i].count);
    result[digits[i].dimension] = result[digits[i].dimension] + at * static_cast<int>(digits[i].scale);
    stride *= digits[i].count;
  }
  for (Expr& e : result) e = hi::simplify(e);
  return result;
}

/// The copies of a step of an operand: the body for the first element of each that a thread makes, and its round.
NodePtr ContractionBuilder::over_copies(
    size_t operand, const ReductionStep& step,
    const std::function<NodePtr(const std::vector<Expr>& element, const Expr& round)>& body) {
  constexpr int64_t kMostRounds = 16;
  const OperandPlan& plan = plan_.operands[operand];
  const int64_t missing = plan_.chunk[plan_.main] - step.length, length = std::max(plan.vector, plan.through);
  std::vector<int64_t> box = plan.box;
  int64_t copies = 1;
  for (size_t d = 0; d < box.size(); ++d) {
    box[d] -= missing * std::abs(c_.operands[operand].subscripts[d].reduction[plan_.main]);
    if (d + 1 == box.size()) box[d] = ceil_div(box[d], length);
    copies *= box[d];
  }
  const int64_t threads = plan_.threads();
  const int64_t rounds = ceil_div(copies, threads);
  const std::string round = names_.fresh("copy");
  Expr number = build::thread_x();
  if (rounds > 1) number = number + build::var(round) * static_cast<int>(threads);
  NodePtr result = body(copied_element(operand, box, number), rounds > 1 ? build::var(round) : Expr(0));
  if (copies % threads != 0) result = build::if_then(number < static_cast<int>(copies), result);
  if (rounds == 1) return result;
  return plan.through > 1 || plan_.unroll_copies.value_or(rounds <= kMostRounds)
             ? build::unrolled(round, 0, static_cast<int>(rounds), result)
             : build::for_loop(round, 0, static_cast<int>(rounds), result);
}

bool ContractionBuilder::goes_through_registers() const {
  return std::any_of(plan_.operands.begin(), plan_.operands.end(), [](const OperandPlan& o) { return o.through > 1; });
}

NodePtr ContractionBuilder::fetch(const Expr& stage, const ReductionStep& step) {
  if (!goes_through_registers()) return start_copies(stage, step);
  return build::sequence({start_copies(stage, step), end_copies(stage, step)});
}

/// Copies to shared memory, or, of operands that go through registers, to these.
NodePtr ContractionBuilder::start_copies(const Expr& stage, const ReductionStep& step) {
  std::vector<NodePtr> parts;
  for (size_t i = 0; i < c_.operands.size(); ++i) {
    const Operand& o = c_.operands[i];
    const OperandPlan& plan = plan_.operands[i];
    const int64_t length = plan.through > 1 ? plan.through : plan.vector;
    parts.push_back(over_copies(i, step, [&](const std::vector<Expr>& element, const Expr& round) {
      std::vector<Expr> from(element.size());
      for (size_t d = 0; d < element.size(); ++d) {
        const Expr at = hi::simplify(first_of(o.subscripts[d], step) + element[d]);
        from[d] = within(o, d, at, d + 1 == element.size() ? length : 1);
      }
      const Tensor source = build::global(o.tensor, o.type, row_major(o.extents));
      const auto elements = static_cast<int>(length);
      if (plan.through > 1) return build::move(passing_[i], {round, 0}, source, from, elements);
      return build::move(shared_[i], in_stage(stage, element), source, from, elements, plan_.asynchronous);
    }));
  }
  return build::sequence(std::move(parts));
}

/// From registers to shared memory.
NodePtr ContractionBuilder::end_copies(const Expr& stage, const ReductionStep& step) {
  std::vector<NodePtr> parts;
  for (size_t i = 0; i < c_.operands.size(); ++i) {
    const auto through = static_cast<int>(plan_.operands[i].through);
    if (through == 1) continue;
    parts.push_back(over_copies(i, step, [&](const std::vector<Expr>& element, const Expr& round) {
      const std::string lane = names_.fresh("lane");
      std::vector<Expr> to = element;
      to.back() = hi::simplify(to.back() + build::var(lane));
      return build::unrolled(
          lane, 0, through,
          build::store(shared_[i], in_stage(stage, to), build::read(passing_[i], {round, build::var(lane)})));
    }));
  }
  return build::sequence(std::move(parts));
}

std::vector<Expr> ContractionBuilder::in_stage(const Expr& stage, const std::vector<Expr>& element) const {
  std::vector<Expr> result = element;
  result.insert(result.begin(), hi::simplify(stage));
  return result;
}

}  // namespace tc::gpu
