#include "tc/tile/tiles.h"

#include "tc/ir/halide_compat.h"
#include "tc/tile/accesses.h"

namespace tc::tile {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// The tiles that a loop goes through, if it is the grid's.
std::optional<int64_t> tiles_of(const For& loop, const Kernel& kernel) {
  const auto* begin = loop.begin.as<hi::Variable>();
  const int64_t *step = ir::constant_int(loop.step), *end = ir::constant_int(loop.end);
  if (!begin || begin->name != kBlock[0] || !step || *step != kernel.grid[0] || !end) return std::nullopt;
  return *end;
}

NodePtr substituted(const NodePtr& node, const std::string& name, const Expr& value) {
  if (!node) return node;
  const NodePtr own = map_exprs(node, [&](const Expr& e) { return hi::substitute(name, value, e); });
  return map_children(own, [&](const NodePtr& child) { return substituted(child, name, value); });
}

/// The first such loop that lies in no other loop and in no branch.
const For* find_loop(const NodePtr& node, const Kernel& kernel) {
  if (!node) return nullptr;
  const For* found = nullptr;
  match(
      *node, [&](const For& n) { found = tiles_of(n, kernel) ? &n : nullptr; }, [](const If&) {},
      [&](const OneOf<Sequence, Let, Allocate, Ring> auto&) {
        for_each_child(*node, [&](const NodePtr& child) {
          if (child && !found) found = find_loop(child, kernel);
        });
      },
      [](const Synchronisation auto&) {}, [](const Spec auto&) {});
  return found;
}

NodePtr without_loop(const NodePtr& node, const For* loop) {
  if (!node) return node;
  return match(
      *node,
      [&](const For& n) {
        const Expr block = hi::Variable::make(n.begin.type(), kBlock[0]);
        return &n == loop ? substituted(n.body, n.variable, block) : node;
      },
      [&](const If&) { return node; },
      [&](const OneOf<Sequence, Let, Allocate, Ring> auto&) {
        return map_children(node, [&](const NodePtr& child) { return without_loop(child, loop); });
      },
      [&](const Synchronisation auto&) { return node; }, [&](const Spec auto&) { return node; });
}

}  // namespace

const For* loop_over_tiles(const Kernel& kernel) {
  if (kernel.grid[1] * kernel.grid[2] != 1 || kernel.cluster_blocks() != 1) return nullptr;
  const For* loop = find_loop(kernel.body, kernel);
  if (!loop) return nullptr;
  for (const Leaf& leaf : flow_of(kernel).leaves) {
    bool is_inside = false, is_global = leaf.node->instances != nullptr;
    for (const EnclosingLoop& around : leaf.path.loops) is_inside |= around.loop == loop;
    for (const ElementAccess& access : leaf.accesses) is_global |= access.tensor->memory == Memory::kGlobal;
    if (is_global && !is_inside) return nullptr;
  }
  return loop;
}

std::optional<Kernel> with_block_for_each_tile(const Kernel& kernel) {
  const For* loop = loop_over_tiles(kernel);
  if (!loop) return std::nullopt;
  Kernel result = kernel;
  result.grid[0] = *tiles_of(*loop, kernel);
  result.body = without_loop(kernel.body, loop);
  return result;
}

}  // namespace tc::tile
