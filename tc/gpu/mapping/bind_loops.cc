#include "tc/gpu/mapping/bind_loops.h"

#include <algorithm>
#include <set>

#include "tc/poly/isl_ext.h"
#include "tc/poly/loop_tree.h"
#include "tc/poly/rebuild.h"

namespace tc::gpu {
namespace {

/// Rebuilds the tree with bindings.
class LoopBinder {
 public:
  LoopBinder(const poly::Scop& scop, const std::map<std::string, Dealt>& bound, const std::set<std::string>& by_warp)
      : scop_(scop), bound_(bound), by_warp_(by_warp) {
    kernel_.scop = scop;
  }

  Result<Kernel> run() {
    for (const auto& [name, dealt] : bound_) {
      TC_TRY(ref, poly::find_loop(scop_, name));
      std::array<int64_t, 3>& counts = dealt.to == Dealt::To::kBlocks ? kernel_.grid : kernel_.block;
      int64_t& count = counts[static_cast<size_t>(dealt.axis)];
      count = std::max(count, poly::loop_range(scop_, ref).extent);
    }
    TC_TRY(schedule, build(scop_.schedule.root().child(0), {}));
    kernel_.scop.schedule = std::move(schedule);
    return std::move(kernel_);
  }

 private:
  using Axes = std::set<int>;  ///< of blocks that loops above are dealt out to

  const Dealt* dealt_of(const isl::schedule_node& mark) const {
    const auto found = bound_.find(poly::loop_name(mark));
    return found == bound_.end() ? nullptr : &found->second;
  }

  bool is_by_warp(const isl::schedule_node& mark) const { return by_warp_.count(poly::loop_name(mark)) > 0; }

  /// Whether some loop at or below is dealt out.
  bool deals(const isl::schedule_node& node) const {
    if (poly::is_loop(node) && (dealt_of(node) != nullptr || is_by_warp(node))) return true;
    for (unsigned i = 0; i < node.n_children(); ++i) {
      if (deals(node.child(static_cast<int>(i)))) return true;
    }
    return false;
  }

  isl::schedule marked(const isl::schedule& below, Binding binding) {
    kernel_.bindings.push_back(std::move(binding));
    return poly::insert_mark(below, kBindMark + std::to_string(kernel_.bindings.size() - 1));
  }

  Result<isl::schedule> build(const isl::schedule_node& node, const Axes& blocks) {
    if (!deals(node)) return region(node, blocks);
    if (poly::is_loop(node)) return loop(node, blocks);
    if (node.isa<isl::schedule_node_filter>()) return build(node.child(0), blocks);
    isl::schedule whole;
    for (unsigned i = 0; i < node.n_children(); ++i) {
      TC_TRY(part, build(node.child(static_cast<int>(i)), blocks));
      whole = whole.is_null() ? part : poly::sequence(whole, part);
    }
    return whole;
  }

  Result<isl::schedule> loop(const isl::schedule_node& mark, Axes blocks) {
    if (is_by_warp(mark)) return shared_by_warp(mark, blocks);
    const Dealt* dealt = dealt_of(mark);
    if (dealt != nullptr && dealt->to == Dealt::To::kThreads) return threads(mark, blocks);
    const auto band = mark.child(0).as<isl::schedule_node_band>();
    if (dealt != nullptr && !blocks.insert(dealt->axis).second) {
      return fail("'{}' and a loop above it are on the same axis of blocks", poly::loop_name(mark));
    }
    TC_TRY(below, build(band.child(0), blocks));
    isl::schedule whole = poly::under_band(band.partial_schedule(), poly::flags_of(band), below);
    if (dealt != nullptr) whole = marked(whole, {Dealt::To::kBlocks, {*dealt}});
    return poly::insert_mark(whole, poly::mark_name(mark));
  }

  /// A run of loops on threads as one band, and all below them.
  Result<isl::schedule> threads(const isl::schedule_node& top, const Axes& blocks) {
    Binding binding{Dealt::To::kThreads, {}};
    isl::union_pw_aff_list values(top.ctx(), 3);
    std::string names;
    Axes axes;
    isl::schedule_node node = top;
    while (poly::is_loop(node) && dealt_of(node) != nullptr && dealt_of(node)->to == Dealt::To::kThreads) {
      const Dealt dealt = *dealt_of(node);
      if (!axes.insert(dealt.axis).second)
        return fail("'{}' and a loop above it are on the same axis of threads", poly::loop_name(node));
      binding.members.emplace_back(dealt);
      values = values.add(node.child(0).as<isl::schedule_node_band>().partial_schedule().at(0));
      if (!names.empty()) names += ",";
      names += poly::loop_name(node);
      node = node.child(0).child(0);
    }
    if (deals(node)) return fail("below '{}' stands another loop on blocks or threads, not right below it", names);
    TC_TRY_VOID(check_blocks(node, blocks));
    const auto members = static_cast<unsigned>(binding.members.size());
    const isl::multi_union_pw_aff partial =
        isl::space::unit(top.ctx()).add_unnamed_tuple(members).multi_union_pw_aff(values);
    const poly::BandFlags flags{false, std::vector<bool>(members, false)};
    const isl::schedule band = poly::under_band(partial, flags, poly::subtree(node));
    return poly::insert_mark(marked(band, std::move(binding)), poly::kLoopMark + names);
  }

  /// A reduction of which all lanes of the first warp have a part.
  Result<isl::schedule> shared_by_warp(const isl::schedule_node& mark, const Axes& blocks) {
    constexpr int64_t kWarp = 32;
    TC_TRY_VOID(check_blocks(mark, blocks));
    if (deals(mark.child(0))) return fail("below '{}' stands a loop on blocks or threads", poly::loop_name(mark));
    if (kernel_.block[0] % kWarp != 0) {
      return fail("no warp has '{}': a block has {} threads in x, no multiple of {}", poly::loop_name(mark),
                  kernel_.block[0], kWarp);
    }
    return marked(poly::insert_mark(poly::subtree(mark), kWarpMark), {Dealt::To::kThreads, {}, true});
  }

  Result<isl::schedule> region(const isl::schedule_node& node, const Axes& blocks) {
    TC_TRY_VOID(check_blocks(node, blocks));
    return marked(poly::subtree(node), {Dealt::To::kThreads, {}});
  }

  Result<void> check_blocks(const isl::schedule_node& node, const Axes& blocks) const {
    for (int axis = 0; axis < 3; ++axis) {
      if (kernel_.grid[static_cast<size_t>(axis)] == 1 || blocks.count(axis) > 0) continue;
      return fail("all blocks would run {}: no loop above is bound to block_{}", poly::statements_at(scop_, node).at(0),
                  std::string(1, static_cast<char>('x' + axis)));
    }
    return {};
  }

  const poly::Scop& scop_;
  const std::map<std::string, Dealt>& bound_;
  const std::set<std::string>& by_warp_;
  Kernel kernel_;
};

}  // namespace

Result<Kernel> bind_loops(const poly::Scop& scop, const std::map<std::string, Dealt>& bound,
                          const std::set<std::string>& by_warp) {
  return LoopBinder(scop, bound, by_warp).run();
}

}  // namespace tc::gpu
