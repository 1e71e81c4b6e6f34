#pragma once

#include <string>
#include <vector>

#include "tc/tile/print.h"
#include "tc/tile/program.h"

namespace tc::tile {

/// A program with one thing taken out.
struct Mutant {
  std::string what;
  Program program;
};

namespace mutants_detail {

/// Replaces the guards of an expression (`c ? a : b` that evaluates one branch) by their first branch, one at a time.
class DropGuard : public Halide::Internal::IRMutator {
 public:
  explicit DropGuard(int which) : which_(which) {}
  int seen = 0;

 private:
  using Halide::Internal::IRMutator::visit;
  Halide::Expr visit(const Halide::Internal::Call* call) override {
    if (call->is_intrinsic(Halide::Internal::Call::if_then_else) && seen++ == which_) return mutate(call->args[1]);
    return IRMutator::visit(call);
  }
  int which_;
};

/// What is taken out: what orders threads and copies, and guards; or what is done.
enum class Part { kOrder, kOperations };

/// Copies a tree without its `which`-th part of a kind.
class Dropper {
 public:
  Dropper(Part part, int which) : part_(part), which_(which) {}

  NodePtr copy(const NodePtr& node) {
    if (!node) return nullptr;
    return match(
        *node, [&](const OneOf<Sequence, For, Allocate, Ring> auto&) { return children(node); },
        [&](const If& n) {
          // Without the predicate of a guarded copy, zeros may arrive where nobody reads.
          const Move* guarded = n.predicated ? asynchronous_copy(*n.then_case) : nullptr;
          const bool is_needed = !guarded || !guarded->guard.defined();
          if (is_needed && drops(Part::kOrder, "guard if " + condition_text(n))) return copy(n.then_case);
          if (!n.predicated) return children(node);
          If changed = n;
          changed.then_case = copy(n.then_case);
          changed.predicated = asynchronous_copy(*changed.then_case) != nullptr;
          return made(std::move(changed), *node);
        },
        [&](const Let& n) {
          Let changed = n;
          changed.value = copy_expr(n.value, "let " + n.name);
          return children(made(std::move(changed), *node));
        },
        [&](const OneOf<Barrier, ClusterStep, WaitGroup, RingStep, MatMulWait, BoxStep> auto&) {
          return drops(Part::kOrder, *node) ? nothing(*node) : node;
        },
        [&](const Move& n) {
          if (drops(Part::kOperations, *node)) return nothing(*node);
          if (!n.guard.defined() || !drops(Part::kOperations, "zeros of " + node_text(*node))) return node;
          Move changed = n;
          changed.guard = {};
          return made(std::move(changed), *node);
        },
        [&](const OneOf<CommitGroup, Atomic, MatMul, MatrixLoad, MatrixStore, BoxCopy, BoxStore, ClusterLoad,
                        WarpgroupMatMul> auto&) { return drops(Part::kOperations, *node) ? nothing(*node) : node; },
        [&](const Store& n) {
          Store changed = n;
          changed.value = copy_expr(n.value, node_text(*node));
          return made(std::move(changed), *node);
        },
        // A kernel without a wait is launched when those before it have ended, so it may lack the wait.
        [&](const OneOf<WaitForKernels, StartNextKernel, Shuffle> auto&) { return node; });
  }

  bool done() const { return !what.empty(); }
  std::string what;

 private:
  NodePtr children(const NodePtr& node) {
    return map_children(node, [&](const NodePtr& child) { return copy(child); });
  }
  static NodePtr made(auto kind, const Node& from) {
    return std::make_shared<const Node>(Node{std::move(kind), from.comment});
  }
  static std::string condition_text(const If& branch) {
    Node shown;
    shown.node = Let{"condition", branch.condition, nullptr};
    return to_text(Kernel{"", {1, 1, 1}, {1, 1, 1}, {}, {}, std::make_shared<const Node>(shown)});
  }
  static NodePtr nothing(const Node& from) { return made(Sequence{}, from); }
  bool drops(Part part, const Node& node) { return part == part_ && drops(part, node_text(node)); }
  bool drops(Part part, const std::string& text) {
    if (part != part_ || seen_++ != which_) return false;
    what = text;
    return true;
  }
  Halide::Expr copy_expr(const Halide::Expr& expr, const std::string& where) {
    DropGuard count(-1);
    count.mutate(expr);
    Halide::Expr result = expr;
    for (int i = 0; i < count.seen; ++i) {
      if (drops(Part::kOrder, "guard in " + where)) result = DropGuard(i).mutate(expr);
    }
    return result;
  }
  Part part_;
  int which_;
  int seen_ = 0;
};

inline std::vector<Mutant> without_each(Part part, const Program& program) {
  std::vector<Mutant> result;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    for (int which = 0;; ++which) {
      Dropper dropper(part, which);
      Mutant mutant{"", program};
      mutant.program.kernels[k].body = dropper.copy(program.kernels[k].body);
      if (!dropper.done()) break;
      mutant.what = program.kernels[k].name + ": " + dropper.what;
      result.push_back(std::move(mutant));
    }
  }
  return result;
}

}  // namespace mutants_detail

/// All programs that come of taking one barrier, wait, `if` or guarded read out.
inline std::vector<Mutant> mutants(const Program& program) {
  return mutants_detail::without_each(mutants_detail::Part::kOrder, program);
}

/// All programs that come of taking one copy, commit, update, or product or load of tiles out.
inline std::vector<Mutant> mutants_of_operations(const Program& program) {
  return mutants_detail::without_each(mutants_detail::Part::kOperations, program);
}

}  // namespace tc::tile
