#include "tc/ir/prover.h"

#include <fmt/format.h>
#include <isl/aff.h>
#include <isl/ast.h>
#include <isl/ast_build.h>
#include <isl/ctx.h>
#include <isl/id.h>
#include <isl/local_space.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>

#include <algorithm>

#include "tc/ir/expr_text.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/index_expr.h"
#include "tc/support/check.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr unsigned long kMaxOperations = 2'000'000;

/// The value of a condition without variables.
std::optional<bool> constant_truth(const Expr& e) {
  const Expr simple = hi::simplify(e);
  if (hi::is_const_one(simple)) return true;
  if (hi::is_const_zero(simple)) return false;
  return std::nullopt;
}

}  // namespace

/// Halide expressions over the given indices as isl functions on [p] -> { [i] }.
class Prover::Builder {
 public:
  Builder(Prover& prover, std::vector<std::string> indices)
      : ctx_(prover.ctx_), indices_(std::move(indices)), parameters_(prover.parameters_), opaque_(prover.opaque_) {}

  isl::pw_aff affine(const Expr& e) {
    if (const int64_t* value = constant_int(e)) return constant(*value);
    if (const auto* op = e.as<hi::Variable>()) return variable(op->name);
    if (const auto* op = e.as<hi::Add>()) return affine(op->a).add(affine(op->b));
    if (const auto* op = e.as<hi::Sub>()) return affine(op->a).sub(affine(op->b));
    if (const auto* op = e.as<hi::Min>()) return affine(op->a).min(affine(op->b));
    if (const auto* op = e.as<hi::Max>()) return affine(op->a).max(affine(op->b));
    if (const auto* op = e.as<hi::Mul>()) {
      if (constant_value(op->a) || constant_value(op->b))
        return affine(hi::simplify(op->a)).mul(affine(hi::simplify(op->b)));
    }
    if (const auto* op = e.as<hi::Div>()) {
      if (const int64_t* by = positive(op->b)) return affine(op->a).scale_down(value(*by)).floor();
    }
    if (const auto* op = e.as<hi::Mod>()) {
      if (const int64_t* by = positive(op->b)) return affine(op->a).mod(value(*by));
    }
    if (const auto* op = e.as<hi::Select>()) return choose(op->condition, op->true_value, op->false_value);
    return opaque(e);
  }

  /// The points where a condition holds.
  isl::set holds(const Expr& e) {
    if (const auto* op = e.as<hi::And>()) return holds(op->a).intersect(holds(op->b));
    if (const auto* op = e.as<hi::Or>()) return holds(op->a).unite(holds(op->b));
    if (const auto* op = e.as<hi::Not>()) return universe().subtract(holds(op->a));
    if (const uint64_t* value = constant_uint(e)) return *value ? universe() : universe().subtract(universe());
    if (const auto truth = constant_truth(e)) return *truth ? universe() : universe().subtract(universe());
    if (const auto* op = e.as<hi::EQ>()) return compare(op->a, op->b, [](auto a, auto b) { return a.eq_set(b); });
    if (const auto* op = e.as<hi::NE>()) return compare(op->a, op->b, [](auto a, auto b) { return a.ne_set(b); });
    if (const auto* op = e.as<hi::LT>()) return compare(op->a, op->b, [](auto a, auto b) { return a.lt_set(b); });
    if (const auto* op = e.as<hi::LE>()) return compare(op->a, op->b, [](auto a, auto b) { return a.le_set(b); });
    if (const auto* op = e.as<hi::GT>()) return compare(op->a, op->b, [](auto a, auto b) { return a.gt_set(b); });
    if (const auto* op = e.as<hi::GE>()) return compare(op->a, op->b, [](auto a, auto b) { return a.ge_set(b); });
    throw NotAffine();
  }

  /// All points where a guard may hold: what is not affine in it may hold anywhere. An undefined guard always holds.
  isl::set may_hold(const Expr& guard) {
    if (!guard.defined()) return universe();
    if (const auto* op = guard.as<hi::And>()) return may_hold(op->a).intersect(may_hold(op->b));
    if (const auto* op = guard.as<hi::Or>()) return may_hold(op->a).unite(may_hold(op->b));
    if (const auto* op = guard.as<hi::Not>()) return universe().subtract(must_hold(op->a));
    try {
      return holds(guard);
    } catch (const NotAffine&) {
      sizes_would_tell_ = sizes_would_tell_ || !is_data_dependent(guard);
      return universe();
    }
  }

  /// All points where a guard holds for certain.
  isl::set must_hold(const Expr& guard) {
    if (const auto* op = guard.as<hi::And>()) return must_hold(op->a).intersect(must_hold(op->b));
    if (const auto* op = guard.as<hi::Or>()) return must_hold(op->a).unite(must_hold(op->b));
    if (const auto* op = guard.as<hi::Not>()) return universe().subtract(may_hold(op->a));
    try {
      return holds(guard);
    } catch (const NotAffine&) {
      sizes_would_tell_ = sizes_would_tell_ || !is_data_dependent(guard);
      return universe().subtract(universe());
    }
  }

  /// True where a guard was not affine, and would be for constant sizes.
  bool sizes_would_tell() const { return sizes_would_tell_; }

  isl::set universe() { return isl::manage(isl_set_universe(space(nullptr))); }

 private:
  isl::val value(int64_t v) { return isl::manage(isl_val_int_from_si(ctx_, v)); }

  static const int64_t* positive(const Expr& e) {
    const int64_t* value = constant_int(e);
    return value && *value > 0 ? value : nullptr;
  }

  isl_space* space(const std::string* parameter) {
    isl_space* result = isl_space_set_alloc(ctx_, parameter ? 1 : 0, static_cast<unsigned>(indices_.size()));
    if (parameter)
      result = isl_space_set_dim_id(result, isl_dim_param, 0, isl_id_alloc(ctx_, parameter->c_str(), nullptr));
    return result;
  }

  isl::pw_aff constant(int64_t v) {
    return isl::manage(isl_pw_aff_from_aff(
        isl_aff_val_on_domain(isl_local_space_from_space(space(nullptr)), isl_val_int_from_si(ctx_, v))));
  }

  isl::pw_aff parameter(const std::string& name) {
    return isl::manage(
        isl_pw_aff_from_aff(isl_aff_var_on_domain(isl_local_space_from_space(space(&name)), isl_dim_param, 0)));
  }

  isl::pw_aff variable(const std::string& name) {
    const auto found = std::find(indices_.begin(), indices_.end(), name);
    if (found == indices_.end()) {
      if (!parameters_.contains(name)) throw NotAffine();  // a scalar that is known at run time only
      return parameter(name);
    }
    const auto position = static_cast<unsigned>(found - indices_.begin());
    return isl::manage(
        isl_pw_aff_from_aff(isl_aff_var_on_domain(isl_local_space_from_space(space(nullptr)), isl_dim_set, position)));
  }

  isl::pw_aff choose(const Expr& condition, const Expr& if_true, const Expr& if_false) {
    const isl::set where = holds(condition);
    return affine(if_true).intersect_domain(where).union_add(
        affine(if_false).intersect_domain(universe().subtract(where)));
  }

  template <typename Compare>
  isl::set compare(const Expr& a, const Expr& b, Compare compare) {
    if (a.type() != index_type()) throw NotAffine();
    return compare(affine(a), affine(b));
  }

  isl::pw_aff opaque(const Expr& e) {
    if (e.type() != index_type() || is_data_dependent(e)) throw NotAffine();
    for (const std::string& name : variables_of(e)) {
      if (!parameters_.contains(name)) throw NotAffine();
    }
    const std::string name = fmt::format("({})", to_text(e));
    opaque_[name] = e;
    return parameter(name);
  }

  isl_ctx* ctx_;
  bool sizes_would_tell_ = false;
  std::vector<std::string> indices_;
  const std::set<std::string>& parameters_;
  std::map<std::string, Expr>& opaque_;
};

namespace {

/// A condition that isl wrote, as a Halide expression.
class FromAst {
 public:
  explicit FromAst(const std::map<std::string, Expr>& opaque) : opaque_(opaque) {}

  Expr convert(const isl::ast_expr& e) {
    if (e.isa<isl::ast_expr_int>()) {
      return index_constant(isl_val_get_num_si(e.as<isl::ast_expr_int>().val().get()));
    }
    if (e.isa<isl::ast_expr_id>()) {
      const std::string name = e.as<isl::ast_expr_id>().id().name();
      const auto found = opaque_.find(name);
      return found != opaque_.end() ? found->second : index_variable(name);
    }
    return operation(e);
  }

  /// isl has no booleans: 1 stands for true.
  Expr condition(const isl::ast_expr& e) {
    const Expr result = convert(e);
    return result.type().is_bool() ? result : hi::simplify(result != index_constant(0));
  }

 private:
  Expr operation(const isl::ast_expr& e) {
    const isl_ast_expr_op_type type = isl_ast_expr_op_get_type(e.get());
    auto operand = [&](int i) { return isl::manage(isl_ast_expr_op_get_arg(e.get(), i)); };
    const int count = static_cast<int>(isl_ast_expr_op_get_n_arg(e.get()));
    auto fold = [&](auto combine, auto translate) {
      Expr result = translate(operand(0));
      for (int i = 1; i < count; ++i) result = combine(result, translate(operand(i)));
      return result;
    };
    auto number = [&](const isl::ast_expr& x) { return convert(x); };
    auto truth = [&](const isl::ast_expr& x) { return condition(x); };
    switch (type) {
      case isl_ast_expr_op_and:
      case isl_ast_expr_op_and_then:
        return fold([](const Expr& a, const Expr& b) { return hi::And::make(a, b); }, truth);
      case isl_ast_expr_op_or:
      case isl_ast_expr_op_or_else:
        return fold([](const Expr& a, const Expr& b) { return hi::Or::make(a, b); }, truth);
      case isl_ast_expr_op_max:
        return fold([](const Expr& a, const Expr& b) { return hi::Max::make(a, b); }, number);
      case isl_ast_expr_op_min:
        return fold([](const Expr& a, const Expr& b) { return hi::Min::make(a, b); }, number);
      case isl_ast_expr_op_minus:
        return hi::simplify(index_constant(0) - convert(operand(0)));
      case isl_ast_expr_op_cond:
      case isl_ast_expr_op_select:
        return hi::Select::make(condition(operand(0)), convert(operand(1)), convert(operand(2)));
      default:
        return binary(type, convert(operand(0)), convert(operand(1)));
    }
  }

  static Expr binary(isl_ast_expr_op_type type, const Expr& a, const Expr& b) {
    switch (type) {
      case isl_ast_expr_op_add:
        return hi::Add::make(a, b);
      case isl_ast_expr_op_sub:
        return hi::Sub::make(a, b);
      case isl_ast_expr_op_mul:
        return hi::Mul::make(a, b);
      case isl_ast_expr_op_div:
      case isl_ast_expr_op_fdiv_q:
      case isl_ast_expr_op_pdiv_q:
        return floor_div(a, b);
      case isl_ast_expr_op_pdiv_r:
      case isl_ast_expr_op_zdiv_r:
        return floor_mod(a, b);
      case isl_ast_expr_op_eq:
        return hi::EQ::make(a, b);
      case isl_ast_expr_op_le:
        return hi::LE::make(a, b);
      case isl_ast_expr_op_lt:
        return hi::LT::make(a, b);
      case isl_ast_expr_op_ge:
        return hi::LE::make(b, a);
      case isl_ast_expr_op_gt:
        return hi::LT::make(b, a);
      default:
        TC_CHECK(false, "isl wrote a condition with an operation of type {}", static_cast<int>(type));
    }
  }

  const std::map<std::string, Expr>& opaque_;
};

std::vector<std::string> index_names(const Statement& statement) {
  std::vector<std::string> names;
  for (const Index& index : statement.indices) names.push_back(index.name);
  return names;
}

/// True if `value` is an index of the statement, and `lower <= value < upper` its very range: no question for isl.
bool has_range(const Statement& statement, const Expr& value, const Expr& lower, const Expr& upper) {
  const auto* variable = value.as<hi::Variable>();
  return variable != nullptr &&
         std::any_of(statement.indices.begin(), statement.indices.end(), [&](const Index& index) {
           return index.name == variable->name && index.begin.defined() && index.end.defined() &&
                  hi::equal(index.begin, lower) && hi::equal(index.end, upper);
         });
}

}  // namespace

Prover::Prover(const Program& program, const Deadline& deadline)
    : deadline_(deadline), owned_(isl_ctx_alloc()), ctx_(owned_.get()) {
  isl_options_set_on_error(ctx_, ISL_ON_ERROR_CONTINUE);
  isl_ctx_set_max_operations(ctx_, kMaxOperations);
  Builder builder(*this, {});
  context_ = builder.universe().params();
  positive_ = context_;
  parameters_.insert(program.sizes.begin(), program.sizes.end());
  for (const Scalar& s : program.scalars) {
    if (s.specialised) parameters_.insert(s.name);
  }
  for (const std::string& size : program.sizes) {
    assume(index_variable(size) >= 0);
    positive_ = positive_->intersect(builder.holds(index_variable(size) >= 1).params());
  }
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role != Role::kInput) continue;
    for (const Expr& extent : tensor.extents) assume(extent >= 0);
  }
  watchdog_.emplace(ctx_, deadline.end);
  forward_.emplace(deadline.cancel, Abort{ctx_});
}

/// After a failure of isl's: goes on with the next question, if there is time for one.
void Prover::give_up() {
  if (isl_ctx_aborted(ctx_)) throw OutOfTime(deadline_);
  isl_ctx_reset_operations(ctx_);
}

void Prover::assume(const Expr& condition) {
  try {
    context_ = context_->intersect(Builder(*this, {}).holds(condition).params());
  } catch (const NotAffine&) {
  } catch (const isl::exception&) {
    give_up();
  }
}

/// A condition that implies `parameters`, and is no stronger for positive sizes: that nothing is accessed where some
/// extent is zero is not worth a line to its reader.
Expr Prover::to_expr(const isl::set& parameters) {
  isl::set simple = parameters.coalesce().gist(context_->intersect(*positive_));
  if (!simple.intersect(*context_).is_subset(parameters)) simple = parameters.coalesce().gist(*context_);
  const isl::ast_build build = isl::ast_build::from_context(*context_);
  return FromAst(opaque_).condition(build.expr_from(simple));
}

Verdict Prover::verdict_of(const isl::set& holds) {
  if (context_->is_subset(holds)) return {Verdict::Kind::kProved, Expr()};
  if (holds.intersect(*context_).intersect(*positive_).is_empty()) return {Verdict::Kind::kNever, Expr()};
  return {Verdict::Kind::kSometimes, to_expr(holds)};
}

/// True if a condition follows from what is assumed, without a look at the signs of opaque terms.
bool Prover::follows(const Expr& condition) {
  try {
    return context_->is_subset(Builder(*this, {}).holds(condition).params());
  } catch (const NotAffine&) {
    return false;
  }
}

/// Products of what is not negative are not negative, nor are quotients by what is positive; those of N - 1 are -1 at
/// the least.
void Prover::learn_signs() {
  const std::map<std::string, Expr> terms = opaque_;
  for (const auto& [name, e] : terms) {
    if (not_negative_.contains(name)) continue;
    const auto* product = e.as<hi::Mul>();
    const auto* quotient = e.as<hi::Div>();
    const bool known = (product && follows(product->a >= 0) && follows(product->b >= 0)) ||
                       (quotient && follows(quotient->a >= 0) && follows(quotient->b >= 1));
    if (known) {
      not_negative_.insert(name);
      context_ = context_->intersect(Builder(*this, {}).holds(e >= 0).params());
    } else if (quotient && !least_minus_one_.contains(name) && follows(quotient->a >= -1) &&
               follows(quotient->b >= 1)) {
      least_minus_one_.insert(name);
      context_ = context_->intersect(Builder(*this, {}).holds(e >= -1).params());
    }
  }
}

std::optional<Verdict> Prover::decide(const Expr& condition) {
  isl_ctx_reset_operations(ctx_);
  try {
    const isl::set where = Builder(*this, {}).holds(condition).params();
    learn_signs();
    return verdict_of(where);
  } catch (const NotAffine&) {
  } catch (const isl::exception&) {
    give_up();
  }
  return std::nullopt;
}

/// [p] -> { [i] : i is an instance, the guard may hold, and the condition does }
isl::set Prover::instances(Builder& builder, const Statement& statement, const Expr& guard, const Expr& condition,
                           const std::string& free) {
  isl::set result = builder.may_hold(statement.guard);
  for (const Index& index : statement.indices) {
    if (index.name == free) continue;
    const Expr i = index_variable(index.name);
    result = result.intersect(builder.holds(i >= (index.begin.defined() ? index.begin : index_constant(0))));
    if (index.end.defined()) result = result.intersect(builder.holds(i < index.end));
  }
  return result.intersect(builder.holds(condition)).intersect(builder.may_hold(guard)).intersect_params(*context_);
}

bool Prover::excludes(const Statement& statement, const Expr& guard, const Expr& condition) {
  isl_ctx_reset_operations(ctx_);
  try {
    Builder builder(*this, index_names(statement));
    return instances(builder, statement, guard, condition).is_empty();
  } catch (const NotAffine&) {
  } catch (const isl::exception&) {
    give_up();
  }
  return false;
}

std::optional<Verdict> Prover::within(const Statement& statement, const Expr& value, const Expr& lower,
                                      const Expr& upper, const Expr& guard) {
  if (has_range(statement, value, lower, upper)) return Verdict{};
  isl_ctx_reset_operations(ctx_);
  try {
    Builder builder(*this, index_names(statement));
    const isl::set bad = instances(builder, statement, guard, value < lower || value >= upper);
    if (bad.is_empty()) return Verdict{};
    if (builder.sizes_would_tell()) return std::nullopt;
    return verdict_of(context_->subtract(bad.params()));
  } catch (const NotAffine&) {
  } catch (const isl::exception&) {
    give_up();
  }
  return std::nullopt;
}

std::optional<Witness> Prover::outside(const Statement& statement, const Expr& value, const Expr& lower,
                                       const Expr& upper, const Expr& guard) {
  isl_ctx_reset_operations(ctx_);
  try {
    Builder builder(*this, index_names(statement));
    const isl::set bad = instances(builder, statement, guard, value < lower || value >= upper);
    if (bad.is_empty()) return std::nullopt;
    const isl::point point = bad.lexmin().sample_point();
    Witness witness;
    Substitution at;
    for (size_t i = 0; i < statement.indices.size(); ++i) {
      const isl::val v = isl::manage(isl_point_get_coordinate_val(point.get(), isl_dim_set, static_cast<int>(i)));
      witness.indices.push_back(isl_val_get_num_si(v.get()));
      at[statement.indices[i].name] = index_constant(witness.indices.back());
    }
    witness.value = constant_value(substitute_variables(value, at)).value_or(0);
    return witness;
  } catch (const NotAffine&) {
  } catch (const isl::exception&) {
    give_up();
  }
  return std::nullopt;
}

namespace {

/// The statement with its indices primed: i', ...
Statement primed(Statement statement) {
  Substitution renamed;
  for (Index& index : statement.indices) {
    renamed[index.name] = index_variable(index.name + "'");
    index.name += "'";
  }
  for (Expr& subscript : statement.subscripts) subscript = substitute_variables(subscript, renamed);
  statement.guard = substitute_variables(statement.guard, renamed);
  return statement;
}

Expr in_ranges(const Statement& statement) {
  Expr all = hi::const_true();
  for (const Index& index : statement.indices) {
    const Expr i = index_variable(index.name);
    all = all && i >= index.begin && i < index.end;
  }
  return all;
}

/// a comes before b in lexicographic order.
Expr before(const std::vector<Index>& a, const std::vector<Index>& b) {
  Expr result = hi::const_false();
  for (size_t i = a.size(); i-- > 0;) {
    const Expr x = index_variable(a[i].name), y = index_variable(b[i].name);
    result = x < y || (x == y && result);
  }
  return result;
}

}  // namespace

/// [p] -> { [i, i'] : i and i' are instances that write the same element, i before i' }
isl::set Prover::collisions(const Statement& statement) {
  const Statement other = primed(statement);
  std::vector<std::string> names = index_names(statement);
  for (const Index& index : other.indices) names.push_back(index.name);
  Builder builder(*this, names);
  isl::set result = builder.holds(in_ranges(statement)).intersect(builder.holds(in_ranges(other)));
  for (size_t d = 0; d < statement.subscripts.size(); ++d) {
    result = result.intersect(builder.holds(statement.subscripts[d] == other.subscripts[d]));
  }
  result = result.intersect(builder.may_hold(statement.guard)).intersect(builder.may_hold(other.guard));
  return result.intersect(builder.holds(before(statement.indices, other.indices))).intersect_params(*context_);
}

/// [p] -> { : each index that may have several values has several }
isl::set Prover::wide_sizes(const Statement& statement) {
  isl::set result = context_->intersect(*positive_);
  for (const Index& index : statement.indices) {
    const isl::set several = Builder(*this, {}).holds(index.begin + 1 < index.end).params();
    if (!result.intersect(several).is_empty()) result = result.intersect(several);
  }
  return result;
}

std::optional<Verdict> Prover::writes_once(const Statement& statement) {
  isl_ctx_reset_operations(ctx_);
  try {
    const isl::set twice = collisions(statement).params();
    if (twice.is_empty()) return Verdict{};
    const isl::set once = context_->subtract(twice);
    if (once.intersect(wide_sizes(statement)).is_empty()) return Verdict{Verdict::Kind::kNever, Expr()};
    return verdict_of(once);
  } catch (const NotAffine&) {
  } catch (const isl::exception&) {
    give_up();
  }
  return std::nullopt;
}

std::optional<Collision> Prover::collision(const Statement& statement) {
  isl_ctx_reset_operations(ctx_);
  try {
    isl::set twice = collisions(statement);
    const isl::set wide = twice.intersect_params(wide_sizes(statement));
    if (!wide.is_empty()) twice = wide;
    if (twice.is_empty()) return std::nullopt;
    const auto parameters = static_cast<unsigned>(isl_set_dim(twice.get(), isl_dim_param));
    Collision found;
    std::vector<std::string> names;
    for (unsigned p = 0; p < parameters; ++p) {
      names.emplace_back(isl_set_get_dim_name(twice.get(), isl_dim_param, p));
      if (opaque_.contains(names.back())) return std::nullopt;
      twice = isl::manage(isl_set_lower_bound_si(twice.release(), isl_dim_param, p, 0));
    }
    twice = isl::manage(isl_set_move_dims(twice.release(), isl_dim_set, 0, isl_dim_param, 0, parameters));
    const isl::point point = twice.lexmin().sample_point();
    const auto coordinate = [&](size_t i) {
      const isl::val v = isl::manage(isl_point_get_coordinate_val(point.get(), isl_dim_set, static_cast<int>(i)));
      return isl_val_get_num_si(v.get());
    };
    Substitution at;
    for (size_t p = 0; p < names.size(); ++p) {
      found.sizes[names[p]] = coordinate(p);
      at[names[p]] = index_constant(found.sizes[names[p]]);
    }
    const size_t count = statement.indices.size();
    for (size_t i = 0; i < count; ++i) {
      found.first.push_back(coordinate(names.size() + i));
      found.second.push_back(coordinate(names.size() + count + i));
      at[statement.indices[i].name] = index_constant(found.first.back());
    }
    for (const Expr& subscript : statement.subscripts) {
      found.element.push_back(constant_value(substitute_variables(subscript, at)).value_or(0));
    }
    return found;
  } catch (const NotAffine&) {
  } catch (const isl::exception&) {
    give_up();
  }
  return std::nullopt;
}

bool Prover::write_all(const std::vector<const Statement*>& statements, const std::vector<Expr>& extents) {
  isl_ctx_reset_operations(ctx_);
  std::vector<std::string> elements;
  for (size_t d = 0; d < extents.size(); ++d) elements.push_back(fmt::format("element {}", d));
  try {
    Builder of_tensor(*this, elements);
    isl::set unwritten = of_tensor.universe().intersect_params(*context_);
    for (size_t d = 0; d < extents.size(); ++d) {
      const Expr element = index_variable(elements[d]);
      unwritten = unwritten.intersect(of_tensor.holds(element >= 0 && element < extents[d]));
    }
    for (const Statement* statement : statements) {
      std::vector<std::string> names = index_names(*statement);
      const auto indices = static_cast<unsigned>(names.size());
      names.insert(names.end(), elements.begin(), elements.end());
      Builder builder(*this, names);
      isl::set written = builder.holds(in_ranges(*statement));
      for (size_t d = 0; d < extents.size(); ++d) {
        written = written.intersect(builder.holds(index_variable(elements[d]) == statement->subscripts[d]));
      }
      written = isl::manage(isl_set_project_out(written.release(), isl_dim_set, 0, indices));
      unwritten = unwritten.subtract(written);
    }
    return unwritten.is_empty();
  } catch (const NotAffine&) {
  } catch (const isl::exception&) {
    give_up();
  }
  return false;
}

namespace {

/// Only the dimensions [first, first + count) of a set.
isl::set dimensions(const isl::set& set, unsigned first, unsigned count) {
  const unsigned all = set.tuple_dim();
  isl_set* rest = isl_set_project_out(set.copy(), isl_dim_set, first + count, all - first - count);
  return isl::manage(isl_set_project_out(rest, isl_dim_set, 0, first));
}

/// Not the name of an index.
std::string element_name(int dimension) { return fmt::format("element.{}", dimension); }

}  // namespace

isl::set Prover::leaving(const Statement& statement, const std::string& index, const Expr& value, const Expr& extent,
                         const Expr& guard) {
  Builder builder(*this, index_names(statement));
  const Expr outside = value < 0 || value >= extent;
  const isl::set bad =
      instances(builder, statement, guard, outside, index).intersect(builder.holds(index_variable(index) >= 0));
  if (builder.sizes_would_tell() && !bad.is_empty()) throw NotAffine();
  const std::vector<std::string> names = index_names(statement);
  const auto position = static_cast<unsigned>(std::find(names.begin(), names.end(), index) - names.begin());
  return dimensions(bad, position, 1);
}

isl::set Prover::written(const Statement& statement) {
  std::vector<std::string> names = index_names(statement);
  const auto indices = static_cast<unsigned>(names.size());
  const int rank = static_cast<int>(statement.subscripts.size());
  Expr at = hi::const_true();
  for (int d = 0; d < rank; ++d) {
    names.push_back(element_name(d));
    at = hi::And::make(at, index_variable(names.back()) == statement.subscripts[d]);
  }
  Builder builder(*this, names);
  if (statement.guard.defined()) at = hi::And::make(at, statement.guard);
  const isl::set all = instances(builder, statement, Expr(), at);
  if (builder.sizes_would_tell()) throw NotAffine();
  return dimensions(all, indices, static_cast<unsigned>(rank));
}

isl::set Prover::elements(const std::vector<Expr>& extents) {
  std::vector<std::string> names;
  for (size_t d = 0; d < extents.size(); ++d) names.push_back(element_name(static_cast<int>(d)));
  Builder builder(*this, names);
  isl::set result = builder.universe().intersect_params(*context_);
  for (size_t d = 0; d < extents.size(); ++d) {
    const Expr e = index_variable(names[d]);
    result = result.intersect(builder.holds(e >= 0)).intersect(builder.holds(e < extents[d]));
  }
  return result;
}

isl::set Prover::populated(const Statement& statement, const std::string& but) {
  Builder builder(*this, index_names(statement));
  return instances(builder, statement, Expr(), hi::const_true(), but).params().intersect(*positive_);
}

isl::pw_aff Prover::simplified(const isl::pw_aff& value, const isl::set& relevant) {
  const isl::pw_aff simple = value.intersect_params(relevant).coalesce().gist_params(relevant).coalesce();
  const isl::set negative = context_->subtract(isl::manage(isl_pw_aff_nonneg_set(simple.copy())));
  return negative.is_empty() ? simple : value.coalesce().gist_params(*context_).coalesce();
}

Expr Prover::to_expr(const isl::pw_aff& value, const isl::set& relevant) {
  const isl::ast_build build = isl::ast_build::from_context(*context_);
  return FromAst(opaque_).convert(build.expr_from(simplified(value, relevant)));
}

}  // namespace tc::ir
