#include <algorithm>

#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/kernel.h"

namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

/// Products one after the other, each by a builder of its own.
class ChainBuilder {
 public:
  ChainBuilder(const poly::Scop& scop, const Chain& chain, const ChainPlan& plan)
      : program_(*scop.program), chain_(chain), plan_(plan), names_(kernel_names(*scop.program)) {
    links_.resize(chain.links.size());
    for (size_t p = 0; p < chain.products.size(); ++p) {
      products_.push_back(ContractionBuilder(scop, chain.products[p], plan.plans[p]));
      if (p > 0) products_[p].reads_ = &links_[p - 1];
      if (p < links_.size()) products_[p].fills_ = &links_[p];
      first_turn_.push_back(turns_);
      turns_ += plan.plans[p].steps(chain.products[p]);
    }
  }

  tile::Kernel run(const std::string& name) {
    tile::Kernel kernel;
    kernel.name = name;
    kernel.block = {plan_.plans[0].block_threads(), 1, 1};
    declare_kept();
    place(kernel);
    std::vector<NodePtr> parts;
    if (plan_.in_ring) {
      for (int64_t turn = 0; turn + 1 < stages(); ++turn) {
        parts.push_back(fetch(turn, {}));
        parts.push_back(build::commit_group());
      }
    }
    for (size_t p = 0; p < products_.size(); ++p) parts.push_back(product(p));
    NodePtr body = build::sequence(std::move(parts));
    for (size_t i = copies_.size(); i-- > 0;) body = build::allocate(copies_[i], body);
    for (size_t i = kept_.size(); i-- > 0;) body = build::allocate(kept_[i], body);
    for (size_t i = blocks_.size(); i-- > 0;) body = build::let(blocks_[i].first, blocks_[i].second, body);
    for (ContractionBuilder& product : products_) {
      product.names_ = names_;
      body = product.with_vectors(body);
      names_ = product.names_;
    }
    kernel.body = body;
    gpu::declare_tensors(kernel, program_);
    return kernel;
  }

 private:
  int64_t stages() const { return plan_.plans[0].stages; }

  void declare_kept() {
    for (const ChainBuffers::Rows& rows : plan_.buffers.kept) {
      kept_.push_back(
          build::shared(names_.fresh("kept"), rows.type, tile::Layout({rows.rows, rows.columns}, {rows.pitch(), 1})));
      kept_.back().written = true;
    }
    for (size_t l = 0; l < links_.size(); ++l) {
      const KeptTensor& tensor = plan_.buffers.tensors[l];
      links_[l] = {&chain_.links[l], kept_[tensor.buffer], tensor.strides, chain_.products[l + 1].update.id};
    }
  }

  /// Blocks, threads and tensors of all products.
  void place(tile::Kernel& kernel) {
    copies_.resize(plan_.buffers.copies);
    for (size_t p = 0; p < products_.size(); ++p) {
      ContractionBuilder& product = products_[p];
      product.names_ = names_;
      if (p == 0) {
        product.place_blocks(kernel);
        blocks_ = std::exchange(product.definitions_, {});
      } else {
        product.place_like(products_[p - 1], chain_.links[p - 1]);
      }
      product.place_threads();
      std::vector<Tensor> shared;
      for (size_t i = 0; i < product.c_.operands.size(); ++i) {
        const int buffer = plan_.buffers.of[p][i];
        shared.push_back(buffer < 0 ? links_[p - 1].tile : copies_[static_cast<size_t>(buffer)]);
      }
      product.declare_tensors(&shared);
      for (size_t i = 0; i < product.c_.operands.size(); ++i) {
        const int buffer = plan_.buffers.of[p][i];
        if (buffer >= 0) copies_[static_cast<size_t>(buffer)] = product.shared_[i];
      }
      names_ = product.names_;
    }
  }

  /// The copies for a turn, whichever product's it is, or a share of them; null: there is no such turn.
  NodePtr fetch(int64_t turn, const CopyShare& share) {
    if (turn >= turns_) return nullptr;
    size_t p = products_.size() - 1;
    while (first_turn_[p] > turn) --p;
    ContractionBuilder& product = products_[p];
    product.names_ = names_;
    const Expr step = static_cast<int>(turn - first_turn_[p]);
    NodePtr copies = product.fetch(static_cast<int>(turn % stages()), product.step_at(step), share);
    names_ = product.names_;
    return copies;
  }

  NodePtr product(size_t p) {
    ContractionBuilder& product = products_[p];
    std::vector<NodePtr> parts;
    if (plan_.in_ring) {
      parts.push_back(product.start_sums());
      NodePtr sums = in_ring(p);
      for (size_t i = product.fragments_.size(); i-- > 0;) sums = build::allocate(product.fragments_[i], sums);
      parts.push_back(std::move(sums));
    } else {
      if (overwrites_at_once(p)) parts.push_back(build::barrier());
      product.names_ = names_;
      for (NodePtr& node : product.sum_up()) parts.push_back(std::move(node));
      names_ = product.names_;
    }
    product.names_ = names_;
    parts.push_back(product.finish());
    names_ = product.names_;
    return product.with_definitions(build::allocate(product.sum_, build::sequence(std::move(parts))), 0,
                                    product.definitions_.size());
  }

  /// Whether a product, without a ring, begins with copies to a buffer that the one before it may still read.
  bool overwrites_at_once(size_t p) const {
    const ContractionPlan& plan = plan_.plans[p];
    const bool begins_with_barrier = plan.stages == 1 && plan.steps(chain_.products[p]) > 1;
    if (p == 0 || begins_with_barrier) return false;
    const std::vector<int>&own = plan_.buffers.of[p], &before = plan_.buffers.of[p - 1];
    return std::any_of(own.begin(), own.end(),
                       [&](int buffer) { return buffer >= 0 && std::count(before.begin(), before.end(), buffer) > 0; });
  }

  /// The steps of a product. While one is added up, copies for the turn `stages - 1` later are started: those of its
  /// own last steps are copies for the products behind it.
  NodePtr in_ring(size_t p) {
    const int64_t steps = products_[p].plan_.steps(products_[p].c_), ahead = stages() - 1;
    const int64_t in_loop = steps - ahead > 1 ? steps - ahead : 0;
    std::vector<NodePtr> parts;
    if (in_loop > 0) {
      const std::string name = names_.fresh("step");
      const Expr step = build::var(name), next = step + static_cast<int>(ahead);
      ContractionBuilder& product = products_[p];
      const auto stage = [&](const Expr& of) {
        return hi::simplify((of + static_cast<int>(first_turn_[p] % stages())) % static_cast<int>(stages()));
      };
      parts.push_back(build::for_loop(
          name, 0, static_cast<int>(in_loop), turn(p, stage(step), step, false, [&](const Expr& piece, int64_t pieces) {
            return product.fetch(stage(next), product.step_at(next), {piece, pieces, {}, true});
          })));
    }
    for (int64_t s = in_loop; s < steps; ++s) {
      const int64_t now = first_turn_[p] + s, next = now + ahead;
      ContractionBuilder::Copies copies;
      if (next < turns_) {
        copies = [this, next, p](const Expr& piece, int64_t pieces) {
          names_ = products_[p].names_;
          NodePtr result = fetch(next, {piece, pieces, {}, true});
          products_[p].names_ = names_;
          return result;
        };
      }
      parts.push_back(turn(p, static_cast<int>(now % stages()), static_cast<int>(s), now + 1 == turns_, copies));
    }
    return build::sequence(std::move(parts));
  }

  NodePtr turn(size_t p, const Expr& stage, const Expr& step, bool is_last, const ContractionBuilder::Copies& copies) {
    ContractionBuilder& product = products_[p];
    product.names_ = names_;
    std::vector<NodePtr> parts = {build::wait_group(static_cast<int>(stages() - 2)), build::barrier()};
    if (product.plan_.tensor_cores) {
      parts.push_back(product.add_products(stage, product.step_at(step), copies));
    } else {
      if (copies) parts.push_back(copies(0, 1));
      parts.push_back(product.add_up(stage, product.step_at(step)));
    }
    // A group without copies, for later waits to count.
    if (copies || (stages() > 2 && !is_last)) parts.push_back(build::commit_group());
    names_ = product.names_;
    return build::sequence(std::move(parts));
  }

  const ir::Program& program_;
  const Chain& chain_;
  const ChainPlan& plan_;
  ir::Names names_;
  std::vector<KeptLink> links_;
  std::vector<ContractionBuilder> products_;
  std::vector<int64_t> first_turn_;  ///< per product: steps of all before it
  int64_t turns_ = 0;
  std::vector<std::pair<std::string, Expr>> blocks_;  ///< where the block's rows begin
  std::vector<Tensor> kept_, copies_;                 ///< in shared memory
};

tile::Kernel chain_kernel(const poly::Scop& scop, const Chain& chain, const ChainPlan& plan, const std::string& name) {
  if (chain.links[0].streamed) return stream_kernel(scop, chain, plan, name);
  return ChainBuilder(scop, chain, plan).run(name);
}

}  // namespace tc::gpu
