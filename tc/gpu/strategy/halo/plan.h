#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/mapping/fused_group.h"
#include "tc/poly/ranged.h"

namespace tc::gpu {

/// Where the values of an index are, for one tile of the results: from `low` before or behind `factor` times the tile's
/// first value along a member, to `high` behind `factor` times its last.
struct Reach {
  int member = 0;
  int64_t low = 0, high = 0;
  int64_t factor = 1;
  bool operator==(const Reach&) const = default;
};

/// How many values there are for so many values of the member.
inline int64_t extent_of(const Reach& reach, int64_t tile) {
  return reach.factor * (tile - 1) + 1 + reach.high - reach.low;
}
/// The first of them, for the first value of the member.
inline poly::Ranged first_of(const Reach& reach, const poly::Ranged& first) {
  return first * poly::ranged(reach.factor) + poly::ranged(reach.low);
}

/// A statement that runs for all of a tile, and for as much around it as the later stages read; or a copy of an input.
struct HaloStage {
  GroupStatement statement;       ///< of a copy: none
  Halide::Expr value = {};        ///< of the statement, without guards that copies stand for; undefined: its own
  std::string copied;             ///< the input; empty: it is a statement
  Halide::Expr outside = {};      ///< of a copy: what stands in the place of elements outside of `domain`, if anything
  bool starts = false;            ///< it does its initialisation too
  std::vector<int> indices;       ///< of the statement, per dimension of what it writes
  std::vector<int> reductions;    ///< the others
  std::vector<ir::Range> domain;  ///< per dimension of what it writes
  std::vector<Reach> reach;       ///< the same

  /// What it writes, or copies.
  const std::string& tensor() const { return copied.empty() ? statement.statement->tensor : copied; }
};

inline constexpr int64_t kMostReductions = 64;  ///< instances for an element of a stage

/// Each thread has tensors between stages to itself, in registers, for a strip of the results. Threads of a block are
/// neighbours along the last member.
struct Strip {
  int member = 0;      ///< that a strip goes along; of one along the last, the member before
  int64_t along = 1;   ///< threads along the last member
  int64_t beside = 1;  ///< threads along the strip's, unless that is the last
};

/// A block computes a tile of the results, stage after stage. Tensors between them are in shared memory, and so may be
/// inputs that are read at several elements near each other. Or a thread does that with a strip of the results.
struct HaloPlan {
  std::vector<ir::Range> members;  ///< the results' indices
  std::vector<int64_t> tile;       ///< along each, a block's or a thread's strip
  int64_t threads = 256;           ///< of a block
  std::optional<Strip> strip;      ///< there are strips
  std::vector<HaloStage> stages;
  bool has_temporaries = false;  ///< that are read at several elements
  bool is_filled = false;        ///< copies stand for guards of what is read
  bool is_fixed = true;          ///< indices of reductions alone decide how far from its own element a stage reads
  std::map<std::string, std::vector<Reach>> locals;  ///< tensors kept on the chip, per dimension

  bool has_copies() const { return !stages.empty() && !stages.front().copied.empty(); }
  /// A block's results along a member.
  int64_t of_block(size_t m) const {
    if (!strip) return tile[m];
    return tile[m] * (m + 1 == members.size()                   ? strip->along
                      : m == static_cast<size_t>(strip->member) ? strip->beside
                                                                : 1);
  }
  int64_t extent(const Reach& reach) const { return extent_of(reach, tile[static_cast<size_t>(reach.member)]); }
};

/// Words of 32 bits that a thread with a strip keeps of the plan's tensors.
int64_t words_of_thread(const HaloPlan& plan, const ir::Program& program);

/// Plans for the statements of a scop's schedule in one launch, with and without copies: with tiles of several sizes,
/// and with strips of several lengths where registers hold what a thread needs. A copy of a strip may have the value
/// that guards choose outside of an input, as in i > 0 ? X(i - 1) : 0, so that no read has a guard. Empty unless
///  - a temporary, which nobody else reads, or an input is read at several elements near the one that is written;
///  - each statement writes one element for each value of its map indices, and reductions are short;
///  - nothing in memory is both read and written, but for an element that a statement writes itself.
/// Tiles are for temporaries alone. An element at a tile's edge is computed by each block that reads it.
std::vector<HaloPlan> plan_halo(const poly::Scop& scop, const std::vector<std::string>& statements,
                                const Device& device);

}  // namespace tc::gpu
