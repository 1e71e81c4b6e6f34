#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tc/api/tune_data.h"
#include "tc/tune/space.h"

namespace tc::api {

/// What may be tuned of a problem.
struct TuneSpace {
  tune::Space space{};
  std::vector<std::string> seeds{};  ///< options as text that the compiler's own estimates put first, best first
  /// Why options cannot work, found without compiling them; empty if they may.
  std::function<std::string(const std::string& options)> infeasible{};
};

/// `count` is how many seeds are wanted. Errors: those of mapping a def to a GPU.
Result<TuneSpace> space_of(const TuneSetup& setup, size_t count);

}  // namespace tc::api
