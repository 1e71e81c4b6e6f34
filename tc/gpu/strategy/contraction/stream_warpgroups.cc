#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/strategy/contraction/kernel.h"
#include "tc/gpu/strategy/contraction/stream_builder.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"

/// Streamed chains by products of warpgroups. A turn of the ring has the boxes of a slab, of both products. What slabs
/// do not have of the first product comes once, to the registers of threads, or by the one turn of a ring of its own.
/// The sums that the first product leaves a thread are the registers that the second one takes.
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;

class WarpgroupStream : StreamBuilder {
 public:
  WarpgroupStream(const poly::Scop& scop, const Chain& chain, const ChainPlan& plan)
      : StreamBuilder(scop, chain, plan) {}

  tile::Kernel run(const std::string& name) {
    constexpr int kWarp = 32;
    tile::Kernel kernel;
    kernel.name = name;
    kernel.block = {plan_.plans[0].block_threads(), 1, 1};
    place(kernel);
    ring_ = names_.fresh("ring");
    first_.ring_ = second_.ring_ = ring_;
    if (!is_held()) {
      once_ring_ = names_.fresh("once_ring");
      kernel.maps.push_back(first_.maps_[*first_.once_]);
    }
    for (const ContractionBuilder* product : {&first_, &second_}) {
      kernel.maps.push_back(product->maps_[product->plan_.tensor_cores->b]);
    }
    const auto threads = static_cast<int>(plan_.plans[0].threads());
    const NodePtr consumers = over_tiles(consume());
    const NodePtr producer = build::if_then(build::thread_x() == threads, over_tiles(produce()));
    std::optional<tile::RegisterShares> registers;
    if (plan_.plans[0].gives_registers) registers = register_shares(plan_.plans[0]);
    NodePtr body = build::ring(ring_, static_cast<int>(stages()), threads / kWarp,
                               build::if_then(first_.row_warp_ < threads / kWarp, consumers, producer), {}, registers);
    if (!is_held()) body = build::ring(once_ring_, 1, threads / kWarp, body);
    kernel.body = is_persistent() ? with_shared(body) : with_blocks(with_shared(body));
    gpu::declare_tensors(kernel, program_);
    return kernel;
  }

 private:
  /// Whether threads hold what slabs do not have of the first product.
  bool is_held() const { return first_.plan_.operands[*first_.once_].kept; }

  /// Whether a block goes through several tiles of rows. The copying thread is ahead of the others then: while they
  /// finish one tile, the boxes of the next one come.
  bool is_persistent() const { return !first_.tile_.empty(); }
  NodePtr over_tiles(const NodePtr& body) const {
    if (!is_persistent()) return body;
    return build::for_loop(first_.tile_, build::block_x(), static_cast<int>(first_.tiles_), with_blocks(body),
                           static_cast<int>(first_.plan_.grid));
  }
  /// How many tiles the block has had before.
  Expr tiles_before() const { return is_persistent() ? first_.tiles_before_ : Expr(0); }
  /// The ring's turn of a slab of the tile.
  Expr turn_of(const Expr& slab) const { return is_persistent() ? tiles_before() * turns() + slab : slab; }

  /// Brings it to shared memory, for all slabs.
  NodePtr copy_once() {
    first_.ring_ = once_ring_;
    first_.names_ = names_;
    const NodePtr boxes = first_.copy_step_boxes(*first_.once_, first_.step_at(0), 0, tiles_before());
    names_ = first_.names_;
    first_.ring_ = ring_;
    return build::sequence({build::acquire(once_ring_, tiles_before()), boxes,
                            build::commit(once_ring_, tiles_before(), first_.bytes_of_step_boxes(*first_.once_))});
  }

  /// What the copying thread does.
  NodePtr produce() {
    const std::string name = names_.fresh("slab");
    const Expr slab = slab_of(build::var(name)), turn = turn_of(build::var(name));
    go_to(slab);
    std::vector<NodePtr> parts = {build::acquire(ring_, turn)};
    int64_t bytes = 0;
    for (ContractionBuilder* product : {&first_, &second_}) {
      product->names_ = names_;
      const ReductionStep step = product->step_at(product == &first_ ? Expr(0) : slab);
      const size_t b = product->plan_.tensor_cores->b;
      parts.push_back(product->copy_step_boxes(b, step, stage(turn), turn));
      bytes += product->bytes_of_step_boxes(b);
      names_ = product->names_;
    }
    parts.push_back(build::commit(ring_, turn, bytes));
    go_to(0);
    const NodePtr slabs = build::for_loop(name, 0, turns(), build::sequence(std::move(parts)));
    return is_held() ? slabs : build::sequence({copy_once(), slabs});
  }

  /// What warpgroups do.
  NodePtr consume() {
    const tile::Tensor& held = first_.shared_[*first_.once_];
    first_.names_ = names_;
    std::vector<NodePtr> parts = {is_held() ? first_.load_held(*first_.once_) : build::sequence({})};
    names_ = first_.names_;
    for (const NodePtr& part : {start_rows(), slabs(), finish_rows()}) parts.push_back(part);
    parts.push_back(second_.exchange_columns(names_));
    second_.names_ = names_;
    parts.push_back(second_.finish());
    names_ = second_.names_;
    NodePtr body = build::sequence(std::move(parts));
    if (!second_.columns_.name.empty()) body = build::allocate(second_.columns_, body);
    body = with_row_sums(build::allocate(second_.sum_, body));
    return is_held() ? build::allocate(held, body) : body;
  }

  NodePtr slabs() {
    NodePtr body = plan_.overlaps ? overlapped() : one_by_one();
    if (!is_held()) body = build::sequence({build::await(once_ring_, tiles_before()), body});
    body = build::allocate(first_.sum_, build::allocate(second_.shared_[chain_.links[0].operand], body));
    return with_points(body);
  }

  /// Starts the first product of a slab that has arrived: of the block's, its number.
  std::vector<NodePtr> start_making(const Expr& number) {
    go_to(slab_of(number));
    std::vector<NodePtr> result = first_.multiply_kept(first_.step_at(0), stage(turn_of(number)), true);
    go_to(0);
    return result;
  }

  /// Starts the second product of a slab.
  std::vector<NodePtr> start_reading(const Expr& number) {
    return second_.multiply_kept(second_.step_at(slab_of(number)), stage(turn_of(number)), false);
  }
  NodePtr await(const Expr& number) const { return build::await(ring_, turn_of(number)); }
  NodePtr release(const Expr& number) const { return build::release(ring_, turn_of(number)); }
  /// Behind the last slab's first product: what all slabs have read may be that of the next tile.
  NodePtr release_once(const Expr& number, const Expr& last) const {
    if (!is_persistent() || is_held()) return build::sequence({});
    return build::if_then(hi::simplify(number == last), build::release(once_ring_, tiles_before()));
  }

  NodePtr wait_for_made(int pending) const {
    std::vector<std::string> names = {first_.sum_.name};
    if (is_held()) names.push_back(first_.shared_[*first_.once_].name);
    return build::matmul_wait(pending, std::move(names));
  }
  NodePtr wait_for_read() const {
    return build::matmul_wait(0, {second_.sum_.name, second_.shared_[chain_.links[0].operand].name});
  }

  NodePtr points_of(const Expr& number, const NodePtr& corrected) {
    go_to(slab_of(number));
    first_.names_ = names_;
    NodePtr result = make_points(corrected);
    // Where points are made in two places, each has registers of its own.
    if (!chain_.online) {
      for (auto& [name, tensor] : first_.results_) tensor.name = first_.names_.fresh(name + "_reg");
    }
    names_ = first_.names_;
    go_to(0);
    return result;
  }

  /// A slab's products and points one after the other.
  NodePtr one_by_one() {
    const std::string name = names_.fresh("slab");
    const Expr slab = build::var(name);
    std::vector<NodePtr> parts = {await(slab)};
    for (NodePtr& product : start_making(slab)) parts.push_back(product);
    parts.push_back(wait_for_made(0));
    parts.push_back(release_once(slab, turns() - 1));
    parts.push_back(points_of(slab, correct_sums()));
    for (NodePtr& product : start_reading(slab)) parts.push_back(product);
    parts.push_back(wait_for_read());
    parts.push_back(release(slab));
    return build::for_loop(name, 0, turns(), build::sequence(std::move(parts)));
  }

  /// The second product of a slab goes on while the points of the next one are made, in registers of their own. Behind
  /// them the slab after that is awaited, by a loop: the assembler moves no wait for products above it, into the
  /// points.
  NodePtr overlapped() {
    const Expr last = hi::simplify(turns() - 1);
    const tile::Tensor operand = link_.tile;
    std::vector<NodePtr> parts = {await(0)};
    for (NodePtr& product : start_making(0)) parts.push_back(product);
    parts.push_back(wait_for_made(0));
    parts.push_back(points_of(0, build::sequence({})));
    const NodePtr await_next = await(1);
    parts.push_back(range_ ? build::if_then(0 < last, await_next) : await_next);

    const std::string name = names_.fresh("slab");
    const Expr slab = build::var(name), next = slab + 1;
    link_.tile.name = names_.fresh(chain_.links[0].tensor + "_next");
    std::vector<NodePtr> body = start_making(next);
    const std::vector<NodePtr> reading = start_reading(slab);
    body.insert(body.end(), reading.begin(), reading.end());
    body.push_back(wait_for_made(static_cast<int>(reading.size())));
    body.push_back(release_once(next, last));
    body.push_back(points_of(next, build::sequence({})));
    body.push_back(build::if_then(next < last, await(next + 1)));
    body.push_back(wait_for_read());
    body.push_back(correct_sums());
    body.push_back(release(slab));
    body.push_back(first_.over_registers(first_.all_axes(), [&] {
      const std::vector<Expr> at = first_.sum_subscripts();
      return build::store(operand, at, build::read(link_.tile, at));
    }));
    parts.push_back(build::for_loop(name, 0, last, build::allocate(link_.tile, build::sequence(std::move(body)))));
    for (NodePtr& product : start_reading(last)) parts.push_back(product);
    parts.push_back(wait_for_read());
    parts.push_back(release(last));
    link_.tile = operand;
    return build::sequence(std::move(parts));
  }

  std::string ring_, once_ring_;
};

tile::Kernel warpgroup_stream_kernel(const poly::Scop& scop, const Chain& chain, const ChainPlan& plan,
                                     const std::string& name) {
  return WarpgroupStream(scop, chain, plan).run(name);
}

}  // namespace tc::gpu
