#include "tc/tile/value_views.h"

#include <fmt/format.h>

#include <algorithm>

#include "tc/ir/halide_compat.h"
#include "tc/tile/int_tuple.h"

namespace tc::tile {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

std::vector<Exprs> all_of(const Value& value) {
  std::vector<Exprs> result = {value.instance};
  for (const std::vector<Place>* places : {&value.to, &value.from}) {
    for (const Place& place : *places) {
      result.push_back(place.subscripts);
      result.emplace_back(place.block.begin(), place.block.end());
      result.emplace_back(place.thread.begin(), place.thread.end());
      if (place.turn.defined()) result.push_back({place.turn});
    }
  }
  return result;
}

std::string subscript_name(const Tensor& tensor, size_t dimension) {
  return fmt::format("{}[{}]", tensor.name, dimension);
}

int64_t extent_of(const Tensor& tensor, size_t dimension) {
  return product(tensor.layout.shape()[static_cast<int>(dimension)]);
}

}  // namespace

struct ValueViews::Viewed {
  Viewed(isl::ctx ctx, const Kernel& alone, DigitValues own) : digits(std::move(own)), view(ctx, alone, digits.path) {}
  DigitValues digits;
  AffineView view;  ///< refers to the digits
};

ValueViews::ValueViews(const Kernel& kernel, const Flow& flow, isl::ctx ctx, const std::vector<Value>& values)
    : kernel_(kernel), alone_(alone(kernel)), flow_(flow), ctx_(ctx) {
  for (const Leaf& leaf : flow.leaves) depth_ = std::max(depth_, leaf.path.loops.size());
  for (const Value& value : values) add_cuts(value.path, all_of(value), cuts_);
  for (const Value& value : values) {
    for (const Place& place : value.to) cut_subscripts(value, place);
    for (const Place& place : value.from) cut_subscripts(value, place);
  }
}

/// Registers are numbered by digits of their values' places in tiles: cuts subscripts where those run.
void ValueViews::cut_subscripts(const Value& value, const Place& place) {
  if (place.tensor->memory != Memory::kRegister || place.subscripts.empty()) return;
  const Exprs subscripts = in_digits(kernel_, value.path, {place.subscripts}, cuts_).values[0];
  for (size_t d = 0; d < subscripts.size(); ++d) {
    for (const int64_t stride : coefficients_of(subscripts[d])) {
      cuts_[subscript_name(*place.tensor, d)].insert(stride);
    }
  }
}

const ValueViews::Viewed& ValueViews::viewed(const Value& value) {
  std::shared_ptr<const Viewed>& known = viewed_[&value];
  if (!known) known = std::make_shared<const Viewed>(ctx_, alone_, in_digits(kernel_, value.path, {}, cuts_));
  return *known;
}

const AffineView& ValueViews::view(const Value& value) { return viewed(value).view; }

std::optional<isl::map> ValueViews::map_of(const Value& value, const Exprs& exprs) {
  return values_at(view(value), in_digits(kernel_, value.path, {exprs}, cuts_).values[0]);
}

std::optional<isl::set> ValueViews::reading(const Value& value, const Place& place) {
  isl::set result = view(value).domain();
  for (const Expr& condition : place.conditions) {
    const Exprs own = in_digits(kernel_, value.path, {{condition}}, cuts_).values[0];
    const std::optional<isl::set> holds = view(value).holds(own[0]);
    if (!holds) return std::nullopt;
    result = result.intersect(*holds);
  }
  return result;
}

void ValueViews::add_digits(Exprs& key, const Expr& e, const std::string& variable, int64_t extent) const {
  if (extent == 1) return;
  const std::vector<int64_t> strides = digit_strides(cuts_, variable, extent);
  for (size_t d = 0; d < strides.size(); ++d) {
    Expr digit = strides[d] == 1 ? e : e / hi::make_const(e.type(), strides[d]);
    if (d + 1 < strides.size()) digit = digit % hi::make_const(e.type(), strides[d + 1] / strides[d]);
    key.push_back(digit);
  }
}

void ValueViews::add_iteration(Exprs& key, const For& loop) const {
  const Expr variable = hi::Variable::make(loop.begin.type(), loop.variable);
  const std::optional<int64_t> trips = constant_trips(loop);
  const int64_t* begin = ir::constant_int(loop.begin);
  if (trips && begin && *begin == 0 && hi::is_const_one(loop.step)) {
    add_digits(key, variable, loop.variable, *trips);
  } else {
    key.push_back(variable);
  }
}

std::optional<isl::map> ValueViews::key_of(const Value& value, const Place& place,
                                           const std::vector<EnclosingLoop>& loops) {
  const auto known = keys_.find(&place);
  if (known != keys_.end()) return known->second;
  return keys_[&place] = find_key(value, place, loops);
}

std::optional<isl::map> ValueViews::find_key(const Value& value, const Place& place,
                                             const std::vector<EnclosingLoop>& loops) {
  Exprs key;
  for (size_t i = 0; i < 3; ++i) add_digits(key, place.block[i], kBlock[i], kernel_.grid[i]);
  if (place.tensor->memory == Memory::kRegister) {
    for (size_t i = 0; i < 3; ++i) add_digits(key, place.thread[i], kThread[i], kernel_.block[i]);
  }
  for (const EnclosingLoop& loop : loops) add_iteration(key, *loop.loop);
  if (place.turn.defined()) key.push_back(place.turn);
  for (size_t d = 0; d < place.subscripts.size(); ++d) {
    add_digits(key, place.subscripts[d], subscript_name(*place.tensor, d), extent_of(*place.tensor, d));
  }
  return map_of(value, key);
}

unsigned ValueViews::subscript_digits(const Tensor& tensor) const {
  Exprs key;
  for (size_t d = 0; d < static_cast<size_t>(tensor.rank()); ++d) {
    add_digits(key, hi::make_zero(Halide::Int(32)), subscript_name(tensor, d), extent_of(tensor, d));
  }
  return static_cast<unsigned>(key.size());
}

std::optional<Touches> ValueViews::touches_of(const Value& value, const Place& place,
                                              const std::vector<EnclosingLoop>& loops) {
  const std::optional<isl::map> key = key_of(value, place, loops), time = time_of(value);
  if (!key || !time) return std::nullopt;
  return Touches{*key, *time};
}

std::optional<isl::map> ValueViews::time_of(const Value& value) {
  Exprs time;
  for (const EnclosingLoop& loop : flow_.leaves[static_cast<size_t>(value.leaf)].path.loops) {
    time.push_back(hi::make_const(Halide::Int(32), first_leaf_of(loop.id)));
    time.push_back(hi::Variable::make(loop.loop->begin.type(), loop.loop->variable));
  }
  time.push_back(hi::make_const(Halide::Int(32), value.leaf));
  while (time.size() < 2 * depth_ + 1) time.push_back(hi::make_zero(Halide::Int(32)));
  return map_of(value, time);
}

int ValueViews::first_leaf_of(int loop) const {
  for (size_t i = 0; i < flow_.leaves.size(); ++i) {
    for (const EnclosingLoop& each : flow_.leaves[i].path.loops) {
      if (each.id == loop) return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace tc::tile
