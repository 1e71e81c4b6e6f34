#include "tc/ir/check_subscripts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tc/ir/index_expr.h"
#include "tc/ir/unproved_checks.h"
#include "tc/ir/whole_tensor.h"
#include "tc/support/check.h"

namespace tc::ir {
namespace {

using Halide::Expr;
namespace hi = Halide::Internal;

int64_t extent_of(const Program& program, const std::string& tensor, size_t dimension) {
  const auto extent = constant_value(program.tensor(tensor).extents[dimension]);
  TC_CHECK(extent, "'{}' has no constant extents", tensor);
  return *extent;
}

/// What index arithmetic makes of data, without the cast to the index type where no other arithmetic is done.
Expr data_of(const Expr& subscript) {
  const auto* cast = subscript.as<hi::Cast>();
  const bool is_plain = cast && cast->type == index_type() && cast->value.type().is_int_or_uint() &&
                        !cast->value.type().is_bool() && cast->value.type().bits() <= 32;
  return is_plain ? cast->value : subscript;
}

/// Whether the type of the data keeps the subscript inside: bytes that look up 256 elements.
bool fits_by_type(const Expr& subscript, int64_t extent) {
  const Halide::Type type = data_of(subscript).type();
  return type.is_uint() && type.bits() <= 32 && (int64_t{1} << type.bits()) <= extent;
}

/// Keeps data-dependent subscripts of reads inside their tensors.
class ClampReads : public hi::IRMutator {
 public:
  explicit ClampReads(const Program& program) : program_(program) {}

  /// From now on only subscripts of a statement that these checks are about.
  void only(const Statement& statement, const std::vector<RunTimeCheck>& checks) {
    checks_.clear();
    for (const RunTimeCheck& check : checks) {
      if (check.statement == statement.id) checks_.push_back(&check);
    }
  }

  bool is_checked(const std::string& tensor, size_t dimension, const Expr& subscript) const {
    return is_data_dependent(subscript) && std::ranges::any_of(checks_, [&](const RunTimeCheck* check) {
             return check->tensor == tensor && static_cast<size_t>(check->dimension) == dimension &&
                    hi::graph_equal(check->subscript, subscript);
           });
  }

  Expr clamped(const std::string& tensor, size_t dimension, const Expr& subscript) {
    const Expr inside = mutate(subscript);
    const int64_t extent = extent_of(program_, tensor, dimension);
    if (!is_checked(tensor, dimension, subscript) || fits_by_type(subscript, extent)) return inside;
    return hi::Max::make(hi::Min::make(inside, index_constant(extent - 1)), index_constant(0));
  }

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* call) override {
    if (!is_tensor_read(program_, call)) return IRMutator::visit(call);
    std::vector<Expr> subscripts;
    for (size_t d = 0; d < call->args.size(); ++d) {
      // An access that leaves a tensor without elements has no element to read instead.
      if (is_data_dependent(call->args[d]) && extent_of(program_, call->name, d) == 0) return hi::make_zero(call->type);
      subscripts.push_back(clamped(call->name, d, call->args[d]));
    }
    return hi::Call::make(call->type, call->name, subscripts, hi::Call::PureExtern);
  }

  const Program& program_;
  std::vector<const RunTimeCheck*> checks_;
};

/// Lists the reads of an expression, each with the conditions under which it is evaluated.
class ListReads : public hi::IRVisitor {
 public:
  ListReads(const Program& program, Statement& statement) : program_(program), statement_(statement) {}

 private:
  using IRVisitor::visit;
  void visit(const hi::Call* call) override {
    if (call->is_intrinsic(hi::Call::if_then_else)) {
      call->args[0].accept(this);
      const Expr outer = guard_;
      guard_ = conjunction(outer, call->args[0]);
      call->args[1].accept(this);
      guard_ = conjunction(outer, !call->args[0]);
      call->args[2].accept(this);
      guard_ = outer;
      return;
    }
    if (is_tensor_read(program_, call)) {
      statement_.accesses.push_back({call->name, call->args, guard_, false, false, statement_.range});
    }
    IRVisitor::visit(call);
  }

  const Program& program_;
  Statement& statement_;
  Expr guard_;
};

void list_accesses(const Program& program, Statement& statement) {
  statement.accesses = {{statement.tensor, statement.subscripts, Expr(), true, false, statement.range}};
  ListReads reads(program, statement);
  for (const Expr& subscript : statement.subscripts) subscript.accept(&reads);
  if (statement.guard.defined()) statement.guard.accept(&reads);
  statement.value.accept(&reads);
}

bool has_instances(const Statement& statement) {
  return std::ranges::all_of(statement.indices, [](const Index& index) {
    const auto begin = constant_value(index.begin), end = constant_value(index.end);
    return begin && end && *begin < *end;
  });
}

class SubscriptChecker {
 public:
  explicit SubscriptChecker(Program program) : source_(std::move(program)), clamp_(source_) {}

  CheckedProgram run_without_data() {
    const std::vector<RunTimeCheck> checks = checks_to_try(source_);
    result_.program = source_;
    result_.program.statements.clear();
    result_.program.tensors.clear();
    result_.program.parameters.clear();
    result_.program.results.clear();
    result_.program.scalars.clear();  // those that are compiled in have their values in the expressions
    for (const Statement& statement : source_.statements) {
      if (has_instances(statement)) add_checks(statement, checks);
    }
    return std::move(result_);
  }

  Result<CheckedProgram> run() {
    result_.program = source_;
    result_.program.statements.clear();
    const std::vector<RunTimeCheck> checks = unproved_checks(source_);
    for (const Statement& statement : source_.statements) {
      clamp_.only(statement, checks);
      if (has_instances(statement)) add_checks(statement, checks);
      add_checked(statement);
    }
    if (result_.checks.size() > kMaxSubscriptChecks) {
      return fail(
          "'{}' has {} data-dependent subscripts; up to {} can be checked when the kernel runs, which check_bounds "
          "asks "
          "for",
          source_.name, result_.checks.size(), kMaxSubscriptChecks);
    }
    return std::move(result_);
  }

 private:
  struct Known {
    Expr value, guard;  ///< no guard: undefined
    int64_t extent;
  };
  static bool same(const Expr& a, const Expr& b) {
    return a.defined() == b.defined() && (!a.defined() || hi::graph_equal(a, b));
  }

  /// A subscript that several accesses have in common is checked once.
  void add_checks(const Statement& statement, const std::vector<RunTimeCheck>& checks) {
    std::vector<Known> known;
    for (const RunTimeCheck& check : checks) {
      if (check.statement != statement.id) continue;
      const int64_t extent = extent_of(source_, check.tensor, static_cast<size_t>(check.dimension));
      if (fits_by_type(check.subscript, extent)) continue;
      SubscriptCheck found{.statement = statement.id,
                           .tensor = check.tensor,
                           .dimension = check.dimension,
                           .extent = extent,
                           .range = check.range};
      const Expr value = clamp_.mutate(data_of(check.subscript));
      const Expr guard = check.guard.defined() ? clamp_.mutate(check.guard) : Expr();
      const bool is_known = std::ranges::any_of(
          known, [&](const Known& k) { return k.extent == extent && same(k.value, value) && same(k.guard, guard); });
      if (is_known) continue;
      known.push_back({value, guard, extent});
      found.type = from_halide(value.type());
      found.found = add_result(statement, extent, value, guard);
      result_.checks.push_back(std::move(found));
    }
  }

  /// found max=! value, over the indices that it depends on.
  std::string add_result(const Statement& of, int64_t extent, const Expr& subscript, const Expr& guard) {
    Program& program = result_.program;
    const Halide::Type type = subscript.type().with_code(halide_type_uint);
    // Of a tensor without elements every subscript is outside.
    const Expr value = extent == 0 ? type.max() : hi::Cast::make(type, subscript);
    const std::string name = fresh_name(program, fmt::format("subscript_{}", result_.checks.size()));
    program.tensors.push_back({name, type, {}, Role::kResult, of.range});
    program.results.push_back(name);
    Statement s;
    s.id = fmt::format("{}_subscript_{}", of.id, result_.checks.size());
    s.tensor = name;
    s.assign = Assign::kMax;
    s.initialises = true;
    s.accumulator = type;
    s.range = of.range;
    s.value = value;
    if (guard.defined()) {
      const std::vector<Expr> choice = {guard, value, hi::make_zero(type)};
      s.value = hi::Call::make(type, hi::Call::if_then_else, choice, hi::Call::PureIntrinsic);
    }
    for (const Index& index : of.indices) {
      if (!mentions(s.value, index.name)) continue;
      s.indices.push_back(index);
      s.indices.back().is_reduction = true;
    }
    list_accesses(program, s);
    program.statements.push_back(std::move(s));
    return name;
  }

  /// The statement with its accesses kept inside. One whose left side has no elements to update goes.
  void add_checked(Statement s) {
    Expr inside;  // undefined: always
    std::vector<Expr> subscripts;
    for (size_t d = 0; d < s.subscripts.size(); ++d) {
      const Expr& subscript = s.subscripts[d];
      const int64_t extent = extent_of(source_, s.tensor, d);
      subscripts.push_back(clamp_.clamped(s.tensor, d, subscript));
      if (!clamp_.is_checked(s.tensor, d, subscript) || fits_by_type(subscript, extent)) continue;
      if (extent == 0) return;
      const Expr at = clamp_.mutate(subscript);
      inside = conjunction(inside, conjunction(at >= index_constant(0), at < index_constant(extent)));
    }
    const Expr value = clamp_.mutate(s.value);
    const Expr guard = s.guard.defined() ? clamp_.mutate(s.guard) : Expr();
    const bool is_same =
        value.same_as(s.value) && guard.same_as(s.guard) &&
        std::ranges::equal(subscripts, s.subscripts, [](const Expr& a, const Expr& b) { return a.same_as(b); });
    if (!is_same) {
      TC_CHECK(!inside.defined() || s.reduces(), "{} sets elements that data choose", s.id);
      s.value = value;
      if (inside.defined()) s.value = hi::Select::make(inside, value, identity_of(s.assign, value.type()));
      s.guard = guard;
      s.subscripts = std::move(subscripts);
      list_accesses(source_, s);
    }
    result_.program.statements.push_back(std::move(s));
  }

  Program source_;
  ClampReads clamp_;
  CheckedProgram result_;
};

}  // namespace

CheckedProgram checks_without_data(const Program& specialised) {
  return SubscriptChecker(specialised).run_without_data();
}

Result<CheckedProgram> check_subscripts(Program specialised) { return SubscriptChecker(std::move(specialised)).run(); }

std::string violation(const SubscriptCheck& check, int64_t found) {
  const auto sentence = [&](const std::string& value) {
    return fmt::format("subscript {} of '{}' is {}outside [0, {}), in statement {}", check.dimension, check.tensor,
                       value, check.extent, check.statement);
  };
  if (check.extent == 0) return found == 0 ? "" : sentence("");
  return found >= 0 && found < check.extent ? "" : sentence(fmt::format("{}, ", found));
}

}  // namespace tc::ir
