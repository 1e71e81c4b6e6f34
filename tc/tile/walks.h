#pragma once

#include <compare>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tc/tile/affine.h"
#include "tc/tile/program.h"

/// Ways of control from one access to another, which certificate.cc asks isl about.
namespace tc::tile {

/// How two instances of statements lie to each other: in the same iteration of all the loops around both that hold
/// barriers (level -1), or `distance` iterations of the loop `level` apart and in the same of those around that.
struct Relation {
  static constexpr int kAny = 16;  ///< this many iterations or more
  int level = -1;
  int distance = 0;
  auto operator<=>(const Relation&) const = default;
};

/// Whether copies are waited for, on the way from one to an access.
struct Progress {
  int commits = 0;
  bool waited = false;
  auto operator<=>(const Progress&) const = default;
};

/// Iterations of a loop that the way takes: how many were started after the first, for a loop that it enters; how many
/// after that of the first access, for a loop that it leaves.
struct Passage {
  int loop;
  int iterations;
  auto operator<=>(const Passage&) const = default;
};

struct Way {
  Relation relation;
  std::vector<Passage> entered;  ///< and not left; outermost first
  std::vector<Passage> left;     ///< of the loops around the first access
  auto operator<=>(const Way&) const = default;
};

struct Meeting {
  int leaf;
  Way way;
  bool arrived;  ///< of an asynchronous copy: its thread has waited for it
  auto operator<=>(const Meeting&) const = default;
};

/// What a walk follows, until a barrier orders it.
enum class Followed {
  kAccess,
  kCopy,      ///< asynchronous: until its thread has waited for it
  kBoxRead,   ///< of a box store: until its thread has waited for the read
  kBoxWrite,  ///< likewise, for the write
  kUnfenced,  ///< a write that box stores do not see yet: until its thread's fence
};
inline bool is_late(Followed what) { return what != Followed::kAccess && what != Followed::kUnfenced; }

/// Threads that a barrier puts in order: as many as follow each other.
inline constexpr int kAllThreads = std::numeric_limits<int>::max();
int threads_of(const Barrier& barrier);

/// All meetings of what happens at a point with what may follow without a barrier in between. `threads`: the fewest
/// threads whose barriers count. `never`: a condition that no thread fulfils that comes from the point. Other threads
/// go there; the way of its own threads is the other one.
class Walk {
 public:
  using Never = std::function<bool(const Halide::Expr&)>;
  Walk(const Flow& flow, int start, Followed followed, int threads, Never never = {});
  const std::set<Meeting>& meetings() const { return meetings_; }
  /// Whether the kernel may end before its thread has waited for it.
  bool may_end() const { return may_end_; }

 private:
  struct State {
    int point;
    Way way;
    Progress progress;
    int join = -1;  ///< of a branch that only other threads take: where it ends
    auto operator<=>(const State&) const = default;
  };

  const Leaf& leaf_at(int point) const { return flow_.leaves[flow_.points[point].leaf]; }
  int level_of(int loop) const;
  bool is_possible(const State& state, const Flow::Edge& edge) const;
  State behind(State state, const Flow::Edge& edge) const;
  void go_back(Way& way, int loop) const;
  void leave(Way& way, int loop) const;
  bool ends_at(const Node& node, Progress& progress) const;
  void visit(State state, bool first);

  const Flow& flow_;
  Followed followed_;
  int threads_;
  Never never_;
  bool may_end_ = false;
  std::vector<int> loops_;
  std::map<int, std::optional<int64_t>> trips_;  ///< of loops by id
  std::deque<State> queue_;
  std::set<State> seen_;
  std::set<Meeting> meetings_;
};

}  // namespace tc::tile
