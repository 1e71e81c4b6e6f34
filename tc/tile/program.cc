#include "tc/tile/program.h"

#include "tc/support/round.h"

namespace tc::tile {

std::vector<Atomic> updates_of(const Move& move, Halide::Type type) {
  namespace hi = Halide::Internal;
  const auto next = [](std::vector<Halide::Expr> subscripts, int dimension, int by) {
    Halide::Expr& at = subscripts[static_cast<size_t>(dimension)];
    at = hi::simplify(at + hi::make_const(at.type(), by));
    return subscripts;
  };
  std::vector<Atomic> result;
  for (int i = 0; i < move.elements; ++i) {
    const Halide::Expr value =
        hi::Call::make(type, move.source, next(move.source_subscripts, move.source_dimension, i), hi::Call::PureExtern);
    result.push_back(
        {move.destination, next(move.destination_subscripts, move.destination_dimension, i), *move.update, value});
  }
  return result;
}

void for_each_node(const NodePtr& node, const std::function<void(const Node&)>& visit) {
  if (!node) return;
  visit(*node);
  if (const auto* sequence = std::get_if<Sequence>(&node->node)) {
    for (const NodePtr& child : sequence->children) for_each_node(child, visit);
  } else if (const auto* loop = std::get_if<For>(&node->node)) {
    for_each_node(loop->body, visit);
  } else if (const auto* branch = std::get_if<If>(&node->node)) {
    for_each_node(branch->then_case, visit);
    for_each_node(branch->else_case, visit);
  } else if (const auto* let = std::get_if<Let>(&node->node)) {
    for_each_node(let->body, visit);
  } else if (const auto* allocate = std::get_if<Allocate>(&node->node)) {
    for_each_node(allocate->body, visit);
  }
}

std::vector<SharedTensor> Kernel::shared_tensors() const {
  std::vector<SharedTensor> result;
  int64_t next = 0;
  for_each_node(body, [&](const Node& node) {
    const auto* allocate = std::get_if<Allocate>(&node.node);
    if (!allocate || allocate->tensor.memory != Memory::kShared) return;
    result.push_back({&allocate->tensor, next});
    const int64_t bytes = allocate->tensor.elements() * element_bytes(allocate->tensor.type);
    next += round_up(bytes, kSharedAlignment);
  });
  return result;
}

int64_t Kernel::shared_bytes() const {
  const std::vector<SharedTensor> all = shared_tensors();
  if (all.empty()) return 0;
  const Tensor& last = *all.back().tensor;
  return all.back().byte_offset + last.elements() * element_bytes(last.type);
}

}  // namespace tc::tile
