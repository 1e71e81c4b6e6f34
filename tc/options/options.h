#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tc/support/error.h"

namespace tc::options {

/// Which statements share loop nests (paper 2018, section 5.2).
enum class Fusion { kMax, kPreserve3Coincident, kMin };

struct SchedulerOptions {
  std::optional<Fusion> fusion = {};  ///< absent: the strategy chooses
  bool allow_skewing = false;
  bool positive_orthant = true;
  bool operator==(const SchedulerOptions&) const = default;
};

/// Bounds on the values of CpuOptions, each inclusive.
inline constexpr size_t kMaxTiles = 16;
inline constexpr int64_t kMaxTile = int64_t{1} << 30;
inline constexpr int kMaxVectorWidth = 64;
inline constexpr int kMaxUnroll = 64;

/// How a def is compiled for the CPU. An absent value is chosen by the compiler's own estimate.
struct CpuOptions {
  SchedulerOptions scheduler = {};
  std::vector<int64_t> tile = {};        ///< of the outermost band, outermost member first; empty: chosen
  std::optional<int> vector_width = {};  ///< elements of a vector: a power of two
  std::optional<int> unroll = {};        ///< iterations of the innermost loop laid out one after another
  std::optional<bool> parallel = {};     ///< spread loops over the cores
  std::optional<bool> promote = {};      ///< copy tiles of tensors into buffers of their own
  bool strict = false;                   ///< T5: fixed order of reductions, no extra precision, no FMA contraction
  bool check_bounds = false;             ///< C8: data-dependent subscripts are checked at every run
  bool operator==(const CpuOptions&) const = default;
};

/// A bound on the work of one compilation. Both must be positive.
struct Budget {
  uint64_t isl_operations = 200'000'000;
  int64_t wall_clock_ms = 60'000;
};

/// Holds when every value lies within its bounds; the error names each field that does not, and its value.
Result<void> validate(const CpuOptions& options);

/// Text form (protobuf text format of tc.proto.CpuOptions): one field a line, those that differ from CpuOptions{}.
/// cpu_options_from_text(to_text(o)) == o for every o that validates.
std::string to_text(const CpuOptions& options);

/// Reads the text form and validates it. `name` stands for the text in messages. Errors give line, column and field:
/// a field that does not exist (with the nearest that does), a value of the wrong type or out of its bounds, a field
/// given twice.
Result<CpuOptions> cpu_options_from_text(const std::string& text, const std::string& name = "options");

}  // namespace tc::options
