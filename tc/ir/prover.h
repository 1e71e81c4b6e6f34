#pragma once

#include <isl/cpp.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/ir/deadline.h"
#include "tc/ir/program.h"

namespace tc::ir {

/// What is known about a condition over sizes and specialised scalars.
struct Verdict {
  enum class Kind {
    kProved,     ///< holds for all of them
    kSometimes,  ///< holds exactly where `condition` does
    kNever,      ///< holds for no positive sizes
  };
  Kind kind = Kind::kProved;
  Halide::Expr condition;  ///< for kSometimes
};

/// An instance of a statement, and the value that an expression has there.
struct Witness {
  std::vector<int64_t> indices;
  int64_t value = 0;
};

/// Decides index arithmetic exactly, with isl: integers, floor division, all sizes at once. Products of sizes and other
/// terms that are not affine but free of indices stand for any integer.
/// One isl context each; not for use by several threads. A question that is not affine, or too hard for a fixed budget
/// of isl operations, has no answer; each throws OutOfTime when the deadline is over.
class Prover {
 public:
  /// Assumes that sizes and the extents of inputs are not negative.
  explicit Prover(const Program& program, const Deadline& deadline = Deadline());
  Prover(const Prover&) = delete;
  Prover& operator=(const Prover&) = delete;

  /// Takes a condition over sizes and scalars for granted from now on.
  void assume(const Halide::Expr& condition);

  std::optional<Verdict> decide(const Halide::Expr& condition);

  /// Whether `lower <= value < upper` in all instances of the statement where `guard` holds. Conjuncts of the guard
  /// that are not affine are taken to hold.
  std::optional<Verdict> within(const Statement& statement, const Halide::Expr& value, const Halide::Expr& lower,
                                const Halide::Expr& upper, const Halide::Expr& guard);

  /// For constant sizes: the first instance where within() fails.
  std::optional<Witness> outside(const Statement& statement, const Halide::Expr& value, const Halide::Expr& lower,
                                 const Halide::Expr& upper, const Halide::Expr& guard);

  /// True if `condition` holds in no instance where `guard` does. Indices without a range are any integers from 0 on.
  bool excludes(const Statement& statement, const Halide::Expr& guard, const Halide::Expr& condition);

 private:
  class Builder;

  isl::set instances(const Statement& statement, const Halide::Expr& guard, const Halide::Expr& condition);
  Verdict verdict_of(const isl::set& holds);  // { [] : ... } over parameters
  Halide::Expr to_expr(const isl::set& parameters);
  bool follows(const Halide::Expr& condition);
  void learn_signs();
  void give_up();

  struct FreeContext {
    void operator()(isl_ctx* ctx) const { isl_ctx_free(ctx); }
  };
  struct Abort {
    isl_ctx* ctx;
    void operator()() const { isl_ctx_abort(ctx); }
  };

  const Deadline deadline_;
  const std::unique_ptr<isl_ctx, FreeContext> owned_;  // freed after the sets below, which live in it
  isl_ctx* const ctx_;
  std::set<std::string> parameters_;            // sizes and specialised scalars: all that a condition may be about
  std::optional<isl::set> context_;             // [p] -> { : } what is assumed
  std::optional<isl::set> positive_;            // [p] -> { : } all sizes at least 1
  std::map<std::string, Halide::Expr> opaque_;  // by isl name
  std::set<std::string> not_negative_;          // names in opaque_ that context_ holds at least 0
  std::optional<IslWatchdog> watchdog_;
  std::optional<std::stop_callback<Abort>> forward_;
};

}  // namespace tc::ir
