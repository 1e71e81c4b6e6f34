#include "tc/tile/certificate.h"

#include <fmt/format.h>
#include <isl/aff.h>
#include <isl/map.h>
#include <isl/set.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "tc/tile/affine.h"
#include "tc/tile/cluster_order.h"
#include "tc/tile/pair_constraints.h"
#include "tc/tile/rings.h"
#include "tc/tile/tiles.h"
#include "tc/tile/walks.h"

namespace tc::tile {
namespace {

class Certifier {
 public:
  Certifier(const Kernel& kernel, const IslContext& context, unsigned long operations) : Certifier(kernel, context) {
    result_.unproved = unproved_rings(kernel, operations);
    for (std::string& fault : unproved_cluster(kernel)) result_.unproved.push_back(std::move(fault));
  }

  /// Of the order but for the ring's.
  Certifier(const Kernel& kernel, const IslContext& context)
      : kernel_(kernel), context_(context), flow_(flow_of(kernel)), ring_tensors_(tensors_of_rings(kernel)) {
    for (const Leaf& leaf : flow_.leaves) {
      views_.push_back(std::make_unique<AffineView>(context_.get(), kernel, leaf.path));
    }
    std::set<int, std::greater<>> scopes = {kAllThreads};
    for (const Leaf& leaf : flow_.leaves) {
      if (const Barrier* barrier = barrier_of(*leaf.node)) scopes.insert(threads_of(*barrier));
      if (const BoxStore* store = box_store_of(*leaf.node)) stored_.insert(store->source);
    }
    scopes_.assign(scopes.begin(), scopes.end());
  }

  /// Where blocks go through tiles, any two tiles may be those of two blocks. So no two tiles touch an element of
  /// global memory that one of them writes, which leaves what one tile does: both are decided of a kernel with a block
  /// for each tile.
  Certificate certify() {
    if (const std::optional<Kernel> tiles = with_block_for_each_tile(kernel_)) {
      Certifier of_tiles(*tiles, context_);
      of_tiles.memory_ = Memory::kGlobal;
      of_tiles.check();
      memory_ = Memory::kShared;
      leave_out_conditions_on(loops_over_tiles(kernel_)[0]->variable);
      check();
      add(of_tiles.result_);
    } else {
      check();
    }
    return std::move(result_);
  }

 private:
  /// Which elements of shared memory a tile uses does not depend on the tile: conditions that do are taken to hold.
  void leave_out_conditions_on(const std::string& variable) {
    for (size_t i = 0; i < flow_.leaves.size(); ++i) {
      Path& path = paths_.emplace_back(flow_.leaves[i].path);
      std::erase_if(path.conditions, [&](const Halide::Expr& e) { return depends_on(e, variable, path.lets); });
      views_[i] = std::make_unique<AffineView>(context_.get(), kernel_, path);
    }
  }
  static bool depends_on(const Halide::Expr& e, const std::string& variable,
                         const std::map<std::string, Halide::Expr>& lets) {
    struct Visitor : Halide::Internal::IRVisitor {
      Visitor(const std::string& v, const std::map<std::string, Halide::Expr>& l) : variable(v), lets(l) {}
      const std::string& variable;
      const std::map<std::string, Halide::Expr>& lets;
      bool found = false;
      using Halide::Internal::IRVisitor::visit;
      void visit(const Halide::Internal::Variable* op) override {
        found |= op->name == variable;
        if (const auto let = lets.find(op->name); let != lets.end()) let->second.accept(this);
      }
    } visitor(variable, lets);
    e.accept(&visitor);
    return visitor.found;
  }

  void add(const Certificate& other) {
    result_.pairs += other.pairs;
    result_.conflicts += other.conflicts;
    result_.apart += other.apart;
    result_.ordered += other.ordered;
    result_.block_conflicts += other.block_conflicts;
    result_.block_apart += other.block_apart;
    result_.races.insert(result_.races.end(), other.races.begin(), other.races.end());
    result_.unproved.insert(result_.unproved.end(), other.unproved.begin(), other.unproved.end());
  }

  void check() {
    for (size_t p = 0; p < flow_.points.size(); ++p) {
      const int leaf = flow_.points[p].leaf;
      if (leaf < 0) continue;
      const auto& accesses = flow_.leaves[leaf].accesses;
      if (std::none_of(accesses.begin(), accesses.end(), is_shared_between_threads)) continue;
      const auto start = static_cast<int>(p);
      if (box_store_of(*flow_.leaves[leaf].node)) {
        check_box_store(leaf, start);
        continue;
      }
      const bool copies = std::any_of(accesses.begin(), accesses.end(), [](const auto& a) { return a.asynchronous; });
      for (size_t s = 0; s < scopes_.size(); ++s) {
        if (never_meets_others(leaf, s)) continue;
        check_walk(leaf, Walk(flow_, start, Followed::kAccess, scopes_[s]), Followed::kAccess, s);
      }
      if (copies) check_walk(leaf, Walk(flow_, start, Followed::kCopy, scopes_.back()), Followed::kCopy, 0);
      check_fence(leaf, start);
    }
    check_branches();
    check_blocks();
    count_pairs();
  }

  /// Of the threads whose accesses meet.
  enum class Threads { kSame, kBefore, kAfter };
  using Place = std::pair<int, size_t>;  ///< an access of a leaf
  using Pair = std::pair<Place, Place>;  ///< the smaller first

  static bool is_shared_between_threads(const ElementAccess& access) {
    return access.tensor->memory != Memory::kRegister;
  }
  bool conflict(const ElementAccess& a, const ElementAccess& b) const {
    if (a.in_cluster || b.in_cluster) return false;  // unproved_cluster() is about them
    if (ring_tensors_.count(a.tensor->name) > 0 || (memory_ && a.tensor->memory != *memory_)) return false;
    return a.tensor == b.tensor && is_shared_between_threads(a) && (a.is_write || b.is_write) &&
           !(a.atomic && b.atomic);
  }

  /// A box store reads and writes until its thread has waited for it, which must be before the kernel ends.
  void check_box_store(int leaf, int start) {
    std::map<const Halide::Internal::BaseExprNode*, bool> known;
    const auto never = [&](const Halide::Expr& condition) {
      const auto [found, is_new] = known.try_emplace(condition.get(), false);
      if (is_new) found->second = is_never(leaf, condition);
      return found->second;
    };
    for (size_t s = 0; s < scopes_.size(); ++s) {
      if (never_meets_others(leaf, s)) continue;
      for (const Followed what : {Followed::kBoxRead, Followed::kBoxWrite}) {
        const Walk walk(flow_, start, what, scopes_[s], never);
        check_walk(leaf, walk, what, s);
        const bool is_last = s + 1 == scopes_.size();
        if (!is_last || what == Followed::kBoxWrite || memory_ == Memory::kGlobal || !walk.may_end()) continue;
        result_.races.push_back(fmt::format("{}: a block may end before '{}' has read '{}'", kernel_.name,
                                            flow_.leaves[leaf].text(), box_store_of(*flow_.leaves[leaf].node)->source));
      }
    }
  }

  /// Whether a condition on blocks and threads alone holds for none of those that come to a leaf.
  bool is_never(int leaf, const Halide::Expr& condition) const {
    struct Visitor : Halide::Internal::IRVisitor {
      bool found_other = false;
      using Halide::Internal::IRVisitor::visit;
      void visit(const Halide::Internal::Variable* op) override {
        const auto is = [&](const char* name) { return op->name == name; };
        found_other |= std::ranges::none_of(kBlock, is) && std::ranges::none_of(kThread, is);
      }
      void visit(const Halide::Internal::Call*) override { found_other = true; }
    } visitor;
    condition.accept(&visitor);
    if (visitor.found_other) return false;
    const std::optional<isl::set> holds = views_[leaf]->holds(condition);
    return holds && views_[leaf]->domain().intersect(*holds).is_empty();
  }

  /// What a thread writes is seen by box stores behind its fence.
  void check_fence(int leaf, int start) {
    const auto is_stored = [&](const ElementAccess& a) { return a.is_write && stored_.count(a.tensor->name) > 0; };
    const auto& accesses = flow_.leaves[leaf].accesses;
    const auto written = std::ranges::find_if(accesses, is_stored);
    if (written == accesses.end() || memory_ == Memory::kGlobal) return;
    const auto never = [this, leaf](const Halide::Expr& condition) { return is_never(leaf, condition); };
    const Walk walk(flow_, start, Followed::kUnfenced, kAllThreads, never);
    for (const Meeting& meeting : walk.meetings()) {
      const BoxStore* store = box_store_of(*flow_.leaves[meeting.leaf].node);
      if (!store || store->source != written->tensor->name) continue;
      result_.races.push_back(
          fmt::format("{}: '{}' may not see what '{}' writes, with no fence for box stores behind it", kernel_.name,
                      flow_.leaves[meeting.leaf].text(), flow_.leaves[leaf].text()));
      return;
    }
  }

  /// Which of a leaf's accesses a walk follows.
  static bool follows(Followed what, const ElementAccess& access) {
    return what == Followed::kAccess || (what == Followed::kCopy && access.asynchronous) ||
           (what == Followed::kBoxRead && !access.is_write) || (what == Followed::kBoxWrite && access.is_write);
  }

  void check_walk(int from, const Walk& walk, Followed what, size_t scope) {
    const auto& sources = flow_.leaves[from].accesses;
    for (const Meeting& meeting : walk.meetings()) {
      const auto& targets = flow_.leaves[meeting.leaf].accesses;
      for (size_t i = 0; i < sources.size(); ++i) {
        if (!follows(what, sources[i])) continue;
        for (size_t j = 0; j < targets.size(); ++j) {
          if (!conflict(sources[i], targets[j])) continue;
          const bool itself =
              from == meeting.leaf && i == j && meeting.way.relation.level < 0 && meeting.way.left.empty();
          if (is_late(what) && !meeting.arrived && !itself) decide(from, i, meeting, j, Threads::kSame, scope);
          decide(from, i, meeting, j, Threads::kBefore, scope);
          if (!itself) decide(from, i, meeting, j, Threads::kAfter, scope);
        }
      }
    }
  }

  const isl::map& relation_of(int leaf, size_t access, bool& exact) {
    const auto key = std::make_pair(leaf, access);
    auto found = relations_.find(key);
    if (found == relations_.end()) {
      bool is_exact = true;
      isl::map map = views_[leaf]->relation(flow_.leaves[leaf].accesses[access], is_exact);
      found = relations_.emplace(key, std::make_pair(map, is_exact)).first;
    }
    exact &= found->second.second;
    return found->second.first;
  }

  /// { x -> y } of one block that touch the same element.
  const isl::map& pairs_of(int from, size_t i, int to, size_t j, bool& exact) {
    const isl::map& first = relation_of(from, i, exact);
    const isl::map& second = relation_of(to, j, exact);
    const auto key = std::make_tuple(from, i, to, j);
    if (const auto found = pairs_.find(key); found != pairs_.end()) return found->second;
    const isl::map pairs = first.apply_range(second.reverse());
    Constraints of_one_block(pairs);
    for (int b = 0; b < views_[from]->block_dimensions(); ++b) of_one_block.equal(Sum().in(b, -1).out(b, 1), 0);
    return pairs_.emplace(key, of_one_block.in(pairs).coalesce()).first->second;
  }

  void decide(int from, size_t i, const Meeting& meeting, size_t j, Threads threads, size_t scope) {
    const auto key = std::make_tuple(from, i, meeting.leaf, j, meeting.way, threads, scope);
    if (!decided_.insert(key).second) return;
    const Pair pair = pair_of({from, i}, {meeting.leaf, j});
    met_.insert(pair);
    if (reported_.count({std::min(from, meeting.leaf), std::max(from, meeting.leaf)})) {
      open_.insert(pair);
      return;
    }
    ++result_.pairs;
    bool exact = true;
    isl::map pairs = pairs_of(from, i, meeting.leaf, j, exact);
    if (threads != Threads::kSame && kernel_.block == std::array<int64_t, 3>{1, 1, 1}) return;  // there is one
    Constraints constraints(pairs);
    add_threads(constraints, from, threads);
    add_way(constraints, from, meeting.leaf, meeting.way);
    pairs = constraints.in(pairs);
    for (const Passage& passage : meeting.way.left) pairs = ending(pairs, from, passage);
    if (threads != Threads::kSame) pairs = of_scope(pairs, from, meeting.leaf, scope);
    if (pairs.is_empty()) return;
    open_.insert(pair);
    report(pairs, from, i, meeting.leaf, j, exact, threads);
  }

  /// Whether some coordinate tells the groups of threads apart that the barriers of the next scope cover: those of
  /// warpgroups that have memory of their own. Then no threads of different groups meet, whatever the way between them.
  bool never_meet(const Pair& pair, size_t scope) {
    const auto [found, is_new] = never_met_.try_emplace({pair, scope}, false);
    if (!is_new) return found->second;
    const auto& [first, second] = pair;
    const ElementAccess& access = flow_.leaves[first.first].accesses[first.second];
    for (int d = 0; d < access.tensor->rank() && !found->second; ++d) {
      const isl::map groups = groups_at(first, d, scope).reverse().apply_range(groups_at(second, d, scope));
      found->second = groups.is_subset(isl::manage(isl_map_identity(isl_map_get_space(groups.get()))));
    }
    return found->second;
  }
  /// Whether that holds of all that a leaf does to shared memory.
  bool never_meets_others(int leaf, size_t scope) {
    if (scope + 1 == scopes_.size()) return false;
    const auto& accesses = flow_.leaves[leaf].accesses;
    for (size_t i = 0; i < accesses.size(); ++i) {
      for (int other = 0; other < std::ssize(flow_.leaves); ++other) {
        for (size_t j = 0; j < flow_.leaves[other].accesses.size(); ++j) {
          if (!conflict(accesses[i], flow_.leaves[other].accesses[j])) continue;
          if (accesses[i].tensor->memory != Memory::kShared) return false;
          if (!never_meet(pair_of({leaf, i}, {other, j}), scope)) return false;
        }
      }
    }
    return true;
  }
  /// { coordinate d -> groups } of the threads that access it, by the next scope's barriers.
  isl::map groups_at(const Place& place, int d, size_t scope) {
    bool exact = true;
    isl::map along = relation_of(place.first, place.second, exact);
    const auto rank = static_cast<unsigned>(isl_map_dim(along.get(), isl_dim_out)), at = static_cast<unsigned>(d);
    along = isl::manage(isl_map_project_out(along.release(), isl_dim_out, at + 1, rank - at - 1));
    along = isl::manage(isl_map_project_out(along.release(), isl_dim_out, 0, at));
    const std::string group = fmt::format("{{ [x] -> [floor(x/{})] }}", scopes_[scope + 1]);
    return along.reverse()
        .apply_range(thread_numbers(*views_[place.first]))
        .apply_range(isl::manage(isl_map_read_from_str(context_.get().get(), group.c_str())));
  }
  void add_way(Constraints& constraints, int from, int to, const Way& way) const {
    const auto& loops = flow_.leaves[from].path.loops;
    const auto& other = flow_.leaves[to].path.loops;
    int level = 0;
    for (size_t l = 0; l < loops.size() && l < other.size() && loops[l].id == other[l].id; ++l) {
      if (!flow_.synchronising[loops[l].id]) continue;
      const int at = views_[from]->loop_dimension(static_cast<int>(l));
      const Sum apart = Sum().in(at, -1).out(at, 1);
      const bool differs = way.relation.level == level++;
      if (differs && way.relation.distance == Relation::kAny) {
        constraints.at_least(apart, way.relation.distance);
      } else {
        constraints.equal(apart, differs ? way.relation.distance : 0);
      }
      if (differs) break;
    }
    for (const Passage& passage : way.entered) {
      for (size_t l = 0; l < other.size(); ++l) {
        if (other[l].id != passage.loop) continue;
        const Sum number = Sum().out(views_[to]->loop_dimension(static_cast<int>(l)), 1);
        if (passage.iterations == Relation::kAny) {
          constraints.at_least(number, passage.iterations);
        } else {
          constraints.equal(number, passage.iterations);
        }
      }
    }
  }

  /// Keeps those whose loop ends `passage.iterations` after that of the first access.
  isl::map ending(const isl::map& pairs, int from, const Passage& passage) const {
    const AffineView& view = *views_[from];
    const auto& loops = flow_.leaves[from].path.loops;
    for (size_t l = 0; l < loops.size(); ++l) {
      if (loops[l].id != passage.loop) continue;
      const auto position = static_cast<int>(l);
      const std::optional<isl::pw_aff> trips = view.trip_count(position);
      if (!trips) return pairs;
      const isl::pw_aff last = view.iteration(position).add(view.constant(passage.iterations + 1));
      return pairs.intersect_domain(passage.iterations == Relation::kAny ? last.le_set(*trips) : last.eq_set(*trips));
    }
    return pairs;
  }

  void add_threads(Constraints& constraints, int from, Threads threads) const {
    Sum later;
    int64_t stride = threads == Threads::kAfter ? -1 : 1;
    int at = views_[from]->block_dimensions();
    for (int64_t extent : kernel_.block) {
      if (extent == 1) continue;
      later.in(at, -stride).out(at, stride);
      ++at;
      stride *= extent;
    }
    if (threads == Threads::kSame) {
      constraints.equal(later, 0);
    } else {
      constraints.at_least(later, 1);
    }
  }

  /// Of threads that barriers of a scope put in order, and of none below.
  isl::map of_scope(isl::map pairs, int from, int to, size_t scope) {
    if (scope > 0) pairs = pairs.intersect(of_one_group(from, to, scopes_[scope]));
    if (scope + 1 < scopes_.size()) pairs = pairs.subtract(of_one_group(from, to, scopes_[scope + 1]));
    return pairs;
  }
  /// { x -> y } of threads of one group of so many.
  const isl::map& of_one_group(int from, int to, int threads) {
    const auto [known, is_new] = groups_.try_emplace({from, to, threads});
    if (is_new) {
      const std::string same = fmt::format("{{ [x] -> [y] : floor(x/{0}) = floor(y/{0}) }}", threads);
      known->second = thread_numbers(*views_[from])
                          .apply_range(isl::manage(isl_map_read_from_str(context_.get().get(), same.c_str())))
                          .apply_range(thread_numbers(*views_[to]).reverse());
    }
    return known->second;
  }
  static isl::map thread_numbers(const AffineView& view) {
    return isl::manage(isl_map_from_pw_aff(view.thread_number().release()));
  }

  void report(const isl::map& pairs, int from, size_t i, int to, size_t j, bool exact, Threads threads) {
    const ElementAccess& a = flow_.leaves[from].accesses[i];
    const ElementAccess& b = flow_.leaves[to].accesses[j];
    const isl::map one = pairs.coalesce();
    const isl::map sample = isl::manage(isl_map_from_basic_map(isl_map_sample(one.copy())));
    const std::string first = views_[from]->describe(sample.domain().sample_point());
    const std::string second = views_[to]->describe(sample.range().sample_point());
    const auto verb = [](const ElementAccess& access) { return access.is_write ? "writes" : "reads"; };
    const bool is_read = box_store_of(*flow_.leaves[from].node) && !a.is_write;
    std::string sentence =
        is_read ? fmt::format("{}: '{}' may not have read '{}' when {} writes the same element in '{}'", kernel_.name,
                              flow_.leaves[from].text(), a.tensor->name, second, flow_.leaves[to].text())
        : threads == Threads::kSame || (a.asynchronous && from != to)
            ? fmt::format("{}: '{}' may still be under way when {} {} its target in '{}'", kernel_.name,
                          flow_.leaves[from].text(), second, verb(b), flow_.leaves[to].text())
            : fmt::format("{}: {} {} '{}' in '{}', and {} {} the same element in '{}', with no barrier in between",
                          kernel_.name, first, verb(a), a.tensor->name, flow_.leaves[from].text(), second, verb(b),
                          flow_.leaves[to].text());
    (exact ? result_.races : result_.unproved).push_back(std::move(sentence));
    reported_.insert({std::min(from, to), std::max(from, to)});
  }

  /// No way leads from one branch of a condition to the other. Threads that part there may meet in an element.
  void check_branches() {
    const std::vector<std::set<int>> later = leaves_behind();
    for (int from = 0; from < static_cast<int>(flow_.leaves.size()); ++from) {
      for (int to = from + 1; to < static_cast<int>(flow_.leaves.size()); ++to) {
        if (later[from].count(to) == 0) check_parted(from, to);
      }
    }
  }

  void check_parted(int from, int to) {
    for (size_t i = 0; i < flow_.leaves[from].accesses.size(); ++i) {
      for (size_t j = 0; j < flow_.leaves[to].accesses.size(); ++j) {
        if (!conflict(flow_.leaves[from].accesses[i], flow_.leaves[to].accesses[j])) continue;
        for (const Threads threads : {Threads::kBefore, Threads::kAfter}) {
          for (size_t s = 0; s < scopes_.size(); ++s) decide(from, i, {to, {}, true}, j, threads, s);
        }
      }
    }
  }

  /// Nothing orders the blocks of a launch.
  void check_blocks() {
    if (kernel_.grid[0] * kernel_.grid[1] * kernel_.grid[2] == 1) return;
    for (int from = 0; from < static_cast<int>(flow_.leaves.size()); ++from) {
      for (int to = from; to < static_cast<int>(flow_.leaves.size()); ++to) {
        for (size_t i = 0; i < flow_.leaves[from].accesses.size(); ++i) {
          for (size_t j = 0; j < flow_.leaves[to].accesses.size(); ++j) decide_blocks(from, i, to, j);
        }
      }
    }
  }

  void decide_blocks(int from, size_t i, int to, size_t j) {
    const ElementAccess& a = flow_.leaves[from].accesses[i];
    const ElementAccess& b = flow_.leaves[to].accesses[j];
    if (a.tensor->memory != Memory::kGlobal || !conflict(a, b)) return;
    ++result_.pairs;
    ++result_.block_conflicts;
    bool exact = true;
    const isl::map& first = relation_of(from, i, exact);
    const isl::map across = first.apply_range(relation_of(to, j, exact).reverse());
    const bool is_itself = from == to && i == j;  // then { x -> y } is { y -> x }
    for (int d = 0; d < views_[from]->block_dimensions(); ++d) {
      for (int64_t sign : {1, -1}) {
        if (is_itself && sign < 0) continue;
        const isl::map differ = Constraints(across).at_least(Sum().in(d, -sign).out(d, sign), 1).in(across);
        if (!differ.is_empty()) return report(differ, from, i, to, j, exact, Threads::kBefore);
      }
    }
    ++result_.block_apart;
  }

  static Pair pair_of(Place a, Place b) { return {std::min(a, b), std::max(a, b)}; }

  void count_pairs() {
    std::vector<Place> all;
    for (int leaf = 0; leaf < static_cast<int>(flow_.leaves.size()); ++leaf) {
      const auto& accesses = flow_.leaves[leaf].accesses;
      for (size_t i = 0; i < accesses.size(); ++i) {
        if (is_shared_between_threads(accesses[i])) all.emplace_back(leaf, i);
      }
    }
    const auto access = [&](const Place& p) -> const ElementAccess& {
      return flow_.leaves[p.first].accesses[p.second];
    };
    for (size_t a = 0; a < all.size(); ++a) {
      for (size_t b = a; b < all.size(); ++b) {
        if (!conflict(access(all[a]), access(all[b]))) continue;
        ++result_.conflicts;
        const Pair pair = pair_of(all[a], all[b]);
        if (open_.count(pair)) continue;
        if (met_.count(pair)) {
          ++result_.apart;
        } else {
          ++result_.ordered;
        }
      }
    }
  }

  /// For each leaf those that control can come to from it in the same iteration of all loops.
  std::vector<std::set<int>> leaves_behind() const {
    std::vector<std::set<int>> result(flow_.leaves.size());
    for (size_t start = 0; start < flow_.points.size(); ++start) {
      if (flow_.points[start].leaf < 0) continue;
      std::set<int> seen;
      std::deque<int> queue = {static_cast<int>(start)};
      while (!queue.empty()) {
        const int point = queue.front();
        queue.pop_front();
        for (const Flow::Edge& edge : flow_.points[point].next) {
          if (edge.back >= 0 || !seen.insert(edge.to).second) continue;
          queue.push_back(edge.to);
          if (flow_.points[edge.to].leaf >= 0) result[flow_.points[start].leaf].insert(flow_.points[edge.to].leaf);
        }
      }
    }
    return result;
  }

  const Kernel& kernel_;
  const IslContext& context_;
  Flow flow_;
  std::set<std::string> ring_tensors_;  ///< unproved_rings() is about them
  std::deque<Path> paths_;              ///< of views that leave out conditions
  std::vector<std::unique_ptr<AffineView>> views_;
  std::map<std::pair<int, size_t>, std::pair<isl::map, bool>> relations_;
  std::map<std::tuple<int, size_t, int, size_t>, isl::map> pairs_;
  std::map<std::tuple<int, int, int>, isl::map> groups_;
  std::set<std::tuple<int, size_t, int, size_t, Way, Threads, size_t>> decided_;
  std::map<std::pair<Pair, size_t>, bool> never_met_;
  std::set<std::pair<int, int>> reported_;
  std::set<Pair> met_;            ///< accesses of a block with some way between them that leads over no barrier
  std::set<Pair> open_;           ///< of those: such that isl did not prove to touch different elements
  std::optional<Memory> memory_;  ///< whose accesses are looked at; absent: all
  std::vector<int> scopes_;       ///< of the kernel's barriers: threads, most first; that of the block always
  std::set<std::string> stored_;  ///< shared tensors that box stores read
  Certificate result_;
};

}  // namespace

Certificate certify(const Kernel& kernel, unsigned long operations) {
  const IslContext context(operations);
  try {
    return Certifier(kernel, context, operations).certify();
  } catch (const isl::exception&) {
    if (!context.is_exhausted()) throw;
    Certificate result;
    result.finished = false;
    result.unproved.push_back(
        fmt::format("{}: the order of its accesses is too hard for {} operations of isl", kernel.name, operations));
    return result;
  }
}

}  // namespace tc::tile
