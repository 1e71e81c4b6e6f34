#include "tc/ir/specialise.h"

#include <fmt/format.h>

#include <limits>

#include "tc/ir/coverage.h"
#include "tc/ir/expr_text.h"
#include "tc/ir/fold_constant.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/interval.h"
#include "tc/ir/prover.h"
#include "tc/ir/reads.h"
#include "tc/ir/single_writes.h"
#include "tc/support/check.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 47;

/// Puts constants in place of sizes and scalars, and folds what that makes constant. Values are left alone but for
/// their subscripts and conditions over indices: Halide's simplifier does not keep to IEEE arithmetic.
class Specialiser : public hi::IRMutator {
 public:
  explicit Specialiser(const Substitution& values) : values_(values) {}

  using hi::IRMutator::mutate;
  Expr mutate(const Expr& e) override {
    const Expr result = hi::IRMutator::mutate(e);
    return result.type().is_bool() ? result : fold_constant(result);
  }

 private:
  using hi::IRMutator::visit;

  Expr visit(const hi::Variable* op) override {
    const auto found = values_.find(op->name);
    return found == values_.end() ? Expr(op) : found->second;
  }
  Expr visit(const hi::Call* op) override {
    std::vector<Expr> arguments;
    for (const Expr& a : op->args) arguments.push_back(folded(mutate(a)));
    if (op->name == "tc.floor_div") return floor_div(arguments[0], arguments[1]);
    if (op->name == "tc.floor_mod") return floor_mod(arguments[0], arguments[1]);
    return hi::Call::make(op->type, op->name, arguments, op->call_type);
  }

  /// Index arithmetic that reads no tensor is simplified as a whole.
  static Expr folded(const Expr& e) {
    return e.type() == index_type() && !is_data_dependent(e) ? simplify_unless_overflow(e) : e;
  }

  const Substitution& values_;
};

/// Turns choices into Selects where the reads of both branches are in bounds without the guard.
class RelaxChoices : public hi::IRMutator {
 public:
  RelaxChoices(const Program& program, const Statement& statement, Prover& prover)
      : program_(program), statement_(statement), prover_(prover) {}

 private:
  using hi::IRMutator::visit;

  Expr visit(const hi::Call* op) override {
    const Expr inside = hi::IRMutator::visit(op);
    const auto* call = inside.as<hi::Call>();
    if (!call->is_intrinsic(hi::Call::if_then_else)) return inside;
    if (!reads_in_bounds(call->args[1]) || !reads_in_bounds(call->args[2])) return inside;
    return hi::Select::make(call->args[0], call->args[1], call->args[2]);
  }

  bool reads_in_bounds(const Expr& e);

  const Program& program_;
  const Statement& statement_;
  Prover& prover_;
};

bool RelaxChoices::reads_in_bounds(const Expr& e) {
  for (const hi::Call* read : reads_in(program_, e)) {
    const Tensor& tensor = program_.tensor(read->name);
    for (int d = 0; d < tensor.rank(); ++d) {
      if (is_data_dependent(read->args[d])) return false;
      const auto verdict = prover_.within(statement_, read->args[d], index_constant(0), tensor.extents[d], Expr());
      if (!verdict || verdict->kind != Verdict::Kind::kProved) return false;
    }
  }
  return true;
}

/// "N is {N}" with the values in place.
std::string with_values(const std::string& sentence, const Bindings& bindings) {
  std::string result;
  for (size_t i = 0; i < sentence.size(); ++i) {
    const size_t close = sentence[i] == '{' ? sentence.find('}', i) : std::string::npos;
    if (close == std::string::npos) {
      result += sentence[i];
      continue;
    }
    const std::string name = sentence.substr(i + 1, close - i - 1);
    const auto size = bindings.sizes.find(name);
    const auto scalar = bindings.scalars.find(name);
    if (size != bindings.sizes.end()) {
      result += fmt::format("{}", size->second);
    } else if (scalar != bindings.scalars.end()) {
      result += fmt::format("{}", scalar->second);
    } else {
      result += sentence.substr(i, close - i + 1);
    }
    i = close;
  }
  return result;
}

class Specialisation {
 public:
  Specialisation(const Program& program, const Bindings& bindings, const Deadline& deadline)
      : program_(program), bindings_(bindings), deadline_(deadline) {
    for (const auto& [name, value] : bindings.sizes) values_[name] = index_constant(value);
    for (const auto& [name, value] : bindings.scalars) values_[name] = index_constant(value);
  }

  Result<Program> run();

 private:
  void check_complete() const;
  Result<void> check_preconditions() const;
  std::vector<Note> colliding_instances(SourceRange range) const;
  Result<void> check_written_in_full(const std::vector<Precondition>& undecided, Prover& prover) const;
  Result<Shape> extents_of(const Tensor& tensor) const;
  Result<void> substitute_tensors();
  void substitute_statements();
  Result<void> check_statement(const Statement& statement, Prover& prover) const;
  Result<void> check_subscript(const Statement& s, const Access& a, int d, Prover& prover) const;
  Result<void> check_index_value(const Statement& s, const IndexValue& v, Prover& prover) const;
  Result<void> check_single_writes(const Statement& s, Prover& prover) const;
  std::string instance_text(const Statement& s, const Witness& witness) const;
  bool interval_inside(const Statement& s, const Expr& e, const Expr& lower, const Expr& upper) const;

  Program program_;
  const Bindings& bindings_;
  const Deadline deadline_;
  Substitution values_;
};

void Specialisation::check_complete() const {
  for (const std::string& size : program_.sizes) TC_CHECK(values_.contains(size), "no value for the size '{}'", size);
  for (const Scalar& s : program_.scalars) {
    TC_CHECK(!s.specialised || values_.contains(s.name), "no value for the scalar '{}'", s.name);
  }
  TC_CHECK(!program_.open, "the ranges of '{}' wait for the values of its scalars", program_.name);
}

Result<void> Specialisation::check_preconditions() const {
  std::vector<Diagnostic> errors;
  for (const Precondition& p : program_.preconditions) {
    if (!p.condition.defined()) continue;
    const Expr holds = hi::simplify(Specialiser(values_).mutate(p.condition));
    if (hi::is_const_one(holds)) continue;
    errors.push_back({p.range, with_values(p.sentence, bindings_), colliding_instances(p.range)});
  }
  if (!errors.empty()) return tl::unexpected(Error(program_.source, std::move(errors)));
  return {};
}

/// Two instances that write one element, if `range` is the left side of a statement that has such (C7).
std::vector<Note> Specialisation::colliding_instances(SourceRange range) const {
  Specialisation specialised(program_, bindings_, deadline_);
  specialised.substitute_statements();
  specialised.program_.sizes.clear();
  for (const Statement& s : specialised.program_.statements) {
    if (!may_set_twice(s) || s.accesses[0].range != range) continue;
    const auto collision = Prover(specialised.program_, deadline_).collision(s);
    if (!collision) continue;
    return {{range, fmt::format("{} {}", program_.source->text(range), collision_text(s, collision))}};
  }
  return {};
}

/// C7.
Result<void> Specialisation::check_single_writes(const Statement& s, Prover& prover) const {
  if (!may_set_twice(s)) return {};
  const auto verdict = prover.writes_once(s);
  if (verdict && verdict->kind == Verdict::Kind::kProved) return {};
  const SourceRange left = s.accesses[0].range;
  const std::string text = written_twice(program_.source->text(left), s, prover.collision(s));
  return tl::unexpected(Error(program_.source, left, text));
}

Result<Shape> Specialisation::extents_of(const Tensor& tensor) const {
  Shape shape;
  for (int d = 0; d < tensor.rank(); ++d) {
    const auto value = constant_value(substitute_variables(tensor.extents[d], values_));
    if (!value) {
      return tl::unexpected(Error(program_.source, tensor.declared,
                                  fmt::format("the extent {} of '{}' in dimension {} does not fit 64 bits",
                                              to_text(tensor.extents[d]), tensor.name, d)));
    }
    shape.push_back(*value);
  }
  return shape;
}

Result<void> Specialisation::substitute_tensors() {
  for (Tensor& tensor : program_.tensors) {
    TC_TRY(shape, extents_of(tensor));
    __int128 bytes = (tensor.type.bits() + 7) / 8;
    for (int d = 0; d < tensor.rank(); ++d) {
      tensor.extents[d] = index_constant(shape[d]);
      bytes = std::min<__int128>(bytes * std::max<int64_t>(shape[d], 1), std::numeric_limits<int64_t>::max());
    }
    if (bytes > kMaxTensorBytes) {
      return tl::unexpected(
          Error(program_.source, tensor.declared,
                fmt::format("'{}' of shape {} would take more than 2^47 bytes", tensor.name, shape_text(shape))));
    }
  }
  return {};
}

void Specialisation::substitute_statements() {
  Specialiser specialiser(values_);
  for (Statement& s : program_.statements) {
    transform_expressions(s, [&](const Expr& e) {
      const Expr constant = specialiser.mutate(e);
      const bool index_like = constant.type() == index_type() && !is_data_dependent(constant);
      return index_like ? simplify_unless_overflow(constant) : constant;
    });
  }
}

std::string Specialisation::instance_text(const Statement& s, const Witness& witness) const {
  std::string text;
  for (size_t i = 0; i < s.indices.size(); ++i) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", s.indices[i].name, witness.indices[i]);
  }
  return text.empty() ? "" : " for " + text;
}

bool Specialisation::interval_inside(const Statement& s, const Expr& e, const Expr& lower, const Expr& upper) const {
  Ranges ranges;
  std::map<std::string, ConstantInterval> indices;
  for (const Index& i : s.indices) {
    const Expr last = hi::simplify(i.end - 1);
    if (hi::is_const_one(hi::simplify(last < i.begin))) return true;
    ranges.solved.push(i.name, hi::Interval(i.begin, last));
    if (constant_int(i.begin) && constant_int(last)) {
      indices[i.name] = {*constant_int(i.begin), *constant_int(last)};
    }
  }
  const auto constant = constant_bounds(e, indices);
  const int64_t *least = constant_int(lower), *end = constant_int(upper);
  if (constant && least && end && constant->lower >= *least && constant->upper < *end) return true;
  const IndexInterval reach = bounds_of(e, ranges);
  return reach.lower.defined() && reach.upper.defined() && hi::is_const_one(hi::simplify(reach.lower >= lower)) &&
         hi::is_const_one(hi::simplify(reach.upper < upper));
}

/// As the source has it: the sums of 'T' in another type (T3) and a copy of it (C3) are 'T' there.
std::string name_in_source(const Program& program, const Tensor& tensor) {
  const std::string_view declared = program.source->text(tensor.declared);
  return tensor.role == Role::kTemporary && !declared.empty() ? std::string(declared) : tensor.name;
}

Result<void> Specialisation::check_subscript(const Statement& s, const Access& a, int d, Prover& prover) const {
  const Tensor& tensor = program_.tensor(a.tensor);
  const Expr& subscript = a.subscripts[d];
  const Expr& extent = tensor.extents[d];
  if (interval_inside(s, subscript, index_constant(0), extent)) return {};
  const auto verdict = prover.within(s, subscript, index_constant(0), extent, a.guard);
  if (verdict && verdict->kind == Verdict::Kind::kProved) return {};
  const std::string text(program_.source->text(a.range));
  const auto witness = prover.outside(s, subscript, index_constant(0), extent, a.guard);
  if (!witness) {
    return tl::unexpected(Error(program_.source, a.range,
                                fmt::format("{} cannot be proved to stay inside '{}', whose extent in dimension {} is "
                                            "{}: guard it with '?:'",
                                            text, name_in_source(program_, tensor), d, to_text(extent))));
  }
  return tl::unexpected(
      Error(program_.source, a.range,
            fmt::format("'{}' has extent {} in dimension {}, but {} {} it at {}{}", name_in_source(program_, tensor),
                        to_text(extent), d, text, a.is_write ? "writes" : "reads", witness->value,
                        instance_text(s, *witness))));
}

Result<void> Specialisation::check_index_value(const Statement& s, const IndexValue& v, Prover& prover) const {
  const Expr lower = index_constant(std::numeric_limits<int32_t>::min());
  const Expr upper = index_constant(int64_t{std::numeric_limits<int32_t>::max()} + 1);
  if (is_data_dependent(v.value) || interval_inside(s, v.value, lower, upper)) return {};
  const auto verdict = prover.within(s, v.value, lower, upper, v.guard);
  if (verdict && verdict->kind == Verdict::Kind::kProved) return {};
  const auto witness = prover.outside(s, v.value, lower, upper, v.guard);
  const std::string where = witness ? fmt::format(": it is {}{}", witness->value, instance_text(s, *witness)) : "";
  return tl::unexpected(Error(program_.source, v.range,
                              fmt::format("'{}' does not fit int32 as a value{}; int64({}) does",
                                          program_.source->text(v.range), where, program_.source->text(v.range))));
}

Result<void> Specialisation::check_statement(const Statement& statement, Prover& prover) const {
  for (const Access& access : statement.accesses) {
    if (access.exists_only) continue;
    deadline_.check();
    for (size_t d = 0; d < access.subscripts.size(); ++d) {
      if (is_data_dependent(access.subscripts[d])) continue;
      TC_TRY_VOID(check_subscript(statement, access, static_cast<int>(d), prover));
    }
  }
  for (const IndexValue& value : statement.index_values) {
    TC_TRY_VOID(check_index_value(statement, value, prover));
  }
  return check_single_writes(statement, prover);
}

/// R10 for results of which only constant sizes decide it.
Result<void> Specialisation::check_written_in_full(const std::vector<Precondition>& undecided, Prover& prover) const {
  for (const Precondition& p : undecided) {
    if (p.written_in_full.empty()) continue;
    const Tensor& tensor = program_.tensor(p.written_in_full);
    const auto verdict = written_in_full(prover, program_, tensor, inferred_dimensions(program_, tensor));
    if (verdict && verdict->kind == Verdict::Kind::kProved) continue;
    return tl::unexpected(
        Error(program_.source, p.range,
              fmt::format("{} writes a part of '{}' only, whose shape is {}: give the ranges of its "
                          "indices with 'where' if that is meant",
                          program_.source->text(p.range), tensor.name, shape_text(constant_shape(tensor)))));
  }
  return {};
}

Result<Program> Specialisation::run() {
  check_complete();
  TC_TRY_VOID(check_preconditions());
  const std::vector<Precondition> preconditions = program_.preconditions;
  TC_TRY_VOID(substitute_tensors());
  substitute_statements();
  program_.sizes.clear();
  program_.preconditions.clear();
  for (Scalar& scalar : program_.scalars) {
    if (scalar.specialised) scalar.value = bindings_.scalars.at(scalar.name);
  }
  Prover prover(program_, deadline_);
  TC_TRY_VOID(check_written_in_full(preconditions, prover));
  for (Statement& statement : program_.statements) {
    TC_TRY_VOID(check_statement(statement, prover));
    statement.value = RelaxChoices(program_, statement, prover).mutate(statement.value);
  }
  return std::move(program_);
}

}  // namespace

Result<Program> specialise(const Program& program, const Bindings& bindings, const Deadline& deadline) {
  try {
    return Specialisation(program, bindings, deadline).run();
  } catch (const OutOfTime& out) {
    return tl::unexpected(out.error);
  } catch (const Halide::Error& error) {
    throw InternalError(fmt::format("Halide: {}", error.what()));
  }
}

}  // namespace tc::ir
