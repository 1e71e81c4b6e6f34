#include <limits>

#include "tc/interp/scalar.h"
#include "tests/random/generator.h"
#include "tests/random/random.h"

namespace tc::testing {
namespace {

double random_float(Random& random, ScalarType type, DataKind kind) {
  if (kind == DataKind::kSmallIntegers) return static_cast<double>(random.range(-4, 4));
  if (kind == DataKind::kSpecials && random.chance(8)) {
    const double infinity = std::numeric_limits<double>::infinity();
    const double specials[] = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()};
    return interp::round_to(type, specials[random.below(3)]);
  }
  return interp::round_to(type, random.normal());
}

int64_t random_integer(Random& random, ScalarType type, DataKind kind) {
  if (type == ScalarType::kBool) return static_cast<int64_t>(random.below(2));
  const bool whole_range = kind != DataKind::kSmallIntegers && random.chance(15);
  return interp::wrap(type, whole_range ? static_cast<int64_t>(random.bits()) : random.range(-9, 9));
}

interp::Value random_value(Random& random, ScalarType type, std::vector<int64_t> shape, DataKind kind) {
  interp::Value value = interp::Value::zeros(type, std::move(shape));
  for (double& x : value.floats) x = random_float(random, type, kind);
  for (int64_t& x : value.integers) x = random_integer(random, type, kind);
  return value;
}

}  // namespace

interp::Environment generate_data(const RandomProgram& source, const ir::Program& program, DataKind kind,
                                  uint64_t seed) {
  Random random(seed);
  interp::Environment data;
  for (const ir::Tensor& tensor : program.tensors) {
    if (tensor.role == ir::Role::kTemporary) continue;
    interp::Value value = random_value(random, ir::from_halide(tensor.type), ir::constant_shape(tensor), kind);
    const auto bound = source.index_bounds.find(tensor.name);
    if (bound != source.index_bounds.end()) {
      for (int64_t& x : value.integers) x = random.range(0, bound->second - 1);
    }
    data.emplace(tensor.name, std::move(value));
  }
  for (const ir::Scalar& scalar : program.scalars) {
    const auto given = source.compiled_in.find(scalar.name);
    interp::Value value = random_value(random, ir::from_halide(scalar.type), {}, kind);
    if (given != source.compiled_in.end()) value.integers[0] = given->second;
    data.emplace(scalar.name, std::move(value));
  }
  return data;
}

}  // namespace tc::testing
