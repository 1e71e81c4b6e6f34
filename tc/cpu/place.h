#pragma once

#include <Halide.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tc/cpu/ranged.h"
#include "tc/ir/layouts.h"
#include "tc/ir/program.h"
#include "tc/poly/scop.h"

namespace tc::cpu {

/// Where the elements of a tensor are: in the tensor itself, or in a buffer that holds a tile of it.
///
/// The element at subscripts x is at the sum over d of position_d * strides[d], position = x - offset; a dimension
/// with tile t > 0 has floor(position / t) * strides[d] + (position mod t) * tile_strides[d] instead.
struct Place {
  std::string name;            ///< of the flat buffer
  Halide::Type type;           ///< of an element
  std::vector<Ranged> offset;  ///< empty for the tensor itself
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;
  std::vector<int64_t> tile;          ///< empty, or one per dimension
  std::vector<int64_t> tile_strides;  ///< as long as tile
  bool padded = false;                ///< a buffer with room for all points of the tiles around it, partial or not
  int64_t spare = 0;                  ///< elements of a buffer behind the last that holds a value

  int rank() const { return static_cast<int>(extents.size()); }
  /// One past the largest address of an element.
  int64_t span() const;
  /// The flat index of an element; Int(32) where the span allows it. Every subscript must lie inside.
  Halide::Expr address(const std::vector<Ranged>& subscripts) const;
  /// With a predicate, only where that holds: for vectors.
  Halide::Expr load(const Halide::Expr& address, const Halide::Expr& predicate = Halide::Internal::const_true()) const;
  Halide::Internal::Stmt store(const Halide::Expr& address, const Halide::Expr& value,
                               const Halide::Expr& predicate = Halide::Internal::const_true()) const;
};

/// The type that an element has in memory: bools take a byte.
Halide::Type storage_type(Halide::Type type);

Place place_of_tensor(const ir::Program& program, const std::string& tensor, const ir::Layouts& layouts);
Place place_of_promotion(const ir::Program& program, const poly::Promotion& promotion, std::vector<Ranged> offset);

}  // namespace tc::cpu
