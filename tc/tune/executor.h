#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tc/support/error.h"

namespace tc::tune {

/// Why a job has no reply.
enum class Loss {
  kNone,     ///< it has one
  kCrash,    ///< its worker ended
  kHang,     ///< it took longer than its limit
  kGarbage,  ///< what its worker wrote is no reply
};

/// Runs jobs, each somewhere: in worker processes, or wherever the caller's engine places them. Called by one thread.
class Executor {
 public:
  struct Job {
    uint64_t id = 0;
    int device = -1;  ///< that it measures on; -1: it compiles
    std::string bytes{};
    std::chrono::milliseconds limit{0};
  };
  struct Done {
    uint64_t id = 0;
    Loss loss = Loss::kNone;
    std::string text{};  ///< the reply, or what happened
  };

  virtual ~Executor() = default;
  /// Starts a job. The caller has at most one on each device at a time, and no more others than it was made for.
  /// Errors: nothing runs jobs here; none ever will.
  virtual Result<void> submit(Job job) = 0;
  /// Jobs that have ended, at least one unless the time is over. A job ends once. Errors: as submit.
  virtual Result<std::vector<Done>> wait(std::chrono::milliseconds timeout) = 0;
};

}  // namespace tc::tune
