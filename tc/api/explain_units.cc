#include "tc/api/explain_units.h"

#include <fmt/format.h>

#include <cmath>

namespace tc::api {
namespace {

/// With a prefix that leaves one to three digits before the point.
std::string scaled(double value, const char* unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  for (; std::abs(value) >= 999.5 && prefix + 1 < std::size(kPrefixes); ++prefix) value /= 1e3;
  return fmt::format("{:.3g} {}{}", value, kPrefixes[prefix], unit);
}

}  // namespace

std::string time_text(double us) {
  if (us >= 999.5e3) return fmt::format("{:.3g} s", us / 1e6);
  if (us >= 999.5) return fmt::format("{:.3g} ms", us / 1e3);
  if (us > 0 && us < 0.9995) return fmt::format("{:.3g} ns", us * 1e3);
  return fmt::format("{:.3g} us", us);
}

std::string bytes_text(double bytes) { return scaled(bytes, bytes < 999.5 ? "bytes" : "B"); }
std::string operations_text(double operations) { return scaled(operations, "FLOP"); }
std::string byte_rate_text(double bytes_per_us) { return scaled(bytes_per_us * 1e6, "B/s"); }
std::string operation_rate_text(double per_us) { return scaled(per_us * 1e6, "FLOP/s"); }

}  // namespace tc::api
