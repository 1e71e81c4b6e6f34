#pragma once

#include <set>
#include <string>

#include "tc/tile/program.h"

namespace tc::cuda {

/// What all threads of a warp have alike, as a kernel's text is written from its beginning to its end.
class WarpValues {
 public:
  explicit WarpValues(const tile::Kernel& kernel);

  /// Whether an expression is made of what all threads of a warp have alike.
  bool is_alike(const Halide::Expr& e) const;
  /// Whether all threads of a warp have a value and are here, and the compiler may not know it. This is the number of
  /// the warp, or what a loop around all threads counts, divided by no power of two. Products of warpgroups take their
  /// operands' places from registers of the warp. Other values go to these one by one.
  bool is_to_be_said(const Halide::Expr& value) const;

  void enter(const tile::For& loop);
  void define(const tile::Let& let);
  /// A branch, which threads of a warp may take apart, and its end.
  void enter_branch(const Halide::Expr& condition) { branches_ += is_alike(condition) ? 0 : 1; }
  int branches() const { return branches_; }
  void leave_branches(int around) { branches_ = around; }

 private:
  bool is_here_with_rings_ = false;  ///< the kernel has rings, and its warps are those of thread x
  int branches_ = 0;                 ///< around what is written, that threads of a warp may take apart
  std::set<std::string> counted_;    ///< variables of loops that all threads go through alike
  std::set<std::string> alike_;      ///< lets that all threads of a warp have alike
};

}  // namespace tc::cuda
