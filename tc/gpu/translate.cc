#include "tc/gpu/translate.h"

#include <isl/aff.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "tc/gpu/body.h"
#include "tc/gpu/copy_code.h"
#include "tc/gpu/uses.h"
#include "tc/ir/specialise.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/loops.h"
#include "tc/support/check.h"

namespace tc::gpu {

using Halide::Expr;
using poly::Ranged;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

class Translator {
 public:
  Translator(const Kernel& kernel, std::string name);
  tile::Kernel run();

 private:
  NodePtr lower(const isl::ast_node& node);
  NodePtr lower_block(const isl::ast_node_block& node);
  NodePtr lower_if(const isl::ast_node_if& node);
  NodePtr lower_mark(const isl::ast_node_mark& node);
  NodePtr lower_user(const isl::ast_node_user& node);
  NodePtr lower_copy(const Copy& copy);
  NodePtr lower_for(const isl::ast_node_for& node);
  NodePtr lower_binding(const Binding& binding, const poly::MarkPlace& place, const isl::ast_node& child);
  NodePtr lower_promotion(const poly::Promotion& promotion, const poly::MarkPlace& mark, const isl::ast_node& child);
  NodePtr dealt_loop(const isl::ast_node_for& node, const Dealt& dealt, const Ranged& first, const Ranged& last,
                     int64_t step);
  NodePtr loop(const isl::ast_node_for& node, const Ranged& begin, const Ranged& last, int64_t step, int64_t first);
  NodePtr body_with(const isl::ast_node_for& node, const Ranged& value);

  Ranged number(const Dealt& dealt) const;
  std::vector<Ranged> tile_offset(const ThreadTile& tile, const poly::MarkPlace& mark) const;
  Expr whose_turn(const std::vector<isl::ast_expr>& prefix) const;
  std::optional<Dealt> take_dealt(const isl::ast_node_for& node);
  std::string loop_name(const isl::ast_node_for& node) const;
  std::string fresh(const std::string& wish);
  void name_loops(const poly::MarkPlace& place);
  bool is_unrolled(const isl::ast_node_for& node) const;
  NodePtr unrolled_loop(const isl::ast_node_for& node, const Ranged& first, const Ranged& last, int64_t step);
  NodePtr tile_copy(const Place& inner, const Place& outer, bool out);
  void find_bounds();

  const Kernel& kernel_;
  std::string name_;
  poly::LoopAst loops_;
  poly::Iterators iterators_;
  std::map<std::string, std::vector<Place>> places_;                        ///< per tensor, the present place last
  std::map<std::string, std::vector<std::pair<int64_t, int64_t>>> bounds_;  ///< of the indices, per statement
  std::map<int, Dealt> dealt_;        ///< by dimension of the tree, for loops not yet met
  std::map<int, std::string> named_;  ///< by dimension of the tree, for loops that marks name
  std::set<std::string> names_;       ///< in scope
};

Translator::Translator(const Kernel& kernel, std::string name)
    : kernel_(kernel), name_(std::move(name)), loops_(poly::generate_loops(kernel.scop)) {
  const ir::Program& program = *kernel.scop.program;
  for (const ir::Tensor& tensor : program.tensors) {
    places_[tensor.name].push_back({tensor.name, tensor.type, {}, ir::constant_shape(tensor)});
    names_.insert(tensor.name);
  }
  for (const ir::Scalar& scalar : program.scalars) names_.insert(scalar.name);
  names_.insert(tile::kBlock.begin(), tile::kBlock.end());
  names_.insert(tile::kThread.begin(), tile::kThread.end());
  find_bounds();
}

void Translator::find_bounds() {
  for (const isl::set& domain : poly::sets_of(kernel_.scop.domain)) {
    auto& bounds = bounds_[poly::tuple_name(domain)];
    const int rank = static_cast<int>(isl_set_dim(domain.get(), isl_dim_set));
    for (int i = 0; i < rank; ++i) {
      bounds.emplace_back(poly::to_int64(domain.dim_min_val(i)), poly::to_int64(domain.dim_max_val(i)));
    }
  }
}

tile::Kernel Translator::run() {
  tile::Kernel result;
  result.name = name_;
  result.grid = kernel_.grid;
  result.block = kernel_.block;
  result.body = lower(loops_.root);
  declare_uses(result, *kernel_.scop.program);
  return result;
}

NodePtr Translator::lower(const isl::ast_node& node) {
  if (node.isa<isl::ast_node_for>()) return lower_for(node.as<isl::ast_node_for>());
  if (node.isa<isl::ast_node_if>()) return lower_if(node.as<isl::ast_node_if>());
  if (node.isa<isl::ast_node_block>()) return lower_block(node.as<isl::ast_node_block>());
  if (node.isa<isl::ast_node_mark>()) return lower_mark(node.as<isl::ast_node_mark>());
  if (node.isa<isl::ast_node_user>()) return lower_user(node.as<isl::ast_node_user>());
  TC_CHECK(false, "a kind of node that isl does not have");
}

NodePtr Translator::lower_block(const isl::ast_node_block& node) {
  isl::ast_node_list children = node.children();
  std::vector<NodePtr> parts;
  const auto dealt = dealt_;
  for (int i = 0, n = static_cast<int>(isl_ast_node_list_size(children.get())); i < n; ++i) {
    dealt_ = dealt;
    parts.push_back(lower(children.at(i)));
  }
  return sequence(std::move(parts));
}

NodePtr Translator::lower_if(const isl::ast_node_if& node) {
  const Expr condition = poly::to_condition(node.cond(), iterators_);
  NodePtr then_case = lower(node.then_node());
  if (hi::is_const_one(condition)) return then_case;
  NodePtr else_case = node.has_else_node() ? lower(node.else_node()) : nullptr;
  return make_node(tile::If{condition, then_case, else_case});
}

NodePtr Translator::lower_mark(const isl::ast_node_mark& node) {
  const poly::MarkPlace& place = loops_.place_of(node);
  if (place.name == kBarrierMark) return sequence({make_node(tile::Barrier{}), lower(node.node())});
  if (place.name.starts_with(kLoopMark)) {
    name_loops(place);
    return lower(node.node());
  }
  if (place.name.starts_with(kBindMark)) return lower_binding(kernel_.binding(place.name), place, node.node());
  TC_CHECK(place.name.starts_with("promote:"), "a mark '{}' that the mapping does not know", place.name);
  for (const poly::Promotion& promotion : kernel_.scop.promotions) {
    if ("promote:" + promotion.name == place.name) return lower_promotion(promotion, place, node.node());
  }
  TC_CHECK(false, "the mark '{}' names no promotion", place.name);
}

/// Notes the names of a band's loops: "loop:i_outer,j_outer".
void Translator::name_loops(const poly::MarkPlace& place) {
  std::istringstream names(place.name.substr(sizeof(kLoopMark) - 1));
  std::string name;
  for (int depth = place.depth; std::getline(names, name, ','); ++depth) named_[depth] = name;
}

/// An axis of threads that no loop of a region deals out is left to its thread 0.
NodePtr Translator::lower_binding(const Binding& binding, const poly::MarkPlace& place, const isl::ast_node& child) {
  const auto outer = dealt_;
  std::array<bool, 3> used = {false, false, false};
  for (size_t i = 0; i < binding.members.size(); ++i) {
    const std::optional<Dealt>& dealt = binding.members[i];
    if (!dealt) continue;
    used[static_cast<size_t>(dealt->axis)] = true;
    if (kernel_.count(*dealt) > 1) dealt_[place.depth + static_cast<int>(i)] = *dealt;
  }
  NodePtr result = lower(child);
  dealt_ = outer;
  if (binding.to == Dealt::To::kBlocks || binding.cooperative) return result;
  Expr condition = hi::const_true();
  for (int axis = 0; axis < 3; ++axis) {
    if (used[static_cast<size_t>(axis)] || kernel_.block[static_cast<size_t>(axis)] == 1) continue;
    const Expr first = number({Dealt::To::kThreads, axis, 1}).expr == 0;
    condition = hi::is_const_one(condition) ? first : condition && first;
  }
  return guarded(condition, result);
}

NodePtr Translator::lower_user(const isl::ast_node_user& node) {
  auto [id, values] = poly::instance_of(node);
  if (const Copy* copy = kernel_.find_copy(id)) return guarded(whose_turn(loops_.prefix_of(node)), lower_copy(*copy));
  const poly::Statement& statement = kernel_.scop.statement(id);
  BodyContext context;
  context.program = kernel_.scop.program.get();
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor).back(); };
  const auto& bounds = bounds_.at(id);
  for (size_t i = 0; i < statement.indices.size(); ++i) {
    const Ranged value = poly::to_ranged(values[i], iterators_);
    const int64_t min = std::max(bounds[i].first, value.min);
    context.indices[statement.indices[i]] =
        poly::ranged(value.expr, min, std::max(min, std::min(bounds[i].second, value.max)));
  }
  return guarded(whose_turn(loops_.prefix_of(node)), statement_body(statement, context));
}

/// Stands right below the mark of its promotion.
NodePtr Translator::lower_copy(const Copy& copy) {
  for (const poly::Promotion& promotion : kernel_.scop.promotions) {
    if (promotion.name != copy.promotion) continue;
    const std::vector<Place>& places = places_.at(promotion.tensor);
    std::vector<std::string> named;
    NodePtr code = cooperative_copy(copy, places.back(), places.at(places.size() - 2), kernel_,
                                    [&](const std::string& wish) { return named.emplace_back(fresh(wish)); });
    for (const std::string& name : named) names_.erase(name);
    return code;
  }
  TC_CHECK(false, "the copy '{}' is of no promotion", copy.statement);
}

/// The condition that the instances at a place are this block's and thread's, as far as no loop has dealt them out.
Expr Translator::whose_turn(const std::vector<isl::ast_expr>& prefix) const {
  Expr condition = hi::const_true();
  for (const auto& [depth, dealt] : dealt_) {
    const Ranged value = poly::to_ranged(prefix.at(static_cast<size_t>(depth)), iterators_);
    const Expr mine =
        poly::equal(number(dealt), poly::floor_mod(poly::floor_div(value, dealt.stride), kernel_.count(dealt)));
    condition = hi::is_const_one(condition) ? mine : condition && mine;
  }
  return condition;
}

tile::Tensor register_tensor(const Place& place) {
  tile::Tensor tensor;
  tensor.name = place.name;
  tensor.type = place.type;
  tensor.memory = tile::Memory::kRegister;
  tensor.layout = tile::Layout::row_major(std::vector<tile::IntTuple>(place.extents.begin(), place.extents.end()));
  tensor.written = true;
  return tensor;
}

/// Row-major, each row with `pad` elements behind it.
tile::Tensor shared_tensor(const Place& place, int64_t pad) {
  tile::Tensor tensor = register_tensor(place);
  tensor.memory = tile::Memory::kShared;
  if (pad == 0) return tensor;
  std::vector<tile::IntTuple> strides(place.extents.size());
  int64_t stride = 1;
  for (size_t d = place.extents.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= place.extents[d] + (d + 1 == place.extents.size() ? pad : 0);
  }
  tensor.layout = tile::Layout(std::vector<tile::IntTuple>(place.extents.begin(), place.extents.end()), strides);
  return tensor;
}

NodePtr Translator::lower_promotion(const poly::Promotion& promotion, const poly::MarkPlace& mark,
                                    const isl::ast_node& child) {
  const Expr mine = whose_turn(mark.prefix);
  const auto outer_dealt = std::exchange(dealt_, {});
  const auto of_threads = kernel_.thread_tiles.find(promotion.name);
  const bool is_tile = of_threads != kernel_.thread_tiles.end();
  std::vector<Ranged> offset;
  for (const isl::ast_expr& expr : mark.offsets) offset.push_back(poly::to_ranged(expr, iterators_));
  if (is_tile) offset = tile_offset(of_threads->second, mark);
  std::vector<Place>& stack = places_.at(promotion.tensor);
  const Place outer = stack.back();
  const Place inner{fresh(promotion.name + (promotion.in_registers ? "_reg" : "_shared")), outer.type, offset,
                    is_tile ? of_threads->second.extents : promotion.extents};
  stack.push_back(inner);
  NodePtr body = lower(child);
  stack.pop_back();
  names_.erase(inner.name);
  dealt_ = outer_dealt;

  if (!promotion.in_registers) {
    return guarded(mine, make_node(tile::Allocate{shared_tensor(inner, kernel_.pads.at(promotion.name)), body}));
  }
  if (is_tile) {
    std::vector<NodePtr> parts;
    if (promotion.copy_in) parts.push_back(tile_copy(inner, outer, false));
    parts.push_back(body);
    if (promotion.copy_out) parts.push_back(tile_copy(inner, outer, true));
    return guarded(mine, make_node(tile::Allocate{register_tensor(inner), sequence(std::move(parts))}));
  }
  auto element = [&](const Place& place) {
    return hi::Call::make(place.type, place.name, position_in(place, offset), hi::Call::PureExtern);
  };
  std::vector<NodePtr> parts;
  if (promotion.copy_in)
    parts.push_back(make_node(tile::Store{inner.name, position_in(inner, offset), element(outer)}));
  parts.push_back(body);
  if (promotion.copy_out) {
    parts.push_back(make_node(tile::Store{outer.name, position_in(outer, offset), element(inner)}));
  }
  return guarded(mine, make_node(tile::Allocate{register_tensor(inner), sequence(std::move(parts))}));
}

/// Where the thread's tile begins.
std::vector<Ranged> Translator::tile_offset(const ThreadTile& tile, const poly::MarkPlace& mark) const {
  std::vector<Ranged> inputs;
  for (const isl::ast_expr& expr : mark.prefix) inputs.push_back(poly::to_ranged(expr, iterators_));
  for (int axis = 0; axis < 3; ++axis) {
    inputs.push_back(kernel_.block[static_cast<size_t>(axis)] == 1 ? poly::ranged(0)
                                                                   : number({Dealt::To::kThreads, axis, 1}));
  }
  std::vector<Ranged> offset;
  for (int d = 0; d < static_cast<int>(tile.extents.size()); ++d) {
    const isl::aff at = tile.offset.at(d);
    Ranged value = poly::ranged(poly::to_int64(at.constant_val()));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const isl::val factor = isl::manage(isl_aff_get_coefficient_val(at.get(), isl_dim_in, static_cast<int>(i)));
      if (!factor.is_zero()) value = value + inputs[i] * poly::ranged(poly::to_int64(factor));
    }
    offset.push_back(value);
  }
  return offset;
}

/// Each thread copies its own tile, as far as it lies within the tensor.
NodePtr Translator::tile_copy(const Place& inner, const Place& outer, bool out) {
  std::vector<Ranged> within, around;
  std::vector<std::string> loops;
  Expr inside = hi::const_true();
  const auto require = [&](const Expr& condition) {
    if (!hi::is_const_one(condition)) inside = hi::is_const_one(inside) ? condition : inside && condition;
  };
  for (size_t d = 0; d < inner.extents.size(); ++d) {
    loops.push_back(fresh(fmt::format("{}_{}", inner.name, d)));
    within.push_back(inner.extents[d] == 1
                         ? poly::ranged(0)
                         : poly::ranged(hi::Variable::make(Halide::Int(32), loops[d]), 0, inner.extents[d] - 1));
    around.push_back(inner.offset[d] + within[d]);
    require(poly::less_equal(poly::ranged(0), around[d]));
    require(poly::less(around[d], poly::ranged(outer.extents[d])));
  }
  std::vector<Expr> at;
  for (const Ranged& r : within) at.push_back(r.expr);
  const std::vector<Expr> there = position_in(outer, around);
  const auto read = [](const Place& place, const std::vector<Expr>& from) {
    return hi::Call::make(place.type, place.name, from, hi::Call::PureExtern);
  };
  NodePtr code = out ? make_node(tile::Store{outer.name, there, read(inner, at)})
                     : make_node(tile::Store{inner.name, at, read(outer, there)});
  code = guarded(inside, code);
  for (size_t d = inner.extents.size(); d-- > 0;) {
    names_.erase(loops[d]);
    if (inner.extents[d] == 1) continue;
    const auto bound = [](int64_t value) { return hi::make_const(Halide::Int(32), value); };
    code = make_node(tile::For{loops[d], bound(0), bound(inner.extents[d]), bound(1), true, code});
  }
  return code;
}

Ranged Translator::number(const Dealt& dealt) const {
  const auto axis = static_cast<size_t>(dealt.axis);
  const char* name = dealt.to == Dealt::To::kBlocks ? tile::kBlock[axis] : tile::kThread[axis];
  return poly::ranged(hi::Variable::make(Halide::Int(32), name), 0, kernel_.count(dealt) - 1);
}

std::optional<Dealt> Translator::take_dealt(const isl::ast_node_for& node) {
  auto found = dealt_.find(poly::LoopAst::depth_of(node));
  if (found == dealt_.end()) return std::nullopt;
  const Dealt dealt = found->second;
  dealt_.erase(found);
  return dealt;
}

NodePtr Translator::lower_for(const isl::ast_node_for& node) {
  const Ranged first = poly::to_ranged(node.init(), iterators_);
  const auto outer = dealt_;
  const std::optional<Dealt> dealt = take_dealt(node);
  NodePtr result;
  if (node.is_degenerate()) {
    result = body_with(node, first);
    if (dealt) {
      const Ranged own = poly::floor_mod(poly::floor_div(first, dealt->stride), kernel_.count(*dealt));
      result = guarded(poly::equal(number(*dealt), own), result);
    }
    dealt_ = outer;
    return result;
  }
  const int64_t step = poly::to_int64(node.inc().as<isl::ast_expr_int>().val());
  const isl::ast_expr condition = node.cond();
  const auto comparison = isl_ast_expr_get_op_type(condition.get());
  TC_CHECK(comparison == isl_ast_expr_op_le || comparison == isl_ast_expr_op_lt, "a loop that runs while {}",
           condition.to_C_str());
  Ranged last = poly::to_ranged(isl::manage(isl_ast_expr_get_op_arg(condition.get(), 1)), iterators_);
  if (comparison == isl_ast_expr_op_lt) last = last - poly::ranged(1);
  result = dealt ? dealt_loop(node, *dealt, first, last, step) : loop(node, first, last, step, first.min);
  dealt_ = outer;
  return result;
}

/// The iterations v of a loop with floor(v / stride) mod count equal to the block's or thread's number.
NodePtr Translator::dealt_loop(const isl::ast_node_for& node, const Dealt& dealt, const Ranged& first,
                               const Ranged& last, int64_t step) {
  const int64_t count = kernel_.count(dealt);
  const bool aligned = step == dealt.stride && first.is_constant() && first.min % dealt.stride == 0;
  if (!aligned) {
    // A shape that bands of the classic mapping have only after shifts: each iteration asks whose it is.
    const std::string name = fresh(loop_name(node));
    const Ranged value = poly::ranged(
        hi::Variable::make(first.is_narrow() && last.is_narrow() ? Halide::Int(32) : Halide::Int(64), name), first.min,
        std::max(first.min, last.max));
    const Ranged own = poly::floor_mod(poly::floor_div(value, dealt.stride), count);
    const Expr mine = poly::equal(number(dealt), own);
    NodePtr body = guarded(mine, body_with(node, value));
    names_.erase(name);
    auto [begin, end] = poly::matched(first, last + poly::ranged(1));
    tile::For result{name, begin, end, hi::make_const(begin.type(), step), false, body};
    return make_node(std::move(result));
  }
  const Ranged begin =
      first + poly::floor_mod(number(dealt) - poly::ranged(first.min / dealt.stride), count) * poly::ranged(step);
  const int64_t iterations = (last.max - first.min) / step + 1;
  if (iterations > count) return loop(node, begin, last, step * count, first.min);
  const Ranged value = poly::ranged(begin.expr, begin.min, std::max(begin.min, std::min(begin.max, last.max)));
  return guarded(poly::less_equal(begin, last), body_with(node, value));
}

/// for (v = begin; v <= last; v += step)
NodePtr Translator::loop(const isl::ast_node_for& node, const Ranged& begin, const Ranged& last, int64_t step,
                         int64_t first) {
  if (is_unrolled(node)) return unrolled_loop(node, begin, last, step);
  const std::string name = fresh(loop_name(node));
  // The variable runs past the last value by up to a step.
  const bool narrow = begin.is_narrow() && last.is_narrow() && last.max <= INT32_MAX - step;
  const Halide::Type type = Halide::Int(narrow ? 32 : 64);
  const Ranged value{hi::Variable::make(type, name), first, std::max(first, last.max)};
  const Ranged named = poly::ranged(value.expr, value.min, value.max);
  NodePtr body = body_with(node, named);
  names_.erase(name);
  const Ranged end = last + poly::ranged(1);
  tile::For result{name,
                   narrow ? poly::as_int32(begin) : poly::as_int64(begin),
                   narrow ? poly::as_int32(end) : poly::as_int64(end),
                   hi::make_const(type, step),
                   false,
                   body};
  return make_node(std::move(result));
}

bool Translator::is_unrolled(const isl::ast_node_for& node) const {
  const auto named = named_.find(poly::LoopAst::depth_of(node));
  return named != named_.end() && kernel_.unrolled.count(named->second) > 0;
}

/// As many iterations as the loop can have; those that it does not have are left out one by one.
NodePtr Translator::unrolled_loop(const isl::ast_node_for& node, const Ranged& first, const Ranged& last,
                                  int64_t step) {
  const std::string name = fresh(loop_name(node));
  const int64_t begin = first.min, end = std::max(first.min, last.max) + 1;
  const Halide::Type type = Halide::Int(end <= INT32_MAX - step ? 32 : 64);
  const Ranged value = poly::ranged(hi::Variable::make(type, name), begin, end - 1);
  NodePtr body = body_with(node, value);
  if (!last.is_constant()) body = guarded(poly::less_equal(value, last), body);
  if (!first.is_constant()) body = guarded(poly::less_equal(first, value), body);
  names_.erase(name);
  return make_node(
      tile::For{name, hi::make_const(type, begin), hi::make_const(type, end), hi::make_const(type, step), true, body});
}

NodePtr Translator::body_with(const isl::ast_node_for& node, const Ranged& value) {
  const std::string iterator = node.iterator().as<isl::ast_expr_id>().id().name();
  const auto outer = iterators_;
  iterators_[iterator] = value;
  NodePtr body = lower(node.body());
  iterators_ = outer;
  return body;
}

/// The name of the first index below that depends on the loop; a loop over tiles adds "_tile".
std::string Translator::loop_name(const isl::ast_node_for& node) const {
  const std::string iterator = node.iterator().as<isl::ast_expr_id>().id().name();
  std::string result;
  const auto named = named_.find(poly::LoopAst::depth_of(node));
  if (named != named_.end()) return named->second;
  poly::for_each_instance(node.body(), [&](const std::string& id, const std::vector<isl::ast_expr>& indices) {
    if (kernel_.find_copy(id) != nullptr) return;
    const poly::Statement& statement = kernel_.scop.statement(id);
    for (size_t i = 0; i < indices.size() && result.empty(); ++i) {
      if (poly::use_of(indices[i], iterator) != poly::IteratorUse::kNone) result = statement.indices[i];
    }
  });
  if (result.empty()) return iterator;
  const int64_t step = poly::to_int64(node.inc().as<isl::ast_expr_int>().val());
  return step > 1 ? result + "_tile" : result;
}

std::string Translator::fresh(const std::string& wish) {
  std::string name = wish;
  for (int i = 1; !names_.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

}  // namespace

tile::Tensor global_tensor(const ir::Tensor& tensor, bool written) {
  tile::Tensor result;
  result.name = tensor.name;
  result.type = tensor.type;
  const ir::Shape shape = ir::constant_shape(tensor);
  result.layout = tile::Layout::row_major(std::vector<tile::IntTuple>(shape.begin(), shape.end()));
  result.written = written;
  return result;
}

tile::Kernel translate(const Kernel& kernel, const std::string& name) { return Translator(kernel, name).run(); }

}  // namespace tc::gpu
