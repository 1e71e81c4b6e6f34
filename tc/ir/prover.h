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

/// Two instances of a statement that write the same element.
struct Collision {
  std::map<std::string, int64_t> sizes;  ///< and scalars, for which they do; none of a specialised Program
  std::vector<int64_t> first;            ///< values of the indices
  std::vector<int64_t> second;
  std::vector<int64_t> element;
};

/// Not affine: a question has no answer here.
struct NotAffine {};

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

  /// Whether `lower <= value < upper` in all instances of the statement where `guard` holds. What is not affine in the
  /// guard may hold anywhere; no answer where that leaves the question open and sizes would decide it.
  std::optional<Verdict> within(const Statement& statement, const Halide::Expr& value, const Halide::Expr& lower,
                                const Halide::Expr& upper, const Halide::Expr& guard);

  /// For constant sizes: the first instance where within() fails.
  std::optional<Witness> outside(const Statement& statement, const Halide::Expr& value, const Halide::Expr& lower,
                                 const Halide::Expr& upper, const Halide::Expr& guard);

  /// Whether no two instances of the statement write the same element (C7). kNever also where that holds only for
  /// sizes that leave an index a single value, though it may have more.
  std::optional<Verdict> writes_once(const Statement& statement);

  /// The first two instances that write the same element, for the least sizes; none if there are none, or if the
  /// subscripts are not affine.
  std::optional<Collision> collision(const Statement& statement);

  /// True if the statements together write each element of a tensor, whose extents are `extents`.
  bool write_all(const std::vector<const Statement*>& statements, const std::vector<Halide::Expr>& extents);

  /// True if `condition` holds in no instance where `guard` does. Indices without a range are any integers from 0 on.
  bool excludes(const Statement& statement, const Halide::Expr& guard, const Halide::Expr& condition);

  // Sets for questions of other files. To be called within attempt().

  /// Runs `work`, which may ask isl. None where it is not affine, or too hard.
  template <typename Work>
  auto attempt(Work work) -> std::optional<decltype(work())> {
    isl_ctx_reset_operations(ctx_);
    try {
      return work();
    } catch (const NotAffine&) {
    } catch (const isl::exception&) {
      give_up();
    }
    return std::nullopt;
  }
  /// [p] -> { [i] : some instance with this value of `index` has its guard hold and `value` outside 0:extent }, of
  /// i >= 0. An undefined guard always holds.
  isl::set leaving(const Statement& statement, const std::string& index, const Halide::Expr& value,
                   const Halide::Expr& extent, const Halide::Expr& guard);
  /// [p] -> { [e0, e1, ...] : the statement writes this element }
  isl::set written(const Statement& statement);
  /// [p] -> { [e0, e1, ...] : this is an element of a tensor with these extents }
  isl::set elements(const std::vector<Halide::Expr>& extents);
  /// What is known of a condition over parameters: [p] -> { : }.
  Verdict verdict_of(const isl::set& holds);
  const isl::set& context() const { return *context_; }
  /// [p] -> { : all sizes are positive, and all indices but one have values }
  isl::set populated(const Statement& statement, const std::string& but);
  /// An integer over parameters, as simple as it is where `relevant` holds, if that is not negative elsewhere.
  isl::pw_aff simplified(const isl::pw_aff& value, const isl::set& relevant);
  Halide::Expr to_expr(const isl::pw_aff& value, const isl::set& relevant);

 private:
  class Builder;

  isl::set instances(Builder& builder, const Statement& statement, const Halide::Expr& guard,
                     const Halide::Expr& condition, const std::string& free = {});
  isl::set collisions(const Statement& statement);
  isl::set wide_sizes(const Statement& statement);
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
  std::set<std::string> least_minus_one_;       // and at least -1
  std::optional<IslWatchdog> watchdog_;
  std::optional<std::stop_callback<Abort>> forward_;
};

}  // namespace tc::ir
