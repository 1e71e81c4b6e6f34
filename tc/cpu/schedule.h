#pragma once

#include <map>
#include <string>
#include <vector>

#include "tc/options/options.h"
#include "tc/poly/scop.h"
#include "tc/support/result.h"

namespace tc::cpu {

/// A def's loops on a CPU, written loop by loop: a value, whose verbs take loops by name and give a new one. Each is
/// legal, or refused with a pair of instances that it would run in the wrong order or at once. It begins as the
/// scheduler leaves a def: loops that statements share, coincident ones outside, without marks and buffers.
class Schedule {
 public:
  /// `scop` is that of from_ir(). Errors: the context's budget.
  static Result<Schedule> create(const poly::Scop& scop, const options::SchedulerOptions& options = {});

  std::vector<std::string> loops() const;
  const poly::Scop& scop() const { return scop_; }
  /// The loop nest, with marks and buffers.
  std::string to_text() const;

  /// The verbs of poly/loop_tree.h. A loop that is marked or that a buffer stands below is refused.
  Result<Schedule> split(const std::string& loop, int64_t size, const std::string& outer,
                         const std::string& inner) const;
  Result<Schedule> fuse(const std::string& outer, const std::string& inner, const std::string& fused) const;
  Result<Schedule> reorder(const std::vector<std::string>& loops) const;
  Result<Schedule> distribute(const std::string& loop) const;
  /// `rest` becomes the name of the second loop.
  Result<Schedule> partition(const std::string& loop, int64_t at, std::string& rest) const;

  /// The verbs of poly/loop_fusion.h. Marks and buffers stay right there, or refuse.
  Result<Schedule> merge(const std::string& first, const std::string& second) const;
  Result<Schedule> sink(const std::string& name, const std::string& loop) const;

  /// With another tree of named loops that has the place of this one. The loop, which it may lack, is free here.
  Result<Schedule> replaced(const std::string& loop, poly::Scop scop) const;

  /// Shares the iterations of a loop among the cores.
  Result<Schedule> parallelize(const std::string& loop) const;
  /// Lays all iterations of a loop out, at most 64; with other such loops around, a statement at most 512 times.
  Result<Schedule> unroll(const std::string& loop) const;
  /// Makes the iterations of an innermost loop, at most 64, the lanes of a vector.
  Result<Schedule> vectorize(const std::string& loop) const;
  /// Holds what is used of the tensor in an iteration of the loop in a buffer, which with `in_registers` is to be
  /// registers: loops below it are then unrolled or vectors.
  Result<Schedule> promote(const std::string& tensor, const std::string& loop, bool in_registers) const;

  /// The tree with the marks and promotions that from_poly() reads. A temporary whose values stay within one iteration
  /// gets a buffer of that size. Errors: a buffer without a constant size, or one that iterations on several cores
  /// would write back at once.
  Result<poly::Scop> lower() const;

 private:
  enum class Mark { kParallel, kUnrolled, kVector };
  struct Hold {
    std::string tensor, loop;
    bool in_registers = false;
  };
  explicit Schedule(poly::Scop scop) : scop_(std::move(scop)) {}
  static const char* word_of(Mark mark);
  Schedule with(poly::Scop scop) const;
  Result<Schedule> settled(poly::Scop scop) const;
  Result<void> check_free(const std::string& loop) const;
  Result<void> check_copies(const std::string& loop) const;
  Result<void> check_few_iterations(const std::string& loop, const char* verb) const;

  poly::Scop scop_;
  std::map<std::string, Mark> marked_;  ///< by loop
  std::vector<Hold> holds_;
};

}  // namespace tc::cpu
