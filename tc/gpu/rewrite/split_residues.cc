#include "tc/gpu/rewrite/split_residues.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/choice.h"
#include "tc/ir/factors.h"
#include "tc/ir/guard_factors.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/in_place.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/names.h"
#include "tc/ir/reads.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kMostDivisor = 8;
constexpr size_t kMostParts = 16;

int64_t floor_mod(int64_t a, int64_t b) { return ((a % b) + b) % b; }

/// The divisors of sums that have an index with the coefficient 1 or -1, of each index.
class Divisors : public hi::IRVisitor {
 public:
  std::map<std::string, int64_t> of;

 private:
  using IRVisitor::visit;
  void visit(const hi::Div* op) override { look(op); }
  void visit(const hi::Mod* op) override { look(op); }
  template <typename Division>
  void look(const Division* op) {
    IRVisitor::visit(op);
    const std::optional<ir::LinearForm> form = ir::linear_form(op->a);
    const int64_t* divisor = ir::constant_int(op->b);
    if (!form || divisor == nullptr || *divisor < 2 || *divisor > kMostDivisor) return;
    for (const auto& [name, coefficient] : form->coefficients) {
      if (coefficient == 1 || coefficient == -1) of[name] = std::max(of[name], *divisor);
    }
  }
};

/// Choices between something and zero by conditions that divide indices.
class DividedMasks : public hi::IRVisitor {
 public:
  bool found = false;

 private:
  using IRVisitor::visit;
  void visit(const hi::Select* op) override {
    look(op);
    IRVisitor::visit(op);
  }
  void visit(const hi::Call* op) override {
    look(op);
    IRVisitor::visit(op);
  }
  void look(const Expr& e) {
    const std::optional<ir::Choice> choice = ir::choice_of(e);
    if (!choice || !hi::is_const_zero(hi::simplify(choice->no))) return;
    Divisors divisors;
    choice->condition.accept(&divisors);
    found = found || !divisors.of.empty();
  }
};

/// index = stride * index + residue.
struct Residue {
  std::string index;
  int64_t stride = 1, residue = 0;
};

/// A statement's instances of which an index has a residue; none if there is none. The index counts them.
std::optional<ir::Statement> with_residue(ir::Statement s, const Residue& at) {
  const auto index =
      std::find_if(s.indices.begin(), s.indices.end(), [&](const ir::Index& index) { return index.name == at.index; });
  const int64_t begin = begin_of(*index), end = begin + extent_of(*index);
  const auto turn = [&](int64_t least) {  // the first value of it that is not less
    return (least - at.residue + floor_mod(at.residue - least, at.stride)) / at.stride;
  };
  index->begin = index_constant(turn(begin));
  index->end = index_constant(turn(end));
  if (extent_of(*index) < 1) return std::nullopt;
  const Expr value = index_variable(at.index) * index_constant(at.stride) + index_constant(at.residue);
  ir::transform_expressions(s, [&](const Expr& e) { return ir::substitute_variables(e, {{at.index, value}}); });
  s.accesses.clear();
  s.index_values.clear();
  s.value = simplify_indices(s.value, s.indices);
  for (Expr& subscript : s.subscripts) subscript = simplify_indices(subscript, s.indices);
  return s;
}

Expr without_constants(const Expr& condition) {
  Expr result;
  for (const Expr& part : ir::conjuncts_of(condition)) {
    if (hi::is_const_zero(part)) return hi::const_false();
    if (!hi::is_const_one(part)) result = ir::conjunction(result, part);
  }
  return result.defined() ? result : hi::const_true();
}

std::optional<ir::LinearForm> form_of_difference(const Expr& a, const Expr& b) {
  if (a.type() != ir::index_type()) return std::nullopt;
  const std::optional<ir::LinearForm> x = ir::linear_form(a), y = ir::linear_form(b);
  return x && y ? std::optional(ir::difference(*x, *y)) : std::nullopt;
}

/// What an equation of indices says: it is known, or one reduction index has a residue where it holds.
struct Equation {
  std::optional<bool> is_known = {};
  Residue residue = {};
};

/// Of a remainder, and a known one.
std::optional<Equation> congruence_of(const hi::EQ* op, const ir::Statement& s) {
  const auto* rest = op->a.as<hi::Mod>();
  const int64_t* wanted = ir::constant_int(op->b);
  const int64_t* divisor = rest ? ir::constant_int(rest->b) : nullptr;
  const std::optional<ir::LinearForm> form = rest ? ir::linear_form(rest->a) : std::nullopt;
  if (!form || !divisor || !wanted || *divisor < 2 || *divisor > kMostDivisor) return std::nullopt;
  std::optional<Residue> asked;
  for (const auto& [name, coefficient] : form->coefficients) {
    if (coefficient % *divisor == 0) continue;
    const ir::Index* index = index_named(s, name);
    if (asked || !index || !index->is_reduction || (coefficient != 1 && coefficient != -1)) return std::nullopt;
    asked = Residue{name, *divisor, floor_mod(coefficient * (*wanted - form->constant), *divisor)};
  }
  if (asked) return Equation{.residue = *asked};
  return Equation{.is_known = floor_mod(form->constant, *divisor) == *wanted};
}

/// Of an index and a known value: that is the only one with its remainder by the number of values.
std::optional<Equation> equation_of(const hi::EQ* op, const ir::Statement& s) {
  const std::optional<ir::LinearForm> difference = form_of_difference(op->a, op->b);
  if (!difference) return congruence_of(op, s);
  if (difference->coefficients.size() != 1) return std::nullopt;
  const auto& [name, coefficient] = *difference->coefficients.begin();
  const ir::Index* index = index_named(s, name);
  if (!index || !index->is_reduction || (coefficient != 1 && coefficient != -1)) return std::nullopt;
  const int64_t value = -coefficient * difference->constant, values = extent_of(*index);
  if (value < begin_of(*index) || value >= begin_of(*index) + values) return Equation{.is_known = false};
  if (values == 1) return Equation{.is_known = true};
  return Equation{.residue = {name, values, floor_mod(value, values)}};
}

/// The residue of a reduction index without which a term is zero: a part of the condition under which the term, or one
/// of its factors, is not zero says so. Other equations decide something else.
std::optional<Residue> residue_of_terms(const Expr& value, const ir::Statement& s) {
  for (const Expr& factor : ir::factors_of(value)) {
    const std::optional<ir::Choice> choice = ir::choice_of(factor);
    if (!choice || !hi::is_const_zero(hi::simplify(choice->no))) continue;
    for (const Expr& condition : ir::conjuncts_of(choice->condition)) {
      const auto* equal = condition.as<hi::EQ>();
      const std::optional<Equation> equation = equal ? equation_of(equal, s) : std::nullopt;
      if (equation && !equation->is_known) return equation->residue;
    }
    if (std::optional<Residue> inner = residue_of_terms(choice->yes, s)) return inner;
  }
  return std::nullopt;
}

/// Comparisons of multiples as those of what they are multiples of; those of remainders that are known, and choices by
/// these, as what they are.
class Comparisons : public hi::IRMutator {
 public:
  explicit Comparisons(const ir::Statement& s) : s_(s) {}

 private:
  using IRMutator::visit;
  Expr visit(const hi::And* op) override { return without_constants(IRMutator::visit(op)); }
  Expr visit(const hi::Call* op) override { return chosen(IRMutator::visit(op)); }
  Expr visit(const hi::Select* op) override { return chosen(IRMutator::visit(op)); }
  Expr visit(const hi::GE* op) override { return least(op, op->a, op->b, 0); }
  Expr visit(const hi::GT* op) override { return least(op, op->a, op->b, 1); }
  Expr visit(const hi::LE* op) override { return least(op, op->b, op->a, 0); }
  Expr visit(const hi::LT* op) override { return least(op, op->b, op->a, 1); }

  static Expr chosen(const Expr& e) {
    const std::optional<ir::Choice> choice = ir::choice_of(e);
    if (!choice || !hi::is_const(choice->condition)) return e;
    return hi::is_const_one(choice->condition) ? choice->yes : choice->no;
  }

  /// a - b >= more, divided by the coefficients' common divisor.
  static Expr least(const hi::BaseExprNode* op, const Expr& a, const Expr& b, int64_t more) {
    const std::optional<ir::LinearForm> form = form_of_difference(a, b);
    if (!form) return op;
    int64_t common = 0;
    for (const auto& [name, coefficient] : form->coefficients) common = std::gcd(common, coefficient);
    if (common < 2) return op;
    Expr sum = index_constant(0);
    for (const auto& [name, coefficient] : form->coefficients) {
      sum = sum + index_variable(name) * index_constant(coefficient / common);
    }
    // sum * common >= more - constant
    const int64_t bound = more - form->constant;
    return hi::simplify(sum) >= index_constant((bound + floor_mod(-bound, common)) / common);
  }

  Expr visit(const hi::EQ* op) override {
    if (hi::is_const(op->a) && hi::is_const(op->b)) return hi::simplify(op);
    const std::optional<Equation> equation = equation_of(op, s_);
    return equation && equation->is_known ? hi::make_bool(*equation->is_known) : Expr(op);
  }

  const ir::Statement& s_;
};

/// Statements that set or sum parts of a tensor, and those that read the sums there.
class ResidueSplitter {
 public:
  ResidueSplitter(ir::Program program, const AreProducts& are_products)
      : program_(std::move(program)), are_products_(are_products), names_(ir::Names::among_statements(program_)) {}

  ir::Program run() && {
    for (size_t at = 0; at < program_.statements.size(); ++at) at += split(at);
    return std::move(program_);
  }

 private:
  /// Changes a statement, and returns how many more there are now.
  size_t split(size_t at) {
    const ir::Statement& whole = program_.statements[at];
    const bool sums =
        whole.assign == ir::Assign::kAdd && !whole.guard.defined() && ir::reads_in(program_, whole.value).size() > 1;
    if (!sums || reads_tensor(whole, whole.tensor)) return 0;
    if (!has_hidden_terms(whole) && are_products_(program_, {at})) return 0;
    const size_t before = program_.statements.size();
    std::optional<ir::Program> other = in_parts(at);
    if (!other) other = with_guarded_factors(at);
    if (other) program_ = *std::move(other);
    return program_.statements.size() - before;
  }

  std::optional<ir::Program> with_guarded_factors(size_t at) const {
    std::optional<ir::Statement> guarded = ir::guard_factors(program_, program_.statements[at]);
    if (!guarded) return std::nullopt;
    ir::Program result = program_;
    result.statements[at] = *std::move(guarded);
    return are_products_(result, {at}) ? std::optional(std::move(result)) : std::nullopt;
  }

  std::optional<ir::Program> in_parts(size_t at) {
    const ir::Statement& whole = program_.statements[at];
    const std::vector<Residue> divided = divided_indices(whole);
    if (divided.empty()) return std::nullopt;
    const bool is_last = at + 1 == program_.statements.size();
    const bool is_followed = !is_last && follows(whole, program_.statements[at + 1], divided);
    ir::Program result = program_;
    std::vector<ir::Statement> parts;
    std::vector<size_t> places;
    for (const std::vector<Residue>& residues : all_residues(divided)) {
      std::optional<ir::Statement> part = part_of(whole, residues);
      if (!part) return std::nullopt;
      std::optional<ir::Statement> reader;
      if (is_followed && !(reader = reader_of(result, whole, *part, residues))) return std::nullopt;
      if (!parts.empty()) part->id = names_.fresh(whole.id + "_part");
      if (!parts.empty() && reader) reader->id = names_.fresh(reader->id + "_part");
      if (part->reduces()) places.push_back(at + parts.size());
      parts.push_back(*std::move(part));
      if (reader) parts.push_back(*std::move(reader));
    }
    const auto here = result.statements.begin() + static_cast<long>(at);
    result.statements.insert(result.statements.erase(here, here + (is_followed ? 2 : 1)), parts.begin(), parts.end());
    if (is_followed) {
      result.tensors.erase(std::find_if(result.tensors.begin(), result.tensors.end(),
                                        [&](const ir::Tensor& tensor) { return tensor.name == whole.tensor; }));
    }
    return !places.empty() && are_products_(result, places) ? std::optional(std::move(result)) : std::nullopt;
  }

  /// What follows the sums, of a part. The part's sums get a tensor of their own.
  std::optional<ir::Statement> reader_of(ir::Program& program, const ir::Statement& whole, ir::Statement& part,
                                         const std::vector<Residue>& residues) {
    const auto next = std::find_if(program_.statements.begin(), program_.statements.end(),
                                   [&](const ir::Statement& s) { return s.id == whole.id; }) +
                      1;
    std::optional<ir::Statement> reader = *next;
    ir::Tensor sums = program_.tensor(whole.tensor);
    sums.name = names_.fresh(whole.tensor + "_part");
    std::vector<Expr> at = next->subscripts;
    for (const Residue& r : residues) {
      const size_t d = dimension_of(whole, r.index);
      const std::string index = next->subscripts[d].as<hi::Variable>()->name;
      if (reader) reader = with_residue(*std::move(reader), {index, r.stride, r.residue});
      if (!reader) return std::nullopt;
      const ir::Index& turns = *index_named(part, r.index);
      sums.extents[d] = index_constant(extent_of(turns));
      part.subscripts[d] = subscript_of(turns);
      at[d] = subscript_of(*index_named(*reader, index));
    }
    reader->value =
        with_reads_as(reader->value, whole.tensor, hi::Call::make(sums.type, sums.name, at, hi::Call::PureExtern));
    part.tensor = sums.name;
    program.tensors.push_back(std::move(sums));
    return reader;
  }

  /// The map indices that are divided, of which the left side has each in a dimension of its own.
  static std::vector<Residue> divided_indices(const ir::Statement& s) {
    Divisors divisors;
    s.value.accept(&divisors);
    std::vector<Residue> result;
    size_t parts = 1;
    for (const Expr& subscript : s.subscripts) {
      const auto* variable = subscript.as<hi::Variable>();
      const ir::Index* index = variable ? index_named(s, variable->name) : nullptr;
      if (index == nullptr || index->is_reduction || divisors.of.count(index->name) == 0) continue;
      result.push_back({index->name, divisors.of.at(index->name), 0});
      parts *= static_cast<size_t>(result.back().stride);
      if (parts > kMostParts) return {};
    }
    return result;
  }

  static std::vector<std::vector<Residue>> all_residues(const std::vector<Residue>& divided) {
    std::vector<std::vector<Residue>> result = {{}};
    for (const Residue& index : divided) {
      std::vector<std::vector<Residue>> longer;
      for (const std::vector<Residue>& before : result) {
        for (int64_t r = 0; r < index.stride; ++r) {
          longer.push_back(before);
          longer.back().push_back({index.index, index.stride, r});
        }
      }
      result = std::move(longer);
    }
    return result;
  }

  /// A part, with its guards on factors; nothing if it has no instances.
  std::optional<ir::Statement> part_of(const ir::Statement& whole, const std::vector<Residue>& residues) const {
    std::optional<ir::Statement> part = whole;
    for (const Residue& r : residues) {
      if (part) part = with_residue(*std::move(part), r);
    }
    while (part) {
      Comparisons comparisons(*part);
      part->value = simplify_indices(comparisons.mutate(part->value), part->indices);
      const std::optional<Residue> residue = residue_of_terms(part->value, *part);
      if (!residue) break;
      part = with_residue(*std::move(part), *residue);
    }
    if (!part) return std::nullopt;
    if (has_no_terms(part->value)) return part->initialises ? std::optional(set_to_zero(*part)) : std::nullopt;
    drop_single_values(*part);
    std::optional<ir::Statement> guarded = ir::guard_factors(program_, *part);
    return guarded ? guarded : part;
  }

  static bool has_no_terms(const Expr& value) {
    const std::vector<Expr> factors = ir::factors_of(value);
    return std::any_of(factors.begin(), factors.end(),
                       [](const Expr& e) { return hi::is_const_zero(hi::simplify(e)); });
  }

  static ir::Statement set_to_zero(ir::Statement s) {
    s.value = hi::make_zero(s.value.type());
    s.assign = ir::Assign::kSet;
    s.initialises = false;
    std::erase_if(s.indices, [](const ir::Index& index) { return index.is_reduction; });
    return s;
  }

  /// Reduction indices of one value go, so that conditions and subscripts have the same forms.
  static void drop_single_values(ir::Statement& s) {
    const auto is_single = [](const ir::Index& index) { return index.is_reduction && extent_of(index) == 1; };
    ir::Substitution values;
    for (const ir::Index& index : s.indices) {
      if (is_single(index)) values[index.name] = index.begin;
    }
    s.value = simplify_indices(ir::substitute_variables(s.value, values), s.indices);
    std::erase_if(s.indices, is_single);
  }

  /// Where a left side has an index alone.
  static size_t dimension_of(const ir::Statement& s, const std::string& index) {
    const auto is_it = [&](const Expr& e) { return e.as<hi::Variable>() && e.as<hi::Variable>()->name == index; };
    return static_cast<size_t>(std::find_if(s.subscripts.begin(), s.subscripts.end(), is_it) - s.subscripts.begin());
  }

  /// Whether a statement sets the elements of another tensor from the sums of the same subscripts, in the same ranges
  /// of the indices that are divided, and nobody else reads the sums.
  bool follows(const ir::Statement& sums, const ir::Statement& s, const std::vector<Residue>& divided) const {
    if (s.reduces() || s.guard.defined() || s.subscripts.size() != sums.subscripts.size()) return false;
    if (program_.tensor(sums.tensor).role != ir::Role::kTemporary || !ir::left_is_identity(s)) return false;
    if (reads_tensor(sums, s.tensor)) return false;
    for (const ir::Statement& other : program_.statements) {
      if (&other == &sums || &other == &s) continue;
      if (other.tensor == sums.tensor || reads_tensor(other, sums.tensor)) return false;
    }
    for (const hi::Call* read : ir::reads_in(program_, s.value)) {
      if (read->name != sums.tensor && read->name != s.tensor) continue;
      for (size_t d = 0; d < s.subscripts.size(); ++d) {
        if (!hi::equal(read->args[d], s.subscripts[d])) return false;
      }
    }
    return std::all_of(divided.begin(), divided.end(), [&](const Residue& r) {
      const auto* at = s.subscripts[dimension_of(sums, r.index)].as<hi::Variable>();
      return same_range(*index_named(s, at->name), *index_named(sums, r.index));
    });
  }

  ir::Program program_;
  const AreProducts& are_products_;
  ir::Names names_;
};

}  // namespace

bool has_hidden_terms(const ir::Statement& statement) {
  DividedMasks masks;
  statement.value.accept(&masks);
  return masks.found || ir::choice_of(statement.value).has_value();
}

ir::Program split_residues(ir::Program program, const AreProducts& are_products) {
  return ResidueSplitter(std::move(program), are_products).run();
}

}  // namespace tc::gpu
