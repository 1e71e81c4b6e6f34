#include "tc/ir/plain_choices.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/ir/choice.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/reads.h"

namespace tc::ir {
namespace {

using Halide::Expr;
namespace hi = Halide::Internal;

/// Whether it is a number, perhaps converted.
bool is_number(const Expr& e) {
  const auto* cast = e.as<hi::Cast>();
  return hi::is_const(cast ? cast->value : e);
}

/// Whether two numbers are the same, zeros with their signs.
bool same_number(const Expr& a, const Expr& b) {
  const Expr x = hi::simplify(a), y = hi::simplify(b);
  const double *of_x = hi::as_const_float(x), *of_y = hi::as_const_float(y);
  return hi::equal(x, y) && (!of_x || !of_y || std::signbit(*of_x) == std::signbit(*of_y));
}

/// The condition's opposite, without a `!` if it consists of comparisons of integers: floats that are no numbers are
/// neither less nor not less.
Expr opposite(const Expr& e) {
  if (const auto* op = e.as<hi::Not>()) return op->a;
  if (const auto* op = e.as<hi::And>()) return hi::Or::make(opposite(op->a), opposite(op->b));
  if (const auto* op = e.as<hi::Or>()) return hi::And::make(opposite(op->a), opposite(op->b));
  if (const auto* op = e.as<hi::LT>(); op && !op->a.type().is_float()) return hi::GE::make(op->a, op->b);
  if (const auto* op = e.as<hi::LE>(); op && !op->a.type().is_float()) return hi::GT::make(op->a, op->b);
  if (const auto* op = e.as<hi::GT>(); op && !op->a.type().is_float()) return hi::LE::make(op->a, op->b);
  if (const auto* op = e.as<hi::GE>(); op && !op->a.type().is_float()) return hi::LT::make(op->a, op->b);
  if (const auto* op = e.as<hi::EQ>()) return hi::NE::make(op->a, op->b);
  if (const auto* op = e.as<hi::NE>()) return hi::EQ::make(op->a, op->b);
  return hi::Not::make(e);
}

bool is_conjunction_of_comparisons(const Expr& e) {
  const std::vector<Expr> parts = conjuncts_of(e);
  return std::all_of(parts.begin(), parts.end(), [](const Expr& part) {
    return part.as<hi::LT>() || part.as<hi::LE>() || part.as<hi::GT>() || part.as<hi::GE>();
  });
}

/// The value that is converted to a type which holds all its values and back.
Expr without_detour(const hi::Cast* op) {
  const auto* inner = op->value.as<hi::Cast>();
  if (!inner || inner->value.type() != op->type) return {};
  const Halide::Type narrow = op->type, wide = inner->type;
  const bool holds_all = narrow.is_float() && wide.is_float() && narrow.bits() >= 16 && wide.bits() > narrow.bits();
  return holds_all ? inner->value : Expr();
}

class PlainChoices : public hi::IRMutator {
 public:
  PlainChoices(const Program& program, const Statement& statement) : program_(program) {
    for (const Index& index : statement.indices) {
      const int64_t *begin = constant_int(index.begin), *end = constant_int(index.end);
      if (begin && end && *begin < *end) ranges_[index.name] = {*begin, *end - 1};
    }
  }

 private:
  using IRMutator::visit;

  Expr visit(const hi::Select* op) override { return plain(IRMutator::visit(op)); }
  Expr visit(const hi::Call* op) override { return plain(IRMutator::visit(op)); }
  Expr visit(const hi::Not* op) override { return opposite(mutate(op->a)); }

  Expr visit(const hi::Cast* op) override {
    const Expr result = IRMutator::visit(op);
    const auto* cast = result.as<hi::Cast>();
    if (!cast) return result;
    if (const Expr value = without_detour(cast); value.defined()) return value;
    std::optional<Choice> choice = choice_of(cast->value);
    if (!choice || (!is_number(choice->yes) && !is_number(choice->no))) return result;
    const auto* read = (is_number(choice->no) ? choice->yes : choice->no).as<hi::Cast>();
    // Only where it makes a read of what is converted: elsewhere one conversion may do for both.
    if (!read || !without_detour(hi::Cast::make(cast->type, Expr(read)).as<hi::Cast>()).defined()) return result;
    for (Expr* value : {&choice->yes, &choice->no}) {
      *value = is_number(*value) ? hi::simplify(hi::Cast::make(cast->type, *value)) : read->value;
    }
    return make_choice(*choice);
  }

  Expr plain(const Expr& e) const {
    std::optional<Choice> choice = choice_of(e);
    if (!choice) return e;
    // Nobody makes, for a reader, what the reader never chooses.
    const std::optional<bool> decided = decided_by_ranges(choice->condition);
    if (decided) return *decided ? choice->yes : choice->no;
    if (is_number(choice->yes) && !is_number(choice->no)) {
      const Expr condition = opposite(choice->condition);
      if (!is_conjunction_of_comparisons(condition)) return e;
      choice = Choice{condition, choice->no, choice->yes, choice->is_select};
    }
    if (!is_number(choice->no)) return e;
    const std::optional<Choice> inner = choice_of(choice->yes);
    const bool is_same = inner && same_number(inner->no, choice->no) && reads_in(program_, inner->condition).empty();
    if (!is_same) return make_choice(*choice);
    return make_choice({hi::And::make(choice->condition, inner->condition), inner->yes, choice->no,
                        choice->is_select && inner->is_select});
  }

  /// Whether comparisons of indices hold for all of the statement's instances, or for none; nothing: for some, or it is
  /// no such question. Two may exclude each other, as n <= m - 17 && n > m - 8.
  std::optional<bool> decided_by_ranges(const Expr& condition) const {
    bool always = true;
    std::vector<LinearForm> parts;  // that are at most 0
    for (const Expr& part : conjuncts_of(condition)) {
      std::optional<LinearForm> form = at_most_zero(part);
      if (!form) {
        always = false;
        continue;
      }
      always = always && extremes_of(*form)->second <= 0;
      parts.push_back(*std::move(form));
    }
    for (size_t a = 0; a < parts.size(); ++a) {
      if (extremes_of(parts[a])->first > 0) return false;
      for (size_t b = a + 1; b < parts.size(); ++b) {
        const std::optional<Extremes> both = extremes_of(sum_of(parts[a], parts[b]));
        if (both && both->first > 0) return false;
      }
    }
    return always ? std::optional(true) : std::nullopt;
  }

  using Extremes = std::pair<int64_t, int64_t>;  ///< the least and the greatest value

  /// Over the ranges of the statement's indices. Nothing if other variables are in it, or it is too large for an int32.
  std::optional<Extremes> extremes_of(const LinearForm& form) const {
    constexpr int64_t kMost = INT32_MAX;
    Extremes result = {form.constant, form.constant};
    if (std::abs(form.constant) > kMost) return std::nullopt;
    for (const auto& [name, by] : form.coefficients) {
      const auto range = ranges_.find(name);
      if (range == ranges_.end() || std::abs(by) > kMost) return std::nullopt;
      const auto [begin, last] = range->second;
      if (std::abs(begin) > kMost || std::abs(last) > kMost) return std::nullopt;
      result.first += by * (by > 0 ? begin : last);
      result.second += by * (by > 0 ? last : begin);
      if (result.first < -kMost || result.second > kMost) return std::nullopt;
    }
    return result;
  }

  /// What a comparison says is at most 0, of indices whose sums do not wrap.
  std::optional<LinearForm> at_most_zero(const Expr& e) const {
    const auto apart = [&](const Expr& a, const Expr& b, int more) -> std::optional<LinearForm> {
      constexpr int kBits = 32;
      if (!a.type().is_int() || a.type().bits() < kBits) return std::nullopt;
      const std::optional<LinearForm> of_a = linear_form(a), of_b = linear_form(b);
      if (!of_a || !of_b || !extremes_of(*of_a) || !extremes_of(*of_b)) return std::nullopt;
      LinearForm result = difference(*of_a, *of_b);
      result.constant += more;
      return extremes_of(result) ? std::optional(result) : std::nullopt;
    };
    if (const auto* op = e.as<hi::LE>()) return apart(op->a, op->b, 0);
    if (const auto* op = e.as<hi::LT>()) return apart(op->a, op->b, 1);
    if (const auto* op = e.as<hi::GE>()) return apart(op->b, op->a, 0);
    if (const auto* op = e.as<hi::GT>()) return apart(op->b, op->a, 1);
    return std::nullopt;
  }

  static LinearForm sum_of(const LinearForm& a, const LinearForm& b) {
    return difference(a, difference(LinearForm{}, b));
  }

  const Program& program_;
  std::map<std::string, std::pair<int64_t, int64_t>> ranges_;  ///< first and last value of the statement's indices
};

}  // namespace

Program plain_choices(Program program) {
  const Program before = program;
  for (Statement& s : program.statements) s.value = PlainChoices(before, s).mutate(s.value);
  return program;
}

}  // namespace tc::ir
