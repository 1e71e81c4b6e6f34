#pragma once

#include <Halide.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tc/cpu/loop_facts.h"

namespace tc::cpu {

/// What has to hold for all tiles of a region to be full, where the loops of the region begin.
class FullTiles {
 public:
  /// The loop over a tile's points: where the tile is full, the variable runs from 0 to `last`.
  void add_tile_variable(const std::string& name, int64_t last) { tile_variables_[name] = last; }
  /// Any other loop of the region.
  void add_variable(const std::string& name) { other_variables_.insert(name); }

  /// A condition of which a place within the region needs that it holds for all points of the tiles.
  void require(const Halide::Expr& condition);

  /// All of them in one, without what follows from the facts around the region or from the others; nothing if some
  /// depends on a loop of the region that is not a tile's.
  std::optional<Halide::Expr> condition(LoopFacts around) const;

 private:
  std::vector<Halide::Expr> conditions_;
  std::map<std::string, int64_t> tile_variables_;  ///< and their last values
  std::set<std::string> other_variables_;
  bool expressible_ = true;
};

}  // namespace tc::cpu
