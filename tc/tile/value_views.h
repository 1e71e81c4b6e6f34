#pragma once

#include <isl/cpp.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tc/tile/affine.h"
#include "tc/tile/digits.h"
#include "tc/tile/last_writes.h"
#include "tc/tile/steps.h"
#include "tc/tile/values.h"

namespace tc::tile {

/// The values of a kernel as isl sees them: maps from the instances of each. All take variables apart into the same
/// digits.
class ValueViews {
 public:
  /// `values` are all of the kernel; they, the kernel and the flow outlive the views.
  ValueViews(const Kernel& kernel, const Flow& flow, isl::ctx ctx, const std::vector<Value>& values);

  const AffineView& view(const Value& value);
  /// { instance -> expressions }. None if one is not affine.
  std::optional<isl::map> map_of(const Value& value, const Exprs& exprs);
  /// The instances in which a place is read. None if that is not affine.
  std::optional<isl::set> reading(const Value& value, const Place& place);
  /// { instance -> [owner, iterations of some loops, turn, subscripts] }, digit by digit: the owner is the block, and
  /// of registers the thread. None if it is not affine.
  std::optional<isl::map> key_of(const Value& value, const Place& place, const std::vector<EnclosingLoop>& loops);
  /// How many of these coordinates are the subscripts'.
  unsigned subscript_digits(const Tensor& tensor) const;
  /// The key, and the time: per loop around the leaf where it begins in the text and its iteration, then the leaf.
  std::optional<Touches> touches_of(const Value& value, const Place& place, const std::vector<EnclosingLoop>& loops);

 private:
  struct Viewed;
  const Viewed& viewed(const Value& value);
  void cut_subscripts(const Value& value, const Place& place);
  void add_digits(Exprs& key, const Halide::Expr& e, const std::string& variable, int64_t extent) const;
  void add_iteration(Exprs& key, const For& loop) const;
  std::optional<isl::map> find_key(const Value& value, const Place& place, const std::vector<EnclosingLoop>& loops);
  std::optional<isl::map> time_of(const Value& value);
  int first_leaf_of(int loop) const;

  const Kernel& kernel_;
  Kernel alone_;
  const Flow& flow_;
  isl::ctx ctx_;
  size_t depth_ = 0;  ///< of loops
  Cuts cuts_;
  std::map<const Value*, std::shared_ptr<const Viewed>> viewed_;
  std::map<const Place*, std::optional<isl::map>> keys_;
};

}  // namespace tc::tile
