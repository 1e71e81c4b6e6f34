#include "tc/tile/accesses.h"

#include "tc/tile/print.h"

namespace tc::tile {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

class ReadCollector : public hi::IRVisitor {
 public:
  explicit ReadCollector(const std::map<std::string, const Tensor*>& tensors) : tensors_(tensors) {}
  std::vector<ElementAccess> reads;

 private:
  using hi::IRVisitor::visit;

  void under(const Expr& condition, const Expr& e) {
    conditions_.push_back(condition);
    e.accept(this);
    conditions_.pop_back();
  }
  void visit(const hi::And* op) override {
    op->a.accept(this);
    under(op->a, op->b);
  }
  void visit(const hi::Or* op) override {
    op->a.accept(this);
    under(!op->a, op->b);
  }
  void visit(const hi::Call* op) override {
    if (op->is_intrinsic(hi::Call::if_then_else)) {
      op->args[0].accept(this);
      under(op->args[0], op->args[1]);
      under(!op->args[0], op->args[2]);
      return;
    }
    if (const auto found = tensors_.find(op->name); found != tensors_.end()) {
      ElementAccess access{found->second, op->args, conditions_};
      reads.push_back(std::move(access));
    }
    hi::IRVisitor::visit(op);
  }

  const std::map<std::string, const Tensor*>& tensors_;
  std::vector<Expr> conditions_;
};

/// Whether a leaf only computes in registers.
bool is_a_threads_own(const Leaf& leaf) {
  const bool in_registers = std::all_of(leaf.accesses.begin(), leaf.accesses.end(), [](const ElementAccess& access) {
    return access.tensor->memory == Memory::kRegister;
  });
  return match(
      *leaf.node, [](const Synchronisation auto&) { return false; }, [](const Collective auto&) { return false; },
      [&](const Structure auto&) { return in_registers; },
      [&](const OneOf<Store, Atomic, Move, BoxCopy, BoxStore, ClusterLoad> auto&) { return in_registers; });
}

bool synchronises(const NodePtr& node) {
  bool found = false;
  for_each_node(node, [&](const Node& n) {
    found = found || is_barrier(n) || order_of(n) == Order::kCluster || order_of(n) == Order::kCopies ||
            order_of(n) == Order::kBoxStores;
  });
  return found;
}

class FlowBuilder {
 public:
  explicit FlowBuilder(const Kernel& kernel) : tensors_(tensors_of(kernel)) {
    point(-1);
    build(kernel.body, 0);
  }
  Flow flow;

 private:
  int point(int leaf) {
    flow.points.push_back({leaf, {}});
    return static_cast<int>(flow.points.size()) - 1;
  }
  void edge(int from, int to) { flow.points[from].next.push_back({to}); }
  void add_edge(int from, const Flow::Edge& edge) { flow.points[from].next.push_back(edge); }

  /// Adds the node behind a point; returns the point where it ends.
  int build(const NodePtr& node, int from) {
    if (!node) return from;
    return match(
        *node, [&](const Spec auto&) { return leaf(*node, from); },
        [&](const Synchronisation auto&) { return leaf(*node, from); },
        [&](const OneOf<Sequence, Allocate, Ring> auto&) { return children(*node, from); },
        [&](const OneOf<For, If, Let> auto& n) { return build(n, evaluates(*node, from)); });
  }

  /// Takes back the points from one on, and the last edges to them: nothing that others see happens there.
  void forget(int from, size_t edges, int first) {
    flow.points.resize(static_cast<size_t>(first));
    flow.points[from].next.resize(flow.points[from].next.size() - edges);
  }

  int leaf(const Node& node, int from) {
    flow.leaves.push_back({&node, path_, accesses_of(node, tensors_)});
    if (is_a_threads_own(flow.leaves.back())) return from;
    const int made = point(static_cast<int>(flow.leaves.size()) - 1);
    edge(from, made);
    return made;
  }
  int evaluates(const Node& node, int from) { return accesses_of(node, tensors_).empty() ? from : leaf(node, from); }

  int children(const Node& node, int from) {
    for_each_child(node, [&](const NodePtr& child) { from = build(child, from); });
    return from;
  }

  int build(const For& loop, int from) {
    const int id = static_cast<int>(flow.synchronising.size());
    flow.synchronising.push_back(synchronises(loop.body));
    const bool ordered = flow.synchronising.back();
    const int head = point(-1);
    add_edge(from, {.to = head, .enters = ordered ? id : -1});
    path_.loops.push_back({&loop, id});
    const int end = build(loop.body, head);
    path_.loops.pop_back();
    if (end == head) {
      forget(from, 1, head);
      return from;
    }
    const int after = point(-1);
    if (ordered) add_edge(end, {.to = head, .back = id});
    add_edge(end, {.to = after, .exits = ordered ? id : -1});
    if (may_be_empty(loop)) edge(from, after);
    return after;
  }

  int build(const If& branch, int from) {
    const int after = point(-1);
    bool is_quiet = true;
    for (const auto& [condition, body] :
         {std::pair(branch.condition, branch.then_case), std::pair(!branch.condition, branch.else_case)}) {
      const int begin = point(-1);
      add_edge(from, {.to = begin, .condition = condition, .join = after});
      path_.conditions.push_back(condition);
      const int end = build(body, begin);
      is_quiet = is_quiet && end == begin;
      edge(end, after);
      path_.conditions.pop_back();
    }
    if (!is_quiet) return after;
    forget(from, 2, after);
    return from;
  }

  int build(const Let& let, int from) {
    path_.lets[let.name] = let.value;
    from = build(let.body, from);
    path_.lets.erase(let.name);
    return from;
  }

  std::map<std::string, const Tensor*> tensors_;
  Path path_;
};

}  // namespace

std::string Leaf::text() const { return node_text(*node); }

std::map<std::string, const Tensor*> tensors_of(const Kernel& kernel) {
  std::map<std::string, const Tensor*> result;
  for (const Tensor& tensor : kernel.tensors) result[tensor.name] = &tensor;
  for_each_node(kernel.body, [&](const Node& node) {
    if (const Tensor* tensor = allocated_tensor(node)) result[tensor->name] = tensor;
  });
  return result;
}

std::vector<ElementAccess> reads_in(const Expr& expr, const std::map<std::string, const Tensor*>& tensors) {
  ReadCollector collector(tensors);
  expr.accept(&collector);
  return std::move(collector.reads);
}

std::vector<ElementAccess> accesses_of(const Node& node, const std::map<std::string, const Tensor*>& tensors) {
  std::vector<ElementAccess> result;
  for_each_access(node, [&](const NodeAccess& a) {
    result.push_back({tensors.at(a.tensor), a.subscripts,
                      a.condition.defined() ? std::vector{a.condition} : std::vector<Expr>(), a.is_write, a.atomic,
                      a.asynchronous, a.dimension, a.elements, a.in_cluster, a.region, a.lengths});
  });
  for_each_expr(node, [&](const Expr& e) {
    for (ElementAccess& read : reads_in(e, tensors)) result.push_back(std::move(read));
  });
  return result;
}

Flow flow_of(const Kernel& kernel) { return std::move(FlowBuilder(kernel).flow); }

}  // namespace tc::tile
