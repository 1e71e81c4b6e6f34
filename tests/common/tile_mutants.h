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

/// Copies a tree without its `which`-th barrier, wait, guard, copy, update, or product or load of tiles.
class Dropper {
 public:
  explicit Dropper(int which) : which_(which) {}

  NodePtr copy(const NodePtr& node) {
    if (!node) return nullptr;
    return match(
        *node, [&](const OneOf<Sequence, For, Allocate> auto&) { return children(node); },
        [&](const If& n) {
          if (drops("guard if " + condition_text(n))) return copy(n.then_case);
          if (!n.predicated) return children(node);
          If changed = n;
          changed.then_case = copy(n.then_case);
          changed.predicated = std::holds_alternative<Move>(changed.then_case->node);
          return made(std::move(changed), *node);
        },
        [&](const Let& n) {
          Let changed = n;
          changed.value = copy_expr(n.value, "let " + n.name);
          return children(made(std::move(changed), *node));
        },
        [&](const OneOf<Barrier, CommitGroup, WaitGroup, Atomic, Move, MatMul, MatrixLoad> auto&) {
          return drops(node_text(*node)) ? made(Sequence{}, *node) : node;
        },
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
  bool drops(const std::string& text) {
    if (seen_++ != which_) return false;
    what = text;
    return true;
  }
  Halide::Expr copy_expr(const Halide::Expr& expr, const std::string& where) {
    DropGuard count(-1);
    count.mutate(expr);
    Halide::Expr result = expr;
    for (int i = 0; i < count.seen; ++i) {
      if (drops("guard in " + where)) result = DropGuard(i).mutate(expr);
    }
    return result;
  }
  int which_;
  int seen_ = 0;
};

}  // namespace mutants_detail

/// All programs that come of taking one barrier, wait, `if`, guarded read, copy, update, or product or load of tiles
/// out.
inline std::vector<Mutant> mutants(const Program& program) {
  std::vector<Mutant> result;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    for (int which = 0;; ++which) {
      mutants_detail::Dropper dropper(which);
      Mutant mutant{"", program};
      mutant.program.kernels[k].body = dropper.copy(program.kernels[k].body);
      if (!dropper.done()) break;
      mutant.what = program.kernels[k].name + ": " + dropper.what;
      result.push_back(std::move(mutant));
    }
  }
  return result;
}

}  // namespace tc::tile
