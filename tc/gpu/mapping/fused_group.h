#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/ir/reads.h"
#include "tc/poly/scop.h"

namespace tc::gpu {

struct GroupStatement {
  const poly::Statement* statement = nullptr;
  std::vector<ir::Range> ranges;  ///< per index
  std::vector<int> shared;        ///< per shared member: the index that it is
  std::vector<int> inner;         ///< the other indices, outermost first

  /// The index that an expression is, alone; -1 if it is none.
  int index_of(const Halide::Expr& expr) const;
  /// The shared member that an expression is, alone; -1 if it is none.
  int member_of(const Halide::Expr& expr) const;
  /// How many instances there are for one iteration of the shared members.
  int64_t inner_size() const;
};

/// The statements of a part of a scheduled tree, if they share the coincident members of one outer band: for one
/// iteration of these, whatever order the statements' own instances run in, nothing depends on another iteration. Run
/// in program order, each is the original program's.
struct FusedGroup {
  const poly::Scop* scop = nullptr;
  std::vector<ir::Range> members;  ///< none: all is one iteration
  std::vector<GroupStatement> statements;
  std::set<std::string> inlined = {};  ///< further statements, whose values these compute themselves

  bool writes(const std::string& tensor) const;
  /// Whether the caller or a statement outside may look at the tensor.
  bool is_seen_outside(const std::string& tensor) const;
};

/// Nothing where domains are no boxes, ranges of shared members differ, or writes depend on data.
std::optional<FusedGroup> fused_group_of(const poly::Scop& scop);

/// Statements of a schedule in program order, without shared members. Nothing as above.
std::optional<FusedGroup> group_of_statements(const poly::Scop& scop, const std::vector<std::string>& statements);

/// Returns the dimension along which elements of a tensor are nearest in memory: the last one, or, where neighbours lie
/// apart (rewrite/order_dims.h), the one before it.
size_t nearest_dimension(const ir::Tensor& tensor);

}  // namespace tc::gpu
