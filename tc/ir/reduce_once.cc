#include "tc/ir/reduce_once.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/ir/factors.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/in_place.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/names.h"
#include "tc/ir/reads.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// The terms of a reduction, and the factors of all of them (undefined: none).
struct Terms {
  Expr value;
  Expr factor;
};

/// A dimension of the sums, and where a result's sum lies in it.
struct Dimension {
  Index index;
  Expr place;
};

struct Once {
  Tensor temporary;
  Statement reduction, spread;
};

int64_t saturating_product(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

bool mentions_reduction_index(const Statement& statement, const Expr& e) {
  return std::any_of(statement.indices.begin(), statement.indices.end(),
                     [&](const Index& index) { return index.is_reduction && mentions(e, index.name); });
}

Expr product_of(const Expr& a, const Expr& b) { return a.defined() ? hi::Mul::make(a, b) : b; }

/// Whether a factor may be multiplied after the sum: arithmetic of integers wraps.
bool factors_may_leave(const Statement& statement, const std::vector<Expr>& factors, bool strict) {
  if (statement.assign != Assign::kAdd) return false;
  if (!statement.accumulator.is_float()) return true;
  constexpr size_t kMostFactors = 4;  // 2^64: sums of 2^63 products are finite
  return !strict && factors.size() <= kMostFactors && std::all_of(factors.begin(), factors.end(), is_narrow_factor);
}

Terms terms_of(const Statement& statement, bool strict) {
  const std::vector<Expr> factors = factors_of(statement.value);
  if (!factors_may_leave(statement, factors, strict)) return {statement.value, {}};
  Terms terms;
  for (const Expr& factor : factors) {
    Expr& part = mentions_reduction_index(statement, factor) ? terms.value : terms.factor;
    part = product_of(part, factor);
  }
  return terms.value.defined() ? terms : Terms{statement.value, {}};
}

/// Finds the quotient or remainder by a constant through which alone an expression depends on an index.
class FindDigit : public hi::IRVisitor {
 public:
  explicit FindDigit(const std::string& index) : index_(index) {}
  Expr digit;
  bool is_only = true;

 private:
  using IRVisitor::visit;
  void visit(const hi::Div* op) override { visit_division(op); }
  void visit(const hi::Mod* op) override { visit_division(op); }
  void visit(const hi::Variable* op) override { is_only = is_only && op->name != index_; }

  template <typename Division>
  void visit_division(const Division* op) {
    const auto* variable = op->a.template as<hi::Variable>();
    const int64_t* divisor = constant_int(op->b);
    if (variable == nullptr || variable->name != index_ || divisor == nullptr || *divisor < 1) {
      return IRVisitor::visit(op);
    }
    is_only = is_only && (!digit.defined() || hi::equal(digit, op));
    digit = op;
  }

  const std::string& index_;
};

class ReplaceDigit : public hi::IRMutator {
 public:
  ReplaceDigit(Expr digit, Expr by) : digit_(std::move(digit)), by_(std::move(by)) {}
  using IRMutator::mutate;
  Expr mutate(const Expr& e) override { return hi::equal(e, digit_) ? by_ : IRMutator::mutate(e); }

 private:
  Expr digit_, by_;
};

/// How many values a quotient or remainder of an index that starts at 0 has.
int64_t values_of(const Expr& digit, int64_t extent) {
  if (const auto* quotient = digit.as<hi::Div>()) return (extent - 1) / *constant_int(quotient->b) + 1;
  return std::min(extent, *constant_int(digit.as<hi::Mod>()->b));
}

/// The dimension that an index of results has among the sums, of which the value depends on it; the value over it.
std::optional<Dimension> dimension_of(const Index& index, Names& names, Expr& value) {
  if (!mentions(value, index.name)) return std::nullopt;
  FindDigit find(index.name);
  value.accept(&find);
  const bool starts_at_zero = begin_of(index) == 0;
  if (!find.is_only || !starts_at_zero || values_of(find.digit, extent_of(index)) == extent_of(index)) {
    const Expr variable = index_variable(index.name);
    return Dimension{index, starts_at_zero ? variable : variable - index.begin};
  }
  const Index digit = make_index(names.fresh(index.name + "_once"), values_of(find.digit, extent_of(index)), false);
  value = ReplaceDigit(find.digit, index_variable(digit.name)).mutate(value);
  return Dimension{digit, find.digit};
}

/// Whether the sum of a statement's terms may be computed apart from what its results hold before.
bool can_be_apart(const Program& program, const Statement& s, bool strict) {
  if (!s.reduces() || s.guard.defined() || s.value.type().is_bool()) return false;
  const bool has_instances =
      std::all_of(s.indices.begin(), s.indices.end(), [](const Index& index) { return extent_of(index) > 0; });
  const bool reduces_indices =
      std::any_of(s.indices.begin(), s.indices.end(), [](const Index& index) { return index.is_reduction; });
  if (!has_instances || !reduces_indices) return false;
  const std::vector<const hi::Call*> reads = reads_in(program, s.value);
  if (std::any_of(reads.begin(), reads.end(), [&](const hi::Call* read) { return read->name == s.tensor; })) {
    return false;
  }
  return !strict || !s.accumulator.is_float() || (s.initialises && left_is_identity(s));
}

/// The reduction over the dimensions of the sums.
Statement reduction_over(const Statement& statement, const std::vector<Dimension>& dimensions, const Tensor& temporary,
                         const Expr& value) {
  Statement result = statement;
  result.tensor = temporary.name;
  result.initialises = true;
  result.value = value;
  result.subscripts.clear();
  result.indices.clear();
  result.accesses.clear();
  result.index_values.clear();
  for (const Dimension& dimension : dimensions) {
    const Index& index = dimension.index;
    result.indices.push_back(index);
    const Expr variable = index_variable(index.name);
    result.subscripts.push_back(begin_of(index) == 0 ? variable : variable - index.begin);
  }
  std::copy_if(statement.indices.begin(), statement.indices.end(), std::back_inserter(result.indices),
               [](const Index& index) { return index.is_reduction; });
  return result;
}

/// The statement that gives each result its sum.
Statement spread_over(const Statement& statement, const std::vector<Dimension>& dimensions, const Tensor& temporary,
                      const Expr& factor) {
  Statement result = statement;
  if (statement.initialises && left_is_identity(statement)) {
    result.assign = Assign::kSet;
    result.initialises = false;
  }
  std::erase_if(result.indices, [](const Index& index) { return index.is_reduction; });
  std::vector<Expr> places;
  for (const Dimension& dimension : dimensions) places.push_back(dimension.place);
  const Expr sum = hi::Call::make(temporary.type, temporary.name, places, hi::Call::PureExtern);
  result.value = product_of(factor, sum);
  result.accesses.clear();
  result.index_values.clear();
  return result;
}

std::optional<Once> computed_once(const Program& program, const Statement& statement,
                                  const ReduceOnceOptions& options) {
  const bool stays = options.kept.count(statement.tensor) > 0;
  if (stays || !can_be_apart(program, statement, options.strict)) return std::nullopt;
  Names names = Names::among_statements(program);
  auto [value, factor] = terms_of(statement, options.strict);
  std::vector<Dimension> dimensions;
  int64_t results = 1, sums = 1, terms = 1;
  for (const Index& index : statement.indices) {
    (index.is_reduction ? terms : results) = saturating_product(index.is_reduction ? terms : results, extent_of(index));
    if (index.is_reduction) continue;
    const std::optional<Dimension> dimension = dimension_of(index, names, value);
    if (!dimension) continue;
    sums = saturating_product(sums, extent_of(dimension->index));
    dimensions.push_back(*dimension);
  }
  if (terms == 1 || results == sums || saturating_product(results - sums, terms) < options.least_instances) {
    return std::nullopt;
  }
  Tensor temporary;
  temporary.name = names.fresh(statement.tensor + "_once");
  temporary.type = statement.accumulator;
  temporary.role = Role::kTemporary;
  for (const Dimension& d : dimensions) temporary.extents.push_back(index_constant(extent_of(d.index)));
  Once result{temporary, reduction_over(statement, dimensions, temporary, value),
              spread_over(statement, dimensions, temporary, factor)};
  result.reduction.id = names.fresh(statement.id + "_once");
  return result;
}

}  // namespace

Program reduce_once(Program program, const ReduceOnceOptions& options) {
  for (size_t at = 0; at < program.statements.size(); ++at) {
    std::optional<Once> once = computed_once(program, program.statements[at], options);
    if (!once) continue;
    program.tensors.push_back(std::move(once->temporary));
    program.statements[at] = std::move(once->spread);
    program.statements.insert(program.statements.begin() + static_cast<long>(at), std::move(once->reduction));
    ++at;
  }
  return program;
}

}  // namespace tc::ir
