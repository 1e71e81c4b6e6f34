#include "tc/gpu/rewrite/narrow_products.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "tc/gpu/rewrite/linear_forms.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/rewrite/tf32_parts.h"
#include "tc/ir/guarded_read.h"
#include "tc/ir/in_place.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/names.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"
#include "tc/ir/tf32_values.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// Operands computed over indices may have so many elements more than the tensors that they are made of.
constexpr int64_t kMostGrowth = 2;
/// Sums of more products than this stay as they are.
constexpr size_t kMostTerms = 8;

bool is_narrow(Halide::Type type) { return type.is_float() && type.bits() == 16; }

/// A product: its factors, and among them those that no reduction index changes.
struct Term {
  std::vector<Expr> factors, scales;
  bool negative = false;
};

/// The binary logarithms of the least and the greatest magnitude of finite numbers other than 0.
struct Magnitude {
  double least = 0, greatest = 0;
};

/// Of a float32; nothing if it may be any.
std::optional<Magnitude> magnitude_of(const Expr& e) {
  constexpr int kBitsOfIndex = 32;
  if (const double* constant = hi::as_const_float(e)) {
    if (*constant == 0) return Magnitude{};
    const double log = std::log2(std::fabs(*constant));
    return std::isfinite(log) ? std::optional(Magnitude{log, log}) : std::nullopt;
  }
  if (const auto* quotient = e.as<hi::Div>(); quotient && hi::is_const_one(quotient->a)) {
    const std::optional<Magnitude> by = magnitude_of(quotient->b);
    return by ? std::optional(Magnitude{-by->greatest, -by->least}) : std::nullopt;
  }
  const auto* cast = e.as<hi::Cast>();
  if (!cast) return std::nullopt;
  const Halide::Type from = cast->value.type();
  if (from.is_float()) return from == Halide::Float(16) ? std::optional(Magnitude{-24, 16}) : std::nullopt;
  return from.bits() <= kBitsOfIndex ? std::optional(Magnitude{0, kBitsOfIndex}) : std::nullopt;
}

/// The finite number other than 0 that an expression is; of a root only where it is one of such a number.
std::optional<Expr> number_of(const Expr& e) {
  const Expr simple = hi::simplify(e);
  const double* number = hi::as_const_float(simple);
  if (number) return *number != 0 && std::isfinite(*number) ? std::optional(simple) : std::nullopt;
  const auto* call = simple.as<hi::Call>();
  const bool is_root = call && (call->name == "sqrt" || call->name == "sqrt_f32") && call->args.size() == 1;
  const double* square = is_root ? hi::as_const_float(call->args[0]) : nullptr;
  return square && *square > 0 && std::isfinite(*square) ? std::optional(simple) : std::nullopt;
}

/// The branches of a choice; nothing for other expressions.
struct Choice {
  Expr condition, a, b;
  bool evaluates_both = false;
};
std::optional<Choice> choice_of(const Expr& e) {
  if (const auto* select = e.as<hi::Select>()) {
    return Choice{select->condition, select->true_value, select->false_value, true};
  }
  const auto* call = e.as<hi::Call>();
  if (call && call->is_intrinsic(hi::Call::if_then_else)) return Choice{call->args[0], call->args[1], call->args[2]};
  return std::nullopt;
}

Expr make_choice(const Choice& c) {
  if (c.evaluates_both) return hi::Select::make(c.condition, c.a, c.b);
  return hi::Call::make(c.a.type(), hi::Call::if_then_else, {c.condition, c.a, c.b}, hi::Call::PureIntrinsic);
}

/// The type of 16 bits whose values a float32 has by the text, or float32 itself, if these are TF32's.
std::optional<Halide::Type> narrow_type(const Expr& e) {
  if (ir::tf32_argument(e)) return Halide::Float(32);
  if (const auto* cast = e.as<hi::Cast>(); cast && is_narrow(cast->value.type())) return cast->value.type();
  if (const std::optional<Choice> choice = choice_of(e)) {
    const std::optional<Halide::Type> type = narrow_type(choice->a);
    return type ? type : narrow_type(choice->b);
  }
  return std::nullopt;
}

/// The same value in a type of 16 bits; nothing where the text does not say that the type has it.
std::optional<Expr> narrowed(const Expr& e, Halide::Type type) {
  const bool to_tf32 = type == Halide::Float(32);
  if (to_tf32 && ir::tf32_argument(e)) return e;
  if (const auto* cast = e.as<hi::Cast>()) {
    if (to_tf32)
      return is_narrow(cast->value.type()) || cast->value.type().bits() == 8 ? std::optional(e) : std::nullopt;
    if (cast->value.type() == type) return cast->value;
    // Both types have 8 significant bits, and the exponents of floats of 8 bits.
    if (cast->value.type().bits() == 8) return hi::Cast::make(type, e);
  }
  if (const std::optional<Choice> choice = choice_of(e)) {
    const std::optional<Expr> a = narrowed(choice->a, type), b = narrowed(choice->b, type);
    if (a && b) return make_choice({choice->condition, *a, *b, choice->evaluates_both});
  }
  return hi::is_const_zero(e) ? std::optional(ir::zero_of(type)) : std::nullopt;
}

/// Rewrites one statement.
class Narrower {
 public:
  Narrower(const ir::Program& program, const ir::Statement& statement)
      : program_(program), statement_(statement), names_(ir::Names::among_statements(program)) {}

  /// Nothing where tensor cores cannot take the products, or may take them as they are.
  std::optional<NarrowProducts> run() {
    const bool is_sum = statement_.assign == ir::Assign::kAdd && statement_.accumulator == Halide::Float(32);
    if (!is_sum || statement_.guard.defined() || !ir::left_is_identity(statement_)) return std::nullopt;
    if (reads_tensor(statement_.value, statement_.tensor)) return std::nullopt;
    for (const ir::Index& index : statement_.indices) {
      if (extent_of(index) < 1) return std::nullopt;
    }
    const std::optional<Terms> terms = terms_of(statement_.value);
    if (!terms || terms->size() > kMostTerms) return std::nullopt;
    for (const Term& term : *terms) {
      const std::optional<Expr> value = product_of(term);
      if (value ? !add_product(term, *value) : !add_parts(term)) return std::nullopt;
    }
    finish();
    const std::vector<ir::Statement>& products = result_.products;
    if (products.size() == 1 && hi::equal(products[0].value, statement_.value)) return std::nullopt;
    return std::move(result_);
  }

 private:
  using Terms = std::vector<Term>;

  /// The products whose sum an expression is. A sum is multiplied out by a factor that no reduction index changes.
  std::optional<Terms> terms_of(const Expr& e) const {
    if (const auto* product = e.as<hi::Mul>()) {
      const std::optional<Terms> a = terms_of(product->a), b = terms_of(product->b);
      if (!a || !b) return std::nullopt;
      const auto scales = [](const Terms& terms) { return terms.size() == 1 && terms[0].factors.empty(); };
      if (!scales(*a) && !scales(*b) && a->size() * b->size() > 1) return std::nullopt;
      Terms result;
      for (const Term& x : *a) {
        for (const Term& y : *b) result.push_back(joined(x, y));
      }
      return result;
    }
    if (hi::is_const(e, -1)) return Terms{Term{.negative = true}};
    if (is_scale(e)) return Terms{Term{.scales = {e}}};
    // A quotient by a number is a product with its reciprocal: times() divides by it. Others may be zero, and sums of
    // unlike infinities NaNs.
    if (const auto* quotient = e.as<hi::Div>(); quotient && e.type().is_float()) {
      const std::optional<Expr> number = number_of(quotient->b);
      std::optional<Terms> result = number ? terms_of(quotient->a) : std::nullopt;
      if (!result) return Terms{Term{.factors = {e}}};
      for (Term& term : *result) term.scales.push_back(hi::Div::make(hi::make_one(e.type()), *number));
      return result;
    }
    if (const auto* sum = e.as<hi::Add>()) return sum_of(sum->a, sum->b, false);
    if (const auto* difference = e.as<hi::Sub>()) return sum_of(difference->a, difference->b, true);
    return Terms{Term{.factors = {e}}};
  }

  /// Whether no reduction index changes an expression.
  bool is_scale(const Expr& e) const {
    return std::none_of(statement_.indices.begin(), statement_.indices.end(),
                        [&](const ir::Index& index) { return index.is_reduction && hi::expr_uses_var(e, index.name); });
  }

  static Term joined(Term a, const Term& b) {
    a.factors.insert(a.factors.end(), b.factors.begin(), b.factors.end());
    a.scales.insert(a.scales.end(), b.scales.begin(), b.scales.end());
    a.negative = a.negative != b.negative;
    return a;
  }

  std::optional<Terms> sum_of(const Expr& first, const Expr& second, bool subtracts) const {
    std::optional<Terms> a = terms_of(first), b = terms_of(second);
    if (!a || !b) return std::nullopt;
    for (Term& term : *b) {
      term.negative = term.negative != subtracts;
      a->push_back(std::move(term));
    }
    return a;
  }

  /// A sum of products with one factor after it.
  struct Group {
    Term term;
    std::vector<ir::Statement> products;
  };

  /// Adds a product to the sum of those with the same factors behind it; false where these may not be there.
  bool add_product(const Term& term, const Expr& value) {
    if (!term.scales.empty() && type_of(term) != Halide::Float(16)) return false;
    const auto equal = [](const Expr& a, const Expr& b) { return hi::equal(a, b); };
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) {
      return g.term.negative == term.negative &&
             std::equal(g.term.scales.begin(), g.term.scales.end(), term.scales.begin(), term.scales.end(), equal);
    });
    if (group == groups_.end()) group = groups_.insert(group, Group{term, {}});
    ir::Statement product = statement_;
    product.value = value;
    product.accesses.clear();
    group->products.push_back(std::move(product));
    return true;
  }

  /// Adds a product of three factors, as two of which one factor is a part of two of these. Of the ways to do so that
  /// with the fewest elements is taken.
  bool add_parts(const Term& term) {
    if (!term.scales.empty()) return false;
    const NarrowProducts before = result_;
    const ir::Names names = names_;
    std::optional<NarrowProducts> best;
    std::vector<Expr> products;
    int64_t least = 0;
    for (const Tf32Parts& parts : tf32_parts(term.factors)) {
      result_ = before;
      names_ = names;
      const std::optional<Expr> leading = product_of({.factors = {parts.leading, parts.z}});
      const std::optional<Expr> rest = product_of({.factors = {parts.rest, parts.finite}});
      if (!leading || !rest) continue;
      int64_t elements = 0;
      for (const ir::Tensor& tensor : result_.temporaries) {
        int64_t own = 1;
        for (const int64_t extent : ir::constant_shape(tensor)) own *= extent;
        elements += own;
      }
      if (best && elements >= least) continue;
      best = result_;
      products = {*leading, *rest};
      least = elements;
    }
    result_ = best ? *std::move(best) : before;
    if (products.empty()) return false;
    return add_product({.negative = term.negative}, products[0]) &&
           add_product({.negative = term.negative}, products[1]);
  }

  /// Products without factors behind them add to the statement's tensor, and so do the sums of all others.
  void finish() {
    const auto is_plain = [](const Group& g) { return g.term.scales.empty() && !g.term.negative; };
    std::stable_partition(groups_.begin(), groups_.end(), is_plain);
    const bool adds = is_plain(groups_[0]) || !statement_.initialises;
    Expr value;
    for (Group& group : groups_) {
      if (!is_plain(group)) {
        const Expr sum = scaled_sum(group);
        if (!value.defined()) {
          value = group.term.negative ? ir::zero_of(sum.type()) - sum : sum;
        } else {
          value = group.term.negative ? value - sum : value + sum;
        }
      }
      for (ir::Statement& product : group.products) {
        const bool is_first = &product == &group.products[0];
        if (!is_first) product.initialises = false;
        if (!is_first || !is_plain(group)) product.id = names_.fresh(statement_.id + "_product");
        result_.products.push_back(std::move(product));
      }
    }
    if (value.defined()) result_.results.push_back(result_of(value, adds));
  }

  /// Makes products sum into a temporary, and returns the sum times the factors behind it.
  Expr scaled_sum(Group& group) {
    std::vector<ir::Index> kept;
    std::copy_if(statement_.indices.begin(), statement_.indices.end(), std::back_inserter(kept),
                 [](const ir::Index& index) { return !index.is_reduction; });
    const std::string name = names_.fresh(statement_.tensor + "_products");
    result_.temporaries.push_back(temporary_over(name, statement_.accumulator, kept));
    std::vector<Expr> at;
    for (const ir::Index& index : kept) at.push_back(subscript_of(index));
    for (ir::Statement& product : group.products) {
      product.tensor = name;
      product.initialises = true;
      product.subscripts = at;
    }
    return times(hi::Call::make(statement_.accumulator, name, at, hi::Call::PureExtern), group.term.scales);
  }

  /// In float64 where products of some of the numbers might leave the range of float32, though that of all does not.
  Expr times(Expr sum, std::vector<Expr> scales) const {
    Magnitude magnitude{-48, 32};
    for (const ir::Index& index : statement_.indices) {
      if (index.is_reduction) magnitude.greatest += std::log2(static_cast<double>(extent_of(index)));
    }
    const auto first_of_any =
        std::stable_partition(scales.begin(), scales.end(), [](const Expr& e) { return magnitude_of(e).has_value(); });
    for (auto scale = scales.begin(); scale != first_of_any; ++scale) {
      magnitude.least += magnitude_of(*scale)->least;
      magnitude.greatest += magnitude_of(*scale)->greatest;
      magnitude.least = std::min(magnitude.least, magnitude.greatest);
    }
    const bool fits = magnitude.least >= -126 && magnitude.greatest <= 127 && scales.end() - first_of_any <= 1;
    const Halide::Type type = fits ? sum.type() : Halide::Float(64);
    const auto converted = [](const Expr& e, Halide::Type to) { return e.type() == to ? e : hi::Cast::make(to, e); };
    Expr result = converted(sum, type);
    for (const Expr& scale : scales) {
      const auto* quotient = scale.as<hi::Div>();
      const bool divides = quotient && hi::is_const_one(quotient->a);
      result = divides ? result / converted(quotient->b, type) : converted(scale, type) * result;
    }
    return converted(result, sum.type());
  }

  /// C(m, n) = value, or C(m, n) += value.
  ir::Statement result_of(const Expr& value, bool adds) {
    ir::Statement result = statement_;
    result.id = names_.fresh(statement_.id + "_scaled");
    std::erase_if(result.indices, [](const ir::Index& index) { return index.is_reduction; });
    result.assign = adds ? ir::Assign::kAdd : ir::Assign::kSet;
    result.initialises = false;
    result.value = value;
    result.accesses.clear();
    return result;
  }

  /// TF32 holds floats of 16 bits, too.
  static std::optional<Halide::Type> type_of(const Term& term) {
    std::optional<Halide::Type> result;
    for (const Expr& factor : term.factors) {
      const std::optional<Halide::Type> type = narrow_type(factor);
      if (!result || type == Halide::Float(32)) result = type;
    }
    return result;
  }

  /// The product of two operands that a term is.
  std::optional<Expr> product_of(const Term& term) {
    if (term.factors.size() != 2) return std::nullopt;
    const std::optional<Halide::Type> type = type_of(term);
    if (!type) return std::nullopt;
    std::vector<Expr> operands;
    for (const Expr& factor : term.factors) {
      const std::optional<Expr> value = narrowed(factor, *type);
      const std::optional<Expr> operand = value ? operand_of(*value) : std::nullopt;
      if (!operand) return std::nullopt;
      operands.push_back(*type == statement_.accumulator ? *operand : hi::Cast::make(statement_.accumulator, *operand));
    }
    return hi::Mul::make(operands[0], operands[1]);
  }

  /// A read of what has the value of a factor.
  std::optional<Expr> operand_of(const Expr& value) {
    const Expr* rounded = ir::tf32_argument(value);
    const auto* read = (rounded ? *rounded : value).as<hi::Call>();
    if (read && (ir::is_tensor_read(program_, read) || (rounded && is_read_or_zero(read)))) return value;
    if (std::optional<Choice> choice = choice_of(value)) {
      choice->evaluates_both = false;
      const Expr guarded = make_choice(*choice);
      if (is_read_or_zero(guarded.as<hi::Call>())) return guarded;
    }
    return computed(value);
  }

  /// Whether a call is a read under a guard, and zero elsewhere.
  bool is_read_or_zero(const hi::Call* call) const {
    const std::optional<ir::GuardedRead> found = ir::guarded_read(program_, call);
    return found && hi::is_const_zero(hi::simplify(found->otherwise));
  }

  /// A read of a temporary: over the elements of the tensor that the value reads, over the indices that it uses, or
  /// over the linear forms in it, whichever are fewest.
  std::optional<Expr> computed(const Expr& value) {
    std::optional<Definition> best = over_indices(value), other = over_elements(value);
    if (!best || (other && other->elements <= best->elements)) best = std::move(other);
    std::optional<Definition> of_forms = over_forms(value);
    if (!best || (of_forms && of_forms->elements < best->elements)) best = std::move(of_forms);
    if (!best) return std::nullopt;
    for (const ir::Statement& s : result_.operands) {
      const bool same = s.value.type() == value.type() && hi::equal(s.value, best->statement.value) &&
                        std::equal(s.indices.begin(), s.indices.end(), best->statement.indices.begin(),
                                   best->statement.indices.end(), [](const ir::Index& a, const ir::Index& b) {
                                     return a.name == b.name && extent_of(a) == extent_of(b);
                                   });
      if (same) return hi::Call::make(value.type(), s.tensor, best->at, hi::Call::PureExtern);
    }
    ir::Statement& s = best->statement;
    s.id = names_.fresh(statement_.id + "_operand");
    s.tensor = names_.fresh(statement_.tensor + "_operand");
    s.assign = ir::Assign::kSet;
    s.accumulator = s.value.type();
    s.range = statement_.range;
    for (const ir::Index& index : s.indices) s.subscripts.push_back(subscript_of(index));
    result_.temporaries.push_back(temporary_over(s.tensor, s.accumulator, s.indices));
    const Expr result = hi::Call::make(value.type(), s.tensor, best->at, hi::Call::PureExtern);
    result_.operands.push_back(std::move(s));
    return result;
  }

  /// How a temporary is set, and where it is read.
  struct Definition {
    ir::Statement statement;
    std::vector<Expr> at;
    int64_t elements = 1;
  };

  std::optional<Definition> over_indices(const Expr& value) const {
    Definition result;
    const std::vector<const hi::Call*> reads = ir::reads_in(program_, value);
    const auto add = [&](const ir::Index& index) {
      const auto is_it = [&](const ir::Index& other) { return other.name == index.name; };
      if (std::any_of(result.statement.indices.begin(), result.statement.indices.end(), is_it)) return;
      result.elements *= extent_of(index);
      result.statement.indices.push_back(index);
      result.statement.indices.back().is_reduction = false;
      result.at.push_back(subscript_of(index));
    };
    // In the order of the subscripts of what has most of them, so that rows stay rows.
    std::vector<const hi::Call*> by_rank = reads;
    std::stable_sort(by_rank.begin(), by_rank.end(),
                     [](const hi::Call* a, const hi::Call* b) { return a->args.size() > b->args.size(); });
    for (const hi::Call* read : by_rank) {
      for (const Expr& subscript : read->args) {
        for (const ir::Index& index : statement_.indices) {
          if (hi::expr_uses_var(subscript, index.name)) add(index);
        }
      }
    }
    for (const ir::Index& index : statement_.indices) {
      if (hi::expr_uses_var(value, index.name)) add(index);
    }
    if (result.at.empty() || result.elements > most_elements(reads)) return std::nullopt;
    result.statement.value = value;
    return result;
  }

  /// That a temporary may have which is made of what is read.
  int64_t most_elements(const std::vector<const hi::Call*>& reads) const {
    int64_t most = 1;
    for (const hi::Call* read : reads) {
      int64_t elements = 1;
      for (const int64_t extent : ir::constant_shape(program_.tensor(read->name))) elements *= extent;
      most = std::max(most, elements);
    }
    return kMostGrowth * most;
  }

  /// Of a value that reads no element which data choose.
  std::optional<Definition> over_forms(const Expr& value) {
    const std::vector<const hi::Call*> reads = ir::reads_in(program_, value);
    const bool any_chosen = std::any_of(reads.begin(), reads.end(), [](const hi::Call* read) {
      return std::any_of(read->args.begin(), read->args.end(), ir::is_data_dependent);
    });
    if (any_chosen) return std::nullopt;
    Definition result;
    LinearForms forms(statement_, names_, form_indices_);
    result.statement.value = forms.over_dimensions(value);
    result.statement.indices = forms.indices();
    result.statement.value = within_tensors(
        program_, simplify_indices(result.statement.value, result.statement.indices), result.statement.indices);
    result.at = forms.at();
    result.elements = forms.elements();
    const bool is_small = result.elements <= most_elements(reads);
    return result.at.empty() || !is_small ? std::nullopt : std::optional(std::move(result));
  }

  /// Of a value that reads elements of one tensor at the same subscripts, and uses no index elsewhere.
  std::optional<Definition> over_elements(const Expr& value) {
    const std::vector<const hi::Call*> reads = ir::reads_in(program_, value);
    if (reads.empty() || reads[0]->args.empty()) return std::nullopt;
    const std::vector<Expr>& at = reads[0]->args;
    for (const hi::Call* read : reads) {
      const auto equal = [](const Expr& a, const Expr& b) { return hi::equal(a, b); };
      if (read->name != reads[0]->name || !std::equal(at.begin(), at.end(), read->args.begin(), equal)) {
        return std::nullopt;
      }
    }
    for (const Expr& subscript : at) {
      if (!ir::linear_form(subscript)) return std::nullopt;
    }
    Definition result{.at = at};
    const ir::Shape shape = ir::constant_shape(program_.tensor(reads[0]->name));
    std::vector<Expr> element;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (dimensions_.size() <= d) dimensions_.push_back(names_.fresh(fmt::format("d{}", d)));
      result.statement.indices.push_back(make_index(dimensions_[d], shape[d], false));
      element.push_back(index_variable(dimensions_[d]));
      result.elements *= shape[d];
    }
    const std::string& tensor = reads[0]->name;
    const Expr read = hi::Call::make(reads[0]->type, tensor, element, reads[0]->call_type);
    result.statement.value = with_reads_as(value, tensor, read);
    for (const ir::Index& index : statement_.indices) {
      if (hi::expr_uses_var(result.statement.value, index.name)) return std::nullopt;
    }
    return result;
  }

  const ir::Program& program_;
  const ir::Statement& statement_;
  ir::Names names_;
  std::vector<std::string> dimensions_;    ///< indices of temporaries over the elements of a tensor
  std::vector<std::string> form_indices_;  ///< and over linear forms
  std::vector<Group> groups_;
  NarrowProducts result_;
};

/// Before statements on the same tensor: so what comes before a product stays next to it.
size_t place_of(const ir::Program& program, size_t at, const ir::Statement& operand) {
  const auto is_source = [&](const std::string& tensor) { return reads_tensor(operand.value, tensor); };
  const std::string& tensor = program.statements[at].tensor;
  while (at > 0 && program.statements[at - 1].tensor == tensor && !is_source(tensor)) --at;
  return at;
}

}  // namespace

ir::Program narrow_products(ir::Program program, const IsFaster& is_faster) {
  for (size_t at = 0; at < program.statements.size(); ++at) {
    const ir::Statement statement = program.statements[at];
    std::optional<NarrowProducts> instead = Narrower(program, statement).run();
    if (!instead || !is_faster(program, statement, *instead)) continue;
    program.tensors.insert(program.tensors.end(), instead->temporaries.begin(), instead->temporaries.end());
    std::vector<ir::Statement>& all = program.statements;
    all.erase(all.begin() + static_cast<long>(at));
    all.insert(all.begin() + static_cast<long>(at), instead->results.begin(), instead->results.end());
    all.insert(all.begin() + static_cast<long>(at), instead->products.begin(), instead->products.end());
    size_t first = at;
    at += instead->products.size() + instead->results.size() + instead->operands.size() - 1;
    for (const ir::Statement& operand : instead->operands) {
      const size_t place = place_of(program, first++, operand);
      all.insert(all.begin() + static_cast<long>(place), operand);
    }
  }
  return program;
}

}  // namespace tc::gpu
