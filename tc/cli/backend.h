#pragma once

#include <optional>

#include "tc/api/tc.h"

namespace tc::cli {

/// What --backend means here and now; nothing for interp. auto is a GPU where there is one with its driver and NVRTC,
/// else the CPU. Errors: no such backend.
Result<std::optional<api::Backend>> backend_of_flags();

/// The mapping options of --options or --preset, and --strict. Errors: the file's; no such preset; both.
Result<options::MappingOptions> mapping_of_flags();

}  // namespace tc::cli
