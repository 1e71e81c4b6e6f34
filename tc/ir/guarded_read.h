#pragma once

#include <Halide.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tc/ir/linear_form.h"
#include "tc/ir/program.h"

namespace tc::ir {

/// The values of a subscript at which a guard lets an element be read.
struct Inside {
  std::optional<int64_t> least = {}, greatest = {};
  bool operator==(const Inside&) const = default;
};

/// A read under a guard that says between which elements it lies, and nothing else:
///     i >= 1 && i <= N ? X(i - 1) : 0          X at [0, N - 1], elsewhere 0
struct GuardedRead {
  const Halide::Internal::Call* read = nullptr;  ///< at subscripts that are linear forms; cast to the whole's type
  std::vector<Inside> inside;                    ///< per dimension, within the tensor
  Halide::Expr otherwise;
};

/// What is at least 0 where a comparison of integers holds; nothing of other conditions.
std::optional<LinearForm> slack(const Halide::Expr& comparison);

/// Whether an expression is the number -0.0, of which 1 / x is another infinity than of 0.0.
bool is_negative_zero(const Halide::Expr& e);

/// The guarded read that a choice of a specialised Program is; nothing if its guard is no conjunction of bounds of
/// subscripts, or it is -0.0 elsewhere.
std::optional<GuardedRead> guarded_read(const Program& program, const Halide::Internal::Call* choice);

}  // namespace tc::ir
