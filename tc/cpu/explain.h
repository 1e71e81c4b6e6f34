#pragma once

#include <string>
#include <vector>

#include "tc/cpu/estimate.h"
#include "tc/cpu/strategy.h"

/// What schedule_for_cpu() decides, as values.
namespace tc::cpu {

/// A loop over an index, and how it is cut. Sizes are in values of the index.
struct LoopChoice {
  std::string index;
  int64_t extent = 1;
  int64_t core = 0;       ///< in one iteration of the parallel loop; 0: it is not shared among cores
  int64_t tile = 0;       ///< in one iteration of a loop that all units of the group share; 0: they do not
  int64_t registers = 1;  ///< computed at once
  int64_t vector = 1;     ///< of these, in a vector
};

/// Statements at the same points.
struct UnitChoice {
  std::vector<std::string> statements;
  std::vector<LoopChoice> loops;
};

/// Units under common outer loops.
struct GroupChoice {
  std::vector<UnitChoice> units;
  std::vector<LoopChoice> loops;  ///< the common ones, as its first statement calls them
  bool packs = false;             ///< a product whose operands are packed
  std::string apart;              ///< why it shares no loop with the group before: see Refusal; "" of the first
  GroupEstimate estimate;
  Rates rates;
};

struct StrategyChoice {
  std::vector<GroupChoice> groups;  ///< none of a skewed schedule
  bool skewed = false;              ///< the scheduler's own tree, by 'allow_skewing'
  bool replaced = false;            ///< the program's own order, since the strategy's failed its proof
};

/// What schedule_for_cpu() decides for the same arguments. Errors: the context's budget.
Result<StrategyChoice> explain_schedule(const poly::Scop& scop, const StrategyOptions& options);

}  // namespace tc::cpu
