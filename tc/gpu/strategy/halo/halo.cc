#include "tc/gpu/strategy/halo/halo.h"

#include <algorithm>

#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/lower/emit.h"
#include "tc/gpu/strategy/halo/stages.h"
#include "tc/gpu/strategy/halo/strips.h"
#include "tc/support/round.h"

namespace tc::gpu {

using Halide::Expr;
using poly::Ranged;
using tile::NodePtr;

namespace {

constexpr int64_t kUnrolled = 16;  ///< iterations of a reduction
constexpr int64_t kAtOnce = 4;     ///< elements of a thread whose reads are in flight

class Writer {
 public:
  Writer(const poly::Scop& scop, const HaloPlan& plan) : plan_(plan), stages_(scop, kUnrolled, false) {}

  tile::Kernel run(const std::string& name, const Device& device);

 private:
  void choose_grid(const Device& device);
  NodePtr stage(const HaloStage& stage);
  std::vector<Ranged> place_of(const HaloStage& stage, const Ranged& number) const;

  const HaloPlan& plan_;
  StageWriter stages_;
  std::vector<tile::Tensor> shared_;
  std::vector<Ranged> firsts_;  ///< values of a block's tile along the members
  tile::Kernel kernel_;
};

void Writer::choose_grid(const Device& device) {
  std::vector<int64_t> counts;
  for (size_t m = plan_.members.size(); m-- > 0;) counts.push_back(ceil_div(plan_.members[m].extent, plan_.tile[m]));
  const std::vector<Ranged> numbers = deal_blocks(counts, device, kernel_.grid);
  for (size_t m = 0; m < plan_.members.size(); ++m) {
    firsts_.push_back(numbers[plan_.members.size() - 1 - m] * poly::ranged(plan_.tile[m]) +
                      poly::ranged(plan_.members[m].begin));
  }
}

/// All elements of the stage's tile, one after the other by the threads of the block.
NodePtr Writer::stage(const HaloStage& stage) {
  int64_t elements = 1;
  for (const Reach& r : stage.reach) elements *= plan_.extent(r);
  const int64_t rounds = ceil_div(elements, plan_.threads);
  ir::Names& names = stages_.names();
  return loop_over("round", {0, rounds}, kAtOnce, names, [&](const Ranged& round) {
    const Ranged number = round * poly::ranged(plan_.threads) + thread_number(0, plan_.threads);
    return let("element", number, names, [&](const Ranged& named) {
      const Expr exists = poly::less(named, poly::ranged(elements));
      const Ranged counted = poly::ranged(named.expr, 0, std::min(named.max, elements - 1));
      return guarded(exists, stages_.if_exists(stage, place_of(stage, counted)));
    });
  });
}

/// Of the element of the stage's tile that has the number.
std::vector<Ranged> Writer::place_of(const HaloStage& stage, const Ranged& number) const {
  std::vector<Ranged> at(stage.reach.size());
  Ranged rest = number;
  for (size_t d = stage.reach.size(); d-- > 0;) {
    const Reach& reach = stage.reach[d];
    const int64_t extent = plan_.extent(reach);
    const Ranged within = d == 0 ? rest : poly::floor_mod(rest, extent);
    rest = poly::floor_div(rest, extent);
    at[d] = first_of(reach, firsts_[static_cast<size_t>(reach.member)]) + within;
  }
  return at;
}

tile::Kernel Writer::run(const std::string& name, const Device& device) {
  kernel_.name = name;
  kernel_.block = {plan_.threads, 1, 1};
  choose_grid(device);
  for (const auto& [name, reach] : plan_.locals) shared_.push_back(stages_.hold(name, reach, plan_, firsts_));
  std::vector<NodePtr> parts;
  bool copies = false, waits = false;
  for (const HaloStage& one : plan_.stages) {
    const bool copy = !one.copied.empty();
    if (copies && !copy && waits) {
      parts.push_back(make_node(tile::CommitGroup{}));
      parts.push_back(make_node(tile::WaitGroup{0}));
    }
    if (!parts.empty() && !copy) parts.push_back(make_node(tile::Barrier{}));
    parts.push_back(stage(one));
    copies = copy;
    waits = copy && (waits || is_asynchronous(stages_.program().tensor(one.copied).type));
  }
  NodePtr body = sequence(std::move(parts));
  for (const tile::Tensor& tensor : shared_) body = make_node(tile::Allocate{tensor, body});
  kernel_.body = body;
  declare_tensors(kernel_, stages_.program());
  return std::move(kernel_);
}

}  // namespace

tile::Kernel halo(const poly::Scop& scop, const HaloPlan& plan, const Device& device, const std::string& name) {
  return plan.strip ? strips(scop, plan, device, name) : Writer(scop, plan).run(name, device);
}

}  // namespace tc::gpu
