#include "tc/tile/ring_sets.h"

#include <isl/aff.h>
#include <isl/local_space.h>
#include <isl/map.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>

#include <algorithm>

#include "tc/tile/uniform.h"

namespace tc::tile {
namespace {

isl::map equated(const isl::map& pairs, int d) {
  return isl::manage(isl_map_equate(pairs.copy(), isl_dim_in, d, isl_dim_out, d));
}

isl::pw_aff dimension(const AffineView& at, int d) {
  isl_local_space* space = isl_local_space_from_space(isl_set_get_space(at.domain().get()));
  return isl::manage(isl_pw_aff_from_aff(isl_aff_var_on_domain(space, isl_dim_set, static_cast<unsigned>(d))));
}

}  // namespace

std::set<std::string> filled_by(const Kernel& kernel, const Ring& ring) {
  std::set<std::string> result;
  for_each_node(kernel.body, [&](const Node& node) {
    const auto* copy = box_of(node);
    if (copy && copy->ring == ring.name) result.insert(copy->destination);
  });
  return result;
}

RingSets::RingSets(const Kernel& kernel, const IslContext& context, const Ring& ring)
    : kernel_(kernel),
      context_(context),
      flow_(flow_of(kernel)),
      uniform_(uniform_lets(kernel, flow_)),
      ring_(&ring),
      views_(flow_.leaves.size()),
      keys_(flow_.leaves.size()) {
  // Blocks of a cluster may have different values of them.
  if (!ring.groups.empty()) uniform_.clear();
  collect();
}

void RingSets::collect() {
  for (const Leaf& leaf : flow_.leaves) depth_ = std::max(depth_, leaf.path.loops.size());
  for (const Kind kind :
       {Kind::kAcquire, Kind::kCommit, Kind::kDrain, Kind::kAwait, Kind::kRelease, Kind::kPass, Kind::kTake}) {
    steps_[kind] = empty_map(key_size(), 1);
  }
  boxes_ = empty_map(key_size(), 1);
  for (int i = 0; i < std::ssize(flow_.leaves); ++i) {
    match(
        *flow_.leaves[i].node,
        [&](const RingStep& n) {
          if (n.ring == ring_->name) add(steps_[n.kind], i, n.turn);
        },
        [&](const BoxCopy& n) {
          if (n.ring != ring_->name) return;
          box_leaves_.push_back(i);
          add(boxes_, i, n.turn);
        },
        [&](const WarpgroupMatMul&) { product_leaves_.push_back(i); },
        [&](const MatMulWait&) { wait_leaves_.push_back(i); },
        [](const OneOf<Barrier, ClusterStep, WaitForKernels, StartNextKernel, CommitGroup, WaitGroup, BoxStep> auto&) {
        },
        [](const Structure auto&) {},
        [](const OneOf<Store, Atomic, Move, Shuffle, MatMul, MatrixLoad, MatrixStore, BoxStore, ClusterLoad> auto&) {});
  }
  before_ = in_thread(lexicographic());
}

void RingSets::add(isl::map& turns, int leaf, const Halide::Expr& turn) {
  turns = turns.unite(by_key(leaf, value(leaf, turn))).coalesce();
}

const AffineView& RingSets::widest_view(int leaf) {
  auto& made = views_[static_cast<size_t>(leaf)];
  if (!made) made = std::make_unique<AffineView>(context_.get(), kernel_, flow_.leaves[leaf].path, &uniform_);
  return *made;
}

const AffineView& RingSets::view(int leaf) {
  const AffineView& made = widest_view(leaf);
  if (!made.exact()) give_up("'{}' is under conditions or in loops that are not affine", flow_.leaves[leaf].text());
  return made;
}

isl::pw_aff RingSets::value(int leaf, const Halide::Expr& expr) {
  const std::optional<isl::pw_aff> found = view(leaf).value(expr);
  if (!found) give_up("a turn of '{}' is not affine", flow_.leaves[leaf].text());
  return *found;
}

const isl::map& RingSets::keys(int leaf) {
  view(leaf);
  return widest_keys(leaf);
}

const isl::map& RingSets::widest_keys(int leaf) {
  std::optional<isl::map>& made = keys_[static_cast<size_t>(leaf)];
  if (made) return *made;
  const AffineView& at = widest_view(leaf);
  const auto& loops = flow_.leaves[leaf].path.loops;
  std::vector<isl::pw_aff> parts;
  for (int d = 0; d < block_count(); ++d) parts.push_back(dimension(at, d));
  parts.push_back(at.thread_number());
  for (size_t l = 0; l < loops.size(); ++l) {
    parts.push_back(at.constant(place_of(loops[l].id)));
    parts.push_back(at.iteration(static_cast<int>(l)));
  }
  parts.push_back(at.constant(leaf));
  while (static_cast<int>(parts.size()) < key_size()) parts.push_back(at.constant(0));
  isl::map map = map_of(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) {
    map = isl::manage(isl_map_flat_range_product(map.release(), map_of(parts[i]).release()));
  }
  made = map.intersect_domain(at.domain()).coalesce();
  return *made;
}

/// The first leaf of a loop.
int RingSets::place_of(int loop) const {
  for (int i = 0; i < std::ssize(flow_.leaves); ++i) {
    for (const EnclosingLoop& each : flow_.leaves[i].path.loops) {
      if (each.id == loop) return i;
    }
  }
  return -1;
}

isl::map RingSets::by_key(int leaf, const isl::pw_aff& value) {
  return keys(leaf).reverse().apply_range(map_of(value));
}

int RingSets::key_size() const { return block_count() + 1 + static_cast<int>(2 * depth_) + 1; }

int RingSets::block_count() const {
  return static_cast<int>(std::ranges::count_if(kernel_.grid, [](int64_t extent) { return extent > 1; }));
}

isl::map RingSets::empty_map(int from, int to) const {
  isl_space* space = isl_space_alloc(context_.get().get(), 0, static_cast<unsigned>(from), static_cast<unsigned>(to));
  return isl::manage(isl_map_empty(space));
}

isl::set RingSets::key_space() const {
  return isl::manage(isl_set_universe(isl_space_set_alloc(context_.get().get(), 0, static_cast<unsigned>(key_size()))));
}

isl::map RingSets::lexicographic() const { return isl::manage(isl_map_lex_lt(isl_set_get_space(key_space().get()))); }

isl::map RingSets::read(const std::string& text) const {
  return isl::manage(isl_map_read_from_str(context_.get().get(), text.c_str()));
}

isl::map RingSets::in_thread(isl::map pairs) const {
  for (int d = 0; d <= block_count(); ++d) pairs = equated(pairs, d);
  return pairs;
}

isl::map RingSets::in_block(isl::map pairs) const {
  for (int d = 0; d < block_count(); ++d) pairs = equated(pairs, d);
  return pairs;
}

isl::map RingSets::of_same_turn(const isl::map& first, const isl::map& second) const {
  return in_thread(first.apply_range(second.reverse()));
}

isl::map RingSets::by_thread(const isl::map& turns) const {
  const auto rest = static_cast<unsigned>(key_size() - block_count() - 1);
  return isl::manage(isl_map_project_out(turns.copy(), isl_dim_in, static_cast<unsigned>(block_count() + 1), rest));
}

isl::map RingSets::by_block(const isl::map& by_thread) const {
  return isl::manage(isl_map_project_out(by_thread.copy(), isl_dim_in, static_cast<unsigned>(block_count()), 1));
}

isl::map RingSets::shifted(const isl::map& turns, int64_t by) const {
  return turns.apply_range(read(fmt::format("{{ [t] -> [t + {}] : t + {} >= 0 }}", by, by)));
}

isl::map RingSets::map_of(const isl::pw_aff& value) { return isl::manage(isl_map_from_pw_aff(value.copy())); }

}  // namespace tc::tile
