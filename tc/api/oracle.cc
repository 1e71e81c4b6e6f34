#include "tc/api/oracle.h"

#include "tc/api/elements.h"
#include "tc/support/check.h"

namespace tc::api {

interp::Value to_value(const Tensor& tensor) {
  const TensorSpec spec = tensor.spec();
  interp::Value value{.type = spec.type, .shape = spec.shape, .floats = {}, .integers = {}};
  const auto count = static_cast<size_t>(spec.elements());
  if (is_float(spec.type)) {
    value.floats.reserve(count);
    for_each_element(tensor, [&](const char* at) { value.floats.push_back(load_float(spec.type, at)); });
  } else {
    value.integers.reserve(count);
    for_each_element(tensor, [&](const char* at) { value.integers.push_back(load_integer(spec.type, at)); });
  }
  return value;
}

void from_value(const interp::Value& value, Tensor& tensor) {
  const TensorSpec spec = tensor.spec();
  TC_CHECK(value.type == spec.type && value.shape == spec.shape, "the oracle's tensor has another type or shape");
  const int bytes = bytes_of(spec.type);
  char* at = tensor.data_as<char>();
  for (int64_t i = 0; i < spec.elements(); ++i, at += bytes) {
    const auto place = static_cast<size_t>(i);
    if (is_float(spec.type)) {
      store_float(spec.type, value.floats[place], at);
    } else {
      store_integer(spec.type, value.integers[place], at);
    }
  }
}

interp::Value scalar_value(ScalarType type, int64_t bits) {
  interp::Value value{.type = type, .shape = {}, .floats = {}, .integers = {}};
  if (is_float(type)) {
    value.floats = {load_float(type, &bits)};
  } else {
    value.integers = {load_integer(type, &bits)};
  }
  return value;
}

}  // namespace tc::api
