#include "tc/gpu/strategy/halo/strips.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/lower/emit.h"
#include "tc/gpu/lower/vectorize.h"
#include "tc/gpu/strategy/halo/stages.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/layouts.h"
#include "tc/ir/reads.h"
#include "tc/support/round.h"

namespace tc::gpu {

using Halide::Expr;
using poly::Ranged;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

/// So many threads leave each registers for what it reads before it computes. Left to itself the assembler likes 32
/// registers, which hold the first so many words, and puts off the reads. More than the second do not fit.
constexpr int64_t kThreadsOfProcessor = 1536, kFewWords = 16, kMostWords = 40;

class Writer {
 public:
  Writer(const poly::Scop& scop, const HaloPlan& plan, const Device& device)
      : plan_(plan), device_(device), stages_(scop, kMostReductions, true) {}

  tile::Kernel run(const std::string& name);

 private:
  /// What all threads do whose strips are whole, or all with theirs one by one.
  struct Strips {
    const HaloPlan& plan;
    const std::vector<Ranged>& firsts;
    bool is_whole;
  };
  using AtElements = std::function<NodePtr(const std::vector<Ranged>&)>;

  NodePtr at_firsts(std::vector<Ranged> named, const std::vector<Ranged>& firsts, const AtElements& body);
  std::vector<Ranged> first_of_threads();
  Expr is_whole(const HaloPlan& plan, const std::vector<Ranged>& firsts) const;
  std::vector<Ranged> within_whole(const HaloPlan& plan, std::vector<Ranged> firsts) const;
  NodePtr strip(const HaloPlan& plan, const std::vector<Ranged>& firsts);
  NodePtr part(const HaloPlan& plan, const std::vector<Ranged>& firsts, bool is_whole);
  std::vector<std::string> held_results() const;
  NodePtr elements(const Strips& strips, const HaloStage& stage, const std::string& tensor, std::vector<Ranged> at,
                   const AtElements& body);
  int64_t vector_of(const HaloPlan& plan, const HaloStage& stage, const std::string& tensor, size_t d) const;

  const HaloPlan& plan_;
  const Device& device_;
  StageWriter stages_;
  tile::Kernel kernel_;
};

/// The results' indices at the first element of a thread's strip.
std::vector<Ranged> Writer::first_of_threads() {
  const size_t last = plan_.members.size() - 1;
  std::vector<Ranged> threads(plan_.members.size(), poly::ranged(0));
  threads[static_cast<size_t>(plan_.strip->member)] = thread_number(1, plan_.strip->beside);
  threads[last] = thread_number(0, plan_.strip->along);
  std::vector<int64_t> counts;
  for (size_t m = last + 1; m-- > 0;) counts.push_back(ceil_div(plan_.members[m].extent, plan_.of_block(m)));
  const std::vector<Ranged> blocks = deal_blocks(counts, device_, kernel_.grid);
  std::vector<Ranged> firsts;
  for (size_t m = 0; m <= last; ++m) {
    firsts.push_back(blocks[last - m] * poly::ranged(plan_.of_block(m)) + threads[m] * poly::ranged(plan_.tile[m]) +
                     poly::ranged(plan_.members[m].begin));
  }
  return firsts;
}

/// The body, with names for the values that have none.
NodePtr Writer::at_firsts(std::vector<Ranged> named, const std::vector<Ranged>& firsts, const AtElements& body) {
  if (named.size() == firsts.size()) return body(named);
  const Ranged& first = firsts[named.size()];
  const poly::Statement& results = *plan_.stages.back().statement.statement;
  const std::string& index = results.indices[static_cast<size_t>(plan_.stages.back().indices[named.size()])];
  const auto rest = [&](const Ranged& one) {
    named.push_back(one);
    return at_firsts(named, firsts, body);
  };
  return first.expr.as<hi::Variable>() ? rest(first) : let(index + "_first", first, stages_.names(), rest);
}

/// Whether all that the strip's stages compute exists.
Expr Writer::is_whole(const HaloPlan& plan, const std::vector<Ranged>& firsts) const {
  Expr whole = hi::const_true();
  for (const HaloStage& stage : plan.stages) {
    if (stage.outside.defined()) continue;
    for (size_t d = 0; d < stage.reach.size(); ++d) {
      const Reach& reach = stage.reach[d];
      const Ranged first = first_of(reach, firsts[static_cast<size_t>(reach.member)]);
      const Ranged last = first + poly::ranged(plan.extent(reach) - 1);
      const Expr begins = hi::simplify(poly::less_equal(poly::ranged(stage.domain[d].begin), first));
      const Expr ends = hi::simplify(poly::less(last, poly::ranged(stage.domain[d].begin + stage.domain[d].extent)));
      whole = hi::simplify(whole && begins && ends);
    }
  }
  return whole;
}

/// The same indices where is_whole() holds: they are far enough from the ends for all that the strip's stages compute.
std::vector<Ranged> Writer::within_whole(const HaloPlan& plan, std::vector<Ranged> firsts) const {
  for (const HaloStage& stage : plan.stages) {
    if (stage.outside.defined()) continue;
    for (size_t d = 0; d < stage.reach.size(); ++d) {
      const Reach& reach = stage.reach[d];
      Ranged& first = firsts[static_cast<size_t>(reach.member)];
      const int64_t least = stage.domain[d].begin - reach.low;
      const int64_t most = stage.domain[d].begin + stage.domain[d].extent - plan.extent(reach) - reach.low;
      const int64_t low = std::max(first.min, -hi::div_imp(-least, reach.factor));
      const int64_t high = std::min(first.max, hi::div_imp(most, reach.factor));
      if (low < high) first = poly::ranged(first.expr, low, high);  // it stays an expression, as in known_within()
    }
  }
  return firsts;
}

/// A strip as a whole, or else columns of it where they are, or else one element after the other.
NodePtr Writer::strip(const HaloPlan& plan, const std::vector<Ranged>& firsts) {
  const Expr whole = is_whole(plan, firsts);
  const NodePtr all = part(plan, within_whole(plan, firsts), true);
  if (hi::is_const_one(whole)) return all;
  const auto longer = std::find_if(plan.tile.rbegin(), plan.tile.rend(), [](int64_t extent) { return extent > 1; });
  if (longer == plan.tile.rend()) return part(plan, firsts, false);
  const auto m = static_cast<size_t>(plan.tile.rend() - longer) - 1;
  HaloPlan narrow = plan;
  narrow.tile[m] = 1;
  const NodePtr rest = loop_over("round", {0, plan.tile[m]}, 1, stages_.names(), [&](const Ranged& round) {
    std::vector<Ranged> at = firsts;
    at[m] = at[m] + round;
    return at_firsts({}, at, [&](const std::vector<Ranged>& one) { return strip(narrow, one); });
  });
  return make_node(tile::If{whole, all, rest});
}

/// All stages of a plan's strip.
NodePtr Writer::part(const HaloPlan& plan, const std::vector<Ranged>& firsts, bool is_whole) {
  std::map<std::string, std::vector<Reach>> held = plan.locals;
  const std::vector<std::string> results = is_whole ? held_results() : std::vector<std::string>();
  for (const std::string& tensor : results) held[tensor] = plan.stages.back().reach;
  std::vector<tile::Tensor> registers;
  for (const auto& [name, reach] : held) registers.push_back(stages_.hold(name, reach, plan, firsts));
  const Strips strips{plan, firsts, is_whole};
  std::vector<NodePtr> parts;
  for (const HaloStage& stage : plan.stages) {
    parts.push_back(elements(strips, stage, stage.tensor(), {}, [&](const std::vector<Ranged>& at) {
      return is_whole && !stage.outside.defined() ? stages_.element_of(stage, at) : stages_.if_exists(stage, at);
    }));
  }
  for (const std::string& tensor : results) {
    parts.push_back(elements(strips, plan.stages.back(), tensor, {},
                             [&](const std::vector<Ranged>& at) { return stages_.store(tensor, at); }));
    stages_.take_back(tensor);
  }
  NodePtr body = sequence(std::move(parts));
  for (const tile::Tensor& tensor : registers) body = make_node(tile::Allocate{tensor, body});
  return body;
}

/// Results that registers hold until all stages are done, so that nothing comes between stores: all but those whose old
/// elements are read, or added to.
std::vector<std::string> Writer::held_results() const {
  std::vector<std::string> held;
  std::set<std::string> seen;  // read or written
  for (const HaloStage& stage : plan_.stages) {
    if (!stage.copied.empty()) continue;
    const poly::Statement& statement = *stage.statement.statement;
    for (const hi::Call* read : ir::reads_in(stages_.program(), statement.value)) seen.insert(read->name);
    const bool adds = statement.kind == poly::Statement::Kind::kUpdate && !stage.starts;
    const bool is_first = seen.insert(statement.tensor).second;
    if (is_first && !adds && plan_.locals.count(statement.tensor) == 0) held.push_back(statement.tensor);
  }
  return held;
}

/// Of a tensor in a stage's reach, the elements at the given place along its first dimensions.
NodePtr Writer::elements(const Strips& strips, const HaloStage& stage, const std::string& tensor,
                         std::vector<Ranged> at, const AtElements& body) {
  const size_t d = at.size();
  if (d == stage.reach.size()) return body(at);
  const Reach& reach = stage.reach[d];
  const int64_t extent = strips.plan.extent(reach);
  at.push_back({});
  const Ranged first =
      first_of({.member = reach.member, .factor = reach.factor}, strips.firsts[static_cast<size_t>(reach.member)]);
  // From the element at so much behind that of the thread's first.
  const bool is_filled = stage.outside.defined();
  const auto some = [&](int64_t from, int64_t count) {
    if (is_filled && d + 1 == stage.reach.size() && count < extent) {
      at[d] = first + poly::ranged(from);
      return stages_.if_exists(stage, at, count);
    }
    return loop_over(tensor + "_" + std::to_string(d), {0, count}, count, stages_.names(), [&](const Ranged& within) {
      at[d] = first + poly::ranged(from) + within;
      if (strips.is_whole && !is_filled) at[d] = known_within(at[d], stage.domain[d]);
      return elements(strips, stage, tensor, at, body);
    });
  };
  const int64_t vector = strips.is_whole ? vector_of(strips.plan, stage, tensor, d) : 1;
  std::vector<NodePtr> parts;
  for (int64_t from = reach.low; from < reach.low + extent;) {
    const bool fits = from % vector == 0 && from + vector <= reach.low + extent;
    const int64_t count = vector == 1 ? extent : fits ? vector : 1;
    parts.push_back(some(from, count));
    from += count;
  }
  return sequence(std::move(parts));
}

/// How many neighbours of a tensor's elements along a dimension of a stage are one access of memory.
int64_t Writer::vector_of(const HaloPlan& plan, const HaloStage& stage, const std::string& tensor, size_t d) const {
  const size_t last = plan_.members.size() - 1;
  if (d + 1 != stage.reach.size() || stage.reach[d].member != static_cast<int>(last)) return 1;
  constexpr int64_t kVectorBytes = 16;
  const int64_t bytes = stages_.program().tensor(tensor).type.bytes();
  const int64_t along = plan.tile[last] * stage.reach[d].factor;  // from one strip to the next
  int64_t vector = std::gcd(along, std::max(kVectorBytes / bytes, plan.tile[last]));
  // All of them exist, or none.
  if (stage.outside.defined()) {
    const int64_t begin = plan.members[last].begin * stage.reach[d].factor;
    for (const int64_t n : {begin, stage.domain[d].begin, stage.domain[d].extent}) vector = std::gcd(vector, n);
  }
  if (stage.copied.empty() && plan_.locals.count(tensor) > 0) return vector;
  std::vector<int64_t> strides = ir::strides_of(stages_.program().tensor(tensor));
  strides.pop_back();
  for (const int64_t stride : strides) vector = std::gcd(vector, stride);
  return vector;
}

tile::Kernel Writer::run(const std::string& name) {
  kernel_.name = name;
  kernel_.block = {plan_.strip->along, plan_.strip->beside, 1};
  const int64_t words = words_of_thread(plan_, stages_.program());
  if (words > kFewWords && words <= kMostWords) {
    kernel_.resident_blocks = kThreadsOfProcessor / (plan_.strip->along * plan_.strip->beside);
  }
  kernel_.body =
      at_firsts({}, first_of_threads(), [&](const std::vector<Ranged>& firsts) { return strip(plan_, firsts); });
  kernel_.body = vectorize(kernel_.body, stages_.program(), stages_.names());
  declare_tensors(kernel_, stages_.program());
  return std::move(kernel_);
}

}  // namespace

tile::Kernel strips(const poly::Scop& scop, const HaloPlan& plan, const Device& device, const std::string& name) {
  return Writer(scop, plan, device).run(name);
}

}  // namespace tc::gpu
