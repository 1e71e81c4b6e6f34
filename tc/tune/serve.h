#pragma once

#include <functional>
#include <string>

namespace tc::tune {

/// The payload of a worker's first frame: what it speaks. A tuner takes no other.
inline constexpr const char* kTuneProtocol = "tensorc-worker 1";

/// Answers a job by a reply.
using Handler = std::function<std::string(const std::string& job)>;

/// A worker's life: says hello on standard output, then answers each frame of standard input, until that ends. What
/// else writes to standard output is sent to standard error. Returns the process's exit code: 1 if what comes is no
/// frame.
int serve(const Handler& handler);

}  // namespace tc::tune
