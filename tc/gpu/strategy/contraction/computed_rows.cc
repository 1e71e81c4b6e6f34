#include "tc/gpu/strategy/contraction/computed_rows.h"

#include <algorithm>
#include <numeric>

#include "tc/gpu/lower/translate.h"
#include "tc/gpu/lower/vectorize.h"
#include "tc/gpu/strategy/contraction/affine_subscript.h"
#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"
#include "tc/support/round.h"

/// Products of warpgroups whose operand a is computed by the threads that multiply it. Boxes bring what it is made of.
/// A thread reads the elements of its rows there, computes, and holds what an instruction takes of it, for one half of
/// a step while the products of the other half run:
///     await turn
///     held_0 = f(source)     sum += held_0 * b     wait for the products of held_1; release the turn before
///     held_1 = f(source)     sum += held_1 * b     wait for the products of held_0
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

namespace {

constexpr int kQuad = 4, kPair = 2;
constexpr int kRegisters = 4;  ///< of a slice, a pair of 16-bit values each
constexpr int64_t kSlice = 16;

/// The largest power of two that divides all.
int64_t power_in(std::initializer_list<int64_t> values) {
  int64_t common = 0;
  for (const int64_t value : values) common = std::gcd(common, value);
  return common == 0 ? 0 : common & -common;
}

/// Finds how many values of the reduction, from a multiple of as many on, a subscript is the same for.
class Period {
 public:
  /// `first`: of each index that counts along the reduction, its value at the first step.
  Period(std::map<std::string, int64_t> first, int64_t chunk) : first_(std::move(first)), chunk_(chunk) {
    for (const auto& [name, value] : first_) names_.push_back(name);
  }

  /// 0: it does not depend on the reduction.
  int64_t of(const Expr& e) const {
    if (std::none_of(names_.begin(), names_.end(), [&](const auto& name) { return hi::expr_uses_var(e, name); })) {
      return 0;
    }
    if (const auto* op = e.as<hi::Add>()) return both(op->a, op->b);
    if (const auto* op = e.as<hi::Sub>()) return both(op->a, op->b);
    if (const auto* op = e.as<hi::Mul>()) return both(op->a, op->b);
    if (const auto* op = e.as<hi::Cast>()) return of(op->value);
    const auto* op = e.as<hi::Div>();
    const int64_t* divisor = op ? ir::constant_int(op->b) : nullptr;
    const std::optional<ShiftedIndex> index = divisor && *divisor > 0 ? shifted(op->a, names_) : std::nullopt;
    return index ? power_in({*divisor, first_.at(names_[index->index]) + index->constant, chunk_}) : 1;
  }

 private:
  int64_t both(const Expr& a, const Expr& b) const {
    const int64_t x = of(a), y = of(b);
    return x == 0 ? y : y == 0 ? x : std::min(x, y);
  }

  std::map<std::string, int64_t> first_;
  std::vector<std::string> names_;
  int64_t chunk_;
};

/// Calls that stand under no condition.
std::vector<const hi::Call*> unconditional_calls(const Expr& e) {
  class Finder : public hi::IRVisitor {
   public:
    std::vector<const hi::Call*> found;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* op) override {
      if (op->is_intrinsic(hi::Call::if_then_else)) {
        op->args[0].accept(this);
        return;
      }
      found.push_back(op);
      IRVisitor::visit(op);
    }
    void visit(const hi::Select* op) override { op->condition.accept(this); }
  } finder;
  e.accept(&finder);
  return std::move(finder.found);
}

/// A value in which some reads are variables.
class Replaced : public hi::IRMutator {
 public:
  explicit Replaced(const std::map<std::string, Expr>& reads) : reads_(reads) {}

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    for (const auto& [name, read] : reads_) {
      if (hi::equal(read, Expr(op))) return hi::Variable::make(op->type, name);
    }
    return IRMutator::visit(op);
  }
  const std::map<std::string, Expr>& reads_;
};

}  // namespace

std::vector<HeldRead> held_reads(const ir::Program& program, const Contraction& c, const ContractionPlan& plan) {
  const Operand& o = c.operands[plan.tensor_cores->a];
  const Axis& main = c.reduction[plan.main];
  std::map<std::string, int64_t> first;  // of the indices that count along the reduction, or 1 apart from it
  for (size_t d = 0; d < o.subscripts.size(); ++d) {
    const Subscript& s = o.subscripts[d];
    if (s.reduction[plan.main] == 0) continue;
    const auto used = std::count_if(s.parallel.begin(), s.parallel.end(), [](int64_t by) { return by != 0; }) +
                      std::count_if(s.reduction.begin(), s.reduction.end(), [](int64_t by) { return by != 0; });
    const Axis& index = o.computed->indices[d];
    first[index.name] = used == 1 && s.reduction[plan.main] == 1 ? s.constant + index.begin + main.begin : 1;
  }
  const Period period(first, plan.chunk[plan.main]);
  std::vector<HeldRead> result;
  for (const hi::Call* call : unconditional_calls(o.computed->value)) {
    if (!ir::is_tensor_read(program, call) || call->name == o.computed->source->tensor) continue;
    const Expr read = call;
    if (std::any_of(result.begin(), result.end(), [&](const HeldRead& held) { return hi::equal(held.read, read); })) {
      continue;
    }
    int64_t values = 0;
    for (const Expr& arg : call->args) {
      if (const int64_t own = period.of(arg); own > 0) values = values == 0 ? own : std::min(values, own);
    }
    if (values > 0 && values < kSlice) continue;
    result.push_back({read, values, values == 0 ? 1 : plan.chunk[plan.main] / values});
  }
  return result;
}

int64_t held_registers(const ContractionPlan& plan) {
  return plan.tensor_cores->computes_a ? plan.chunk[plan.main] / kSlice * kRegisters : 0;
}

/// The indices of the computed operand at a value of the reduction in a step, for the thread's row `half`, within their
/// ranges.
BodyContext ContractionBuilder::computed_context(const ReductionStep& step, const Expr& half, const Expr& k) const {
  const Operand& o = c_.operands[plan_.tensor_cores->a];
  BodyContext context;
  context.program = &program_;
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor); };
  std::vector<Expr> parallel, reduction;
  for (size_t i = 0; i < c_.parallel.size(); ++i) {
    const Axis& axis = c_.parallel[i];
    Expr value = first_[i] + hi::substitute({{high_[i], half}, {low_[i], half}}, local(i));
    if (is_partial(i)) value = Halide::min(value, static_cast<int>(axis.begin + axis.extent - 1));
    parallel.push_back(value);
  }
  for (size_t r = 0; r < c_.reduction.size(); ++r) {
    const Axis& axis = c_.reduction[r];
    const Expr value = r == plan_.main ? step.first[r] + k : step.first[r];
    reduction.push_back(Halide::min(value, static_cast<int>(axis.begin + axis.extent - 1)));
  }
  for (size_t d = 0; d < o.subscripts.size(); ++d) {
    const Subscript& s = o.subscripts[d];
    const Axis& index = o.computed->indices[d];
    Expr value = static_cast<int>(s.constant + index.begin);
    for (size_t i = 0; i < parallel.size(); ++i) {
      if (s.parallel[i] != 0) value = value + parallel[i] * static_cast<int>(s.parallel[i]);
    }
    for (size_t r = 0; r < reduction.size(); ++r) {
      if (s.reduction[r] != 0) value = value + reduction[r] * static_cast<int>(s.reduction[r]);
    }
    context.indices[index.name] = poly::ranged(hi::simplify(value), index.begin, index.begin + index.extent - 1);
  }
  return context;
}

/// Reads what is held for a step.
NodePtr ContractionBuilder::hold_reads(const HeldRead& held, const Tensor& to, const ReductionStep& step) {
  const std::string half = names_.fresh("half"), run = names_.fresh("run");
  const Expr k = held.runs > 1 ? build::var(run) * static_cast<int>(held.values) : Expr(0);
  const Expr at_run = held.runs > 1 ? build::var(run) : Expr(0);
  const auto* read = held.read.as<hi::Call>();
  const Tensor from = global_tensor(program_.tensor(read->name), false);
  // A copy: it is not waited for before somebody looks at it.
  NodePtr result = build::move(to, {build::var(half), at_run}, from,
                               element_at(read->args, computed_context(step, build::var(half), k)), 1);
  if (held.runs > 1) result = build::unrolled(run, 0, static_cast<int>(held.runs), result);
  return build::unrolled(half, 0, kPair, result);
}

/// Computes what a thread multiplies of some slices of a step. `masks`: what lies behind the reduction is zero.
NodePtr ContractionBuilder::compute_slices(const ComputedRows& rows, const Tensor& to, int64_t first, int64_t slices,
                                           const Expr& stage, const ReductionStep& step, bool masks) {
  const size_t a = plan_.tensor_cores->a;
  const Operand& o = c_.operands[a];
  const Operand& source = in_memory(c_, a);
  const std::string slice_name = names_.fresh("slice"), register_name = names_.fresh("pair"),
                    value_name = names_.fresh("in_pair");
  const Expr slice = hi::simplify(slices > 1 ? build::var(slice_name) + static_cast<int>(first) : Expr(int(first)));
  const Expr reg = build::var(register_name), half = reg % 2, value = build::var(value_name);
  const Expr in_slice = reg / 2 * static_cast<int>(kSlice / 2) + lane_ % kQuad * kPair + value;
  const Expr k = slice * static_cast<int>(kSlice) + in_slice;
  const Expr row = plan_.tensor_cores->pairs_rows ? (lane_ / kQuad + row_warp_ * 8) * kPair + half
                                                  : lane_ / kQuad + row_warp_ * 16 + half * 8;
  std::vector<Expr> at;
  if (runs_across(c_, a, plan_)) {
    at = {stage, k, row};
  } else {
    const auto boxes = static_cast<int>(boxes_along(c_, a, plan_)), of_row = static_cast<int>(row_of(source) / kSlice);
    at = {stage * boxes + slice / of_row, row, slice % of_row * static_cast<int>(kSlice) + in_slice};
    if (boxes == 1) at = {stage, row, k};
  }
  for (Expr& e : at) e = hi::simplify(e);
  // By other names, what is read from shared memory and registers.
  std::map<std::string, Expr> reads, elements;
  for (const hi::Call* read : ir::reads_in(program_, o.computed->value)) {
    if (read->name == source.tensor) reads["element of " + source.tensor] = read;
  }
  elements["element of " + source.tensor] = build::read(shared_[a], at);
  for (size_t i = 0; i < rows.reads.size(); ++i) {
    const std::string name = fmt::format("held {}", i);
    reads[name] = rows.reads[i].read;
    const int64_t values = std::max<int64_t>(rows.reads[i].values / kSlice, 1);
    const Expr run = rows.reads[i].runs > 1 ? slice / static_cast<int>(values) : Expr(0);
    elements[name] = build::read(rows.held[i], {half, hi::simplify(run)});
  }
  const Expr computed = Replaced(reads).mutate(o.computed->value);
  Expr result = hi::substitute(elements, instance_value(computed, computed_context(step, half, k)));
  if (result.type() != o.type) result = hi::Cast::make(o.type, result);
  if (masks) {
    const Axis& main = c_.reduction[plan_.main];
    const Expr inside = hi::simplify(step.first[plan_.main] + k < static_cast<int>(main.begin + main.extent));
    result = hi::Select::make(inside, result, hi::make_zero(o.type));
  }
  NodePtr body =
      build::store(to, {slices > 1 ? build::var(slice_name) : Expr(0), hi::simplify(reg * kPair + value)}, result);
  body = build::unrolled(register_name, 0, kRegisters, build::unrolled(value_name, 0, kPair, body));
  if (slices > 1) body = build::unrolled(slice_name, 0, static_cast<int>(slices), body);
  return vectorize(body, program_, names_, {shared_[a]});
}

NodePtr ContractionBuilder::consume_computed() {
  const TensorCores& cores = *plan_.tensor_cores;
  const Operand& o = c_.operands[cores.a];
  const std::string name = names_.fresh("step");
  const Expr turn = turn_of(build::var(name)), stage = hi::simplify(turn % static_cast<int>(plan_.stages));
  const tile::WarpgroupAtom atom = {ir::from_halide(o.type), ir::from_halide(c_.operands[cores.b].type),
                                    static_cast<int>(tile_of(cores.columns, plan_))};
  const ReductionStep step = step_at(dealt_out(build::var(name)));
  const int64_t all = values_of_step(c_, plan_) / kSlice;
  ComputedRows rows{held_reads(program_, c_, plan_), {}, {}};
  for (const HeldRead& held : rows.reads) {
    const auto* read = held.read.as<hi::Call>();
    const auto registers = [&](const std::string& suffix) {
      Tensor tensor = build::registers(names_.fresh(read->name + suffix), read->type, row_major({kPair, held.runs}));
      tensor.written = true;
      return tensor;
    };
    rows.held.push_back(registers("_held"));
    rows.ahead.push_back(held.values > 0 ? registers("_ahead") : Tensor());
  }
  // The reads of the next step are under way while this one's values are computed.
  std::vector<NodePtr> before, body = {build::await(ring_, turn)};
  for (size_t i = 0; i < rows.reads.size(); ++i) {
    const HeldRead& held = rows.reads[i];
    const bool once = held.values == 0;
    before.push_back(hold_reads(held, once ? rows.held[i] : rows.ahead[i], step_at(dealt_out(0))));
    if (once) continue;
    const std::string half = names_.fresh("half"), run = names_.fresh("run");
    const Expr at_run = held.runs > 1 ? build::var(run) : Expr(0);
    const std::vector<Expr> at = {build::var(half), at_run};
    NodePtr copy = build::store(rows.held[i], at, build::read(rows.ahead[i], at));
    if (held.runs > 1) copy = build::unrolled(run, 0, static_cast<int>(held.runs), copy);
    body.push_back(build::unrolled(half, 0, kPair, copy));
    body.push_back(hold_reads(held, rows.ahead[i], step_at(dealt_out(build::var(name) + 1))));
  }
  const int64_t sizes[] = {ceil_div(all, 2), all / 2};
  std::vector<Tensor> values;
  for (const int64_t slices : sizes) {
    if (slices == 0) break;
    values.push_back(build::registers(names_.fresh(o.tensor + "_values"), o.type, row_major({slices, 2 * kRegisters})));
    values.back().written = true;
  }
  const Axis& main = c_.reduction[plan_.main];
  const Expr may_end = hi::simplify(step.first[plan_.main] + static_cast<int>(all * kSlice) >
                                    static_cast<int>(main.begin + main.extent));
  const bool fills = main.extent % (all * kSlice) != 0;
  int64_t first = 0;
  for (size_t half = 0; half < values.size(); ++half) {
    const auto compute = [&](bool masks) {
      return compute_slices(rows, values[half], first, sizes[half], stage, step, masks);
    };
    body.push_back(fills ? build::if_then(may_end, compute(true), compute(false)) : compute(false));
    const bool across = runs_across(c_, cores.b, plan_);
    const auto boxes = static_cast<int>(boxes_along(c_, cores.b, plan_));
    const auto of_row = static_cast<int>(row_of(c_.operands[cores.b]));
    // Each box along the reduction is a tile of its own.
    for (int64_t slice = first; slice < first + sizes[half];) {
      const auto k = static_cast<int>(slice * kSlice);
      const int64_t end =
          across ? first + sizes[half] : std::min(first + sizes[half], (k / of_row + 1) * of_row / kSlice);
      const int64_t count = end - slice;
      const tile::MatrixTile b =
          across ? tile::MatrixTile{shared_[cores.b].name, {stage, k, 0}, 2, 1}
                 : tile::MatrixTile{
                       shared_[cores.b].name, {hi::simplify(stage * boxes + k / of_row), 0, k % of_row}, 1, 2};
      const tile::FragmentTile held{values[half].name, {static_cast<int>(slice - first), 0}};
      body.push_back(tile::carrying(step_instances(step, k, count * kSlice),
                                    build::warpgroup_matmul(atom, static_cast<int>(count), sum_, held, b)));
      slice = end;
    }
    first += sizes[half];
    const size_t other = values.size() - 1 - half;
    body.push_back(build::matmul_wait(values.size() > 1 ? 1 : 0, {values[other].name}));
    if (half > 0) continue;
    body.push_back(first_turn_ > 0 ? build::release(ring_, hi::simplify(turn - 1))
                                   : build::if_then(build::var(name) > 0, build::release(ring_, turn - 1)));
  }
  before.push_back(build::for_loop(name, 0, steps_of_block(), build::sequence(std::move(body))));
  before.push_back(build::matmul_wait(0, {sum_.name}));
  NodePtr result = build::sequence(std::move(before));
  for (const std::vector<Tensor>* tensors : {&values, &rows.held, &rows.ahead}) {
    for (const Tensor& tensor : *tensors) {
      if (!tensor.name.empty()) result = build::allocate(tensor, result);
    }
  }
  return result;
}

}  // namespace tc::gpu
