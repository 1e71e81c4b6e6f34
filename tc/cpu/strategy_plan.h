#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tc/cpu/strategy_groups.h"
#include "tc/cpu/strategy_tree.h"

namespace tc::cpu {

/// What the machine and the user say about code for one core.
struct UnitOptions {
  int vector_bits = 256;
  int vector_width = 0;                     ///< lanes; 0: chosen
  int unroll = 0;                           ///< vectors side by side; 0: chosen
  std::vector<int64_t> register_tile = {};  ///< points of the first dimensions; the others' are chosen
  bool strict = false;                      ///< keep the order of reductions
  bool promote = true;                      ///< keep accumulators and temporaries in buffers of their own
  bool follows_others = false;              ///< one of several units that go over a row one after the other
  int64_t accumulators = INT64_MAX;  ///< vectors of results that the tile of a product that is not large may have
};

/// The tile of a unit that is computed at once: dims[vector] in `vectors` vectors of `lanes`, by tile[d] of the others.
struct UnitPlan {
  int vector = -1;  ///< number of the dimension; -1: none is worth it
  int64_t lanes = 1;
  int64_t vectors = 1;
  int rows = -1;               ///< the dimension that shares what is loaded along `vector`; -1: none
  int across = -1;             ///< one that shares what else is loaded along it, of other operands; -1: none
  std::vector<int64_t> tile;   ///< per dimension
  std::vector<bool> unrolled;  ///< per dimension: its points are unrolled
  std::vector<int64_t> run;    ///< per dimension: how far its tiles follow each other before any other's; 0: not
};

/// Cycles of one step of a reduction whose register tile is `vectors` by `rows`: those of multiplying, of loading, or
/// those that a sum waits for the one before.
double register_step_cycles(int64_t vectors, int64_t rows);

UnitPlan plan_unit(const Analysis& analysis, const Unit& unit, const UnitOptions& options);

const StatementInfo& info_of(const Analysis& analysis, int number);

/// The name of the statement's index along a dimension.
const std::string& index_name(const StatementInfo& info, const Dim& dim);

}  // namespace tc::cpu
