#pragma once

#include <string>

#include "tc/support/result.h"

namespace tc::cache {

/// Gives a finished file a name that no file has. Whatever has appeared under that name stays as it is. Errors: the
/// name is taken, or cannot be given; then the file keeps its own name.
Result<void> rename_to_new(const std::string& from, const std::string& to);

}  // namespace tc::cache
