#pragma once

#include <Halide.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tc/ir/program.h"

namespace tc::ir {

/// The integers [lower, upper] of one index; undefined where there is no bound.
struct IndexInterval {
  Halide::Expr lower;
  Halide::Expr upper;
};

/// The ranges of a statement's indices as far as they are known.
struct Ranges {
  std::vector<std::string> sizes;  ///< not negative
  Halide::Internal::Scope<Halide::Internal::Interval> solved;
};

/// True for sums, products with factors free of indices, and quotients by positive constants: what the interval
/// solver answers exactly.
bool is_monotone(const Halide::Expr& subscript, const std::vector<std::string>& indices);

/// What `index` is multiplied with in a sum of products; undefined if it stands below a quotient.
Halide::Expr coefficient_of(const Halide::Expr& subscript, const std::string& index);

/// The largest interval of `index` for which 0 <= subscript < extent for all values of the solved indices: by
/// Halide's interval solver; [0, -1] if no value will do. Nothing if all values above some do.
std::optional<IndexInterval> solve_subscript(const Halide::Expr& subscript, const Halide::Expr& extent,
                                             const std::string& index, const Ranges& ranges);

/// The same for a symbolic coefficient that a precondition holds positive: rest + coefficient * index. `room` is what
/// the coefficient divides in the upper bound: the interval from 0 is empty where it is negative.
IndexInterval solve_strided(const Halide::Expr& rest, const Halide::Expr& coefficient, const Halide::Expr& extent,
                            const Ranges& ranges, Halide::Expr& room);

/// Values from `lower` to `upper`, of index arithmetic with constant sizes.
struct ConstantInterval {
  int64_t lower = 0;
  int64_t upper = 0;
};

/// Bounds of an expression over indices with these values, by interval arithmetic; quotients and remainders by
/// expressions too. None where it leaves 64 bits, or is not index arithmetic.
std::optional<ConstantInterval> constant_bounds(const Halide::Expr& expr,
                                                const std::map<std::string, ConstantInterval>& indices);

/// Bounds of an expression for all values of the solved indices.
IndexInterval bounds_of(const Halide::Expr& expr, const Ranges& ranges);

}  // namespace tc::ir
