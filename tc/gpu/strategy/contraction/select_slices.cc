#include "tc/gpu/lower/body.h"
#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/selection.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/ir/index_expr.h"

/// How a block finds the slices that data select for its rows, and goes through them.
///     keys(row) = E(m_block + row)                                      for each row, by a thread of its own
///     firsts(row) = no row before it has its key
///     places(row) = how many keys of first rows are less                or -1
///     in_turn(i) = the key of the row whose place is i
///     for number in 0:count   the product by slice in_turn(number); stores of the rows that have its key
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

void ContractionBuilder::declare_slices() {
  const Operand& operand =
      *std::find_if(c_.operands.begin(), c_.operands.end(), [](const Operand& o) { return o.selected.has_value(); });
  const auto list = [&](const char* name, int64_t elements) {
    Tensor tensor = build::shared(names_.fresh(operand.tensor + name), Halide::Int(32), row_major({elements}));
    tensor.written = true;
    return tensor;
  };
  const std::vector<size_t>& axes = plan_.tensor_cores->rows;
  const int64_t rows = tile_of(axes, plan_);
  slices_.keys = list("_keys", rows);
  slices_.firsts = list("_firsts", rows);
  slices_.places = list("_places", rows);
  slices_.in_turn = list("_in_turn", rows);
  slices_.count = list("_count", 1);
  slices_.number = names_.fresh("slice_number");
  slices_.key = names_.fresh("key");
  slices_.slice = names_.fresh("slice");
  slices_.found = names_.fresh("slices");
  slices_.counts_down = hi::simplify(block_[axes[0]] % 2 == 1);
}

/// What selects the slice of the row that has the thread's number; behind the last row it is that row's.
Expr ContractionBuilder::own_selection() const {
  const std::vector<size_t>& rows = plan_.tensor_cores->rows;
  BodyContext context;
  context.program = &program_;
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor); };
  for (size_t axis = 0; axis < c_.parallel.size(); ++axis) {
    const Axis& a = c_.parallel[axis];
    if (!ir::mentions(*c_.selection, a.name)) continue;
    Expr value = first_[axis];
    int64_t stride = 1;
    for (size_t row : rows) {
      const int64_t tile = plan_.parallel[row].tile;
      if (row == axis && tile > 1) {
        value = value + build::thread_x() / static_cast<int>(stride) % static_cast<int>(tile);
      }
      stride *= tile;
    }
    const int64_t last = a.begin + a.extent - 1;
    value = hi::simplify(is_partial(axis) ? hi::Min::make(value, static_cast<int>(last)) : value);
    context.indices[a.name] = poly::ranged(value, a.begin, last);
  }
  const Expr selection = instance_value(*c_.selection, context);
  return selection.type() == Halide::Int(32) ? selection : hi::Cast::make(Halide::Int(32), selection);
}

/// A loop over the rows of a block, with what the lists have of each.
NodePtr ContractionBuilder::for_each_row(
    const std::vector<const Tensor*>& lists,
    const std::function<NodePtr(const Expr& row, const std::vector<Expr>& values)>& body) {
  constexpr int kVector = 4;
  const std::string group = names_.fresh("row_high"), low = names_.fresh("row_low");
  const Expr first = build::var(group) * kVector;
  std::vector<NodePtr> parts;
  std::vector<Tensor> vectors;
  std::vector<Expr> values;
  for (const Tensor* list : lists) {
    Tensor vector = build::registers(names_.fresh(list->name + "_vector"), list->type, row_major({kVector}));
    vector.written = true;
    parts.push_back(build::move(vector, {0}, *list, {first}, kVector));
    values.push_back(build::read(vector, {build::var(low)}));
    vectors.push_back(std::move(vector));
  }
  parts.push_back(build::unrolled(low, 0, kVector, body(first + build::var(low), values)));
  NodePtr result = build::sequence(std::move(parts));
  for (const Tensor& vector : vectors) result = build::allocate(vector, result);
  return build::for_loop(group, 0, static_cast<int>(tile_of(plan_.tensor_cores->rows, plan_) / kVector), result);
}

NodePtr ContractionBuilder::find_slices() {
  const Slices& s = slices_;
  const auto rows = static_cast<int>(tile_of(plan_.tensor_cores->rows, plan_));
  const Expr row = build::thread_x();
  const auto scalar = [&](const char* name) {
    Tensor tensor = build::registers(names_.fresh(name), Halide::Int(32), row_major({1}));
    tensor.written = true;
    return tensor;
  };
  const auto set = [](const Tensor& to, const Expr& value) { return build::store(to, {0}, value); };
  const auto add = [&](const Tensor& to, const Expr& condition) {
    return set(to, build::read(to, {0}) + hi::Select::make(condition, 1, 0));
  };
  const Expr selection = own_selection();
  const NodePtr keys =
      build::store(s.keys, {row}, hi::simplify(hi::Select::make(s.counts_down, -1 - selection, selection)));

  const std::string own = names_.fresh("own_key");
  const Tensor before = scalar("before");
  const NodePtr count_before = for_each_row({&s.keys}, [&](const Expr& other, const std::vector<Expr>& values) {
    return add(before, other < row && values[0] == build::var(own));
  });
  const NodePtr firsts = build::allocate(
      before, build::let(own, build::read(s.keys, {row}),
                         build::sequence(
                             {set(before, 0), count_before,
                              build::store(s.firsts, {row}, hi::Select::make(build::read(before, {0}) == 0, 1, 0))})));

  const Tensor less = scalar("less"), all = scalar("all");
  const NodePtr count_less = for_each_row({&s.keys, &s.firsts}, [&](const Expr&, const std::vector<Expr>& values) {
    return build::sequence({add(less, values[1] == 1 && values[0] < build::var(own)), add(all, values[1] == 1)});
  });
  const Expr place = hi::Select::make(build::read(s.firsts, {row}) == 1, build::read(less, {0}), -1);
  NodePtr places = build::sequence({set(less, 0), set(all, 0), count_less, build::store(s.places, {row}, place),
                                    build::if_then(row == 0, build::store(s.count, {0}, build::read(all, {0})))});
  places = build::allocate(less, build::allocate(all, build::let(own, build::read(s.keys, {row}), places)));

  const Tensor key = scalar("found_key");
  const NodePtr look = for_each_row({&s.keys, &s.places}, [&](const Expr&, const std::vector<Expr>& values) {
    return set(key, hi::Select::make(values[1] == row, values[0], build::read(key, {0})));
  });
  const NodePtr in_turn =
      build::allocate(key, build::sequence({set(key, 0), look, build::store(s.in_turn, {row}, build::read(key, {0}))}));

  std::vector<NodePtr> parts;
  for (const NodePtr& part : {keys, firsts, places, in_turn}) {
    parts.push_back(build::if_then(row < rows, part));
    parts.push_back(build::barrier());
  }
  return build::sequence(std::move(parts));
}

/// The body for each slice of the block.
NodePtr ContractionBuilder::over_slices(const NodePtr& body) const {
  const Slices& s = slices_;
  const Expr key = build::var(s.key);
  const Expr slice = hi::simplify(hi::Select::make(s.counts_down, -1 - key, key));
  const auto rows = static_cast<int>(tile_of(plan_.tensor_cores->rows, plan_));
  const NodePtr turn =
      build::let(s.key, build::read(s.in_turn, {build::var(s.number)}), build::let(s.slice, slice, body));
  return build::for_loop(s.number, 0, hi::Min::make(build::var(s.found), rows), turn);
}

/// The body behind what finds the slices.
NodePtr ContractionBuilder::with_slices(const NodePtr& body) {
  const Slices& s = slices_;
  NodePtr result = build::sequence({find_slices(), build::let(s.found, build::read(s.count, {0}), body)});
  for (const Tensor* list : {&s.count, &s.in_turn, &s.places, &s.firsts, &s.keys}) {
    result = build::allocate(*list, result);
  }
  return result;
}

/// Whether the row of the thread's point has the slice's key.
Expr ContractionBuilder::is_selected() const {
  Expr row = 0;
  int64_t stride = 1;
  for (size_t axis : plan_.tensor_cores->rows) {
    const int64_t tile = plan_.parallel[axis].tile;
    if (tile > 1) row = row + local(axis) * static_cast<int>(stride);
    stride *= tile;
  }
  return build::read(slices_.keys, {hi::simplify(row)}) == build::var(slices_.key);
}

}  // namespace tc::gpu
