#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tc/options/options.h"

namespace tc::options {

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

}  // namespace tc::options
