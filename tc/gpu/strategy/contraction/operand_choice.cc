#include "tc/gpu/strategy/contraction/operand_choice.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/parts.h"
#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/gpu/strategy/contraction/tensor_cores.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/ir/layouts.h"
#include "tc/ir/reads.h"
#include "tc/ir/tf32_values.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

/// Elements of 16 bytes, and of a line of the cache.
int64_t elements_of_vector(Halide::Type type) { return 16 / type.bytes(); }
int64_t elements_of_line(Halide::Type type) { return 128 / type.bytes(); }

bool rounds_to_tf32(const Halide::Expr& e) {
  class Finder : public Halide::Internal::IRVisitor {
   public:
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const Halide::Internal::Call* op) override {
      found = found || ir::tf32_argument(op);
      IRVisitor::visit(op);
    }
  } finder;
  e.accept(&finder);
  return finder.found;
}

}  // namespace

bool may_be_multiplied(const ir::Program& program, const ir::Statement& statement, bool may_cut) {
  const bool is_integer = statement.accumulator == Halide::Int(32);
  if (statement.assign != ir::Assign::kAdd || (!is_integer && statement.accumulator != Halide::Float(32))) return false;
  const auto reads = ir::reads_in(program, statement.value);
  const bool may_be_tf32 = may_cut || rounds_to_tf32(statement.value);
  return reads.size() == 2 && std::all_of(reads.begin(), reads.end(), [&](const Halide::Internal::Call* read) {
           if (is_integer) return read->type.is_int_or_uint() && !read->type.is_bool() && read->type.bits() == 8;
           if (!read->type.is_float() || read->type.bits() > 32) return false;
           return read->type.bits() <= 16 || may_be_tf32 || ir::holds_tf32(program, read->name);
         });
}

namespace {

/// Whether a dimension counts along one axis and nothing else, by ones: it may be the last one of a box.
bool counts_one(const Subscript& s, bool along_reduction) {
  const auto sum = [](const std::vector<int64_t>& by) {
    return std::accumulate(by.begin(), by.end(), int64_t{0}, [](int64_t n, int64_t b) {
      return n + (b == 0 ? 0 : b == 1 ? 1 : 2);
    });
  };
  return sum(s.reduction) + sum(s.parallel) == 1 && (!along_reduction || sum(s.reduction) == 1);
}

/// Rows of whole lines, unless they would be much longer; then of whole vectors. What is transposed has no zeros to
/// store behind its rows where they are whole vectors.
int64_t row_of(int64_t elements, Halide::Type type, bool permutes) {
  constexpr int64_t kShare = 8;
  if (permutes && elements % elements_of_vector(type) == 0) return elements;
  const int64_t lines = round_up(elements, elements_of_line(type));
  return (lines - elements) * kShare <= elements ? lines : round_up(elements, elements_of_vector(type));
}

/// An operand's tensor in an order.
Operand in_order(const Operand& operand, const OperandOrder& order) {
  Operand result = operand;
  for (size_t i = 0; i < order.dimensions.size(); ++i) {
    const size_t d = order.dimensions[i];
    const int64_t first = order.stored ? 0 : order.read[d].begin;
    result.subscripts[i] = operand.subscripts[d];
    result.subscripts[i].constant -= first;
    result.extents[i] = order.stored ? operand.extents[d] : order.read[d].extent;
    if (operand.inside.empty()) continue;
    result.inside[i] = operand.inside[d];
    for (std::optional<int64_t>* bound : {&result.inside[i].least, &result.inside[i].greatest}) {
      if (*bound) **bound -= first;
    }
  }
  result.extents.back() = order.row;
  result.strides = ir::row_major_strides(result.extents);
  result.at_any_address = false;
  result.is_tf32 = result.is_tf32 || order.rounds;
  return result;
}

bool has_warpgroups(const Device& device) { return device.accelerated && device.warpgroup_products > 0; }

/// What may be done to one of the tensors that a product reads.
struct Choice {
  std::optional<OperandOrder> order;  ///< nothing: it stays
  double us = 0;                      ///< of the copy
};

/// `fills`: rows are filled up with zeros. A copy that does so and permutes is no transposition through shared memory:
/// the classic mapping gives each thread an element.
double copy_us(const OperandOrder& order, int bytes_of_element, bool permutes, bool fills, const Device& device) {
  constexpr double kLaunchUs = 1.5;
  constexpr double kPermuted = 0.7, kStraight = 0.85;  // of the memory's rate
  constexpr double kBlock = 256;                       // threads
  double elements = 1;
  for (const ir::Range& range : order.read) elements *= static_cast<double>(range.extent);
  const double bytes = elements * 2 * bytes_of_element;  // read and written
  const double moved = bytes / (device.memory_bytes_per_us * (permutes ? kPermuted : kStraight));
  return kLaunchUs + std::max(moved, permutes && fills ? elements / kBlock / device.blocks_per_us : 0);
}

/// The choices for the tensor that some operands read.
class TensorChoices {
 public:
  TensorChoices(const ir::Program& program, const ir::Statement& statement, const Contraction& c, std::string tensor)
      : program_(program), statement_(statement), c_(c), tensor_(std::move(tensor)) {
    for (const Operand& operand : c.operands) {
      if (operand.tensor != tensor_) continue;
      operands_.push_back(&operand);
      rounds_ = rounds_ || needs_rounding(c, operand);
    }
  }

  std::vector<Choice> all(const std::vector<OperandOrder>& copies, const Device& device) const {
    std::vector<Choice> result = {{}};
    const Operand& first = *operands_[0];
    const bool by_boxes = has_warpgroups(device);
    if (first.chosen_row || first.computed || first.selected || fits_as_it_is(by_boxes)) return result;
    OperandOrder order{.tensor = tensor_, .read = read(), .rounds = rounds_};
    // A guard that never holds leaves nothing to copy.
    if (std::any_of(order.read.begin(), order.read.end(), [](const ir::Range& r) { return r.extent < 1; }))
      return result;
    const size_t rank = first.extents.size();
    for (size_t last = rank; last-- > 0;) {
      if (!may_be_last(last) || (!by_boxes && !suits_warps(last))) continue;
      order.dimensions.clear();
      for (size_t d = 0; d < rank; ++d) {
        if (d != last) order.dimensions.push_back(d);
      }
      order.dimensions.push_back(last);
      const bool permutes = last + 1 != rank;
      order.alongside.clear();
      order.stored = !rounds_ && permutes && first.extents[last] % elements_of_vector(first.type) == 0 &&
                     may_be_stored(program_, statement_, tensor_, order.alongside);
      order.row = order.stored ? first.extents[last] : row_of(order.read[last].extent, first.type, permutes);
      const int64_t pitch = rank > 1 ? first.pitch() : first.extents[last];
      if (!rounds_ && !permutes && !first.at_any_address && order.row == pitch && order.read[last].begin == 0) continue;
      const bool is_there = std::find(copies.begin(), copies.end(), order) != copies.end();
      const bool fills = order.row != first.extents[last], is_free = order.stored || is_there;
      result.push_back({order, is_free ? 0 : copy_us(order, first.type.bytes(), permutes, fills, device)});
    }
    return result;
  }

 private:
  /// Rows along one axis, of whole lines as a box has them, or of whole vectors.
  bool fits_as_it_is(bool by_boxes) const {
    return !rounds_ && std::all_of(operands_.begin(), operands_.end(), [&](const Operand* o) {
      const int64_t vector = elements_of_vector(o->type);
      const ir::Range range = range_read(c_, *o, o->subscripts.size() - 1);
      return may_be_last(o->subscripts.size() - 1) && (by_boxes ? lies_in_lines(*o) : o->row_divisor() % vector == 0) &&
             range.begin % vector == 0;
    });
  }

  /// Whether warps load rows of a dimension as matrices: it is long enough for one of their rows. What is transposed
  /// runs along the reduction, as rows of both operands then do.
  bool suits_warps(size_t dimension) const {
    const bool permutes = dimension + 1 != operands_[0]->extents.size();
    return std::all_of(operands_.begin(), operands_.end(), [&](const Operand* o) {
      return range_read(c_, *o, dimension).extent >= elements_of_vector(o->type) &&
             counts_one(o->subscripts[dimension], permutes);
    });
  }

  bool may_be_last(size_t dimension) const {
    return std::all_of(operands_.begin(), operands_.end(), [&](const Operand* o) {
      return counts_one(o->subscripts[dimension], runs_along_reduction(o->type));
    });
  }

  /// What all operands together read, within the tensor.
  std::vector<ir::Range> read() const {
    std::vector<ir::Range> result;
    for (size_t d = 0; d < operands_[0]->extents.size(); ++d) {
      int64_t begin = operands_[0]->extents[d], end = 0;
      for (const Operand* o : operands_) {
        const ir::Range range = range_read(c_, *o, d);
        begin = std::min(begin, range.begin);
        end = std::max(end, range.begin + range.extent);
      }
      begin = std::max<int64_t>(begin, 0);
      result.push_back({begin, std::min(end, operands_[0]->extents[d]) - begin});
    }
    return result;
  }

  const ir::Program& program_;
  const ir::Statement& statement_;
  const Contraction& c_;
  std::string tensor_;
  std::vector<const Operand*> operands_;
  bool rounds_ = false;  ///< a copy rounds to TF32
};

/// The plan of a product whose operands have other orders: by warpgroups, or where the device has none, by warps.
Result<ContractionPlan> plan_ordered(const Contraction& c, const options::MappingOptions& options, const Device& device,
                                     double most_cycles = kNoLimit) {
  return has_warpgroups(device) ? plan_warpgroups(c, options, device, most_cycles)
                                : plan_atoms(c, options, device, most_cycles);
}

/// A product with some of its operands in other orders.
struct Best {
  double us = 0, copies_us = 0;
  std::vector<OperandOrder> orders;
  Contraction contraction;
};

/// The one of least time, if that is less than `most_us`.
std::optional<Best> best_of(const Contraction& c, const std::vector<std::vector<Choice>>& choices,
                            const options::MappingOptions& options, const Device& device, double most_us) {
  std::optional<Best> best;
  std::vector<size_t> at(choices.size(), 0);
  const auto next = [&] {
    size_t i = 0;
    while (i < at.size() && ++at[i] == choices[i].size()) at[i++] = 0;
    return i < at.size();
  };
  while (next()) {
    Best candidate{.contraction = c};
    for (size_t i = 0; i < choices.size(); ++i) {
      const Choice& choice = choices[i][at[i]];
      if (!choice.order) continue;
      for (Operand& operand : candidate.contraction.operands) {
        if (operand.tensor == choice.order->tensor) operand = in_order(operand, *choice.order);
      }
      candidate.copies_us += choice.us;
      candidate.orders.push_back(*choice.order);
    }
    if (candidate.copies_us >= most_us) continue;
    const double most = most_us < kNoLimit ? cycles_within(most_us - candidate.copies_us, device) : kNoLimit;
    const Result<ContractionPlan> plan = plan_ordered(candidate.contraction, options, device, most);
    if (!plan) continue;
    candidate.us = candidate.copies_us + plan->cycles / (1e3 * device.gigahertz);
    if (candidate.us >= most_us) continue;
    most_us = candidate.us;
    best = std::move(candidate);
  }
  return best;
}

/// The orders that choose_orders() finds, with their time; nothing: it is best as it is.
std::optional<Best> best_orders(const ir::Program& program, const ir::Statement& statement, const Contraction& c,
                                const std::vector<OperandOrder>& copies, const options::MappingOptions& options,
                                const Device& device) {
  constexpr double kWorthIt = 0.97;  // of what estimates tell apart: 100 odd products choose best by 0.95 to 1
  std::vector<std::vector<Choice>> choices;
  std::vector<std::string> tensors;
  for (const Operand& operand : c.operands) {
    if (std::find(tensors.begin(), tensors.end(), operand.tensor) != tensors.end()) continue;
    tensors.push_back(operand.tensor);
    choices.push_back(TensorChoices(program, statement, c, operand.tensor).all(copies, device));
  }
  if (std::all_of(choices.begin(), choices.end(), [](const auto& of) { return of.size() == 1; })) return std::nullopt;
  const bool is_asked_for = options.copy_operands.value_or(false);
  double most_us = kNoLimit;
  if (!is_asked_for) {
    const Result<ContractionPlan> in_place = plan_ordered(c, options, device);
    if (in_place) most_us = kWorthIt * in_place->cycles / (1e3 * device.gigahertz);
  }
  std::optional<Best> best = best_of(c, choices, options, device, most_us);
  if (is_asked_for && !best && has_warpgroups(device)) {
    // The tiles that are asked for may be those of warps.
    Device by_warps = device;
    by_warps.warpgroup_products = 0;
    return best_orders(program, statement, c, copies, options, by_warps);
  }
  if (!best || is_asked_for) return best;
  const double enough = kWorthIt * least_us(program, statement, c, options, device, best->us / kWorthIt);
  // In their new order they may suit other plans even better.
  if (best->us >= enough) {
    const double left = enough - best->copies_us;
    best->us = best->copies_us + least_us(program, statement, best->contraction, options, device, left);
  }
  return best->us < enough ? best : std::nullopt;
}

bool may_be_ordered(const ir::Program& program, const ir::Statement& statement, const options::MappingOptions& options,
                    const Device& device) {
  const bool forced = options.copy_operands.value_or(false);
  return takes_contractions(options) && options.copy_operands.value_or(true) &&
         (has_warpgroups(device) || device.tensor_products > 0) &&
         may_be_multiplied(program, statement, options.tf32) && (forced || options.split_reduction.value_or(1) == 1);
}

}  // namespace

std::vector<OperandOrder> choose_orders(const ir::Program& program, const ir::Statement& statement,
                                        const std::vector<OperandOrder>& copies, const options::MappingOptions& options,
                                        const Device& device) {
  if (!may_be_ordered(program, statement, options, device)) return {};
  const std::optional<Contraction> c = contraction_of(program, statement);
  std::optional<Best> best = c ? best_orders(program, statement, *c, copies, options, device) : std::nullopt;
  return best ? std::move(best->orders) : std::vector<OperandOrder>();
}

std::optional<double> ordered_us(const ir::Program& program, const ir::Statement& statement,
                                 const options::MappingOptions& options, const Device& device) {
  const std::optional<Contraction> c = contraction_of(program, statement);
  if (!c) return std::nullopt;
  const double as_it_is = least_us(program, statement, *c, options, device);
  if (!may_be_ordered(program, statement, options, device)) return as_it_is;
  const std::optional<Best> best = best_orders(program, statement, *c, {}, options, device);
  return best ? std::min(best->us, as_it_is) : as_it_is;
}

}  // namespace tc::gpu
