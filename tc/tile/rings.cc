#include "tc/tile/rings.h"

#include <fmt/format.h>
#include <isl/map.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "tc/tile/ring_sets.h"

namespace tc::tile {
namespace {

/// One offset after the other, as a mode's coordinate grows.
bool is_increasing(const Layout& mode) {
  const std::vector<int64_t> extents = flatten(mode.shape()), strides = flatten(mode.stride());
  int64_t reach = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1) continue;
    if (strides[i] <= reach) return false;
    reach += (extents[i] - 1) * strides[i];
  }
  return true;
}

/// A proof about one ring of a kernel.
class Prover : private RingSets {
 public:
  Prover(const Kernel& kernel, const IslContext& context, const Ring& ring)
      : RingSets(kernel, context, ring), kernel_(kernel), filled_(filled_by(kernel, ring)) {
    for (int leaf : product_leaves()) {
      const WarpgroupMatMul& n = *product_of(flow().leaves[leaf]);
      sums_.insert(n.d);
      if (n.held) held_.insert(n.held->tensor);
    }
  }

  void prove() {
    constexpr int kGroupWarps = 4;
    for_each_node(ring().body, [this](const Node& node) {
      need(order_of(node) != Order::kBlock, "a barrier of the block lies within the ring");
      need(order_of(node) != Order::kCluster, "a barrier of the cluster lies within the ring");
      need(order_of(node) != Order::kWarpgroup || ring().teams == 1 || ring().readers % kGroupWarps == 0,
           "warps of several teams wait for each other");
    });
    prove_producer();
    prove_readers();
    if (ring().teams > 1) prove_hand_overs();
    prove_cluster();
    prove_bytes();
    prove_boxes();
    prove_accesses();
  }

  /// Between a product and a wait that names its sums, nobody but products touches them. The same holds for operands
  /// that threads hold, but somebody may never touch them again. Of
  /// all products of the kernel, behind prove().
  void prove_registers() {
    std::set<std::string> all = sums_;
    all.insert(held_.begin(), held_.end());
    for (const std::string& sum : all) {
      isl::set products = key_space().subtract(key_space());
      for (int leaf : product_leaves()) {
        const WarpgroupMatMul& n = *product_of(flow().leaves[leaf]);
        if (n.d == sum || (n.held && n.held->tensor == sum)) products = products.unite(key_set(leaf));
      }
      isl::set waits = key_space().subtract(key_space());
      for (int leaf : wait_leaves()) {
        const auto& names = matmul_wait_of(*flow().leaves[leaf].node)->sums;
        if (std::ranges::find(names, sum) != names.end()) waits = waits.unite(key_set(leaf));
      }
      const isl::map ended = waits_for_products().intersect_domain(products).intersect_range(waits);
      if (sums_.count(sum) > 0 && !products.is_subset(ended.domain()))
        give_up("no wait names '{}' behind each of its products", sum);
      for (int leaf = 0; leaf < std::ssize(flow().leaves); ++leaf) {
        if (product_of(flow().leaves[leaf]) || !touches(leaf, sum)) continue;
        // What holds for more instances than there are holds for all of them.
        const isl::set touching = widest_keys(leaf).range();
        const isl::map later = before().intersect_domain(products).intersect_range(touching);
        const isl::map behind = ended.apply_range(before().intersect_domain(waits).intersect_range(touching));
        if (!later.is_subset(behind)) {
          give_up("'{}' may touch '{}' before the products that use it have been waited for",
                  flow().leaves[leaf].text(), sum);
        }
      }
    }
  }

  /// That no reader waits for a turn of another ring, which is filled later, before it releases what an acquire of this
  /// one waits for. Behind prove() of both.
  void prove_no_cycle(Prover& other) {
    const isl::map acquires = step(Kind::kAcquire), releases = step(Kind::kRelease);
    const isl::map waited_for =
        in_block(acquires.apply_range(read(fmt::format("{{ [t] -> [t - {0}] : t >= {0} }}", ring().stages)))
                     .apply_range(releases.reverse()));
    const isl::map awaits = other.step(Kind::kAwait);
    const isl::map earlier = before().intersect_domain(awaits.domain()).intersect_range(releases.domain()).reverse();
    const isl::map commits = in_block(awaits.apply_range(other.step(Kind::kCommit).reverse()));
    need_order(waited_for.apply_range(earlier).apply_range(commits).reverse(),
               "a reader may wait for a turn of another ring before it releases what the thread that fills waits for");
  }

 private:
  static const WarpgroupMatMul* product_of(const Leaf& leaf) { return warpgroup_product_of(*leaf.node); }

  // Turns.

  /// No thread does a turn twice, or after a later one.
  void prove_increasing(const isl::map& turns, const char* name) {
    const isl::map later = before().intersect_domain(turns.domain()).intersect_range(turns.domain());
    const isl::map down = turns.apply_range(read("{ [x] -> [y] : x >= y }")).apply_range(turns.reverse());
    if (!later.intersect(down).is_empty()) give_up("a thread may {} a turn twice, or after a later one", name);
  }

  /// Each thread does turns 0, 1, 2, ... in this order, each once.
  void prove_order(const isl::map& turns, const char* name) {
    prove_increasing(turns, name);
    const isl::map done = by_thread(turns);
    const bool from_zero = done.is_subset(shifted(done, 0));
    if (!from_zero || !shifted(done, -1).is_subset(done)) give_up("a thread may {} a turn before the one below", name);
  }

  void need_order(const isl::map& pairs, const char* why) const { need(pairs.is_subset(before()), why); }

  void prove_producer() {
    const isl::map acquires = step(Kind::kAcquire), commits = step(Kind::kCommit), drains = step(Kind::kDrain);
    const isl::set threads = by_thread(acquires.unite(commits).unite(drains).unite(boxes())).domain();
    const isl::set numbers =
        isl::manage(isl_set_project_out(threads.copy(), isl_dim_set, 0, static_cast<unsigned>(block_count())));
    need(numbers.is_empty() || numbers.is_singleton(), "more than one thread fills the ring");
    const isl::val last_reader = number(32 * ring().all_readers() - 1);
    const isl::set readers = isl::manage(isl_set_upper_bound_val(numbers.copy(), isl_dim_set, 0, last_reader.copy()));
    need(readers.is_empty(), "a warp that reads the ring fills it too");
    prove_order(acquires, "acquire");
    prove_order(commits, "commit");
    need(by_thread(acquires).is_equal(by_thread(commits)), "a turn may be acquired and not committed, or the reverse");
    need_order(of_same_turn(acquires, commits), "a turn may be committed before it is acquired");
    need_order(of_same_turn(shifted(commits, 1), acquires), "a turn may be acquired before the last one is committed");
    need(by_thread(boxes()).is_subset(by_thread(acquires)), "a box may be copied for a turn that nobody acquires");
    need_order(of_same_turn(acquires, boxes()), "a box may be copied before its turn is acquired");
    need_order(of_same_turn(boxes(), commits), "a box may be copied after its turn has been committed");
    // A drain waits for turns that are committed before it, and released.
    need_order(in_thread(commits.apply_range(read("{ [t] -> [d] : t < d }")).apply_range(drains.reverse())),
               "a ring may be drained before turns are committed");
    need(shifted(by_thread(drains), -1).is_subset(by_thread(commits)),
         "a ring may be drained of more turns than it has");
  }

  void prove_readers() {
    const isl::map awaits = step(Kind::kAwait), releases = step(Kind::kRelease);
    prove_increasing(awaits, "await");
    prove_increasing(releases, "release");
    prove_team(awaits, "await");
    const isl::map commits = by_block(by_thread(step(Kind::kCommit)));
    need(by_block(by_thread(awaits)).is_equal(commits),
         "the turns that readers await are not those that are committed");
    need(by_thread(releases).is_subset(by_thread(awaits)), "a turn may be released that is not awaited");
    const isl::map again = shifted(isl::manage(isl_map_add_dims(commits.copy(), isl_dim_in, 1)), -ring().stages);
    need(again.intersect(by_thread(awaits)).is_subset(by_thread(releases)),
         "a turn that is waited for is not released");
    need_order(of_same_turn(awaits, releases), "a turn may be released before it is awaited");
    const isl::map far = read(fmt::format("{{ [x] -> [y] : x >= y + {} }}", ring().stages));
    const isl::map ahead = in_thread(awaits.apply_range(far).apply_range(releases.reverse()));
    need(ahead.intersect(before()).is_empty(), "a thread may await a turn while it holds its buffer for an older one");
  }

  /// What some thread does for a turn, or a hand-over, all threads of its team do, and no others.
  void prove_team(const isl::map& steps, const char* name) {
    const int threads = 32 * ring().readers;
    std::string blocks, separator;
    for (int d = 0; d < block_count(); ++d) blocks += fmt::format("{}b{}", std::exchange(separator, ", "), d);
    const std::string place = blocks + separator + "th";
    const isl::map team =
        read(fmt::format("{{ [{}] -> [floor(th/{})] : 0 <= th < {} }}", place, threads, threads * ring().teams));
    const isl::map done = by_thread(steps);
    if (!done.domain().is_subset(team.domain())) give_up("other threads than readers may {} a turn", name);
    const isl::map in_order = flat_product(read(fmt::format("{{ [{}] -> [{}] }}", place, blocks)), done);
    const isl::map team_of_turn = in_order.reverse().apply_range(team);
    if (!team_of_turn.is_single_valued()) give_up("several teams may {} a turn", name);
    isl::map all = in_block(team_of_turn.apply_range(team.reverse())).reverse();
    all = isl::manage(isl_map_project_out(all.release(), isl_dim_out, 0, static_cast<unsigned>(block_count())));
    if (!all.is_equal(done)) give_up("some threads of a team may not {} a turn that others do", name);
  }
  static isl::map flat_product(const isl::map& first, const isl::map& second) {
    return isl::manage(isl_map_flat_range_product(first.copy(), second.copy()));
  }

  // Teams.

  /// The barrier of a hand-over is in the phase of its number or has just ended it, when the number is taken. Awaits
  /// know the same of theirs, by what was awaited before a hand-over. And nobody waits forever.
  void prove_hand_overs() {
    const isl::map takes = step(Kind::kTake), passes = step(Kind::kPass);
    need(ring().groups.empty(), "teams read a ring that blocks of a cluster share");
    for (const auto& [steps, name] : {std::pair(&takes, "take"), std::pair(&passes, "pass")}) {
      prove_increasing(*steps, name);
      prove_team(*steps, name);
    }
    need(by_block(by_thread(takes)).is_subset(by_block(by_thread(passes))),
         "a hand-over may be taken that nobody passes");
    need(passed_by_takers().is_equal(shifted(by_thread(passes), -1)),
         "those who pass a hand-over have not taken the one before");
    need_order(of_same_turn(shifted(takes, 1), passes), "a hand-over may be passed before the last one is taken");
    const isl::map before_last = read(fmt::format("{{ [n] -> [n - {0}] : n >= {0} }}", ring().teams));
    need(takes.apply_range(before_last).is_subset(earlier(takes, takes)),
         "a team may take a hand-over two phases behind its last one");
    prove_phases();
    prove_progress();
  }
  /// { [block, thread] -> n } of those that take n where somebody passes n + 1.
  isl::map passed_by_takers() const {
    const isl::map next = shifted(by_block(by_thread(step(Kind::kPass))), -1);
    return by_thread(step(Kind::kTake)).intersect(isl::manage(isl_map_add_dims(next.copy(), isl_dim_in, 1)));
  }
  /// { key of a later step -> turn of an earlier one of its thread }
  isl::map earlier(const isl::map& first, const isl::map& later) const {
    return before().intersect_domain(first.domain()).intersect_range(later.domain()).reverse().apply_range(first);
  }

  /// Who awaits turn t knows that t - stages has arrived: its thread has awaited that, or another one has before it
  /// passed what this one has taken.
  void prove_phases() {
    const isl::map awaits = step(Kind::kAwait), takes = step(Kind::kTake), passes = step(Kind::kPass);
    const isl::map last = read(fmt::format("{{ [t] -> [t - {0}] : t >= {0} }}", ring().stages));
    const isl::map by_others =
        in_block(earlier(takes, awaits).apply_range(passes.reverse())).apply_range(earlier(awaits, passes));
    need(awaits.apply_range(last).is_subset(earlier(awaits, awaits).unite(by_others)),
         "a turn may be awaited two phases ahead of its barrier");
  }

  /// A thread that passes n awaits before that only turns below those that are awaited behind a take of n or of a later
  /// number, and takes only numbers below n. What is released behind such a take is not needed for those turns.
  void prove_progress() {
    const isl::map awaits = step(Kind::kAwait), takes = step(Kind::kTake), passes = step(Kind::kPass);
    const isl::map ahead = of_block(passes, earlier(awaits, passes));
    const auto fails = [&](const isl::map& behind, int64_t room) {
      const isl::map meet = read(fmt::format("{{ [n, t] -> [m, u] : m >= n and t >= u + {} }}", room));
      return !in_block_ranges(ahead, meet, behind).is_empty();
    };
    need(!fails(of_block_reversed(takes, awaits), 0), "a team may wait for one that waits for a later turn");
    need(!fails(of_block_reversed(takes, step(Kind::kRelease)), ring().stages),
         "a turn may be released behind a hand-over that waits for turns which need its buffer");
    const isl::map taken = flat_product(passes, earlier(takes, passes));
    need(taken.intersect_range(read("{ [n, m] -> [] : m >= n }").domain()).is_empty(),
         "a hand-over may be passed behind a later one");
  }
  /// { [block] -> [n, t] }: steps of number n, and turns of earlier ones of the same thread.
  isl::map of_block(const isl::map& steps, const isl::map& turns) const { return by_block(flat_product(steps, turns)); }
  /// { [block] -> [n, t] }: steps of turn t, and numbers of earlier ones of the same thread.
  isl::map of_block_reversed(const isl::map& first, const isl::map& later) const {
    return by_block(flat_product(earlier(first, later), later));
  }
  /// Blocks in which `first` and `second` have values that meet.
  static isl::map in_block_ranges(const isl::map& first, const isl::map& meet, const isl::map& second) {
    return first.apply_range(meet).intersect(second);
  }

  // Clusters.

  /// Blocks that share boxes do the same turns, each box of a group comes from a block that waits for those releases,
  /// and no block ends before what others do to it has arrived.
  void prove_cluster() {
    if (ring().groups.empty()) return;
    const isl::map turns = isl::manage(isl_map_project_out(by_thread(step(Kind::kCommit)).release(), isl_dim_in,
                                                           static_cast<unsigned>(block_count()), 1));
    const isl::map elsewhere = in_cluster({}).apply_range(turns);
    need(elsewhere.is_subset(turns), "blocks of a cluster do not fill the same turns");
    for (const BlockGroup& group : ring().groups) {
      const bool brings = std::ranges::any_of(box_leaves(), [&](int leaf) {
        return box_of(*flow().leaves[leaf].node)->group == group && !key_set(leaf).is_empty();
      });
      need(brings, "a block waits for releases of one to which it brings no box");
    }
    prove_end();
  }

  /// The thread that fills drains all turns, which all readers release.
  void prove_end() {
    const isl::map commits = by_thread(step(Kind::kCommit)), drains = by_thread(step(Kind::kDrain));
    const isl::map later = drains.apply_range(read("{ [d] -> [t] : t < d }"));
    need(commits.is_subset(later), "a block may end before releases of others have arrived");
    need(by_thread(step(Kind::kRelease)).is_equal(by_thread(step(Kind::kAwait))),
         "a turn that a block drains is not released");
  }

  /// { block -> block' } of a cluster; of a group, if there is one, which may be the block alone.
  isl::map in_cluster(const std::optional<BlockGroup>& group) const {
    std::string from, to, where, number[2];
    int64_t stride = 1;
    int d = 0;
    for (size_t i = 0; i < 3; ++i) {
      if (kernel_.grid[i] == 1) continue;
      from += fmt::format("{}b{}", d > 0 ? ", " : "", d);
      to += fmt::format("{}c{}", d > 0 ? ", " : "", d);
      where += fmt::format("{}0 <= b{} < {} and 0 <= c{} < {} and floor(b{}/{}) = floor(c{}/{})", d > 0 ? " and " : "",
                           d, kernel_.grid[i], d, kernel_.grid[i], d, kernel_.cluster[i], d, kernel_.cluster[i]);
      for (const int side : {0, 1}) {
        number[side] += fmt::format("{}{} * ({}{} mod {})", d > 0 ? " + " : "", stride, side == 0 ? "b" : "c", d,
                                    kernel_.cluster[i]);
      }
      stride *= kernel_.cluster[i];
      ++d;
    }
    if (group && d > 0) {
      const int64_t above = int64_t{group->stride} * group->count;
      where += fmt::format(" and ({0}) mod {2} = ({1}) mod {2} and floor(({0})/{3}) = floor(({1})/{3})", number[0],
                           number[1], group->stride, above);
    }
    return read(fmt::format("{{ [{}] -> [{}] : {} }}", from, to, d > 0 ? where : "true"));
  }
  /// Pairs of instances in blocks whose boxes, of these groups, come to one block.
  isl::map in_reach(const isl::map& pairs, const BlockGroup& first, const BlockGroup& second) const {
    if (ring().groups.empty()) return in_block(pairs);
    const isl::map blocks = in_cluster(first).apply_range(in_cluster(second));
    const auto rest = isl_map_dim(pairs.get(), isl_dim_in) - block_count();
    const isl::map all = isl::manage(isl_map_universe(isl_space_alloc(isl_map_get_ctx(pairs.get()), 0, rest, rest)));
    return pairs.intersect(isl::manage(isl_map_flat_product(blocks.copy(), all.copy())));
  }

  // Boxes.

  /// The boxes of a commit's turn have its bytes: those in loops around the commit and, as often as they always run,
  /// in loops of their own. As many come from each block of a group, which does the same turns.
  void prove_bytes() {
    std::map<int, int64_t> bytes;  // of commits' leaves
    for (int i = 0; i < std::ssize(flow().leaves); ++i) {
      const auto* commit = ring_step_of(*flow().leaves[i].node);
      if (commit && commit->kind == Kind::kCommit && commit->ring == ring().name) bytes[i] = 0;
    }
    for (int box : box_leaves()) {
      bool found = false;
      for (auto& [commit, sum] : bytes) {
        const std::optional<int64_t> times = boxes_in(box, commit);
        if (!times) continue;
        need(!found, "a box belongs to two commits");
        found = true;
        sum += *times * bytes_of(*box_of(*flow().leaves[box].node)) * box_of(*flow().leaves[box].node)->group.count;
      }
      if (!found) give_up("it is not known how often '{}' is copied in a turn", flow().leaves[box].text());
    }
    for (const auto& [commit, sum] : bytes) {
      const int64_t said = ring_step_of(*flow().leaves[commit].node)->bytes;
      if (said != sum) give_up("'{}' is for boxes of {} bytes", flow().leaves[commit].text(), sum);
    }
  }

  int64_t bytes_of(const BoxCopy& copy) const {
    const auto map = std::ranges::find(kernel_.maps, copy.map, &TensorMap::name);
    const auto tensor = std::ranges::find(kernel_.tensors, copy.tensor, &Tensor::name);
    int64_t bytes = element_bytes(tensor->type);
    for (int64_t extent : map->box) bytes *= extent;
    return bytes;
  }

  /// How often a box is copied for each instance of a commit, if its turn is the commit's, and the number constant.
  std::optional<int64_t> boxes_in(int box, int commit) {
    const auto& inner = flow().leaves[box].path.loops;
    const auto& outer = flow().leaves[commit].path.loops;
    if (outer.size() > inner.size()) return {};
    for (size_t l = 0; l < outer.size(); ++l) {
      if (outer[l].id != inner[l].id) return {};
    }
    const AffineView& at = view(box);
    const auto first = static_cast<unsigned>(at.loop_dimension(static_cast<int>(outer.size())));
    const auto own = static_cast<unsigned>(inner.size() - outer.size());
    const auto turns = [&](int leaf, const Halide::Expr& turn) {
      return map_of(value(leaf, turn)).intersect_domain(view(leaf).domain());
    };
    const isl::map of_commit = turns(commit, ring_step_of(*flow().leaves[commit].node)->turn);
    isl::map of_box = turns(box, box_of(*flow().leaves[box].node)->turn);
    of_box = isl::manage(isl_map_project_out(of_box.release(), isl_dim_in, first, own));
    if (!of_box.is_equal(of_commit)) return {};
    isl::set all = isl::manage(isl_set_add_dims(view(commit).domain().copy(), isl_dim_set, own));
    int64_t times = 1;
    for (size_t l = outer.size(); l < inner.size(); ++l) {
      const std::optional<int64_t> trips = constant_trips(*inner[l].loop);
      if (!trips) return {};
      times *= *trips;
      const isl::pw_aff iteration = at.iteration(static_cast<int>(l));
      all = all.intersect(iteration.ge_set(at.constant(0))).intersect(iteration.lt_set(at.constant(*trips)));
    }
    if (!all.is_equal(at.domain())) return {};
    return times;
  }

  /// Elements of a tensor that belong to one turn: a part of 1 / stages.
  int64_t slot_elements(const Tensor& tensor) const {
    const int64_t elements = tensor.elements() / ring().stages;
    const bool divides = elements * ring().stages == tensor.elements() &&
                         (!tensor.swizzle || elements * element_bytes(tensor.type) % kSwizzledAlignment == 0);
    if (!divides) give_up("'{}' is not {} equal buffers", tensor.name, ring().stages);
    return elements;
  }
  isl::pw_aff slot_of(const isl::pw_aff& offset, const Tensor& tensor) const {
    return offset.scale_down(number(slot_elements(tensor))).floor();
  }
  isl::pw_aff offset_of(int leaf, const ElementAccess& access) {
    const std::optional<isl::pw_aff> offset = view(leaf).offset(access);
    if (!offset)
      give_up("'{}' has a subscript of '{}' that is not affine", flow().leaves[leaf].text(), access.tensor->name);
    return *offset;
  }

  /// A box lies in the buffer of its turn.
  void prove_boxes() {
    for (int leaf : box_leaves()) {
      const auto& copy = *box_of(*flow().leaves[leaf].node);
      const ElementAccess& to = flow().leaves[leaf].accesses[0];
      const isl::pw_aff first = offset_of(leaf, to);
      const int64_t elements = bytes_of(copy) / element_bytes(to.tensor->type);
      const isl::pw_aff last = first.add(view(leaf).constant(elements - 1));
      const isl::pw_aff turn = value(leaf, copy.turn).mod(number(ring().stages));
      for (const isl::pw_aff& end : {first, last}) {
        const isl::set wrong = slot_of(end, *to.tensor).ne_set(turn).intersect(view(leaf).domain());
        if (!wrong.is_empty()) give_up("'{}' may leave the buffer of its turn", flow().leaves[leaf].text());
      }
    }
    for (size_t i = 0; i < box_leaves().size(); ++i) {
      for (size_t j = i; j < box_leaves().size(); ++j) prove_apart(box_leaves()[i], box_leaves()[j]);
    }
  }

  /// Two boxes of a turn do not overlap.
  void prove_apart(int first, int second) {
    const auto& one = *box_of(*flow().leaves[first].node);
    const auto& other = *box_of(*flow().leaves[second].node);
    if (one.destination != other.destination) return;
    const auto places = [&](int leaf, const BoxCopy& copy) {
      const isl::map turns = by_key(leaf, value(leaf, copy.turn));
      const isl::map offsets = by_key(leaf, offset_of(leaf, flow().leaves[leaf].accesses[0]));
      return isl::manage(isl_map_flat_range_product(turns.copy(), offsets.copy()));
    };
    const int64_t bytes = element_bytes(flow().leaves[first].accesses[0].tensor->type);
    const isl::map meet = read(
        fmt::format("{{ [t, x] -> [t, y] : x - {} < y < x + {} }}", bytes_of(other) / bytes, bytes_of(one) / bytes));
    const isl::map touching = places(first, one).apply_range(meet).apply_range(places(second, other).reverse());
    isl::map pairs = in_reach(touching, one.group, other.group);
    if (first == second) pairs = pairs.intersect(lexicographic());
    if (!pairs.is_empty()) {
      give_up("'{}' and '{}' may overlap", flow().leaves[first].text(), flow().leaves[second].text());
    }
  }

  // Reads.

  void prove_accesses() {
    for (int leaf = 0; leaf < std::ssize(flow().leaves); ++leaf) {
      const WarpgroupMatMul* product = product_of(flow().leaves[leaf]);
      if (product) {
        prove_product(leaf, *product);
        continue;
      }
      for (const ElementAccess& access : flow().leaves[leaf].accesses) {
        if (filled_.count(access.tensor->name) == 0) continue;
        if (box_of(*flow().leaves[leaf].node) && access.is_write) continue;
        if (access.is_write)
          give_up("'{}' writes '{}', which boxes fill", flow().leaves[leaf].text(), access.tensor->name);
        ElementAccess last = access;
        if (access.dimension >= 0) move(last, access.dimension, access.elements - 1);
        const isl::map held = turns_awaited(leaf, slot_read(leaf, access, last)).subtract(released_before(leaf));
        if (!key_set(leaf).is_subset(held.domain())) {
          give_up("'{}' may read '{}' outside of its turn", flow().leaves[leaf].text(), access.tensor->name);
        }
      }
    }
  }

  static void move(ElementAccess& access, int dimension, int64_t by) {
    Halide::Expr& at = access.subscripts[static_cast<size_t>(dimension)];
    at = at + Halide::Internal::make_const(at.type(), by);
  }

  /// { key -> slot } of what lies between two elements.
  isl::map slot_read(int leaf, const ElementAccess& first, const ElementAccess& last) {
    const Tensor& tensor = *first.tensor;
    for (int d = 0; d < tensor.rank(); ++d) {
      if (!is_increasing(tensor.layout[d])) give_up("'{}' does not lie in increasing order", tensor.name);
    }
    const isl::pw_aff slot = slot_of(offset_of(leaf, first), tensor);
    const isl::set wrong = slot_of(offset_of(leaf, last), tensor).ne_set(slot).intersect(view(leaf).domain());
    if (!wrong.is_empty()) give_up("'{}' may read '{}' across buffers", flow().leaves[leaf].text(), tensor.name);
    return by_key(leaf, slot);
  }

  /// { key of a read -> turn }: awaited by the thread before, and with the slot.
  isl::map turns_awaited(int leaf, const isl::map& slots) {
    const isl::map awaits = step(Kind::kAwait);
    const isl::map earlier = before().intersect_domain(awaits.domain()).intersect_range(key_set(leaf)).reverse();
    const isl::map matching = slots.apply_range(read(fmt::format("{{ [s] -> [t] : s = t mod {} }}", ring().stages)));
    return earlier.apply_range(awaits).intersect(matching);
  }
  isl::map released_before(int leaf) {
    const isl::map releases = step(Kind::kRelease);
    const isl::map earlier = before().intersect_domain(releases.domain()).intersect_range(key_set(leaf)).reverse();
    return earlier.apply_range(releases);
  }

  /// { key of a product -> key of a wait }: the wait is over when the product is. At most `pending` younger groups are
  /// left, so there must be that many.
  const isl::map& waits_for_products() {
    if (covers_) return *covers_;
    isl::map all = empty_map(key_size(), key_size());
    isl::set products = key_space().subtract(key_space());
    for (int leaf : product_leaves()) products = products.unite(key_set(leaf));
    const isl::map next = before().intersect_domain(products).intersect_range(products);
    for (int leaf : wait_leaves()) all = all.unite(covered_by(leaf, products, next));
    covers_ = all.coalesce();
    return *covers_;
  }
  isl::map covered_by(int leaf, const isl::set& products, const isl::map& next) {
    constexpr int kMostPending = 4;
    const int pending = matmul_wait_of(*flow().leaves[leaf].node)->pending;
    if (pending > kMostPending) return empty_map(key_size(), key_size());
    isl::map result = before().intersect_domain(products).intersect_range(key_set(leaf));
    for (int i = 0; i < pending; ++i) result = next.apply_range(result);
    return result;
  }

  /// A product reads turns that its thread holds until it has waited for it.
  void prove_product(int leaf, const WarpgroupMatMul& n) {
    const isl::map releases = step(Kind::kRelease);
    const isl::map waits = waits_for_products().intersect_domain(key_set(leaf));
    need(key_set(leaf).is_subset(waits.domain()), "a product may never be waited for");
    const isl::map then = before().intersect_domain(waits.range()).intersect_range(releases.domain());
    const isl::map released_after = waits.apply_range(then).apply_range(releases);
    const isl::set keys = key_set(leaf);
    for (const MatrixTile* tile : n.shared_tiles()) {
      const auto tensors = tensors_of(kernel_);
      const ElementAccess first{tensors.at(tile->tensor), tile->subscripts, {}};
      if (filled_.count(tile->tensor) == 0) continue;  // another ring's
      ElementAccess last = first;
      move(last, tile->mn_dimension, (tile == &n.a ? WarpgroupAtom::kM : n.atom.n) - 1);
      move(last, tile->k_dimension, int64_t{n.atom.k()} * n.slices - 1);
      const isl::map awaited = turns_awaited(leaf, slot_read(leaf, first, last));
      const isl::map never_released = awaited.subtract(released_by_thread(keys));
      const isl::map held = awaited.intersect(released_after).unite(never_released).subtract(released_before(leaf));
      if (!keys.is_subset(held.domain())) {
        give_up("'{}' may read '{}' outside of its turn", flow().leaves[leaf].text(), tile->tensor);
      }
    }
  }
  /// { key -> turn }: that the key's thread releases at some time.
  isl::map released_by_thread(const isl::set& keys) {
    const isl::map releases = step(Kind::kRelease);
    const isl::map all = isl::manage(isl_map_from_domain_and_range(keys.copy(), releases.domain().release()));
    return in_thread(all).apply_range(releases);
  }

  bool touches(int leaf, const std::string& tensor) const {
    return std::ranges::any_of(flow().leaves[leaf].accesses,
                               [&](const ElementAccess& access) { return access.tensor->name == tensor; });
  }

  const Kernel& kernel_;
  std::set<std::string> filled_;
  std::set<std::string> sums_;
  std::set<std::string> held_;  ///< register tensors that operands are in
  std::optional<isl::map> covers_;
};

}  // namespace

std::set<std::string> tensors_of_rings(const Kernel& kernel) {
  std::set<std::string> result;
  for_each_node(kernel.body, [&](const Node& node) {
    if (const auto* copy = box_of(node)) result.insert(copy->destination);
  });
  return result;
}

namespace {

/// Of several rings only acquires and awaits may wait, which prove_no_cycle() looks at.
void prove_only_turns_wait(const Kernel& kernel) {
  for_each_node(kernel.body, [](const Node& node) {
    const RingStep* step = ring_step_of(node);
    need(!step || step->kind != RingStep::Kind::kDrain, "one of several rings is drained");
    need(order_of(node) != Order::kWarpgroup, "warps wait for each other beside several rings");
    need(!step || !hands_over(step->kind), "teams take turns beside several rings");
  });
}

std::vector<const Ring*> rings_of(const Kernel& kernel) {
  std::vector<const Ring*> result;
  for_each_node(kernel.body, [&](const Node& node) {
    if (const Ring* ring = ring_of(node)) result.push_back(ring);
  });
  return result;
}

/// Each tensor belongs to one ring, and so do those that products read.
void prove_owners(const Kernel& kernel, const std::vector<const Ring*>& rings) {
  std::set<std::string> filled;
  for (const Ring* ring : rings) {
    for (const std::string& tensor : filled_by(kernel, *ring)) {
      if (!filled.insert(tensor).second) give_up("two rings fill '{}'", tensor);
    }
  }
  for_each_node(kernel.body, [&](const Node& node) {
    const WarpgroupMatMul* product = warpgroup_product_of(node);
    if (!product) return;
    for (const MatrixTile* tile : product->shared_tiles()) {
      if (filled.count(tile->tensor) == 0) give_up("a product reads '{}', which no box fills", tile->tensor);
    }
  });
}

}  // namespace

std::vector<std::string> unproved_rings(const Kernel& kernel, unsigned long operations) {
  const IslContext context(operations);
  const std::vector<const Ring*> rings = rings_of(kernel);
  try {
    prove_owners(kernel, rings);
    const bool shares = std::ranges::any_of(rings, [](const Ring* ring) { return !ring->groups.empty(); });
    if (shares && rings.size() > 1) give_up("it has {} rings in a cluster", rings.size());
    if (rings.size() > 1) prove_only_turns_wait(kernel);
    std::vector<std::unique_ptr<Prover>> provers;
    for (const Ring* ring : rings) {
      provers.push_back(std::make_unique<Prover>(kernel, context, *ring));
      provers.back()->prove();
    }
    if (!provers.empty()) provers[0]->prove_registers();
    for (const auto& one : provers) {
      for (const auto& other : provers) {
        if (one != other) one->prove_no_cycle(*other);
      }
    }
  } catch (const NotProved& fault) {
    return {fmt::format("{}: the order of its ring is not proved: {}", kernel.name, fault.why)};
  } catch (const isl::exception&) {
    if (!context.is_exhausted()) throw;
    return {fmt::format("{}: the order of its ring is too hard for {} operations of isl", kernel.name, operations)};
  }
  return {};
}

}  // namespace tc::tile
