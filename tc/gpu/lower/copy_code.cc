#include "tc/gpu/lower/copy_code.h"

#include "tc/gpu/lower/emit.h"
#include "tc/support/round.h"

namespace tc::gpu {

using Halide::Expr;
using poly::Ranged;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kFewRounds = 4;
constexpr int64_t kAsynchronousBytes = 4;  ///< the least that one instruction copies by itself (PTX ISA, cp.async)

/// The number of a thread in its block.
Ranged thread_in_block(const std::array<int64_t, 3>& block) {
  Ranged result = poly::ranged(0);
  for (int axis = 2; axis >= 0; --axis) {
    result = result * poly::ranged(block[static_cast<size_t>(axis)]);
    result = result + thread_number(axis, block[static_cast<size_t>(axis)]);
  }
  return result;
}

/// Where in a buffer's box the vector with a number begins.
std::vector<Ranged> corner_of(Ranged number, const std::vector<int64_t>& extents, int64_t vector) {
  std::vector<Ranged> corner(extents.size(), poly::ranged(0));
  for (size_t d = extents.size(); d-- > 0;) {
    const bool last = d + 1 == extents.size();
    const int64_t count = last ? extents[d] / vector : extents[d];
    corner[d] = (d == 0 ? number : poly::floor_mod(number, count)) * poly::ranged(last ? vector : 1);
    number = poly::floor_div(number, count);
  }
  return corner;
}

class Copier {
 public:
  Copier(const Copy& copy, const Place& buffer, const Place& outer) : copy_(copy), buffer_(buffer), outer_(outer) {}

  /// One vector, if it lies within the tensor.
  NodePtr one(const Ranged& number) const {
    const std::vector<Ranged> corner = corner_of(number, buffer_.extents, copy_.vector);
    std::vector<Expr> within;
    if (buffer_.slot.defined()) within.push_back(buffer_.slot);
    std::vector<Ranged> global;
    Expr inside = hi::const_true();
    for (size_t d = 0; d < corner.size(); ++d) {
      within.push_back(corner[d].expr);
      global.push_back(buffer_.offset[d] + corner[d]);
      if (!copy_.guarded[d]) continue;
      inside = both(inside, poly::less_equal(poly::ranged(0), global[d]));
      inside = both(inside, poly::less(global[d], poly::ranged(outer_.extents[d])));
    }
    const std::vector<Expr> around = position_in(outer_, global);
    return guarded(inside, copy_.out ? moved(outer_, around, buffer_, within) : moved(buffer_, within, outer_, around));
  }

  static Expr both(const Expr& a, const Expr& b) {
    if (hi::is_const_one(a)) return b;
    return hi::is_const_one(b) ? a : a && b;
  }

 private:
  NodePtr moved(const Place& to, const std::vector<Expr>& to_at, const Place& from,
                const std::vector<Expr>& from_at) const {
    const bool asynchronous = copy_.stages > 1 && outer_.offset.empty() &&
                              tile::element_bytes(buffer_.type) * copy_.vector >= kAsynchronousBytes;
    if (copy_.vector == 1 && !asynchronous) {
      return make_node(
          tile::Store{to.name, to_at, hi::Call::make(from.type, from.name, from_at, hi::Call::PureExtern)});
    }
    tile::Move move;
    move.destination = to.name;
    move.destination_subscripts = to_at;
    move.destination_dimension = static_cast<int>(to_at.size()) - 1;
    move.source = from.name;
    move.source_subscripts = from_at;
    move.source_dimension = static_cast<int>(from_at.size()) - 1;
    move.elements = static_cast<int>(copy_.vector);
    move.asynchronous = asynchronous;
    return make_node(std::move(move));
  }

  const Copy& copy_;
  const Place& buffer_;
  const Place& outer_;
};

}  // namespace

NodePtr cooperative_copy(const Copy& copy, const Place& buffer, const Place& outer, const Kernel& kernel,
                         const std::function<std::string(const std::string&)>& name) {
  int64_t vectors = 1;
  for (const int64_t extent : buffer.extents) vectors *= extent;
  vectors /= copy.vector;
  const int64_t threads = copy.by_one ? 1 : kernel.block[0] * kernel.block[1] * kernel.block[2];
  const int64_t rounds = ceil_div(vectors, threads);
  const Copier copier(copy, buffer, outer);
  const Ranged thread = copy.by_one ? poly::ranged(0) : thread_in_block(kernel.block);
  const Expr mine = copy.by_one ? poly::equal(thread_in_block(kernel.block), poly::ranged(0)) : hi::const_true();
  const auto round = [&](const Ranged& number) {
    const Ranged bounded = poly::ranged(number.expr, number.min, std::min(number.max, vectors - 1));
    const Expr some = poly::less(number, poly::ranged(vectors));
    if (bounded.is_constant()) return guarded(some, copier.one(bounded));
    const std::string named = name(outer.name + "_at");
    const Ranged at = poly::ranged(hi::Variable::make(bounded.expr.type(), named), bounded.min, bounded.max);
    return make_node(tile::Let{named, number.expr, guarded(some, copier.one(at))});
  };
  if (rounds == 1) return guarded(mine, round(thread));
  const std::string variable = name("round");
  const Ranged counter = poly::ranged(hi::Variable::make(Halide::Int(32), variable), 0, rounds - 1);
  const bool unrolled = rounds <= kFewRounds || kernel.unroll_copies;
  return guarded(mine, make_node(tile::For{variable, index(0), index(rounds), index(1), unrolled,
                                           round(counter * poly::ranged(threads) + thread)}));
}

}  // namespace tc::gpu
