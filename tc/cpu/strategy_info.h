#pragma once

#include <isl/cpp.h>

#include <map>
#include <string>
#include <vector>

#include "tc/cpu/access_steps.h"
#include "tc/ir/layouts.h"
#include "tc/poly/scop.h"

namespace tc::cpu {

/// A statement as the strategy sees it.
struct StatementInfo {
  const poly::Statement* statement = nullptr;
  isl::set domain;
  std::vector<int64_t> begin;  ///< of each index: the bounding box of the domain
  std::vector<int64_t> extent;
  std::vector<bool> parallel;  ///< per index: all instances that differ in it only are independent
  std::vector<Reference> references;
  double operations = 1;  ///< of one instance: an estimate

  const std::string& id() const { return statement->id; }
  bool reduces() const;  ///< has an index that is not parallel
  double instances() const;
};

/// What the strategy knows of a Scop.
struct Analysis {
  const poly::Scop* scop = nullptr;
  ir::Layouts layouts;
  std::vector<StatementInfo> statements;  ///< those with instances, in program order
  /// For statements a < b: the dependences from a to b, one map per pair of spaces.
  std::map<std::pair<int, int>, std::vector<isl::map>> dependences;

  bool depends(int a, int b) const { return dependences.count({a, b}) > 0; }
  /// True if all dependences from a to b are between instances with equal values of index i of a and j of b.
  bool equal_along(int a, int i, int b, int j) const;
};

Analysis analyse(const poly::Scop& scop, const ir::Layouts& layouts);

}  // namespace tc::cpu
