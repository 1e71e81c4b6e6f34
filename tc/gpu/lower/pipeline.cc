#include "tc/gpu/lower/pipeline.h"

#include <string>

#include "tc/gpu/lower/body.h"
#include "tc/tile/build.h"

namespace tc::gpu {

using Halide::Expr;
using tile::NodePtr;
namespace hi = Halide::Internal;
namespace build = tile::build;

namespace {

NodePtr substitute(const std::string& variable, const Expr& value, const NodePtr& node) {
  if (!node) return node;
  const NodePtr made =
      tile::map_exprs(node, [&](const Expr& e) { return hi::simplify(hi::substitute(variable, value, e)); });
  return tile::map_children(made, [&](const NodePtr& child) { return substitute(variable, value, child); });
}

}  // namespace

NodePtr pipelined(const Steps& steps, bool again) {
  const tile::For& loop = steps.loop;
  const NodePtr copies = sequence(steps.copies);
  const auto ahead_of = [&](const Expr& value, int64_t ahead) {
    return hi::simplify(value + loop.step * hi::make_const(loop.step.type(), ahead));
  };
  const auto fetch = [&](const Expr& at) {
    return guarded(hi::simplify(at < loop.end), substitute(loop.variable, at, copies));
  };
  std::vector<NodePtr> parts, body;
  if (again) parts.push_back(build::barrier());
  for (int64_t s = 0; s + 1 < steps.stages; ++s) {
    parts.push_back(fetch(ahead_of(loop.begin, s)));
    parts.push_back(build::commit_group());
  }
  body = {build::wait_group(static_cast<int>(steps.stages) - 2), build::barrier(),
          fetch(ahead_of(hi::Variable::make(loop.begin.type(), loop.variable), steps.stages - 1)),
          build::commit_group(), loop.body};
  tile::For counted = loop;
  counted.body = sequence(std::move(body));
  parts.push_back(make_node(std::move(counted)));
  NodePtr whole = sequence(std::move(parts));
  for (size_t i = steps.buffers.size(); i-- > 0;) whole = make_node(tile::Allocate{steps.buffers[i], whole});
  return whole;
}

}  // namespace tc::gpu
