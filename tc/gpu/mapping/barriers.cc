#include "tc/gpu/mapping/barriers.h"

#include <isl/schedule_node.h>
#include <isl/union_map.h>

#include <algorithm>
#include <functional>

#include "tc/gpu/mapping/hitting_set.h"
#include "tc/gpu/mapping/thread_index_map.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/dependences.h"
#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::gpu {
namespace {

using Path = std::vector<int>;

bool is_mark(const isl::schedule_node& node, const std::string& prefix) {
  return node.isa<isl::schedule_node_mark>() && poly::mark_name(node).starts_with(prefix);
}

/// A place above the regions: before what stands at `path`.
struct Position {
  Path path;
  isl::set prefixes;  ///< { [schedule prefix] } for which something stands there
  double weight = 1;
};

struct Region {
  Path path;
  isl::union_set domain;
};

class Placer {
 public:
  explicit Placer(const Kernel& kernel);
  std::vector<Path> run();

 private:
  void visit(const isl::schedule_node& node, double iterations);
  void add_dependences(const Region& source, const Region& sink);
  void want(const Region& source, const Region& sink, const Path* carrier);
  isl::set prefixes_at(const isl::schedule_node& node) const;
  bool as_often(int position, int other) const;
  int position_at(const Path& path) const;

  const Kernel& kernel_;
  isl::union_map dependences_;  ///< between different threads
  std::vector<Region> regions_;
  std::vector<Position> positions_;
  std::vector<std::vector<int>> wanted_;
};

isl::set Placer::prefixes_at(const isl::schedule_node& node) const {
  const isl::ctx ctx = node.ctx();
  if (poly::schedule_depth(node) == 0) return isl::set(ctx, "{ [] }");
  const isl::union_set image = poly::node_domain(node).apply(node.prefix_schedule_union_map());
  isl::set result = isl::set::empty(isl::space::unit(ctx).add_unnamed_tuple(poly::schedule_depth(node)));
  for (const isl::set& set : poly::sets_of(image)) result = result.unite(set);
  return result;
}

void Placer::visit(const isl::schedule_node& node, double iterations) {
  const bool after_band = node.has_parent() && node.parent().isa<isl::schedule_node_band>();
  const bool in_sequence = node.has_parent() && node.parent().isa<isl::schedule_node_filter>();
  if (after_band || in_sequence) positions_.push_back({poly::path_of(node), prefixes_at(node), iterations});
  if (is_mark(node, kBindMark) && kernel_.binding(poly::mark_name(node)).to == Dealt::To::kThreads) {
    regions_.push_back({poly::path_of(node), poly::node_domain(node)});
    return;
  }
  double inner = iterations;
  if (node.isa<isl::schedule_node_band>()) {
    const auto band = node.as<isl::schedule_node_band>();
    for (int64_t extent : poly::band_extents(band)) inner *= static_cast<double>(extent);
  }
  for (unsigned i = 0; i < node.n_children(); ++i) visit(node.child(i), inner);
}

Placer::Placer(const Kernel& kernel) : kernel_(kernel) {
  const isl::schedule_node root = kernel.scop.schedule.root();
  visit(root.child(0), 1);
  const isl::union_set domain = poly::node_domain(root);
  const isl::union_map all = kernel.scop.dependences.ordered()
                                 .unite(kernel.scop.dependences.reduction)
                                 .intersect_domain(domain)
                                 .intersect_range(domain);
  const isl::multi_union_pw_aff threads = thread_index_map(kernel, root, Dealt::To::kThreads);
  dependences_ =
      all.subtract(isl::manage(isl_union_map_eq_at_multi_union_pw_aff(all.copy(), threads.copy()))).coalesce();
  if (!kernel.copy_order) return;
  const isl::multi_union_pw_aff blocks = thread_index_map(kernel, root, Dealt::To::kBlocks);
  dependences_ = dependences_.unite(kernel.copy_order->eq_at(blocks)).coalesce();
}

int Placer::position_at(const Path& path) const {
  for (size_t i = 0; i < positions_.size(); ++i) {
    if (positions_[i].path == path) return static_cast<int>(i);
  }
  return -1;
}

/// Whether something stands at `position` whenever something does at `other`, its neighbour.
bool Placer::as_often(int position, int other) const {
  return positions_[static_cast<size_t>(other)].prefixes.is_subset(positions_[static_cast<size_t>(position)].prefixes);
}

bool begins_with(const Path& path, const Path& prefix) {
  return path.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

/// The positions that every way from an instance of `source` to a later one of `sink` passes; within one iteration of
/// all loops that they share, or, with a carrier, from one of its iterations to a later one.
void Placer::want(const Region& source, const Region& sink, const Path* carrier) {
  size_t common = carrier ? carrier->size() : 0;
  if (!carrier) {
    while (common < source.path.size() && source.path[common] == sink.path[common]) ++common;
  }
  std::vector<int> passed;
  const isl::schedule tree = kernel_.scop.schedule;
  // On the way in: before each node from the shared one down to the sink, and before its elder siblings.
  for (size_t length = common + 1; length <= sink.path.size(); ++length) {
    const Path here(sink.path.begin(), sink.path.begin() + static_cast<long>(length));
    const int own = position_at(here);
    if (own < 0) continue;
    passed.push_back(own);
    Path sibling = here;
    const bool in_sequence = poly::node_at(tree, here).parent().isa<isl::schedule_node_filter>();
    if (!in_sequence) continue;
    const size_t turn = length - 2;  // the place of the filter among its siblings
    const int first = !carrier && turn == common ? source.path[turn] + 1 : 0;
    for (sibling[turn] = first; sibling[turn] < here[turn]; ++sibling[turn]) {
      const int at = position_at(sibling);
      if (at >= 0 && as_often(at, own)) passed.push_back(at);
    }
  }
  // On the way out of the source: before the younger siblings of what it stands below.
  for (size_t length = common + 1; length <= source.path.size(); ++length) {
    const Path here(source.path.begin(), source.path.begin() + static_cast<long>(length));
    const int own = position_at(here);
    if (own < 0 || !poly::node_at(tree, here).parent().isa<isl::schedule_node_filter>()) continue;
    const size_t turn = length - 2;
    if (!carrier && turn == common) continue;
    Path sibling = here;
    const int count = static_cast<int>(poly::node_at(tree, here).parent().parent().n_children());
    for (sibling[turn] = here[turn] + 1; sibling[turn] < count; ++sibling[turn]) {
      const int at = position_at(sibling);
      if (at >= 0 && as_often(at, own)) passed.push_back(at);
    }
  }
  wanted_.push_back(passed);
}

void Placer::add_dependences(const Region& source, const Region& sink) {
  isl::union_map left = dependences_.intersect_domain(source.domain).intersect_range(sink.domain);
  for (size_t length = 1; length < std::min(source.path.size(), sink.path.size()) && !left.is_empty(); ++length) {
    const Path path(source.path.begin(), source.path.begin() + static_cast<long>(length));
    if (!begins_with(sink.path, path)) break;
    const isl::schedule_node node = poly::node_at(kernel_.scop.schedule, path);
    if (!node.isa<isl::schedule_node_band>()) continue;
    const isl::multi_union_pw_aff partial = node.as<isl::schedule_node_band>().partial_schedule();
    const isl::union_map within = isl::manage(isl_union_map_eq_at_multi_union_pw_aff(left.copy(), partial.copy()));
    if (!left.is_subset(within)) want(source, sink, &path);
    left = within;
  }
  if (left.is_empty()) return;
  TC_CHECK(source.path != sink.path, "a dependence between threads within a region");
  want(source, sink, nullptr);
}

std::vector<Path> Placer::run() {
  for (const Region& source : regions_) {
    for (const Region& sink : regions_) add_dependences(source, sink);
  }
  std::vector<double> weights;
  for (const Position& p : positions_) weights.push_back(p.weight);
  std::vector<Path> chosen;
  for (int position : min_hitting_set(weights, wanted_)) {
    chosen.push_back(positions_[static_cast<size_t>(position)].path);
  }
  return chosen;
}

}  // namespace

Kernel place_barriers(Kernel kernel) {
  std::vector<Path> chosen = Placer(kernel).run();
  // From the leaves up, so that the paths of those that are left stay right.
  std::sort(chosen.begin(), chosen.end(), [](const Path& a, const Path& b) { return a.size() > b.size(); });
  for (const Path& path : chosen) {
    const isl::schedule_node node = poly::node_at(kernel.scop.schedule, path);
    kernel.scop.schedule = node.insert_mark(poly::make_id(node.ctx(), kBarrierMark)).schedule();
  }
  return kernel;
}

std::optional<std::string> block_fault(const Kernel& kernel) {
  const isl::schedule_node root = kernel.scop.schedule.root();
  const isl::union_set domain = poly::node_domain(root);
  const isl::union_map all = kernel.scop.dependences.ordered()
                                 .unite(kernel.scop.dependences.reduction)
                                 .intersect_domain(domain)
                                 .intersect_range(domain);
  const isl::multi_union_pw_aff blocks = thread_index_map(kernel, root, Dealt::To::kBlocks);
  const isl::union_map within = isl::manage(isl_union_map_eq_at_multi_union_pw_aff(all.copy(), blocks.copy()));
  const isl::union_map across = all.subtract(within);
  if (across.is_empty()) return std::nullopt;
  const poly::Violation pair = poly::first_pair(kernel.scop, across);
  return fmt::format("{} in one block needs {} in another", pair.later, pair.earlier);
}

}  // namespace tc::gpu
