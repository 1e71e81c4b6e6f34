#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tc/tile/accesses.h"

namespace tc::tile {

/// Where a value lies: an element of a tensor, in whose memory.
struct Place {
  const Tensor* tensor;
  std::vector<Halide::Expr> subscripts;
  std::array<Halide::Expr, 3> block, thread;  ///< of shared memory the block counts, of a register both
  Halide::Expr turn = {};                     ///< of a tensor that boxes fill: the turn whose box it is of
  std::vector<Halide::Expr> conditions = {};  ///< under which it is read
};

/// A scalar operation of one thread, which a spec does in each iteration of the path's loops:
///     to = f(from, ...)
/// Loops behind those of the leaf run over what the spec does at once.
struct Value {
  int leaf;  ///< of the flow
  Path path;
  std::vector<std::shared_ptr<For>> loops = {};  ///< owns those of the path that are no loops of the kernel
  std::vector<Place> to = {};                    ///< at most one. None: sums that other values of the spec stand for
  std::vector<Place> from = {};                  ///< but for the sum that is added to
  std::string statement = {};                    ///< whose instance it carries out; else it copies, or is constant
  std::vector<Halide::Expr> instance = {};
  bool combines = false;  ///< several values of `from`, or one with what `to` holds, for no statement
  bool known = true;      ///< false: nothing is known of it but the tensors
};

/// A leaf of a kernel as scalar operations. The thread that holds an operand of a product reads it, once for each sum
/// that it counts for (PTX ISA, "Matrix Fragments").
std::vector<Value> values_of(const Kernel& kernel, const Flow& flow, int leaf);

}  // namespace tc::tile
