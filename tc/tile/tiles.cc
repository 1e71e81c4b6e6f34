#include "tc/tile/tiles.h"

#include <algorithm>
#include <set>
#include <string>

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

/// Whether an expression, or what it is made of, says which block it is in.
class OfBlock : public hi::IRVisitor {
 public:
  explicit OfBlock(const std::set<std::string>& lets) : lets_(lets) {}
  bool operator()(const Expr& e) {
    found_ = false;
    e.accept(this);
    return found_;
  }

 private:
  using hi::IRVisitor::visit;
  void visit(const hi::Variable* op) override {
    found_ |= std::ranges::find(kBlock, op->name) != kBlock.end() || lets_.count(op->name) > 0;
  }
  const std::set<std::string>& lets_;
  bool found_ = false;
};

/// The outermost such loops, in branches alike in all blocks. `lets`: those that say which block it is.
void find_loops(const NodePtr& node, const Kernel& kernel, std::set<std::string> lets, std::vector<const For*>& found) {
  if (!node) return;
  const auto children = [&] {
    for_each_child(*node, [&](const NodePtr& child) { find_loops(child, kernel, lets, found); });
  };
  match(
      *node,
      [&](const For& n) {
        if (tiles_of(n, kernel)) found.push_back(&n);
      },
      [&](const If& n) {
        if (!OfBlock(lets)(n.condition)) children();
      },
      [&](const Let& n) {
        if (OfBlock(lets)(n.value)) lets.insert(n.name);
        children();
      },
      [&](const OneOf<Sequence, Allocate, Ring> auto&) { children(); }, [](const Synchronisation auto&) {},
      [](const Spec auto&) {});
}

NodePtr without_loops(const NodePtr& node, const std::vector<const For*>& loops) {
  if (!node) return node;
  return match(
      *node,
      [&](const For& n) {
        const Expr block = hi::Variable::make(n.begin.type(), kBlock[0]);
        return std::ranges::find(loops, &n) != loops.end() ? substituted(n.body, n.variable, block) : node;
      },
      [&](const OneOf<Sequence, If, Let, Allocate, Ring> auto&) {
        return map_children(node, [&](const NodePtr& child) { return without_loops(child, loops); });
      },
      [&](const Synchronisation auto&) { return node; }, [&](const Spec auto&) { return node; });
}

}  // namespace

std::vector<const For*> loops_over_tiles(const Kernel& kernel) {
  if (kernel.grid[1] * kernel.grid[2] != 1 || kernel.cluster_blocks() != 1) return {};
  std::vector<const For*> loops;
  find_loops(kernel.body, kernel, {}, loops);
  for (const For* loop : loops) {
    if (loop->variable != loops[0]->variable || tiles_of(*loop, kernel) != tiles_of(*loops[0], kernel)) return {};
  }
  for (const Leaf& leaf : flow_of(kernel).leaves) {
    bool is_inside = false, is_global = leaf.node->instances != nullptr;
    for (const EnclosingLoop& around : leaf.path.loops) {
      is_inside |= std::ranges::find(loops, around.loop) != loops.end();
    }
    for (const ElementAccess& access : leaf.accesses) is_global |= access.tensor->memory == Memory::kGlobal;
    if (is_global && !is_inside) return {};
  }
  return loops;
}

std::optional<Kernel> with_block_for_each_tile(const Kernel& kernel) {
  const std::vector<const For*> loops = loops_over_tiles(kernel);
  if (loops.empty()) return std::nullopt;
  Kernel result = kernel;
  result.grid[0] = *tiles_of(*loops[0], kernel);
  result.body = without_loops(kernel.body, loops);
  return result;
}

}  // namespace tc::tile
