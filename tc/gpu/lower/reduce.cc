#include "tc/gpu/lower/reduce.h"

#include <algorithm>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/lower/emit.h"

namespace tc::gpu {

using Halide::Expr;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kWarp = 32;

/// Each lane with its partner at every distance: both compute the same combination.
NodePtr within_warp(const tile::Tensor& partial, ir::Assign assign, int64_t lanes, ir::Names& names) {
  const tile::Tensor other = registers(names.fresh(partial.name + "_other"), partial.type, 1);
  std::vector<NodePtr> parts;
  for (int64_t mask = lanes / 2; mask >= 1; mask /= 2) {
    tile::Shuffle shuffle;
    shuffle.kind = tile::Shuffle::Kind::kXor;
    shuffle.tensor = other.name;
    shuffle.subscripts = {index(0)};
    shuffle.value = element(partial, index(0));
    shuffle.lane = index(mask);
    parts.push_back(make_node(std::move(shuffle)));
    const Expr both = combine(assign, element(partial, index(0)), element(other, index(0)));
    parts.push_back(make_node(tile::Store{partial.name, {index(0)}, both}));
  }
  return make_node(tile::Allocate{other, sequence(std::move(parts))});
}

}  // namespace

NodePtr reduce_lanes(const tile::Tensor& partial, ir::Assign assign, int64_t lanes, int64_t rows, ir::Names& names,
                     std::vector<tile::Tensor>& shared) {
  if (lanes == 1) return make_node(tile::Sequence{});
  NodePtr warp = within_warp(partial, assign, std::min(lanes, kWarp), names);
  if (lanes <= kWarp) return warp;

  tile::Tensor warps;
  warps.name = names.fresh(partial.name + "_warps");
  warps.type = partial.type;
  warps.memory = tile::Memory::kShared;
  warps.layout = tile::Layout::row_major(std::vector<tile::IntTuple>{rows, lanes / kWarp});
  warps.written = true;
  shared.push_back(warps);
  const Expr lane = thread_number(0, lanes).expr, row = thread_number(1, rows).expr;
  auto of_warp = [&](const Expr& at) {
    return hi::Call::make(warps.type, warps.name, {row, at}, hi::Call::PureExtern);
  };
  const Expr own = element(partial, index(0));
  std::vector<NodePtr> parts = {warp};
  parts.push_back(make_node(tile::If{lane % index(kWarp) == 0,
                                     make_node(tile::Store{warps.name, {row, lane / index(kWarp)}, own}), nullptr}));
  parts.push_back(make_node(tile::Barrier{}));
  parts.push_back(make_node(tile::Store{partial.name, {index(0)}, of_warp(index(0))}));
  parts.push_back(loop_over("warp", {1, lanes / kWarp - 1}, kWarp, names, [&](const poly::Ranged& at) {
    return make_node(tile::Store{partial.name, {index(0)}, combine(assign, own, of_warp(at.expr))});
  }));
  return sequence(std::move(parts));
}

}  // namespace tc::gpu
