#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/strategy/contraction/chain.h"
#include "tc/gpu/strategy/contraction/plan.h"

namespace tc::gpu {

/// Statements of a def, neighbours in program order, that one strategy maps.
struct Piece {
  poly::Scop scop;                         ///< the instances and dependences of these statements alone
  std::optional<Contraction> contraction;  ///< absent: some other recipe
  std::vector<ContractionPlan> plans;      ///< of the contraction, then of its further products
  /// Reductions of its results that its blocks would carry out, were they cut into parts that are as long as tiles.
  std::vector<TileReduction> uncut = {};
  bool needs_chain = false;               ///< not worth a kernel of its own
  std::optional<ChosenChain> chain = {};  ///< then `contraction` is the one of its products that names the kernel
  /// Values of each parallel axis, where the next piece has what is left of one of them (split_waves.h).
  std::vector<int64_t> split_results = {};
  bool is_rest = false;  ///< the same statements as those of the piece before, for what that leaves
};

struct Pieces {
  std::vector<Piece> pieces;
  Reasons reasons;                             ///< why contractions that there are have no plan
  std::map<std::string, std::string> refused;  ///< the same, by the statement that multiplies
};

/// The options without sizes and copies, which are those of products where a def has any.
options::MappingOptions without_sizes(options::MappingOptions options);

/// Takes the contractions out of a def, and cuts it where launches should begin (sensible_cuts()). Pieces run one after
/// the other: no order is changed between them. Contractions that share a kernel are one piece (chains.h). Options that
/// leave only the classic strategy keep all in one piece.
Pieces cut_out_contractions(const poly::Scop& scop, const options::MappingOptions& options, const Device& device);

}  // namespace tc::gpu
