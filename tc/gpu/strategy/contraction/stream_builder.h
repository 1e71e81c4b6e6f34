#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/slab_range.h"
#include "tc/gpu/strategy/contraction/stream.h"

/// What stream_kernel() is made of; for nobody else.
namespace tc::gpu {

/// Two products, each by a builder of its own, and what lies between them. The block goes through the slabs of the
/// second one's reduction.
class StreamBuilder {
 protected:
  StreamBuilder(const poly::Scop& scop, const Chain& chain, const ChainPlan& plan);

  int64_t stages() const { return plan_.plans[1].stages; }
  int64_t count() const { return plan_.plans[1].steps(chain_.products[1]); }  ///< of all slabs
  Halide::Expr stage(const Halide::Expr& turn) const;
  /// The slabs that the block goes through, one each turn.
  Halide::Expr turns() const { return range_ ? turns_ : Halide::Expr(static_cast<int>(count())); }
  Halide::Expr slab_of(const Halide::Expr& turn) const { return range_ ? first_slab_ + turn : turn; }

  /// The slabs of a block, by its rows.
  void place_slabs();
  /// Blocks, threads and tensors.
  void place(tile::Kernel& kernel);
  /// Lets the first product be that of a slab.
  void go_to(const Halide::Expr& slab);
  /// What is made of a slab's sums, for the second product. Where points read a reduction that goes on, `corrected` is
  /// done when the slab has changed it.
  tile::NodePtr make_points(const tile::NodePtr& corrected);
  /// The second product's sums, with a reduction that has changed.
  tile::NodePtr correct_sums() const;
  /// All that goes on over the slabs, before the first one.
  tile::NodePtr start_rows() const;
  /// What idle points add that a mask's number hides, and that no slab had.
  tile::NodePtr add_masked();
  Halide::Expr masked_term(const Halide::Expr& operand, const Halide::Expr& column) const;
  const tile::Tensor& online_correction() const { return first_.online_.correction; }
  /// What lanes have of a row, brought together. All lanes of the row have it then.
  tile::NodePtr finish_rows();
  /// Allocates what the block or a thread has for all slabs.
  tile::NodePtr with_row_sums(tile::NodePtr body) const;
  /// What points need beside their own registers.
  tile::NodePtr with_points(tile::NodePtr body) const;
  tile::NodePtr with_shared(tile::NodePtr body) const;
  tile::NodePtr with_blocks(tile::NodePtr body) const;

  const poly::Scop& scop_;
  const ir::Program& program_;
  const Chain& chain_;
  const ChainPlan& plan_;
  const size_t slab_axis_;
  ir::Names names_;
  KeptLink link_;
  ContractionBuilder first_, second_;
  RowValue correction_;                                       ///< of the second product's sums
  std::vector<std::pair<std::string, Halide::Expr>> blocks_;  ///< where the block's rows and slabs begin
  std::optional<SlabRange> range_;                            ///< absent: all slabs
  Halide::Expr first_slab_, turns_;
};

/// The same by products of warpgroups.
tile::Kernel warpgroup_stream_kernel(const poly::Scop& scop, const Chain& chain, const ChainPlan& plan,
                                     const std::string& name);

}  // namespace tc::gpu
