#include "tc/gpu/strategy/halo/plan.h"

#include <algorithm>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kMostReductions = 64;  ///< instances for an element
constexpr int64_t kMostReach = 64;       ///< elements around a tile, along a member

/// The values that an expression has.
struct Interval {
  int64_t low = 0, high = 0;
};

Interval operator+(const Interval& a, const Interval& b) { return {a.low + b.low, a.high + b.high}; }

/// Intervals of expressions over a statement's indices.
class Distances {
 public:
  explicit Distances(const GroupStatement& s) : s_(s) {}

  /// Of the expression; nothing if it is not a sum, minimum or maximum of indices and numbers.
  std::optional<Interval> value(const Expr& e) const {
    if (const int64_t* number = ir::constant_int(e)) return Interval{*number, *number};
    if (const int at = s_.index_of(e); at >= 0) {
      const ir::Range& range = s_.ranges[static_cast<size_t>(at)];
      return Interval{range.begin, range.begin + range.extent - 1};
    }
    if (const auto* sum = e.as<hi::Add>()) return both(value(sum->a), value(sum->b));
    if (const auto* difference = e.as<hi::Sub>()) return both(value(difference->a), negated(value(difference->b)));
    return std::nullopt;
  }

  /// Of the expression less an index.
  std::optional<Interval> from(const Expr& e, int index) const {
    const ir::Range& range = s_.ranges[static_cast<size_t>(index)];
    if (s_.index_of(e) == index) return Interval{};
    if (!ir::mentions(e, s_.statement->indices[static_cast<size_t>(index)])) {
      return both(value(e), Interval{-(range.begin + range.extent - 1), -range.begin});
    }
    if (const auto* sum = e.as<hi::Add>()) return of_sum(sum->a, sum->b, index, false);
    if (const auto* difference = e.as<hi::Sub>()) return of_sum(difference->a, difference->b, index, true);
    if (const auto* least = e.as<hi::Min>()) {
      const auto a = from(least->a, index), b = from(least->b, index);
      if (a && b) return Interval{std::min(a->low, b->low), std::min(a->high, b->high)};
    }
    if (const auto* most = e.as<hi::Max>()) {
      const auto a = from(most->a, index), b = from(most->b, index);
      if (a && b) return Interval{std::max(a->low, b->low), std::max(a->high, b->high)};
    }
    return std::nullopt;
  }

 private:
  static std::optional<Interval> both(const std::optional<Interval>& a, const std::optional<Interval>& b) {
    return a && b ? std::optional(*a + *b) : std::nullopt;
  }
  static std::optional<Interval> negated(const std::optional<Interval>& a) {
    return a ? std::optional(Interval{-a->high, -a->low}) : std::nullopt;
  }
  /// One operand has the index, and is not subtracted.
  std::optional<Interval> of_sum(const Expr& a, const Expr& b, int index, bool subtracts) const {
    const std::string& name = s_.statement->indices[static_cast<size_t>(index)];
    const bool first = ir::mentions(a, name), second = ir::mentions(b, name);
    if (first == second || (second && subtracts)) return std::nullopt;
    if (second) return both(value(a), from(b, index));
    return both(from(a, index), subtracts ? negated(value(b)) : value(b));
  }

  const GroupStatement& s_;
};

class Planner {
 public:
  Planner(const poly::Scop& scop, FusedGroup group) : scop_(scop), group_(std::move(group)) {}

  std::optional<HaloPlan> plan() {
    if (!find_stages() || !find_members() || !touches_memory_once()) return std::nullopt;
    // What a stage reads reaches further if a later one has found that more of it is needed.
    for (size_t round = 0; round < plan_.stages.size(); ++round) {
      const auto before = plan_.locals;
      for (size_t s = plan_.stages.size(); s-- > 0;) {
        if (!reach_of(plan_.stages[s])) return std::nullopt;
      }
      if (plan_.locals == before) break;
    }
    return has_halo() ? std::optional(plan_) : std::nullopt;
  }

 private:
  bool is_local(const std::string& tensor) const { return group_.writes(tensor) && !group_.is_seen_outside(tensor); }
  bool find_stages();
  bool find_members();
  bool touches_memory_once() const;
  bool reach_of(HaloStage& stage);
  bool add_read(const HaloStage& stage, const hi::Call* read);
  bool has_halo() const;

  const poly::Scop& scop_;
  FusedGroup group_;
  HaloPlan plan_;
};

/// A stage for each statement, but for initialisations right before their updates.
bool Planner::find_stages() {
  for (size_t i = 0; i < group_.statements.size(); ++i) {
    const GroupStatement& s = group_.statements[i];
    const bool is_start = s.statement->kind == poly::Statement::Kind::kInit;
    if (is_start) {
      if (i + 1 == group_.statements.size()) return false;
      const poly::Statement& next = *group_.statements[i + 1].statement;
      if (next.kind != poly::Statement::Kind::kUpdate || next.id + "_init" != s.statement->id) return false;
      continue;
    }
    HaloStage stage{s, i > 0 && group_.statements[i - 1].statement->id == s.statement->id + "_init", {}, {}, {}};
    for (const Expr& e : s.statement->subscripts) {
      const int at = s.index_of(e);
      if (at < 0 || std::count(stage.indices.begin(), stage.indices.end(), at) > 0) return false;
      stage.indices.push_back(at);
    }
    int64_t instances = 1;
    for (int at = 0; at < static_cast<int>(s.ranges.size()); ++at) {
      if (std::count(stage.indices.begin(), stage.indices.end(), at) > 0) continue;
      stage.reductions.push_back(at);
      instances *= s.ranges[static_cast<size_t>(at)].extent;
      if (instances > kMostReductions) return false;
    }
    if (!stage.reductions.empty() && s.statement->kind != poly::Statement::Kind::kUpdate) return false;
    const Halide::Type type = scop_.program->tensor(s.statement->tensor).type;
    if (s.statement->kind == poly::Statement::Kind::kUpdate && s.statement->accumulator != type) return false;
    plan_.stages.push_back(std::move(stage));
  }
  return plan_.stages.size() > 1;
}

/// The results all have the same elements.
bool Planner::find_members() {
  bool any = false;
  for (const HaloStage& stage : plan_.stages) {
    if (is_local(stage.statement.statement->tensor)) continue;
    std::vector<ir::Range> ranges;
    for (const int at : stage.indices) ranges.push_back(stage.statement.ranges[static_cast<size_t>(at)]);
    if (any && ranges != plan_.members) return false;
    plan_.members = ranges;
    any = true;
  }
  return any && !plan_.members.empty() && !is_local(plan_.stages.back().statement.statement->tensor);
}

/// Whether all that is read of the results is the element at the stage's own place, by a stage of results: its thread
/// is the one that writes it.
bool Planner::touches_memory_once() const {
  for (const HaloStage& stage : plan_.stages) {
    std::vector<Expr> values = stage.statement.statement->subscripts;
    values.push_back(stage.statement.statement->value);
    for (const Expr& e : values) {
      for (const hi::Call* read : ir::reads_in(*scop_.program, e)) {
        if (!group_.writes(read->name) || is_local(read->name)) continue;
        if (is_local(stage.statement.statement->tensor)) return false;
        for (size_t d = 0; d < read->args.size(); ++d) {
          if (d >= stage.indices.size() || stage.statement.index_of(read->args[d]) != stage.indices[d]) return false;
        }
      }
    }
  }
  return true;
}

/// Where a stage's instances are, and then how far what it reads reaches.
bool Planner::reach_of(HaloStage& stage) {
  const std::string& tensor = stage.statement.statement->tensor;
  stage.reach.clear();
  if (is_local(tensor)) {
    const auto found = plan_.locals.find(tensor);
    if (found == plan_.locals.end()) return false;
    stage.reach = found->second;
  } else {
    for (size_t m = 0; m < plan_.members.size(); ++m) stage.reach.push_back({static_cast<int>(m), 0, 0});
  }
  for (const hi::Call* read : ir::reads_in(*scop_.program, stage.statement.statement->value)) {
    if (is_local(read->name) && !add_read(stage, read)) return false;
  }
  return true;
}

bool Planner::add_read(const HaloStage& stage, const hi::Call* read) {
  std::vector<Reach> reach;
  for (const Expr& subscript : read->args) {
    std::optional<Reach> found;
    for (size_t d = 0; d < stage.indices.size(); ++d) {
      const std::string& name = stage.statement.statement->indices[static_cast<size_t>(stage.indices[d])];
      if (!ir::mentions(subscript, name)) continue;
      const std::optional<Interval> distance = Distances(stage.statement).from(subscript, stage.indices[d]);
      if (found || !distance) return false;
      found = Reach{stage.reach[d].member, stage.reach[d].low + distance->low, stage.reach[d].high + distance->high};
    }
    if (!found || found->high - found->low > kMostReach) return false;
    reach.push_back(*found);
  }
  auto [known, is_new] = plan_.locals.emplace(read->name, reach);
  for (size_t d = 0; d < reach.size(); ++d) {
    Reach& all = known->second[d];
    if (all.member != reach[d].member) return false;
    all.low = std::min(all.low, reach[d].low);
    all.high = std::max(all.high, reach[d].high);
  }
  return true;
}

bool Planner::has_halo() const {
  return std::any_of(plan_.locals.begin(), plan_.locals.end(), [](const auto& local) {
    return std::any_of(local.second.begin(), local.second.end(), [](const Reach& r) { return r.low < r.high; });
  });
}

int64_t shared_bytes(const HaloPlan& plan, const ir::Program& program) {
  int64_t bytes = 0;
  for (const auto& [tensor, reach] : plan.locals) {
    int64_t elements = program.tensor(tensor).type.bytes();
    for (const Reach& r : reach) elements *= plan.extent(r);
    bytes += elements;
  }
  return bytes;
}

/// Members along which something is read beside its own element.
std::vector<bool> has_reach(const HaloPlan& plan) {
  std::vector<bool> result(plan.members.size());
  for (const auto& [tensor, reach] : plan.locals) {
    for (const Reach& r : reach)
      result[static_cast<size_t>(r.member)] = result[static_cast<size_t>(r.member)] || r.low < r.high;
  }
  return result;
}

}  // namespace

std::vector<HaloPlan> plan_halo(const poly::Scop& scop, const std::vector<std::string>& statements,
                                const Device& device) {
  const std::optional<FusedGroup> group = group_of_statements(scop, statements);
  if (!group) return {};
  const std::optional<HaloPlan> plan = Planner(scop, *group).plan();
  if (!plan) return {};
  std::vector<HaloPlan> result;
  const std::vector<bool> reaches = has_reach(*plan);
  for (const int64_t along : {64, 128, 256}) {
    for (const int64_t beside : {8, 16, 32, 64}) {
      HaloPlan one = *plan;
      one.threads = std::min(one.threads, device.threads_per_block);
      for (size_t m = 0; m < one.members.size(); ++m) {
        const bool last = m + 1 == one.members.size();
        one.tile.push_back(std::min(one.members[m].extent, last ? along : reaches[m] ? beside : 1));
      }
      if (shared_bytes(one, *scop.program) <= device.shared_bytes) result.push_back(std::move(one));
    }
  }
  return result;
}

}  // namespace tc::gpu
