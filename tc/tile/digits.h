#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/tile/affine.h"

namespace tc::tile {

/// A leaf in which blocks, threads and loops are taken apart into loops over digits, so that quotients and remainders
/// of them are sums of digits:
///     lane = thread_x % 32, lane / 4     ==>   for d0 in 0:4, for d1 in 0:8, for d2 in 0:4
///                                              lane = d0 + 4 * d1, lane / 4 = d1
/// isl then has sums where it would have quotients, which it is slow with.
struct DigitLeaf {
  const Leaf* leaf;
  Path path;                                      ///< loops over digits, then the leaf's own; no lets
  int own = 0;                                    ///< how many of its loops are of blocks and threads
  std::vector<ElementAccess> accesses;            ///< the leaf's, over the path's variables
  std::vector<std::vector<Halide::Expr>> points;  ///< those of the leaf's instances
  std::vector<Halide::Expr> owner;                ///< block and thread, three coordinates each
  std::vector<Halide::Expr> iterations;           ///< of the leaf's loops
  std::vector<std::shared_ptr<For>> loops;        ///< owns those of the path
};

/// For each variable, at which of its multiples quotients and remainders cut it.
using Cuts = std::map<std::string, std::set<int64_t>>;

/// Values at a place of a kernel, over digits.
struct DigitValues {
  Path path;  ///< loops over digits; no lets
  std::vector<std::vector<Halide::Expr>> values;
  std::vector<std::shared_ptr<For>> loops;  ///< owns those of the path
};

/// { instance -> values }. None if one is not affine.
std::optional<isl::map> values_at(const AffineView& view, const std::vector<Halide::Expr>& values);

/// Specs that carry out instances of one statement in the same loops and under the same conditions.
struct Doer {
  Leaf leaf;  ///< of `node`, with loops for what the specs have besides
  std::vector<std::shared_ptr<For>> loops;
  std::shared_ptr<const Node> node;
  Memory memory = Memory::kGlobal;  ///< of what they write
  std::vector<int64_t> zero_below;  ///< as of Instances
};

/// Those of a statement. What differs between neighbours by constants alone is one of them: a loop over each digit of
/// the constants. A box of instances is a loop, too.
///     (m, k..k+16), (m + 8, k..k+16)   ==>   for p in 0:2, for r in 0:16: (m + 8 * p, k + r)
std::vector<Doer> doers_of(const Flow& flow, const std::string& statement);

/// The leaf of a kernel; `alone` is a kernel of one thread, for AffineView.
DigitLeaf in_digits(const Kernel& kernel, const Leaf& leaf);

/// Where values at a path cut their variables, and its conditions do.
void add_cuts(const Path& path, const std::vector<std::vector<Halide::Expr>>& values, Cuts& cuts);
/// The strides of the digits of a variable with the values [0, extent): as many of the cuts as divide each other.
std::vector<int64_t> digit_strides(const Cuts& cuts, const std::string& variable, int64_t extent);
/// Values at a path, with variables cut in these places alone.
DigitValues in_digits(const Kernel& kernel, const Path& path, const std::vector<std::vector<Halide::Expr>>& values,
                      const Cuts& cuts);
/// What the digits in a sum of them are multiplied by. Empty for other expressions.
std::vector<int64_t> coefficients_of(const Halide::Expr& sum);
/// An expression without the lets of a path.
Halide::Expr without_lets(const Path& path, Halide::Expr e);

/// A kernel of one thread with the tensors of another.
Kernel alone(const Kernel& kernel);

}  // namespace tc::tile
