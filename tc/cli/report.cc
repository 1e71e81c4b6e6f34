#include "tc/cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tc/api/elements.h"
#include "tc/api/oracle.h"

namespace tc::cli {
namespace {

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
  api::for_each_element(tensor, [&](const char* element) {
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

}  // namespace tc::cli
