#include "tc/ir/plain_choices.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "tc/ir/choice.h"
#include "tc/ir/index_expr.h"
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

/// What a comparison of integers says is at most 0; undefined of other conditions.
Expr at_most_zero(const Expr& e) {
  const auto apart = [](const Expr& a, const Expr& b, int more) {
    return a.type().is_int() ? a - b + hi::make_const(a.type(), more) : Expr();
  };
  if (const auto* op = e.as<hi::LE>()) return apart(op->a, op->b, 0);
  if (const auto* op = e.as<hi::LT>()) return apart(op->a, op->b, 1);
  if (const auto* op = e.as<hi::GE>()) return apart(op->b, op->a, 0);
  if (const auto* op = e.as<hi::GT>()) return apart(op->b, op->a, 1);
  return {};
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
      ranges_.push(index.name, hi::Interval(index.begin, hi::simplify(index.end - 1)));
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
    const Expr always = hi::simplify(choice->condition, true, ranges_);
    if (hi::is_const_one(always)) return choice->yes;
    if (hi::is_const_zero(always) || is_never(choice->condition)) return choice->no;
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

  /// Whether two parts of a condition exclude each other, as n <= m - 17 && n > m - 8.
  bool is_never(const Expr& condition) const {
    std::vector<Expr> parts;
    for (const Expr& part : conjuncts_of(condition)) parts.push_back(at_most_zero(part));
    for (size_t a = 0; a < parts.size(); ++a) {
      for (size_t b = a + 1; b < parts.size(); ++b) {
        if (!parts[a].defined() || !parts[b].defined() || parts[a].type() != parts[b].type()) continue;
        if (hi::is_const_zero(hi::simplify(parts[a] + parts[b] <= 0, true, ranges_))) return true;
      }
    }
    return false;
  }

  const Program& program_;
  hi::Scope<hi::Interval> ranges_;  ///< of the statement's indices
};

}  // namespace

Program plain_choices(Program program) {
  const Program before = program;
  for (Statement& s : program.statements) s.value = PlainChoices(before, s).mutate(s.value);
  return program;
}

}  // namespace tc::ir
