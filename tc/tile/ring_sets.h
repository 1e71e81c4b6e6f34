#pragma once

#include <fmt/format.h>
#include <isl/cpp.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tc/tile/affine.h"
#include "tc/tile/program.h"

/// What the proof about a ring speaks of, as isl sets and maps.
namespace tc::tile {

/// What a proof lacks.
struct NotProved {
  std::string why;
};

template <typename... Args>
[[noreturn]] void give_up(fmt::format_string<Args...> format, Args&&... args) {
  throw NotProved{fmt::format(format, std::forward<Args>(args)...)};
}

inline void need(bool holds, const char* why) {
  if (!holds) give_up("{}", why);
}

/// The tensors that boxes of a ring fill.
std::set<std::string> filled_by(const Kernel& kernel, const Ring& ring);

/// The steps of a kernel's ring, and when they are done. Instances of statements are keys:
///     { [block coordinates, thread number, time] }
/// where time says, per loop around the statement, where the loop is in the text and which iteration it is, and then
/// where the statement is. The times of what a thread does are in lexicographic order. Throws NotProved where something
/// is not affine.
class RingSets {
 public:
  using Kind = RingStep::Kind;

  RingSets(const Kernel& kernel, const IslContext& context, const Ring& ring);

  const Ring& ring() const { return *ring_; }
  const Flow& flow() const { return flow_; }
  const std::vector<int>& box_leaves() const { return box_leaves_; }
  const std::vector<int>& product_leaves() const { return product_leaves_; }
  const std::vector<int>& wait_leaves() const { return wait_leaves_; }

  /// { key -> turn }
  const isl::map& step(Kind kind) const { return steps_.at(kind); }
  const isl::map& boxes() const { return boxes_; }
  /// { key -> key' }: a thread does the one before the other.
  const isl::map& before() const { return before_; }
  isl::map lexicographic() const;

  /// Of all instances that a leaf may have; of those that it has.
  const AffineView& widest_view(int leaf);
  const AffineView& view(int leaf);
  isl::pw_aff value(int leaf, const Halide::Expr& expr);
  /// { instance of a leaf -> key }
  const isl::map& keys(int leaf);
  const isl::map& widest_keys(int leaf);
  isl::set key_set(int leaf) { return keys(leaf).range(); }
  /// { key -> value of a leaf's instance }
  isl::map by_key(int leaf, const isl::pw_aff& value);

  int key_size() const;
  int block_count() const;  ///< dimensions of blocks
  isl::map empty_map(int from, int to) const;
  isl::set key_space() const;
  isl::map read(const std::string& text) const;
  isl::val number(int64_t value) const { return isl::val(context_.get(), static_cast<long>(value)); }

  /// Pairs of keys of the same block and thread; of the same block.
  isl::map in_thread(isl::map pairs) const;
  isl::map in_block(isl::map pairs) const;
  /// { key -> key' }: of two steps of a thread with the same turn.
  isl::map of_same_turn(const isl::map& first, const isl::map& second) const;
  /// { [block, thread] -> turn } of { key -> turn }
  isl::map by_thread(const isl::map& turns) const;
  /// { [block] -> turn } of { [block, thread] -> turn }
  isl::map by_block(const isl::map& by_thread) const;
  isl::map shifted(const isl::map& turns, int64_t by) const;

  static isl::map map_of(const isl::pw_aff& value);

 private:
  void collect();
  void add(isl::map& turns, int leaf, const Halide::Expr& turn);
  int place_of(int loop) const;

  const Kernel& kernel_;
  const IslContext& context_;
  Flow flow_;
  std::set<std::string> uniform_;  ///< lets: so may turns be
  const Ring* ring_;
  size_t depth_ = 0;  ///< of loops
  std::vector<std::unique_ptr<AffineView>> views_;
  std::vector<std::optional<isl::map>> keys_;
  std::map<Kind, isl::map> steps_;
  isl::map boxes_;
  std::vector<int> box_leaves_, product_leaves_, wait_leaves_;
  isl::map before_;
};

}  // namespace tc::tile
