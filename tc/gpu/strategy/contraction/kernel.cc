#include "tc/gpu/strategy/contraction/kernel.h"

#include <algorithm>
#include <numeric>

#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/lower/vectorize.h"
#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/row_stores.h"
#include "tc/gpu/strategy/contraction/sharing.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

Expr ContractionBuilder::define(const std::string& wish, const Expr& value) {
  const Expr simple = hi::simplify(value);
  if (hi::is_const(simple) || simple.as<hi::Variable>()) return simple;
  definitions_.emplace_back(names_.fresh(wish), simple);
  return build::var(definitions_.back().first);
}

NodePtr ContractionBuilder::with_definitions(NodePtr body, size_t first, size_t last) const {
  for (size_t i = last; i-- > first;) body = build::let(definitions_[i].first, definitions_[i].second, body);
  return body;
}

/// The kernel's body with vectors in the place of neighbours that points read, and of runs of computed operands.
NodePtr ContractionBuilder::with_vectors(const NodePtr& body) {
  std::vector<tile::Tensor> computed;
  for (size_t i = 0; i < c_.operands.size(); ++i) {
    if (c_.operands[i].computed && !plan_.by_warpgroups() && plan_.operands[i].vector > 1)
      computed.push_back(shared_[i]);
  }
  return vectorize(body, program_, names_, computed);
}

/// Axes with several blocks take x, y and z, the fastest first; with more of them, or too many blocks, all share x.
void ContractionBuilder::place_blocks(tile::Kernel& kernel) {
  constexpr int64_t kMostInYZ = 65535;
  std::vector<size_t> axes;
  bool fits = true;
  for (size_t axis : plan_.order) {
    if (plan_.parallel[axis].blocks == 1 || axis == slab_axis_) continue;
    fits = fits && (axes.empty() || plan_.parallel[axis].blocks <= kMostInYZ);
    axes.push_back(axis);
  }
  fits = fits && axes.size() <= 3;
  std::map<size_t, Expr> block;
  int64_t stride = 1;
  if (plan_.by_warpgroups()) {
    block = blocks_in_groups(kernel);
    axes.clear();
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t count = plan_.parallel[axes[i]].blocks;
    if (fits) {
      kernel.grid[i] = count;
      block[axes[i]] = build::var(tile::kBlock[i]);
      continue;
    }
    Expr number = build::block_x();
    if (stride > 1) number = number / static_cast<int>(stride);
    if (i + 1 < axes.size()) number = number % static_cast<int>(count);
    block[axes[i]] = number;
    stride *= count;
    kernel.grid[0] = stride;
  }
  for (size_t axis = 0; axis < c_.parallel.size(); ++axis) {
    const Expr begin = static_cast<int>(c_.parallel[axis].begin);
    const auto found = block.find(axis);
    const auto tile = static_cast<int>(plan_.parallel[axis].tile);
    if (found != block.end() && axis < is_reversed_.size() && is_reversed_[axis]) {
      found->second = hi::simplify(static_cast<int>(plan_.parallel[axis].blocks - 1) - found->second);
    }
    block_.push_back(found == block.end() ? Expr(0) : found->second);
    first_.push_back(found == block.end() ? begin
                                          : define(c_.parallel[axis].name + "_block", found->second * tile + begin));
  }
  if (!tile_.empty()) tiles_before_ = define("tiles_before", build::var(tile_) / static_cast<int>(plan_.grid));
  of_block_ = definitions_.size();
}

/// A block's rows are those of the product before.
void ContractionBuilder::place_like(const ContractionBuilder& before, const ChainLink& link) {
  for (const Axis& axis : c_.parallel) first_.push_back(static_cast<int>(axis.begin));
  for (const ChainLink::Dimension& d : link.dimensions) {
    if (!d.is_row) continue;
    const int64_t apart = c_.parallel[d.read_by].begin - before.c_.parallel[d.made_by].begin;
    first_[d.read_by] = hi::simplify(before.first_[d.made_by] + static_cast<int>(apart));
  }
}

void ContractionBuilder::place_threads() {
  const int64_t threads = plan_.points_threads();
  part_ = plan_.groups == 1 ? Expr(0) : define("part", build::thread_x() / static_cast<int>(threads));
  point_thread_ =
      plan_.groups == 1 ? build::thread_x() : define("point_thread", build::thread_x() % static_cast<int>(threads));
  if (threads == 1) point_thread_ = 0;
  thread_.assign(c_.parallel.size(), 0);
  if (plan_.by_warpgroups()) {
    place_warpgroups(*plan_.tensor_cores);
  } else if (plan_.tensor_cores) {
    place_warps(*plan_.tensor_cores);
  } else {
    place_by_order(threads);
  }
  for (const Axis& axis : c_.parallel) {
    high_.push_back(names_.fresh(axis.name + "_high"));
    low_.push_back(names_.fresh(axis.name + "_low"));
  }
  for (const Axis& axis : c_.reduction) inner_.push_back(names_.fresh(axis.name));
}

void ContractionBuilder::place_by_order(int64_t threads) {
  int64_t stride = 1;
  for (size_t axis : plan_.order) {
    const int64_t count = plan_.parallel[axis].threads();
    if (count == 1) continue;
    Expr number = point_thread_;
    if (stride > 1) number = number / static_cast<int>(stride);
    if (stride * count < threads) number = number % static_cast<int>(count);
    thread_[axis] = define(c_.parallel[axis].name + "_thread", number);
    stride *= count;
  }
}

/// Warps go along columns, then rows; in each, threads have columns and rows as the atom's sums do.
void ContractionBuilder::place_warps(const TensorCores& cores) {
  constexpr int kWarp = 32, kColumnThreads = 4;
  int64_t column_threads = 1;
  for (size_t axis : cores.columns) column_threads *= plan_.parallel[axis].threads();
  const auto column_warps = static_cast<int>(column_threads / kColumnThreads);
  const auto warps = static_cast<int>(plan_.points_threads() / kWarp);
  lane_ = plan_.threads() == kWarp ? point_thread_ : define("lane", point_thread_ % kWarp);
  const Expr warp = warps == 1 ? Expr(0) : define("warp", point_thread_ / kWarp);
  column_warp_ = define("column_warp", column_warps == warps ? warp : warp % column_warps);
  row_warp_ = define("row_warp", warp / column_warps);
  const auto place = [&](const std::vector<size_t>& axes, const Expr& first) {
    Expr rest = first;
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto count = static_cast<int>(plan_.parallel[axes[i]].threads());
      thread_[axes[i]] = define(c_.parallel[axes[i]].name + "_thread", i + 1 < axes.size() ? rest % count : rest);
      rest = rest / count;
    }
  };
  place(cores.columns, lane_ % kColumnThreads + column_warp_ * kColumnThreads);
  place(cores.rows, lane_ / kColumnThreads + row_warp_ * (kWarp / kColumnThreads));
}

/// high * group + low, without what has one value.
Expr ContractionBuilder::register_at(size_t axis) const {
  const AxisPlan& a = plan_.parallel[axis];
  Expr result = 0;
  if (a.registers > a.group) result = build::var(high_[axis]) * static_cast<int>(a.group);
  if (a.group > 1) result = result + build::var(low_[axis]);
  return result;
}

Expr ContractionBuilder::local(size_t axis) const {
  const AxisPlan& a = plan_.parallel[axis];
  if (plan_.by_warpgroups() && !row_digits(axis, plan_).empty()) {
    Expr row = thread_[axis];
    for (const RowDigit digit : row_digits(axis, plan_)) {
      row = row + row_digit(axis, digit) * static_cast<int>(rows_apart(axis, plan_, digit));
    }
    return hi::simplify(row);
  }
  Expr result = thread_[axis] * static_cast<int>(a.group);
  if (a.registers > a.group) {
    result = result + build::var(high_[axis]) * static_cast<int>(a.threads() * a.group);
  }
  if (a.group > 1) result = result + build::var(low_[axis]);
  return hi::simplify(result);
}

/// A digit of an axis's registers.
Expr ContractionBuilder::row_digit(size_t axis, RowDigit digit) const {
  const std::vector<RowDigit> digits = row_digits(axis, plan_);
  if (digits.size() == 1) return build::var(high_[axis]);
  return digit == digits[0] ? build::var(high_[axis]) % 2 : build::var(high_[axis]) / 2;
}

bool ContractionBuilder::is_partial(size_t axis) const {
  return c_.parallel[axis].extent != plan_.parallel[axis].blocks * plan_.parallel[axis].tile;
}

std::vector<size_t> ContractionBuilder::all_axes() const {
  return std::vector<size_t>(plan_.order.rbegin(), plan_.order.rend());
}

/// Unrolled loops over the registers of some axes; of the group of one axis none, where the body does it as a whole.
NodePtr ContractionBuilder::over_registers(const std::vector<size_t>& axes, const Body& body, int whole_group) const {
  NodePtr result = body();
  for (size_t i = axes.size(); i-- > 0;) {
    const AxisPlan& a = plan_.parallel[axes[i]];
    if (a.group > 1 && static_cast<int>(axes[i]) != whole_group) {
      result = build::unrolled(low_[axes[i]], 0, static_cast<int>(a.group), result);
    }
    if (a.registers > a.group) {
      result = build::unrolled(high_[axes[i]], 0, static_cast<int>(a.registers / a.group), result);
    }
  }
  return result;
}

/// The dimensions that are one run in the box as one.
std::vector<int64_t> ContractionBuilder::merged_extents(size_t operand, const std::vector<int64_t>& extents) const {
  const auto first = extents.begin() + static_cast<long>(plan_.operands[operand].merged);
  std::vector<int64_t> result(extents.begin(), first);
  result.push_back(std::accumulate(first, extents.end(), int64_t{1}, std::multiplies<>()));
  return result;
}

/// An operand's tensor in memory, with those dimensions as one.
tile::Layout ContractionBuilder::layout_in_memory(size_t operand) const {
  const Operand& o = c_.operands[operand];
  const std::vector<int64_t> extents = merged_extents(operand, o.extents);
  std::vector<tile::IntTuple> strides(o.strides.begin(), o.strides.begin() + static_cast<long>(extents.size()));
  strides.back() = 1;  // a run's
  return {std::vector<tile::IntTuple>(extents.begin(), extents.end()), strides};
}

std::vector<Expr> ContractionBuilder::merged(size_t operand, std::vector<Expr> position) const {
  const OperandPlan& o = plan_.operands[operand];
  Expr run = 0;
  int64_t stride = 1;
  for (size_t d = position.size(); d-- > o.merged;) {
    run = run + position[d] * static_cast<int>(stride);
    stride *= c_.operands[operand].extents[d];
  }
  position.resize(o.merged);
  position.push_back(hi::simplify(run));
  return position;
}

Tensor ContractionBuilder::shared_tensor(size_t operand) const {
  const OperandPlan& o = plan_.operands[operand];
  const std::vector<int64_t> box = merged_extents(operand, o.box);
  std::vector<tile::IntTuple> extents(box.begin(), box.end()), strides(o.strides.begin(), o.strides.end());
  strides.resize(box.size());
  if (o.innermost >= o.merged) strides[o.merged] = 1;
  if (o.dealt_by > 1) {
    extents[o.dealt] = {o.dealt_by, box[o.dealt] / o.dealt_by};
    strides[o.dealt] = {o.dealt_stride, o.strides[o.dealt]};
  }
  extents.insert(extents.begin(), operand == once_ ? 1 : plan_.stages);
  strides.insert(strides.begin(), o.stage);
  Tensor tensor = build::shared("", c_.operands[operand].type, tile::Layout(extents, strides));
  tensor.written = true;
  return tensor;
}

Tensor ContractionBuilder::fragment(size_t operand) const {
  const OperandPlan& o = plan_.operands[operand];
  std::vector<int64_t> extents;
  if (plan_.tensor_cores) {
    const TensorCores& cores = *plan_.tensor_cores;
    extents = {1, fragment_values(operand)};
    for (size_t axis : operand == cores.a ? cores.rows : cores.columns) extents[0] *= plan_.parallel[axis].registers;
    extents[0] /= 2;
    Tensor tensor = build::registers("", c_.operands[operand].type, row_major(extents));
    tensor.written = true;
    return tensor;
  }
  for (size_t axis : o.axes) {
    if (static_cast<int>(axis) != o.group_axis) extents.push_back(plan_.parallel[axis].registers);
  }
  if (o.group_axis >= 0) extents.push_back(plan_.parallel[static_cast<size_t>(o.group_axis)].registers);
  extents.push_back(o.along_main ? plan_.vector : 1);
  if (!o.along_main && extents.size() > 1) extents.pop_back();
  Tensor tensor = build::registers("", c_.operands[operand].type, row_major(extents));
  tensor.written = true;
  return tensor;
}

std::vector<Expr> ContractionBuilder::fragment_subscripts(size_t operand, const Expr& in_vector) const {
  const OperandPlan& o = plan_.operands[operand];
  std::vector<Expr> result;
  for (size_t axis : o.axes) {
    if (static_cast<int>(axis) != o.group_axis) result.push_back(register_at(axis));
  }
  if (o.group_axis >= 0) result.push_back(register_at(static_cast<size_t>(o.group_axis)));
  if (o.along_main) result.push_back(in_vector);
  if (result.empty()) result.push_back(0);
  return result;
}

std::vector<Expr> ContractionBuilder::sum_subscripts() const {
  std::vector<Expr> result;
  for (size_t axis : all_axes()) result.push_back(register_at(axis));
  return result;
}

void ContractionBuilder::declare_operands(const std::vector<Tensor>* shared) {
  for (size_t i = 0; i < c_.operands.size(); ++i) {
    if (plan_.by_warpgroups()) {
      declare_boxes(i, shared);
      continue;
    }
    const bool is_there = shared && !(*shared)[i].name.empty();
    shared_.push_back(is_there ? (*shared)[i] : shared_tensor(i));
    if (!is_there) shared_.back().name = names_.fresh(c_.operands[i].tensor + "_shared");
    fragments_.push_back(fragment(i));
    fragments_.back().name = names_.fresh(c_.operands[i].tensor + "_reg");
  }
}

/// The sums of a thread of a warpgroup, in the instruction's order: two columns of each of its two rows. One
/// instruction's follow the other's.
tile::Layout ContractionBuilder::layout_of_sums(const std::vector<int64_t>& extents) const {
  constexpr int64_t kOfColumns = 2;  // sums of a thread for each column of the tile, by four
  const std::vector<size_t> axes = all_axes();
  const std::vector<size_t>& columns = plan_.tensor_cores->columns;
  std::vector<tile::IntTuple> shape, stride;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto column = std::find(columns.begin(), columns.end(), axes[i]);
    const bool is_first = column == columns.begin();
    const int64_t before = tile_of({columns.begin(), column}, plan_);
    const int64_t of_atom = tile_of(columns, plan_) / kOfColumns;
    const std::vector<RowDigit> digits = row_digits(axes[i], plan_);
    if (digits.size() == 2) {
      shape.push_back({2, 2});
      stride.push_back({2, of_atom});
      continue;
    }
    const bool counts_atoms = digits == std::vector{RowDigit::kAtoms};
    shape.push_back(is_first ? tile::IntTuple{2, extents[i] / 2} : tile::IntTuple(extents[i]));
    stride.push_back(is_first                  ? tile::IntTuple{1, 4}
                     : column == columns.end() ? tile::IntTuple(counts_atoms ? of_atom : 2)
                                               : tile::IntTuple(before / kOfColumns));
  }
  return {shape, stride};
}

void ContractionBuilder::declare_sums() {
  std::vector<int64_t> extents;
  for (size_t axis : all_axes()) extents.push_back(plan_.parallel[axis].registers);
  const tile::Layout layout = plan_.by_warpgroups() ? layout_of_sums(extents) : row_major(extents);
  sum_ = build::registers(names_.fresh(c_.update.tensor + "_sum"), c_.update.accumulator, layout);
  sum_.written = true;
  extents.push_back(plan_.groups);
  extents.push_back(plan_.points_threads());
  if (plan_.groups > 1) {
    sums_ = build::shared(names_.fresh(c_.update.tensor + "_sums"), c_.update.accumulator, row_major(extents));
    sums_.written = true;
  }
}

/// A further product: at the places of the first one, with names of its own.
void ContractionBuilder::join(ContractionBuilder& main) {
  names_ = main.names_;
  first_ = main.first_;
  thread_ = main.thread_;
  part_ = main.part_;
  point_thread_ = main.point_thread_;
  lane_ = main.lane_;
  row_warp_ = main.row_warp_;
  warp_ = main.warp_;
  column_warp_ = main.column_warp_;
  ring_ = main.ring_;
  tile_ = main.tile_;
  tiles_before_ = main.tiles_before_;
  slices_ = main.slices_;
  high_ = main.high_;
  low_ = main.low_;
  places_ = main.places_;
  for (const Axis& axis : c_.reduction) inner_.push_back(names_.fresh(axis.name));
  takes_turns_ = take_turns(main.c_, main.plan_, c_, plan_);
  is_joined_ = main.plan_.joined > 0;
  std::vector<Tensor> shared = main.shared_;
  if (plan_.by_warpgroups() && main.plan_.tensor_cores->a != plan_.tensor_cores->a) std::swap(shared[0], shared[1]);
  if (is_joined_) {
    joined_is_a_ = main.plan_.joined_operand == main.plan_.tensor_cores->a;
    shared[1 - joined_operand()].name.clear();
  }
  declare_operands(takes_turns_ || is_joined_ ? &shared : nullptr);
  if (!goes_on_) declare_sums();
  main.names_ = names_;
}

/// Whether all that is done to points is their reduction, and groups of neighbours lie inside or outside as a whole.
bool ContractionBuilder::reduces_whole_groups() const {
  const size_t axis = plan_.order[0];
  const std::vector<std::string> names = written();
  const bool is_stored = std::any_of(names.begin(), names.end(), [&](const auto& name) { return is_seen(name); });
  return !c_.reductions.empty() && !is_stored && plan_.groups == 1 && plan_.cluster_parts == 1 && !fills_ &&
         c_.parallel[axis].extent % plan_.parallel[axis].group == 0;
}

/// `shared`: where operands are that the kernel has a place for.
void ContractionBuilder::declare_tensors(const std::vector<Tensor>* shared) {
  declare_operands(shared);
  declare_sums();
  for (const ir::Tensor& tensor : program_.tensors) {
    places_[tensor.name] = {tensor.name, tensor.type, {}, ir::constant_shape(tensor)};
  }
  for (const std::string& name : written()) {
    if (stores_vectors(name) && is_seen(name)) store_axis_ = static_cast<int>(plan_.order[0]);
  }
  const bool by_rows = is_alone_ && stores_by_rows(c_, plan_);
  if (keeps_vectors() || !c_.pooled.empty() || plan_.store_boxes || by_rows || reduces_whole_groups()) {
    store_axis_ = static_cast<int>(plan_.order[0]);
  }
  const int64_t lanes = store_axis_ < 0 ? 1 : plan_.parallel[static_cast<size_t>(store_axis_)].group;
  for (const std::string& name : written()) {
    const Halide::Type type = unrounded(name).defined() ? Halide::Float(32) : program_.tensor(name).type;
    results_[name] = build::registers(names_.fresh(name + "_reg"), type, tile::Layout::row_major({lanes}));
  }
  for (const Pooled& pooled : c_.pooled) {
    const std::string& name = pooled.statement.tensor;
    if (pooled_.count(name) > 0) continue;
    pooled_[name] = build::registers(names_.fresh(name + "_reg"), program_.tensor(name).type,
                                     tile::Layout::row_major({lanes / c_.run}));
  }
  total_ = build::registers(names_.fresh(c_.update.tensor + "_total"), c_.update.accumulator,
                            tile::Layout::row_major({lanes}));
  declare_reductions();
  int64_t turns = plan_.steps(c_);
  for (size_t i = 0; i < further_.size(); ++i) {
    ContractionBuilder& product = further_[i];
    product.first_turn_ = plan_.joined > 0 ? 0 : turns;
    if (plan_.joined == 0) turns += product.plan_.steps(product.c_);
    product.goes_on_ = accumulator_of(c_, i + 1) != i + 1;
    product.join(*this);
    if (product.goes_on_) {
      product.sum_ = i == 0 ? sum_ : further_[i - 1].sum_;
    } else {
      product.total_ = build::registers(names_.fresh(product.c_.update.tensor + "_total"),
                                        product.c_.update.accumulator, tile::Layout::row_major({lanes}));
    }
  }
  turns_ = turns;
  for (ContractionBuilder& product : further_) product.turns_ = turns;
  if (plan_.cluster_parts > 1) declare_cluster_sums();
  declare_staging();
  if (by_rows) declare_rows();
}

NodePtr ContractionBuilder::start_sums() const {
  return over_registers(all_axes(), [&] {
    return build::store(sum_, sum_subscripts(), ir::identity_of(c_.update.assign, c_.update.accumulator));
  });
}

/// The sums of a product, from its identity on or from what they are.
std::vector<NodePtr> ContractionBuilder::sum_up() {
  std::vector<NodePtr> parts;
  if (takes_turns_ && !plan_.by_warpgroups()) parts.push_back(build::barrier());
  NodePtr sums = reduce();
  for (size_t i = fragments_.size(); i-- > 0;) sums = build::allocate(fragments_[i], sums);
  if (c_.update.assign != ir::Assign::kSet && !goes_on_) parts.push_back(start_sums());
  parts.push_back(sums);
  return parts;
}

tile::Kernel ContractionBuilder::run(const std::string& name) {
  tile::Kernel kernel;
  kernel.name = name;
  kernel.block = {plan_.block_threads(), 1, 1};
  place_blocks(kernel);
  place_threads();
  if (plan_.by_warpgroups()) ring_ = names_.fresh("ring");
  if (c_.selection) declare_slices();
  is_alone_ = true;
  declare_tensors();
  std::vector<NodePtr> parts;
  for (const ContractionBuilder& product : further_) {
    if (product.is_joined_ && product.c_.update.assign != ir::Assign::kSet) parts.push_back(product.start_sums());
  }
  for (NodePtr& node : sum_up()) parts.push_back(std::move(node));
  const ContractionBuilder* before = this;  // with sums of its own
  for (ContractionBuilder& product : further_) {
    if (product.is_joined_) continue;
    // Its registers are free for the next sums.
    if (plan_.groups > 1 && !product.goes_on_) parts.push_back(before->put_sums());
    if (!product.goes_on_) before = &product;
    product.names_ = names_;
    for (NodePtr& node : product.sum_up()) parts.push_back(std::move(node));
    names_ = product.names_;
  }
  std::vector<const ContractionBuilder*> products = {this};
  for (const ContractionBuilder& product : further_) products.push_back(&product);
  if (plan_.by_warpgroups()) {
    for (const ContractionBuilder* product : products) {
      for (size_t i = 0; i < product->maps_.size(); ++i) {
        if (!product->is_joined_ || i != product->joined_operand()) kernel.maps.push_back(product->maps_[i]);
      }
    }
    kernel.maps.insert(kernel.maps.end(), stored_maps_.begin(), stored_maps_.end());
    parts.push_back(release_last_turn());
    parts.push_back(exchange_columns(names_));
    for (ContractionBuilder& product : further_) {
      if (!product.goes_on_) parts.push_back(product.exchange_columns(names_));
    }
  }
  NodePtr results = build::sequence({start_reductions(), finish(), reduce_threads()});
  for (const TileSum& sum : reductions_) results = build::allocate(sum.sums, results);
  const bool in_cluster = plan_.cluster_parts > 1;
  if (!in_cluster) parts.push_back(results);
  NodePtr body = build::sequence(std::move(parts));
  for (size_t p = products.size(); p-- > 0;) {
    const ContractionBuilder& product = *products[p];
    if (in_cluster) body = finish_in_cluster(with_producer(body), results);
    if (!product.columns_.name.empty()) body = build::allocate(product.columns_, body);
    if (!product.goes_on_) body = build::allocate(product.sum_, body);
    if (p == 0 && plan_.by_warpgroups() && !in_cluster) body = with_producer(body);
    if (p == 0) {
      for (const auto& [name, rows] : rows_) body = build::allocate(rows, body);
      body = with_reductions(body);
    }
    if (plan_.groups > 1 && !product.goes_on_) body = build::allocate(product.sums_, body);
    if (product.is_joined_) continue;
    for (size_t i = product.takes_turns_ ? 0 : product.shared_.size(); i-- > 0;)
      body = build::allocate(product.shared_[i], body);
  }
  for (const ContractionBuilder* product : products) {  // boxes for the first one's steps
    if (product->is_joined_) body = build::allocate(product->shared_[1 - product->joined_operand()], body);
  }
  for (size_t i = staged_.size(); i-- > 0;) body = build::allocate(staged_[i], body);
  kernel.body = with_vectors(with_definitions(body, tile_.empty() ? 0 : of_block_, definitions_.size()));
  gpu::declare_tensors(kernel, program_);
  for (const ContractionBuilder* product : products) {
    for (size_t i = 0; i < product->c_.operands.size(); ++i) {
      const Operand& operand = product->c_.operands[i];
      for (Tensor& tensor : kernel.tensors) {
        if (tensor.name == operand.tensor && !operand.chosen_row) tensor.layout = product->layout_in_memory(i);
      }
    }
  }
  return kernel;
}

tile::Kernel contraction_kernel(const poly::Scop& scop, const Contraction& contraction,
                                const std::vector<ContractionPlan>& plans, const std::string& name) {
  return ContractionBuilder(scop, contraction, plans).run(name);
}

}  // namespace tc::gpu
