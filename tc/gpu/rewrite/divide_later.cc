#include "tc/gpu/rewrite/divide_later.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tc/gpu/rewrite/exponential.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/in_place.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/names.h"
#include "tc/ir/reads.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// The only statement that writes a tensor; nothing if there are several.
std::optional<size_t> writer_of(const ir::Program& program, const std::string& tensor) {
  std::optional<size_t> result;
  for (size_t s = 0; s < program.statements.size(); ++s) {
    if (program.statements[s].tensor != tensor) continue;
    if (result) return std::nullopt;
    result = s;
  }
  return result;
}

bool is_16_bit_float(Halide::Type type) { return type.is_float() && type.bits() == 16; }

Expr converted(const Expr& e, Halide::Type to) { return e.type() == to ? e : hi::Cast::make(to, e); }

/// A quotient of an operand: the element that stays, and the sum of all such elements of a row.
struct Quotient {
  Expr element;
  Expr sum;                    ///< a read
  bool is_reciprocal = false;  ///< the text multiplies by 1 / sum
};

class Divider {
 public:
  explicit Divider(ir::Program program) : program_(std::move(program)) {}

  ir::Program run() && {
    for (size_t at = 0; at < program_.statements.size(); ++at) {
      const size_t before = program_.statements.size();
      if (divide(at)) at += program_.statements.size() - before;
    }
    return std::move(program_);
  }

 private:
  /// Changes a product and its operand, and puts a statement behind it.
  bool divide(size_t at) {
    const ir::Statement& product = program_.statements[at];
    const bool is_sum = product.assign == ir::Assign::kAdd && product.reduces() && product.initialises &&
                        product.accumulator == Halide::Float(32) && !product.guard.defined();
    const bool is_empty = std::any_of(product.indices.begin(), product.indices.end(),
                                      [](const ir::Index& index) { return extent_of(index) < 1; });
    if (!is_sum || is_empty || !ir::left_is_identity(product)) return false;
    for (const hi::Call* read : ir::reads_in(program_, product.value)) {
      const std::optional<size_t> operand = writer_of(program_, read->name);
      if (!operand || *operand >= at || !is_operand(*operand, at)) continue;
      if (ir::reads_in(program_, product.value).size() != 2) return false;
      const auto* factors = product.value.as<hi::Mul>();
      if (!factors || !is_factor(factors->a, read->name, factors->b)) return false;
      ir::Statement& definition = program_.statements[*operand];
      const auto* cast = definition.value.as<hi::Cast>();
      const bool is_narrow = is_16_bit_float(definition.value.type());
      const Expr value = !is_narrow ? definition.value : cast ? cast->value : Expr();
      const std::optional<Quotient> quotient = value.defined() ? quotient_of(value, *operand) : std::nullopt;
      if (!quotient) return false;
      ir::Substitution names;
      for (size_t d = 0; d < definition.subscripts.size(); ++d) {
        names[definition.subscripts[d].as<hi::Variable>()->name] = read->args[d];
      }
      const Expr divisor = ir::substitute_variables(quotient->sum, names);
      if (uses_reduction(product, divisor) || is_changed(divisor, *operand, at)) return false;
      definition.value = converted(quotient->element, definition.value.type());
      definition.accesses.clear();
      program_.statements.insert(program_.statements.begin() + static_cast<long>(at) + 1,
                                 result_of(product, divisor, quotient->is_reciprocal));
      share(*operand, *quotient);
      return true;
    }
    return false;
  }

  /// Computes the operand's element once, if the sum has it in full too.
  void share(size_t operand, const Quotient& quotient) {
    if (!is_power(*quotient.element.as<hi::Call>())) return;
    const auto* read = quotient.sum.as<hi::Call>();
    const size_t writer = *writer_of(program_, read->name);
    ir::Names fresh = ir::Names::among_statements(program_);
    ir::Statement& definition = program_.statements[operand];
    ir::Statement element = definition;
    ir::Tensor tensor = program_.tensor(element.tensor);
    tensor.name = fresh.fresh(element.tensor + "_element");
    tensor.type = element.accumulator = quotient.element.type();
    element.id = fresh.fresh(element.id + "_element");
    element.tensor = tensor.name;
    element.value = quotient.element;
    const Expr here = hi::Call::make(tensor.type, tensor.name, element.subscripts, hi::Call::PureExtern);
    definition.value = converted(here, definition.value.type());
    ir::Statement& sum = program_.statements[writer];
    ir::Substitution back;
    const ir::Substitution names = *in_terms_of(sum, *read, element);
    for (const auto& [own, other] : names) {
      back[other.as<hi::Variable>()->name] = index_variable(own);
    }
    sum.value = ir::substitute_variables(here, back);
    sum.accesses.clear();
    program_.tensors.push_back(std::move(tensor));
    program_.statements.insert(program_.statements.begin() + static_cast<long>(writer), std::move(element));
  }

  /// The indices of a reduction in terms of those of a statement that reads its element: those that it sums over are
  /// the ones that the element does not have.
  static std::optional<ir::Substitution> in_terms_of(const ir::Statement& reduction, const hi::Call& element,
                                                     const ir::Statement& reader) {
    if (!reduction.initialises || reduction.guard.defined() || !ir::left_is_identity(reduction)) return std::nullopt;
    ir::Substitution names;
    std::set<std::string> kept;
    for (size_t d = 0; d < reduction.subscripts.size(); ++d) {
      const auto* variable = element.args[d].as<hi::Variable>();
      if (!variable || !kept.insert(variable->name).second) return std::nullopt;
      const std::string& name = reduction.subscripts[d].as<hi::Variable>()->name;
      const ir::Index* here = index_named(reader, variable->name);
      if (!here || !same_range(*here, *index_named(reduction, name))) return std::nullopt;
      names[name] = element.args[d];
    }
    std::vector<const ir::Index*> own, summed;
    for (const ir::Index& index : reader.indices) {
      if (kept.count(index.name) == 0) own.push_back(&index);
    }
    for (const ir::Index& index : reduction.indices) {
      if (index.is_reduction) summed.push_back(&index);
    }
    if (own.size() != summed.size()) return std::nullopt;
    for (size_t i = 0; i < own.size(); ++i) {
      if (!same_range(*own[i], *summed[i])) return std::nullopt;
      names[summed[i]->name] = index_variable(own[i]->name);
    }
    return names;
  }

  /// Whether a statement sets all of a temporary that the product alone reads, as a number of 16 bits.
  bool is_operand(size_t operand, size_t product) const {
    const ir::Statement& s = program_.statements[operand];
    const ir::Tensor& tensor = program_.tensor(s.tensor);
    if (s.assign != ir::Assign::kSet || s.guard.defined() || !ir::left_is_identity(s)) return false;
    if (tensor.role != ir::Role::kTemporary) return false;
    if (!is_16_bit_float(tensor.type) && !is_read_narrow(program_.statements[product].value, s.tensor)) return false;
    for (size_t i = 0; i < program_.statements.size(); ++i) {
      if (i != product && reads_tensor(program_.statements[i], s.tensor)) return false;
    }
    return true;
  }

  /// A read of the tensor, perhaps converted; null of anything else.
  static const hi::Call* element_in(Expr e, const std::string& tensor) {
    while (const auto* cast = e.as<hi::Cast>()) e = cast->value;
    const auto* call = e.as<hi::Call>();
    return call && call->name == tensor ? call : nullptr;
  }

  /// Whether one of two factors is an element of the tensor, perhaps converted, and the other has none.
  static bool is_factor(const Expr& a, const std::string& tensor, const Expr& b) {
    return (element_in(a, tensor) == nullptr) != (element_in(b, tensor) == nullptr);
  }

  /// Whether a product takes an element as a number of 16 bits: float32(float16(P(n,m))).
  static bool is_read_narrow(const Expr& product, const std::string& tensor) {
    const auto* factors = product.as<hi::Mul>();
    if (!factors) return false;
    const Expr& factor = element_in(factors->a, tensor) ? factors->a : factors->b;
    const auto* wide = factor.as<hi::Cast>();
    const auto* narrow = wide ? wide->value.as<hi::Cast>() : nullptr;
    return narrow && is_16_bit_float(narrow->type) && element_in(narrow->value, tensor);
  }

  /// A number of at most 1 by the sum of all such numbers, which is at least 1.
  std::optional<Quotient> quotient_of(const Expr& value, size_t at) const {
    if (const auto* quotient = value.as<hi::Div>()) {
      const Quotient result = {quotient->a, quotient->b};
      return is_part_of_sum(result, at) ? std::optional(result) : std::nullopt;
    }
    const auto* product = value.as<hi::Mul>();
    if (!product) return std::nullopt;
    for (const auto& [element, factor] : {std::pair(product->a, product->b), std::pair(product->b, product->a)}) {
      const Quotient result = {element, reciprocal_of(factor, at), true};
      if (result.sum.defined() && is_part_of_sum(result, at)) return result;
    }
    return std::nullopt;
  }

  /// What a factor of the statement `at` is 1 by, or an element of a temporary that is set so; undefined: it is nothing
  /// such.
  Expr reciprocal_of(const Expr& factor, size_t at) const {
    if (const auto* quotient = factor.as<hi::Div>()) return hi::is_const_one(quotient->a) ? quotient->b : Expr();
    const auto* read = factor.as<hi::Call>();
    if (!read || !ir::is_tensor_read(program_, read)) return {};
    const std::optional<size_t> definition = writer_of(program_, read->name);
    if (!definition || *definition >= at) return {};
    const ir::Statement& s = program_.statements[*definition];
    if (s.assign != ir::Assign::kSet || s.guard.defined() || !ir::left_is_identity(s)) return {};
    if (!has_same_ranges(s, *read, program_.statements[at])) return {};
    const Expr sum = reciprocal_of(s.value, *definition);
    if (!sum.defined() || is_changed(sum, *definition, at)) return {};
    ir::Substitution names;
    for (size_t d = 0; d < s.subscripts.size(); ++d) names[s.subscripts[d].as<hi::Variable>()->name] = read->args[d];
    return ir::substitute_variables(sum, names);
  }

  /// Whether the element is at most 1, and one of those in the sum.
  bool is_part_of_sum(const Quotient& quotient, size_t at) const {
    const auto* sum = quotient.sum.as<hi::Call>();
    if (!sum || !ir::is_tensor_read(program_, sum) || !is_at_most_one(quotient.element, at)) return false;
    const std::optional<size_t> writer = writer_of(program_, sum->name);
    if (!writer || *writer >= at || is_changed(quotient.element, *writer, at)) return false;
    const ir::Statement& s = program_.statements[*writer];
    const std::optional<ir::Substitution> names = in_terms_of(s, *sum, program_.statements[at]);
    if (s.assign != ir::Assign::kAdd || s.accumulator != quotient.element.type() || !names) return false;
    const Expr summed = ir::substitute_variables(s.value, *names);
    return hi::equal(hi::simplify(summed), hi::simplify(quotient.element));
  }

  /// Whether a value of the statement `at` is the exponential of a number less the maximum of such numbers, or of a
  /// multiple of that.
  bool is_at_most_one(const Expr& value, size_t at) const {
    const auto* call = value.as<hi::Call>();
    if (!call) return false;
    if (ir::is_tensor_read(program_, call)) {  // of a temporary that is one
      const std::optional<size_t> definition = writer_of(program_, call->name);
      if (!definition || *definition >= at) return false;
      const ir::Statement& s = program_.statements[*definition];
      const bool sets = s.assign == ir::Assign::kSet && !s.guard.defined() && ir::left_is_identity(s);
      return sets && has_same_ranges(s, *call, program_.statements[at]) && is_at_most_one(s.value, *definition);
    }
    if (!is_power(*call)) return false;
    for (const hi::Call* read : ir::reads_in(program_, call->args[0])) {
      if (is_one_at_most(*call, *read, at)) return true;
    }
    return false;
  }

  static bool is_power(const hi::Call& call) {
    return call.name == "exp" || call.name == "exp2" || call.name == "exp10";
  }

  /// Whether a power is 1 where an extreme in its exponent is the number itself, and less elsewhere:
  /// exp(c * (S(n,m) - top(n))). The difference comes first: that of two rounded products may be far from 0.
  bool is_one_at_most(const hi::Call& power, const hi::Call& extreme, size_t at) const {
    const std::optional<Extreme> known = extreme_of(extreme, at);
    if (!known || !is_multiple_of_difference(power.args[0], extreme)) return false;
    const Expr read = &extreme, value = &power;
    const Expr variable = hi::Variable::make(extreme.type, known->variable);
    const std::optional<Exponential> form = exponential_in(hi::simplify(hi::substitute(read, variable, value)), *known);
    return form && form->factor != 0 && form->most == 1 && !form->present.defined();
  }

  /// Whether a reader looks at all that a definition sets, element by element: else the largest might be left out.
  static bool has_same_ranges(const ir::Statement& definition, const hi::Call& read, const ir::Statement& reader) {
    for (size_t d = 0; d < definition.subscripts.size(); ++d) {
      const auto* variable = read.args[d].as<hi::Variable>();
      const ir::Index* here = variable ? index_named(reader, variable->name) : nullptr;
      const std::string& name = definition.subscripts[d].as<hi::Variable>()->name;
      if (!here || !same_range(*here, *index_named(definition, name))) return false;
    }
    return true;
  }

  /// Whether a value is a difference of an element and another, perhaps by a number.
  static bool is_multiple_of_difference(const Expr& e, const hi::Call& element) {
    if (const auto* times = e.as<hi::Mul>()) {
      if (constant_number(times->a)) return is_multiple_of_difference(times->b, element);
      return constant_number(times->b).has_value() && is_multiple_of_difference(times->a, element);
    }
    if (const auto* over = e.as<hi::Div>()) {
      return constant_number(over->b).has_value() && is_multiple_of_difference(over->a, element);
    }
    const auto* difference = e.as<hi::Sub>();
    if (!difference) return false;
    const Expr a = without_casts(difference->a), b = without_casts(difference->b);
    return (hi::equal(a, &element) && is_rounded_alone(b)) || (hi::equal(b, &element) && is_rounded_alone(a));
  }

  static Expr without_casts(Expr e) {
    while (const auto* cast = e.as<hi::Cast>()) e = cast->value;
    return e;
  }

  /// Whether a value is the same number wherever it is computed: no product in it is rounded with what it is added to.
  static bool is_rounded_alone(const Expr& e) {
    class Products : public hi::IRVisitor {
     public:
      bool found = false;

     private:
      using IRVisitor::visit;
      void visit(const hi::Mul* op) override {
        found = found || (op->type.is_float() && !is_power_of_two(op->a) && !is_power_of_two(op->b));
        IRVisitor::visit(op);
      }
      static bool is_power_of_two(const Expr& by) {
        const std::optional<double> number = constant_number(by);
        int exponent = 0;
        return number && std::frexp(std::abs(*number), &exponent) == 0.5;
      }
    } products;
    e.accept(&products);
    return !products.found;
  }

  /// What an element is the maximum, or minimum, of over all those indices of the statement `at` that it does not have.
  std::optional<Extreme> extreme_of(const hi::Call& element, size_t at) const {
    const std::optional<size_t> writer = writer_of(program_, element.name);
    if (!writer || *writer >= at) return std::nullopt;
    const ir::Statement& s = program_.statements[*writer];
    const bool is_maximum = s.assign == ir::Assign::kMax;
    if (!is_maximum && s.assign != ir::Assign::kMin) return std::nullopt;
    const std::optional<ir::Substitution> names = in_terms_of(s, element, program_.statements[at]);
    if (!names) return std::nullopt;
    const Expr value = hi::simplify(ir::substitute_variables(s.value, *names));
    if (is_changed(value, *writer, at)) return std::nullopt;
    return Extreme{kExtremeValue, value, is_maximum};
  }

  static bool uses_reduction(const ir::Statement& s, const Expr& e) {
    return std::any_of(s.indices.begin(), s.indices.end(),
                       [&](const ir::Index& index) { return index.is_reduction && ir::mentions(e, index.name); });
  }

  /// Whether a statement behind `first` and up to `last` writes what a value reads.
  bool is_changed(const Expr& value, size_t first, size_t last) const {
    for (size_t s = first + 1; s <= last; ++s) {
      if (reads_tensor(value, program_.statements[s].tensor)) return true;
    }
    return false;
  }

  ir::Statement result_of(const ir::Statement& product, const Expr& divisor, bool is_reciprocal) const {
    ir::Statement result = product;
    result.id = ir::Names::among_statements(program_).fresh(product.id + "_divided");
    std::erase_if(result.indices, [](const ir::Index& index) { return index.is_reduction; });
    result.assign = ir::Assign::kSet;
    result.initialises = false;
    const Expr sum = hi::Call::make(product.accumulator, product.tensor, product.subscripts, hi::Call::PureExtern);
    result.value = is_reciprocal ? sum * (hi::make_one(sum.type()) / divisor) : sum / divisor;
    result.accesses.clear();
    result.index_values.clear();
    return result;
  }

  ir::Program program_;
};

}  // namespace

ir::Program divide_later(ir::Program program) { return Divider(std::move(program)).run(); }

}  // namespace tc::gpu
