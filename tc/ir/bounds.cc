#include "tc/ir/bounds.h"

#include <fmt/format.h>

#include <set>

#include "tc/ir/coverage.h"
#include "tc/ir/expr_text.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/interval.h"
#include "tc/ir/prover.h"
#include "tc/ir/single_writes.h"
#include "tc/support/check.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

class BoundsProver {
 public:
  BoundsProver(Ranged ranged, const Deadline& deadline)
      : ranged_(std::move(ranged)), program_(ranged_.program), deadline_(deadline), prover_(program_, deadline) {}

  Result<Program> prove();

 private:
  void require(const Requirement& requirement);
  void check_access(size_t s, size_t a);
  void check_subscript(const Statement& statement, const Access& access, int d);
  void check_single_writes(const Statement& statement);
  std::string place_outside(const Statement& statement, const Access& access, int d);
  std::string sufficient_guard(const Statement& statement, const Access& access, int d);
  std::string sufficient_range(const Statement& statement, const Access& access, int d);
  void check_written_in_full(const Tensor& tensor);
  void add_precondition(const Expr& condition, const std::string& complaint, SourceRange range,
                        const std::string& remedy = {});
  std::string place_values(const Expr& condition) const;
  Ranges ranges_of(const Statement& statement) const;

  Ranged ranged_;
  Program& program_;
  const Deadline deadline_;
  Prover prover_;
  std::vector<Diagnostic> errors_;
  std::set<std::string> known_;  ///< conditions that are preconditions already
};

/// "N is {N} and M is {M}"
std::string BoundsProver::place_values(const Expr& condition) const {
  const std::set<std::string> used = variables_of(condition);
  std::vector<std::string> names;
  for (const std::string& size : program_.sizes) {
    if (used.contains(size)) names.push_back(size);
  }
  for (const Scalar& scalar : program_.scalars) {
    if (used.contains(scalar.name)) names.push_back(scalar.name);
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += fmt::format("{} is {{{}}}", names[i], names[i]);
  }
  return text;
}

void BoundsProver::add_precondition(const Expr& condition, const std::string& complaint, SourceRange range,
                                    const std::string& remedy) {
  const std::string text = to_text(condition);
  if (!known_.insert(text).second) return;
  program_.preconditions.push_back(
      {condition, fmt::format("{}: it needs {}, but {}{}", complaint, text, place_values(condition), remedy), range});
  prover_.assume(condition);
}

void BoundsProver::require(const Requirement& requirement) {
  const Expr condition = simplify_index(requirement.condition, program_.sizes);
  if (hi::is_const_one(condition)) return;
  const auto verdict = prover_.decide(condition);
  if (verdict && verdict->kind == Verdict::Kind::kProved) return;
  if (hi::is_const_zero(condition) || (verdict && verdict->kind == Verdict::Kind::kNever)) {
    const std::string needs = hi::is_const_zero(condition) ? "" : fmt::format(": it needs {}", to_text(condition));
    errors_.push_back({requirement.range, requirement.complaint + needs, {}});
    return;
  }
  add_precondition(verdict ? verdict->condition : condition, requirement.complaint, requirement.range);
}

Ranges BoundsProver::ranges_of(const Statement& statement) const {
  Ranges ranges;
  ranges.sizes = program_.sizes;
  for (const Index& i : statement.indices) ranges.solved.push(i.name, hi::Interval(i.begin, hi::simplify(i.end - 1)));
  return ranges;
}

/// Where an access leaves its tensor for all sizes: "at N".
std::string BoundsProver::place_outside(const Statement& statement, const Access& access, int d) {
  const Expr& subscript = access.subscripts[d];
  const IndexInterval reach = bounds_of(subscript, ranges_of(statement));
  const bool below = !prover_.excludes(statement, access.guard, subscript < 0);
  const Expr& end = below ? reach.lower : reach.upper;
  return to_text(end.defined() ? end : subscript);
}

/// What a `where` must say so that a write stays in bounds, if that is one index whose range its reads give: "i in
/// 1:N"; else "".
std::string BoundsProver::sufficient_range(const Statement& statement, const Access& access, int d) {
  const Expr& subscript = access.subscripts[d];
  const Expr& extent = program_.tensor(access.tensor).extents[d];
  const auto* variable = subscript.as<hi::Variable>();
  if (!variable || !access.is_write) return "";
  const auto index = std::ranges::find(statement.indices, variable->name, &Index::name);
  if (index == statement.indices.end() || index->given) return "";
  const bool is_below = !prover_.excludes(statement, access.guard, subscript < 0);
  const bool is_above = !prover_.excludes(statement, access.guard, subscript >= extent);
  const Expr begin = is_below ? index_constant(0) : index->begin, end = is_above ? extent : index->end;
  const auto verdict = prover_.decide(begin <= end + 1);
  if (!verdict || verdict->kind != Verdict::Kind::kProved) return "";
  return fmt::format("{} in {}:{}", index->name, to_text(begin), to_text(end));
}

/// R6: what a guard must say so that a read stays in bounds: "i + 1 < N".
std::string BoundsProver::sufficient_guard(const Statement& statement, const Access& access, int d) {
  const Expr& subscript = access.subscripts[d];
  const Expr& extent = program_.tensor(access.tensor).extents[d];
  std::string text;
  if (!prover_.excludes(statement, access.guard, subscript < 0)) text = fmt::format("{} >= 0", to_text(subscript));
  if (!prover_.excludes(statement, access.guard, subscript >= extent)) {
    text += fmt::format("{}{} < {}", text.empty() ? "" : " && ", to_text(subscript), to_text(extent));
  }
  return text;
}

void BoundsProver::check_subscript(const Statement& statement, const Access& access, int d) {
  const Tensor& tensor = program_.tensor(access.tensor);
  const Expr& extent = tensor.extents[d];
  const auto verdict = prover_.within(statement, access.subscripts[d], index_constant(0), extent, access.guard);
  if (verdict && verdict->kind == Verdict::Kind::kProved) return;
  const std::string text(program_.source->text(access.range));
  if (!verdict) {
    // Not affine for symbolic sizes. specialise() decides it for the sizes of a call.
    const std::string later = fmt::format("{} is decided when the sizes are known", text);
    if (known_.insert(later).second) program_.preconditions.push_back({Expr(), later, access.range});
    return;
  }
  if (verdict->kind == Verdict::Kind::kNever) {
    errors_.push_back(
        {access.range,
         fmt::format("'{}' has extent {} in dimension {}, but {} {} it at {}", tensor.name, to_text(extent), d, text,
                     access.is_write ? "writes" : "reads", place_outside(statement, access, d)),
         {{tensor.declared, fmt::format("'{}' is declared here", tensor.name)}}});
    if (access.guard.defined()) {
      errors_.back().notes.push_back(
          {std::nullopt, fmt::format("add '{}' to its guard", sufficient_guard(statement, access, d))});
    } else if (const std::string where = sufficient_range(statement, access, d); !where.empty()) {
      errors_.back().notes.push_back(
          {std::nullopt, fmt::format("its reads give the range; 'where {}' leaves out what is outside", where)});
    }
    return;
  }
  const std::string remedy =
      access.guard.defined() ? fmt::format("; add '{}' to its guard", sufficient_guard(statement, access, d)) : "";
  add_precondition(verdict->condition,
                   fmt::format("{} {} outside '{}'", text, access.is_write ? "writes" : "reads", tensor.name),
                   access.range, remedy);
}

/// R10. Of several statements the first with an inferred range is named.
void BoundsProver::check_written_in_full(const Tensor& tensor) {
  const std::vector<InferredDimension> inferred = inferred_dimensions(program_, tensor);
  if (inferred.empty()) return;
  const auto [s, d] = inferred.front();
  const Statement& statement = program_.statements[s];
  const SourceRange range = statement.accesses.front().range;
  const std::string text(program_.source->text(range));
  const auto verdict = written_in_full(prover_, program_, tensor, inferred);
  if (!verdict) {
    const std::string later =
        fmt::format("whether {} writes all of '{}' is decided when the sizes are known", text, tensor.name);
    program_.preconditions.push_back({Expr(), later, range, tensor.name});
    return;
  }
  if (verdict->kind == Verdict::Kind::kProved) return;
  std::string ranges;
  for (const Index& index : statement.indices) {
    if (!mentions(statement.subscripts[d], index.name)) continue;
    ranges +=
        fmt::format("{}{} in {}:{}", ranges.empty() ? "" : ", ", index.name, to_text(index.begin), to_text(index.end));
  }
  const std::string complaint =
      fmt::format("{} writes a part of '{}' only, as its reads give {}", text, tensor.name, ranges);
  const std::string remedy = fmt::format("'where {}' if that is meant", ranges);
  if (verdict->kind == Verdict::Kind::kSometimes) {
    add_precondition(verdict->condition, complaint, range, "; write " + remedy);
    return;
  }
  errors_.push_back(
      {range,
       fmt::format("{}, and dimension {} has extent {}: write {}", complaint, d, to_text(tensor.extents[d]), remedy),
       {{tensor.declared, fmt::format("'{}' is declared here", tensor.name)}}});
}

void BoundsProver::check_access(size_t s, size_t a) {
  const Statement& statement = program_.statements[s];
  const Access& access = statement.accesses[a];
  if (access.exists_only) return;
  for (size_t d = 0; d < access.subscripts.size(); ++d) {
    if (is_data_dependent(access.subscripts[d])) continue;
    if (ranged_.in_bounds.contains({s, a, static_cast<int>(d)})) continue;
    check_subscript(statement, access, static_cast<int>(d));
  }
}

/// C7.
void BoundsProver::check_single_writes(const Statement& statement) {
  if (!may_set_twice(statement)) return;
  const auto verdict = prover_.writes_once(statement);
  if (verdict && verdict->kind == Verdict::Kind::kProved) return;
  const Access& write = statement.accesses[0];
  const std::string text(program_.source->text(write.range));
  if (!verdict) {
    const std::string later =
        fmt::format("whether {} writes an element twice is decided when the sizes are known", text);
    program_.preconditions.push_back({Expr(), later, write.range});
    return;
  }
  if (verdict->kind == Verdict::Kind::kNever) {
    errors_.push_back({write.range, written_twice(text, statement, prover_.collision(statement)), {}});
    return;
  }
  add_precondition(verdict->condition, fmt::format("{} writes an element twice", text), write.range);
}

Result<Program> BoundsProver::prove() {
  for (const Requirement& requirement : ranged_.requirements) require(requirement);
  for (const Tensor& tensor : program_.tensors) {
    for (int d = 0; d < tensor.rank(); ++d) {
      if (tensor.role == Role::kInput) continue;
      require({tensor.extents[d] >= 0, fmt::format("the extent of '{}' in dimension {} is negative", tensor.name, d),
               tensor.declared});
    }
  }
  if (errors_.empty()) {
    for (size_t s = 0; s < program_.statements.size(); ++s) {
      for (size_t a = 0; a < program_.statements[s].accesses.size(); ++a) {
        deadline_.check();
        check_access(s, a);
      }
    }
    for (const Statement& statement : program_.statements) check_single_writes(statement);
  }
  if (errors_.empty()) {
    for (const Tensor& tensor : program_.tensors) {
      if (tensor.annotated && tensor.role != Role::kInput) check_written_in_full(tensor);
    }
  }
  if (!errors_.empty()) return tl::unexpected(Error(program_.source, std::move(errors_)));
  return std::move(program_);
}

}  // namespace

Result<Program> prove_bounds(Ranged ranged, const Deadline& deadline) {
  return BoundsProver(std::move(ranged), deadline).prove();
}

std::vector<RunTimeCheck> run_time_checks(const Program& program) {
  std::vector<RunTimeCheck> checks;
  for (const Statement& s : program.statements) {
    for (const Access& a : s.accesses) {
      if (a.exists_only) continue;
      for (size_t d = 0; d < a.subscripts.size(); ++d) {
        if (!is_data_dependent(a.subscripts[d])) continue;
        const Expr guard = conjunction(s.guard, a.guard);
        const Expr& extent = program.tensor(a.tensor).extents[d];
        checks.push_back({s.id, a.tensor, static_cast<int>(d), a.subscripts[d], extent, guard, a.is_write, a.range});
      }
    }
  }
  return checks;
}

}  // namespace tc::ir
