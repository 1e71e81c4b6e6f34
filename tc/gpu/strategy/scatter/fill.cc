#include "tc/gpu/strategy/scatter/fill.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/rewrite/statements.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// A number over the blocks of a grid or the threads of a block, the first dimension innermost.
Expr number_of(const std::array<const char*, 3>& names, const std::array<int64_t, 3>& extents) {
  Expr number = 0;
  int64_t below = 1;
  for (size_t d = 0; d < names.size(); ++d) {
    if (extents[d] > 1) {
      number = number + hi::Variable::make(Halide::Int(32), names[d]) * static_cast<int32_t>(below);
    }
    below *= extents[d];
  }
  return hi::simplify(number);
}

int64_t size_of(const std::array<int64_t, 3>& extents) { return extents[0] * extents[1] * extents[2]; }

/// Its indices, one for each subscript, if the statement initialises a box of elements.
std::optional<std::vector<ir::Index>> box_of(const ir::Statement& statement) {
  if (statement.guard.defined()) return std::nullopt;
  std::vector<ir::Index> box;
  std::set<std::string> used;
  for (const Expr& subscript : statement.subscripts) {
    const auto* variable = subscript.as<hi::Variable>();
    const auto index = std::find_if(statement.indices.begin(), statement.indices.end(), [&](const ir::Index& i) {
      return variable != nullptr && i.name == variable->name && !i.is_reduction;
    });
    if (index == statement.indices.end() || !used.insert(index->name).second) return std::nullopt;
    box.push_back(*index);
  }
  const bool all = std::all_of(statement.indices.begin(), statement.indices.end(),
                               [&](const ir::Index& i) { return i.is_reduction || used.count(i.name) > 0; });
  return all ? std::optional(box) : std::nullopt;
}

tile::NodePtr fill(const std::string& tensor, const std::vector<ir::Index>& box, const Expr& value,
                   const Expr& thread) {
  std::vector<Expr> subscripts(box.size());
  Expr rest = thread;
  int64_t size = 1;
  for (size_t d = box.size(); d-- > 0;) {
    const auto extent = static_cast<int32_t>(extent_of(box[d]));
    const Expr at = d > 0 ? rest % extent : rest;
    subscripts[d] = hi::simplify(at + static_cast<int32_t>(begin_of(box[d])));
    rest = rest / extent;
    size *= extent;
  }
  return make_node(
      tile::If{thread < static_cast<int32_t>(size), make_node(tile::Store{tensor, subscripts, value}), {}});
}

}  // namespace

std::optional<tile::Kernel> with_fills(tile::Kernel code, const std::vector<std::string>& statements,
                                       const poly::Scop& scop) {
  const int64_t threads = size_of(code.block), all = size_of(code.grid) * threads;
  if (all > std::numeric_limits<int32_t>::max()) return std::nullopt;
  const Expr thread = hi::simplify(number_of(tile::kBlock, code.grid) * static_cast<int32_t>(threads) +
                                   number_of(tile::kThread, code.block));
  std::vector<tile::NodePtr> nodes;
  for (const std::string& id : statements) {
    const poly::Statement& init = scop.statement(id);
    const auto& known = scop.program->statements;
    const auto statement =
        std::find_if(known.begin(), known.end(), [&](const ir::Statement& s) { return s.id + "_init" == id; });
    if (init.kind != poly::Statement::Kind::kInit || statement == known.end()) return std::nullopt;
    const std::optional<std::vector<ir::Index>> box = box_of(*statement);
    if (!box || scop.program->tensor(init.tensor).type != init.accumulator) return std::nullopt;
    int64_t size = 1;
    for (const ir::Index& index : *box) size *= std::min(extent_of(index), all + 1);
    if (size > all || size < 1) return std::nullopt;
    nodes.push_back(fill(init.tensor, *box, init.value, thread));
  }
  nodes.push_back(code.body);
  code.body = make_node(tile::Sequence{std::move(nodes)});
  const std::vector<tile::Tensor> before = std::exchange(code.tensors, {});
  code.scalars.clear();
  declare_tensors(code, *scop.program);
  for (tile::Tensor& tensor : code.tensors) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const auto& t) { return t.name == tensor.name; });
    if (same != before.end()) tensor.layout = same->layout;
  }
  return code;
}

}  // namespace tc::gpu
