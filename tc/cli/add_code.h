#pragma once

#include <string>
#include <vector>

#include "tc/cache/entry.h"
#include "tc/cache/key.h"
#include "tc/support/result.h"

namespace tc::cli {

/// Compiles the CUDA text of a GPU's kernel for further architectures, by NVRTC. Errors: no such architecture; no text;
/// no NVRTC, or what it says.
Result<void> add_code_for(const std::vector<std::string>& architectures, const cache::Key& key, cache::Entry& entry);

}  // namespace tc::cli
