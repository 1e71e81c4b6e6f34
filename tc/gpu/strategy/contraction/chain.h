#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/strategy/contraction/idle_points.h"
#include "tc/gpu/strategy/contraction/online_reduction.h"
#include "tc/gpu/strategy/contraction/plan.h"

namespace tc::gpu {

/// How a contraction reads what another one, right before it, makes of its results:
///     H(m,n) = relu(S(m,n) + b(n))         made by the first, of S(m,n) +=! A(m,k) * W(n,k)
///     T(m,p) +=! H(m,n) * V(p,n)           the second: m makes rows, n is summed over
/// Each dimension of the tensor goes along one parallel axis of the first, over all of its values, and along one axis
/// of the second, over the same elements.
struct ChainLink {
  struct Dimension {
    size_t made_by = 0;   ///< parallel axis of the first
    bool is_row = false;  ///< a parallel axis of the second goes along it, not a reduction axis
    size_t read_by = 0;   ///< that axis
  };
  std::string tensor;
  size_t operand = 0;  ///< of the second
  std::vector<Dimension> dimensions;
  /// The first is made slab by slab of the second one's reduction, and its slab is in registers when it is multiplied
  /// (stream.h). Else all of it is in shared memory.
  bool streamed = false;

  std::vector<size_t> rows_of_first() const;   ///< parallel axes, by dimension
  std::vector<size_t> rows_of_second() const;  ///< in the same order
};

/// Contractions of which each reads what the one before makes. They share a kernel: a block has some rows, and keeps
/// those of each tensor between two of them in shared memory. Of two with a streamed link, it keeps a slab of them in
/// registers.
struct Chain {
  std::vector<Contraction> products;
  std::vector<ChainLink> links;  ///< of each product to the next one
  /// Of a streamed link: what is reduced while others read it.
  std::optional<OnlineReduction> online = {};
  std::optional<IdlePoints> idle = {};  ///< likewise: points that count for nothing
};

/// The link of two contractions that stand right behind each other. None if the second reads something else of the
/// first one's tensors but `of_rows`, or writes what the first one touches.
std::optional<ChainLink> link_between(const poly::Scop& scop, const Contraction& first, const Contraction& second,
                                      const std::set<std::string>& of_rows = {});

/// Whether two contractions may run in one kernel without knowing of each other: what one of them stores in global
/// memory the other does not touch.
bool are_independent(const poly::Scop& scop, const Contraction& first, const Contraction& second);

/// Whether the rows of a product are the same for what it reads of the one before it and for what the next one reads.
bool go_together(const ChainLink& to, const ChainLink& from);

/// Whether statements outside of a contraction read the tensor; `reader` does not count.
bool is_read_beyond(const poly::Scop& scop, const Contraction& contraction, const std::string& tensor,
                    const std::string& reader = "");

/// Where a tensor that a link passes on lies in shared memory: an element's row is the sum of its places along the
/// dimensions of rows, times their strides, counted from the block's first; its column likewise.
struct KeptTensor {
  size_t buffer = 0;             ///< of ChainBuffers::kept
  std::vector<int64_t> strides;  ///< per dimension
};

/// What a chain's block has in shared memory.
struct ChainBuffers {
  struct Rows {
    Halide::Type type;
    int64_t rows = 1, columns = 1;
    int64_t pitch() const;  ///< elements from one row to the next, so that 8 of them meet in no bank
    int64_t bytes() const;
  };
  std::vector<Rows> kept;            ///< two for each type: a product reads one and fills the other
  std::vector<KeptTensor> tensors;   ///< per link
  std::vector<std::vector<int>> of;  ///< per product and operand: which of the buffers for copies; -1: it is kept
  size_t copies = 0;                 ///< buffers for copies: products whose boxes are alike share one
  int64_t bytes = 0;                 ///< of all
};

/// Products that are planned for a chain.
struct ChainPlan {
  std::vector<ContractionPlan> plans;  ///< per product; all with as many threads, and with the same tiles of rows
  /// Copies go on from one product to the next: all are asynchronous, and have as many buffers. Else each product
  /// waits for its own.
  bool in_ring = false;
  /// Of a streamed link, by warpgroups: the second product of a slab goes on while the points of the next one are made.
  bool overlaps = false;
  ChainBuffers buffers;
};

/// Whether what slabs do not have of the first product of a streamed link stays in the block's shared memory, or in the
/// registers of threads. None: warpgroups do not multiply it.
std::optional<bool> stays_in_shared_memory(const ChainPlan& plan);

/// Of neighbouring products that are planned, with so many stages each.
ChainBuffers buffers_of(const std::vector<const Contraction*>& products, const std::vector<const ChainLink*>& links,
                        const std::vector<const ContractionPlan*>& plans, const std::vector<int64_t>& stages);

/// Some products of a row, from `first` on, that share a kernel. The cycles of their plans are the share that each has
/// in the kernel's time.
struct ChosenChain {
  size_t first = 0;
  Chain chain;
  ChainPlan plan;
  size_t anchor = 0;  ///< of the chain's products, the one with most to do: sizes that options give are its
  /// Its plans in this chain and in others of the same products, best first; with the stages that options ask for.
  std::vector<ContractionPlan> anchors = {};
};

/// Of products that stand behind each other in a def, which ones share kernels: so that their estimated time, with that
/// of launches, is least. `alone` are the cycles of each as a kernel of its own. Options with `chain` true ask for a
/// chain around their product, false for a kernel of its own; absent, those that give tiles or threads do, too.
std::vector<ChosenChain> choose_chains(const poly::Scop& scop, const std::vector<const Contraction*>& products,
                                       const std::vector<double>& alone,
                                       const std::vector<options::MappingOptions>& options, const Device& device);

}  // namespace tc::gpu
