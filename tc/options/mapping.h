#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tc/options/options.h"

namespace tc::options {

/// Bounds on the values of MappingOptions, each inclusive: what every GPU since compute capability 3.0 takes.
inline constexpr std::array<int64_t, 3> kMaxThreads = {1024, 1024, 64};
inline constexpr int64_t kMaxThreadsPerBlock = 1024;
inline constexpr std::array<int64_t, 3> kMaxBlocks = {2147483647, 65535, 65535};

/// How a def is mapped to a GPU. The names are those of Tensor Comprehensions. An absent or empty value is chosen by
/// the compiler's own estimate.
struct MappingOptions {
  SchedulerOptions outer_schedule_options = {};
  std::vector<int64_t> tile = {};               ///< of each kernel's outermost band, outermost member first
  std::vector<int64_t> map_to_threads = {};     ///< threads of a block in x, y and z; x runs over the innermost loop
  std::vector<int64_t> map_to_blocks = {};      ///< blocks of the grid in x, y and z; x runs over the outermost loop
  std::optional<bool> use_private_memory = {};  ///< hold what a thread accumulates in registers
  bool strict = false;                          ///< T5: the order of reductions is that of the source
  bool operator==(const MappingOptions&) const = default;
};

/// Holds when every value lies within its bounds; the error names each field that does not, and its value.
Result<void> validate(const MappingOptions& options);

/// Text form (protobuf text format of tc.proto.MappingOptions), as of CpuOptions: mapping_options_from_text(to_text(o))
/// == o for every o that validates.
std::string to_text(const MappingOptions& options);
Result<MappingOptions> mapping_options_from_text(const std::string& text, const std::string& name = "options");

/// The options as C++ that builds them: an initialiser, ready to paste.
///     tc::options::MappingOptions{
///         .tile = {32, 32},
///         .map_to_threads = {32, 8},
///     }
std::string to_cpp(const MappingOptions& options);

}  // namespace tc::options
