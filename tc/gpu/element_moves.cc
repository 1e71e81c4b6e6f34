#include "tc/gpu/element_moves.h"

#include <algorithm>
#include <map>
#include <string>

#include "tc/gpu/body.h"

namespace tc::gpu {

using Halide::Expr;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

/// The subscripts of the element `offset` behind those, along a dimension.
std::vector<Expr> behind(std::vector<Expr> subscripts, int dimension, int offset) {
  Expr& at = subscripts[static_cast<size_t>(dimension)];
  if (offset > 0) at = hi::Add::make(at, hi::make_const(at.type(), offset));
  return subscripts;
}

}  // namespace

NodePtr by_elements(const tile::Move& move, int64_t element_bytes) {
  constexpr int64_t kCopied = 4;  // bytes of the least asynchronous copy
  std::vector<NodePtr> parts;
  for (int i = 0; i < move.elements; ++i) {
    tile::Move one = move;
    one.elements = 1;
    one.asynchronous = move.asynchronous && element_bytes >= kCopied;
    one.destination_subscripts = behind(move.destination_subscripts, move.destination_dimension, i);
    one.source_subscripts = behind(move.source_subscripts, move.source_dimension, i);
    parts.push_back(make_node(std::move(one)));
  }
  return sequence(std::move(parts));
}

namespace {

class Rewriter {
 public:
  explicit Rewriter(std::map<std::string, int64_t> element_bytes) : element_bytes_(std::move(element_bytes)) {}

  NodePtr rewritten(const NodePtr& node) const {
    if (!node) return node;
    if (const auto* move = std::get_if<tile::Move>(&node->node)) {
      auto tensor = element_bytes_.find(move->source);
      if (tensor == element_bytes_.end()) tensor = element_bytes_.find(move->destination);
      if (move->elements == 1 || tensor == element_bytes_.end()) return node;
      return with_comment(by_elements(*move, tensor->second), *node);
    }
    tile::Node copy = *node;
    tile::change_children(copy, [&](NodePtr& child) { child = rewritten(child); });
    return std::make_shared<const tile::Node>(std::move(copy));
  }

 private:
  static NodePtr with_comment(const NodePtr& node, const tile::Node& from) {
    tile::Node copy = *node;
    copy.comment = from.comment;
    return std::make_shared<const tile::Node>(std::move(copy));
  }

  std::map<std::string, int64_t> element_bytes_;
};

}  // namespace

tile::Program element_moves(tile::Program program) {
  for (tile::Kernel& kernel : program.kernels) {
    std::map<std::string, int64_t> callers;
    for (const tile::Tensor& tensor : kernel.tensors) callers[tensor.name] = tile::element_bytes(tensor.type);
    for (const tile::Tensor& own : program.workspace) callers.erase(own.name);
    kernel.body = Rewriter(std::move(callers)).rewritten(kernel.body);
  }
  return program;
}

}  // namespace tc::gpu
