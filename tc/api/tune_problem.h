#pragma once

#include <optional>
#include <string>

#include "tc/api/tune.h"

namespace tc::api {

/// Everything that a worker must know of what is tuned.
struct TuneProblem {
  TuneProgram program{};  ///< without options: each job brings its own
  std::string arch{};     ///< "sm_90a"; of the simulator and CUDA
  uint64_t seed = 1;
  std::string folder{};
  bool data_given = false;  ///< the folder holds the inputs
};

/// As tc.proto.TuneProblem, and back; nothing where the bytes are none.
std::string to_bytes(const TuneProblem& problem);
std::optional<TuneProblem> tune_problem_from(const std::string& bytes);

}  // namespace tc::api
