#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tc/poly/ranged.h"
#include "tc/poly/scop.h"

namespace tc::poly {

/// An integer expression, or a condition, over loop variables.
struct LoopExpr {
  enum class Op {
    kConstant,
    kVariable,
    kAdd,
    kSub,
    kMul,
    kMin,  ///< of any number of operands, as kMax
    kMax,
    kFloorDiv,  ///< by a positive constant, as kFloorMod
    kFloorMod,
    kSelect,  ///< condition, value where it holds, value where not
    kAnd,     ///< of conditions, as kOr
    kOr,
    kEqual,  ///< of two expressions, as the next two
    kLessEqual,
    kLess,
  };
  Op op = Op::kConstant;
  int64_t value = 0;     ///< of a constant; as a condition, true unless 0
  std::string variable;  ///< the name of a loop's
  std::vector<LoopExpr> operands;

  static LoopExpr constant(int64_t value) { return {Op::kConstant, value, {}, {}}; }
  static LoopExpr of_variable(std::string name) { return {Op::kVariable, 0, std::move(name), {}}; }
  static LoopExpr operation(Op op, std::vector<LoopExpr> operands) { return {op, 0, {}, std::move(operands)}; }
};

/// Loops that run the instances of a schedule tree in its order.
namespace loops {

struct Node;
using NodePtr = std::shared_ptr<const Node>;

/// for (variable = first; variable <= last; variable += step)
struct For {
  std::string variable;
  int dimension = 0;  ///< of the schedule tree, whose value the variable is
  LoopExpr first, last;
  int64_t step = 1;
  bool once = false;  ///< one iteration, at `first`; nothing is said in `last`
  NodePtr body;
};
struct If {
  LoopExpr condition;
  NodePtr then_case, else_case;  ///< else_case may be null
};
struct Block {
  std::vector<NodePtr> children;
};
/// A mark of the schedule tree.
struct Mark {
  std::string name;
  int depth = 0;                  ///< dimensions of the schedule tree above the mark
  int members = 0;                ///< of the band below it; 0 if that is not a band
  std::vector<LoopExpr> offsets;  ///< of the promotion that it names
  std::vector<LoopExpr> prefix;   ///< of a promotion: the values of the tree's dimensions above it
  NodePtr child;
};
/// One instance of a statement.
struct Instance {
  std::string statement;
  std::vector<LoopExpr> indices;
  std::vector<LoopExpr> prefix;  ///< the values of all dimensions of the tree above the leaf
};

struct Node {
  std::variant<For, If, Block, Mark, Instance> value;
};

template <typename T>
NodePtr make_node(T value) {
  return std::make_shared<const Node>(Node{std::move(value)});
}

}  // namespace loops

/// What generate_loops() finds out beside the loops.
struct LoopOptions {
  bool prefixes = true;  ///< loops::Mark::prefix and loops::Instance::prefix, which take time; else both stay empty
};

/// Loops that run the scop's instances in the order of its schedule tree: by box_loops() where that can, by isl_loops()
/// else. What one iteration runs is never split, so a mark may be met more than once, but each time around whole
/// iterations. There is none for a dimension whose value is an affine function of those above it.
loops::NodePtr generate_loops(const Scop& scop, const LoopOptions& options = {});

/// The loop variables in scope, by name.
using Iterators = std::map<std::string, Ranged>;

Ranged to_ranged(const LoopExpr& expr, const Iterators& iterators);
Halide::Expr to_condition(const LoopExpr& expr, const Iterators& iterators);

/// Calls `visit` with every instance at or below a node, in the order of the text.
void for_each_instance(const loops::NodePtr& node, const std::function<void(const loops::Instance&)>& visit);

/// How an index depends on a loop variable.
enum class IteratorUse { kNone, kPlain, kScaled };
IteratorUse use_of(const LoopExpr& expr, const std::string& variable);

}  // namespace tc::poly
