#include "tc/ir/from_lang.h"

#include <algorithm>

#include "tc/ir/accumulators.h"
#include "tc/ir/bounds.h"
#include "tc/ir/convert.h"
#include "tc/ir/in_place.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/ranges.h"
#include "tc/support/check.h"

namespace tc::ir {

using Halide::Expr;

namespace {

Role role_of(lang::Role role) {
  switch (role) {
    case lang::Role::kInput:
      return Role::kInput;
    case lang::Role::kResult:
      return Role::kResult;
    case lang::Role::kInOut:
      return Role::kInOut;
    case lang::Role::kTemporary:
      return Role::kTemporary;
  }
  TC_CHECK(false, "unknown role");
}

Assign assign_of(lang::AssignOp op) {
  switch (op) {
    case lang::AssignOp::kSet:
      return Assign::kSet;
    case lang::AssignOp::kSum:
    case lang::AssignOp::kSumInit:
      return Assign::kAdd;
    case lang::AssignOp::kProduct:
    case lang::AssignOp::kProductInit:
      return Assign::kMul;
    case lang::AssignOp::kMin:
    case lang::AssignOp::kMinInit:
      return Assign::kMin;
    case lang::AssignOp::kMax:
    case lang::AssignOp::kMaxInit:
      return Assign::kMax;
  }
  TC_CHECK(false, "unknown assignment");
}

/// T3.
Halide::Type accumulator_of(Assign assign, Halide::Type type) {
  if (is_float8(type)) return assign == Assign::kSet ? type : Halide::Float(32);
  if ((assign != Assign::kAdd && assign != Assign::kMul) || type.bits() >= 32 || type.is_bool()) return type;
  return type.is_float() ? Halide::Float(32) : Halide::Int(32);
}

/// Names, types and declared shapes. Extents that nobody declares stay undefined.
Program signature_of(const lang::TypedDefinition& definition, const SourcePtr& source, const CompiledIn& scalars) {
  Program program;
  program.name = definition.name;
  program.source = source;
  for (const lang::Size& size : definition.sizes) program.sizes.push_back(size.name);
  for (const lang::Scalar& s : definition.scalars) {
    const auto value = scalars.values.find(s.name);
    program.scalars.push_back({s.name, to_halide(s.type), scalars.names.contains(s.name), s.range});
    if (scalars.names.contains(s.name) && value != scalars.values.end()) program.scalars.back().value = value->second;
  }
  Converter converter(definition, nullptr, scalars);
  for (const lang::Tensor& t : definition.tensors) {
    Tensor tensor{t.name,          to_halide(t.type), std::vector<Expr>(t.rank),
                  role_of(t.role), t.range,           t.dimensions.has_value()};
    for (int d = 0; t.dimensions && d < t.rank; ++d) {
      tensor.extents[d] = simplify_index(converter.convert(t.dimensions->at(d)), program.sizes);
    }
    program.tensors.push_back(std::move(tensor));
  }
  for (const lang::Argument& a : definition.arguments) {
    program.parameters.push_back(a.is_scalar ? definition.scalars[a.id].name : definition.tensors[a.id].name);
  }
  for (int result : definition.results) program.results.push_back(definition.tensors[result].name);
  return program;
}

Index convert_index(Converter& converter, const lang::Index& index) {
  Index result;
  result.name = index.name;
  result.is_reduction = index.kind == lang::IndexKind::kReduction;
  result.range = index.range;
  if (index.given) {
    result.begin = converter.convert(index.given->low);
    result.end = converter.convert(index.given->high);
    result.given = true;
    result.range = index.given->range;
  }
  return result;
}

Statement convert_statement(const lang::TypedDefinition& definition, const lang::TypedStatement& from,
                            const CompiledIn& scalars) {
  Converter converter(definition, &from, scalars);
  const lang::Tensor& tensor = definition.tensors[from.tensor];
  Statement result;
  result.tensor = tensor.name;
  result.assign = assign_of(from.op);
  result.initialises = lang::starts_from_identity(from.op);
  result.range = from.range;
  for (const lang::Index& index : from.indices) result.indices.push_back(convert_index(converter, index));
  for (const lang::TypedExprPtr& subscript : from.subscripts) result.subscripts.push_back(converter.convert(subscript));
  result.accumulator = accumulator_of(result.assign, to_halide(tensor.type));
  const bool sums = result.assign == Assign::kAdd || result.assign == Assign::kMul;
  result.value = sums ? converter.widen(from.right, result.accumulator) : converter.convert(from.right);
  const size_t executed = converter.accesses.size();
  for (const lang::TypedExprPtr& extra : from.exists) converter.convert(extra);

  Access write;
  write.tensor = result.tensor;
  write.subscripts = result.subscripts;
  write.is_write = true;
  write.range = from.left_range;
  result.accesses.push_back(std::move(write));
  for (size_t i = 0; i < converter.accesses.size(); ++i) {
    result.accesses.push_back(converter.accesses[i]);
    result.accesses.back().exists_only = i >= executed;
  }
  result.index_values = std::move(converter.index_values);
  return result;
}

/// The def without ranges.
Program convert(const lang::TypedDefinition& definition, const SourcePtr& source, const CompiledIn& scalars) {
  Program program = signature_of(definition, source, scalars);
  for (const lang::TypedStatement& statement : definition.statements) {
    program.statements.push_back(convert_statement(definition, statement, scalars));
  }
  return program;
}

Program numbered(Program program) {
  for (size_t i = 0; i < program.statements.size(); ++i) program.statements[i].id = fmt::format("S{}", i);
  return program;
}

Result<Program> infer(Program program, const Deadline& deadline) {
  TC_TRY(ranged, infer_ranges(std::move(program), deadline));
  TC_TRY(proved, prove_bounds(std::move(ranged), deadline));
  // A fill after the snapshot of what it overwrites (C3).
  proved = fill_scattered(snapshot_own_reads(std::move(proved)));
  try {
    return numbered(fill_temporaries(widen_accumulators(std::move(proved)), deadline));
  } catch (const OutOfTime& over) {
    return tl::unexpected(over.error);
  }
}

bool names_any(const Expr& e, const std::set<std::string>& names) {
  const std::set<std::string> used = variables_of(e);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return used.contains(name); });
}

/// Collects names in comparisons of index arithmetic. A comparison with data bounds nothing.
class Comparisons : public Halide::Internal::IRVisitor {
 public:
  explicit Comparisons(const Program& program) : program_(program) {}
  std::set<std::string> names;

 private:
  using IRVisitor::visit;
  template <typename Op>
  void compare(const Op* op) {
    reads_ = false;
    IRVisitor::visit(op);
    if (!reads_) names.merge(variables_of(Expr(op)));
  }
  void visit(const Halide::Internal::EQ* op) override { compare(op); }
  void visit(const Halide::Internal::NE* op) override { compare(op); }
  void visit(const Halide::Internal::LT* op) override { compare(op); }
  void visit(const Halide::Internal::LE* op) override { compare(op); }
  void visit(const Halide::Internal::GT* op) override { compare(op); }
  void visit(const Halide::Internal::GE* op) override { compare(op); }
  void visit(const Halide::Internal::Call* op) override {
    reads_ = reads_ || is_tensor_read(program_, op);
    IRVisitor::visit(op);
  }
  const Program& program_;
  bool reads_ = false;
};

std::set<std::string> names_in_bounds(const Program& program, const Expr& guard) {
  Comparisons comparisons(program);
  if (guard.defined()) guard.accept(&comparisons);
  return comparisons.names;
}

/// Integer scalars in guards of reads that are not compiled in so far.
std::set<std::string> scalars_in_guards(const Program& program) {
  std::set<std::string> candidates;
  for (const Scalar& s : program.scalars) {
    const bool integer = (s.type.is_int() || s.type.is_uint()) && !s.type.is_bool();
    if (integer && !s.specialised) candidates.insert(s.name);
  }
  std::set<std::string> found;
  for (const Statement& statement : program.statements) {
    for (const Access& access : statement.accesses) {
      for (const std::string& name : names_in_bounds(program, access.guard)) {
        if (candidates.contains(name)) found.insert(name);
      }
    }
  }
  return found;
}

/// True where neither a range nor a bound in a Program depends on the guards with these scalars, which the proofs have
/// taken to hold everywhere: then they hold for all values of the scalars.
bool is_independent_of(const Program& program, const std::set<std::string>& scalars) {
  std::vector<SourceRange> guarded;
  for (const Statement& statement : program.statements) {
    for (const Access& access : statement.accesses) {
      if (names_any(access.guard, scalars)) guarded.push_back(access.range);
    }
  }
  const auto is_guarded = [&](const SourceRange& range) {
    return std::find(guarded.begin(), guarded.end(), range) != guarded.end();
  };
  for (const Statement& statement : program.statements) {
    for (const Index& index : statement.indices) {
      for (const RangeEnd* by : {&index.begin_by, &index.end_by}) {
        const bool by_guards = by->rule == RangeRule::kGuardedReads || by->rule == RangeRule::kBesideGuards;
        if (by_guards && (by->reads.empty() || std::any_of(by->reads.begin(), by->reads.end(), is_guarded)))
          return false;
      }
    }
  }
  return std::none_of(program.preconditions.begin(), program.preconditions.end(),
                      [&](const Precondition& p) { return is_guarded(p.range); });
}

bool is_users(const Error& error) { return error.kind() == ErrorKind::kUser; }

/// The first error names the numbers that stand in the places of scalars.
Error with_scalar_values(const Error& error, const Program& program) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& diagnostic : diagnostics) {
    for (const Scalar& scalar : program.scalars) {
      if (!scalar.value) continue;
      diagnostic.notes.push_back({scalar.declared, fmt::format("'{}' is {} here", scalar.name, *scalar.value)});
    }
  }
  const ErrorKind kind = error.kind();
  return Error(error.source(), std::move(diagnostics)).with_kind(kind);
}

/// A Program that waits for the values of its scalars.
Program opened(Program program) {
  program.open = true;
  return numbered(std::move(program));
}

class FrontEnd {
 public:
  FrontEnd(const lang::TypedDefinition& definition, const SourcePtr& source, const Deadline& deadline,
           const ScalarValues& values)
      : definition_(definition), source_(source), deadline_(deadline), values_(values) {
    for (const lang::Scalar& s : definition.scalars) {
      if (s.compiled_in) scalars_.names.insert(s.name);
    }
  }

  Result<Program> run() {
    const Program plain = convert(definition_, source_, scalars_);
    const std::set<std::string> in_guards = scalars_in_guards(plain);
    if (!in_guards.empty() && scalars_.names.empty()) {
      Result<Program> attempt = infer(plain, deadline_);
      if (!attempt && !is_users(attempt.error())) return attempt;
      if (attempt && is_independent_of(*attempt, in_guards)) return attempt;
    }
    scalars_.names.insert(in_guards.begin(), in_guards.end());
    if (scalars_.names.empty()) return infer(plain, deadline_);
    return with_scalars();
  }

 private:
  Result<Program> with_scalars() {
    const bool all = std::all_of(scalars_.names.begin(), scalars_.names.end(),
                                 [&](const std::string& name) { return values_.contains(name); });
    if (all) scalars_.values = values_;
    Program program = convert(definition_, source_, scalars_);
    Result<Program> inferred = infer(program, deadline_);
    if (inferred || !is_users(inferred.error())) return inferred;
    if (all) return tl::unexpected(with_scalar_values(inferred.error(), program));
    return opened(std::move(program));
  }

  const lang::TypedDefinition& definition_;
  const SourcePtr& source_;
  const Deadline& deadline_;
  const ScalarValues& values_;
  CompiledIn scalars_;
};

}  // namespace

Result<Program> from_lang(const lang::TypedDefinition& definition, const SourcePtr& source, const Deadline& deadline,
                          const ScalarValues& scalars) {
  try {
    return FrontEnd(definition, source, deadline, scalars).run();
  } catch (const OutOfTime& out) {
    return tl::unexpected(out.error);
  } catch (const Halide::Error& error) {
    throw InternalError(fmt::format("Halide: {}", error.what()));
  }
}

Result<Program> from_lang(const lang::TypedProgram& file, const std::string& entry, const Deadline& deadline,
                          const ScalarValues& scalars) {
  std::string names;
  for (const lang::TypedDefinition& definition : file.definitions) {
    const bool only = entry.empty() && file.definitions.size() == 1;
    if (only || definition.name == entry) return from_lang(definition, file.source, deadline, scalars);
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", definition.name);
  }
  if (entry.empty())
    return fail("'{}' has {} defs ({}): name one", file.source->name(), file.definitions.size(), names);
  return fail("'{}' has no def '{}', only {}", file.source->name(), entry, names);
}

}  // namespace tc::ir
