#include <algorithm>

#include "tc/gpu/lower/translate.h"
#include "tc/gpu/rewrite/exponential.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/layouts.h"
#include "tc/ir/specialise.h"
#include "tc/support/check.h"

/// What a contraction's kernel does with its sums.
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

/// Where the sum of a group of threads is in shared memory: threads that write one register write neighbours.
std::vector<Expr> ContractionBuilder::sums_subscripts(const Expr& group) const {
  std::vector<Expr> result = sum_subscripts();
  result.push_back(group);
  result.push_back(point_thread_);
  return result;
}

/// The products that have sums of their own.
std::vector<const ContractionBuilder*> ContractionBuilder::sums() const {
  std::vector<const ContractionBuilder*> result = {this};
  for (const ContractionBuilder& product : further_) {
    if (!product.goes_on_) result.push_back(&product);
  }
  return result;
}

NodePtr ContractionBuilder::put_sums() const {
  return over_registers(
      all_axes(), [&] { return build::store(sums_, sums_subscripts(part_), build::read(sum_, sum_subscripts())); });
}

/// Lays out the sums of all groups, for each group to finish its share of the points: the last product's, those of
/// others are there.
NodePtr ContractionBuilder::exchange_sums() { return build::sequence({sums().back()->put_sums(), build::barrier()}); }

/// Adds what the groups have for one point.
NodePtr ContractionBuilder::add_groups(const ContractionBuilder& product) {
  const std::string group = names_.fresh("other_part");
  const Expr more = build::read(product.sums_, sums_subscripts(build::var(group)));
  const Expr total = build::read(product.total_, {result_lane()});
  return build::sequence(
      {build::store(product.total_, {result_lane()}, build::read(product.sums_, sums_subscripts(0))),
       build::unrolled(group, 1, static_cast<int>(plan_.groups),
                       build::store(product.total_, {result_lane()}, combine(product.c_.update.assign, total, more)))});
}

Expr ContractionBuilder::sum_at(const ContractionBuilder& product) const {
  if (plan_.groups > 1) return build::read(product.total_, {result_lane()});
  if (plan_.cluster_parts > 1)
    return build::read(cluster_totals_, {build::var(share_), build::var(low_[plan_.order[0]])});
  if (piece_) return build::read(piece_->sums.at(product.sums_in_registers().name), piece_->at);
  return build::read(product.sums_in_registers(), sum_subscripts());
}

/// The points of a thread; where several groups of threads have the same points, this group's share of them.
NodePtr ContractionBuilder::over_points(const Body& body) {
  if (plan_.cluster_parts > 1) {
    const size_t axis = plan_.order[0];
    const auto lanes = static_cast<int>(plan_.parallel[axis].group);
    return over_groups(store_axis_ < 0 ? build::unrolled(low_[axis], 0, lanes, body()) : body());
  }
  if (plan_.groups == 1) return over_registers(all_axes(), body, store_axis_);
  std::vector<std::pair<std::string, int64_t>> digits;  // outermost first
  int64_t units = 1;
  for (size_t axis : all_axes()) {
    const AxisPlan& a = plan_.parallel[axis];
    if (a.registers > a.group) digits.emplace_back(high_[axis], a.registers / a.group);
    if (a.group > 1 && static_cast<int>(axis) != store_axis_) digits.emplace_back(low_[axis], a.group);
  }
  for (const auto& [name, count] : digits) units *= count;
  const int64_t each = (units + plan_.groups - 1) / plan_.groups;
  const std::string share = names_.fresh("share");
  Expr unit = part_ * static_cast<int>(each);
  if (each > 1) unit = unit + build::var(share);
  NodePtr result = body();
  int64_t stride = 1;
  for (size_t d = digits.size(); d-- > 0;) {
    Expr digit = unit / static_cast<int>(stride);
    if (d > 0) digit = digit % static_cast<int>(digits[d].second);
    result = build::let(digits[d].first, hi::simplify(digit), result);
    stride *= digits[d].second;
  }
  if (each * plan_.groups != units) result = build::if_then(unit < static_cast<int>(units), result);
  return each > 1 ? build::unrolled(share, 0, static_cast<int>(each), result) : result;
}

/// What is done at a point, in order.
std::vector<ContractionBuilder::PointStep> ContractionBuilder::point_steps() const {
  std::vector<PointStep> steps;
  for (const poly::Statement& statement : c_.before) steps.push_back({&statement, nullptr});
  steps.push_back({&c_.update, this});
  for (size_t s = 0, f = 0; s <= c_.after.size(); ++s) {
    for (; f < further_.size() && further_[f].c_.place == s; ++f) {
      if (!further_[f].goes_on_) steps.push_back({&further_[f].c_.update, &further_[f]});
    }
    if (s < c_.after.size()) steps.push_back({&c_.after[s], nullptr});
  }
  return steps;
}

/// Whether somebody else may look at the tensor.
bool ContractionBuilder::is_seen(const std::string& tensor) const {
  return gpu::is_seen(scop_, c_, tensor, fills_ && fills_->link->tensor == tensor ? fills_->reader : "");
}

bool ContractionBuilder::needs_old_value(const std::string& tensor) const {
  for (const auto& [statement, product] : point_steps()) {
    const bool adds = product && statement->assign != ir::Assign::kSet;
    if (product ? adds && statement->tensor == tensor : reads_tensor(statement->value, tensor)) return true;
    if (statement->tensor == tensor) return false;
  }
  return false;
}

const std::vector<Expr>& ContractionBuilder::element_of(const std::string& tensor) const {
  if (tensor == c_.update.tensor) return c_.update.subscripts;
  for (const PointStep& step : point_steps()) {
    if (step.statement->tensor == tensor) return step.statement->subscripts;
  }
  TC_CHECK(false, "the contraction does not write '{}'", tensor);
}

std::vector<Expr> ContractionBuilder::element_here(const std::string& tensor) const {
  return element_at(element_of(tensor), context_at(true));
}

/// Subscripts over a statement's indices, as narrow as they go.
std::vector<Expr> ContractionBuilder::element_at(const std::vector<Expr>& subscripts,
                                                 const BodyContext& context) const {
  std::vector<Expr> result;
  for (const Expr& subscript : subscripts) {
    const Expr value = instance_value(subscript, context);
    const auto* cast = value.as<hi::Cast>();
    result.push_back(hi::simplify(cast && cast->value.type() == Halide::Int(32) ? cast->value : value));
  }
  return result;
}

/// Whether the groups of registers along the fastest axis are aligned vectors of the tensor.
bool ContractionBuilder::stores_vectors(const std::string& tensor) const {
  const size_t axis = plan_.order[0];
  const AxisPlan& a = plan_.parallel[axis];
  const std::string& name = c_.parallel[axis].name;
  const std::vector<Expr>& element = element_of(tensor);
  // Of C(m + n, n) neighbours along n are in different rows.
  const auto uses_axis = [&](const Expr& subscript) { return ir::mentions(subscript, name); };
  const bool lies_in_row = std::none_of(element.begin(), element.end() - 1, uses_axis);
  const Expr offset = hi::simplify(element.back() - hi::Variable::make(ir::index_type(), name));
  const int64_t* constant = ir::constant_int(offset);
  const int64_t bytes = a.group * program_.tensor(tensor).type.bytes();
  return lies_in_row && constant && a.group > 1 && bytes <= 16 && 16 % bytes == 0 &&
         (*constant + c_.parallel[axis].begin) % a.group == 0 && c_.parallel[axis].extent % a.group == 0 &&
         (a.blocks == 1 || a.tile % a.group == 0) && ir::row_divisor(program_.tensor(tensor)) % a.group == 0;
}

Expr ContractionBuilder::result_lane() const {
  return store_axis_ < 0 ? Expr(0) : build::var(low_[static_cast<size_t>(store_axis_)]);
}

/// Where a result's registers have a point's value.
std::vector<Expr> ContractionBuilder::result_at(const std::string& name) const {
  std::vector<Expr> at = results_.at(name).rank() > 1 ? matrix_ : std::vector<Expr>();
  at.push_back(result_lane());
  return at;
}

/// A value over parallel axes, the block's results among what it reads.
Expr ContractionBuilder::point_value(const Expr& value, const BodyContext& context) {
  struct Results : hi::IRMutator {
    explicit Results(ContractionBuilder& b) : builder(b) {}
    ContractionBuilder& builder;
    std::map<std::string, Expr> read;
    using hi::IRMutator::visit;
    /// A float32 that has been rounded to 16 bits, and is a float32 again.
    Expr visit(const hi::Cast* op) override {
      const auto* element = op->value.as<hi::Call>();
      const auto result = element == nullptr ? builder.results_.end() : builder.results_.find(element->name);
      if (result == builder.results_.end() || result->second.type == element->type || result->second.type != op->type) {
        return IRMutator::visit(op);
      }
      const std::string name = "unrounded " + element->name;
      read[name] = build::read(result->second, builder.result_at(result->first));
      return hi::Variable::make(op->type, name);
    }
    Expr visit(const hi::Call* op) override {
      const auto result = builder.results_.find(op->name);
      const auto row = builder.row_values_.find(op->name);
      if (row != builder.row_values_.end()) {
        std::vector<Expr> registers;
        for (size_t axis : row->second.axes) registers.push_back(builder.register_at(axis));
        read["result " + op->name] = build::read(row->second.sums, registers);
      } else if (result != builder.results_.end()) {
        const Expr value = build::read(result->second, builder.result_at(result->first));
        read["result " + op->name] = value.type() == op->type ? value : hi::Cast::make(op->type, value);
      } else {
        return IRMutator::visit(op);
      }
      return hi::Variable::make(op->type, "result " + op->name);
    }
  } results(*this);
  Expr chosen = value;
  for (const Expr& condition : assumed_) chosen = value_where(chosen, condition, true);
  const Expr changed = results.mutate(chosen);
  return hi::substitute(results.read, instance_value(changed, context));
}

NodePtr ContractionBuilder::assign_point(const poly::Statement& statement) {
  const Tensor& result = results_.at(statement.tensor);
  const Expr exact = unrounded(statement.tensor);
  Expr value = point_value(exact.defined() ? exact : statement.value, context_at(true));
  if (value.type() != result.type) value = hi::Cast::make(result.type, value);
  return carrying(statement, context_at(true), build::store(result, result_at(statement.tensor), value));
}

NodePtr ContractionBuilder::point(const std::vector<std::string>& written, const PointPart& part) {
  std::vector<NodePtr> parts;
  if (!part.from.empty()) {
    const Tensor& result = results_.at(part.from);
    Expr value = build::read(sum_, sum_subscripts());
    if (value.type() != result.type) value = hi::Cast::make(result.type, value);
    parts.push_back(build::store(result, result_at(part.from), value));
  }
  for (const std::string& name : written) {
    if (part.first > 0 || !needs_old_value(name)) continue;
    const ir::Tensor& tensor = program_.tensor(name);
    const Expr old = hi::Call::make(tensor.type, name, element_here(name), hi::Call::PureExtern);
    parts.push_back(build::store(results_.at(name), result_at(name), old));
  }
  if (plan_.groups > 1) {
    for (const ContractionBuilder* product : sums()) parts.push_back(add_groups(*product));
  }
  const std::vector<PointStep> steps = point_steps();
  const auto is_started = [&](size_t step) {  // an identity, to which the next step adds a product's sum
    return steps[step].statement->kind == poly::Statement::Kind::kInit && step + 1 < steps.size() &&
           steps[step + 1].product && steps[step + 1].statement->tensor == steps[step].statement->tensor;
  };
  for (size_t s = part.first; s < std::min(part.last, steps.size()); ++s) {
    const poly::Statement& statement = *steps[s].statement;
    if (!steps[s].product) {
      if (!is_started(s)) parts.push_back(assign_point(statement));
      continue;
    }
    const Tensor& result = results_.at(statement.tensor);
    const Expr sum = sum_at(*steps[s].product);
    const Expr old = build::read(result, result_at(statement.tensor));
    const bool alone = s > 0 && is_started(s - 1);
    NodePtr add = build::store(result, result_at(statement.tensor), alone ? sum : combine(statement.assign, old, sum));
    parts.push_back(alone ? carrying(*steps[s - 1].statement, context_at(true), add) : add);
  }
  return build::sequence(std::move(parts));
}

/// The points that a thread finishes at once, within the ranges of all axes.
Expr ContractionBuilder::is_inside() const {
  Expr inside;
  if (is_whole_) return inside;
  for (size_t i = 0; i < c_.parallel.size(); ++i) {
    if (!is_partial(i) || (slab_axis_ && is_free_of_memory(i))) continue;
    Expr value = hi::simplify(first_[i] + local(i));
    if (static_cast<int>(i) == store_axis_) value = hi::simplify(hi::substitute(low_[i], Expr(0), value));
    const Expr mine = value < static_cast<int>(c_.parallel[i].begin + c_.parallel[i].extent);
    inside = inside.defined() ? inside && mine : mine;
  }
  return inside;
}

NodePtr ContractionBuilder::store_results(const std::string& name) {
  const Tensor to = global_tensor(program_.tensor(name), true);
  if (store_axis_ < 0 || !stores_vectors(name)) {
    return over_lanes(build::store(to, element_here(name), build::read(results_.at(name), result_at(name))));
  }
  const auto axis = static_cast<size_t>(store_axis_);
  std::vector<Expr> first = element_here(name);
  for (Expr& e : first) e = hi::simplify(hi::substitute(low_[axis], Expr(0), e));
  return build::move(to, first, results_.at(name), {0}, static_cast<int>(plan_.parallel[axis].group));
}

/// At the first of a group of lanes, where the last axis counts runs.
BodyContext ContractionBuilder::run_context(int64_t run) const {
  BodyContext context = context_at(true);
  const size_t last = c_.parallel.size() - 1;
  const Expr first = hi::substitute(low_[last], Expr(0), first_[last] + local(last));
  const Expr number = hi::simplify(first / static_cast<int>(c_.run) + static_cast<int>(run));
  context.indices[c_.parallel[last].name] = poly::ranged(number, 0, c_.parallel[last].extent / c_.run - 1);
  return context;
}

/// One run's element of a statement that pools, at one value of what it reduces over.
NodePtr ContractionBuilder::pool_run(const poly::Statement& statement, int64_t run, const BodyContext& context) {
  struct Results : hi::IRMutator {
    Results(const ContractionBuilder& b, int64_t run) : builder(b), run(run) {}
    const ContractionBuilder& builder;
    int64_t run;
    std::map<std::string, Expr> read;
    using hi::IRMutator::visit;
    Expr visit(const hi::Call* op) override {
      const auto pooled = builder.pooled_.find(op->name);
      const auto result = builder.results_.find(op->name);
      if (pooled != builder.pooled_.end()) return keep(op, build::read(pooled->second, {static_cast<int>(run)}));
      if (result == builder.results_.end()) return IRMutator::visit(op);
      const std::vector<Expr>& element = builder.element_of(op->name);
      const std::string& axis = builder.c_.parallel.back().name;
      for (size_t d = 0; d < element.size(); ++d) {
        if (!ir::mentions(element[d], axis)) continue;
        const Expr first = hi::substitute(axis, hi::make_zero(ir::index_type()), op->args[d] - element[d]);
        const int64_t* within = ir::constant_int(hi::simplify(first));
        TC_CHECK(within != nullptr, "a run's elements of '{}' are not constants apart", op->name);
        return keep(op, build::read(result->second, {static_cast<int>(run * builder.c_.run + *within)}));
      }
      TC_CHECK(false, "'{}' has no axis of runs", op->name);
    }
    Expr keep(const hi::Call* op, const Expr& value) {
      const std::string name = fmt::format("result {}", read.size());
      read[name] = value;
      return hi::Variable::make(op->type, name);
    }
  } results(*this, run);
  const Expr changed = results.mutate(statement.value);
  Expr value = hi::substitute(results.read, instance_value(changed, context));
  const Tensor& to = pooled_.at(statement.tensor);
  if (statement.kind == poly::Statement::Kind::kUpdate) {
    value = combine(statement.assign, build::read(to, {static_cast<int>(run)}), value);
  }
  if (value.type() != to.type) value = hi::Cast::make(to.type, value);
  return carrying(statement, context, build::store(to, {static_cast<int>(run)}, value));
}

/// All that is made of the runs in a group of lanes, statement by statement, and its stores.
NodePtr ContractionBuilder::pool_results() {
  const int64_t runs = plan_.parallel[static_cast<size_t>(store_axis_)].group / c_.run;
  std::vector<NodePtr> parts;
  std::map<std::string, const Pooled*> written;
  for (const Pooled& pooled : c_.pooled) {
    written.emplace(pooled.statement.tensor, &pooled);
    for (int64_t run = 0; run < runs; ++run) {
      if (pooled.reduction.empty()) {
        parts.push_back(pool_run(pooled.statement, run, run_context(run)));
        continue;
      }
      const Axis& axis = pooled.reduction.front();
      for (int64_t i = axis.begin; i < axis.begin + axis.extent; ++i) {
        poly::Statement one = pooled.statement;
        one.value = hi::substitute(axis.name, hi::make_const(ir::index_type(), i), one.value);
        BodyContext context = run_context(run);
        context.indices[axis.name] = poly::ranged(i);
        parts.push_back(pool_run(one, run, context));
      }
    }
  }
  for (const auto& [name, pooled] : written) {
    if (!is_seen(name)) continue;
    const Tensor to = global_tensor(program_.tensor(name), true);
    for (int64_t run = 0; run < runs; ++run) {
      parts.push_back(build::store(to, element_at(pooled->statement.subscripts, run_context(run)),
                                   build::read(pooled_.at(name), {static_cast<int>(run)})));
    }
  }
  NodePtr result = build::sequence(std::move(parts));
  for (const auto& [name, tensor] : pooled_) result = build::allocate(tensor, result);
  return result;
}

NodePtr ContractionBuilder::over_lanes(const NodePtr& body) const {
  if (store_axis_ < 0) return body;
  const auto axis = static_cast<size_t>(store_axis_);
  return build::unrolled(low_[axis], 0, static_cast<int>(plan_.parallel[axis].group), body);
}

/// The same, each part of a sequence over all lanes before the next one.
std::vector<NodePtr> ContractionBuilder::over_lanes_each(const NodePtr& body) const {
  std::vector<NodePtr> result;
  const auto add = [&](const NodePtr& part) { result.push_back(over_lanes(part)); };
  tile::match(
      *body, [&](const tile::Sequence& n) { std::for_each(n.children.begin(), n.children.end(), add); },
      [&](const tile::OneOf<tile::For, tile::If, tile::Let, tile::Allocate, tile::Ring> auto&) { add(body); },
      [&](const tile::Synchronisation auto&) { add(body); },
      [&](const tile::OneOf<tile::Store, tile::Atomic, tile::Move, tile::Shuffle, tile::MatMul, tile::MatrixLoad,
                            tile::MatrixStore, tile::BoxCopy, tile::BoxStore, tile::ClusterLoad,
                            tile::WarpgroupMatMul> auto&) { add(body); });
  return result;
}

/// Leaves a point's value where its sum was.
NodePtr ContractionBuilder::keep_in_sums(const std::string& tensor) const {
  Expr value = build::read(results_.at(tensor), result_at(tensor));
  if (value.type() != sum_.type) value = hi::Cast::make(sum_.type, value);
  return build::store(sum_, sum_subscripts(), value);
}

/// The registers of a point.
NodePtr ContractionBuilder::with_results(NodePtr body) const {
  for (const auto& [name, tensor] : results_) body = build::allocate(tensor, body);
  return body;
}

NodePtr ContractionBuilder::finish(const PointPart& part) {
  if (plan_.store_boxes) return finish_by_boxes();
  if (!rows_.empty()) return finish_by_rows();
  const std::vector<std::string> names = written();
  const NodePtr results = over_points([&] {
    std::vector<NodePtr> parts = {over_lanes(point(names, part))}, stores;
    for (const std::string& name : names) {
      if (is_seen(name)) stores.push_back(store_results(name));
    }
    parts.push_back(build::sequence(std::move(stores)));
    if (c_.selection) parts.back() = build::if_then(is_selected(), parts.back());
    if (part.also) parts.push_back(over_lanes(part.also()));
    if (!part.to.empty()) parts.push_back(over_lanes(keep_in_sums(part.to)));
    if (fills_ && part.fills) parts.push_back(keep_results());
    if (!c_.pooled.empty()) parts.push_back(pool_results());
    if (!reductions_.empty()) parts.push_back(over_lanes(reduce_points(part.reductions)));
    NodePtr stored = build::sequence(std::move(parts));
    if (part.is_all()) stored = with_results(std::move(stored));
    if (plan_.groups > 1) {
      for (const ContractionBuilder* product : sums()) stored = build::allocate(product->total_, stored);
    }
    const Expr inside = is_inside();
    if (!inside.defined()) return stored;
    NodePtr outside;
    if (fills_ && part.fills) outside = keep_zeros();
    if (!reductions_.empty() && plan_.groups > 1) outside = over_lanes(reduce_nothing());
    return build::if_then(inside, stored, outside);
  });
  return plan_.groups > 1 ? build::sequence({exchange_sums(), results}) : results;
}

}  // namespace tc::gpu
