#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tc/cpu/strategy_groups.h"
#include "tc/cpu/strategy_plan.h"
#include "tc/cpu/strategy_tree.h"
#include "tc/poly/scop.h"

namespace tc::cpu {

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
