#include "tc/gpu/lower/element_moves.h"

#include <algorithm>
#include <map>
#include <string>

#include "tc/gpu/lower/body.h"
#include "tc/support/check.h"
#include "tc/tile/build.h"

namespace tc::gpu {

using Halide::Expr;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kCopied = 4;  // bytes of the least asynchronous copy

/// The subscripts of the element `offset` behind those, along a dimension.
std::vector<Expr> behind(std::vector<Expr> subscripts, int dimension, int offset) {
  Expr& at = subscripts[static_cast<size_t>(dimension)];
  if (offset > 0) at = hi::Add::make(at, hi::make_const(at.type(), offset));
  return subscripts;
}

}  // namespace

NodePtr by_elements(const tile::Move& move, int64_t element_bytes) {
  std::vector<NodePtr> parts;
  for (int i = 0; i < move.elements; ++i) {
    tile::Move one = move;
    one.elements = 1;
    one.asynchronous = move.asynchronous && element_bytes >= kCopied;
    if (!one.asynchronous) one.guard = {};
    one.destination_subscripts = behind(move.destination_subscripts, move.destination_dimension, i);
    one.source_subscripts = behind(move.source_subscripts, move.source_dimension, i);
    parts.push_back(make_node(std::move(one)));
  }
  return sequence(std::move(parts));
}

namespace {

class Rewriter {
 public:
  explicit Rewriter(std::map<std::string, Halide::Type> types) : types_(std::move(types)) {}

  NodePtr rewritten(const NodePtr& node) const {
    if (!node) return node;
    return tile::match(
        *node, [&](const tile::Move& move) { return rewritten(node, move); },
        [&](const tile::If& branch) {
          // Only an asynchronous copy can have a predicate.
          tile::If changed{branch.condition, rewritten(branch.then_case), rewritten(branch.else_case)};
          changed.predicated = branch.predicated && tile::asynchronous_copy(*changed.then_case);
          return tile::build::with_comment(node->comment, make_node(std::move(changed)));
        },
        [&](const tile::OneOf<tile::Sequence, tile::For, tile::Let, tile::Allocate, tile::Ring> auto&) {
          return tile::map_children(node, [&](const NodePtr& child) { return rewritten(child); });
        },
        [&](const tile::Synchronisation auto&) { return node; },
        [&](const tile::OneOf<tile::Store, tile::Atomic, tile::Shuffle, tile::MatMul, tile::MatrixLoad,
                              tile::MatrixStore, tile::BoxCopy, tile::BoxStore, tile::ClusterLoad,
                              tile::WarpgroupMatMul> auto&) { return node; });
  }

 private:
  NodePtr rewritten(const NodePtr& node, const tile::Move& move) const {
    auto tensor = types_.find(move.source);
    if (tensor == types_.end()) tensor = types_.find(move.destination);
    if (move.elements == 1 || tensor == types_.end()) return node;
    return tile::build::with_comment(node->comment, guarded(move, tensor->second));
  }

  /// A copy that is not asynchronous any more has a branch for its guard.
  static NodePtr guarded(const tile::Move& move, Halide::Type type) {
    const NodePtr elements = by_elements(move, tile::element_bytes(type));
    if (!move.guard.defined() || tile::element_bytes(type) >= kCopied) return elements;
    std::vector<NodePtr> zeros;
    for (int i = 0; i < move.elements; ++i) {
      zeros.push_back(make_node(tile::Store{
          move.destination, behind(move.destination_subscripts, move.destination_dimension, i), hi::make_zero(type)}));
    }
    return make_node(tile::If{move.guard, elements, sequence(std::move(zeros))});
  }

  std::map<std::string, Halide::Type> types_;  ///< of tensors at any address
};

}  // namespace

tile::Program element_moves(tile::Program program, const std::set<std::string>& tensors) {
  if (tensors.empty()) return program;
  for (tile::Kernel& kernel : program.kernels) {
    std::map<std::string, Halide::Type> types;
    for (const tile::Tensor& tensor : kernel.tensors) {
      if (tensors.count(tensor.name) > 0) types[tensor.name] = tensor.type;
    }
    for (const tile::TensorMap& map : kernel.maps) {
      TC_CHECK(types.count(map.tensor) == 0, "boxes of '{}', which may begin at any address", map.tensor);
    }
    kernel.body = Rewriter(std::move(types)).rewritten(kernel.body);
  }
  return program;
}

}  // namespace tc::gpu
