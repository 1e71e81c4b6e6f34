#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

namespace tc::cli {

/// While it lives, SIGINT and SIGTERM ask to stop instead of ending the process; after the first one they end it again.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::atomic<bool> done_{false};
  std::thread watcher_;
};

}  // namespace tc::cli
