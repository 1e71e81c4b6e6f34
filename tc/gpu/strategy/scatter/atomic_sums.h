#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/mapping/kernel.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// How atomic updates combine what they bring with what is there, if they can do what the statement does.
std::optional<tile::Atomic::Op> atomic_of(ir::Assign assign);

/// A tensor of partial results, and the statement that combines them:  s(m) += s_parts(p, m)
struct PartialSum {
  std::string partial, result;  ///< tensors
  std::string together;         ///< the statement
  tile::Atomic::Op op = tile::Atomic::Op::kAdd;
  /// Where an element of the result is: per dimension, at the partial result's subscript there, plus the offset; or at
  /// the offset alone, if the dimension is -1.
  struct Subscript {
    int dimension = -1;
    int64_t offset = 0;
  };
  std::vector<Subscript> subscripts;
};

/// Two launches, the second of which combines the first one's partial results:
///     launch 1   s_parts(p, m) = ...
///     launch 2   s(m) = bias(m)             `before`
///                s(m) += s_parts(p, m)
///                r(m) = max(s(m), 0)        `after`
/// Atomic updates need no partial results, nor time to read them again, but a launch for each of the others; which
/// block's update comes first is left to chance:
///     launch 1   s(m) = bias(m)
///     launch 2   s(m) += ...                by as many blocks as there were parts
///     launch 3   r(m) = max(s(m), 0)
struct AtomicSums {
  size_t parts = 0, last = 0;  ///< the launches
  std::vector<PartialSum> sums;
  std::vector<std::string> before, after;  ///< statements of the last launch that have to precede the sums, or need not
};

/// Of launch `last`; nothing unless a recipe stores each partial result once and nobody else uses it, what would run
/// sooner than now is independent of what it passes, and atomics update elements of that type.
std::optional<AtomicSums> find_atomic_sums(const poly::Scop& scop, const std::vector<Kernel>& kernels,
                                           const std::vector<tile::Kernel>& codes, size_t last);

/// Whether the results are the same whatever the order of the updates: maxima, minima and sums of integers.
bool is_exact(const AtomicSums& sums, const ir::Program& program);

/// The code of the first launch with updates in place of its stores of partial results.
tile::Kernel with_updates(tile::Kernel code, const AtomicSums& sums, const ir::Program& program);

}  // namespace tc::gpu
