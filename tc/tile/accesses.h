#pragma once

#include <map>
#include <string>
#include <vector>

#include "tc/tile/program.h"

namespace tc::tile {

/// A loop around a statement.
struct EnclosingLoop {
  const For* loop;
  int id;  ///< in order of the text, unique in the kernel
};

/// What stands around a statement, outermost first.
struct Path {
  std::vector<EnclosingLoop> loops;
  std::vector<Halide::Expr> conditions;      ///< all hold
  std::map<std::string, Halide::Expr> lets;  ///< the values of names
};

/// One access of a statement to a tensor.
struct ElementAccess {
  const Tensor* tensor;
  std::vector<Halide::Expr> subscripts;
  std::vector<Halide::Expr> conditions;  ///< those of the expression around it, besides the path's
  bool is_write = false;
  bool atomic = false;
  bool asynchronous = false;  ///< the destination of a copy that arrives later
  int dimension = -1;         ///< of a vector
  int elements = 1;
  bool in_cluster = false;            ///< in the shared memory of any block of the cluster
  bool region = false;                ///< stands for a box, or tile, that begins there
  std::vector<int64_t> lengths = {};  ///< of a region, along each dimension, cut to the tensor; empty: not said
};

/// A spec, or an expression that a loop, a branch or a let evaluates.
struct Leaf {
  const Node* node;  ///< of the kernel
  Path path;
  std::vector<ElementAccess> accesses;
  std::string text() const;
};

/// The tensors that a kernel names: global ones, and those that it allocates.
std::map<std::string, const Tensor*> tensors_of(const Kernel& kernel);

/// The reads in an expression, with the conditions under which it makes them.
std::vector<ElementAccess> reads_in(const Halide::Expr& expr, const std::map<std::string, const Tensor*>& tensors);

/// The accesses of a node: its own, what it writes first, and the reads in its expressions.
std::vector<ElementAccess> accesses_of(const Node& node, const std::map<std::string, const Tensor*>& tensors);

/// How control can flow between the leaves of a kernel. Loops that hold no barrier, commit or wait have no way back
/// and are not named by edges: nothing orders what different threads do in them.
struct Flow {
  struct Edge {
    int to;
    int enters = -1;              ///< the loop whose first iteration starts
    int back = -1;                ///< the loop whose next iteration starts
    int exits = -1;               ///< the loop that ends
    Halide::Expr condition = {};  ///< of a branch that begins there
    int join = -1;                ///< where that branch ends
  };
  struct Point {
    int leaf = -1;  ///< into leaves; -1: where ways part or meet
    std::vector<Edge> next;
  };
  std::vector<Leaf> leaves;         ///< in order of the text
  std::vector<Point> points;        ///< none for what a thread does with its registers alone
  std::vector<bool> synchronising;  ///< per loop id: it holds a barrier, commit or wait
};

/// Of a kernel whose structure has been found right. Refers to the kernel.
Flow flow_of(const Kernel& kernel);

}  // namespace tc::tile
