#include "tc/gpu/lower/emit.h"

#include "tc/gpu/lower/body.h"

namespace tc::gpu {

using Halide::Expr;
using poly::Ranged;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

Ranged number(const char* name, int64_t count) {
  return count == 1 ? poly::ranged(0) : poly::ranged(hi::Variable::make(Halide::Int(32), name), 0, count - 1);
}

/// variable, in [begin, end), by `step`
NodePtr loop(const std::string& wish, int64_t begin, int64_t end, int64_t step, bool unrolled, ir::Names& names,
             const Body& body) {
  const Halide::Type type = end <= INT32_MAX - step ? Halide::Int(32) : Halide::Int(64);
  const std::string name = names.fresh(wish);
  const Ranged value = poly::ranged(hi::Variable::make(type, name), begin, end - 1);
  return make_node(tile::For{name, hi::make_const(type, begin), hi::make_const(type, end), hi::make_const(type, step),
                             unrolled, body(value)});
}

}  // namespace

Ranged block_number(int axis, int64_t count) { return number(tile::kBlock[static_cast<size_t>(axis)], count); }
Ranged thread_number(int axis, int64_t count) { return number(tile::kThread[static_cast<size_t>(axis)], count); }

std::vector<Ranged> deal_blocks(const std::vector<int64_t>& counts, const Device& device,
                                std::array<int64_t, 3>& grid) {
  std::vector<size_t> loops;
  int64_t all = 1;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 1) loops.push_back(i);
    all *= counts[i];
  }
  bool fits = loops.size() <= 3;
  for (size_t axis = 0; axis < loops.size() && fits; ++axis) fits = counts[loops[axis]] <= device.grid[axis];
  std::vector<Ranged> result(counts.size(), poly::ranged(0));
  grid = {all, 1, 1};
  int64_t stride = 1;
  for (size_t axis = 0; axis < loops.size(); ++axis) {
    const int64_t count = counts[loops[axis]];
    if (fits) {
      grid[axis] = count;
      result[loops[axis]] = block_number(static_cast<int>(axis), count);
    } else {
      result[loops[axis]] = poly::floor_mod(poly::floor_div(block_number(0, all), stride), count);
      stride *= count;
    }
  }
  return result;
}

NodePtr loop_over(const std::string& name, const ir::Range& range, int64_t unroll, ir::Names& names, const Body& body) {
  if (range.extent == 1) return body(poly::ranged(range.begin));
  const int64_t end = range.begin + range.extent;
  if (range.extent <= unroll) return loop(name, range.begin, end, 1, true, names, body);
  if (unroll <= 1) return loop(name, range.begin, end, 1, false, names, body);
  const int64_t whole = range.begin + range.extent / unroll * unroll;
  std::vector<NodePtr> parts;
  parts.push_back(loop(name + "_step", range.begin, whole, unroll, false, names, [&](const Ranged& step) {
    return loop(name, 0, unroll, 1, true, names, [&](const Ranged& i) { return body(step + i); });
  }));
  if (whole < end) {
    parts.push_back(
        loop(name, 0, end - whole, 1, true, names, [&](const Ranged& i) { return body(poly::ranged(whole) + i); }));
  }
  return sequence(std::move(parts));
}

NodePtr let(const std::string& wish, const Ranged& value, ir::Names& names, const Body& body) {
  if (value.is_constant()) return body(value);
  const std::string name = names.fresh(wish);
  const Ranged named = poly::ranged(hi::Variable::make(value.expr.type(), name), value.min, value.max);
  return make_node(tile::Let{name, value.expr, body(named)});
}

tile::Tensor registers(const std::string& name, Halide::Type type, int64_t elements) {
  tile::Tensor tensor;
  tensor.name = name;
  tensor.type = type;
  tensor.memory = tile::Memory::kRegister;
  tensor.layout = tile::Layout::row_major(std::vector<tile::IntTuple>{elements});
  tensor.written = true;
  return tensor;
}

Expr element(const tile::Tensor& tensor, const Expr& at) {
  return hi::Call::make(tensor.type, tensor.name, {at}, hi::Call::PureExtern);
}

Expr index(int64_t value) { return hi::make_const(Halide::Int(32), value); }

}  // namespace tc::gpu
