#include "tc/tile/accesses.h"

#include "tc/ir/expr_text.h"
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

bool synchronises(const NodePtr& node) {
  bool found = false;
  for_each_node(node, [&](const Node& n) {
    found |= std::holds_alternative<Barrier>(n.node) || std::holds_alternative<CommitGroup>(n.node) ||
             std::holds_alternative<WaitGroup>(n.node);
  });
  return found;
}

/// True unless the loop is known to run.
bool may_be_empty(const For& loop) {
  const Expr runs = hi::simplify(loop.begin < loop.end);
  return !hi::is_const_one(runs);
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
    return std::visit([&](const auto& n) { return build(*node, n, from); }, node->node);
  }

  int leaf(const Node& node, std::vector<ElementAccess> accesses, int from) {
    flow.leaves.push_back({&node, path_, std::move(accesses)});
    const int made = point(static_cast<int>(flow.leaves.size()) - 1);
    edge(from, made);
    return made;
  }

  void add_reads(const std::vector<Expr>& exprs, std::vector<ElementAccess>& to) const {
    for (const Expr& e : exprs) {
      for (ElementAccess& read : reads_in(e, tensors_)) to.push_back(std::move(read));
    }
  }
  int evaluates(const Node& node, const std::vector<Expr>& exprs, int from) {
    std::vector<ElementAccess> reads;
    add_reads(exprs, reads);
    return reads.empty() ? from : leaf(node, std::move(reads), from);
  }

  int build(const Node&, const Sequence& sequence, int from) {
    for (const NodePtr& child : sequence.children) from = build(child, from);
    return from;
  }

  int build(const Node& node, const For& loop, int from) {
    from = evaluates(node, {loop.begin, loop.end, loop.step}, from);
    const int id = static_cast<int>(flow.synchronising.size());
    flow.synchronising.push_back(synchronises(loop.body));
    const bool ordered = flow.synchronising.back();
    const int head = point(-1);
    add_edge(from, {.to = head, .enters = ordered ? id : -1});
    path_.loops.push_back({&loop, id});
    const int end = build(loop.body, head);
    path_.loops.pop_back();
    const int after = point(-1);
    if (ordered) add_edge(end, {.to = head, .back = id});
    add_edge(end, {.to = after, .exits = ordered ? id : -1});
    if (may_be_empty(loop)) edge(from, after);
    return after;
  }

  int build(const Node& node, const If& branch, int from) {
    from = evaluates(node, {branch.condition}, from);
    const int after = point(-1);
    path_.conditions.push_back(branch.condition);
    edge(build(branch.then_case, from), after);
    path_.conditions.back() = !branch.condition;
    edge(build(branch.else_case, from), after);
    path_.conditions.pop_back();
    return after;
  }

  int build(const Node& node, const Let& let, int from) {
    from = evaluates(node, {let.value}, from);
    path_.lets[let.name] = let.value;
    from = build(let.body, from);
    path_.lets.erase(let.name);
    return from;
  }

  int build(const Node&, const Allocate& allocate, int from) { return build(allocate.body, from); }

  int build(const Node& node, const Store& store, int from) {
    return writes(node, {tensors_.at(store.tensor), store.subscripts, {}, true}, {store.value}, from);
  }
  int build(const Node& node, const Atomic& atomic, int from) {
    return writes(node, {tensors_.at(atomic.tensor), atomic.subscripts, {}, true, true}, {atomic.value}, from);
  }
  int build(const Node& node, const Shuffle& s, int from) {
    return writes(node, {tensors_.at(s.tensor), s.subscripts, {}, true}, {s.value, s.lane}, from);
  }
  int build(const Node& node, const Move& move, int from) {
    ElementAccess to{tensors_.at(move.destination), move.destination_subscripts, {}, true};
    to.asynchronous = move.asynchronous;
    to.atomic = move.update.has_value();
    to.dimension = move.destination_dimension;
    to.elements = move.elements;
    ElementAccess source{tensors_.at(move.source), move.source_subscripts, {}};
    source.dimension = move.source_dimension;
    source.elements = move.elements;
    std::vector<ElementAccess> accesses = {to, source};
    add_reads(move.destination_subscripts, accesses);
    add_reads(move.source_subscripts, accesses);
    return leaf(node, std::move(accesses), from);
  }
  int build(const Node& node, const Barrier&, int from) { return leaf(node, {}, from); }
  int build(const Node& node, const WaitForKernels&, int from) { return leaf(node, {}, from); }
  int build(const Node& node, const StartNextKernel&, int from) { return leaf(node, {}, from); }
  int build(const Node& node, const CommitGroup&, int from) { return leaf(node, {}, from); }
  int build(const Node& node, const WaitGroup&, int from) { return leaf(node, {}, from); }

  int writes(const Node& node, const ElementAccess& write, const std::vector<Expr>& values, int from) {
    std::vector<ElementAccess> accesses = {write};
    add_reads(write.subscripts, accesses);
    add_reads(values, accesses);
    return leaf(node, std::move(accesses), from);
  }

  std::map<std::string, const Tensor*> tensors_;
  Path path_;
};

}  // namespace

std::string Leaf::text() const {
  if (const auto* loop = std::get_if<For>(&node->node)) return "for " + loop->variable;
  if (const auto* branch = std::get_if<If>(&node->node)) return "if " + ir::to_text(branch->condition);
  if (const auto* let = std::get_if<Let>(&node->node)) return "let " + let->name;
  return node_text(*node);
}

std::map<std::string, const Tensor*> tensors_of(const Kernel& kernel) {
  std::map<std::string, const Tensor*> result;
  for (const Tensor& tensor : kernel.tensors) result[tensor.name] = &tensor;
  for_each_node(kernel.body, [&](const Node& node) {
    if (const auto* allocate = std::get_if<Allocate>(&node.node)) result[allocate->tensor.name] = &allocate->tensor;
  });
  return result;
}

std::vector<ElementAccess> reads_in(const Expr& expr, const std::map<std::string, const Tensor*>& tensors) {
  ReadCollector collector(tensors);
  expr.accept(&collector);
  return std::move(collector.reads);
}

Flow flow_of(const Kernel& kernel) { return std::move(FlowBuilder(kernel).flow); }

}  // namespace tc::tile
