#include "tc/cpu/tile_copy.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "tc/ir/halide_compat.h"
#include "tc/support/check.h"

namespace tc::cpu {

using Halide::Expr;
using Halide::Internal::ForType;
using Halide::Internal::Stmt;
namespace hi = Halide::Internal;

namespace {

/// The part of one dimension that is copied: positions in the buffer.
struct Span {
  Ranged begin;
  Ranged end;
};

Ranged first_inside(const Place& place, size_t d) { return place.offset.empty() ? ranged(0) : place.offset[d]; }

Span span_of(const Place& buffer, const Place& tensor, size_t d, const LoopFacts& facts) {
  const Ranged low = first_inside(tensor, d);
  const Ranged extent = ranged(buffer.extents[d]);
  Ranged begin = low - buffer.offset[d];
  Ranged end = low + ranged(tensor.extents[d]) - buffer.offset[d];
  begin = facts.imply(less_equal(begin, ranged(0))) ? ranged(0) : max(begin, ranged(0));
  end = facts.imply(less_equal(extent, end)) ? extent : min(end, extent);
  return {begin, facts.imply(less_equal(begin, end)) ? end : max(begin, end)};
}

/// Copies between a buffer and a tensor, dimension by dimension.
class Copy {
 public:
  Copy(const Place& tensor, const Place& buffer, CopyDirection direction, const CopyOptions& options,
       const LoopFacts& facts)
      : tensor_(tensor), buffer_(buffer), direction_(direction), options_(options), positions_(buffer.extents.size()) {
    for (size_t d = 0; d < buffer.extents.size(); ++d) {
      const bool full = options.form == CopyForm::kFull;
      spans_.push_back(full ? Span{ranged(0), ranged(buffer.extents[d])} : span_of(buffer, tensor, d, facts));
      order_.push_back(d);
    }
    // Outermost the dimension that is farthest apart in the tensor: it is read, or written, in long runs.
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return tensor.strides[a] > tensor.strides[b]; });
  }

  Stmt run() { return loop(0); }

 private:
  /// The loops over order_[level] and those inside of it.
  Stmt loop(size_t level) {
    if (level == order_.size()) return element(hi::const_true());
    size_t d = order_[level];
    bool innermost = level + 1 == order_.size();
    int64_t lanes = lanes_along(d);
    bool vector = innermost && lanes > 1 && contiguous(d);
    if (options_.form == CopyForm::kGuarded) return guarded(level, vector ? lanes : 1);
    Ranged count = spans_[d].end - spans_[d].begin;
    if (!vector) return counted(level, spans_[d].begin, count);
    Ranged vectors = floor_div(count, lanes);
    std::vector<Stmt> parts;
    if (vectors.max > 0)
      parts.push_back(vector_loop(level, spans_[d].begin, vectors, lanes, [] { return hi::const_true(); }));
    Ranged rest = count.is_constant() ? ranged(count.min % lanes) : floor_mod(count, lanes);
    if (rest.max > 0) parts.push_back(counted(level, spans_[d].begin + vectors * ranged(lanes), rest));
    return parts.empty() ? hi::Evaluate::make(0) : hi::Block::make(parts);
  }

  /// All of the buffer's extent in vectors, or one by one, each copied where it is inside.
  Stmt guarded(size_t level, int64_t lanes) {
    size_t d = order_[level];
    int64_t extent = buffer_.extents[d];
    auto inside = [this, d] {
      return less_equal(spans_[d].begin, positions_[d]) && less(positions_[d], spans_[d].end);
    };
    std::vector<Stmt> parts;
    if (lanes > 1) parts.push_back(vector_loop(level, ranged(0), ranged(extent / lanes), lanes, inside));
    int64_t rest = lanes > 1 ? extent % lanes : extent;
    if (rest > 0) {
      std::string name = buffer_.name + "_c" + std::to_string(d);
      positions_[d] = ranged(extent - rest) + ranged(hi::Variable::make(Halide::Int(32), name), 0, rest - 1);
      Stmt body = loop(level + 1);
      Expr condition = hi::simplify(inside());
      if (!hi::is_const_one(condition)) body = hi::IfThenElse::make(condition, body);
      parts.push_back(make_loop(name, ranged(rest), body));
    }
    return hi::Block::make(parts);
  }

  /// Lanes of small elements are a power of two: LLVM 14 fails at vectors of 3 bytes, of which elements are read again.
  int64_t lanes_along(size_t d) const {
    const int64_t lanes = std::min<int64_t>(options_.vector_lanes, buffer_.extents[d]);
    if (buffer_.type.bytes() >= 4 || lanes < 1) return lanes;
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(lanes)));
  }

  /// True if neighbours in the dimension are neighbours in both places.
  bool contiguous(size_t d) const {
    if (tensor_.strides[d] != 1 || (!tensor_.tile.empty() && tensor_.tile[d] > 0)) return false;
    if (buffer_.tile.empty() || buffer_.tile[d] == 0) return buffer_.strides[d] == 1;
    bool aligned = buffer_.tile[d] % lanes_along(d) == 0;
    return buffer_.tile_strides[d] == 1 && aligned && spans_[d].begin.is_constant() && spans_[d].begin.min == 0;
  }

  Stmt vector_loop(size_t level, const Ranged& begin, const Ranged& vectors, int64_t lanes,
                   const std::function<Expr()>& predicate) {
    size_t d = order_[level];
    std::string block = buffer_.name + "_v" + std::to_string(d);
    std::string lane = buffer_.name + "_l" + std::to_string(d);
    Ranged outer = ranged(hi::Variable::make(Halide::Int(32), block), 0, std::max<int64_t>(vectors.max - 1, 0));
    Ranged inner = ranged(hi::Variable::make(Halide::Int(32), lane), 0, lanes - 1);
    positions_[d] = begin + outer * ranged(lanes) + inner;
    Stmt body = ir::make_for(lane, 0, static_cast<int>(lanes), ForType::Vectorized, element(predicate()));
    return make_loop(block, vectors, body);
  }

  Stmt counted(size_t level, const Ranged& begin, const Ranged& count) {
    size_t d = order_[level];
    std::string name = buffer_.name + "_c" + std::to_string(d);
    Ranged variable = ranged(hi::Variable::make(Halide::Int(32), name), 0, std::max<int64_t>(count.max - 1, 0));
    positions_[d] = begin + variable;
    Stmt body = loop(level + 1);
    if (options_.parallel && level == 0 && order_.size() > 1) {
      return ir::make_for(name, 0, as_int32(count), ForType::Parallel, body);
    }
    return make_loop(name, count, body);
  }

  Stmt make_loop(const std::string& name, const Ranged& count, const Stmt& body) const {
    TC_CHECK(count.max <= INT32_MAX, "a tile of {} elements along one dimension", count.max);
    ForType type = options_.form == CopyForm::kLoops ? ForType::Serial : ForType::Unrolled;
    return ir::make_for(name, 0, as_int32(count), type, body);
  }

  Stmt element(const Expr& predicate) {
    std::vector<Ranged> subscripts;
    Place bare = buffer_;
    bare.offset.clear();
    for (size_t d = 0; d < positions_.size(); ++d) {
      // Loop bounds hold the subscript inside, which the intervals alone may not show.
      subscripts.push_back(positions_[d] + buffer_.offset[d]);
    }
    Expr outside = tensor_.address(subscripts);
    Expr inside = bare.address(positions_);
    if (direction_ == CopyDirection::kIn) return bare.store(inside, tensor_.load(outside, predicate));
    return tensor_.store(outside, bare.load(inside), predicate);
  }

  const Place& tensor_;
  const Place& buffer_;
  CopyDirection direction_;
  CopyOptions options_;
  std::vector<Span> spans_;
  std::vector<size_t> order_;
  std::vector<Ranged> positions_;
};

}  // namespace

Stmt copy_tile(const Place& tensor, const Place& buffer, CopyDirection direction, const CopyOptions& options,
               const LoopFacts& facts) {
  TC_CHECK(buffer.offset.size() == buffer.extents.size(), "the tile '{}' has no place in its tensor", buffer.name);
  return Copy(tensor, buffer, direction, options, facts).run();
}

std::vector<Expr> full_conditions(const Place& buffer, const Place& tensor) {
  std::vector<Expr> result;
  for (size_t d = 0; d < buffer.extents.size(); ++d) {
    Ranged low = first_inside(tensor, d);
    Expr begins = less_equal(low, buffer.offset[d]);
    Expr ends = less_equal(buffer.offset[d] + ranged(buffer.extents[d]), low + ranged(tensor.extents[d]));
    for (const Expr& condition : {begins, ends}) {
      if (!hi::is_const_one(condition)) result.push_back(condition);
    }
  }
  return result;
}

std::vector<Expr> allocation_extents(const Place& place) {
  // Two factors, each an int32: Halide multiplies extents in 64 bits.
  int64_t elements = std::max<int64_t>(place.span(), 1) + place.spare;
  constexpr int64_t kFactor = int64_t{1} << 20;
  if (elements <= INT32_MAX) return {static_cast<int>(elements)};
  return {static_cast<int>((elements + kFactor - 1) / kFactor), static_cast<int>(kFactor)};
}

}  // namespace tc::cpu
