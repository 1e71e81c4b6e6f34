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

namespace {

template <typename Like, typename Kind>
using Of = std::conditional_t<std::is_const_v<Like>, const Kind, Kind>&;

/// The one place that says which kinds of nodes have children.
template <typename AnyNode, typename F>
void visit_children(AnyNode& node, F&& f) {
  std::visit(Overloaded{[&](Of<AnyNode, Sequence> n) {
                          for (auto& child : n.children) f(child);
                        },
                        [&](Of<AnyNode, For> n) { f(n.body); },
                        [&](Of<AnyNode, If> n) {
                          f(n.then_case);
                          f(n.else_case);
                        },
                        [&](Of<AnyNode, Let> n) { f(n.body); }, [&](Of<AnyNode, Allocate> n) { f(n.body); },
                        [](const Barrier&) {}, [](const WaitForKernels&) {}, [](const StartNextKernel&) {},
                        [](const Store&) {}, [](const Atomic&) {}, [](const Move&) {}, [](const CommitGroup&) {},
                        [](const WaitGroup&) {}, [](const Shuffle&) {}},
             node.node);
}

}  // namespace

void change_children(Node& node, const std::function<void(NodePtr&)>& change) { visit_children(node, change); }

void change_exprs(Node& node, const std::function<void(Halide::Expr&)>& change) {
  const auto all = [&](std::vector<Halide::Expr>& exprs) {
    for (Halide::Expr& e : exprs) change(e);
  };
  const auto update = [&](auto& n) {
    all(n.subscripts);
    change(n.value);
  };
  std::visit(Overloaded{[](Sequence&) {},
                        [&](For& n) {
                          change(n.begin);
                          change(n.end);
                          change(n.step);
                        },
                        [&](If& n) { change(n.condition); }, [&](Let& n) { change(n.value); }, [](Allocate&) {},
                        [](Barrier&) {}, [](WaitForKernels&) {}, [](StartNextKernel&) {}, [&](Store& n) { update(n); },
                        [&](Atomic& n) { update(n); },
                        [&](Move& n) {
                          all(n.destination_subscripts);
                          all(n.source_subscripts);
                        },
                        [](CommitGroup&) {}, [](WaitGroup&) {},
                        [&](Shuffle& n) {
                          update(n);
                          change(n.lane);
                        }},
             node.node);
}

void for_each_node(const NodePtr& node, const std::function<void(const Node&)>& visit) {
  if (!node) return;
  visit(*node);
  visit_children(*node, [&](const NodePtr& child) { for_each_node(child, visit); });
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
