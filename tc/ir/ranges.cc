#include "tc/ir/ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tc/ir/expr_text.h"
#include "tc/ir/guarded_range.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/interval.h"
#include "tc/ir/prover.h"
#include "tc/support/check.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

bool is_solved(const Index& index) { return index.begin.defined() && index.end.defined(); }

Index* find_index(Statement& statement, const std::string& name) {
  for (Index& index : statement.indices) {
    if (index.name == name) return &index;
  }
  return nullptr;
}

std::vector<std::string> index_names(const Statement& statement) {
  std::vector<std::string> names;
  for (const Index& index : statement.indices) names.push_back(index.name);
  return names;
}

/// Indices of an expression that have no range yet.
std::vector<std::string> unsolved_in(Statement& statement, const Expr& e) {
  std::vector<std::string> result;
  for (const std::string& name : variables_of(e)) {
    const Index* index = find_index(statement, name);
    if (index && !is_solved(*index)) result.push_back(name);
  }
  return result;
}

/// What one round found out about one index.
struct Found {
  Expr lower = index_constant(0);  // R1
  Expr upper;                      ///< inclusive
  RangeEnd lower_by{RangeRule::kStart};
  RangeEnd upper_by{RangeRule::kReads};
  bool waits = false;      ///< also stands in a tensor whose extent is not known yet
  bool irregular = false;  ///< also stands in a subscript that goes up and down
  std::vector<Requirement> requirements;
  std::vector<std::tuple<size_t, size_t, int>> in_bounds;
};

/// Which bounds a round may use. Each effort is made only where the ones before it and R3 lead nowhere.
enum class Effort {
  kKnownReads,      ///< an index waits for the extents of all tensors that it is read in
  kPartialReads,    ///< those whose extents are known
  kGuardedReads,    ///< R6: all reads behind a guard, of an index that nothing else bounds
  kPartialGuarded,  ///< R6: those whose extents are known
  kAnyGuarded,      ///< R6, of an index that also waits for the extent of a read without a guard
};
constexpr size_t kEfforts = 5;

/// What makes it worth while to examine a statement again: it has changed since each effort looked at it last.
struct Changed {
  bool by_effort[kEfforts] = {true, true, true, true, true};
  bool left[2] = {true, true};  ///< for take_left_extents()
};

class RangeSolver {
 public:
  RangeSolver(Program program, const Deadline& deadline)
      : program_(std::move(program)), deadline_(deadline), prover_(program_, deadline) {}

  Result<Ranged> solve();

 private:
  void note_uses();
  void touch(size_t s) { changed_[s] = Changed(); }
  void touch_users_of(const std::string& tensor);
  void take_given_ranges();
  bool run_round(Effort effort);
  std::optional<Found> find(size_t s, const Index& index, Effort effort);
  std::optional<Found> examine_exactly(size_t s, const std::string& index, bool guarded, bool waits = false);
  bool take_left_extents(bool even_if_waiting);
  bool finish_extents(bool from_some_writers);
  bool names_unknown_extent(const Expr& e) const;
  bool name_caller_extents();

  Ranges ranges_of(const Statement& statement) const;
  Found examine(size_t s, const std::string& index);
  void examine_subscript(size_t s, size_t a, int d, const std::string& index, const Ranges& ranges, Found& found);
  void add_requirements(size_t s, size_t a, int d, const std::string& index, const Expr& stride, const Expr& fits,
                        Found& found);
  void set_extent(Tensor& tensor, int d, Expr extent);
  Expr written_end(Statement& statement, int d);

  std::vector<Diagnostic> failures();
  Diagnostic unbounded(Statement& statement, const Index& index);
  std::optional<std::pair<Expr, Expr>> room_of(const std::string& index, const Statement& statement, const Access& of,
                                               const Substitution& others) const;
  std::vector<Note> candidates(Statement& statement, const Access& access, int d);
  Diagnostic unknown_extent(const Tensor& tensor, int d);

  Program program_;
  const Deadline deadline_;
  Prover prover_;
  Ranged result_;
  std::vector<Changed> changed_;                         ///< by statement
  std::map<std::string, std::vector<size_t>> users_;     ///< statements that read or write a tensor
  std::map<std::string, std::vector<size_t>> mentions_;  ///< statements that name a variable for an unknown extent
};

/// Which statements depend on which tensors.
void RangeSolver::note_uses() {
  changed_.assign(program_.statements.size(), Changed());
  std::set<std::string> unknown;
  for (const Tensor& tensor : program_.tensors) {
    for (int d = 0; d < tensor.rank(); ++d) {
      if (!tensor.extents[d].defined()) unknown.insert(extent_variable(tensor.name, d));
    }
  }
  for (size_t s = 0; s < program_.statements.size(); ++s) {
    deadline_.check();
    std::set<std::string> tensors{program_.statements[s].tensor}, names;
    for (const Access& access : program_.statements[s].accesses) tensors.insert(access.tensor);
    for (const std::string& tensor : tensors) users_[tensor].push_back(s);
    if (unknown.empty()) continue;
    transform_expressions(program_.statements[s], [&](const Expr& e) {
      names.merge(variables_of(e));
      return e;
    });
    for (const std::string& name : names) {
      if (unknown.contains(name)) mentions_[name].push_back(s);
    }
  }
}

void RangeSolver::touch_users_of(const std::string& tensor) {
  for (size_t s : users_[tensor]) touch(s);
}

Ranges RangeSolver::ranges_of(const Statement& statement) const {
  Ranges ranges;
  ranges.sizes = program_.sizes;
  for (const Index& index : statement.indices) {
    if (is_solved(index)) ranges.solved.push(index.name, hi::Interval(index.begin, hi::simplify(index.end - 1)));
  }
  return ranges;
}

void RangeSolver::set_extent(Tensor& tensor, int d, Expr extent) {
  tensor.extents[d] = simplify_index(extent, program_.sizes);
  touch_users_of(tensor.name);
  const std::string name = extent_variable(tensor.name, d);
  const Substitution known{{name, tensor.extents[d]}};
  const auto mentioned = mentions_.find(name);
  if (mentioned == mentions_.end()) return;
  for (Tensor& t : program_.tensors) {
    for (Expr& e : t.extents) e = substitute_variables(e, known);
  }
  for (Requirement& r : result_.requirements) r.condition = substitute_variables(r.condition, known);
  for (size_t s : mentioned->second) {
    transform_expressions(program_.statements[s], [&](const Expr& e) { return substitute_variables(e, known); });
    touch(s);
  }
}

/// Extents that a `where` names (`T.0`) and that are still unknown stay variables until set_extent() replaces them.
void RangeSolver::take_given_ranges() {
  for (Statement& s : program_.statements) {
    for (Index& index : s.indices) {
      if (!index.given) continue;
      index.begin = simplify_index(index.begin, program_.sizes);
      index.end = simplify_index(index.end, program_.sizes);
      index.begin_by = index.end_by = {RangeRule::kWhere};
      result_.requirements.push_back(
          {index.begin < index.end,
           fmt::format("the range '{}' is empty or reversed", program_.source->text(index.range)), index.range});
    }
  }
}

/// An interval from 0 on for a subscript that is the index itself, which most are.
std::optional<IndexInterval> plain_interval(const Expr& subscript, const Expr& extent) {
  if (!subscript.as<hi::Variable>()) return std::nullopt;
  return IndexInterval{index_constant(0), hi::simplify(extent - 1)};
}

/// Notes the read that gave one end `ours` where the reads before gave `old`, and both together `both`.
void merge_end(RangeEnd& by, const Expr& old, const Expr& both, const Expr& ours, SourceRange read) {
  if (old.defined() && hi::equal(old, both)) return;
  if (by.rule != RangeRule::kReads || hi::equal(ours, both)) by = {RangeRule::kReads};
  by.reads.push_back(read);
}

void RangeSolver::examine_subscript(size_t s, size_t a, int d, const std::string& index, const Ranges& ranges,
                                    Found& found) {
  Statement& statement = program_.statements[s];
  const Access& access = statement.accesses[a];
  const Expr& subscript = access.subscripts[d];
  const Expr extent = program_.tensor(access.tensor).extents[d];
  if (is_data_dependent(subscript)) return;
  if (unsolved_in(statement, subscript) != std::vector<std::string>{index}) return;
  if (!extent.defined()) {
    found.waits = true;
    return;
  }
  if (!is_monotone(subscript, index_names(statement))) {
    found.irregular = true;
    return;
  }
  const Expr coefficient = coefficient_of(subscript, index);
  if (coefficient.defined() && constant_value(coefficient) == 0) return;
  const bool strided = coefficient.defined() && !constant_value(coefficient);
  Expr room;
  std::optional<IndexInterval> interval;
  if (strided) {
    const Expr rest = hi::simplify(hi::substitute(index, index_constant(0), subscript));
    interval = solve_strided(rest, coefficient, extent, ranges, room);
  } else {
    interval = plain_interval(subscript, extent);
    if (!interval) interval = solve_subscript(subscript, extent, index, ranges);
  }
  if (!interval) return;
  const Expr first = interval->lower.defined() ? interval->lower : index_constant(0);
  Expr fits = simplify_index(hi::Max::make(first, index_constant(0)) <= interval->upper, program_.sizes);
  if (strided && hi::is_const_zero(first)) fits = simplify_index(room >= 0, program_.sizes);
  add_requirements(s, a, d, index, strided ? coefficient : Expr(), interval->upper.defined() ? fits : Expr(), found);
  if (interval->lower.defined()) {
    const Expr both = simplify_index(hi::Max::make(found.lower, interval->lower), program_.sizes);
    merge_end(found.lower_by, found.lower, both, interval->lower, access.range);
    found.lower = both;
  }
  if (interval->upper.defined()) {
    Expr both = found.upper.defined() ? hi::Min::make(found.upper, interval->upper) : interval->upper;
    both = simplify_index(both, program_.sizes);
    merge_end(found.upper_by, found.upper, both, interval->upper, access.range);
    found.upper = both;
  }
}

/// What the interval of one subscript takes for granted: a positive stride, and that a window fits (R4).
void RangeSolver::add_requirements(size_t s, size_t a, int d, const std::string& index, const Expr& stride,
                                   const Expr& fits, Found& found) {
  const Statement& statement = program_.statements[s];
  const Access& access = statement.accesses[a];
  const std::string text(program_.source->text(access.range));
  if (stride.defined()) {
    found.requirements.push_back(
        {stride >= 1, fmt::format("'{}' does not move forward in {}", index, text), access.range});
  }
  if (!fits.defined()) return;
  if (stride.defined()) found.in_bounds.emplace_back(s, a, d);
  const bool window = std::any_of(statement.indices.begin(), statement.indices.end(), [&](const Index& i) {
    return i.name != index && mentions(access.subscripts[d], i.name);
  });
  if (!window) return;
  found.requirements.push_back(
      {fits, fmt::format("no value of '{}' keeps {} inside '{}'", index, text, access.tensor), access.range});
}

Found RangeSolver::examine(size_t s, const std::string& index) {
  Found found;
  const Statement& statement = program_.statements[s];
  const Ranges ranges = ranges_of(statement);
  for (size_t a = 0; a < statement.accesses.size(); ++a) {
    const Access& access = statement.accesses[a];
    if (access.is_write || access.guard.defined()) continue;
    for (size_t d = 0; d < access.subscripts.size(); ++d) {
      examine_subscript(s, a, static_cast<int>(d), index, ranges, found);
    }
  }
  return found;
}

/// The range by all reads without a guard, or the one that guards leave an index that nothing else bounds (R6).
/// `waits`: only if the extents of all these reads are known.
std::optional<Found> RangeSolver::examine_exactly(size_t s, const std::string& index, bool guarded, bool waits) {
  Statement& statement = program_.statements[s];
  std::vector<GuardedSubscript> subscripts;
  std::vector<SourceRange> reads;
  for (const Access& access : statement.accesses) {
    if (access.is_write || access.guard.defined() != guarded) continue;
    for (size_t d = 0; d < access.subscripts.size(); ++d) {
      const Expr& subscript = access.subscripts[d];
      const Expr& extent = program_.tensor(access.tensor).extents[d];
      if (is_data_dependent(subscript)) continue;
      if (unsolved_in(statement, subscript) != std::vector<std::string>{index}) continue;
      if (!extent.defined() && waits) return std::nullopt;
      if (!extent.defined()) continue;
      subscripts.push_back({subscript, extent, access.guard});
      reads.push_back(access.range);
    }
  }
  if (subscripts.empty()) return std::nullopt;
  const auto range = guarded_range(prover_, statement, index, subscripts);
  if (!range) return std::nullopt;
  Found found;
  const RangeRule rule = guarded ? RangeRule::kGuardedReads : RangeRule::kReads;
  found.lower = simplify_index(range->begin, program_.sizes);
  found.upper = simplify_index(range->end - 1, program_.sizes);
  if (range->begin_by < reads.size()) found.lower_by = {rule, {reads[range->begin_by]}};
  found.upper_by = {guarded && range->beside_guards ? RangeRule::kBesideGuards : rule, {}};
  if (range->end_by < reads.size()) found.upper_by.reads.push_back(reads[range->end_by]);
  return found;
}

std::optional<Found> RangeSolver::find(size_t s, const Index& index, Effort effort) {
  Found found = examine(s, index.name);
  if (effort >= Effort::kGuardedReads) {
    if (found.waits && effort != Effort::kAnyGuarded) return std::nullopt;
    return examine_exactly(s, index.name, true, effort == Effort::kGuardedReads);
  }
  if (found.waits && effort == Effort::kKnownReads) return std::nullopt;
  if (found.irregular) {
    if (auto exact = examine_exactly(s, index.name, false)) return exact;
  }
  if (!found.upper.defined()) return std::nullopt;
  return found;
}

/// One round of R2. All indices are examined before any takes its range.
bool RangeSolver::run_round(Effort effort) {
  struct Solved {
    size_t statement;
    Index* index;
    Found found;
  };
  std::vector<Solved> solved;
  for (size_t s = 0; s < program_.statements.size(); ++s) {
    if (!std::exchange(changed_[s].by_effort[static_cast<size_t>(effort)], false)) continue;
    for (Index& index : program_.statements[s].indices) {
      deadline_.check();
      if (is_solved(index)) continue;
      if (auto found = find(s, index, effort)) solved.push_back({s, &index, *std::move(found)});
    }
  }
  for (auto& [s, index, found] : solved) {
    touch(s);
    index->begin = found.lower;
    index->end = simplify_index(found.upper + 1, program_.sizes);
    index->begin_by = std::move(found.lower_by);
    index->end_by = std::move(found.upper_by);
    if (constant_value(found.lower) != 0) {
      found.requirements.push_back({simplify_index(index->begin <= index->end, program_.sizes),
                                    fmt::format("the range of '{}' is reversed", index->name), index->range});
    }
    for (Requirement& r : found.requirements) result_.requirements.push_back(std::move(r));
    result_.in_bounds.insert(found.in_bounds.begin(), found.in_bounds.end());
  }
  return !solved.empty();
}

/// R3: an index that stands alone on the left takes its tensor's extent.
bool RangeSolver::take_left_extents(bool even_if_waiting) {
  bool progress = false;
  for (size_t s = 0; s < program_.statements.size(); ++s) {
    if (!std::exchange(changed_[s].left[even_if_waiting], false)) continue;
    Statement& statement = program_.statements[s];
    const Tensor& tensor = program_.tensor(statement.tensor);
    for (int d = 0; d < tensor.rank(); ++d) {
      deadline_.check();
      const auto* variable = statement.subscripts[d].as<hi::Variable>();
      Index* index = variable ? find_index(statement, variable->name) : nullptr;
      if (!index || is_solved(*index) || !tensor.extents[d].defined()) continue;
      if (!even_if_waiting && examine(s, index->name).waits) continue;
      index->begin = index_constant(0);
      index->end = tensor.extents[d];
      index->begin_by = {RangeRule::kStart};
      index->end_by = {tensor.annotated ? RangeRule::kAnnotation : RangeRule::kOtherExtent};
      touch(s);
      progress = true;
    }
  }
  return progress;
}

/// One past the largest subscript that a statement writes; undefined if it is not known.
Expr RangeSolver::written_end(Statement& statement, int d) {
  const Expr& subscript = statement.subscripts[d];
  if (is_data_dependent(subscript) || !unsolved_in(statement, subscript).empty()) return Expr();
  if (const auto* variable = subscript.as<hi::Variable>()) {
    if (const Index* index = find_index(statement, variable->name)) return index->end;
  }
  const Expr largest = bounds_of(hi::simplify(subscript), ranges_of(statement)).upper;
  return largest.defined() ? simplify_index(hi::Max::make(largest + 1, index_constant(0)), program_.sizes) : Expr();
}

/// True for an expression over the extent of a tensor that is itself still to be found.
bool RangeSolver::names_unknown_extent(const Expr& e) const {
  const std::set<std::string> names = variables_of(e);
  for (const Tensor& tensor : program_.tensors) {
    for (int d = 0; d < tensor.rank(); ++d) {
      if (!tensor.extents[d].defined() && names.contains(extent_variable(tensor.name, d))) return true;
    }
  }
  return false;
}

/// R5: extents from the statements that write. With `from_some_writers`, those that have their ranges speak for the
/// others, for the first tensor where that helps.
bool RangeSolver::finish_extents(bool from_some_writers) {
  bool progress = false;
  for (Tensor& tensor : program_.tensors) {
    for (int d = 0; d < tensor.rank(); ++d) {
      if (tensor.extents[d].defined()) continue;
      deadline_.check();
      Expr extent;
      bool all = true;
      for (size_t user : users_[tensor.name]) {
        Statement& s = program_.statements[user];
        if (s.tensor != tensor.name || is_data_dependent(s.subscripts[d])) continue;
        const Expr end = written_end(s, d);
        all = all && end.defined();
        if (end.defined()) extent = extent.defined() ? hi::Max::make(extent, end) : end;
      }
      if (!extent.defined() || names_unknown_extent(extent) || (!all && !from_some_writers)) continue;
      set_extent(tensor, d, extent);
      progress = true;
    }
    if (progress && from_some_writers) return true;
  }
  return progress;
}

/// Extents of in-out tensors that no statement determines are sizes that the caller's tensor gives.
bool RangeSolver::name_caller_extents() {
  for (Tensor& tensor : program_.tensors) {
    if (tensor.role != Role::kInOut) continue;
    for (int d = 0; d < tensor.rank(); ++d) {
      if (tensor.extents[d].defined()) continue;
      program_.sizes.push_back(extent_variable(tensor.name, d));
      tensor.extents[d] = index_variable(program_.sizes.back());
      touch_users_of(tensor.name);
      return true;
    }
  }
  return false;
}

/// Where an index may be so that `of` and all other reads but those behind a guard stay inside: [begin, end). None
/// where a read's tensor has no extent yet, or the solver finds no interval.
std::optional<std::pair<Expr, Expr>> RangeSolver::room_of(const std::string& index, const Statement& statement,
                                                          const Access& of, const Substitution& others) const {
  Expr begin = index_constant(0), end;
  for (const Access& access : statement.accesses) {
    if (access.is_write || (access.guard.defined() && &access != &of)) continue;
    for (size_t d = 0; d < access.subscripts.size(); ++d) {
      const Expr subscript = hi::simplify(substitute_variables(access.subscripts[d], others));
      const Expr extent = program_.tensor(access.tensor).extents[d];
      if (!mentions(subscript, index)) continue;
      if (!extent.defined()) return std::nullopt;
      const auto interval = solve_subscript(subscript, extent, index, ranges_of(statement));
      if (!interval || !interval->upper.defined()) return std::nullopt;
      const Expr after = interval->upper + 1;
      end = end.defined() ? hi::Min::make(end, after) : after;
      if (interval->lower.defined()) begin = hi::Max::make(begin, interval->lower);
    }
  }
  if (!end.defined()) return std::nullopt;
  return std::pair(simplify_index(begin, program_.sizes), simplify_index(end, program_.sizes));
}

/// Which ranges an ambiguous subscript would allow: each index as large as it can be, the others 0.
std::vector<Note> RangeSolver::candidates(Statement& statement, const Access& access, int d) {
  std::vector<Note> notes;
  const std::vector<std::string> open = unsolved_in(statement, access.subscripts[d]);
  for (const std::string& index : open) {
    Substitution zeros;
    std::string others;
    for (const std::string& other : open) {
      if (other == index) continue;
      zeros[other] = index_constant(0);
      others += fmt::format(", {} in 0:1", other);
    }
    if (const auto room = room_of(index, statement, access, zeros)) {
      notes.push_back({std::nullopt, fmt::format("one choice is 'where {} in {}:{}{}'", index, to_text(room->first),
                                                 to_text(room->second), others)});
    }
  }
  return notes;
}

Diagnostic RangeSolver::unbounded(Statement& statement, const Index& index) {
  for (const Access& access : statement.accesses) {
    if (access.is_write) continue;
    for (size_t d = 0; d < access.subscripts.size(); ++d) {
      const std::vector<std::string> open = unsolved_in(statement, access.subscripts[d]);
      if (open.size() < 2 || std::find(open.begin(), open.end(), index.name) == open.end()) continue;
      std::string others;
      for (const std::string& other : open) {
        if (other != index.name) others += fmt::format("{}'{}'", others.empty() ? "" : ", ", other);
      }
      return {index.range,
              fmt::format("the range of '{}' is ambiguous: it appears only together with {}, in '{}'; give one of them "
                          "with 'where'",
                          index.name, others, program_.source->text(access.range)),
              candidates(statement, access, static_cast<int>(d))};
    }
  }
  return {
      index.range,
      fmt::format(
          "nothing bounds '{}': give its range with 'where {} in 0:...'{}", index.name, index.name,
          index.is_reduction ? "" : fmt::format(", or the extents of '{}' in the list of results", statement.tensor)),
      {}};
}

Diagnostic RangeSolver::unknown_extent(const Tensor& tensor, int d) {
  return {tensor.declared,
          fmt::format("the extent of '{}' in dimension {} is not determined: write it in the list of results",
                      tensor.name, d),
          {}};
}

/// The cause first: an index without a range explains the extents and indices that wait for it.
std::vector<Diagnostic> RangeSolver::failures() {
  std::vector<Diagnostic> result;
  for (Statement& statement : program_.statements) {
    for (const Index& index : statement.indices) {
      if (is_solved(index)) continue;
      result.push_back(unbounded(statement, index));
      break;
    }
    if (!result.empty()) return result;
  }
  for (const Tensor& tensor : program_.tensors) {
    for (int d = 0; d < tensor.rank(); ++d) {
      if (!tensor.extents[d].defined()) return {unknown_extent(tensor, d)};
    }
  }
  return result;
}

Result<Ranged> RangeSolver::solve() {
  note_uses();
  take_given_ranges();
  while (run_round(Effort::kKnownReads) || finish_extents(false) || take_left_extents(false) || finish_extents(true) ||
         take_left_extents(true) || run_round(Effort::kPartialReads) || run_round(Effort::kGuardedReads) ||
         run_round(Effort::kPartialGuarded) || name_caller_extents() || run_round(Effort::kAnyGuarded)) {
  }
  std::vector<Diagnostic> errors = failures();
  if (!errors.empty()) return tl::unexpected(Error(program_.source, std::move(errors)));
  result_.program = std::move(program_);
  return std::move(result_);
}

}  // namespace

Result<Ranged> infer_ranges(Program program, const Deadline& deadline) {
  return RangeSolver(std::move(program), deadline).solve();
}

}  // namespace tc::ir
