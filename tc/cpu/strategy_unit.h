#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tc/cpu/strategy_groups.h"
#include "tc/cpu/strategy_tree.h"
#include "tc/poly/scop.h"

namespace tc::cpu {

/// What the machine and the user say about code for one core.
struct UnitOptions {
  int vector_bits = 256;
  int vector_width = 0;  ///< lanes; 0: chosen
  int unroll = 0;        ///< vectors side by side; 0: chosen
  bool strict = false;   ///< keep the order of reductions
  bool promote = true;   ///< keep accumulators and temporaries in buffers of their own
};

/// The tile of a unit that is computed at once: dims[vector] in `vectors` vectors of `lanes`, by tile[d] of the others.
struct UnitPlan {
  int vector = -1;  ///< number of the dimension; -1: none is worth it
  int64_t lanes = 1;
  int64_t vectors = 1;
  int rows = -1;               ///< the dimension that shares what is loaded along `vector`; -1: none
  std::vector<int64_t> tile;   ///< per dimension
  std::vector<bool> unrolled;  ///< per dimension: its points are unrolled
  std::vector<int64_t> run;    ///< per dimension: how far its tiles follow each other before any other's; 0: not
};

UnitPlan plan_unit(const Analysis& analysis, const Unit& unit, const UnitOptions& options);

/// The part of a tensor that some statements touch within the remainders of their dimensions.
struct Footprint {
  isl::multi_aff offset;  ///< { [schedule dimensions] -> tensor[o] }
  std::vector<int64_t> extents;
  bool whole = false;  ///< some dimension could not be bounded
};
Footprint footprint(const Analysis& analysis, const std::vector<int>& statements, const std::string& tensor,
                    const std::vector<Dim>& dims, int depth);

/// True if no other statement of the program touches the tensor, and nobody outside sees it.
bool is_private(const Analysis& analysis, const std::vector<int>& statements, const std::string& tensor);

/// A tree for the unit within the remainders of its dimensions, `depth` schedule dimensions down. Adds its promotions.
Tree unit_tree(const Analysis& analysis, const Unit& unit, const UnitPlan& plan, int depth, const UnitOptions& options,
               std::vector<poly::Promotion>& promotions);

/// A name for a buffer of the tensor that no promotion has yet.
std::string buffer_name(const std::string& tensor, const std::vector<poly::Promotion>& promotions);

}  // namespace tc::cpu
