#pragma once

#include <Halide.h>

#include <vector>

#include "tc/cpu/place.h"

namespace tc::cpu {

enum class CopyDirection { kIn, kOut };

struct CopyOptions {
  int vector_lanes = 1;   ///< of the widest vector of the element type
  bool unrolled = false;  ///< the tile is known to be full and small: no loop remains
};

/// Copies the part of a buffer's tile that lies inside of the tensor, from the tensor or back to it.
Halide::Internal::Stmt copy_tile(const Place& tensor, const Place& buffer, CopyDirection direction,
                                 const CopyOptions& options);

/// Conditions, each not known to hold, under which all of a buffer's tile lies inside of the tensor.
std::vector<Halide::Expr> full_conditions(const Place& buffer, const Place& tensor);

/// The extents of an Allocate node that holds all of a place.
std::vector<Halide::Expr> allocation_extents(const Place& place);

}  // namespace tc::cpu
