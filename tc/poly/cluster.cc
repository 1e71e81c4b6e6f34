#include "tc/poly/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tc::poly {
namespace {

using options::Fusion;

/// How good a merge is: coincident members, then all members, of extent above 1.
struct Worth {
  int coincident = 0;
  int members = 0;
  bool operator>(const Worth& other) const {
    return coincident != other.coincident ? coincident > other.coincident : members > other.members;
  }
};

bool real(const Alignment& a, const Cluster& c, size_t member) {
  for (size_t s = 0; s < c.statements.size(); ++s) {
    if (a.extent(c.statements[s], c.members[member][s]) > 1) return true;
  }
  return false;
}

Worth worth(const Alignment& a, const Cluster& c) {
  Worth result;
  for (size_t m = 0; m < c.members.size(); ++m) {
    if (!real(a, c, m)) continue;
    result.members += 1;
    if (coincident(a, c, m)) result.coincident += 1;
  }
  return result;
}

bool depends(const Alignment& a, const Cluster& source, const Cluster& sink) {
  for (size_t s : source.statements) {
    for (size_t t : sink.statements) {
      if (a.depends(s, t)) return true;
    }
  }
  return false;
}

bool shares(const Alignment& a, const Cluster& x, const Cluster& y) {
  for (size_t s : x.statements) {
    for (size_t t : y.statements) {
      if (a.shares(s, t)) return true;
    }
  }
  return false;
}

/// Whether all that relates the two clusters keeps these members equal. By reads in common if nothing else relates
/// them.
bool aligned(const Alignment& a, const Cluster& x, size_t x_member, const Cluster& y, size_t y_member,
             bool by_sharing) {
  for (size_t i = 0; i < x.statements.size(); ++i) {
    for (size_t j = 0; j < y.statements.size(); ++j) {
      const size_t s = x.statements[i], t = y.statements[j];
      const int d = x.members[x_member][i], e = y.members[y_member][j];
      if (!a.equal(s, d, t, e)) return false;
      if (by_sharing && a.extent(s, d) != a.extent(t, e)) return false;
      if (by_sharing && a.shares(s, t) && !a.equal_where_shared(s, d, t, e)) return false;
    }
  }
  return true;
}

/// Members whose extent is 1 are equal to each other by accident: a pair of like extents is preferred.
int64_t mismatch(const Alignment& a, const Cluster& x, size_t x_member, const Cluster& y, size_t y_member) {
  const int64_t p = a.extent(x.statements.front(), x.members[x_member].front());
  const int64_t q = a.extent(y.statements.front(), y.members[y_member].front());
  return p > q ? p - q : q - p;
}

/// The statement whose tuple decides the order of members: the one with most dimensions, the last of several.
size_t reference(const Alignment& a, const std::vector<size_t>& statements) {
  size_t best = 0;
  for (size_t s = 0; s < statements.size(); ++s) {
    if (a.dimensions(statements[s]) >= a.dimensions(statements[best])) best = s;
  }
  return best;
}

void order_members(const Alignment& a, Cluster& c) {
  const size_t by = reference(a, c.statements);
  std::sort(c.members.begin(), c.members.end(), [&](const auto& p, const auto& q) { return p[by] < q[by]; });
  std::vector<std::vector<int>> sorted, carried;
  for (size_t m = 0; m < c.members.size(); ++m) (coincident(a, c, m) ? sorted : carried).push_back(c.members[m]);
  const bool permutable =
      std::all_of(c.statements.begin(), c.statements.end(), [&](size_t s) { return a.permutable(s); });
  if (!permutable && !carried.empty()) return;
  sorted.insert(sorted.end(), carried.begin(), carried.end());
  c.members = sorted;
}

/// The cluster of both with the members that they can share.
Cluster merged(const Alignment& a, const Cluster& x, const Cluster& y, bool by_sharing) {
  std::vector<std::pair<size_t, bool>> from;  // position in x or y, and whether it is in y
  Cluster result;
  std::vector<std::pair<size_t, std::pair<bool, size_t>>> order;
  for (size_t i = 0; i < x.statements.size(); ++i) order.push_back({x.statements[i], {false, i}});
  for (size_t j = 0; j < y.statements.size(); ++j) order.push_back({y.statements[j], {true, j}});
  std::sort(order.begin(), order.end());
  for (const auto& [statement, place] : order) result.statements.push_back(statement);
  std::vector<bool> used(y.members.size(), false);
  for (size_t m = 0; m < x.members.size(); ++m) {
    std::optional<size_t> best;
    for (size_t n = 0; n < y.members.size(); ++n) {
      if (used[n] || !aligned(a, x, m, y, n, by_sharing)) continue;
      if (!best || mismatch(a, x, m, y, n) < mismatch(a, x, m, y, *best)) best = n;
    }
    if (!best) continue;
    used[*best] = true;
    std::vector<int>& member = result.members.emplace_back();
    for (const auto& [statement, place] : order) {
      member.push_back(place.first ? y.members[*best][place.second] : x.members[m][place.second]);
    }
  }
  order_members(a, result);
  return result;
}

/// Clusters of one level, merged pair by pair.
class Clustering {
 public:
  Clustering(const Alignment& alignment, Fusion fusion, std::vector<Cluster> clusters)
      : a_(alignment), fusion_(fusion), clusters_(std::move(clusters)) {}

  std::vector<Cluster> run() {
    while (fusion_ != Fusion::kMin && merge_best()) continue;
    return in_order();
  }

  /// What keeps two clusters of the result apart; "" if nothing does.
  std::string reason(size_t i, size_t j) const {
    const Cluster &x = clusters_[i], &y = clusters_[j];
    if (fusion_ == Fusion::kMin) return "the fusion strategy MIN merges no statements";
    const bool related = depends(a_, x, y) || depends(a_, y, x);
    if (!related && !shares(a_, x, y)) return "neither uses a value of the other, and they read no tensor in common";
    const Worth both = worth(a_, merged(a_, x, y, !related));
    if (both.members == 0) {
      return related ? "the second uses values of the first in other iterations than those that make them"
                     : "they read a tensor in common, and no loop of one reads the elements in the other's order";
    }
    if (!accepted(x, y, both, related)) {
      const int either = std::max(worth(a_, x).coincident, worth(a_, y).coincident);
      return related ? fmt::format("together they would have {} of {} parallel loops", both.coincident, either)
                     : "they only read a tensor in common, and would give up loops for it";
    }
    return convex(i, j) ? "" : "other statements have to run between them";
  }

 private:
  bool merge_best() {
    std::optional<Cluster> best;
    std::pair<size_t, size_t> pair;
    Worth best_worth;
    for (size_t i = 0; i < clusters_.size(); ++i) {
      for (size_t j = i + 1; j < clusters_.size(); ++j) {
        const bool related = depends(a_, clusters_[i], clusters_[j]) || depends(a_, clusters_[j], clusters_[i]);
        if (!related && !shares(a_, clusters_[i], clusters_[j])) continue;
        Cluster both = merged(a_, clusters_[i], clusters_[j], !related);
        const Worth w = worth(a_, both);
        if (!accepted(clusters_[i], clusters_[j], w, related) || (best && !(w > best_worth))) continue;
        if (!convex(i, j)) continue;
        best = std::move(both);
        best_worth = w;
        pair = {i, j};
      }
    }
    if (!best) return false;
    clusters_[pair.first] = *best;
    clusters_.erase(clusters_.begin() + pair.second);
    return true;
  }

  /// What the strategy says. Statements that only read a common tensor never give up anything for it.
  bool accepted(const Cluster& x, const Cluster& y, const Worth& both, bool related) const {
    if (both.members == 0) return false;
    const Worth wx = worth(a_, x), wy = worth(a_, y);
    const int either = std::max(wx.coincident, wy.coincident);
    if (!related) return both.coincident >= either && both.members >= std::max(wx.members, wy.members);
    return fusion_ == Fusion::kMax || both.coincident >= std::min(either, 3);
  }

  /// No path of dependences between the two leads through a third.
  bool convex(size_t i, size_t j) const { return !leads_around(i, j) && !leads_around(j, i); }

  bool leads_around(size_t from, size_t to) const {
    std::vector<bool> seen(clusters_.size(), false);
    std::vector<size_t> open;
    for (size_t next = 0; next < clusters_.size(); ++next) {
      if (next != to && next != from && depends(a_, clusters_[from], clusters_[next])) open.push_back(next);
    }
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (at == to) return true;
      if (seen[at]) continue;
      seen[at] = true;
      for (size_t next = 0; next < clusters_.size(); ++next) {
        if (next != at && depends(a_, clusters_[at], clusters_[next])) open.push_back(next);
      }
    }
    return false;
  }

  /// Always the first cluster in program order that no other has to precede.
  std::vector<Cluster> in_order() {
    std::vector<Cluster> ordered;
    std::sort(clusters_.begin(), clusters_.end(),
              [](const Cluster& x, const Cluster& y) { return x.statements.front() < y.statements.front(); });
    while (!clusters_.empty()) {
      size_t next = 0;
      for (; next < clusters_.size(); ++next) {
        bool ready = true;
        for (size_t other = 0; other < clusters_.size(); ++other) {
          ready = ready && (other == next || !depends(a_, clusters_[other], clusters_[next]));
        }
        if (ready) break;
      }
      ordered.push_back(clusters_[next]);
      clusters_.erase(clusters_.begin() + next);
    }
    return ordered;
  }

  const Alignment& a_;
  Fusion fusion_;
  std::vector<Cluster> clusters_;
};

}  // namespace

std::vector<Refusal> why_apart(const Alignment& alignment, const std::vector<Cluster>& clusters, Fusion fusion) {
  const Clustering clustering(alignment, fusion, clusters);
  std::vector<Refusal> refusals;
  for (size_t i = 0; i < clusters.size(); ++i) {
    for (size_t j = i + 1; j < clusters.size(); ++j) {
      if (j == i + 1 || depends(alignment, clusters[i], clusters[j])) {
        refusals.push_back({i, j, clustering.reason(i, j)});
      }
    }
  }
  return refusals;
}

bool coincident(const Alignment& alignment, const Cluster& cluster, size_t member) {
  if (!cluster.shifts.empty()) return false;
  for (size_t s = 0; s < cluster.statements.size(); ++s) {
    if (!alignment.coincident(cluster.statements[s], cluster.members[member][s])) return false;
  }
  return true;
}

std::vector<Cluster> cluster(const Alignment& alignment, const std::vector<size_t>& statements,
                             const std::vector<std::vector<int>>& open, Fusion fusion) {
  std::vector<Cluster> singles;
  for (size_t s = 0; s < statements.size(); ++s) {
    Cluster& single = singles.emplace_back();
    single.statements = {statements[s]};
    for (int dimension : open[s]) single.members.push_back({dimension});
    order_members(alignment, single);
  }
  std::vector<Cluster> clusters = Clustering(alignment, fusion, std::move(singles)).run();
  for (Cluster& c : clusters) {
    for (size_t s = 0; s < c.statements.size(); ++s) {
      const size_t place = std::find(statements.begin(), statements.end(), c.statements[s]) - statements.begin();
      std::vector<int>& left = c.remaining.emplace_back(open[place]);
      for (const std::vector<int>& member : c.members) left.erase(std::find(left.begin(), left.end(), member[s]));
    }
  }
  return clusters;
}

}  // namespace tc::poly
