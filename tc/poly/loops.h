#pragma once

#include <isl/cpp.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tc/poly/ranged.h"
#include "tc/poly/scop.h"

namespace tc::poly {

/// What isl's code generation knows of a mark's place.
struct MarkPlace {
  std::string name;
  int depth = 0;                       ///< dimensions of the schedule tree above the mark
  int members = 0;                     ///< of the band below it; 0 if that is not a band
  std::vector<isl::ast_expr> offsets;  ///< of the promotion that it names
  std::vector<isl::ast_expr> prefix;   ///< of a promotion: the values of the tree's dimensions above it
};

/// The loops that isl makes of a schedule tree.
struct LoopAst {
  isl::ast_node root;
  std::vector<MarkPlace> marks;
  std::vector<std::vector<isl::ast_expr>> leaves;  ///< per leaf, the values of the tree's dimensions there

  const MarkPlace& place_of(const isl::ast_node_mark& node) const;
  /// The values of all dimensions of the tree above a leaf.
  const std::vector<isl::ast_expr>& prefix_of(const isl::ast_node_user& node) const;
  /// The dimension of the schedule tree that a loop runs over.
  static int depth_of(const isl::ast_node_for& node);
};

/// What generate_loops() finds out beside the loops.
struct LoopOptions {
  bool prefixes = true;  ///< MarkPlace::prefix and LoopAst::leaves, which take time; else both stay empty
};

/// Loops that run the scop's instances in the order of its schedule tree. What one iteration runs is never split, so a
/// mark may be met more than once, but each time around whole iterations. Loops are known by their dimension of the
/// tree: isl makes none for a dimension whose value is an affine function of those above it.
LoopAst generate_loops(const Scop& scop, const LoopOptions& options = {});

/// The loop variables in scope, by isl's names.
using Iterators = std::map<std::string, Ranged>;

/// An isl expression over loop variables.
Ranged to_ranged(const isl::ast_expr& expr, const Iterators& iterators);
/// An isl condition over loop variables.
Halide::Expr to_condition(const isl::ast_expr& expr, const Iterators& iterators);

/// The statement that a leaf runs, and the values of its indices.
std::pair<std::string, std::vector<isl::ast_expr>> instance_of(const isl::ast_node_user& node);
/// Calls `visit` with that of every leaf at or below a node, in the order of execution.
void for_each_instance(
    const isl::ast_node& node,
    const std::function<void(const std::string& statement, const std::vector<isl::ast_expr>& indices)>& visit);

/// How an index depends on a loop variable.
enum class IteratorUse { kNone, kPlain, kScaled };
IteratorUse use_of(const isl::ast_expr& expr, const std::string& iterator);

}  // namespace tc::poly
