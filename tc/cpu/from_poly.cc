#include "tc/cpu/from_poly.h"

#include <isl/ast.h>

#include <optional>
#include <set>

#include "tc/cpu/tile_copy.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/loops.h"
#include "tc/support/check.h"

namespace tc::cpu {

using Halide::Expr;
using Halide::Internal::ForType;
using Halide::Internal::Stmt;
namespace hi = Halide::Internal;

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
  std::string iterator;  ///< isl's name
  Ranged last;           ///< the last value that is a point
  std::string variable;  ///< of a vector's lanes; empty for an unrolled loop
};

/// A part of the tree that is made twice: for full tiles and for any.
struct Region {
  std::vector<Expr> conditions;                                       ///< under which every tile is full
  std::map<std::string, std::pair<int64_t, int64_t>> tile_variables;  ///< and their values in full tiles
  std::set<std::string> other_variables;                              ///< of loops that are not tiles
  bool expressible = true;  ///< the conditions can stand outside of the region
};

/// True if some statement below is under a condition that depends on the variable.
bool has_condition_on(const Stmt& body, const std::string& variable) {
  class Finder : public hi::IRVisitor {
   public:
    explicit Finder(const std::string& variable) : variable_(variable) {}
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::IfThenElse* op) override {
      found = found || hi::expr_uses_var(op->condition, variable_);
      IRVisitor::visit(op);
    }
    const std::string& variable_;
  } finder(variable);
  body.accept(&finder);
  return finder.found;
}

/// True if Halide can make vectors of all accesses in the body although they are under a condition: those that do not
/// move, and those that move by one element from where all constant indices are inside of the buffer.
bool can_predicate(const Stmt& body, const std::string& lane, const std::set<std::string>& unrolled) {
  class Finder : public hi::IRVisitor {
   public:
    Finder(const std::string& lane, const std::set<std::string>& unrolled) : lane_(lane), unrolled_(unrolled) {}
    bool fits = true;

   private:
    using IRVisitor::visit;
    void visit(const hi::Load* op) override { check(op->index), IRVisitor::visit(op); }
    void visit(const hi::Store* op) override { check(op->index), IRVisitor::visit(op); }
    void check(const Expr& index) {
      if (!hi::expr_uses_var(index, lane_)) return;
      Expr first = hi::substitute(lane_, 0, index);
      for (const std::string& name : unrolled_) first = hi::substitute(name, 0, first);
      const int64_t* constant = hi::as_const_int(hi::simplify(first));
      fits = fits && lane_step(index, lane_) == 1 && (constant == nullptr || *constant >= 0);
    }
    const std::string& lane_;
    const std::set<std::string>& unrolled_;
  } finder(lane, unrolled);
  body.accept(&finder);
  return finder.fits;
}

/// True if some store goes to the same element in all lanes.
bool stores_to_one_place(const Stmt& body, const std::string& lane) {
  class Finder : public hi::IRVisitor {
   public:
    explicit Finder(const std::string& lane) : lane_(lane) {}
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Store* op) override {
      found = found || !hi::expr_uses_var(op->index, lane_);
      IRVisitor::visit(op);
    }
    const std::string& lane_;
  } finder(lane);
  body.accept(&finder);
  return finder.found;
}

/// The operands of an update `old op value`.
template <typename Operation>
std::optional<std::pair<Expr, Expr>> operands_of(const Expr& expr) {
  const auto* op = expr.as<Operation>();
  if (op == nullptr) return std::nullopt;
  return std::pair(op->a, op->b);
}

/// s = s op x[base + lane], for all lanes: one reduction of a vector. Undefined if the body is something else.
Stmt reduce_lanes(const Stmt& body, const std::string& lane, int lanes) {
  const auto* store = body.as<hi::Store>();
  if (store == nullptr || hi::expr_uses_var(store->index, lane)) return {};
  if (!store->value.type().is_float()) return {};  // the code generator has no such reduction of integers
  auto reduce = [&]<typename Operation>(hi::VectorReduce::Operator op) -> Stmt {
    auto operands = operands_of<Operation>(store->value);
    if (!operands || hi::expr_uses_var(operands->first, lane)) return {};
    const auto* load = operands->second.template as<hi::Load>();
    if (load == nullptr || !hi::is_const_one(load->predicate) || lane_step(load->index, lane) != 1) return {};
    Expr base = hi::simplify(hi::substitute(lane, 0, load->index));
    Expr one = hi::make_one(base.type());
    Expr vector = hi::Load::make(load->type.with_lanes(lanes), load->name, hi::Ramp::make(base, one, lanes), {}, {},
                                 hi::const_true(lanes), {});
    Expr value = Operation::make(operands->first, hi::VectorReduce::make(op, vector, 1));
    return hi::Store::make(store->name, value, store->index, store->param, store->predicate, store->alignment);
  };
  if (Stmt s = reduce.operator()<hi::Add>(hi::VectorReduce::Add); s.defined()) return s;
  if (Stmt s = reduce.operator()<hi::Mul>(hi::VectorReduce::Mul); s.defined()) return s;
  if (Stmt s = reduce.operator()<hi::Min>(hi::VectorReduce::Min); s.defined()) return s;
  return reduce.operator()<hi::Max>(hi::VectorReduce::Max);
}

class Generator {
 public:
  Generator(const poly::Scop& scop, const FromPolyOptions& options)
      : scop_(scop), options_(options), loops_(poly::generate_loops(scop, {.prefixes = false})) {
    for (const ir::Tensor& tensor : scop.program->tensors) {
      places_[tensor.name].push_back(place_of_tensor(*scop.program, tensor.name, options.layouts));
    }
    for (const ir::Scalar& scalar : scop.program->scalars) names_.insert(scalar.name);
    find_bounds();
  }

  KernelStmt run();

 private:
  Stmt lower(const isl::ast_node& node);
  Stmt lower_block(const isl::ast_node_block& node);
  Stmt lower_if(const isl::ast_node_if& node);
  Stmt lower_mark(const isl::ast_node_mark& node);
  Stmt lower_user(const isl::ast_node_user& node);
  Stmt lower_for(const isl::ast_node_for& node);
  std::map<std::string, Ranged> index_values(const poly::Statement& statement, const std::vector<isl::ast_expr>& values,
                                             const poly::Iterators& iterators, bool in_domain) const;
  Stmt lower_promotion(const poly::Promotion& promotion, const poly::MarkPlace& place, const isl::ast_node& child);
  Stmt separate(const std::function<Stmt()>& make);

  Stmt counted_loop(const isl::ast_node_for& node, LoopKind kind, const Ranged& first, const Ranged& last,
                    int64_t step);
  Stmt strip_mined_loop(const isl::ast_node_for& node, LoopKind kind, const Ranged& first, const Ranged& count,
                        int64_t step);
  Stmt tile_loop(const isl::ast_node_for& node, LoopKind kind, const Ranged& first, const Ranged& last);
  Stmt body_with(const isl::ast_node_for& node, const std::string& name, const Ranged& value);

  void find_bounds();
  std::vector<KernelArgument> arguments() const;
  LoopKind kind_of(const isl::ast_node_for& node);
  bool vectorizable(const isl::ast_node& node) const;
  std::string loop_name(const isl::ast_node_for& node);
  std::string fresh(const std::string& wish);
  void assume(const Expr& condition);

  const poly::Scop& scop_;
  const FromPolyOptions& options_;
  poly::LoopAst loops_;
  poly::Iterators iterators_;
  std::map<std::string, std::vector<Place>> places_;                        ///< per tensor, the present place last
  std::map<std::string, std::vector<std::pair<int64_t, int64_t>>> bounds_;  ///< of the indices, per statement
  std::map<int, LoopKind> kinds_;  ///< by schedule dimension, for loops not yet met
  std::set<std::string> names_;    ///< of loop variables and buffers in scope
  std::vector<BoundsCheck> checks_;
  Tiles tiles_ = Tiles::kUnknown;
  Region* region_ = nullptr;
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
  if (!checks_.empty()) result.push_back(buffer_argument(kFaultBuffer, Halide::Int(64), 2));
  return result;
}

KernelStmt Generator::run() {
  Stmt body = lower(loops_.root);
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
  result.checks = std::move(checks_);
  return result;
}

Stmt Generator::lower(const isl::ast_node& node) {
  if (node.isa<isl::ast_node_for>()) return lower_for(node.as<isl::ast_node_for>());
  if (node.isa<isl::ast_node_if>()) return lower_if(node.as<isl::ast_node_if>());
  if (node.isa<isl::ast_node_block>()) return lower_block(node.as<isl::ast_node_block>());
  if (node.isa<isl::ast_node_mark>()) return lower_mark(node.as<isl::ast_node_mark>());
  if (node.isa<isl::ast_node_user>()) return lower_user(node.as<isl::ast_node_user>());
  TC_CHECK(false, "a kind of node that isl does not have");
}

Stmt Generator::lower_block(const isl::ast_node_block& node) {
  isl::ast_node_list children = node.children();
  std::vector<Stmt> parts;
  auto kinds = kinds_;
  for (int i = 0, n = static_cast<int>(isl_ast_node_list_size(children.get())); i < n; ++i) {
    kinds_ = kinds;
    parts.push_back(lower(children.at(i)));
  }
  // An empty domain makes an empty block.
  return parts.empty() ? hi::Evaluate::make(0) : hi::Block::make(parts);
}

Stmt Generator::lower_if(const isl::ast_node_if& node) {
  Expr condition = poly::to_condition(node.cond(), iterators_);
  Stmt then_case = lower(node.then_node());
  Stmt else_case = node.has_else_node() ? lower(node.else_node()) : Stmt();
  if (hi::is_const_one(condition)) return then_case;
  return hi::IfThenElse::make(condition, then_case, else_case);
}

Stmt Generator::lower_mark(const isl::ast_node_mark& node) {
  const poly::MarkPlace& place = loops_.place_of(node);
  auto kinds = kinds_;
  Stmt result;
  auto child = [&] { return lower(node.node()); };
  if (place.name == "parallel") {
    kinds_[place.depth] = LoopKind::kParallel;
    result = child();
  } else if (place.name == "vector" || place.name == "unroll") {
    LoopKind kind = place.name == "vector" ? LoopKind::kVector : LoopKind::kUnrolled;
    for (int i = 0; i < place.members; ++i) kinds_[place.depth + i] = kind;
    result = separate(child);
  } else if (place.name == kSeparateMark || place.name == kPadMark) {
    const bool outer = pads_;
    pads_ = place.name == kPadMark && tiles_ == Tiles::kUnknown;
    result = separate(child);
    pads_ = outer;
  } else if (place.name.rfind("promote:", 0) == 0) {
    auto promotion = std::find_if(scop_.promotions.begin(), scop_.promotions.end(),
                                  [&](const poly::Promotion& p) { return "promote:" + p.name == place.name; });
    TC_CHECK(promotion != scop_.promotions.end(), "the mark '{}' names no promotion", place.name);
    result = lower_promotion(*promotion, place, node.node());
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
  auto checks = checks_.size();
  Region region;
  region_ = &region;
  tiles_ = Tiles::kFull;
  Stmt full = make();
  region_ = nullptr;
  tiles_ = Tiles::kUnknown;
  if (region.expressible && region.conditions.empty()) return full;
  checks_.resize(checks);
  kinds_ = kinds;
  tiles_ = Tiles::kAny;
  Stmt any = make();
  tiles_ = Tiles::kUnknown;
  if (!region.expressible) return any;
  Expr condition = region.conditions.front();
  for (size_t i = 1; i < region.conditions.size(); ++i) condition = condition && region.conditions[i];
  return hi::IfThenElse::make(condition, full, any);
}

/// Makes a condition one of those under which the region's tiles are full. It is linear in each loop variable, so it
/// holds for all values of a tile's variables if it does for the first and the last.
void Generator::assume(const Expr& condition) {
  TC_CHECK(region_ != nullptr, "a tile is taken for full outside of any region");
  std::vector<Expr> cases{condition};
  for (const auto& [name, bounds] : region_->tile_variables) {
    if (!hi::expr_uses_var(condition, name)) continue;
    std::vector<Expr> both;
    for (const Expr& c : cases) {
      both.push_back(hi::substitute(name, static_cast<int>(bounds.first), c));
      both.push_back(hi::substitute(name, static_cast<int>(bounds.second), c));
    }
    cases = std::move(both);
  }
  for (const Expr& c : cases) {
    Expr simple = hi::simplify(c);
    if (hi::is_const_one(simple)) continue;
    bool inner = hi::is_const_zero(simple);
    for (const std::string& name : region_->other_variables) inner = inner || hi::expr_uses_var(simple, name);
    if (inner) region_->expressible = false;
    bool known = std::any_of(region_->conditions.begin(), region_->conditions.end(),
                             [&](const Expr& other) { return hi::equal(other, simple); });
    if (!known) region_->conditions.push_back(simple);
  }
}

Stmt Generator::lower_user(const isl::ast_node_user& node) {
  auto [id, values] = poly::instance_of(node);
  const poly::Statement& statement = scop_.statement(id);
  BodyContext context;
  context.program = scop_.program.get();
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor).back(); };
  if (options_.check_bounds) context.checks = &checks_;
  context.indices = index_values(statement, values, iterators_, padding_.empty());
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
    context.safe_indices = index_values(statement, values, inside, true);
    context.held_indices = index_values(statement, values, held, true);
  }
  return statement_body(statement, context);
}

std::map<std::string, Ranged> Generator::index_values(const poly::Statement& statement,
                                                      const std::vector<isl::ast_expr>& values,
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

Stmt Generator::lower_promotion(const poly::Promotion& promotion, const poly::MarkPlace& mark,
                                const isl::ast_node& child) {
  std::vector<Ranged> offset;
  for (const isl::ast_expr& expr : mark.offsets) offset.push_back(poly::to_ranged(expr, iterators_));
  std::vector<Place>& stack = places_.at(promotion.tensor);
  Place tensor = stack.back();
  Place buffer = place_of_promotion(*scop_.program, promotion, offset);
  buffer.name = fresh(promotion.name);
  // A layout in blocks has room for whole blocks.
  buffer.padded = pads_ || !promotion.tile.empty();

  CopyOptions copy;
  copy.parallel = iterators_.empty() && buffer.span() >= kParallelCopyElements;
  copy.vector_lanes = options_.vector_bits / (8 * storage_type(buffer.type).bytes());
  if (promotion.in_registers && tiles_ == Tiles::kFull) copy.form = CopyForm::kFull;
  if (promotion.in_registers && tiles_ == Tiles::kAny && pads_) copy.form = CopyForm::kGuarded;
  if (copy.form == CopyForm::kFull && (promotion.copy_in || promotion.copy_out)) {
    for (const Expr& condition : full_conditions(buffer, tensor)) assume(condition);
  }
  stack.push_back(buffer);
  Stmt body = lower(child);
  stack.pop_back();
  names_.erase(buffer.name);

  std::vector<Stmt> parts;
  if (promotion.copy_in) parts.push_back(copy_tile(tensor, buffer, CopyDirection::kIn, copy));
  parts.push_back(body);
  if (promotion.copy_out) parts.push_back(copy_tile(tensor, buffer, CopyDirection::kOut, copy));
  int64_t bytes = buffer.span() * storage_type(buffer.type).bytes();
  auto memory = bytes <= kStackBytes ? Halide::MemoryType::Stack : Halide::MemoryType::Heap;
  return hi::Allocate::make(buffer.name, storage_type(buffer.type), memory, allocation_extents(buffer),
                            hi::const_true(), hi::Block::make(parts));
}

LoopKind Generator::kind_of(const isl::ast_node_for& node) {
  auto found = kinds_.find(poly::LoopAst::depth_of(node));
  if (found == kinds_.end()) return LoopKind::kSerial;
  LoopKind kind = found->second;
  if (kind == LoopKind::kVector && !vectorizable(node.body())) return LoopKind::kSerial;
  return kind;
}

/// A run-time check has to stop a loop at once, which a vector cannot do.
bool Generator::vectorizable(const isl::ast_node& node) const {
  if (!options_.check_bounds) return true;
  bool result = true;
  poly::for_each_instance(node, [&](const std::string& id, const std::vector<isl::ast_expr>&) {
    result = result && !has_data_dependent_subscript(scop_.statement(id), *scop_.program);
  });
  return result;
}

Stmt Generator::lower_for(const isl::ast_node_for& node) {
  std::string isl_name = node.iterator().as<isl::ast_expr_id>().id().name();
  Ranged first = poly::to_ranged(node.init(), iterators_);
  if (node.is_degenerate()) {
    auto outer = iterators_;
    iterators_[isl_name] = first;
    Stmt body = lower(node.body());
    iterators_ = std::move(outer);
    return body;
  }
  int64_t step = poly::to_int64(node.inc().as<isl::ast_expr_int>().val());
  isl::ast_expr condition = node.cond();
  auto comparison = isl_ast_expr_get_op_type(condition.get());
  TC_CHECK(comparison == isl_ast_expr_op_le || comparison == isl_ast_expr_op_lt, "a loop that runs while {}",
           condition.to_C_str());
  Ranged last = poly::to_ranged(isl::manage(isl_ast_expr_get_op_arg(condition.get(), 1)), iterators_);
  if (comparison == isl_ast_expr_op_lt) last = last - ranged(1);

  LoopKind kind = kind_of(node);
  bool tile = kind == LoopKind::kVector || kind == LoopKind::kUnrolled;
  int64_t iterations = last.max - first.min + 1;
  int64_t most = kMaxUnroll;
  if (kind == LoopKind::kVector) most = kMaxVectorBits / 8;
  if (tile && step == 1 && first.is_constant() && iterations <= most) return tile_loop(node, kind, first, last);
  if (tile) kind = LoopKind::kSerial;
  return counted_loop(node, kind, first, last, step);
}

/// A loop over a tile of constant extent, of which the last iterations may not exist.
Stmt Generator::tile_loop(const isl::ast_node_for& node, LoopKind kind, const Ranged& first, const Ranged& last) {
  const int64_t extent = last.max - first.min + 1;
  const Expr full = less_equal(ranged(last.max), last);
  const bool partial = tiles_ == Tiles::kAny && !hi::is_const_one(full);
  if (partial && kind == LoopKind::kUnrolled && !pads_) {
    return counted_loop(node, LoopKind::kSerial, first, last, 1);
  }
  if (tiles_ == Tiles::kFull) assume(full);
  std::string name = fresh(loop_name(node));
  Ranged value = ranged(hi::Variable::make(Halide::Int(32), name), 0, extent - 1) + first;
  if (region_ != nullptr) region_->tile_variables[name] = {0, extent - 1};
  bool pads = partial && pads_;
  if (pads) {
    bool vector = kind == LoopKind::kVector;
    padding_.push_back({node.iterator().as<isl::ast_expr_id>().id().name(), last, vector ? name : ""});
  }
  if (kind == LoopKind::kUnrolled) unrolled_.insert(name);
  Stmt body = body_with(node, name, value);
  unrolled_.erase(name);
  if (pads) padding_.pop_back();
  if (partial && !pads) body = hi::IfThenElse::make(less_equal(value, last), body);
  if (kind == LoopKind::kVector) {
    if (Stmt reduced = reduce_lanes(body, name, static_cast<int>(extent)); reduced.defined()) return reduced;
    if (stores_to_one_place(body, name)) kind = LoopKind::kSerial;
  }
  if (kind == LoopKind::kVector && has_condition_on(body, name) && !can_predicate(body, name, unrolled_)) {
    kind = LoopKind::kSerial;
  }
  return hi::For::make(name, 0, static_cast<int>(extent), for_type(kind), Halide::DeviceAPI::None, body);
}

Stmt Generator::counted_loop(const isl::ast_node_for& node, LoopKind kind, const Ranged& first, const Ranged& last,
                             int64_t step) {
  Ranged count = floor_div(last - first, step) + ranged(1);
  if (count.max > INT32_MAX) return strip_mined_loop(node, kind, first, count, step);
  std::string name = fresh(loop_name(node));
  Expr variable = hi::Variable::make(Halide::Int(32), name);
  if (kind == LoopKind::kParallel) count = max(count, ranged(0));
  Stmt body;
  if (step == 1 && first.is_narrow() && last.is_narrow()) {
    // The variable takes isl's values themselves.
    body = body_with(node, name, ranged(variable, first.min, std::max(first.min, last.max)));
    return hi::For::make(name, first.expr, as_int32(count), for_type(kind), Halide::DeviceAPI::None, body);
  }
  Ranged value = first + ranged(variable, 0, std::max<int64_t>(count.max - 1, 0)) * ranged(step);
  value = ranged(value.expr, first.min, std::max(first.min, last.max));
  body = body_with(node, name, value);
  return hi::For::make(name, 0, as_int32(count), for_type(kind), Halide::DeviceAPI::None, body);
}

/// Halide's loop variables are int32: a longer loop becomes two.
Stmt Generator::strip_mined_loop(const isl::ast_node_for& node, LoopKind kind, const Ranged& first, const Ranged& count,
                                 int64_t step) {
  std::string name = fresh(loop_name(node));
  std::string strip_name = fresh(name + "_strip");
  int64_t strips = (count.max + kStripIterations - 1) / kStripIterations;
  TC_CHECK(strips <= INT32_MAX, "a loop of {} iterations", count.max);
  Ranged strip = ranged(hi::Variable::make(Halide::Int(32), strip_name), 0, strips - 1);
  Ranged start = strip * ranged(kStripIterations);
  Ranged variable = ranged(hi::Variable::make(Halide::Int(32), name), 0, kStripIterations - 1);
  Ranged value = first + (start + variable) * ranged(step);
  if (region_ != nullptr) region_->other_variables.insert(strip_name);
  Stmt body = body_with(node, name, value);
  Ranged here = max(min(count - start, ranged(kStripIterations)), ranged(0));
  LoopKind inner = kind == LoopKind::kParallel ? LoopKind::kSerial : kind;
  Stmt loop = hi::For::make(name, 0, as_int32(here), for_type(inner), Halide::DeviceAPI::None, body);
  names_.erase(strip_name);
  return hi::For::make(strip_name, 0, static_cast<int>(strips), for_type(kind), Halide::DeviceAPI::None, loop);
}

/// The body of a loop whose variable `name` gives isl's iterator this value.
Stmt Generator::body_with(const isl::ast_node_for& node, const std::string& name, const Ranged& value) {
  std::string isl_name = node.iterator().as<isl::ast_expr_id>().id().name();
  auto outer = iterators_;
  auto kinds = kinds_;
  kinds_.erase(poly::LoopAst::depth_of(node));
  if (region_ != nullptr && region_->tile_variables.count(name) == 0) region_->other_variables.insert(name);
  iterators_[isl_name] = value;
  Stmt body = lower(node.body());
  iterators_ = std::move(outer);
  kinds_ = std::move(kinds);
  names_.erase(name);
  return body;
}

/// The loop's name: that of the first index below that depends on it; a loop over tiles adds "_tile".
std::string Generator::loop_name(const isl::ast_node_for& node) {
  std::string iterator = node.iterator().as<isl::ast_expr_id>().id().name();
  std::string result;
  poly::for_each_instance(node.body(), [&](const std::string& id, const std::vector<isl::ast_expr>& indices) {
    const poly::Statement& statement = scop_.statement(id);
    for (size_t i = 0; i < indices.size() && result.empty(); ++i) {
      poly::IteratorUse use = poly::use_of(indices[i], iterator);
      if (use == poly::IteratorUse::kNone) continue;
      result = statement.indices[i] + (use == poly::IteratorUse::kScaled ? "_tile" : "");
    }
  });
  return result.empty() ? iterator : result;
}

std::string Generator::fresh(const std::string& wish) {
  std::string name = wish;
  for (int i = 1; !names_.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

}  // namespace

KernelStmt from_poly(const poly::Scop& scop, const FromPolyOptions& options) { return Generator(scop, options).run(); }

}  // namespace tc::cpu
