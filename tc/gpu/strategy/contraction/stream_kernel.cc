#include <algorithm>

#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/strategy/contraction/kernel.h"
#include "tc/gpu/strategy/contraction/online_presence.h"
#include "tc/gpu/strategy/contraction/stream_builder.h"

namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

StreamBuilder::StreamBuilder(const poly::Scop& scop, const Chain& chain, const ChainPlan& plan)
    : scop_(scop),
      program_(*scop.program),
      chain_(chain),
      plan_(plan),
      slab_axis_(slab_axis_of(chain.links[0])),
      names_(kernel_names(*scop.program)),
      first_(scop, chain.products[0], plan.plans[0]),
      second_(scop, chain.products[1], plan.plans[1]) {
  first_.slab_axis_ = slab_axis_;
  first_.once_ = plan.plans[0].tensor_cores->a;
  first_.fills_ = &link_;
  second_.reads_ = &link_;
  range_ = slab_range(chain, plan.plans[0]);
}

Expr StreamBuilder::stage(const Expr& turn) const { return hi::simplify(turn % static_cast<int>(stages())); }

void StreamBuilder::place_slabs() {
  if (!range_) return;
  std::map<std::string, Expr> blocks;
  for (size_t i = 0; i < first_.block_.size(); ++i) blocks[block_variable(i)] = first_.block_[i];
  const auto define = [&](const char* name, const Expr& value) {
    const Expr own = hi::simplify(hi::substitute(blocks, value));
    if (hi::is_const(own)) return own;
    return first_.define(name, own);
  };
  first_slab_ = define("first_slab", range_->first);
  turns_ = define("slabs", range_->count);
}

void StreamBuilder::place(tile::Kernel& kernel) {
  const ChainLink& link = chain_.links[0];
  std::vector<int64_t> registers;
  for (size_t axis : first_.all_axes()) registers.push_back(first_.plan_.parallel[axis].registers);
  link_.link = &link;
  link_.tile =
      build::registers(names_.fresh(link.tensor + "_slab"), chain_.products[1].operands[link.operand].type,
                       plan_.plans[0].by_warpgroups() ? first_.layout_of_sums(registers) : row_major(registers));
  link_.tile.written = true;
  link_.reader = chain_.products[1].update.id;
  link_.maker = &first_;
  link_.is_read_unrounded = chain_.online && chain_.online->rescales_product;
  first_.names_ = names_;
  if (range_) first_.is_reversed_ = range_->is_ascending;  // blocks with more to do start first
  first_.place_blocks(kernel);
  place_slabs();
  blocks_ = std::exchange(first_.definitions_, {});
  first_.place_threads();
  first_.declare_tensors();
  names_ = first_.names_;
  second_.names_ = names_;
  second_.place_like(first_, link);
  second_.place_threads();
  std::vector<Tensor> shared(2);
  shared[link.operand] = link_.tile;
  second_.declare_tensors(&shared);
  names_ = second_.names_;
  for (const ContractionBuilder::TileSum& sum : first_.reductions_) {
    RowValue& value = second_.row_values_[sum.of->statement.tensor];
    value.sums = sum.sums;
    for (size_t axis : first_.kept_axes(*sum.of)) value.axes.push_back(*row_of_second(link, axis));
  }
  if (!chain_.online) return;
  first_.names_ = names_;
  first_.declare_online(*chain_.online, presence(scop_, chain_.products[0], chain_.products[1]));
  names_ = first_.names_;
  const std::string& reduced = first_.c_.reductions[chain_.online->reduction].statement.tensor;
  correction_ = {first_.online_.correction, second_.row_values_.at(reduced).axes};
}

void StreamBuilder::go_to(const Expr& slab) {
  const auto tile = static_cast<int>(first_.plan_.parallel[slab_axis_].tile);
  const auto begin = static_cast<int>(first_.c_.parallel[slab_axis_].begin);
  first_.first_[slab_axis_] = hi::simplify(slab * tile + begin);
}

NodePtr StreamBuilder::make_points(const NodePtr& corrected) {
  if (!chain_.online) return first_.finish();
  std::vector<NodePtr> parts = {first_.reduce_online(*chain_.online), corrected};
  parts.push_back(first_.finish_online(*chain_.online));
  return build::sequence(std::move(parts));
}

NodePtr StreamBuilder::correct_sums() const {
  const bool corrects = chain_.online && chain_.online->rescales_product;
  return corrects ? second_.correct_sums(correction_) : build::sequence({});
}

NodePtr StreamBuilder::start_rows() const {
  std::vector<NodePtr> parts = {second_.start_sums(), first_.start_reductions()};
  if (chain_.online) parts.push_back(first_.start_online(*chain_.online));
  return build::sequence(std::move(parts));
}

NodePtr StreamBuilder::finish_rows() {
  std::vector<NodePtr> parts = {add_masked()};
  first_.names_ = names_;
  for (size_t r = 0; r < first_.reductions_.size(); ++r) {
    const bool is_whole = chain_.online && chain_.online->reduction == r;
    if (!is_whole) parts.push_back(first_.exchange_lanes(first_.reductions_[r]));
  }
  if (chain_.online) {
    parts.push_back(first_.last_corrections(*chain_.online));
    parts.push_back(correct_sums());
  }
  for (const ContractionBuilder::TileSum& sum : first_.reductions_) {
    if (is_stored(scop_, chain_, sum.of->statement.tensor)) parts.push_back(first_.put_partial_results(sum));
  }
  names_ = first_.names_;
  return build::sequence(std::move(parts));
}

NodePtr StreamBuilder::with_row_sums(NodePtr body) const {
  for (const ContractionBuilder::TileSum& sum : first_.reductions_) body = build::allocate(sum.sums, body);
  return chain_.online ? first_.with_online(body) : body;
}

NodePtr StreamBuilder::with_points(NodePtr body) const {
  return chain_.online ? first_.with_online_of_slab(std::move(body)) : body;
}

NodePtr StreamBuilder::with_shared(NodePtr body) const {
  for (const ContractionBuilder* product : {&second_, &first_}) {
    body = product->with_definitions(body, 0, product->definitions_.size());
    for (size_t i = product->shared_.size(); i-- > 0;) {
      if (product->shared_[i].memory == tile::Memory::kShared) body = build::allocate(product->shared_[i], body);
    }
  }
  return body;
}

NodePtr StreamBuilder::with_blocks(NodePtr body) const {
  for (size_t i = blocks_.size(); i-- > 0;) body = build::let(blocks_[i].first, blocks_[i].second, body);
  return body;
}

/// By mma.sync, with asynchronous copies of all threads.
class AtomStream : StreamBuilder {
 public:
  AtomStream(const poly::Scop& scop, const Chain& chain, const ChainPlan& plan) : StreamBuilder(scop, chain, plan) {}

  tile::Kernel run(const std::string& name) {
    tile::Kernel kernel;
    kernel.name = name;
    kernel.block = {plan_.plans[0].block_threads(), 1, 1};
    place(kernel);
    std::vector<NodePtr> parts = {start_copies(), start_rows(), slabs(), finish_rows()};
    second_.names_ = names_;
    parts.push_back(second_.finish());
    const NodePtr body = with_row_sums(build::allocate(second_.sum_, build::sequence(std::move(parts))));
    kernel.body = with_blocks(with_shared(body));
    gpu::declare_tensors(kernel, program_);
    return kernel;
  }

 private:
  NodePtr fetch(const Expr& turn, const CopyShare& share) {
    go_to(slab_of(turn));
    std::vector<NodePtr> parts;
    first_.names_ = names_;
    for (size_t i = 0; i < first_.c_.operands.size(); ++i) {
      if (i != first_.once_) parts.push_back(first_.fetch_operand(i, stage(turn), first_.step_at(0), share));
    }
    second_.names_ = first_.names_;
    parts.push_back(second_.fetch(stage(turn), second_.step_at(slab_of(turn)), share));
    names_ = second_.names_;
    return build::sequence(std::move(parts));
  }

  NodePtr start_copies() {
    std::vector<NodePtr> parts;
    first_.names_ = names_;
    parts.push_back(first_.fetch_operand(*first_.once_, 0, first_.step_at(0), {}));
    names_ = first_.names_;
    for (int turn = 0; turn + 1 < static_cast<int>(stages()); ++turn) {
      CopyShare share;
      if (range_ && turn > 0) share = {0, 1, turn < turns(), true};
      parts.push_back(fetch(turn, share));
      parts.push_back(build::commit_group());
    }
    go_to(0);
    return build::sequence(std::move(parts));
  }

  NodePtr slabs() {
    const std::string name = names_.fresh("slab");
    const Expr turn = build::var(name), next = turn + static_cast<int>(stages() - 1), slab = slab_of(turn);
    std::vector<NodePtr> parts = {build::wait_group(static_cast<int>(stages()) - 2), build::barrier()};
    go_to(slab);
    const ContractionBuilder::Copies copies = [&](const Expr& piece, int64_t pieces) {
      NodePtr result = fetch(next, {piece, pieces, next < turns(), true});
      go_to(slab);
      return result;
    };
    std::vector<NodePtr> sums = {first_.start_sums()};
    sums.push_back(first_.add_products(stage(turn), first_.step_at(0), copies));
    sums.push_back(build::commit_group());
    first_.names_ = names_;
    parts.push_back(with_fragments(first_, build::sequence(std::move(sums))));
    parts.push_back(with_points(make_points(correct_sums())));
    second_.names_ = first_.names_;
    NodePtr second = second_.add_products(stage(turn), second_.step_at(slab), nullptr);
    names_ = second_.names_;
    parts.push_back(with_fragments(second_, std::move(second)));
    NodePtr body = build::allocate(first_.sum_, build::allocate(link_.tile, build::sequence(std::move(parts))));
    go_to(0);
    return build::for_loop(name, 0, turns(), body);
  }

  static NodePtr with_fragments(const ContractionBuilder& product, NodePtr body) {
    for (size_t i = product.fragments_.size(); i-- > 0;) {
      if (!product.is_kept(i)) body = build::allocate(product.fragments_[i], body);
    }
    return body;
  }
};

tile::Kernel stream_kernel(const poly::Scop& scop, const Chain& chain, const ChainPlan& plan, const std::string& name) {
  return plan.plans[0].by_warpgroups() ? warpgroup_stream_kernel(scop, chain, plan, name)
                                       : AtomStream(scop, chain, plan).run(name);
}

}  // namespace tc::gpu
