#include "tc/gpu/lower/translate.h"

#include <isl/aff.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/lower/copy_code.h"
#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/lower/translator.h"
#include "tc/gpu/mapping/bind_loops.h"
#include "tc/ir/layouts.h"
#include "tc/ir/specialise.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/loop_tree.h"
#include "tc/poly/loops.h"
#include "tc/support/check.h"

namespace tc::gpu {

using Halide::Expr;
using poly::Ranged;
using tile::NodePtr;
namespace hi = Halide::Internal;
namespace loops = poly::loops;

Translator::Translator(const Kernel& kernel, std::string name) : kernel_(kernel), name_(std::move(name)) {
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
  result.body = lower(poly::generate_loops(kernel_.scop));
  declare_tensors(result, *kernel_.scop.program);
  return result;
}

NodePtr Translator::lower(const loops::NodePtr& node) {
  if (const auto* loop = std::get_if<loops::For>(&node->value)) return lower_for(*loop);
  if (const auto* branch = std::get_if<loops::If>(&node->value)) return lower_if(*branch);
  if (const auto* block = std::get_if<loops::Block>(&node->value)) return lower_block(*block);
  if (const auto* mark = std::get_if<loops::Mark>(&node->value)) return lower_mark(*mark);
  return lower_instance(std::get<loops::Instance>(node->value));
}

NodePtr Translator::lower_block(const loops::Block& block) {
  std::vector<NodePtr> parts;
  const auto dealt = dealt_;
  for (const loops::NodePtr& child : block.children) {
    dealt_ = dealt;
    parts.push_back(lower(child));
  }
  return sequence(std::move(parts));
}

NodePtr Translator::lower_if(const loops::If& branch) {
  const Expr condition = poly::to_condition(branch.condition, iterators_);
  NodePtr then_case = under(condition, [&] { return lower(branch.then_case); });
  if (hi::is_const_one(condition)) return then_case;
  NodePtr else_case = nullptr;
  if (branch.else_case != nullptr) else_case = under(!condition, [&] { return lower(branch.else_case); });
  return make_node(tile::If{condition, then_case, else_case});
}

NodePtr Translator::lower_mark(const loops::Mark& mark) {
  if (mark.name == kBarrierMark) return sequence({make_node(tile::Barrier{}), lower(mark.child)});
  if (mark.name == kWarpMark) return by_warp(mark.child, mark.depth);
  if (mark.name.starts_with(poly::kLoopMark)) {
    name_loops(mark);
    const std::string name = mark.name.substr(sizeof(poly::kLoopMark) - 1);
    return kernel_.staged.count(name) > 0 ? once(mark.child) : lower(mark.child);
  }
  if (mark.name.starts_with(kBindMark)) return lower_binding(kernel_.binding(mark.name), mark);
  TC_CHECK(mark.name.starts_with("promote:"), "a mark '{}' that the mapping does not know", mark.name);
  for (const poly::Promotion& promotion : kernel_.scop.promotions) {
    if ("promote:" + promotion.name == mark.name) return lower_promotion(promotion, mark);
  }
  TC_CHECK(false, "the mark '{}' names no promotion", mark.name);
}

/// Notes the names of a band's loops: "loop:i_outer,j_outer".
void Translator::name_loops(const loops::Mark& mark) {
  std::istringstream names(mark.name.substr(sizeof(poly::kLoopMark) - 1));
  std::string name;
  for (int depth = mark.depth; std::getline(names, name, ','); ++depth) named_[depth] = name;
}

/// An axis of threads that no loop of a region deals out is left to its thread 0.
NodePtr Translator::lower_binding(const Binding& binding, const loops::Mark& mark) {
  const auto outer = dealt_;
  std::array<bool, 3> used = {false, false, false};
  for (size_t i = 0; i < binding.members.size(); ++i) {
    const std::optional<Dealt>& dealt = binding.members[i];
    if (!dealt) continue;
    used[static_cast<size_t>(dealt->axis)] = true;
    if (kernel_.count(*dealt) > 1) dealt_[mark.depth + static_cast<int>(i)] = *dealt;
  }
  NodePtr result = lower(mark.child);
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

NodePtr Translator::lower_instance(const loops::Instance& instance) {
  const std::string& id = instance.statement;
  if (const Copy* copy = kernel_.find_copy(id)) {
    NodePtr code = guarded(whose_turn(instance.prefix), lower_copy(*copy));
    return copy->stages > 1 ? staged_copies(std::move(code)) : code;
  }
  const poly::Statement& statement = kernel_.scop.statement(id);
  BodyContext context;
  context.program = kernel_.scop.program.get();
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor).back(); };
  const auto& bounds = bounds_.at(id);
  for (size_t i = 0; i < statement.indices.size(); ++i) {
    const Ranged value = poly::to_ranged(instance.indices[i], iterators_);
    const int64_t min = std::max(bounds[i].first, value.min);
    context.indices[statement.indices[i]] =
        poly::ranged(value.expr, min, std::max(min, std::min(bounds[i].second, value.max)));
  }
  const Expr mine = whose_turn(instance.prefix);
  return guarded(mine, warp_ == nullptr ? statement_body(statement, context) : add_to_partial(statement, context));
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
Expr Translator::whose_turn(const std::vector<poly::LoopExpr>& prefix) const {
  Expr condition = hi::const_true();
  for (const auto& [depth, dealt] : dealt_) {
    const Ranged value = poly::to_ranged(prefix.at(static_cast<size_t>(depth)), iterators_);
    const Expr mine =
        poly::equal(number(dealt), poly::floor_mod(poly::floor_div(value, dealt.stride), kernel_.count(dealt)));
    condition = hi::is_const_one(condition) ? mine : condition && mine;
  }
  return condition;
}

namespace {

tile::Tensor register_tensor(const Place& place) {
  tile::Tensor tensor;
  tensor.name = place.name;
  tensor.type = place.type;
  tensor.memory = tile::Memory::kRegister;
  tensor.layout = tile::Layout::row_major(std::vector<tile::IntTuple>(place.extents.begin(), place.extents.end()));
  tensor.written = true;
  return tensor;
}

/// Row-major, each row with `pad` elements behind it; more slots than one are a first dimension.
tile::Tensor shared_tensor(const Place& place, int64_t pad, int64_t slots) {
  tile::Tensor tensor = register_tensor(place);
  tensor.memory = tile::Memory::kShared;
  std::vector<tile::IntTuple> extents(place.extents.begin(), place.extents.end()), strides(place.extents.size());
  int64_t stride = 1;
  for (size_t d = place.extents.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= place.extents[d] + (d + 1 == place.extents.size() ? pad : 0);
  }
  if (slots > 1) {
    extents.insert(extents.begin(), slots);
    strides.insert(strides.begin(), stride);
  }
  if (pad > 0 || slots > 1) tensor.layout = tile::Layout(extents, strides);
  return tensor;
}

}  // namespace

NodePtr Translator::lower_promotion(const poly::Promotion& promotion, const loops::Mark& mark) {
  const Expr mine = whose_turn(mark.prefix);
  const auto outer_dealt = std::exchange(dealt_, {});
  const auto of_threads = kernel_.thread_tiles.find(promotion.name);
  const bool is_tile = of_threads != kernel_.thread_tiles.end();
  std::vector<Ranged> offset;
  for (const poly::LoopExpr& expr : mark.offsets) offset.push_back(poly::to_ranged(expr, iterators_));
  if (is_tile) offset = tile_offset(of_threads->second, mark);
  std::vector<Place>& stack = places_.at(promotion.tensor);
  const Place outer = stack.back();
  const Place inner{fresh(promotion.name + (promotion.in_registers ? "_reg" : "_shared")), outer.type, offset,
                    is_tile ? of_threads->second.extents : promotion.extents};
  const Copy* staged = ahead_ == nullptr ? nullptr : kernel_.find_staged(promotion.name);
  stack.push_back(inner);
  if (staged != nullptr) stack.back().slot = ahead_->slot.expr;
  NodePtr body = under(mine, [&] { return lower(mark.child); });
  stack.pop_back();
  dealt_ = outer_dealt;

  if (staged != nullptr) {
    ahead_->steps.buffers.push_back(shared_tensor(inner, kernel_.pads.at(promotion.name), staged->stages));
    return guarded(mine, body);
  }
  if (!promotion.in_registers) {
    return guarded(mine, make_node(tile::Allocate{shared_tensor(inner, kernel_.pads.at(promotion.name), 1), body}));
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
std::vector<Ranged> Translator::tile_offset(const ThreadTile& tile, const loops::Mark& mark) const {
  std::vector<Ranged> inputs;
  for (const poly::LoopExpr& expr : mark.prefix) inputs.push_back(poly::to_ranged(expr, iterators_));
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

std::optional<Dealt> Translator::take_dealt(const loops::For& node) {
  auto found = dealt_.find(node.dimension);
  if (found == dealt_.end()) return std::nullopt;
  const Dealt dealt = found->second;
  dealt_.erase(found);
  return dealt;
}

NodePtr Translator::lower_for(const loops::For& node) {
  const Ranged first = poly::to_ranged(node.first, iterators_);
  const auto outer = dealt_;
  const std::optional<Dealt> dealt = take_dealt(node);
  NodePtr result;
  if (node.once) {
    result = body_with(node, first);
    if (dealt) {
      const Ranged own = poly::floor_mod(poly::floor_div(first, dealt->stride), kernel_.count(*dealt));
      result = guarded(poly::equal(number(*dealt), own), result);
    }
    dealt_ = outer;
    return result;
  }
  const Ranged last = poly::to_ranged(node.last, iterators_);
  result = dealt ? dealt_loop(node, *dealt, first, last, node.step) : loop(node, first, last, node.step, first.min);
  dealt_ = outer;
  return result;
}

/// The iterations v of a loop with floor(v / stride) mod count equal to the block's or thread's number.
NodePtr Translator::dealt_loop(const loops::For& node, const Dealt& dealt, const Ranged& first, const Ranged& last,
                               int64_t step) {
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
    ++loops_around_;
    NodePtr body = guarded(mine, body_with(node, value));
    --loops_around_;
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
NodePtr Translator::loop(const loops::For& node, const Ranged& begin, const Ranged& last, int64_t step, int64_t first) {
  if (is_unrolled(node)) return unrolled_loop(node, begin, last, step);
  if (stages_of(node) > 1) return staged_loop(node, begin, last, step);
  if (warp_ != nullptr && node.dimension == warp_->depth) return warp_loop(node, begin, last, step, first);
  return make_node(
      counted_loop(node, begin, last, step, first, [&](const Ranged& value) { return body_with(node, value); }));
}

tile::For Translator::counted_loop(const loops::For& node, const Ranged& begin, const Ranged& last, int64_t step,
                                   int64_t first, const std::function<NodePtr(const Ranged&)>& make_body) {
  const std::string name = fresh(loop_name(node));
  // The variable runs past the last value by up to a step.
  const bool narrow = begin.is_narrow() && last.is_narrow() && last.max <= INT32_MAX - step;
  const Halide::Type type = Halide::Int(narrow ? 32 : 64);
  const Ranged value{hi::Variable::make(type, name), first, std::max(first, last.max)};
  const Ranged named = poly::ranged(value.expr, value.min, value.max);
  ++loops_around_;
  NodePtr body = make_body(named);
  --loops_around_;
  names_.erase(name);
  const Ranged end = last + poly::ranged(1);
  return {name,
          narrow ? poly::as_int32(begin) : poly::as_int64(begin),
          narrow ? poly::as_int32(end) : poly::as_int64(end),
          hi::make_const(type, step),
          false,
          body};
}

bool Translator::is_unrolled(const loops::For& node) const {
  const auto named = named_.find(node.dimension);
  return named != named_.end() && kernel_.unrolled.count(named->second) > 0;
}

/// As many iterations as the loop can have; those that it does not have are left out one by one.
NodePtr Translator::unrolled_loop(const loops::For& node, const Ranged& first, const Ranged& last, int64_t step) {
  const std::string name = fresh(loop_name(node));
  const int64_t begin = first.min, end = std::max(first.min, last.max) + 1;
  const Halide::Type type = Halide::Int(end <= INT32_MAX - step ? 32 : 64);
  const Ranged value = poly::ranged(hi::Variable::make(type, name), begin, end - 1);
  ++loops_around_;
  NodePtr body = body_with(node, value);
  --loops_around_;
  if (!last.is_constant()) body = guarded(poly::less_equal(value, last), body);
  if (!first.is_constant()) body = guarded(poly::less_equal(first, value), body);
  names_.erase(name);
  return make_node(
      tile::For{name, hi::make_const(type, begin), hi::make_const(type, end), hi::make_const(type, step), true, body});
}

NodePtr Translator::body_with(const loops::For& node, const Ranged& value) {
  const auto outer = iterators_;
  iterators_[node.variable] = value;
  NodePtr body = lower(node.body);
  iterators_ = outer;
  return body;
}

/// The name of the first index below that depends on the loop; a loop over tiles adds "_tile".
std::string Translator::loop_name(const loops::For& node) const {
  std::string result;
  const auto named = named_.find(node.dimension);
  if (named != named_.end()) return named->second;
  poly::for_each_instance(node.body, [&](const loops::Instance& instance) {
    if (kernel_.find_copy(instance.statement) != nullptr) return;
    const poly::Statement& statement = kernel_.scop.statement(instance.statement);
    for (size_t i = 0; i < instance.indices.size() && result.empty(); ++i) {
      if (poly::use_of(instance.indices[i], node.variable) != poly::IteratorUse::kNone) result = statement.indices[i];
    }
  });
  if (result.empty()) return node.variable;
  return node.step > 1 ? result + "_tile" : result;
}

std::string Translator::fresh(const std::string& wish) {
  std::string name = wish;
  for (int i = 1; !names_.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

tile::Tensor global_tensor(const ir::Tensor& tensor, bool written) {
  tile::Tensor result;
  result.name = tensor.name;
  result.type = tensor.type;
  const ir::Shape shape = ir::constant_shape(tensor);
  const std::vector<int64_t> strides = ir::strides_of(tensor);
  TC_CHECK(strides.empty() || strides.back() == 1, "the dimensions of '{}' are in no memory order", tensor.name);
  result.layout = tile::Layout(std::vector<tile::IntTuple>(shape.begin(), shape.end()),
                               std::vector<tile::IntTuple>(strides.begin(), strides.end()));
  result.written = written;
  return result;
}

tile::Kernel translate(const Kernel& kernel, const std::string& name) { return Translator(kernel, name).run(); }

}  // namespace tc::gpu
