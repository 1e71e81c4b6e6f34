#include "tc/gpu/strategy/contraction/tensor_cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/ir/tf32_values.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

constexpr int64_t kRowThreads = 8, kColumnThreads = 4, kColumnGroup = 2;  // of a warp
constexpr int kWarpgroupArchitecture = 90;                                // the only one whose warpgroups multiply

/// The placeholder that a factor is, converted to the sum's type. An 8-bit float may become other floats on its way,
/// all of which have its values. A float32 may be rounded to TF32.
const std::string* factor(const Expr& e, Halide::Type sum) {
  const Expr* rounded = ir::tf32_argument(e);
  if (const auto* read = (rounded ? *rounded : e).as<hi::Variable>(); read && read->type == Halide::Float(32)) {
    return sum == read->type ? &read->name : nullptr;
  }
  const auto* cast = e.as<hi::Cast>();
  if (!cast || cast->type != sum) return nullptr;
  int casts = 1;
  for (const auto* from = cast->value.as<hi::Cast>(); from && from->type.is_float();
       from = cast->value.as<hi::Cast>()) {
    cast = from;
    ++casts;
  }
  const auto* read = cast->value.as<hi::Variable>();
  return read && (casts == 1 || ir::is_float8(read->type)) ? &read->name : nullptr;
}

bool depends_on_any(const Operand& operand, const std::vector<size_t>& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](size_t axis) { return depends(operand, axis); });
}

int64_t threads_along(const std::vector<size_t>& axes, const ContractionPlan& plan) {
  int64_t result = 1;
  for (size_t axis : axes) result *= plan.parallel[axis].threads();
  return result;
}

int64_t registers_along(const std::vector<size_t>& axes, const ContractionPlan& plan) {
  int64_t result = 1;
  for (size_t axis : axes) result *= plan.parallel[axis].registers;
  return result;
}

}  // namespace

bool needs_rounding(const Contraction& c, const Operand& operand) {
  if (operand.is_tf32) return false;
  class Finder : public hi::IRVisitor {
   public:
    explicit Finder(const std::string& placeholder) : placeholder_(placeholder) {}
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* op) override {
      const Expr* rounded = ir::tf32_argument(op);
      const auto* read = rounded ? rounded->as<hi::Variable>() : nullptr;
      found = found || (read && read->name == placeholder_);
      IRVisitor::visit(op);
    }
    const std::string& placeholder_;
  } finder(operand.placeholder);
  c.update.value.accept(&finder);
  return finder.found;
}

std::optional<TensorCores> tensor_cores_of(const Contraction& c, const Classes& classes, const Device& device,
                                           bool may_cut) {
  const bool is_product = c.update.assign == ir::Assign::kAdd && c.operands.size() == 2;
  if (!is_product || classes.rows.empty() || classes.columns.empty() || classes.unshared >= 0) return {};
  const Halide::Type sum = c.update.accumulator;
  const ScalarType a = ir::from_halide(c.operands[0].type), b = ir::from_halide(c.operands[1].type);
  const tile::MatMulAtom* atom = device.tensor_products > 0 && a == b
                                     ? tile::find_matmul_atom(a, ir::from_halide(sum), device.architecture)
                                     : nullptr;
  const bool has_warpgroups =
      device.accelerated && device.architecture == kWarpgroupArchitecture && device.warpgroup_products > 0;
  const bool by_warpgroups = has_warpgroups && tile::has_warpgroup_atom(a, b) &&
                             sum == ir::to_halide(tile::WarpgroupAtom{.a = a, .b = b}.sum());
  const auto* product = c.update.value.as<hi::Mul>();
  if (!product || (!atom && !by_warpgroups)) return {};
  const std::string *first = factor(product->a, sum), *second = factor(product->b, sum);
  const std::vector<std::string> both = {c.operands[0].placeholder, c.operands[1].placeholder};
  if (!first || !second || *first == *second) return {};
  for (const std::string* name : {first, second}) {
    if (std::find(both.begin(), both.end(), *name) == both.end()) return {};
  }
  std::array<bool, 2> rounds = {};
  bool cuts = false;
  for (size_t i = 0; i < rounds.size(); ++i) {
    rounds[i] = needs_rounding(c, c.operands[i]);
    cuts = cuts || (c.operands[i].type == Halide::Float(32) && !rounds[i] && !c.operands[i].is_tf32);
  }
  if (cuts && !may_cut) return {};
  TensorCores result{.atom = atom, .rows = classes.rows, .columns = classes.columns};
  result.a = depends_on_any(c.operands[0], classes.rows) ? 0 : 1;
  result.b = 1 - result.a;
  result.rounds = rounds;
  result.cuts = cuts;
  const auto only = [&](const std::vector<size_t>& axes, size_t mine, size_t other) {
    return std::all_of(axes.begin(), axes.end(), [&](size_t axis) {
      return depends(c.operands[mine], axis) && !depends(c.operands[other], axis);
    });
  };
  if (!only(result.rows, result.a, result.b) || !only(result.columns, result.b, result.a)) return {};
  return result;
}

std::vector<AtomShape> atom_shapes(const Contraction& c, size_t main, const tile::MatMulAtom& atom, bool is_inner) {
  constexpr int64_t kMostSums = 128, kMostThreads = 512;
  const int64_t extent = c.reduction[main].extent;
  const bool may_leave = !is_inner && std::all_of(c.operands.begin(), c.operands.end(),
                                                  [&](const Operand& o) { return has_axis_alone(o, main); });
  std::vector<int64_t> chunks;
  for (const int64_t chunk : {8, 16, 32, 64, 128}) {
    if (chunk >= atom.k && chunk <= extent && (may_leave || extent % chunk == 0)) chunks.push_back(chunk);
  }
  std::vector<AtomShape> result;
  for (const int64_t row_warps : {1, 2, 4}) {
    for (const int64_t column_warps : {1, 2, 4, 8}) {
      for (const int64_t rows : {2, 4, 8}) {
        for (const int64_t columns : {2, 4, 8, 16, 32}) {
          for (const int64_t groups : {1, 2, 4, 8}) {
            const int64_t threads = row_warps * column_warps * groups * kRowThreads * kColumnThreads;
            if (rows * columns > kMostSums || threads > kMostThreads) continue;
            for (const int64_t chunk : chunks) {
              if (chunk % (groups * atom.k) != 0) continue;
              result.push_back({row_warps * kRowThreads, rows, column_warps * kColumnThreads, columns, groups, chunk});
            }
          }
        }
      }
    }
  }
  return result;
}

bool deal_out(const Contraction& c, const std::vector<size_t>& axes, int64_t threads, int64_t registers, int64_t group,
              ContractionPlan& plan) {
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = c.parallel[axes[i]].extent;
    AxisPlan& a = plan.parallel[axes[i]];
    a.group = i == 0 ? group : 1;
    if (i + 1 == axes.size()) {
      if (registers % a.group != 0) return false;
      a.registers = registers;
      a.tile = threads * registers;
      return true;
    }
    double least = 0;
    int64_t best_threads = 0, best_registers = 0;
    for (int64_t t = threads; t >= 1; t /= 2) {
      for (int64_t r = registers; r >= a.group; r /= 2) {
        if (r % a.group != 0 || registers % r != 0) continue;
        const double waste = static_cast<double>(round_up(extent, t * r)) / static_cast<double>(extent);
        if (best_threads > 0 && waste >= least) continue;
        least = waste;
        best_threads = t;
        best_registers = r;
      }
    }
    if (best_threads == 0) return false;
    a.registers = best_registers;
    a.tile = best_threads * best_registers;
    threads /= best_threads;
    registers /= best_registers;
  }
  return true;
}

std::string atom_fault(const Contraction& c, const ContractionPlan& plan) {
  const TensorCores& cores = *plan.tensor_cores;
  const int64_t row_threads = threads_along(cores.rows, plan), column_threads = threads_along(cores.columns, plan);
  for (size_t axis = 0; axis < plan.parallel.size(); ++axis) {
    const auto in = [&](const std::vector<size_t>& axes) {
      return std::find(axes.begin(), axes.end(), axis) != axes.end();
    };
    if (!in(cores.rows) && !in(cores.columns) && plan.parallel[axis].tile != 1) {
      return fmt::format("both operands depend on '{}', of which a block has {} values, not 1", c.parallel[axis].name,
                         plan.parallel[axis].tile);
    }
  }
  if (row_threads % kRowThreads != 0 || column_threads % kColumnThreads != 0) {
    return fmt::format("{} by {} threads are no warps of {} by {}", column_threads, row_threads, kColumnThreads,
                       kRowThreads);
  }
  if (registers_along(cores.rows, plan) % 2 != 0 || plan.parallel[cores.columns[0]].registers % kColumnGroup != 0) {
    return "a thread's rows and columns are no pairs";
  }
  const int64_t chunk = plan.chunk[plan.main], left = c.reduction[plan.main].extent % chunk;
  if (chunk % (cores.atom->k * plan.groups) != 0) {
    return fmt::format("steps of {} are no multiple of {} for each group of threads", chunk, cores.atom->k);
  }
  for (const Operand& operand : c.operands) {
    if (left != 0 && !has_axis_alone(operand, plan.main)) {
      return fmt::format("steps of {} leave {} values of '{}'", chunk, left, c.reduction[plan.main].name);
    }
  }
  return "";
}

FragmentRead fragment_read(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  const TensorCores& cores = *plan.tensor_cores;
  const OperandPlan& o = plan.operands[operand];
  if (c.operands[operand].type.bytes() != 2 || o.lead > 0) return FragmentRead::kElements;
  if (o.along_main) return FragmentRead::kAlong;
  const size_t first = (operand == cores.a ? cores.rows : cores.columns)[0];
  const int64_t warp = operand == cores.a ? kRowThreads : kColumnThreads;
  const bool runs = o.innermost + 1 == o.box.size() && steps_along(c.operands[operand], o.innermost, first, plan) &&
                    plan.parallel[first].threads() % warp == 0;
  return runs ? FragmentRead::kAcross : FragmentRead::kElements;
}

std::vector<int64_t> registers_of_point(const std::vector<size_t>& axes, int64_t point, const ContractionPlan& plan) {
  std::vector<int64_t> result;
  for (size_t axis : axes) {
    result.push_back(point % plan.parallel[axis].registers);
    point /= plan.parallel[axis].registers;
  }
  return result;
}

std::vector<std::vector<int64_t>> atom_reads(const Contraction& c, size_t operand, const ContractionPlan& plan) {
  constexpr int64_t kLanes = 32;
  const TensorCores& cores = *plan.tensor_cores;
  const bool is_a = operand == cores.a;
  const std::vector<size_t>& axes = is_a ? cores.rows : cores.columns;
  const int64_t points = registers_along(axes, plan) / (is_a ? 1 : kColumnGroup);
  const FragmentRead read = plan.operands[operand].fragment;
  std::vector<std::vector<int64_t>> result;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const SidePlace<int64_t> place = read == FragmentRead::kElements
                                         ? value_place(*cores.atom, lane, 0, is_a)
                                         : matrix_place(lane, is_a, read == FragmentRead::kAlong);
    const int64_t point = std::min(place.point, points - 1) * (is_a ? 1 : kColumnGroup) + place.low;
    const std::vector<int64_t> registers = registers_of_point(axes, point, plan);
    std::vector<int64_t> local(c.parallel.size(), 0);
    int64_t rest = place.thread;
    for (size_t i = 0; i < axes.size(); ++i) {
      const AxisPlan& a = plan.parallel[axes[i]];
      const int64_t high = registers[i] / a.group, low = registers[i] % a.group;
      local[axes[i]] = (high * a.threads() + rest % a.threads()) * a.group + low;
      rest /= a.threads();
    }
    std::vector<int64_t> position;
    for (const Subscript& s : c.operands[operand].subscripts) {
      position.push_back(place.k * std::abs(s.reduction[plan.main]));
      for (size_t i = 0; i < s.parallel.size(); ++i) position.back() += std::abs(s.parallel[i]) * local[i];
    }
    position.back() += plan.operands[operand].lead;
    result.push_back(std::move(position));
  }
  return result;
}

}  // namespace tc::gpu
