#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/strided_boxes.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/support/check.h"
#include "tc/support/round.h"
#include "tc/tile/matrix_descriptor.h"

/// The reduction of a contraction's kernel by boxes and products of warpgroups.
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

namespace {

constexpr int kWarp = 32, kQuad = 4, kGroupWarps = 4;

}  // namespace

/// Warps go down the rows, 16 each; in each, threads have rows and columns as the instruction's sums do. Of rows in
/// pairs a thread has two neighbours, the instruction's row and the eighth behind it.
void ContractionBuilder::place_warpgroups(const TensorCores& cores) {
  constexpr int kRowsOfWarp = 16;
  lane_ = define("lane", point_thread_ % kWarp);
  warp_ = define("warp", point_thread_ / kWarp);
  row_warp_ = plan_.ping_pong ? define("row_warp", warp_ % static_cast<int>(plan_.threads() / kWarp)) : warp_;
  column_warp_ = 0;
  thread_[cores.columns[0]] = define(c_.parallel[cores.columns[0]].name + "_thread", lane_ % kQuad);
  const int64_t pair = cores.pairs_rows ? plan_.parallel[cores.rows[0]].group : 1;
  Expr rest = lane_ / kQuad + row_warp_ * static_cast<int>(kRowsOfWarp / pair);
  int64_t left = tile_of(cores.rows, plan_) / pair;
  for (size_t axis : cores.rows) {
    const auto tile = static_cast<int>(plan_.parallel[axis].tile / (axis == cores.rows[0] ? pair : 1));
    if (tile == 1) continue;
    thread_[axis] = define(c_.parallel[axis].name + "_thread", tile < left ? rest % tile : rest);
    rest = rest / tile;
    left /= tile;
  }
}

/// All blocks along x: those of a cluster, some rows of them, then the next column, then the next rows. Those that run
/// at once share what they read.
std::map<size_t, Expr> ContractionBuilder::blocks_in_groups(tile::Kernel& kernel) {
  if (plan_.grid > 0) tile_ = names_.fresh("tile");
  std::vector<BlockDigit> digits = block_digits(plan_);
  std::erase_if(digits, [&](const BlockDigit& digit) { return digit.axis == slab_axis_; });
  std::map<size_t, Expr> result;
  int64_t stride = 1;
  for (size_t i = 0; i < digits.size(); ++i) {
    Expr number = tile_.empty() ? build::block_x() : build::var(tile_);
    if (plan_.cluster_parts > 1) number = number / static_cast<int>(plan_.cluster_parts);
    if (stride > 1) number = number / static_cast<int>(stride);
    if (i + 1 < digits.size()) number = number % static_cast<int>(digits[i].count);
    Expr& block = result.emplace(digits[i].axis, 0).first->second;
    block = hi::simplify(block + number * static_cast<int>(digits[i].scale));
    stride *= digits[i].count;
  }
  tiles_ = stride;
  kernel.grid[0] = plan_.grid > 0 ? plan_.grid : stride * plan_.cluster_parts;
  kernel.cluster[0] = plan_.cluster_blocks() * plan_.cluster_parts;
  if (plan_.cluster_parts > 1) rank_ = define("rank", build::block_x() % static_cast<int>(plan_.cluster_parts));
  return result;
}

/// [stage, row, k], or [stage, k, row in slabs of a row's elements] where rows lie side by side. Of a stage that has
/// several boxes along k each is one of [stage * boxes + box, row, k].
Tensor ContractionBuilder::boxed_tensor(size_t operand) const {
  const OperandPlan& o = plan_.operands[operand];
  const Halide::Type type = in_memory(c_, operand).type;
  const int64_t elements = row_of(in_memory(c_, operand)), chunk = values_of_chunks(plan_);
  const int64_t boxes = boxes_along(c_, operand, plan_);
  const bool slabs = runs_across(c_, operand, plan_);
  const tile::IntTuple stages = (operand == once_ ? 1 : plan_.stages) * boxes, row = elements, one = 1;
  const tile::Layout layout =
      slabs ? tile::Layout({stages, tile::IntTuple(chunk), {row, o.stage / chunk / elements}},
                           {tile::IntTuple(o.stage), row, {one, tile::IntTuple(chunk * elements)}})
            : tile::Layout({stages, o.stage / chunk, row}, {tile::IntTuple(o.stage / boxes), row, one});
  Tensor tensor = build::shared("", type, layout);
  tensor.swizzle = tile::row_swizzle(tensor.type.bytes());
  tensor.written = true;
  return tensor;
}

void ContractionBuilder::declare_boxes(size_t operand, const std::vector<Tensor>* shared) {
  const std::string& name = in_memory(c_, operand).tensor;
  const bool is_there = shared && !(*shared)[operand].name.empty();
  if (plan_.operands[operand].kept) {  // in registers
    shared_.push_back(is_there ? (*shared)[operand] : held_tensor(operand));
    maps_.emplace_back();
    return;
  }
  shared_.push_back(is_there ? (*shared)[operand] : boxed_tensor(operand));
  if (!is_there) shared_.back().name = names_.fresh(name + "_shared");
  maps_.push_back(map_of(c_, operand, plan_, names_.fresh(name + "_map")));
}

/// Turns of a ring are counted through all products, and through all tiles and slices of a block.
Expr ContractionBuilder::turn_of(const Expr& step) const {
  const Expr turn = hi::simplify(step + static_cast<int>(first_turn_));
  if (c_.selection) return build::var(slices_.number) * static_cast<int>(turns_) + turn;
  if (tile_.empty()) return turn;
  return tiles_before_ * static_cast<int>(turns_) + turn;
}

/// Boxes of a row's neighbours along the first axis of an operand's side, each for all values of the reduction in a
/// step, or for those that a block copies for others, from `k` on.
NodePtr ContractionBuilder::copy_slabs(size_t operand, std::vector<Expr> at, const Expr& k, const Expr& stage,
                                       const Expr& turn) {
  const Operand& o = in_memory(c_, operand);
  const TensorCores& cores = *plan_.tensor_cores;
  const tile::BlockGroup group = sharers(operand, plan_);
  const int64_t row = row_of(o), all = plan_.operands[operand].stage / (row * values_of_chunks(plan_));
  const int64_t slabs = cut_dimension(c_, operand, plan_) ? all : all / group.count;
  const std::string slab = names_.fresh("slab");
  Expr rest = slabs < all ? hi::simplify(build::block_x() / group.stride % group.count * static_cast<int>(slabs)) : 0;
  if (slabs > 1) rest = hi::simplify(rest + build::var(slab));
  const Expr first = hi::simplify(rest * static_cast<int>(row));
  int64_t left = all, scale = row;
  for (size_t axis : operand == cores.a ? cores.rows : cores.columns) {
    const int64_t count = ceil_div(plan_.parallel[axis].tile, scale);
    if (count > 1) {
      const auto d = static_cast<size_t>(dimension_along(o, &Subscript::parallel, axis));
      Expr& coordinate = at[o.subscripts.size() - 1 - d];
      const Expr number = count < left ? rest % static_cast<int>(count) : rest;
      coordinate = hi::simplify(coordinate + number * static_cast<int>(scale));
      rest = rest / static_cast<int>(count);
      left /= count;
    }
    scale = 1;
  }
  const NodePtr copy = build::box_copy(maps_[operand], at, shared_[operand], {stage, k, first}, ring_, turn, group);
  return slabs > 1 ? build::unrolled(slab, 0, static_cast<int>(slabs), copy) : copy;
}

/// The boxes of an operand, from where its tile begins on. Of a cluster's blocks with the same tile each copies a part
/// for all of them: of each box, or some of the boxes.
NodePtr ContractionBuilder::copy_operand(size_t operand, std::vector<Expr> at, const Expr& stage, const Expr& turn) {
  const tile::BlockGroup group = sharers(operand, plan_);
  const bool across = runs_across(c_, operand, plan_);
  const int64_t chunk = values_of_chunks(plan_);
  Expr from = 0;
  if (const std::optional<size_t> cut = cut_dimension(c_, operand, plan_)) {
    const Expr part = hi::simplify(build::block_x() / group.stride % group.count);
    const size_t d = at.size() - 1 - *cut;
    const int64_t rows = across ? chunk : plan_.operands[operand].stage / chunk;
    at[d] = hi::simplify(at[d] + part * static_cast<int>(maps_[operand].box[d]));
    from = hi::simplify(part * static_cast<int>(rows / group.count));
  }
  if (across) return copy_slabs(operand, std::move(at), from, stage, turn);
  const auto boxes = static_cast<int>(boxes_along(c_, operand, plan_));
  if (boxes == 1) return build::box_copy(maps_[operand], at, shared_[operand], {stage, from, 0}, ring_, turn, group);
  const std::string box = names_.fresh("box");
  at[0] = hi::simplify(at[0] + build::var(box) * static_cast<int>(chunk / boxes));
  const Expr to = hi::simplify(stage * boxes + build::var(box));
  return build::unrolled(
      box, 0, boxes,
      build::box_copy(maps_[operand], std::move(at), shared_[operand], {to, from, 0}, ring_, turn, group));
}

/// Where an operand's boxes of a step begin: the map's dimensions, fastest first.
std::vector<Expr> ContractionBuilder::coordinates(size_t operand, const ReductionStep& step) const {
  const Operand& o = in_memory(c_, operand);
  std::vector<Expr> result;
  for (size_t d = o.subscripts.size(); d-- > 0;) {
    const Expr at = o.selected == d
                        ? build::var(slices_.slice)
                        : hi::simplify(first_of(o.subscripts[d], step) - static_cast<int>(first_inside(o, d)));
    const auto by = static_cast<int>(box_step(o, d));
    result.push_back(by == 1 ? at : hi::simplify(at / by));
    if (by == 1) continue;
    if (has_remainders_in_rows(o, d)) {
      result.front() = hi::simplify(result.front() + at % by * static_cast<int>(o.extents.back()));
    } else {
      result.push_back(hi::simplify(at % by));
    }
  }
  return result;
}

/// How many steps the block has.
Expr ContractionBuilder::steps_of_block() const {
  const auto steps = static_cast<int>(plan_.steps(c_)), parts = static_cast<int>(plan_.cluster_parts);
  return steps % parts == 0 ? Expr(steps / parts) : (steps + parts - 1 - rank_) / parts;
}

/// The step of the tile that is a step of the block: blocks of a cluster have one after the other.
Expr ContractionBuilder::dealt_out(const Expr& step) const {
  return plan_.cluster_parts == 1 ? step : step * static_cast<int>(plan_.cluster_parts) + rank_;
}

/// The boxes of a step, by one thread.
NodePtr ContractionBuilder::copy_boxes(const Expr& step) {
  const ReductionStep of = step_at(dealt_out(step));
  const Expr turn = turn_of(step), stage = hi::simplify(turn % static_cast<int>(plan_.stages));
  std::vector<NodePtr> parts = {build::acquire(ring_, turn)};
  int64_t bytes = 0;
  for (size_t i = 0; i < c_.operands.size(); ++i) {
    bytes += plan_.operands[i].stage * in_memory(c_, i).type.bytes();
    parts.push_back(copy_operand(i, coordinates(i, of), stage, turn));
  }
  for (ContractionBuilder& product : further_) {
    if (!product.is_joined_) continue;
    const size_t own = 1 - product.joined_operand();
    product.names_ = names_;
    const std::vector<Expr> at = product.coordinates(own, product.step_at(dealt_out(step)));
    bytes += product.plan_.operands[own].stage * in_memory(product.c_, own).type.bytes();
    parts.push_back(product.copy_operand(own, at, stage, turn));
    names_ = product.names_;
  }
  parts.push_back(build::commit(ring_, turn, bytes));
  return build::sequence(std::move(parts));
}

/// Of a joined product: the operand that the first one has, too.
size_t ContractionBuilder::joined_operand() const {
  return joined_is_a_ ? plan_.tensor_cores->a : plan_.tensor_cores->b;
}

/// The products that are multiplied in a step of this one.
std::vector<const ContractionBuilder*> ContractionBuilder::products_of_step() const {
  std::vector<const ContractionBuilder*> result = {this};
  for (const ContractionBuilder& product : further_) {
    if (product.is_joined_) result.push_back(&product);
  }
  return result;
}

/// The last turn is released for the next tile or slice, and for blocks that wait until nobody touches their memory any
/// more. Where a turn's sum has been waited for, the turn is released at once.
NodePtr ContractionBuilder::release_last_turn() const {
  const bool is_waited_for = plan_.cluster_blocks() > 1 || plan_.grid > 0 || c_.selection;
  if (!is_waited_for || plan_.tensor_cores->in_parts) return build::sequence({});
  return build::release(ring_, turn_of(static_cast<int>(turns_ - 1)));
}

/// What the copying thread does: all steps of all products.
NodePtr ContractionBuilder::produce() {
  const std::string step = names_.fresh("step");
  std::vector<NodePtr> parts = {build::for_loop(step, 0, steps_of_block(), copy_boxes(build::var(step)))};
  for (ContractionBuilder& product : further_) {
    if (product.is_joined_) continue;
    product.names_ = names_;
    parts.push_back(product.produce());
    names_ = product.names_;
  }
  return build::sequence(std::move(parts));
}

/// What a thread of a warpgroup adds to its sums in so many values of a step from one on, by one of the instructions
/// beside each other: to pairs of columns of two rows.
std::shared_ptr<const tile::Instances> ContractionBuilder::step_instances(const ReductionStep& step, int64_t from,
                                                                          int64_t length, int64_t atom) const {
  constexpr int64_t kColumns = 8;
  const TensorCores& cores = *plan_.tensor_cores;
  const size_t column = cores.columns[0];
  const Axis& main = c_.reduction[plan_.main];
  tile::Instances result{.statement = c_.update.id};
  for (int64_t high = 0; high < 2; ++high) {
    for (int64_t j = 0; j < tile_of(cores.columns, plan_); j += kColumns) {
      std::map<std::string, Expr> values;
      for (size_t i = 0; i < c_.parallel.size(); ++i) {
        const bool is_pair = i == column || (cores.pairs_rows && i == cores.rows[0]);
        values[c_.parallel[i].name] = first_[i] + thread_[i] * (is_pair ? 2 : 1);
      }
      const auto add = [&](size_t axis, int64_t offset) {
        Expr& value = values[c_.parallel[axis].name];
        value = value + static_cast<int>(offset);
      };
      for (size_t axis : cores.rows) {
        add(axis, high * rows_apart(axis, plan_) + atom * rows_apart(axis, plan_, RowDigit::kAtoms));
      }
      if (cores.pairs_rows) add(cores.rows[0], high);
      int64_t rest = j;
      for (size_t axis : cores.columns) {
        add(axis, rest % plan_.parallel[axis].tile);
        rest /= plan_.parallel[axis].tile;
      }
      for (size_t r = 0; r < c_.reduction.size(); ++r) values[c_.reduction[r].name] = step.first[r];
      if (from > 0) values[main.name] = values[main.name] + static_cast<int>(from);
      std::vector<Expr>& first = result.first.emplace_back();
      for (const std::string& index : c_.update.indices) {
        const auto value = values.find(index);
        if (value == values.end()) return nullptr;
        first.push_back(value->second);
      }
    }
  }
  const bool has_parts = values_of_chunks(plan_) != plan_.chunk[plan_.main];  // of several axes: none is filled
  for (const std::string& index : c_.update.indices) {
    const auto axis = std::ranges::find(c_.reduction, index, &Axis::name);
    const bool is_main = index == main.name;
    int64_t values = index == c_.parallel[column].name ? 2 : 1;
    if (is_main && !has_parts) values = length;
    if (has_parts && axis != c_.reduction.end()) values = plan_.chunk[static_cast<size_t>(axis - c_.reduction.begin())];
    result.lengths.push_back(values);
    const int64_t whole = has_parts ? main.extent : round_up(main.extent, values_of_step(c_, plan_));
    result.zero_below.push_back(is_main ? main.begin + whole : INT64_MIN);
  }
  return std::make_shared<const tile::Instances>(std::move(result));
}

/// A tile of an operand in a buffer, from a row (column) and, where a stage has several boxes, a value of the reduction
/// on.
tile::MatrixTile ContractionBuilder::boxed_tile(size_t operand, const Expr& stage, const Expr& first,
                                                int64_t from) const {
  const auto k = static_cast<int>(from);
  if (runs_across(c_, operand, plan_)) return {shared_[operand].name, {stage, k, first}, 2, 1};
  const auto boxes = static_cast<int>(boxes_along(c_, operand, plan_));
  const auto row = static_cast<int>(plan_.chunk[plan_.main]) / boxes;
  return {shared_[operand].name, {hi::simplify(stage * boxes + k / row), first, k % row}, 1, 2};
}

/// The instructions of a step, beside each other.
std::vector<NodePtr> ContractionBuilder::multiply_boxes(const Expr& step, const Expr& stage, const Tensor& sum,
                                                        bool starts) const {
  const TensorCores& cores = *plan_.tensor_cores;
  const tile::WarpgroupAtom atom = {ir::from_halide(c_.operands[cores.a].type),
                                    ir::from_halide(c_.operands[cores.b].type),
                                    static_cast<int>(tile_of(cores.columns, plan_))};
  const int slices = static_cast<int>(values_of_step(c_, plan_)) / atom.k();
  std::vector<NodePtr> products;
  for (int i = 0; i < static_cast<int>(cores.row_atoms); ++i) {
    products.push_back(
        tile::carrying(step_instances(step_at(dealt_out(step)), 0, values_of_step(c_, plan_), i),
                       build::warpgroup_matmul(atom, slices, sum, boxed_tile(cores.a, stage, row_of_atom(i)),
                                               boxed_tile(cores.b, stage, 0), starts, i * atom.values())));
  }
  return products;
}

/// What warpgroups do: a step's products while those of the step before end.
NodePtr ContractionBuilder::consume() {
  const TensorCores& cores = *plan_.tensor_cores;
  if (cores.computes_a) return consume_computed();
  const std::string name = names_.fresh("step");
  const Expr turn = turn_of(build::var(name)), stage = hi::simplify(turn % static_cast<int>(plan_.stages));
  std::vector<NodePtr> multiplied;
  std::vector<std::string> sums;
  for (const ContractionBuilder* product : products_of_step()) {
    for (NodePtr& node : product->multiply_boxes(build::var(name), stage, product->sum_, false)) {
      multiplied.push_back(std::move(node));
    }
    sums.push_back(product->sum_.name);
  }
  const Expr steps = steps_of_block();
  if (cores.in_parts) {
    Tensor part = sum_;
    part.name = names_.fresh(sum_.name + "_part");
    const NodePtr add = over_registers(all_axes(), [&] {
      const std::vector<Expr> at = sum_subscripts();
      return build::store(sum_, at, build::read(sum_, at) + build::read(part, at));
    });
    const NodePtr body = build::sequence({build::await(ring_, turn),
                                          build::sequence(multiply_boxes(build::var(name), stage, part, true)),
                                          build::matmul_wait(0, {part.name}), build::release(ring_, turn), add});
    const NodePtr all = build::allocate(part, build::for_loop(name, 0, steps, body));
    return build::sequence({take_turn(), all, pass_turn()});
  }
  const auto of_step = static_cast<int>(multiplied.size());
  const NodePtr body = build::sequence({
      build::await(ring_, turn),
      build::sequence(std::move(multiplied)),
      build::matmul_wait(of_step),
      first_turn_ > 0 ? build::release(ring_, hi::simplify(turn - 1))
                      : build::if_then(build::var(name) > 0, build::release(ring_, turn - 1)),
  });
  return build::sequence(
      {take_turn(), build::for_loop(name, 0, steps, body), pass_turn(), build::matmul_wait(0, sums)});
}

/// The first row of an instruction of the warpgroup.
Expr ContractionBuilder::row_of_atom(const Expr& atom) const {
  const auto warpgroups = static_cast<int>(plan_.tensor_cores->warpgroups);
  const Expr own = plan_.ping_pong && warpgroups == 1 ? Expr(0) : row_warp_ / kGroupWarps;
  return hi::simplify((own + atom * warpgroups) * tile::WarpgroupAtom::kM);
}

/// A team awaits the turns of its tile behind those of the tile before, and multiplies when the other one does no more.
NodePtr ContractionBuilder::take_turn() const {
  if (!plan_.ping_pong || first_turn_ > 0) return build::sequence({});
  return build::if_then(tiles_before_ > 0, build::take(ring_, hi::simplify(tiles_before_ - 1)));
}
NodePtr ContractionBuilder::pass_turn() const {
  const bool is_last = first_turn_ + plan_.steps(c_) == turns_;
  return plan_.ping_pong && is_last ? build::pass(ring_, tiles_before_) : build::sequence({});
}

/// Brings groups of eight neighbouring columns to each thread: of four threads each has two columns of each of four
/// groups. A transposition of 4 x 4 pairs: threads of which one bit differs exchange the pairs of which that bit
/// differs.
NodePtr ContractionBuilder::exchange_columns(ir::Names& names) {
  const TensorCores& cores = *plan_.tensor_cores;
  const size_t column = cores.columns[0];
  const AxisPlan& a = plan_.parallel[column];
  if (a.group == 2) return build::sequence({});
  TC_CHECK(a.group == 2 * kQuad, "threads exchange groups of {} columns", a.group);
  columns_ = sum_;
  columns_.name = names.fresh(c_.update.tensor + "_columns");
  const std::string in_pair = names.fresh("in_pair"), pair = names.fresh("pair");
  const auto at = [&](const Expr& number) {  // of a pair in the group
    std::vector<Expr> subscripts;
    const Expr low = number * 2 + build::var(in_pair);
    for (size_t axis : all_axes()) {
      subscripts.push_back(
          hi::simplify(axis == column ? hi::substitute(low_[axis], low, register_at(axis)) : register_at(axis)));
    }
    return subscripts;
  };
  Tensor moved = build::registers(names.fresh("moved"), sum_.type, tile::Layout::row_major({1}));
  moved.written = true;
  const auto round = [&](const Tensor& from, int bit) {
    const Expr low = bit == 1 ? build::var(pair) * 2 : build::var(pair), high = low + bit;
    const Expr upper = bit == 1 ? lane_ % 2 == 1 : lane_ / 2 % 2 == 1;
    const Expr of_low = build::read(from, at(low)), of_high = build::read(from, at(high));
    const Expr received = build::read(moved, {0});
    return build::unrolled(
        pair, 0, 2,
        build::sequence(
            {build::shuffle(moved, {0}, tile::Shuffle::Kind::kXor, hi::Select::make(upper, of_low, of_high), bit),
             build::store(columns_, at(low), hi::Select::make(upper, received, of_low)),
             build::store(columns_, at(high), hi::Select::make(upper, of_high, received))}));
  };
  const NodePtr rounds = build::sequence({round(sum_, 1), round(columns_, 2)});
  const NodePtr body = build::allocate(moved, build::unrolled(in_pair, 0, 2, rounds));
  return over_registers(
      all_axes(), [&] { return body; }, static_cast<int>(column));
}

/// A part of a kernel's body for each tile of the block.
NodePtr ContractionBuilder::over_tiles(const NodePtr& body) const {
  if (tile_.empty()) return body;
  return build::for_loop(tile_, build::block_x(), static_cast<int>(tiles_), with_definitions(body, 0, of_block_),
                         static_cast<int>(plan_.grid));
}

/// A kernel's body: the results' threads, and beside them the one that copies, each for all tiles of the block. Teams
/// have every second one.
NodePtr ContractionBuilder::with_producer(const NodePtr& consumers) {
  const auto threads = static_cast<int>(plan_.threads()), teams = static_cast<int>(plan_.teams());
  std::vector<tile::BlockGroup> groups;
  for (size_t i = 0; i < c_.operands.size(); ++i) {
    if (const tile::BlockGroup group = sharers(i, plan_); group.count > 1) groups.push_back(group);
  }
  std::vector<NodePtr> copies = {produce()};
  if (!groups.empty()) copies.push_back(build::drain(ring_, static_cast<int>(turns_)));
  const int readers = threads / kWarp;
  const NodePtr of_team = teams == 1 ? consumers : build::if_then(tiles_before_ % teams == warp_ / readers, consumers);
  // Boxes read shared memory, which ends with the block.
  const NodePtr stored = plan_.store_boxes ? build::wait_boxes_read(0) : build::sequence({});
  const NodePtr results = build::sequence({over_tiles(of_team), stored});
  const NodePtr producer =
      build::if_then(build::thread_x() == threads * teams, over_tiles(build::sequence(std::move(copies))));
  NodePtr body = build::if_then(warp_ < readers * teams, results, producer);
  if (c_.selection) body = over_slices(body);
  std::optional<tile::RegisterShares> registers;
  if (plan_.gives_registers) registers = register_shares(plan_);
  body = build::ring(ring_, static_cast<int>(plan_.stages), readers, body, std::move(groups), registers, teams);
  return c_.selection ? with_slices(body) : body;
}

}  // namespace tc::gpu
