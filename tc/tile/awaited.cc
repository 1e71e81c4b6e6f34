#include "tc/tile/awaited.h"

#include <algorithm>
#include <span>

#include "tc/tile/digits.h"

namespace tc::tile {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// Whether some loop around a path, but for so many outer ones, awaits the ring.
bool awaits_within(const Path& path, const std::string& ring, size_t outer) {
  if (path.loops.size() <= outer) return false;
  bool found = false;
  for_each_node(path.loops[outer].loop->body, [&](const Node& node) {
    const RingStep* step = ring_step_of(node);
    found |= step && step->kind == RingStep::Kind::kAwait && step->ring == ring;
  });
  return found;
}

/// Whether one path begins with all of the other's loops and conditions.
bool lies_within(const Path& inner, const Path& outer) {
  if (outer.loops.size() > inner.loops.size() || outer.conditions.size() > inner.conditions.size()) return false;
  return std::ranges::equal(outer.loops, std::span(inner.loops).first(outer.loops.size()), {}, &EnclosingLoop::id,
                            &EnclosingLoop::id) &&
         std::ranges::equal(outer.conditions, std::span(inner.conditions).first(outer.conditions.size()),
                            [](const Expr& a, const Expr& b) { return hi::equal(a, b); });
}

}  // namespace

bool are_apart(const std::vector<Expr>& conditions, const std::vector<Expr>& others) {
  for (const Expr& one : conditions) {
    for (const Expr& other : others) {
      if (hi::equal(one, !other) || hi::equal(!one, other)) return true;
    }
  }
  return false;
}

std::string ring_that_fills(const Kernel& kernel, const std::string& tensor) {
  std::string result;
  for_each_node(kernel.body, [&](const Node& node) {
    if (const BoxCopy* copy = box_of(node); copy && copy->destination == tensor) result = copy->ring;
  });
  return result;
}

std::optional<Expr> turn_awaited(const Flow& flow, int leaf, const std::string& ring) {
  const Path& own = flow.leaves[static_cast<size_t>(leaf)].path;
  for (int i = leaf; i-- > 0;) {
    const Leaf& other = flow.leaves[static_cast<size_t>(i)];
    const RingStep* step = ring_step_of(*other.node);
    if (!step || step->kind != RingStep::Kind::kAwait || step->ring != ring) continue;
    if (are_apart(own.conditions, other.path.conditions)) continue;
    if (!lies_within(own, other.path) || awaits_within(own, ring, other.path.loops.size())) return std::nullopt;
    return without_lets(other.path, step->turn);
  }
  return std::nullopt;
}

}  // namespace tc::tile
