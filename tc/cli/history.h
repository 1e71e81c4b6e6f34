#pragma once

#include <string>
#include <vector>

#include "tc/api/explain.h"
#include "tc/support/error.h"

namespace tc::cli {

/// The candidates of a search, in their order, from the file that `tensorc tune --history` has written. `problem` is
/// the def with its sizes and scalars, in any order: "mm M=64,K=32,N=16". Errors: the file's; one that is no
/// such file, or has another problem only.
Result<std::vector<api::Explanation::Measurement>> read_history(const std::string& path, const std::string& problem);

}  // namespace tc::cli
