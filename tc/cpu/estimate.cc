#include "tc/cpu/estimate.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tc/cpu/strategy_contraction.h"
#include "tc/cpu/strategy_options.h"
#include "tc/cpu/strategy_unit.h"

namespace tc::cpu {
namespace {

constexpr double kCyclesPerNanosecond = 3;
/// Operations per nanosecond and lane of code that sums up nothing.
constexpr double kPointwiseRate = 2;
/// Bytes per nanosecond: from memory, for all cores together; from a core's caches.
constexpr double kMemoryRate = 12;
constexpr double kCacheRate = 30;
/// What all caches together hold, and one core's.
constexpr double kCachesBytes = 8e6;
constexpr double kCoreBytes = 512e3;
/// What it costs to wake the threads for a loop, and from how much work on it is done.
constexpr double kWakeNanoseconds = 3'000;
constexpr double kParallelNanoseconds = 30'000;
/// Accumulators in registers; what is beyond them is stored and loaded in every step.
constexpr int64_t kRegisters512 = 28;
constexpr int64_t kRegisters = 12;

double ceil_div(double extent, double tile) { return std::ceil(extent / std::max(tile, 1.0)); }

double bytes_of(const ir::Tensor& tensor) {
  double bytes = tensor.type.bytes();
  for (const int64_t extent : constant_extents(tensor)) bytes *= static_cast<double>(extent);
  return bytes;
}

/// Operations on floats of all instances: each sum, product, quotient, choice and function is one.
double float_operations(const StatementInfo& info) {
  namespace hi = Halide::Internal;
  class Counter : public hi::IRVisitor {
   public:
    double count = 0;

   private:
    using IRVisitor::visit;
    void add(const Halide::Type& type) { count += type.is_float() ? 1 : 0; }
    void visit(const hi::Add* op) override { add(op->type), IRVisitor::visit(op); }
    void visit(const hi::Sub* op) override { add(op->type), IRVisitor::visit(op); }
    void visit(const hi::Mul* op) override { add(op->type), IRVisitor::visit(op); }
    void visit(const hi::Div* op) override { add(op->type), IRVisitor::visit(op); }
    void visit(const hi::Min* op) override { add(op->type), IRVisitor::visit(op); }
    void visit(const hi::Max* op) override { add(op->type), IRVisitor::visit(op); }
    void visit(const hi::Select* op) override { add(op->type), IRVisitor::visit(op); }
    void visit(const hi::Call* op) override {
      const bool reads = !op->args.empty() && op->args[0].type() == ir::index_type();
      if (!reads) add(op->type);
      IRVisitor::visit(op);
    }
  } counter;
  info.statement->value.accept(&counter);
  const bool updates = info.statement->kind == poly::Statement::Kind::kUpdate;
  if (updates && info.statement->accumulator.is_float()) counter.count += 1;
  return counter.count * info.instances();
}

/// Bytes per nanosecond of what a group moves.
double memory_rate(const StrategyOptions& options, double bytes) {
  return bytes > kCachesBytes ? kMemoryRate : kCacheRate * options.threads;
}

class Estimate {
 public:
  Estimate(const Analysis& analysis, const Group& group, const StrategyOptions& options)
      : analysis_(analysis),
        group_(group),
        options_(options),
        unit_options_(unit_options(analysis, options, group.shared.size())) {
    if (group.units.size() == 1 && !group.shared.empty()) {
      shape_ = contraction_shape(analysis, group.units[0],
                                 {.unit = unit_options_, .tile = options.cpu.tile, .threads = options.threads});
    }
  }

  /// In nanoseconds.
  GroupEstimate estimate() const {
    GroupEstimate result;
    for (const Unit& unit : group_.units) result.work_us += unit_ns(unit);
    if (shape_) result.work_us += packed_ns();
    result.bytes = seen_bytes();
    result.memory_us = result.bytes / memory_rate(options_, result.bytes);
    const double serial = std::max(result.work_us, result.memory_us);
    const bool is_parallel = options_.threads > 1 && !group_.shared.empty() &&
                             options_.cpu.parallel.value_or(serial >= kParallelNanoseconds);
    if (is_parallel) {
      result.work_us *= longest_share();
      result.wake_us = kWakeNanoseconds;
    }
    result.us = std::max(result.work_us, result.memory_us) + result.wake_us;
    return result;
  }

 private:
  /// What the busiest thread has of the work.
  double longest_share() const {
    double parts = 1;
    for (const Dim& dim : group_.shared) parts *= static_cast<double>(dim.extent);
    if (shape_) parts = row_blocks();
    return std::ceil(parts / options_.threads) / parts;
  }

  double unit_ns(const Unit& unit) const {
    const UnitPlan plan = plan_unit(analysis_, unit, unit_options_);
    UnitOptions native = unit_options_;
    native.vector_width = 0;
    const int64_t native_lanes = plan_unit(analysis_, unit, native).lanes;
    double result = 0;
    for (const int s : unit.statements) {
      const StatementInfo& info = info_of(analysis_, s);
      if (info.reduces()) {
        result += reduction_steps(unit, plan, info) * step_cycles(plan, native_lanes) / kCyclesPerNanosecond;
      } else {
        const auto lanes = static_cast<double>(std::min(plan.lanes, native_lanes));
        result += info.instances() * info.operations / (kPointwiseRate * lanes);
        result += info.instances() / static_cast<double>(plan.lanes * plan.vectors) / kCyclesPerNanosecond;
      }
    }
    return result;
  }

  /// Steps of the register tile, of a whole statement.
  static double reduction_steps(const Unit& unit, const UnitPlan& plan, const StatementInfo& info) {
    double steps = 1;
    for (size_t i = 0; i < info.extent.size(); ++i) {
      double tile = 1;
      for (size_t d = 0; d < unit.dims.size(); ++d) {
        if (unit.dims[d].position.at(info.id()) == static_cast<int>(i)) tile = static_cast<double>(plan.tile[d]);
      }
      steps *= ceil_div(static_cast<double>(info.extent[i]), tile);
    }
    return steps;
  }

  double step_cycles(const UnitPlan& plan, int64_t native_lanes) const {
    const int64_t vectors = plan.vectors * ((plan.lanes + native_lanes - 1) / native_lanes);
    int64_t rows = 1;
    for (size_t d = 0; d < plan.tile.size(); ++d) {
      if (static_cast<int>(d) != plan.vector) rows *= plan.tile[d];
    }
    const int64_t held = !unit_options_.promote ? 0 : options_.vector_bits >= 512 ? kRegisters512 : kRegisters;
    return register_step_cycles(vectors, rows) + static_cast<double>(std::max<int64_t>(vectors * rows - held, 0));
  }

  double row_blocks() const {
    return ceil_div(static_cast<double>(group_.units[0].dims[static_cast<size_t>(shape_->rows)].extent),
                    static_cast<double>(shape_->block_rows));
  }

  /// Of a contraction: packing its operands, and reading what was packed.
  double packed_ns() const {
    const Unit& unit = group_.units[0];
    const Dim& columns = unit.dims[static_cast<size_t>(shape_->columns)];
    const double column_blocks =
        ceil_div(static_cast<double>(columns.extent), static_cast<double>(shape_->block_columns));
    double others = 1;
    for (size_t d = 0; d < unit.dims.size(); ++d) {
      if (static_cast<int>(d) != shape_->rows && static_cast<int>(d) != shape_->columns) {
        others *= static_cast<double>(unit.dims[d].extent);
      }
    }
    double bytes = 0;
    for (const int s : unit.statements) {
      const StatementInfo& info = info_of(analysis_, s);
      if (!info.reduces()) continue;
      for (const Reference& reference : info.references) {
        if (reference.is_write) continue;
        const double whole = bytes_of(analysis_.scop->program->tensor(reference.tensor));
        if (reference.depends_on(index_name(info, columns))) {
          bytes += whole * (2 + row_blocks());
        } else {
          bytes += whole * 2 * column_blocks;
          // A block that a core's cache does not hold is read anew for every tile of columns.
          const double block = whole / others / row_blocks();
          const UnitPlan plan = plan_unit(analysis_, unit, unit_options_);
          const auto tile = static_cast<double>(plan.tile[static_cast<size_t>(shape_->columns)]);
          if (block > kCoreBytes) bytes += whole * ceil_div(static_cast<double>(columns.extent), tile);
        }
      }
    }
    return bytes / kCacheRate;
  }

  /// What the group reads and writes of tensors that others see too, once each.
  double seen_bytes() const {
    std::vector<int> all;
    for (const Unit& unit : group_.units) all.insert(all.end(), unit.statements.begin(), unit.statements.end());
    std::set<std::string> seen;
    double bytes = 0;
    for (const int s : all) {
      for (const Reference& reference : info_of(analysis_, s).references) {
        if (!seen.insert(reference.tensor).second) continue;
        const bool stays =
            unit_options_.promote && !group_.shared.empty() && is_private(analysis_, all, reference.tensor);
        if (!stays) bytes += bytes_of(analysis_.scop->program->tensor(reference.tensor));
      }
    }
    return bytes;
  }

  const Analysis& analysis_;
  const Group& group_;
  const StrategyOptions& options_;
  UnitOptions unit_options_;
  std::optional<ContractionShape> shape_;
};

}  // namespace

double estimated_ns(const Analysis& analysis, const Group& group, const StrategyOptions& options) {
  return Estimate(analysis, group, options).estimate().us;
}

const char* GroupEstimate::limit() const {
  if (wake_us > std::max(work_us, memory_us)) return "waking the threads";
  return memory_us > work_us ? "memory" : "work";
}

GroupEstimate estimate(const Analysis& analysis, const Group& group, const StrategyOptions& options) {
  GroupEstimate result = Estimate(analysis, group, options).estimate();
  for (double* ns : {&result.us, &result.work_us, &result.memory_us, &result.wake_us}) *ns /= 1e3;
  for (const Unit& unit : group.units) {
    for (const int s : unit.statements) result.operations += float_operations(info_of(analysis, s));
  }
  return result;
}

Rates rates(const StrategyOptions& options, double bytes) {
  constexpr double kVectorsPerCycle = 2, kOperationsOfProduct = 2, kLaneBits = 32;  // a product with its addition
  const double lanes = options.vector_bits / kLaneBits;
  return {.operations_per_us =
              1e3 * kCyclesPerNanosecond * kVectorsPerCycle * kOperationsOfProduct * lanes * options.threads,
          .bytes_per_us = 1e3 * memory_rate(options, bytes)};
}

double estimated_us(const Analysis& analysis, const std::vector<Group>& groups, const StrategyOptions& options) {
  double result = 0;
  for (const Group& group : groups) result += estimated_ns(analysis, group, options);
  return result / 1e3;
}

}  // namespace tc::cpu
