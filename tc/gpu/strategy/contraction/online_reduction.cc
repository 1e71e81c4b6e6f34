#include "tc/gpu/strategy/contraction/online_reduction.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tc/gpu/rewrite/exponential.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/online_presence.h"
#include "tc/gpu/strategy/contraction/tile_reductions.h"
#include "tc/ir/reads.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

Expr converted(const Expr& e, Halide::Type type) { return e.type() == type ? e : hi::Cast::make(type, e); }

/// Replaces reads of some tensors, whatever their subscripts.
class Values : public hi::IRMutator {
 public:
  explicit Values(const std::map<std::string, Expr>& values) : values_(values) {}

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    const auto value = values_.find(op->name);
    return value == values_.end() ? IRMutator::visit(op) : value->second;
  }
  const std::map<std::string, Expr>& values_;
};

/// The statements between two products, and what each has to do with the others.
class Between {
 public:
  Between(const poly::Scop& scop, Contraction product, const Contraction& second)
      : scop_(scop), program_(*scop.program), c_(std::move(product)), second_(second) {}

  std::optional<ReducedProduct> run() {
    if (!find_reductions()) return std::nullopt;
    for (const poly::Statement& point : c_.after) positions_.push_back(number_of(point.id));
    const std::optional<std::set<size_t>> read = reductions_read();
    if (!read || read->size() > 1) return std::nullopt;
    ReducedProduct result;
    if (read->empty()) {
      for (size_t r = 0; r < c_.reductions.size(); ++r) {
        if (!keeps_what_it_reads(r, 0, c_.after.size())) return std::nullopt;
      }
      make_points(0, c_.after.size());
    } else {
      result.online = online(*read->begin());
      if (!result.online) return std::nullopt;
    }
    reductions_ = c_.reductions;
    result.product = std::move(c_);
    return result;
  }

  const Expr& present() const { return present_; }

  /// After run().
  PointValues values() const {
    PointValues result;
    for (const TileReduction& reduction : reductions_) result.reductions.push_back(value_of(reduction.value));
    std::map<std::string, Expr> operands;
    for (const Operand& operand : second_.operands) {
      const auto value = values_.find(operand.tensor);
      if (value == values_.end()) continue;
      operands[operand.placeholder] = value->second;
      result.operand = value->second;
    }
    result.term = hi::substitute(operands, second_.update.value);
    return result;
  }

 private:
  static bool is_same(const Expr& a, const Expr& b) {
    return a.defined() == b.defined() && (!a.defined() || hi::equal(a, b));
  }

  size_t number_of(const std::string& id) const {
    size_t s = c_.first;
    while (scop_.statements[s].id != id) ++s;
    return s;
  }

  /// All statements that are not on points.
  bool find_reductions() {
    for (size_t s = number_of(c_.update.id) + 1; s < c_.last; ++s) {
      const poly::Statement& statement = scop_.statements[s];
      const bool sums = std::count(statement.is_reduction.begin(), statement.is_reduction.end(), true) > 0;
      if (statement.kind != poly::Statement::Kind::kUpdate || !sums) continue;
      std::optional<TileReduction> reduction = reduction_of_points(scop_, c_, s);
      if (!reduction || !reduction->start || statement.accumulator != program_.tensor(statement.tensor).type) {
        return false;
      }
      for (const TileReduction& other : c_.reductions) {
        if (other.statement.tensor == statement.tensor) return false;
      }
      c_.reductions.push_back(*std::move(reduction));
      reduction_positions_.push_back(s);
    }
    return true;
  }

  /// Which of the reductions points or other reductions read; none if some read is of another row.
  std::optional<std::set<size_t>> reductions_read() const {
    std::set<size_t> result;
    std::vector<const Expr*> values;
    for (const poly::Statement& point : c_.after) values.push_back(&point.value);
    for (const TileReduction& reduction : c_.reductions) values.push_back(&reduction.value);
    for (const Expr* value : values) {
      for (const hi::Call* read : ir::reads_in(program_, *value)) {
        for (size_t r = 0; r < c_.reductions.size(); ++r) {
          if (read->name != c_.reductions[r].statement.tensor) continue;
          if (!is_own_row(*read, c_.reductions[r])) return std::nullopt;
          result.insert(r);
        }
      }
    }
    return result;
  }

  /// Whether points read their own row of what is reduced.
  bool is_own_row(const hi::Call& read, const TileReduction& reduction) const {
    std::map<std::string, Expr> axes;
    for (size_t a = 0; a < c_.parallel.size(); ++a) {
      axes[reduction.index[a]] = ir::index_variable(c_.parallel[a].name) - ir::index_constant(reduction.shift[a]);
    }
    const std::vector<Expr>& own = reduction.statement.subscripts;
    for (size_t d = 0; d < own.size(); ++d) {
      const Expr apart = hi::simplify(read.args[d] - hi::substitute(axes, own[d]));
      if (!hi::is_const_zero(apart)) return false;
    }
    return true;
  }

  bool reads(size_t reduction, const std::string& tensor) const {
    return reads_tensor(c_.reductions[reduction].value, tensor);
  }

  /// Whether none of the points [first, last) that come later changes what a reduction reads.
  bool keeps_what_it_reads(size_t reduction, size_t first, size_t last) const {
    for (size_t p = first; p < last; ++p) {
      if (positions_[p] > reduction_positions_[reduction] && reads(reduction, c_.after[p].tensor)) return false;
    }
    return true;
  }

  /// Cuts the points at the reduction that others read.
  std::optional<OnlineReduction> online(size_t number) {
    const TileReduction& extreme = c_.reductions[number];
    const poly::Statement& s = extreme.statement;
    const bool is_extreme = s.assign == ir::Assign::kMax || s.assign == ir::Assign::kMin;
    if (!is_extreme || !s.accumulator.is_float() || s.accumulator.bits() > 32) return std::nullopt;
    OnlineReduction result{.reduction = number};
    while (result.points_before < positions_.size() &&
           positions_[result.points_before] < reduction_positions_[number]) {
      ++result.points_before;
    }
    const size_t cut = result.points_before;
    for (size_t r = 0; r < c_.reductions.size(); ++r) {
      const bool before =
          !reads(r, s.tensor) && (cut == positions_.size() || reduction_positions_[r] < positions_[cut]);
      result.before.push_back(before);
      if (!keeps_what_it_reads(r, before ? 0 : cut, before ? cut : positions_.size())) return std::nullopt;
    }
    if (!result.before[number]) return std::nullopt;
    const std::optional<std::string> kept = kept_tensor(result);
    if (!kept) return std::nullopt;
    result.kept = *kept;
    return find_factor(extreme, result) ? std::optional(std::move(result)) : std::nullopt;
  }

  /// The one tensor of points that is made before the cut and read behind it: then registers hold it where they had the
  /// product's sums.
  std::optional<std::string> kept_tensor(const OnlineReduction& online) const {
    std::set<std::string> made = {c_.update.tensor}, kept, changed;
    for (size_t p = 0; p < online.points_before; ++p) made.insert(c_.after[p].tensor);
    const auto add_reads = [&](const Expr& value) {
      for (const hi::Call* read : ir::reads_in(program_, value)) {
        if (made.count(read->name) > 0 && changed.count(read->name) == 0) kept.insert(read->name);
      }
    };
    for (size_t p = online.points_before; p < c_.after.size(); ++p) {
      add_reads(c_.after[p].value);
      changed.insert(c_.after[p].tensor);
    }
    for (size_t r = 0; r < c_.reductions.size(); ++r) {
      if (!online.before[r]) add_reads(c_.reductions[r].value);
    }
    if (kept.size() != 1 || c_.update.accumulator != Halide::Float(32)) return std::nullopt;
    const Halide::Type type = program_.tensor(*kept.begin()).type;
    return type.is_float() && type.bits() <= 32 ? std::optional(*kept.begin()) : std::nullopt;
  }

  /// A value over the product, and the extreme if that is known.
  Expr value_of(const Expr& value) const { return Values(values_).mutate(value); }

  void make_points(size_t first, size_t last) {
    if (first == 0) values_[c_.update.tensor] = hi::Variable::make(c_.update.accumulator, kProductVariable);
    for (size_t p = first; p < last; ++p) {
      const poly::Statement& point = c_.after[p];
      values_[point.tensor] = converted(value_of(point.value), program_.tensor(point.tensor).type);
    }
  }

  /// Finds out how what reads points depends on the extreme.
  bool find_factor(const TileReduction& extreme, OnlineReduction& online) {
    const poly::Statement& s = extreme.statement;
    make_points(0, online.points_before);
    const Extreme variable{kExtremeVariable, converted(value_of(extreme.value), s.accumulator),
                           s.assign == ir::Assign::kMax};
    values_[s.tensor] = hi::Variable::make(s.accumulator, kExtremeVariable);
    make_points(online.points_before, c_.after.size());
    std::optional<double> factor;
    std::optional<Expr> present;
    // Whether corrections are for what adds up a value; nothing if there are none that would do.
    const auto rescales = [&](const Expr& value, ir::Assign assign) -> std::optional<bool> {
      const std::optional<Exponential> form = exponential_in(value, variable);
      if (!form) return std::nullopt;
      if (form->factor == 0) return false;
      if (assign != ir::Assign::kAdd || factor.value_or(form->factor) != form->factor) return std::nullopt;
      factor = form->factor;
      if (present && !is_same(*present, form->present)) return std::nullopt;
      present = form->present;
      return true;
    };
    for (size_t r = 0; r < c_.reductions.size(); ++r) {
      const TileReduction& reduction = c_.reductions[r];
      std::optional<bool> rescaled = false;
      if (!online.before[r]) rescaled = rescales(value_of(reduction.value), reduction.statement.assign);
      if (!rescaled || (*rescaled && reduction.statement.accumulator != Halide::Float(32))) return false;
      online.rescaled.push_back(*rescaled);
    }
    reductions_ = c_.reductions;
    const std::optional<bool> rescaled = rescales(values().term, second_.update.assign);
    if (!rescaled || !factor || second_.update.accumulator != Halide::Float(32)) return false;
    // Points may be looked at where they are made, and nowhere else.
    if (present->defined() && ir::mentions(*present, kProductVariable)) return false;
    present_ = *present;
    online.rescales_product = *rescaled;
    online.factor = *factor;
    return true;
  }

  const poly::Scop& scop_;
  const ir::Program& program_;
  Contraction c_;
  const Contraction& second_;
  std::vector<size_t> positions_;            ///< per statement on points: its number in the Scop
  std::vector<size_t> reduction_positions_;  ///< per reduction
  std::vector<TileReduction> reductions_;    ///< of c_, which run() gives away
  std::map<std::string, Expr> values_;       ///< of each tensor of points
  Expr present_;
};

}  // namespace

std::optional<ReducedProduct> reduced_product(const poly::Scop& scop, const Contraction& first,
                                              const Contraction& second) {
  std::optional<Contraction> all = contraction_between(scop, first.first, second.first);
  if (!all || all->update.id != first.update.id) return std::nullopt;
  return Between(scop, *std::move(all), second).run();
}

std::optional<PointsBetween> points_between(const poly::Scop& scop, const Contraction& first,
                                            const Contraction& second) {
  std::optional<Contraction> all = contraction_between(scop, first.first, second.first);
  if (!all || all->update.id != first.update.id) return std::nullopt;
  Between between(scop, *std::move(all), second);
  std::optional<ReducedProduct> product = between.run();
  if (!product) return std::nullopt;
  return PointsBetween{*std::move(product), between.values(), between.present()};
}

Expr presence(const poly::Scop& scop, const Contraction& first, const Contraction& second) {
  const std::optional<PointsBetween> points = points_between(scop, first, second);
  return points ? points->present : Expr();
}

}  // namespace tc::gpu
