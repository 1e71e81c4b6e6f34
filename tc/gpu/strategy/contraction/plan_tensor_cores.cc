#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "tc/gpu/strategy/contraction/atom_cost.h"
#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/plan_search.h"
#include "tc/gpu/strategy/contraction/planner.h"
#include "tc/gpu/strategy/contraction/rolled.h"
#include "tc/gpu/strategy/contraction/selection.h"
#include "tc/gpu/strategy/contraction/stored.h"
#include "tc/gpu/strategy/contraction/warpgroup_cost.h"
#include "tc/support/round.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// The tiles and steps of a plan by products of tiles.
std::optional<ContractionPlan> Planner::tiled(const AtomShape& shape, const TensorCores& cores) const {
  ContractionPlan plan;
  plan.parallel.resize(c_.parallel.size());
  plan.main = main_;
  plan.chunk = shape.one_of_others ? std::vector<int64_t>(chunk_.size(), 1) : chunk_;
  plan.chunk[main_] = shape.chunk;
  plan.groups = shape.groups;
  plan.tensor_cores = cores;
  if (!deal_out(c_, cores.columns, shape.column_threads, shape.column_registers, 2, plan) ||
      !deal_out(c_, cores.rows, shape.row_threads, shape.row_registers, 1, plan)) {
    no("the rows and columns of warps do not divide among the axes");
    return std::nullopt;
  }
  if (!follow(plan)) return std::nullopt;
  if (const std::string fault = atom_fault(c_, plan); !fault.empty()) {
    no("{}", fault);
    return std::nullopt;
  }
  plan.order = cores.columns;
  plan.order.insert(plan.order.end(), cores.rows.begin(), cores.rows.end());
  for (size_t axis = c_.parallel.size(); axis-- > 0;) {
    plan.parallel[axis].blocks = ceil_div(c_.parallel[axis].extent, plan.parallel[axis].tile);
    if (std::find(plan.order.begin(), plan.order.end(), axis) == plan.order.end()) plan.order.push_back(axis);
  }
  return plan;
}

std::optional<ContractionPlan> Planner::plan(const AtomShape& shape, const TensorCores& cores) const {
  std::optional<ContractionPlan> plan = tiled(shape, cores);
  if (!plan || !finish_atoms(*plan)) return std::nullopt;
  plan->cycles = estimated_cycles(c_, *plan, device_);
  return plan;
}

bool Planner::finish_atoms(ContractionPlan& plan) const {
  // Bytes of the least asynchronous copy. Those of 4 bytes took 20 to 30 cycles for each warp's on an H100: 52 x 4738 x
  // 1456 took 35 us by them, and 14 us by copies that go through registers.
  constexpr int64_t kCopied = 8;
  plan.asynchronous = true;
  const int64_t left = c_.reduction[main_].extent % plan.chunk[main_];
  for (size_t i = 0; i < c_.operands.size(); ++i) {
    if (kept_ == i) {
      plan.operands.push_back(kept_operand(c_, i, plan));
      continue;
    }
    plan.operands.push_back(operand_plan(c_, i, {}, plan));
    OperandPlan& o = plan.operands.back();
    // What lies behind the reduction is set to zero by whole copies.
    const bool ends = left > 0 && c_.operands[i].subscripts.back().reduction[main_] != 0;
    if (ends && o.lead == 0) o.vector = std::gcd(o.vector, left);
    o.fragment = fragment_read(c_, i, plan);
    const bool computed = c_.operands[i].computed.has_value();
    plan.asynchronous = plan.asynchronous && (computed || o.vector * c_.operands[i].type.bytes() >= kCopied);
  }
  lay_out_all(plan, Rows::kRough);
  plan.unroll_copies = options_.unroll_copy_shared;
  plan.most_unrolled = options_.unroll.value_or(plan.most_unrolled);
  const auto with = [&](int64_t stages) {
    plan.stages = std::max<int64_t>(plan.asynchronous ? std::min(stages, plan.steps(c_)) : 1, 1);
    plan.all_ahead = plan.stages > 1 && options_.copy_stages.value_or(0) > plan.steps(c_);
    return fits(plan);
  };
  if (options_.copy_stages) return with(*options_.copy_stages);
  // More buffers for what a block waits for anyway take the room of other blocks, which hide the wait: of 16 rows times
  // 8192 x 8192 computed weights, on an H100, 69 us with one, 100, 82 and 120 with two to four.
  if (has_computed(c_)) return with(1);
  for (int64_t stages = kAtomStages; stages > 1; --stages) {
    if (with(stages)) return true;
  }
  return with(1);
}

/// The tiles and steps of a plan by products of warpgroups.
std::optional<ContractionPlan> Planner::tiled(const WarpgroupShape& shape, const TensorCores& cores,
                                              std::vector<int64_t> chunks) const {
  constexpr int64_t kQuad = 4, kPair = 2;
  ContractionPlan plan;
  plan.parallel.resize(c_.parallel.size());
  plan.main = main_;
  plan.chunk = std::move(chunks);
  plan.tensor_cores = cores;
  for (size_t i = 0; i < cores.rows.size(); ++i) plan.parallel[cores.rows[i]].tile = shape.rows[i];
  for (size_t i = 0; i < cores.columns.size(); ++i) {
    plan.parallel[cores.columns[i]] = {.tile = shape.columns[i], .registers = shape.columns[i]};
  }
  plan.tensor_cores->row_atoms = shape.row_atoms;
  plan.tensor_cores->warpgroups = tile_of(cores.rows, plan) / tile::WarpgroupAtom::kM / shape.row_atoms;
  plan.tensor_cores->in_parts = ir::is_float8(c_.operands[0].type) && !options_.fast_accumulation;
  for (size_t axis : cores.rows) plan.parallel[axis].registers = int64_t{1} << row_digits(axis, plan).size();
  plan.parallel[cores.rows[0]].cluster = shape.cluster_rows;
  AxisPlan& column = plan.parallel[cores.columns[0]];
  column.registers = column.tile / kQuad;
  column.group = shape.group;
  if (cores.pairs_rows) {
    if (shape.group != kPair) return std::nullopt;
    AxisPlan& row = plan.parallel[cores.rows[0]];
    row.registers = row.group = std::min(row.tile, kPair);
  }
  column.cluster = shape.cluster_columns;
  if (column.registers % shape.group != 0) return std::nullopt;
  const ContractionPlan wished = plan;
  if (!follow(plan)) return std::nullopt;
  // Boxes of a reduction that is shorter than a step reach beyond it.
  if (request_.said_chunk[main_] == wished.chunk[main_]) plan.chunk[main_] = wished.chunk[main_];
  // What is asked for otherwise is no tile of a warpgroup.
  for (size_t axis = 0; axis < plan.parallel.size(); ++axis) {
    const AxisPlan &a = plan.parallel[axis], &b = wished.parallel[axis];
    if (a.tile != b.tile || a.registers != b.registers) return std::nullopt;
  }
  if (plan.chunk != wished.chunk || plan.groups != 1) return std::nullopt;
  // Results are stored as vectors along the first of them.
  plan.order = cores.pairs_rows ? cores.rows : cores.columns;
  const std::vector<size_t>& others = cores.pairs_rows ? cores.columns : cores.rows;
  plan.order.insert(plan.order.end(), others.begin(), others.end());
  for (size_t axis = c_.parallel.size(); axis-- > 0;) {
    AxisPlan& a = plan.parallel[axis];
    a.blocks = round_up(ceil_div(c_.parallel[axis].extent, a.tile), a.cluster);
    if (std::find(plan.order.begin(), plan.order.end(), axis) == plan.order.end()) plan.order.push_back(axis);
  }
  plan.row_blocks = row_blocks(plan, device_);
  return plan;
}

/// The same by products of warpgroups; nothing if it takes longer than `most_cycles`, nor any plan of such tiles, where
/// blocks are alone.
std::optional<ContractionPlan> Planner::plan(const WarpgroupShape& shape, const TensorCores& cores,
                                             double most_cycles) const {
  std::optional<ContractionPlan> tiles = tiled(shape, cores, step_chunks());
  if (!tiles) return std::nullopt;
  ContractionPlan& plan = *tiles;
  if (joined_) {
    if (cores.computes_a || plan.tensor_cores->in_parts || c_.selection) {
      no("products of these operands are not joined");
      return std::nullopt;
    }
    plan.joined = static_cast<int64_t>(c_.further.size());
    plan.joined_operand = *joined_;
  }
  if ((shape.store_boxes || shape.persistent) && !c_.reductions.empty()) {
    no("threads reduce the results of a block's one tile");
    return std::nullopt;
  }
  plan.ping_pong = shape.ping_pong;
  plan.gives_registers = shape.ping_pong || shape.row_atoms > 1;
  if (shape.row_atoms > 1 && !may_have_row_atoms(plan)) return std::nullopt;
  plan.cluster_parts = shape.cluster_parts;
  if (plan.cluster_parts > 1 && !may_be_dealt_out(plan)) return std::nullopt;
  plan.store_boxes = shape.store_boxes;
  if (plan.store_boxes) {
    if (const std::string fault = store_fault(c_, plan); !fault.empty()) {
      no("{}", fault);
      return std::nullopt;
    }
  }
  if (const std::string fault = selection_fault(c_, plan); !fault.empty()) {
    no("{}", fault);
    return std::nullopt;
  }
  if (shape.persistent) plan.grid = 1;  // as many as run at once is known with the buffers
  const std::optional<WarpgroupWork> work = lay_out_boxes(plan);
  if (!work || exceeds(plan, *work, shape, most_cycles) || !choose_stages(plan, *work)) return std::nullopt;
  if (shape.persistent && !make_persistent(plan)) return std::nullopt;
  plan.rolled_groups = rolled_groups(c_, plan, device_);
  plan.cycles = warpgroup_cycles(c_, plan, device_, *work);
  return plan;
}

/// The plan of a further product with the tiles, threads and steps of the first one.
std::optional<ContractionPlan> Planner::in_steps_of(const ContractionPlan& first) const {
  std::optional<TensorCores> cores = warpgroup_cores();
  if (!cores || main_ != first.main) return std::nullopt;
  // Parts of several axes lie in the order of this product's operands, too.
  const bool has_parts = values_of_chunks(first) != first.chunk[first.main];
  if (has_parts && chunks_of(c_, main_) != first.chunk) return std::nullopt;
  const std::set<size_t> rows(first.tensor_cores->rows.begin(), first.tensor_cores->rows.end());
  if (std::set<size_t>(cores->rows.begin(), cores->rows.end()) != rows) {
    std::swap(cores->a, cores->b);
    std::swap(cores->rows, cores->columns);
  }
  if (std::set<size_t>(cores->rows.begin(), cores->rows.end()) != rows) return std::nullopt;
  ContractionPlan plan = first;
  plan.joined = plan.rolled_groups = 0;
  plan.cycles = 0;  // the first one's are those of all
  plan.operands.clear();
  plan.tensor_cores->a = cores->a;
  plan.tensor_cores->b = cores->b;
  plan.tensor_cores->rounds = cores->rounds;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (!box_fault(c_, i, plan).empty()) return std::nullopt;
    plan.operands.push_back(boxed_operand(c_, i, plan));
  }
  return plan;
}

std::optional<ContractionPlan> Planner::in_stream(const WarpgroupShape& shape, const TensorCores& cores, int64_t chunk,
                                                  bool holds) {
  kept_ = holds ? std::optional(cores.a) : std::nullopt;
  sparing_ = false;
  std::vector<int64_t> chunks(c_.reduction.size(), 1);
  chunks[main_] = chunk;
  std::optional<ContractionPlan> plan = tiled(shape, cores, std::move(chunks));
  if (!plan) return std::nullopt;
  plan->asynchronous = true;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (kept_ == i) {
      plan->operands.push_back(kept_operand(c_, i, *plan));
      continue;
    }
    if (const std::string fault = box_fault(c_, i, *plan); !fault.empty()) {
      no("{}", fault);
      return std::nullopt;
    }
    plan->operands.push_back(boxed_operand(c_, i, *plan));
  }
  return plan;
}

/// Whether warpgroups may have the rows of several instructions.
bool Planner::may_have_row_atoms(const ContractionPlan& plan) const {
  if (plan.tensor_cores->computes_a) return no("threads compute the rows of one instruction");
  // They gain nothing: of a pair of 2048 x 8192 by 2816, an H200 took 274 us with two, and 269 to 277 by other tiles.
  // And the proof that so many products of a step are waited for takes isl minutes.
  if (plan.joined > 0) return no("products of one matrix have the rows of one instruction");
  if (!c_.reductions.empty() || c_.selection) return no("threads reduce or choose the rows of one instruction");
  return true;
}

/// Whether blocks of a cluster may deal out the steps of a tile.
bool Planner::may_be_dealt_out(const ContractionPlan& plan) const {
  if (plan.cluster_blocks() > 1) return no("blocks of a cluster share boxes or steps, not both");
  if (!c_.further.empty()) return no("the steps of several products are not dealt out to blocks of a cluster");
  if (!c_.reductions.empty()) return no("blocks of a cluster do not reduce the results of a tile");
  if (options_.store_boxes.value_or(false)) return no("blocks of a cluster that deal out steps store no boxes");
  if (options_.persistent.value_or(false)) return no("blocks of a cluster have one tile each");
  // The last step is one of warpgroups, which is filled with zeros.
  int64_t steps = 1;
  for (size_t r = 0; r < plan.chunk.size(); ++r) steps *= ceil_div(c_.reduction[r].extent, plan.chunk[r]);
  if (steps >= plan.cluster_parts) return true;
  return no("{} steps are not dealt out to {} blocks", steps, plan.cluster_parts);
}

Planner::TileCounts Planner::counts_of(const WarpgroupShape& shape, const TensorCores& cores) const {
  TileCounts result;
  std::vector<int64_t> tile(c_.parallel.size(), 1);
  for (size_t i = 0; i < cores.rows.size(); ++i) tile[cores.rows[i]] = shape.rows[i];
  for (size_t i = 0; i < cores.columns.size(); ++i) tile[cores.columns[i]] = shape.columns[i];
  for (size_t axis = 0; axis < tile.size(); ++axis) {
    result.tiles *= ceil_div(c_.parallel[axis].extent, tile[axis]);
    result.points *= tile[axis];
  }
  const std::vector<int64_t> chunks = step_chunks();
  for (size_t r = 0; r < chunks.size(); ++r) result.steps *= ceil_div(c_.reduction[r].extent, chunks[r]);
  return result;
}

/// Values in a step along each axis: those of chunks_of(), or all along the main axis, if options say so.
std::vector<int64_t> Planner::step_chunks() const {
  std::vector<int64_t> only(c_.reduction.size(), 1);
  only[main_] = chunk_of(c_);
  return request_.said_chunk == only ? only : chunks_of(c_, main_);
}

/// Values of the reduction that a step of warpgroups has, but for zeros.
int64_t Planner::multiplied_by_step() const {
  const std::vector<int64_t> chunks = step_chunks();
  const int64_t all = std::accumulate(chunks.begin(), chunks.end(), int64_t{1}, std::multiplies<>());
  return all == chunks[main_] ? std::min(all, c_.reduction[main_].extent) : all;
}

/// Cycles that the busiest processor multiplies at least: no more than the estimate of any plan of the shape.
double Planner::least_cycles_of(const WarpgroupShape& shape, const TensorCores& cores) const {
  constexpr double kTakesTurns = 0.9;  // of an estimate, where teams take turns
  const TileCounts counts = counts_of(shape, cores);
  const int64_t blocks = counts.tiles * shape.cluster_parts, steps = ceil_div(counts.steps, shape.cluster_parts);
  const int64_t values = multiplied_by_step();
  const double products = device_.warpgroup_products * 2 / static_cast<double>(c_.operands[0].type.bytes());
  return kTakesTurns * static_cast<double>(ceil_div(blocks, device_.processors) * steps * counts.points * values) /
         products;
}

/// Into how many parts the steps are dealt out, of tiles of a shape.
std::vector<int64_t> Planner::parts_of(const WarpgroupShape& shape, const TensorCores& cores) const {
  if (!options_.cluster.empty()) return {std::max<int64_t>(request_.cluster_parts, 1)};
  const bool may_have = !request_.says_all_tiles() && !asks_for_warpgroups() && shape.cluster_rows == 1 &&
                        shape.cluster_columns == 1 && c_.further.empty() && c_.reductions.empty();
  if (!may_have) return {1};
  const TileCounts counts = counts_of(shape, cores);
  return cluster_parts(counts.tiles, counts.steps, device_);
}

/// As many blocks as run at once go through all tiles.
bool Planner::make_persistent(ContractionPlan& plan) const {
  if (plan.cluster_blocks() * plan.cluster_parts > 1) return no("blocks of a cluster have one tile each");
  int64_t tiles = 1;
  for (const AxisPlan& axis : plan.parallel) tiles *= axis.blocks;
  const int64_t at_once = device_.processors * resident_blocks(c_, plan);
  const bool is_asked_for = options_.persistent || options_.ping_pong.value_or(false);
  if (!is_asked_for && tiles <= at_once) return no("no block has a second tile");
  plan.grid = std::min(at_once, tiles);
  return true;
}

/// The boxes of a plan, and what is to be done; nothing if they are none.
std::optional<WarpgroupWork> Planner::lay_out_boxes(ContractionPlan& plan) const {
  plan.asynchronous = true;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (const std::string fault = box_fault(c_, i, plan); !fault.empty()) {
      no("{}", fault);
      return std::nullopt;
    }
    plan.operands.push_back(boxed_operand(c_, i, plan));
  }
  plan.most_unrolled = options_.unroll.value_or(plan.most_unrolled);
  return warpgroup_work(c_, plan, device_, bytes_);
}

/// Whether plans of a shape are sure to take longer, however many buffers they have.
bool Planner::exceeds(ContractionPlan& plan, const WarpgroupWork& work, const WarpgroupShape& shape,
                      double most_cycles) const {
  if (most_cycles == kNoLimit || options_.copy_stages) return false;
  const bool is_alone = plan.cluster_blocks() * plan.cluster_parts == 1 && !shape.persistent && !shape.ping_pong;
  if (is_alone) return least_cycles_of_tiles(plan, device_, work, bytes_) > most_cycles;
  plan.stages = kFewestBuffers;
  return least_warpgroup_cycles(c_, plan, device_, work, kMostBuffers) > most_cycles;
}

/// The number of buffers that takes least; false if none fits.
bool Planner::choose_stages(ContractionPlan& plan, const WarpgroupWork& work) const {
  const auto with = [&](int64_t stages) {
    plan.stages = stages;
    return fits(plan);
  };
  if (options_.copy_stages) {
    if (*options_.copy_stages < kFewestBuffers) return no("warpgroups need at least {} buffers", kFewestBuffers);
    return with(*options_.copy_stages);
  }
  std::optional<int64_t> best;
  double least = 0;
  for (const int64_t stages : {kMostBuffers, int64_t{6}, int64_t{5}, int64_t{4}, int64_t{3}, kFewestBuffers}) {
    if (stages > std::max(steps_of_block(c_, plan), kFewestBuffers) || !with(stages)) continue;
    const double cycles = warpgroup_cycles(c_, plan, device_, work);
    if (best && cycles >= least) continue;
    least = cycles;
    best = stages;
  }
  plan.stages = best.value_or(0);
  return best.has_value();
}

std::vector<ContractionPlan> Planner::by_tensor_cores(size_t count) const {
  if (!may_multiply()) return {};
  const std::optional<TensorCores> cores = tensor_cores_of(c_, classes_, device_, options_.tf32);
  if (!cores) {
    no("it is no product of two operands for which the device has tensor cores");
    return {};
  }
  sparing_ = false;
  // Those of warpgroups are the best mostly, so that few others are planned. A reason why there is no plan is one of
  // the others.
  std::string why_not = std::exchange(why_not_, std::string());
  std::vector<ContractionPlan> by_groups = warpgroups(*cores, count);
  std::swap(why_not, why_not_);
  const bool is_asked_for =
      !by_groups.empty() && (asks_for_warpgroups() || (request_.says_threads() && request_.says_all_registers()));
  // Tiles, registers and threads that are a warpgroup's ask for warpgroups.
  if (is_asked_for) return by_groups;
  std::vector<ContractionPlan> found;
  const double most = most_of(count, by_groups);
  const bool may_be_less = cores->atom && !c_.selection && least_atom_cycles(c_, *cores->atom, device_) <= most;
  if (may_be_less) found = by_atoms(*cores, count, most);
  for (ContractionPlan& plan : by_groups) keep_best(std::move(plan), count, found);
  if (why_not_.empty()) why_not_ = std::move(why_not);
  return found;
}

/// The shapes of atoms that make different plans.
std::vector<AtomShape> Planner::different_atoms(const TensorCores& cores) const {
  std::vector<AtomShape> shapes = atom_shapes(c_, main_, *cores.atom, outer_steps_);
  if (std::any_of(chunk_.begin(), chunk_.end(), [](int64_t values) { return values > 1; })) {
    for (AtomShape shape : atom_shapes(c_, main_, *cores.atom, true)) {
      shape.one_of_others = true;
      shapes.push_back(shape);
    }
  }
  if (!request_.says_all_tiles() || !request_.says_all_registers()) return shapes;
  // What the options say takes the place of what a shape says.
  std::vector<AtomShape> different;
  for (AtomShape shape : shapes) {
    shape = {.groups = request_.groups > 0 ? request_.groups : shape.groups,
             .chunk = request_.chunk[main_] > 0 ? request_.chunk[main_] : shape.chunk,
             .one_of_others = shape.one_of_others};
    if (std::find(different.begin(), different.end(), shape) == different.end()) different.push_back(shape);
  }
  return different;
}

BoundedShapes Planner::shapes_by_atoms(const TensorCores& cores) const {
  sparing_ = false;
  const auto shapes = std::make_shared<const std::vector<AtomShape>>(different_atoms(cores));
  if (shapes->empty()) {
    no("no step of {} values or a multiple fits the {} of '{}'", cores.atom->k, c_.reduction[main_].extent,
       c_.reduction[main_].name);
  }
  return {
      .count = shapes->size(),
      .least_cycles = [this, shapes, &cores](size_t shape) { return least_cycles_of(tiled((*shapes)[shape], cores)); },
      .plan = [this, shapes, &cores](size_t shape) { return plan((*shapes)[shape], cores); }};
}

std::vector<ContractionPlan> Planner::by_atoms(const TensorCores& cores, size_t count, double most_cycles) const {
  return laid_out(best_of(shapes_by_atoms(cores), std::max(count, kLaidOut), most_cycles), count);
}

std::vector<ContractionPlan> Planner::in_chain_by_atoms(const TensorCores& cores,
                                                        const std::vector<size_t>& rows) const {
  sparing_ = false;
  const auto is_row = [&](size_t axis) { return std::find(rows.begin(), rows.end(), axis) != rows.end(); };
  // A side without rows has all of its axes, and not twice as much.
  const auto most_of = [&](const std::vector<size_t>& side) {
    int64_t all = 1;
    for (size_t axis : side) all *= is_row(axis) ? 1 : c_.parallel[axis].extent;
    return all;
  };
  const int64_t row_points = most_of(cores.rows), column_points = most_of(cores.columns);
  const bool rows_are_whole = std::none_of(cores.rows.begin(), cores.rows.end(), is_row);
  const bool columns_are_whole = std::none_of(cores.columns.begin(), cores.columns.end(), is_row);
  constexpr int64_t kLeastRows = 16, kLeastColumns = 8;
  const auto fits_side = [](int64_t tile, int64_t points, bool whole, int64_t least, size_t axes) {
    const int64_t room = axes > 1 ? 4 : 2;  // axes are dealt out by powers of two each
    return tile >= points && (!whole || tile <= std::max(least, room * points));
  };
  std::vector<ContractionPlan> found;
  for (const AtomShape& shape : atom_shapes(c_, main_, *cores.atom, outer_steps_)) {
    if (shape.groups > 1) continue;
    if (!fits_side(shape.row_threads * shape.row_registers, row_points, rows_are_whole, kLeastRows,
                   cores.rows.size()) ||
        !fits_side(shape.column_threads * shape.column_registers, column_points, columns_are_whole, kLeastColumns,
                   cores.columns.size())) {
      continue;
    }
    std::optional<ContractionPlan> candidate = plan(shape, cores);
    if (candidate && is_whole(*candidate, rows)) found.push_back(*std::move(candidate));
  }
  return found;
}

std::optional<TensorCores> Planner::warpgroup_cores() const {
  if (!device_.accelerated || device_.warpgroup_products == 0 || !options_.tensor_cores.value_or(true)) return {};
  return tensor_cores_of(c_, classes_, device_, options_.tf32);
}

std::optional<ContractionPlan> Planner::by_warpgroups() const {
  const std::optional<TensorCores> cores = tensor_cores_of(c_, classes_, device_, options_.tf32);
  if (!cores || !options_.tensor_cores.value_or(true)) return std::nullopt;
  sparing_ = false;
  std::vector<ContractionPlan> found = warpgroups(*cores, 1);
  return found.empty() ? std::nullopt : std::optional(std::move(found[0]));
}

std::optional<ContractionPlan> Planner::by_warps(double most_cycles) const {
  const std::optional<TensorCores> cores = tensor_cores_of(c_, classes_, device_, options_.tf32);
  if (!cores || !cores->atom || c_.selection || !may_multiply()) return std::nullopt;
  sparing_ = false;
  std::vector<ContractionPlan> found = by_atoms(*cores, 1, most_cycles);
  return found.empty() ? std::nullopt : std::optional(std::move(found[0]));
}

/// As (rows, columns) of blocks, those that the options ask for; (1, 1): blocks alone.
std::vector<std::pair<int64_t, int64_t>> Planner::requested_clusters(const TensorCores& cores) const {
  for (size_t axis = 0; axis < c_.parallel.size() && request_.says_clusters(); ++axis) {
    if (request_.cluster[axis] <= 1 || axis == cores.rows[0] || axis == cores.columns[0]) continue;
    no("blocks along '{}' share no boxes", c_.parallel[axis].name);
    return {};
  }
  const auto along = [&](size_t axis) {
    return request_.says_clusters() ? std::max<int64_t>(request_.cluster[axis], 1) : int64_t{1};
  };
  return {{along(cores.rows[0]), along(cores.columns[0])}};
}

/// A shape with the clusters that its boxes may gain by. Tiles without one are tiles of blocks alone.
void Planner::add_clusters(const TensorCores& cores, const ContractionPlan& alone, WarpgroupShape shape, size_t count,
                           std::vector<ContractionPlan>& found) const {
  if (!options_.cluster.empty() || request_.says_all_tiles() || c_.selection) return;
  for (const auto& [rows, columns] : warpgroup_clusters(c_, alone, device_, bytes_)) {
    shape.cluster_rows = rows;
    shape.cluster_columns = columns;
    std::optional<ContractionPlan> candidate = plan(shape, cores, most_of(count, found));
    if (candidate) keep_best(*std::move(candidate), count, found);
  }
}

/// Cycles that a further plan may take.
double Planner::most_of(size_t count, const std::vector<ContractionPlan>& found) const {
  return found.size() == count ? std::min(found.back().cycles, most_cycles_) : most_cycles_;
}

/// Tiles that teams of one warpgroup have by turns, stored by boxes where they can be, where options leave that open.
void Planner::add_ping_pong(const TensorCores& cores, const std::vector<WarpgroupShape>& shapes, size_t count,
                            std::vector<ContractionPlan>& found) const {
  constexpr int64_t kFewColumns = 128;  // boxes of fewer take longer than products
  const bool is_open = !options_.store_boxes && !options_.persistent && !options_.ping_pong &&
                       !request_.says_all_tiles() && options_.cluster.empty() && c_.reductions.empty();
  const int64_t of_step = joined_ ? 1 + static_cast<int64_t>(c_.further.size()) : 1;  // products
  if (!is_open || cores.computes_a || c_.selection) return;
  for (WarpgroupShape shape : shapes) {
    const int64_t columns =
        std::accumulate(shape.columns.begin(), shape.columns.end(), int64_t{1}, std::multiplies<>());
    if (columns * of_step < kFewColumns || !takes_turns(shape)) continue;
    shape.persistent = shape.ping_pong = true;
    for (const bool boxes : {true, false}) {
      if (cores.has_many_columns && !boxes) continue;
      shape.store_boxes = boxes;
      std::optional<ContractionPlan> candidate = plan(shape, cores, most_of(count, found));
      if (!candidate) continue;
      keep_best(*std::move(candidate), count, found);
      break;
    }
  }
}

/// The shape as one of a team of one warpgroup: false if it has too many rows for that.
bool Planner::takes_turns(WarpgroupShape& shape) {
  constexpr int64_t kMostAtoms = 2;
  const int64_t rows = std::accumulate(shape.rows.begin(), shape.rows.end(), int64_t{1}, std::multiplies<>());
  shape.row_atoms = rows / tile::WarpgroupAtom::kM;
  return shape.row_atoms <= kMostAtoms;
}

/// The best of `shapes` stored by boxes, with one tile of each block and with blocks that go on, where options leave
/// that open.
void Planner::add_stored_by_boxes(const TensorCores& cores, std::vector<std::pair<double, WarpgroupShape>> shapes,
                                  size_t count, std::vector<ContractionPlan>& found) const {
  constexpr size_t kTried = 4;
  if (options_.store_boxes || options_.persistent || request_.says_all_tiles()) return;
  std::stable_sort(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  shapes.resize(std::min(shapes.size(), kTried));
  const auto add = [&](const WarpgroupShape& shape) {
    std::optional<ContractionPlan> candidate = plan(shape, cores, most_of(count, found));
    if (candidate) keep_best(*std::move(candidate), count, found);
  };
  for (auto& [cycles, shape] : shapes) {
    const bool is_stored_by_boxes = std::exchange(shape.store_boxes, true);
    for (const int64_t group : {2, 8}) {
      shape.group = group;
      shape.persistent = true;
      add(shape);
      shape.persistent = false;
      if (group == 2 && !is_stored_by_boxes && !shape.ping_pong) add(shape);
    }
  }
}

std::vector<ContractionPlan> Planner::warpgroups(TensorCores cores, size_t count) const {
  std::vector<ContractionPlan> plans;
  if (!device_.accelerated || device_.warpgroup_products == 0) return plans;
  // A shorter reduction is one step, which boxes fill up with zeros.
  if (const int64_t least = values_of_slice(c_.operands[0]); multiplied_by_step() < least) {
    no("products of warpgroups have at least {} values of '{}'", least, c_.reduction[main_].name);
    return plans;
  }
  for (const TensorCores& sides : sides_of(std::move(cores))) add_warpgroups(sides, count, plans);
  return plans;
}

/// Which operand has the rows of an instruction, and which the columns: mostly those along which results are neighbours
/// are columns. An instruction has 64 rows at least, and 8 columns. So of few rows either operand may have them:
/// weights that a step brings for 16 rows are read once, and none of the rows are zeros.
std::vector<TensorCores> Planner::sides_of(TensorCores cores) const {
  constexpr int64_t kFew = 1024;
  const auto swap = [](TensorCores& sides) {
    std::swap(sides.a, sides.b);
    std::swap(sides.rows, sides.columns);
  };
  // What threads compute becomes the rows: the one operand that an instruction takes from registers.
  if (c_.operands[cores.a].computed || c_.operands[cores.b].computed) {
    cores.computes_a = true;
    if (!c_.operands[cores.a].computed) swap(cores);
  }
  std::vector<TensorCores> result = {in_order_of_boxes(c_, main_, cores)};
  result[0].pairs_rows = cores.computes_a && result[0].rows[0] > result[0].columns[0];
  int64_t rows = 1;
  for (const size_t axis : cores.rows) rows *= c_.parallel[axis].extent;
  // Pooled results are neighbours of a thread.
  if (cores.computes_a || !c_.pooled.empty() || !c_.reductions.empty()) return result;
  swap(cores);
  TensorCores other = in_order_of_boxes(c_, main_, cores);
  // Of more rows only where boxes store the results.
  other.has_many_columns = rows > kFew;
  if (!other.has_many_columns || (may_stage_across(other) && c_.further.empty())) result.push_back(std::move(other));
  return result;
}

/// Whether boxes may store results whose neighbours in memory are along the rows of an instruction.
bool Planner::may_stage_across(const TensorCores& cores) const {
  constexpr int64_t kHalf = 2, kVector = 8;
  if (!options_.store_boxes.value_or(true) || !c_.reductions.empty() || c_.stored.empty()) return false;
  if (cores.pairs_rows || c_.selection) return false;
  const std::string& row = c_.parallel[cores.rows[0]].name;
  return std::all_of(c_.stored.begin(), c_.stored.end(), [&](const StoredTensor& stored) {
    return stored.type.bytes() == kHalf && !stored.axes.empty() && stored.axes.back() == row &&
           stored.row_divisor() % kVector == 0;
  });
}

void Planner::add_warpgroups(const TensorCores& cores, size_t count, std::vector<ContractionPlan>& plans) const {
  std::vector<std::pair<double, WarpgroupShape>> alone;  // without clusters, with what they are estimated at
  constexpr int64_t kPair = 2;
  const bool across = may_stage_across(cores);
  const std::vector<WarpgroupShape> shapes = warpgroup_shapes(c_, main_, cores, request_.tile, across);
  for (WarpgroupShape shape : shapes) {
    // Threads would store parts of sectors where neighbours in memory are along the rows.
    const bool by_boxes = options_.store_boxes.value_or(across && shape.group == kPair);
    if (cores.has_many_columns && !by_boxes) continue;
    shape.ping_pong = options_.ping_pong.value_or(false);
    shape.persistent = options_.persistent.value_or(shape.ping_pong);
    if (shape.ping_pong && (!takes_turns(shape) || !shape.persistent)) {
      no("{}", shape.persistent ? "a warpgroup that takes turns has no more than 128 rows" : "each block has one tile");
      continue;
    }
    for (const auto& [rows, columns] : requested_clusters(cores)) {
      shape.cluster_rows = rows;
      shape.cluster_columns = columns;
      for (const int64_t parts : parts_of(shape, cores)) {
        shape.cluster_parts = parts;
        shape.store_boxes = parts > 1 ? options_.store_boxes.value_or(false) : by_boxes;
        if (cores.has_many_columns && parts > 1) continue;
        if (plans.size() == count && least_cycles_of(shape, cores) >= plans.back().cycles) continue;
        std::optional<ContractionPlan> candidate = plan(shape, cores, most_of(count, plans));
        if (!candidate && shape.store_boxes && !options_.store_boxes && !cores.has_many_columns) {
          shape.store_boxes = false;  // boxes may pass the results, or have no room for them
          candidate = plan(shape, cores, most_of(count, plans));
        }
        if (!candidate) continue;
        if (candidate->cluster_blocks() == 1 && parts == 1) {
          alone.emplace_back(candidate->cycles, shape);
          add_clusters(cores, *candidate, shape, count, plans);
        }
        keep_best(*std::move(candidate), count, plans);
      }
    }
  }
  add_stored_by_boxes(cores, std::move(alone), count, plans);
  add_ping_pong(cores, shapes, count, plans);
}

}  // namespace tc::gpu
