#include "tc/gpu/lower/unroll.h"

#include <algorithm>

#include "tc/gpu/lower/body.h"

namespace tc::gpu {
namespace {

using tile::NodePtr;

class Unroller {
 public:
  explicit Unroller(int64_t most) : most_(most) {}

  struct Result {
    NodePtr node;
    int64_t copies = 1;     ///< of a statement, at most
    bool has_loop = false;  ///< that stays one
  };

  Result run(const NodePtr& node) const {
    if (!node) return {node};
    Result all;
    all.node = tile::map_children(node, [&](const NodePtr& child) {
      const Result one = run(child);
      all.copies = std::max(all.copies, one.copies);
      all.has_loop = all.has_loop || one.has_loop;
      return one.node;
    });
    tile::match(
        *all.node, [&](const tile::For& loop) { decide(loop, all); },
        [](const tile::OneOf<tile::Sequence, tile::If, tile::Let, tile::Allocate, tile::Ring> auto&) {},
        [](const tile::Synchronisation auto&) {}, [](const tile::Spec auto&) {});
    return all;
  }

 private:
  void decide(tile::For loop, Result& result) const {
    const int64_t trips = std::max<int64_t>(tile::constant_trips(loop).value_or(most_ + 1), 1);
    const bool fits = !result.has_loop && trips <= most_ / result.copies;
    if (!fits && !loop.unrolled) {
      result.has_loop = true;
      return;
    }
    loop.unrolled = true;
    result.copies *= trips;
    result.node = make_node(std::move(loop), result.node->comment);
  }

  int64_t most_;
};

}  // namespace

NodePtr unroll_loops(const NodePtr& body, int64_t most) { return Unroller(most).run(body).node; }

}  // namespace tc::gpu
