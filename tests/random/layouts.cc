#include "tests/random/layouts.h"

#include <algorithm>
#include <numeric>

#include "tc/ir/specialise.h"
#include "tests/random/random.h"

namespace tc::testing {
namespace {

/// How far apart the rows of a dimension begin that has `step` elements.
int64_t with_room(Random& random, int64_t step, int64_t vector) {
  if (random.chance(30)) return step;
  if (random.chance(50)) return step + random.range(0, 3);
  return (step + vector - 1) / vector * vector + vector * random.range(0, 2);
}

std::vector<int64_t> random_strides(Random& random, const ir::Tensor& tensor, const ir::Shape& shape) {
  const int64_t vector = std::max<int64_t>(16 / tensor.type.bytes(), 1);
  std::vector<size_t> order(shape.size());  // the innermost first
  for (size_t d = 0; d < order.size(); ++d) order[d] = order.size() - 1 - d;
  if (random.chance(50)) std::swap(order[0], order[random.below(order.size())]);
  if (random.chance(20)) std::swap(order.back(), order[random.below(order.size())]);
  std::vector<int64_t> strides(shape.size());
  int64_t step = random.chance(70) ? 1 : random.range(1, 3);
  for (const size_t d : order) {
    strides[d] = step;
    step = with_room(random, step * std::max<int64_t>(shape[d], 1), vector);
  }
  if (tensor.role != ir::Role::kInput) return strides;
  if (random.chance(15)) strides[random.below(strides.size())] = 0;
  if (random.chance(10)) strides[random.below(strides.size())] = random.range(1, 4);
  return strides;
}

}  // namespace

ir::Layouts random_layouts(const ir::Program& program, uint64_t seed) {
  Random random(seed);
  ir::Layouts layouts;
  for (const ir::Tensor& tensor : program.tensors) {
    const ir::Shape shape = ir::constant_shape(tensor);
    const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    if (tensor.role == ir::Role::kTemporary || shape.empty() || is_empty || random.chance(40)) continue;
    layouts[tensor.name] = random_strides(random, tensor, shape);
  }
  return layouts;
}

}  // namespace tc::testing
