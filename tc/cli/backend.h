#pragma once

#include <optional>
#include <string>

#include "tc/api/tc.h"

namespace tc::cli {

/// What --backend means here and now; nothing for interp. auto is a GPU where there is one with its driver and NVRTC,
/// else the CPU. Errors: no such backend.
Result<std::optional<api::Backend>> backend_of_flags();

/// The processor of --target. Errors: it is given, and the backend compiles for a GPU.
Result<std::string> processor_of_flags(api::Backend backend);

/// The mapping options of --options or --preset, with --strict, --tf32 and others like them. Errors: the file's; no
/// such preset; both.
Result<options::MappingOptions> mapping_of_flags();

}  // namespace tc::cli
