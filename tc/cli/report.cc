#include "tc/cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tc/api/elements.h"
#include "tc/api/layout.h"
#include "tc/support/check.h"

namespace tc::cli {
namespace {

/// Calls visit(address) for each element of a tensor, in row-major order.
template <typename Visit>
void for_each_element(const api::Tensor& tensor, Visit visit) {
  const api::TensorSpec spec = api::with_strides(tensor.spec());
  const int bytes = bytes_of(spec.type);
  const char* const base = tensor.data_as<char>();
  std::vector<int64_t> at(spec.shape.size(), 0);
  int64_t offset = 0;
  for (int64_t left = spec.elements(); left > 0; --left) {
    visit(base + offset * bytes);
    for (size_t d = at.size(); d-- > 0;) {
      offset += spec.strides[d];
      if (++at[d] < spec.shape[d]) break;
      offset -= at[d] * spec.strides[d];
      at[d] = 0;
    }
  }
}

double element_as_double(ScalarType type, const char* element) {
  if (is_float(type)) return api::load_float(type, element);
  const int64_t value = api::load_integer(type, element);
  return type == ScalarType::kUInt64 ? static_cast<double>(static_cast<uint64_t>(value)) : static_cast<double>(value);
}

}  // namespace

std::string result_line(const std::string& name, const api::Tensor& tensor) {
  const api::TensorSpec spec = tensor.spec();
  double least = HUGE_VAL, largest = -HUGE_VAL;
  long double sum = 0;
  int64_t numbers = 0, nans = 0;
  for_each_element(tensor, [&](const char* element) {
    const double value = element_as_double(spec.type, element);
    if (std::isnan(value)) {
      ++nans;
      return;
    }
    ++numbers;
    least = std::min(least, value);
    largest = std::max(largest, value);
    sum += value;
  });
  std::string line = fmt::format("{}  {}", name, api::TensorSpec{.type = spec.type, .shape = spec.shape}.to_string());
  if (numbers + nans == 0) return line + "  no elements";
  if (numbers > 0) {
    const auto mean = static_cast<double>(sum / static_cast<long double>(numbers));
    line += fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}", least, largest, mean);
  }
  if (nans > 0) line += fmt::format("  NaNs {}", nans);
  return line;
}

std::string time_text(double us) {
  if (us < 1e3) return fmt::format("{:.3g} us", us);
  if (us < 1e6) return fmt::format("{:.3g} ms", us / 1e3);
  return fmt::format("{:.4g} s", us / 1e6);
}

std::string series_text(std::vector<double> runs_us, double first_us) {
  std::ranges::sort(runs_us);
  const double median = (runs_us[(runs_us.size() - 1) / 2] + runs_us[runs_us.size() / 2]) / 2;
  return fmt::format("time: median {}, min {}, max {} of {} runs; the first took {}", time_text(median),
                     time_text(runs_us.front()), time_text(runs_us.back()), runs_us.size(), time_text(first_us));
}

interp::Value to_value(const api::Tensor& tensor) {
  const api::TensorSpec spec = tensor.spec();
  interp::Value value{.type = spec.type, .shape = spec.shape, .floats = {}, .integers = {}};
  const auto count = static_cast<size_t>(spec.elements());
  if (is_float(spec.type)) {
    value.floats.reserve(count);
    for_each_element(tensor, [&](const char* at) { value.floats.push_back(api::load_float(spec.type, at)); });
  } else {
    value.integers.reserve(count);
    for_each_element(tensor, [&](const char* at) { value.integers.push_back(api::load_integer(spec.type, at)); });
  }
  return value;
}

void from_value(const interp::Value& value, api::Tensor& tensor) {
  const api::TensorSpec spec = tensor.spec();
  TC_CHECK(value.type == spec.type && value.shape == spec.shape, "the oracle's tensor has another type or shape");
  const int bytes = bytes_of(spec.type);
  char* at = tensor.data_as<char>();
  for (int64_t i = 0; i < spec.elements(); ++i, at += bytes) {
    const auto place = static_cast<size_t>(i);
    if (is_float(spec.type)) {
      api::store_float(spec.type, value.floats[place], at);
    } else {
      api::store_integer(spec.type, value.integers[place], at);
    }
  }
}

interp::Value scalar_value(ScalarType type, int64_t bits) {
  interp::Value value{.type = type, .shape = {}, .floats = {}, .integers = {}};
  if (is_float(type)) {
    value.floats = {api::load_float(type, &bits)};
  } else {
    value.integers = {api::load_integer(type, &bits)};
  }
  return value;
}

}  // namespace tc::cli
