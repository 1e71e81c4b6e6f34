#include "tc/gpu/strategy/halo/plan.h"

#include <algorithm>
#include <bit>
#include <set>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/guarded_read.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/layouts.h"
#include "tc/ir/specialise.h"
#include "tc/support/round.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kMostReach = 64;  ///< elements around a tile, along a member
constexpr int64_t kMostFactor = 4;  ///< of elements that are read for neighbours
constexpr int64_t kBlocks = 4;      ///< of a processor: some copy while others compute

/// The values that an expression has.
struct Interval {
  int64_t low = 0, high = 0;
};

Interval operator+(const Interval& a, const Interval& b) { return {a.low + b.low, a.high + b.high}; }

/// Intervals of expressions over a statement's indices.
class Distances {
 public:
  explicit Distances(const GroupStatement& s) : s_(s) {}

  /// Of the expression; nothing if it is not a sum of indices with factors and of numbers.
  std::optional<Interval> value(const Expr& e) const {
    if (const int64_t* number = ir::constant_int(e)) return Interval{*number, *number};
    if (const int at = s_.index_of(e); at >= 0) {
      const ir::Range& range = s_.ranges[static_cast<size_t>(at)];
      return Interval{range.begin, range.begin + range.extent - 1};
    }
    if (const auto* sum = e.as<hi::Add>()) return both(value(sum->a), value(sum->b));
    if (const auto* difference = e.as<hi::Sub>()) return both(value(difference->a), scaled(value(difference->b), -1));
    if (const std::optional<Scaled> product = scaled_in(e)) return scaled(value(product->of), product->factor);
    return std::nullopt;
  }

  /// What an index is multiplied by where the expression has it first; 0 if it is none of the expressions of from().
  int64_t factor(const Expr& e, int index) const {
    if (s_.index_of(e) == index) return 1;
    if (const std::optional<Scaled> product = scaled_in(e)) return product->factor * factor(product->of, index);
    const auto of_first = [&](const Expr& a, const Expr& b) { return factor(mentions(a, index) ? a : b, index); };
    if (const auto* sum = e.as<hi::Add>()) return of_first(sum->a, sum->b);
    if (const auto* difference = e.as<hi::Sub>()) return of_first(difference->a, difference->b);
    if (const auto* least = e.as<hi::Min>()) return of_first(least->a, least->b);
    if (const auto* most = e.as<hi::Max>()) return of_first(most->a, most->b);
    return 0;
  }

  /// Of the expression less an index times a factor; nothing if it is not a sum, minimum or maximum of indices with
  /// factors and of numbers.
  std::optional<Interval> from(const Expr& e, int index, int64_t factor) const {
    const ir::Range& range = s_.ranges[static_cast<size_t>(index)];
    if (s_.index_of(e) == index) return factor == 1 ? std::optional(Interval{}) : std::nullopt;
    if (!mentions(e, index)) {
      return both(value(e), scaled(Interval{range.begin, range.begin + range.extent - 1}, -factor));
    }
    if (const std::optional<Scaled> product = scaled_in(e)) {
      if (product->factor <= 0 || factor % product->factor != 0) return std::nullopt;
      return scaled(from(product->of, index, factor / product->factor), product->factor);
    }
    if (const auto* sum = e.as<hi::Add>()) return of_sum(sum->a, sum->b, index, factor, false);
    if (const auto* difference = e.as<hi::Sub>()) return of_sum(difference->a, difference->b, index, factor, true);
    if (const auto* least = e.as<hi::Min>()) {
      const auto a = from(least->a, index, factor), b = from(least->b, index, factor);
      if (a && b) return Interval{std::min(a->low, b->low), std::min(a->high, b->high)};
    }
    if (const auto* most = e.as<hi::Max>()) {
      const auto a = from(most->a, index, factor), b = from(most->b, index, factor);
      if (a && b) return Interval{std::max(a->low, b->low), std::max(a->high, b->high)};
    }
    return std::nullopt;
  }

 private:
  /// A product with a number.
  struct Scaled {
    Expr of;
    int64_t factor = 1;
  };

  bool mentions(const Expr& e, int index) const {
    return ir::mentions(e, s_.statement->indices[static_cast<size_t>(index)]);
  }
  static std::optional<Scaled> scaled_in(const Expr& e) {
    const auto* product = e.as<hi::Mul>();
    if (product == nullptr) return std::nullopt;
    if (const int64_t* number = ir::constant_int(product->b)) return Scaled{product->a, *number};
    if (const int64_t* number = ir::constant_int(product->a)) return Scaled{product->b, *number};
    return std::nullopt;
  }
  static std::optional<Interval> both(const std::optional<Interval>& a, const std::optional<Interval>& b) {
    return a && b ? std::optional(*a + *b) : std::nullopt;
  }
  static std::optional<Interval> scaled(const std::optional<Interval>& a, int64_t factor) {
    if (!a) return std::nullopt;
    const int64_t first = a->low * factor, last = a->high * factor;
    return Interval{std::min(first, last), std::max(first, last)};
  }
  /// One operand has the index, and is not subtracted.
  std::optional<Interval> of_sum(const Expr& a, const Expr& b, int index, int64_t factor, bool subtracts) const {
    const bool first = mentions(a, index), second = mentions(b, index);
    if (first == second || (second && subtracts)) return std::nullopt;
    if (second) return both(value(a), from(b, index, factor));
    return both(from(a, index, factor), scaled(value(b), subtracts ? -1 : 1));
  }

  const GroupStatement& s_;
};

/// What all reads of an input have in common: the elements that their guards let them read, and the value elsewhere.
struct Guarded {
  std::vector<ir::Range> domain;
  Expr outside;  ///< of the input's type
};

/// The number as one of another type; undefined if that has no such number. Zeros have a sign.
Expr exactly(const Expr& number, const Halide::Type& type) {
  if (ir::is_float8(type) || ir::is_negative_zero(number)) return {};
  const Expr value = hi::simplify(number), result = hi::simplify(Halide::cast(type, value));
  const bool is_same = hi::is_const(value) && hi::equal(hi::simplify(Halide::cast(value.type(), result)), value);
  return is_same && hi::is_const(result) ? result : Expr();
}

/// Collects how inputs are read, and takes the guards of those away that copies may stand for.
class Guards : public hi::IRMutator {
 public:
  Guards(const ir::Program& program, const std::set<std::string>& inputs) : program_(program), inputs_(inputs) {}

  std::map<std::string, Guarded> found;
  std::set<std::string> others;  ///< inputs that are read without such a guard, or under unlike ones
  bool drops = false;

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    if (op->is_intrinsic(hi::Call::if_then_else)) {
      const std::optional<ir::GuardedRead> guarded = ir::guarded_read(program_, op);
      if (guarded && inputs_.count(guarded->read->name) > 0) {
        if (!drops) add(*guarded);
        if (drops && found.count(guarded->read->name) > 0) return op->args[1];
        std::vector<Expr> args = op->args;
        args[2] = mutate(args[2]);
        return hi::Call::make(op->type, op->name, args, op->call_type);
      }
    }
    if (ir::is_tensor_read(program_, op)) others.insert(op->name);
    return IRMutator::visit(op);
  }

  void add(const ir::GuardedRead& guarded) {
    const std::string& name = guarded.read->name;
    const ir::Tensor& tensor = program_.tensor(name);
    Guarded one{.outside = exactly(guarded.otherwise, tensor.type)};
    const std::vector<int64_t> shape = ir::constant_shape(tensor);
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t least = std::max<int64_t>(guarded.inside[d].least.value_or(0), 0);
      const int64_t greatest = std::min(guarded.inside[d].greatest.value_or(shape[d] - 1), shape[d] - 1);
      one.domain.push_back({least, greatest - least + 1});
    }
    const auto [known, is_new] = found.emplace(name, one);
    const bool is_alike = known->second.domain == one.domain && one.outside.defined() &&
                          known->second.outside.defined() && hi::equal(known->second.outside, one.outside);
    if (!is_alike) others.insert(name);
  }

  const ir::Program& program_;
  const std::set<std::string>& inputs_;
};

class Planner {
 public:
  enum class Copies { kNone, kOfElements, kFilled };

  Planner(const poly::Scop& scop, FusedGroup group, Copies copies)
      : scop_(scop), group_(std::move(group)), copies_(copies) {}

  std::optional<HaloPlan> plan() {
    if (!find_stages() || !find_members() || !touches_memory_once()) return std::nullopt;
    if (copies_ != Copies::kNone) find_inputs();
    if (copies_ == Copies::kFilled && !drop_guards()) return std::nullopt;
    // What a stage reads reaches further if a later one has found that more of it is needed. A recurrence has no end.
    bool known = false;
    for (size_t round = 0; round <= plan_.stages.size() && !known; ++round) {
      const auto before = plan_.locals;
      for (size_t s = plan_.stages.size(); s-- > 0;) {
        if (!reach_of(plan_.stages[s])) return std::nullopt;
      }
      known = plan_.locals == before;
    }
    if (!known) return std::nullopt;
    plan_.has_temporaries = has_halo();
    if (copies_ != Copies::kNone ? !add_copies() : !plan_.has_temporaries) return std::nullopt;
    return plan_;
  }

 private:
  bool is_local(const std::string& tensor) const {
    return group_.writes(tensor) && !group_.is_seen_outside(tensor) && !is_written_outside(tensor);
  }
  bool is_written_outside(const std::string& tensor) const;
  bool find_stages();
  bool find_members();
  bool touches_memory_once() const;
  bool reach_of(HaloStage& stage);
  bool add_read(const HaloStage& stage, const hi::Call* read);
  bool has_halo() const;
  void find_inputs();
  bool drop_guards();
  bool add_copies();

  const poly::Scop& scop_;
  FusedGroup group_;
  Copies copies_;
  std::set<std::string> inputs_;            ///< that may be copied
  std::map<std::string, Guarded> guarded_;  ///< of them, those whose copies stand for guards
  HaloPlan plan_;
};

bool Planner::is_written_outside(const std::string& tensor) const {
  return std::any_of(scop_.statements.begin(), scop_.statements.end(), [&](const poly::Statement& s) {
    return s.tensor == tensor && std::none_of(group_.statements.begin(), group_.statements.end(),
                                              [&](const GroupStatement& own) { return own.statement->id == s.id; });
  });
}

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
    HaloStage stage{.statement = s};
    stage.starts = i > 0 && group_.statements[i - 1].statement->id == s.statement->id + "_init";
    for (const Expr& e : s.statement->subscripts) {
      const int at = s.index_of(e);
      if (at < 0 || std::count(stage.indices.begin(), stage.indices.end(), at) > 0) return false;
      stage.indices.push_back(at);
      stage.domain.push_back(s.ranges[static_cast<size_t>(at)]);
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
  return !plan_.stages.empty();
}

/// The results all have the same elements.
bool Planner::find_members() {
  bool any = false;
  for (const HaloStage& stage : plan_.stages) {
    if (is_local(stage.statement.statement->tensor)) continue;
    if (any && stage.domain != plan_.members) return false;
    plan_.members = stage.domain;
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
    if (inputs_.count(read->name) > 0 && !add_read(stage, read)) {
      inputs_.erase(read->name);
      plan_.locals.erase(read->name);
    }
  }
  return true;
}

/// Tensors that the launch only reads.
void Planner::find_inputs() {
  for (const HaloStage& stage : plan_.stages) {
    for (const hi::Call* read : ir::reads_in(*scop_.program, stage.statement.statement->value)) {
      if (!group_.writes(read->name)) inputs_.insert(read->name);
    }
  }
}

/// Takes guards away that copies of inputs stand for; false if there are none.
bool Planner::drop_guards() {
  Guards guards(*scop_.program, inputs_);
  for (const HaloStage& stage : plan_.stages) guards.mutate(stage.statement.statement->value);
  for (const std::string& name : guards.others) guards.found.erase(name);
  guards.drops = true;
  for (HaloStage& stage : plan_.stages) stage.value = guards.mutate(stage.statement.statement->value);
  guarded_ = std::move(guards.found);
  plan_.is_filled = true;
  return !guarded_.empty();
}

/// Copies of inputs that are read at several elements near each other; false if there are none.
bool Planner::add_copies() {
  std::vector<HaloStage> copies;
  for (const std::string& name : inputs_) {
    const std::vector<Reach>& reach = plan_.locals.at(name);
    const auto guarded = guarded_.find(name);
    if (guarded == guarded_.end() &&
        std::all_of(reach.begin(), reach.end(), [](const Reach& r) { return r.low == r.high; })) {
      plan_.locals.erase(name);
      continue;
    }
    HaloStage copy{.statement = {}, .copied = name};
    for (const int64_t extent : ir::constant_shape(scop_.program->tensor(name))) copy.domain.push_back({0, extent});
    if (guarded != guarded_.end()) {
      copy.domain = guarded->second.domain;
      copy.outside = guarded->second.outside;
    }
    copy.reach = reach;
    copies.push_back(std::move(copy));
  }
  const bool all = std::ranges::all_of(guarded_, [&](const auto& one) { return inputs_.count(one.first) > 0; });
  plan_.stages.insert(plan_.stages.begin(), copies.begin(), copies.end());
  return !copies.empty() && all;
}

/// Whether only reductions decide how far from its own element a stage reads.
bool has_fixed_distance(const HaloStage& stage, const Expr& subscript) {
  struct Visitor : hi::IRVisitor {
    explicit Visitor(const HaloStage& stage) : stage(stage) {}
    const HaloStage& stage;
    int members = 0;
    bool clamps = false;
    using IRVisitor::visit;
    void visit(const hi::Variable* op) override {
      const int at = stage.statement.index_of(op);
      members += std::count(stage.indices.begin(), stage.indices.end(), at) > 0 ? 1 : 0;
    }
    void visit(const hi::Min*) override { clamps = true; }
    void visit(const hi::Max*) override { clamps = true; }
  } visitor(stage);
  subscript.accept(&visitor);
  return visitor.members == 1 && !visitor.clamps;
}

bool Planner::add_read(const HaloStage& stage, const hi::Call* read) {
  std::vector<Reach> reach;
  bool is_fixed = true;
  for (const Expr& subscript : read->args) {
    std::optional<Reach> found;
    for (size_t d = 0; d < stage.indices.size(); ++d) {
      const std::string& name = stage.statement.statement->indices[static_cast<size_t>(stage.indices[d])];
      if (!ir::mentions(subscript, name)) continue;
      const Distances distances(stage.statement);
      const int64_t factor = distances.factor(subscript, stage.indices[d]);
      if (found || factor <= 0 || factor > kMostFactor) return false;
      const std::optional<Interval> distance = distances.from(subscript, stage.indices[d], factor);
      if (!distance) return false;
      const Reach& own = stage.reach[d];
      found = Reach{.member = own.member,
                    .low = own.low * factor + distance->low,
                    .high = own.high * factor + distance->high,
                    .factor = own.factor * factor};
    }
    if (!found || found->high - found->low > kMostReach) return false;
    reach.push_back(*found);
    is_fixed = is_fixed && has_fixed_distance(stage, subscript);
  }
  auto [known, is_new] = plan_.locals.emplace(read->name, reach);
  for (size_t d = 0; d < reach.size(); ++d) {
    Reach& all = known->second[d];
    if (all.member != reach[d].member || all.factor != reach[d].factor) return false;
    all.low = std::min(all.low, reach[d].low);
    all.high = std::max(all.high, reach[d].high);
  }
  plan_.is_fixed = plan_.is_fixed && is_fixed;
  return true;
}

bool Planner::has_halo() const {
  return std::any_of(plan_.locals.begin(), plan_.locals.end(), [&](const auto& local) {
    if (!group_.writes(local.first)) return false;
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
    for (const Reach& r : reach) {
      if (r.low < r.high) result[static_cast<size_t>(r.member)] = true;
    }
  }
  return result;
}

/// The plan with tiles of several sizes.
void add_tiles(const HaloPlan& plan, const ir::Program& program, const Device& device, std::vector<HaloPlan>& to) {
  const std::vector<bool> reaches = has_reach(plan);
  for (const int64_t along : {64, 128, 256}) {
    for (const int64_t beside : {8, 16, 32, 64}) {
      HaloPlan one = plan;
      one.threads = std::min(one.threads, device.threads_per_block);
      for (size_t m = 0; m < one.members.size(); ++m) {
        const bool last = m + 1 == one.members.size();
        one.tile.push_back(std::min(one.members[m].extent, last ? along : reaches[m] ? beside : 1));
      }
      if (kBlocks * shared_bytes(one, program) <= device.shared_bytes) to.push_back(std::move(one));
    }
  }
}

/// Whether registers hold what a thread has of all temporaries, and its code is not too long.
bool fits_thread(const HaloPlan& plan, const ir::Program& program) {
  constexpr int64_t kMostWords = 72, kMostInstances = 512;
  int64_t instances = 0;
  for (const HaloStage& stage : plan.stages) {
    int64_t all = 1;
    for (const Reach& r : stage.reach) all *= plan.extent(r);
    for (const int at : stage.reductions) all *= stage.statement.ranges[static_cast<size_t>(at)].extent;
    instances += all;
  }
  return words_of_thread(plan, program) <= kMostWords && instances <= kMostInstances;
}

/// Whether all that threads copy and write lies in rows where neighbours are one access.
bool has_vectors(const HaloPlan& plan, const ir::Program& program) {
  return std::all_of(plan.stages.begin(), plan.stages.end(), [&](const HaloStage& stage) {
    if (stage.copied.empty() && plan.locals.count(stage.tensor()) > 0) return true;
    std::vector<int64_t> strides = ir::strides_of(program.tensor(stage.tensor()));
    const bool is_along = stage.reach.empty() || stage.reach.back().member + 1 == static_cast<int>(plan.members.size());
    if (!strides.empty()) strides.pop_back();
    return is_along && std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride % 2 == 0; });
  });
}

/// Whether a stage reads a tensor that is another one for each value of the last member, but not of `member`: a strip
/// brings it once for all its rows.
bool shares_reads(const HaloPlan& plan, size_t member, const ir::Program& program) {
  return std::ranges::any_of(plan.stages, [&](const HaloStage& stage) {
    if (!stage.copied.empty()) return false;
    const auto index_along = [&](size_t m) -> std::string {
      const auto at = std::ranges::find(stage.reach, static_cast<int>(m), &Reach::member);
      if (at == stage.reach.end()) return "";
      const int index = stage.indices[static_cast<size_t>(at - stage.reach.begin())];
      return stage.statement.statement->indices[static_cast<size_t>(index)];
    };
    const std::string beside = index_along(plan.members.size() - 1), along = index_along(member);
    if (beside.empty() || along.empty()) return false;
    return std::ranges::any_of(ir::reads_in(program, stage.statement.statement->value), [&](const hi::Call* read) {
      const auto names = [&](const std::string& index) {
        return std::ranges::any_of(read->args, [&](const Expr& e) { return ir::mentions(e, index); });
      };
      return names(beside) && !names(along);
    });
  });
}

/// Rows and neighbours of a strip whose rows are vectors, measured on an H200 for 17 programs. Where reads reach along
/// rows, more neighbours cost less than more rows; where they do not, a row costs one vector, and what all rows share
/// is read less often.
std::pair<int64_t, int64_t> rows_of_vectors(const HaloPlan& plan, size_t member, const ir::Program& program) {
  constexpr int64_t kHalf = 2, kFloats = 4, kHalves = 8;
  if (!has_reach(plan).back()) return {shares_reads(plan, member, program) ? 8 : 4, kFloats};
  // What is between memory and results may have any type.
  const bool are_halves = std::ranges::all_of(plan.stages, [&](const HaloStage& stage) {
    const bool is_between = stage.copied.empty() && plan.locals.count(stage.tensor()) > 0;
    return is_between || program.tensor(stage.tensor()).type.bytes() <= kHalf;
  });
  return {2, are_halves ? kHalves : kFloats};
}

/// The plan with strips along a member, by threads side by side along the last. What a thread has of each row are four
/// elements or eight, if it reads all of them first and neighbours are one access, or else one; strips are short where
/// the device has threads enough for all results.
void add_strips(const HaloPlan& plan, size_t member, const ir::Program& program, const Device& device,
                std::vector<HaloPlan>& to) {
  constexpr int64_t kBusyThreads = 1024, kRows = 8, kFewRows = 4, kMostAlong = 64;
  const size_t last = plan.members.size() - 1;
  const int64_t threads = std::min(plan.threads, device.threads_per_block);
  int64_t results = 1;
  for (const ir::Range& range : plan.members) results *= range.extent;
  std::vector<std::pair<int64_t, int64_t>> shapes = {{kRows, 1}};
  if (plan.has_copies() && has_vectors(plan, program)) {
    shapes.insert(shapes.begin(), rows_of_vectors(plan, member, program));
  }
  if (results < kRows * kBusyThreads * device.processors) shapes = {{kFewRows, 1}};
  const size_t before = to.size();
  for (const auto& [rows, vector] : shapes) {
    const int64_t length = member == last ? 1 : rows;
    if (to.size() > before || length > plan.members[member].extent || vector > plan.members[last].extent) continue;
    HaloPlan one = plan;
    one.threads = threads;
    one.tile.assign(plan.members.size(), 1);
    one.tile[member] = length;
    one.tile[last] = vector;
    const auto side_by_side = static_cast<uint64_t>(ceil_div(plan.members[last].extent, vector));
    const int64_t along = std::min({kMostAlong, static_cast<int64_t>(std::bit_ceil(side_by_side)), device.block[0]});
    const size_t beside = member == last && last > 0 ? last - 1 : member;
    if (along > threads) continue;
    // As many beside each other in each block: of 28 strips one block has all, not 32.
    const int64_t strips = ceil_div(plan.members[beside].extent, one.tile[beside]);
    const int64_t blocks = ceil_div(strips, std::min(threads / along, device.block[1]));
    one.strip = Strip{static_cast<int>(beside), along, beside == last ? 1 : ceil_div(strips, blocks)};
    if (fits_thread(one, program)) to.push_back(std::move(one));
  }
}

/// Strips along each member that reads reach along, the last if there is no other: with copies if a thread holds them,
/// and with copies that stand for guards beside those.
std::vector<HaloPlan> strips_of(const std::vector<HaloPlan>& plans, const ir::Program& program, const Device& device) {
  std::vector<HaloPlan> result;
  if (plans.empty()) return result;
  const size_t last = plans[0].members.size() - 1;
  for (size_t m = 0; m <= last; ++m) {
    if (m == last && !result.empty()) break;
    bool has_own_guards = false;
    for (const HaloPlan& plan : plans) {
      const size_t before = result.size();
      if (plan.is_fixed && has_reach(plan)[m] && !has_own_guards) add_strips(plan, m, program, device, result);
      has_own_guards = has_own_guards || (result.size() > before && !plan.is_filled);
    }
  }
  return result;
}

}  // namespace

int64_t words_of_thread(const HaloPlan& plan, const ir::Program& program) {
  int64_t bytes = 0;
  for (const auto& [tensor, reach] : plan.locals) {
    int64_t elements = program.tensor(tensor).type.bytes();
    for (const Reach& r : reach) elements *= plan.extent(r);
    bytes += elements;
  }
  return ceil_div(bytes, 4);
}

std::vector<HaloPlan> plan_halo(const poly::Scop& scop, const std::vector<std::string>& statements,
                                const Device& device) {
  const std::optional<FusedGroup> group = group_of_statements(scop, statements);
  if (!group) return {};
  std::vector<HaloPlan> plans;
  using Copies = Planner::Copies;
  for (const Copies copies : {Copies::kFilled, Copies::kOfElements, Copies::kNone}) {
    if (const std::optional<HaloPlan> plan = Planner(scop, *group, copies).plan()) plans.push_back(*plan);
  }
  std::vector<HaloPlan> result = strips_of(plans, *scop.program, device);
  for (const HaloPlan& plan : plans) {
    if (plan.has_temporaries && !plan.is_filled) add_tiles(plan, *scop.program, device, result);
  }
  return result;
}

}  // namespace tc::gpu
