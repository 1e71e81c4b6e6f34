#pragma once

#include <Halide.h>

#include <vector>

#include "tc/cpu/loop_facts.h"
#include "tc/cpu/place.h"

namespace tc::cpu {

enum class CopyDirection { kIn, kOut };

enum class CopyForm {
  kLoops,    ///< over the part that is inside
  kFull,     ///< the tile is small and known to be full: no loop remains
  kGuarded,  ///< the tile is small: no loop remains, each element or vector is copied if it is inside
};

struct CopyOptions {
  int vector_lanes = 1;  ///< of the widest vector of the element type
  CopyForm form = CopyForm::kLoops;
  bool parallel = false;  ///< the outermost loop runs in parallel
};

/// Copies the part of a buffer's tile that lies inside of the tensor, from the tensor or back to it. A dimension of
/// which the facts show that it is full is copied without asking.
Halide::Internal::Stmt copy_tile(const Place& tensor, const Place& buffer, CopyDirection direction,
                                 const CopyOptions& options, const LoopFacts& facts);

/// Conditions, each not known to hold, under which all of a buffer's tile lies inside of the tensor.
std::vector<Halide::Expr> full_conditions(const Place& buffer, const Place& tensor);

/// The extents of an Allocate node that holds all of a place.
std::vector<Halide::Expr> allocation_extents(const Place& place);

}  // namespace tc::cpu
