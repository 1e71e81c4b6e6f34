#include "tests/gpu/simulated.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "tc/gpu/strategy/tunables.h"
#include "tc/interp/compare.h"
#include "tc/interp/scalar.h"
#include "tc/ir/bounds.h"
#include "tc/ir/layouts.h"
#include "tc/ir/specialise.h"
#include "tc/support/float8.h"
#include "tc/tile/print.h"
#include "tc/tile/simulate.h"

namespace tc::testing {
namespace {

template <typename T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <typename T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void put_float(ScalarType type, double value, std::byte* at) {
  switch (type) {
    case ScalarType::kFloat8E4M3:
    case ScalarType::kFloat8E5M2:
      return put(at, float8_bits(type, value));
    case ScalarType::kFloat16:
      return put(at, Halide::float16_t(value).to_bits());
    case ScalarType::kBFloat16:
      return put(at, Halide::bfloat16_t(value).to_bits());
    case ScalarType::kFloat32:
      return put(at, static_cast<float>(value));
    default:
      return put(at, value);
  }
}

double get_float(ScalarType type, const std::byte* at) {
  switch (type) {
    case ScalarType::kFloat8E4M3:
    case ScalarType::kFloat8E5M2:
      return float8_from_bits(type, get<uint8_t>(at));
    case ScalarType::kFloat16:
      return static_cast<double>(Halide::float16_t::make_from_bits(get<uint16_t>(at)));
    case ScalarType::kBFloat16:
      return static_cast<double>(Halide::bfloat16_t::make_from_bits(get<uint16_t>(at)));
    case ScalarType::kFloat32:
      return get<float>(at);
    default:
      return get<double>(at);
  }
}

/// What lies between the elements of a strided tensor: NaNs, if somebody reads them as floats.
constexpr std::byte kBetween{0xff};

/// Where each element of a tensor lies, in elements, in row-major order.
std::vector<size_t> offsets_of(const ir::Tensor& tensor) {
  const ir::Shape shape = ir::constant_shape(tensor);
  const std::vector<int64_t> strides = ir::strides_of(tensor);
  std::vector<size_t> result = {0};
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<size_t> next;
    for (const size_t at : result) {
      for (int64_t i = 0; i < shape[d]; ++i) next.push_back(at + static_cast<size_t>(i * strides[d]));
    }
    result = std::move(next);
  }
  return result;
}

void put_element(const interp::Value& value, size_t i, std::byte* at) {
  if (is_float(value.type)) {
    put_float(value.type, value.floats[i], at);
  } else {
    std::memcpy(at, &value.integers[i], static_cast<size_t>(bytes_of(value.type)));  // little-endian
  }
}

}  // namespace

std::vector<std::byte> packed(const ir::Tensor& tensor, const interp::Value& value) {
  const auto size = static_cast<size_t>(bytes_of(value.type));
  const std::vector<size_t> offsets = offsets_of(tensor);
  const size_t elements = offsets.empty() ? 0 : *std::max_element(offsets.begin(), offsets.end()) + 1;
  std::vector<std::byte> result(elements * size, kBetween);
  for (size_t i = 0; i < offsets.size(); ++i) put_element(value, i, &result[offsets[i] * size]);
  return result;
}

interp::Value unpacked(const ir::Tensor& tensor, const std::vector<std::byte>& bytes, interp::Value value) {
  const auto size = static_cast<size_t>(bytes_of(value.type));
  const std::vector<size_t> offsets = offsets_of(tensor);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const std::byte* at = &bytes[offsets[i] * size];
    if (is_float(value.type)) {
      value.floats[i] = get_float(value.type, at);
    } else {
      int64_t integer = 0;
      std::memcpy(&integer, at, size);
      value.integers[i] = interp::wrap(value.type, integer);
    }
  }
  return value;
}

bool is_intact_between(const ir::Tensor& tensor, const std::vector<std::byte>& bytes) {
  const auto size = static_cast<size_t>(tile::element_bytes(tensor.type));
  std::vector<bool> is_element(bytes.size() / size, false);
  for (const size_t at : offsets_of(tensor)) is_element[at] = true;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!is_element[i / size] && bytes[i] != kBetween) return false;
  }
  return true;
}

gpu::Device ampere() {
  gpu::Device device = gpu::device_of_architecture(80);
  device.accelerated = false;
  return device;
}

Result<gpu::Mapping> mapped(const ir::Program& program, const options::MappingOptions& options,
                            const gpu::Device& device, bool element_aligned) {
  return gpu::map_program(program, options, device, element_aligned);
}

interp::Environment as_held(const ir::Program& program, interp::Environment data) {
  for (const ir::Tensor& tensor : program.tensors) {
    if (tensor.strides.empty()) continue;
    interp::Value& value = data.at(tensor.name);
    value = unpacked(tensor, packed(tensor, value), value);
  }
  return data;
}

Result<interp::Environment> simulated(const ir::Program& program, const gpu::Mapping& mapping,
                                      const interp::Environment& data, uint64_t seed, tile::Report* counted) {
  std::map<std::string, std::vector<std::byte>> memory;
  tile::Arguments arguments;
  for (const ir::Tensor& tensor : program.tensors) {
    if (tensor.role == ir::Role::kTemporary) continue;
    auto [at, added] = memory.emplace(tensor.name, packed(tensor, data.at(tensor.name)));
    arguments.tensors[tensor.name] = at->second;
  }
  for (const ir::Scalar& scalar : program.scalars) {
    const interp::Value& value = data.at(scalar.name);
    if (is_float(value.type)) {
      arguments.scalars[scalar.name] = value.floats.at(0);
    } else {
      arguments.scalars[scalar.name] = value.integers.at(0);
    }
  }
  tile::SimulatorOptions options;
  options.seed = seed;
  TC_TRY(report, tile::simulate(mapping.program, arguments, options));
  for (const tile::Finding& finding : report.findings) {
    return fail("{}\n{}", finding.sentence, tile::to_text(mapping.program));
  }
  if (counted != nullptr) *counted = report;
  interp::Environment results;
  for (const ir::Tensor& tensor : program.tensors) {
    if (tensor.role != ir::Role::kResult && tensor.role != ir::Role::kInOut) continue;
    if (!is_intact_between(tensor, memory.at(tensor.name))) {
      return fail("the kernels write between the elements of '{}'\n{}", tensor.name, tile::to_text(mapping.program));
    }
    results.emplace(tensor.name, unpacked(tensor, memory.at(tensor.name), data.at(tensor.name)));
  }
  return results;
}

interp::Environment data_for(const ir::Program& program, uint64_t seed) {
  std::mt19937_64 random(seed);
  int64_t within = 10;
  for (const ir::RunTimeCheck& check : ir::run_time_checks(program)) {
    within = std::min(within, *Halide::Internal::as_const_int(check.extent));
  }
  const bool indexes = !ir::run_time_checks(program).empty();
  interp::Environment data;
  auto add = [&](const std::string& name, Halide::Type halide, const ir::Shape& shape) {
    const ScalarType type = ir::from_halide(halide);
    interp::Value value = interp::Value::zeros(type, shape);
    for (double& x : value.floats) x = static_cast<double>(random() % 9) - 4;
    for (int64_t& x : value.integers) {
      const auto drawn = static_cast<int64_t>(random() % static_cast<uint64_t>(std::max<int64_t>(within, 1)));
      x = interp::wrap(type, indexes ? drawn : drawn - 4);
    }
    data.emplace(name, std::move(value));
  };
  for (const ir::Tensor& tensor : program.tensors) {
    if (tensor.role != ir::Role::kTemporary) add(tensor.name, tensor.type, ir::constant_shape(tensor));
  }
  for (const ir::Scalar& scalar : program.scalars) add(scalar.name, scalar.type, {});
  return as_held(program, std::move(data));
}

std::string difference(const ir::Program& program, const options::MappingOptions& options, uint64_t seed,
                       const gpu::Device& device) {
  const Result<gpu::Mapping> mapping = mapped(program, options, device);
  return mapping ? difference_of_mapping(program, *mapping, seed) : mapping.error().to_string();
}

std::string difference_of_mapping(const ir::Program& program, const gpu::Mapping& mapping, uint64_t seed) {
  const interp::Environment data = data_for(program, seed);
  const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
  if (!oracle) return oracle.error().to_string();
  const Result<interp::Environment> results = simulated(program, mapping, data, seed);
  std::string wrong;
  if (!results) {
    wrong = results.error().to_string() + "\n";
  } else {
    for (const interp::Comparison& comparison : interp::compare(*results, *oracle)) {
      if (!comparison.agrees) wrong += comparison.sentence + "\n";
    }
  }
  return wrong.empty() ? wrong : wrong + gpu::report(mapping);
}

}  // namespace tc::testing
