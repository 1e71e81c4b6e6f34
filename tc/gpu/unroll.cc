#include "tc/gpu/unroll.h"

#include <algorithm>

#include "tc/gpu/body.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
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
    return std::visit([&](const auto& spec) { return visit(spec, node); }, node->node);
  }

 private:
  template <typename Spec>
  Result visit(const Spec&, const NodePtr& node) const {
    return {node};
  }
  Result visit(const tile::Sequence& s, const NodePtr& node) const {
    Result all;
    tile::Sequence copy;
    for (const NodePtr& child : s.children) {
      const Result one = run(child);
      copy.children.push_back(one.node);
      all.copies = std::max(all.copies, one.copies);
      all.has_loop = all.has_loop || one.has_loop;
    }
    return with(all, std::move(copy), node);
  }
  Result visit(const tile::If& s, const NodePtr& node) const {
    const Result a = run(s.then_case), b = run(s.else_case);
    return with({nullptr, std::max(a.copies, b.copies), a.has_loop || b.has_loop},
                tile::If{s.condition, a.node, b.node}, node);
  }
  Result visit(const tile::Let& s, const NodePtr& node) const {
    const Result one = run(s.body);
    return with(one, tile::Let{s.name, s.value, one.node}, node);
  }
  Result visit(const tile::Allocate& s, const NodePtr& node) const {
    const Result one = run(s.body);
    return with(one, tile::Allocate{s.tensor, one.node}, node);
  }
  Result visit(const tile::For& s, const NodePtr& node) const {
    Result one = run(s.body);
    tile::For copy = s;
    copy.body = one.node;
    const auto length = hi::simplify(s.end - s.begin);
    const int64_t *extent = hi::as_const_int(length), *step = hi::as_const_int(s.step);
    const int64_t trips = extent && step ? std::max<int64_t>((*extent + *step - 1) / *step, 1) : most_ + 1;
    const bool fits = !one.has_loop && trips <= most_ / one.copies;
    if (fits || s.unrolled) {
      copy.unrolled = true;
      one.copies *= trips;
    } else {
      one.has_loop = true;
    }
    return with(one, std::move(copy), node);
  }

  static Result with(Result result, auto spec, const NodePtr& node) {
    result.node = make_node(std::move(spec), node->comment);
    return result;
  }

  int64_t most_;
};

}  // namespace

NodePtr unroll_loops(const NodePtr& body, int64_t most) { return Unroller(most).run(body).node; }

}  // namespace tc::gpu
