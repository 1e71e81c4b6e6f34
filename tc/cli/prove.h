#pragma once

#include <string>
#include <vector>

#include "tc/cache/cache.h"
#include "tc/compile/pipeline.h"

namespace tc::cli {

/// Whether a cached kernel's schedule could be proved legal again.
struct Proof {
  std::string id;  ///< of its key
  bool holds = false;
  std::string why;  ///< if it does not
};

/// Proves all kernels of a cache again (compile::reprove), from the texts of their programs in the cache. Those written
/// by hand have no schedule, and are left out.
Result<std::vector<Proof>> prove_entries(const cache::Cache& cache);

}  // namespace tc::cli
