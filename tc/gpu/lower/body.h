#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tc/ir/combine.h"
#include "tc/ir/names.h"
#include "tc/poly/ranged.h"
#include "tc/poly/scop.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// Where the elements of a tensor are, at some place of a kernel: in the tensor itself, or in a buffer that holds a box
/// of it from `offset` on.
struct Place {
  std::string name;
  Halide::Type type;
  std::vector<poly::Ranged> offset;  ///< empty for the tensor itself
  std::vector<int64_t> extents;
  Halide::Expr slot = {};  ///< of a buffer that steps take turns in: its first subscript, in front of the tensor's
};

/// What a statement's instance needs to know of its surroundings.
struct BodyContext {
  const ir::Program* program = nullptr;
  std::function<const Place&(const std::string& tensor)> place;
  std::map<std::string, poly::Ranged> indices;  ///< the statement's, with the bounds of its domain
  /// What the instance reads of tensors of which it touches a single element, where that is known by another name.
  std::map<std::string, Halide::Expr> elements = {};
};

/// The subscripts of an element within its place.
std::vector<Halide::Expr> position_in(const Place& place, const std::vector<poly::Ranged>& subscripts);

/// One instance of a statement: its guard and the store. Index arithmetic is Int(32) where it is proved to fit. Choices
/// are the intrinsic if_then_else, which evaluates one branch: the other may read outside of its tensor (R6), or what
/// has not been written yet. Where both read within their tensors, it has a fourth argument, true.
tile::NodePtr statement_body(const poly::Statement& statement, const BodyContext& context);

/// Whether both branches of such a choice read within their tensors.
inline bool may_read_both(const Halide::Internal::Call* choice) { return choice->args.size() > 3; }

/// Says of a node that it carries out the context's instance of a statement. Without effect where the context does not
/// know all of the statement's indices.
tile::NodePtr carrying(const poly::Statement& statement, const BodyContext& context, const tile::NodePtr& node);

/// The value of one instance, before it is combined with what its element holds.
Halide::Expr statement_value(const poly::Statement& statement, const BodyContext& context);

/// The subscripts of the element that one instance writes, in its tensor's place.
std::vector<Halide::Expr> written_position(const poly::Statement& statement, const BodyContext& context);

/// A value over a statement's indices, at one instance.
Halide::Expr instance_value(const Halide::Expr& value, const BodyContext& context);

/// The names that are free in a kernel of a Program: neither the Program nor blocks and threads have them.
ir::Names kernel_names(const ir::Program& program);

tile::NodePtr make_node(auto spec, std::string comment = "") {
  return std::make_shared<const tile::Node>(tile::Node{std::move(spec), std::move(comment)});
}

/// The parts one after the other.
tile::NodePtr sequence(std::vector<tile::NodePtr> parts);

/// The body where the condition holds.
tile::NodePtr guarded(const Halide::Expr& condition, const tile::NodePtr& body);

}  // namespace tc::gpu
