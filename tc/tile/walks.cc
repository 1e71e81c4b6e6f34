#include "tc/tile/walks.h"

#include <algorithm>
#include <utility>

namespace tc::tile {
namespace {

void count(int& iterations) { iterations = std::min(iterations + 1, Relation::kAny); }
bool inside(const Way& way, int loop) { return !way.entered.empty() && way.entered.back().loop == loop; }

}  // namespace

int threads_of(const Barrier& barrier) {
  return barrier.scope == Barrier::Scope::kBlock  ? kAllThreads
         : barrier.scope == Barrier::Scope::kWarp ? 32
                                                  : WarpgroupAtom::kThreads;
}

Walk::Walk(const Flow& flow, int start, Followed followed, int threads, Never never)
    : flow_(flow), followed_(followed), threads_(threads), never_(std::move(never)) {
  for (const EnclosingLoop& loop : leaf_at(start).path.loops) {
    if (flow.synchronising[loop.id]) loops_.push_back(loop.id);
  }
  for (const Leaf& leaf : flow.leaves) {
    for (const EnclosingLoop& loop : leaf.path.loops) trips_.emplace(loop.id, constant_trips(*loop.loop));
  }
  visit({start, {}, {}}, true);
  while (!queue_.empty()) {
    const State state = queue_.front();
    queue_.pop_front();
    const std::vector<Flow::Edge>& next = flow_.points[state.point].next;
    may_end_ |= next.empty() && !state.progress.waited;
    for (const Flow::Edge& edge : next) {
      if (is_possible(state, edge)) visit(behind(state, edge), false);
    }
  }
}

int Walk::level_of(int loop) const {
  const auto found = std::find(loops_.begin(), loops_.end(), loop);
  return found == loops_.end() ? -1 : static_cast<int>(found - loops_.begin());
}

/// Whether a loop that the way has entered may go on, or end, after this many iterations.
bool Walk::is_possible(const State& state, const Flow::Edge& edge) const {
  const int loop = edge.back >= 0 ? edge.back : edge.exits;
  if (loop < 0 || !inside(state.way, loop)) return true;
  const auto found = trips_.find(loop);
  if (found == trips_.end() || !found->second) return true;
  const int done = state.way.entered.back().iterations + 1;  // kAny + 1 stands for that many or more
  if (done > Relation::kAny) return *found->second > Relation::kAny;
  return edge.back >= 0 ? done < *found->second : done == *found->second;
}

Walk::State Walk::behind(State state, const Flow::Edge& edge) const {
  state.point = edge.to;
  if (state.join < 0 && edge.condition.defined() && never_ && never_(edge.condition)) state.join = edge.join;
  if (edge.enters >= 0) state.way.entered.push_back({edge.enters, 0});
  if (edge.back >= 0) go_back(state.way, edge.back);
  if (edge.exits >= 0) leave(state.way, edge.exits);
  return state;
}

void Walk::go_back(Way& way, int loop) const {
  if (inside(way, loop)) return count(way.entered.back().iterations);
  const int level = level_of(loop);
  Relation& r = way.relation;
  if (r.level != level) {
    r = {level, 1};
  } else {
    count(r.distance);
  }
}

void Walk::leave(Way& way, int loop) const {
  if (inside(way, loop)) return way.entered.pop_back();
  const int level = level_of(loop);
  way.left.push_back({loop, way.relation.level == level ? way.relation.distance : 0});
  if (way.relation.level >= level) way.relation = {};
}

/// What a node does to the progress, and whether nothing beyond it is met.
bool Walk::ends_at(const Node& node, Progress& progress) const {
  return match(
      node,
      [&](const Barrier& n) {
        if (followed_ == Followed::kUnfenced || threads_of(n) < threads_) return false;
        return !is_late(followed_) || progress.waited;
      },
      [&](const BoxStep& n) {
        if (followed_ == Followed::kUnfenced) return n.kind == BoxStep::Kind::kFence;
        if (followed_ != Followed::kBoxRead && followed_ != Followed::kBoxWrite) return false;
        if (n.kind == BoxStep::Kind::kCommit) progress.commits = std::min(progress.commits + 1, Relation::kAny);
        const bool waits =
            n.kind == BoxStep::Kind::kWait || (n.kind == BoxStep::Kind::kWaitRead && followed_ == Followed::kBoxRead);
        progress.waited |= waits && progress.commits > n.pending;
        return false;
      },
      [&](const CommitGroup&) {
        if (followed_ == Followed::kCopy) progress.commits = std::min(progress.commits + 1, Relation::kAny);
        return false;
      },
      [&](const WaitGroup& n) {
        progress.waited |= followed_ == Followed::kCopy && progress.commits > n.pending;
        return false;
      },
      [](const OneOf<ClusterStep, WaitForKernels, StartNextKernel, RingStep, MatMulWait> auto&) { return false; },
      [](const Structure auto&) { return false; }, [](const Spec auto&) { return false; });
}

void Walk::visit(State state, bool first) {
  const int leaf = flow_.points[state.point].leaf;
  if (state.point == state.join) return;
  if (leaf >= 0 && ends_at(*flow_.leaves[leaf].node, state.progress)) return;
  if (!first && !seen_.insert(state).second) return;
  if (leaf >= 0 && !flow_.leaves[leaf].accesses.empty()) {
    meetings_.insert({leaf, state.way, !is_late(followed_) || state.progress.waited});
  }
  queue_.push_back(state);
}

}  // namespace tc::tile
