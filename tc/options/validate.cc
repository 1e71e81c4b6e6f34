#include "tc/options/validate.h"

#include <fmt/format.h>

namespace tc::options {
namespace {

bool is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace

std::vector<Fault> faults_of(const CpuOptions& options) {
  std::vector<Fault> faults;
  if (options.tile.size() > kMaxTiles) {
    faults.push_back({"tile", static_cast<int>(kMaxTiles),
                      fmt::format("'tile' has {} values; at most {} are allowed", options.tile.size(), kMaxTiles)});
  }
  for (size_t i = 0; i < options.tile.size() && i < kMaxTiles; ++i) {
    if (options.tile[i] < 1 || options.tile[i] > kMaxTile) {
      faults.push_back(
          {"tile", static_cast<int>(i),
           fmt::format("'tile' is {} at position {}; it must be from 1 to {}", options.tile[i], i, kMaxTile)});
    }
  }
  if (options.vector_width && (!is_power_of_two(*options.vector_width) || *options.vector_width > kMaxVectorWidth)) {
    faults.push_back({"vector_width", 0,
                      fmt::format("'vector_width' is {}; it must be a power of two from 1 to {}", *options.vector_width,
                                  kMaxVectorWidth)});
  }
  if (options.unroll && (*options.unroll < 1 || *options.unroll > kMaxUnroll)) {
    faults.push_back(
        {"unroll", 0, fmt::format("'unroll' is {}; it must be from 1 to {}", *options.unroll, kMaxUnroll)});
  }
  return faults;
}

Result<void> validate(const CpuOptions& options) {
  std::vector<Diagnostic> diagnostics;
  for (Fault& fault : faults_of(options)) diagnostics.push_back({std::nullopt, std::move(fault.sentence), {}});
  if (!diagnostics.empty()) return tl::unexpected(Error(nullptr, std::move(diagnostics)));
  return {};
}

}  // namespace tc::options
