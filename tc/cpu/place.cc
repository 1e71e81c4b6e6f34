#include "tc/cpu/place.h"

#include "tc/ir/halide_compat.h"
#include "tc/support/check.h"
#include "tc/support/round.h"

namespace tc::cpu {

using Halide::Expr;
using Halide::Internal::Stmt;

namespace {

int64_t constant_extent(const ir::Tensor& tensor, int dimension) {
  const int64_t* extent = ir::constant_int(tensor.extents[static_cast<size_t>(dimension)]);
  TC_CHECK(extent != nullptr, "extent {} of '{}' is not constant in a specialised program", dimension, tensor.name);
  return *extent;
}

}  // namespace

Halide::Type storage_type(Halide::Type type) { return type.is_bool() ? Halide::UInt(8) : type; }

int64_t Place::span() const {
  int64_t last = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 0) return 0;
    if (!tile.empty() && tile[d] > 0) {
      last += (extents[d] - 1) / tile[d] * strides[d] + (std::min(tile[d], extents[d]) - 1) * tile_strides[d];
    } else {
      last += (extents[d] - 1) * strides[d];
    }
  }
  return last + 1;
}

Expr Place::address(const std::vector<Ranged>& subscripts) const {
  TC_CHECK(subscripts.size() == extents.size(), "'{}' has {} dimensions but {} subscripts", name, extents.size(),
           subscripts.size());
  bool narrow = span() <= INT32_MAX;
  Expr result;
  auto add = [&](const Ranged& index, int64_t stride) {
    Expr term = narrow ? as_int32(index) : as_int64(index);
    if (stride != 1) term = term * Halide::Internal::make_const(term.type(), stride);
    result = result.defined() ? result + term : term;
  };
  for (size_t d = 0; d < extents.size(); ++d) {
    Ranged position = offset.empty() ? subscripts[d] : subscripts[d] - offset[d];
    // An element's position is inside by contract, which the intervals alone may not show.
    position = ranged(position.expr, std::max<int64_t>(position.min, 0), std::max<int64_t>(extents[d] - 1, 0));
    if (!tile.empty() && tile[d] > 0) {
      add(floor_div(position, tile[d]), strides[d]);
      add(floor_mod(position, tile[d]), tile_strides[d]);
    } else {
      add(position, strides[d]);
    }
  }
  return result.defined() ? result : Halide::Internal::make_zero(narrow ? Halide::Int(32) : Halide::Int(64));
}

Expr Place::load(const Expr& address, const Expr& predicate) const {
  Expr value = Halide::Internal::Load::make(storage_type(type), name, address, {}, {}, predicate, {});
  return type.is_bool() ? value != Halide::Internal::make_zero(value.type()) : value;
}

Stmt Place::store(const Expr& address, const Expr& value, const Expr& predicate) const {
  TC_CHECK(value.type() == type, "a value of another type is stored into '{}'", name);
  Expr stored = type.is_bool() ? Halide::cast(storage_type(type), value) : value;
  return Halide::Internal::Store::make(name, stored, address, {}, predicate, {});
}

Place place_of_tensor(const ir::Program& program, const std::string& name, const ir::Layouts& layouts) {
  const ir::Tensor& tensor = program.tensor(name);
  Place place;
  place.name = name;
  place.type = tensor.type;
  for (int d = 0; d < tensor.rank(); ++d) place.extents.push_back(constant_extent(tensor, d));
  auto given = layouts.find(name);
  if (given != layouts.end()) {
    TC_CHECK(given->second.size() == place.extents.size(), "'{}' has {} dimensions but {} strides", name, tensor.rank(),
             given->second.size());
    place.strides = given->second;
    return place;
  }
  place.strides.assign(place.extents.size(), 1);
  for (size_t d = place.extents.size(); d-- > 1;) {
    place.strides[d - 1] = place.strides[d] * std::max<int64_t>(place.extents[d], 1);
  }
  return place;
}

Place place_of_promotion(const ir::Program& program, const poly::Promotion& promotion, std::vector<Ranged> offset) {
  size_t rank = promotion.extents.size();
  Place place{promotion.name,
              program.tensor(promotion.tensor).type,
              std::move(offset),
              promotion.extents,
              std::vector<int64_t>(rank, 0),
              promotion.tile,
              {}};
  place.tile_strides.assign(place.tile.size(), 0);
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    auto d = static_cast<size_t>(promotion.layout[i]);
    if (place.tile.empty() || place.tile[d] == 0) continue;
    place.tile_strides[d] = stride;
    stride *= place.tile[d];
  }
  for (size_t i = rank; i-- > 0;) {
    auto d = static_cast<size_t>(promotion.layout[i]);
    place.strides[d] = stride;
    bool tiled = !place.tile.empty() && place.tile[d] > 0;
    stride *= tiled ? round_up(place.extents[d], place.tile[d]) / place.tile[d] : place.extents[d];
  }
  return place;
}

}  // namespace tc::cpu
