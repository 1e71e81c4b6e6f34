#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tc/support/result.h"

namespace tc::options {

/// Which statements share loop nests (paper 2018, section 5.2).
enum class Fusion { kMax, kPreserve3Coincident, kMin };

struct SchedulerOptions {
  std::optional<Fusion> fusion;  ///< absent: the strategy chooses
  bool allow_skewing = false;
  bool positive_orthant = true;
  bool operator==(const SchedulerOptions&) const = default;
};

/// How a def is compiled for the CPU. An absent value is chosen by the compiler's own estimate.
struct CpuOptions {
  SchedulerOptions scheduler;
  std::vector<int64_t> tile;  ///< of the outermost band, outermost member first; empty: chosen
  std::optional<int> vector_width;
  std::optional<int> unroll;
  std::optional<bool> parallel;
  std::optional<bool> promote;
  bool strict = false;  ///< T5: fixed order of reductions, no extra precision, no FMA contraction
  bool operator==(const CpuOptions&) const = default;
};

/// A bound on the work of one compilation.
struct Budget {
  uint64_t isl_operations = 200'000'000;
  int64_t wall_clock_ms = 60'000;
};

/// Text form (protobuf text format of tc.proto.CpuOptions), and back. Errors name the field and the place.
std::string to_text(const CpuOptions& options);
Result<CpuOptions> cpu_options_from_text(const std::string& text);

}  // namespace tc::options
