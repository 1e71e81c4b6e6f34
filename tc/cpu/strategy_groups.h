#pragma once

#include <string>
#include <vector>

#include "tc/cpu/strategy_info.h"
#include "tc/cpu/strategy_tree.h"

namespace tc::cpu {

/// Statements whose parallel indices correspond one to one, so that every value passed between them is made and used
/// at one point of those: an initialisation, its reduction, and what is done to the result.
struct Unit {
  std::vector<int> statements;
  std::vector<Dim> dims;  ///< position gives the index of each statement
};

/// Units that share outer loops: what passes between them is made and used within one iteration of the shared dims.
struct Group {
  std::vector<Unit> units;
  std::vector<Dim> shared;
};

struct GroupOptions {
  bool fuse_statements = true;  ///< make units of more than one statement
  bool fuse_units = true;       ///< make groups of more than one unit
  bool weigh = true;            ///< refuse groups that lose parallel iterations or runs of memory, or reread too much
  int threads = 1;
};

std::vector<Group> make_groups(const Analysis& analysis, const GroupOptions& options);

/// Why a unit began a group of its own: what kept it out of the group before. A sentence in which "it" is the unit.
struct Refusal {
  size_t group = 0;  ///< the one that it began
  std::string reason;
};

/// The same of make_groups()' own result for these arguments.
std::vector<Refusal> why_apart(const Analysis& analysis, const GroupOptions& options);

}  // namespace tc::cpu
