#include "tc/cpu/from_poly.h"

#include <algorithm>
#include <set>

#include "tc/cpu/full_tiles.h"
#include "tc/cpu/lanes.h"
#include "tc/cpu/loop_facts.h"
#include "tc/cpu/tile_copy.h"
#include "tc/ir/halide_compat.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/loops.h"
#include "tc/support/check.h"

namespace tc::cpu {

using Halide::Expr;
using Halide::Internal::ForType;
using Halide::Internal::Stmt;
namespace hi = Halide::Internal;
namespace loops = poly::loops;

namespace {

constexpr int64_t kMaxUnroll = 64;
constexpr int64_t kMaxVectorBits = 4096;
constexpr int64_t kParallelCopyElements = 1 << 16;
constexpr int64_t kStackBytes = 16 * 1024;
/// Iterations of the inner of the two loops that a loop too long for an int32 variable becomes.
constexpr int64_t kStripIterations = int64_t{1} << 30;

/// What a loop's marks ask for.
enum class LoopKind { kSerial, kParallel, kVector, kUnrolled };

ForType for_type(LoopKind kind) {
  switch (kind) {
    case LoopKind::kSerial:
      return ForType::Serial;
    case LoopKind::kParallel:
      return ForType::Parallel;
    case LoopKind::kVector:
      return ForType::Vectorized;
    case LoopKind::kUnrolled:
      return ForType::Unrolled;
  }
  TC_CHECK(false, "a kind of loop that does not exist");
}

/// Whether the tiles of a separated region are full.
enum class Tiles { kUnknown, kFull, kAny };

/// A loop of a tile that runs over points which a partial tile lacks.
struct Padding {
  std::string iterator;  ///< the variable of poly::loops::For
  Ranged last;           ///< the last value that is a point
  std::string variable;  ///< of a vector's lanes; empty for an unrolled loop
};

class Generator {
 public:
  Generator(const poly::Scop& scop, const FromPolyOptions& options)
      : scop_(scop), options_(options), facts_(scop.context->get()) {
    for (const ir::Tensor& tensor : scop.program->tensors) {
      places_[tensor.name].push_back(place_of_tensor(*scop.program, tensor.name, options.layouts));
    }
    for (const ir::Scalar& scalar : scop.program->scalars) names_.insert(scalar.name);
    find_bounds();
  }

  KernelStmt run();

 private:
  Stmt lower(const loops::NodePtr& node);
  Stmt lower_block(const loops::Block& block);
  Stmt lower_if(const loops::If& branch);
  Stmt lower_mark(const loops::Mark& mark);
  Stmt lower_instance(const loops::Instance& instance);
  Stmt lower_for(const loops::For& loop);
  std::map<std::string, Ranged> index_values(const poly::Statement& statement,
                                             const std::vector<poly::LoopExpr>& values,
                                             const poly::Iterators& iterators, bool in_domain) const;
  Stmt lower_promotion(const poly::Promotion& promotion, const loops::Mark& mark);
  Stmt separate(const std::function<Stmt()>& make);
  Stmt separate_step(const loops::NodePtr& body);

  Stmt counted_loop(const loops::For& loop, LoopKind kind, const Ranged& first, const Ranged& last, int64_t step);
  Stmt strip_mined_loop(const loops::For& loop, LoopKind kind, const Ranged& first, const Ranged& last,
                        const Ranged& count, int64_t step);
  Stmt tile_loop(const loops::For& loop, LoopKind kind, const Ranged& first, const Ranged& last);
  Stmt body_with(const loops::For& loop, const std::string& name, const Ranged& value, const Expr& known, bool is_step);

  void find_bounds();
  std::vector<KernelArgument> arguments() const;
  /// The buffers of this thread alone in which a vector may reach beyond the values.
  std::set<std::string> buffers_for(int64_t lanes) const;
  OtherLanes lanes_behind(const loops::For& loop, const Ranged& value, const Ranged& last) const;
  LoopKind kind_of(const loops::For& loop);
  std::string loop_name(const loops::For& loop);
  std::string fresh(const std::string& wish);
  void need(const Expr& condition);

  const poly::Scop& scop_;
  const FromPolyOptions& options_;
  poly::Iterators iterators_;
  LoopFacts facts_;                                                         ///< here
  std::map<std::string, std::vector<Place>> places_;                        ///< per tensor, the present place last
  std::map<std::string, std::vector<std::pair<int64_t, int64_t>>> bounds_;  ///< of the indices, per statement
  std::set<std::string> shared_;                                            ///< buffers that threads share here
  std::map<int, LoopKind> kinds_;  ///< by schedule dimension, for loops not yet met
  std::set<std::string> names_;    ///< of loop variables and buffers in scope
  Tiles tiles_ = Tiles::kUnknown;
  FullTiles* full_ = nullptr;       ///< what full tiles need here, while tiles_ is kFull
  bool rare_ = false;               ///< tiles here are partial: full ones have code of their own
  int separated_ = 0;               ///< loops around within a region whose steps are separated one by one
  bool pads_ = false;               ///< partial tiles are padded here
  std::set<std::string> unrolled_;  ///< loop variables in scope of loops to be unrolled
  std::vector<Padding> padding_;    ///< of the loops around, innermost last
};

void Generator::find_bounds() {
  for (const isl::set& domain : poly::sets_of(scop_.domain)) {
    auto& bounds = bounds_[poly::tuple_name(domain)];
    int rank = static_cast<int>(isl_set_dim(domain.get(), isl_dim_set));
    for (int i = 0; i < rank; ++i) {
      bounds.emplace_back(poly::to_int64(domain.dim_min_val(i)), poly::to_int64(domain.dim_max_val(i)));
    }
  }
}

std::vector<KernelArgument> Generator::arguments() const {
  const ir::Program& program = *scop_.program;
  std::vector<KernelArgument> result;
  std::set<std::string> taken;
  auto add_tensor = [&](const std::string& name) {
    if (!taken.insert(name).second) return;
    const Place& place = places_.at(name).front();
    result.push_back(buffer_argument(name, storage_type(place.type), place.span()));
  };
  for (const std::string& name : program.parameters) {
    if (program.find_tensor(name) != nullptr) {
      add_tensor(name);
    } else if (const ir::Scalar* scalar = program.find_scalar(name); scalar != nullptr && !scalar->specialised) {
      result.push_back(scalar_argument(name, scalar->type));
    }
  }
  for (const std::string& name : program.results) add_tensor(name);
  return result;
}

KernelStmt Generator::run() {
  Stmt body = lower(poly::generate_loops(scop_, {.prefixes = false}));
  std::set<std::string> held;
  for (const poly::Promotion& promotion : scop_.promotions) {
    if (!promotion.copy_in && !promotion.copy_out) held.insert(promotion.tensor);
  }
  for (const ir::Tensor& tensor : scop_.program->tensors) {
    if (tensor.role != ir::Role::kTemporary || held.count(tensor.name) > 0) continue;
    const Place& place = places_.at(tensor.name).front();
    body = hi::Allocate::make(place.name, storage_type(place.type), Halide::MemoryType::Heap, allocation_extents(place),
                              hi::const_true(), body);
  }
  KernelStmt result;
  result.body = body;
  result.arguments = arguments();
  return result;
}

Stmt Generator::lower(const loops::NodePtr& node) {
  if (const auto* loop = std::get_if<loops::For>(&node->value)) return lower_for(*loop);
  if (const auto* branch = std::get_if<loops::If>(&node->value)) return lower_if(*branch);
  if (const auto* block = std::get_if<loops::Block>(&node->value)) return lower_block(*block);
  if (const auto* mark = std::get_if<loops::Mark>(&node->value)) return lower_mark(*mark);
  return lower_instance(std::get<loops::Instance>(node->value));
}

Stmt Generator::lower_block(const loops::Block& block) {
  std::vector<Stmt> parts;
  auto kinds = kinds_;
  for (const loops::NodePtr& child : block.children) {
    kinds_ = kinds;
    parts.push_back(lower(child));
  }
  // An empty domain makes an empty block.
  return parts.empty() ? hi::Evaluate::make(0) : hi::Block::make(parts);
}

Stmt Generator::lower_if(const loops::If& branch) {
  Expr condition = poly::to_condition(branch.condition, iterators_);
  const LoopFacts around = facts_;
  facts_.assume(condition);
  Stmt then_case = lower(branch.then_case);
  facts_ = around;
  Stmt else_case = branch.else_case != nullptr ? lower(branch.else_case) : Stmt();
  if (hi::is_const_one(condition)) return then_case;
  return hi::IfThenElse::make(condition, then_case, else_case);
}

Stmt Generator::lower_mark(const loops::Mark& mark) {
  auto kinds = kinds_;
  Stmt result;
  auto child = [&] { return lower(mark.child); };
  if (mark.name == "parallel") {
    const auto outer = shared_;
    for (const auto& [tensor, stack] : places_) shared_.insert(stack.back().name);
    kinds_[mark.depth] = LoopKind::kParallel;
    result = child();
    shared_ = outer;
  } else if (mark.name == "vector" || mark.name == "unroll") {
    LoopKind kind = mark.name == "vector" ? LoopKind::kVector : LoopKind::kUnrolled;
    for (int i = 0; i < mark.members; ++i) kinds_[mark.depth + i] = kind;
    result = separate(child);
  } else if (mark.name == kSeparateMark || mark.name == kPadMark) {
    const bool outer = pads_;
    pads_ = mark.name == kPadMark && tiles_ == Tiles::kUnknown;
    result = separate(child);
    pads_ = outer;
  } else if (mark.name.rfind("promote:", 0) == 0) {
    auto promotion = std::find_if(scop_.promotions.begin(), scop_.promotions.end(),
                                  [&](const poly::Promotion& p) { return "promote:" + p.name == mark.name; });
    TC_CHECK(promotion != scop_.promotions.end(), "the mark '{}' names no promotion", mark.name);
    result = lower_promotion(*promotion, mark);
  } else {
    result = child();
  }
  kinds_ = kinds;
  return result;
}

/// Makes the code below a mark once if all its tiles are full, else twice, for full tiles and for any.
Stmt Generator::separate(const std::function<Stmt()>& make) {
  if (tiles_ != Tiles::kUnknown) return make();
  auto kinds = kinds_;
  FullTiles needs;
  full_ = &needs;
  tiles_ = Tiles::kFull;
  Stmt full = make();
  full_ = nullptr;
  tiles_ = Tiles::kUnknown;
  const std::optional<Expr> condition = needs.condition(facts_);  // nothing if it cannot be asked here
  if (condition && hi::is_const_one(*condition)) return full;
  kinds_ = kinds;
  tiles_ = Tiles::kAny;
  rare_ = condition.has_value();
  Stmt any = make();
  tiles_ = Tiles::kUnknown;
  return condition ? hi::IfThenElse::make(likely(*condition), full, any) : any;
}

/// A step of a loop below a mark where it depends on the step whether the tiles are full: the same for the step alone.
Stmt Generator::separate_step(const loops::NodePtr& body) {
  if (tiles_ != Tiles::kAny || rare_ || pads_) return lower(body);
  tiles_ = Tiles::kUnknown;
  ++separated_;
  Stmt result = separate([&] { return lower(body); });
  --separated_;
  tiles_ = Tiles::kAny;
  rare_ = false;
  return result;
}

/// Makes a condition one of those under which the tiles here are full, unless it always holds.
void Generator::need(const Expr& condition) {
  TC_CHECK(full_ != nullptr, "a tile is taken for full where none is known to be");
  if (!facts_.imply(condition)) full_->require(condition);
}

Stmt Generator::lower_instance(const loops::Instance& instance) {
  const poly::Statement& statement = scop_.statement(instance.statement);
  BodyContext context;
  context.program = scop_.program.get();
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor).back(); };
  context.indices = index_values(statement, instance.indices, iterators_, padding_.empty());
  if (!padding_.empty()) {
    poly::Iterators inside = iterators_;
    poly::Iterators held = iterators_;
    for (const Padding& padding : padding_) {
      const Ranged value = iterators_.at(padding.iterator);
      held[padding.iterator] = min(value, padding.last);
      if (padding.variable.empty()) {
        inside[padding.iterator] = held[padding.iterator];
      } else {
        context.safe = less_equal(value, padding.last);
        context.lane = padding.variable;
      }
    }
    context.safe_indices = index_values(statement, instance.indices, inside, true);
    context.held_indices = index_values(statement, instance.indices, held, true);
  }
  return statement_body(statement, context);
}

std::map<std::string, Ranged> Generator::index_values(const poly::Statement& statement,
                                                      const std::vector<poly::LoopExpr>& values,
                                                      const poly::Iterators& iterators, bool in_domain) const {
  std::map<std::string, Ranged> result;
  const auto& bounds = bounds_.at(statement.id);
  for (size_t i = 0; i < statement.indices.size(); ++i) {
    Ranged value = poly::to_ranged(values[i], iterators);
    if (in_domain) {
      int64_t min = std::max(bounds[i].first, value.min);
      int64_t max = std::max(min, std::min(bounds[i].second, value.max));
      value = ranged(value.expr, min, max);
    }
    result[statement.indices[i]] = value;
  }
  return result;
}

Stmt Generator::lower_promotion(const poly::Promotion& promotion, const loops::Mark& mark) {
  std::vector<Ranged> offset;
  for (const poly::LoopExpr& expr : mark.offsets) offset.push_back(poly::to_ranged(expr, iterators_));
  std::vector<Place>& stack = places_.at(promotion.tensor);
  Place tensor = stack.back();
  Place buffer = place_of_promotion(*scop_.program, promotion, offset);
  buffer.name = fresh(promotion.name);
  // A layout in blocks has room for whole blocks, and so have tiles that are to be registers.
  buffer.padded = pads_ || promotion.in_registers || !promotion.tile.empty();

  CopyOptions copy;
  copy.parallel = iterators_.empty() && buffer.span() >= kParallelCopyElements;
  copy.vector_lanes = options_.vector_bits / (8 * storage_type(buffer.type).bytes());
  // What is never copied may be stored in whole vectors, of which the last sticks out.
  if (!promotion.copy_in && !promotion.copy_out) buffer.spare = copy.vector_lanes - 1;
  if (promotion.in_registers && tiles_ == Tiles::kFull) copy.form = CopyForm::kFull;
  if (promotion.in_registers && tiles_ == Tiles::kAny && pads_) copy.form = CopyForm::kGuarded;
  if (copy.form == CopyForm::kFull && (promotion.copy_in || promotion.copy_out)) {
    for (const Expr& condition : full_conditions(buffer, tensor)) need(condition);
  }
  stack.push_back(buffer);
  Stmt body = lower(mark.child);
  stack.pop_back();
  names_.erase(buffer.name);

  std::vector<Stmt> parts;
  if (promotion.copy_in) parts.push_back(copy_tile(tensor, buffer, CopyDirection::kIn, copy, facts_));
  parts.push_back(body);
  if (promotion.copy_out) parts.push_back(copy_tile(tensor, buffer, CopyDirection::kOut, copy, facts_));
  int64_t bytes = buffer.span() * storage_type(buffer.type).bytes();
  auto memory = bytes <= kStackBytes ? Halide::MemoryType::Stack : Halide::MemoryType::Heap;
  return hi::Allocate::make(buffer.name, storage_type(buffer.type), memory, allocation_extents(buffer),
                            hi::const_true(), hi::Block::make(parts));
}

std::set<std::string> Generator::buffers_for(int64_t lanes) const {
  std::set<std::string> result;
  for (const auto& [tensor, stack] : places_) {
    const Place& place = stack.back();
    const bool has_room = place.padded || place.spare >= lanes - 1;
    if (has_room && shared_.count(place.name) == 0) result.insert(place.name);
  }
  return result;
}

/// What a vector along a loop, at `value` in its lanes, stores behind the loop's last value: kNobodys only if that is
/// proved to lie behind the end of a dimension of the tensor, and before the elements of other subscripts.
OtherLanes Generator::lanes_behind(const loops::For& loop, const Ranged& value, const Ranged& last) const {
  const auto* instance = std::get_if<loops::Instance>(&loop.body->value);
  if (instance == nullptr) return OtherLanes::kElements;
  const poly::Statement& statement = scop_.statement(instance->statement);
  const Place& place = places_.at(statement.tensor).back();
  if (statement.kind == poly::Statement::Kind::kUpdate || place.offset.empty()) return OtherLanes::kElements;
  int along = -1;  // the dimension that the lanes go along
  int64_t room = INT64_MAX;
  Ranged subscript;
  for (size_t i = 0; i < statement.indices.size(); ++i) {
    if (poly::use_of(instance->indices[i], loop.variable) == poly::IteratorUse::kNone) continue;
    for (int d = 0; d < place.rank(); ++d) {
      const Expr& wanted = statement.subscripts[static_cast<size_t>(d)];
      if (!hi::expr_uses_var(wanted, statement.indices[i])) continue;
      if (along >= 0 || wanted.as<hi::Variable>() == nullptr) return OtherLanes::kElements;
      along = d;
      poly::Iterators here = iterators_;
      here[loop.variable] = value;
      subscript = poly::to_ranged(instance->indices[i], here);
    }
  }
  for (int d = 0; d < place.rank(); ++d) {
    const auto at = static_cast<size_t>(d);
    const bool is_plain = place.tile.empty() || place.tile[at] == 0;
    if (!is_plain || (d == along && place.strides[at] != 1)) return OtherLanes::kElements;
    if (d != along && place.extents[at] > 1) room = std::min(room, place.strides[at]);
  }
  if (along < 0) return OtherLanes::kElements;
  const auto at = static_cast<size_t>(along);
  const int64_t* extent = ir::constant_int(scop_.program->tensor(statement.tensor).extents[at]);
  LoopFacts lanes = facts_;
  lanes.assume(ranged(value.min).expr <= value.expr);
  lanes.assume(value.expr <= ranged(value.max).expr);
  const Ranged position = subscript - place.offset[at];
  if (room != INT64_MAX && !lanes.imply(as_int64(position) <= hi::make_const(Halide::Int(64), room - 1))) {
    return OtherLanes::kElements;
  }
  lanes.assume(as_int64(subscript) <= hi::make_const(Halide::Int(64), *extent - 1));
  return lanes.imply(as_int64(value) <= as_int64(last)) ? OtherLanes::kNobodys : OtherLanes::kElements;
}

LoopKind Generator::kind_of(const loops::For& loop) {
  auto found = kinds_.find(loop.dimension);
  if (found == kinds_.end()) return LoopKind::kSerial;
  LoopKind kind = found->second;
  return kind;
}

Stmt Generator::lower_for(const loops::For& loop) {
  Ranged first = poly::to_ranged(loop.first, iterators_);
  if (loop.once) {
    auto outer = iterators_;
    iterators_[loop.variable] = first;
    Stmt body = lower(loop.body);
    iterators_ = std::move(outer);
    return body;
  }
  const int64_t step = loop.step;
  const Ranged last = poly::to_ranged(loop.last, iterators_);
  LoopKind kind = kind_of(loop);
  bool tile = kind == LoopKind::kVector || kind == LoopKind::kUnrolled;
  int64_t iterations = last.max - first.min + 1;
  int64_t most = kMaxUnroll;
  if (kind == LoopKind::kVector) most = kMaxVectorBits / 8;
  if (tile && step == 1 && first.is_constant() && iterations <= most) return tile_loop(loop, kind, first, last);
  if (tile) kind = LoopKind::kSerial;
  return counted_loop(loop, kind, first, last, step);
}

/// A loop over a tile of constant extent, of which the last iterations may not exist.
Stmt Generator::tile_loop(const loops::For& loop, LoopKind kind, const Ranged& first, const Ranged& last) {
  const int64_t extent = last.max - first.min + 1;
  const Expr full = less_equal(ranged(last.max), last);
  const bool partial = tiles_ == Tiles::kAny && !facts_.imply(full);
  const bool pads = partial && pads_;
  if (kind == LoopKind::kUnrolled && tiles_ == Tiles::kAny && !pads_ && separated_ == 0 && (partial || rare_)) {
    return counted_loop(loop, LoopKind::kSerial, first, last, 1);
  }
  if (tiles_ == Tiles::kFull) need(full);
  std::string name = fresh(loop_name(loop));
  Ranged value = ranged(hi::Variable::make(Halide::Int(32), name), 0, extent - 1) + first;
  if (full_ != nullptr) full_->add_tile_variable(name, extent - 1);
  if (pads) {
    bool vector = kind == LoopKind::kVector;
    padding_.push_back({loop.variable, last, vector ? name : ""});
  }
  if (kind == LoopKind::kUnrolled) unrolled_.insert(name);
  Stmt body = body_with(loop, name, value, pads ? hi::const_true() : less_equal(value, last), false);
  unrolled_.erase(name);
  if (pads) padding_.pop_back();
  bool masked = partial && !pads;
  const bool one_left = kind == LoopKind::kVector && leaves_one_lane(body, extent, options_.vector_bits);
  if (masked && kind == LoopKind::kVector && !one_left) {
    const OtherLanes others = lanes_behind(loop, value, last);
    if (Stmt blend = blend_lanes(body, less_equal(value, last), name, buffers_for(extent), others); blend.defined()) {
      Stmt lanes = ir::make_for(name, 0, static_cast<int>(extent), for_type(kind), blend);
      const Expr any = less_equal(first, last);
      return facts_.imply(any) ? lanes : hi::IfThenElse::make(any, lanes);
    }
  }
  if (masked) body = hi::IfThenElse::make(less_equal(value, last), body);
  if (kind == LoopKind::kVector) {
    if (Stmt reduced = reduce_lanes(body, name, static_cast<int>(extent)); reduced.defined()) return reduced;
    if (stores_to_one_place(body, name) || updates_may_collide(body, name)) kind = LoopKind::kSerial;
  }
  if (kind == LoopKind::kVector && has_condition_on(body, name) &&
      (one_left || !can_predicate(body, name, unrolled_))) {
    kind = LoopKind::kSerial;
  }
  if (masked && kind == LoopKind::kSerial) return counted_loop(loop, kind, first, last, 1);
  return ir::make_for(name, 0, static_cast<int>(extent), for_type(kind), body);
}

Stmt Generator::counted_loop(const loops::For& loop, LoopKind kind, const Ranged& first, const Ranged& last,
                             int64_t step) {
  Ranged count = floor_div(last - first, step) + ranged(1);
  if (count.max > INT32_MAX) return strip_mined_loop(loop, kind, first, last, count, step);
  std::string name = fresh(loop_name(loop));
  Expr variable = hi::Variable::make(Halide::Int(32), name);
  if (full_ != nullptr) full_->add_variable(name);
  if (kind == LoopKind::kParallel) count = max(count, ranged(0));
  Stmt body;
  if (step == 1 && first.is_narrow() && last.is_narrow()) {
    // The variable takes the dimension's values themselves.
    const Ranged value = ranged(variable, first.min, std::max(first.min, last.max));
    body = body_with(loop, name, value, less_equal(first, value) && less_equal(value, last), true);
    return ir::make_for(name, first.expr, as_int32(count), for_type(kind), body);
  }
  Ranged value = first + ranged(variable, 0, std::max<int64_t>(count.max - 1, 0)) * ranged(step);
  value = ranged(value.expr, first.min, std::max(first.min, last.max));
  body = body_with(loop, name, value, less_equal(first, value) && less_equal(value, last), true);
  return ir::make_for(name, 0, as_int32(count), for_type(kind), body);
}

/// Halide's loop variables are int32: a longer loop becomes two.
Stmt Generator::strip_mined_loop(const loops::For& loop, LoopKind kind, const Ranged& first, const Ranged& last,
                                 const Ranged& count, int64_t step) {
  std::string name = fresh(loop_name(loop));
  std::string strip_name = fresh(name + "_strip");
  int64_t strips = (count.max + kStripIterations - 1) / kStripIterations;
  TC_CHECK(strips <= INT32_MAX, "a loop of {} iterations", count.max);
  Ranged strip = ranged(hi::Variable::make(Halide::Int(32), strip_name), 0, strips - 1);
  Ranged start = strip * ranged(kStripIterations);
  Ranged variable = ranged(hi::Variable::make(Halide::Int(32), name), 0, kStripIterations - 1);
  Ranged value = first + (start + variable) * ranged(step);
  if (full_ != nullptr) full_->add_variable(name), full_->add_variable(strip_name);
  Stmt body = body_with(loop, name, value, less_equal(value, last), true);
  Ranged here = max(min(count - start, ranged(kStripIterations)), ranged(0));
  LoopKind inner = kind == LoopKind::kParallel ? LoopKind::kSerial : kind;
  Stmt strip_loop = ir::make_for(name, 0, as_int32(here), for_type(inner), body);
  names_.erase(strip_name);
  return ir::make_for(strip_name, 0, static_cast<int>(strips), for_type(kind), strip_loop);
}

/// The body of a loop whose variable `name`, for which `known` holds, gives the loop's own this value. A step is one of
/// a loop that turns, as opposed to a point of a tile.
Stmt Generator::body_with(const loops::For& loop, const std::string& name, const Ranged& value, const Expr& known,
                          bool is_step) {
  const auto outer = iterators_;
  const auto kinds = kinds_;
  const LoopFacts around = facts_;
  kinds_.erase(loop.dimension);
  iterators_[loop.variable] = value;
  // The interval is a fact, too, of which a comparison of Ranged keeps nothing where it decides.
  facts_.assume(hi::make_const(value.expr.type(), value.min) <= value.expr);
  facts_.assume(value.expr <= hi::make_const(value.expr.type(), value.max));
  facts_.assume(known);
  Stmt body = is_step ? separate_step(loop.body) : lower(loop.body);
  facts_ = around;
  iterators_ = outer;
  kinds_ = kinds;
  names_.erase(name);
  return body;
}

/// The loop's name: that of the first index below that depends on it; a loop over tiles adds "_tile".
std::string Generator::loop_name(const loops::For& loop) {
  std::string result;
  poly::for_each_instance(loop.body, [&](const loops::Instance& instance) {
    const poly::Statement& statement = scop_.statement(instance.statement);
    for (size_t i = 0; i < instance.indices.size() && result.empty(); ++i) {
      poly::IteratorUse use = poly::use_of(instance.indices[i], loop.variable);
      if (use == poly::IteratorUse::kNone) continue;
      result = statement.indices[i] + (use == poly::IteratorUse::kScaled ? "_tile" : "");
    }
  });
  return result.empty() ? loop.variable : result;
}

std::string Generator::fresh(const std::string& wish) {
  std::string name = wish;
  for (int i = 1; !names_.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

}  // namespace

KernelStmt from_poly(const poly::Scop& scop, const FromPolyOptions& options) { return Generator(scop, options).run(); }

}  // namespace tc::cpu
