#include "tc/cli/stop_signals.h"

#include <csignal>
#include <ctime>

namespace tc::cli {
namespace {

sigset_t stopping_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  // Threads that start from here on have them blocked too; one takes them.
  const sigset_t set = stopping_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  watcher_ = std::thread([this, set] {
    const timespec tick{0, 50'000'000};
    while (!done_) {
      if (::sigtimedwait(&set, nullptr, &tick) < 0) continue;
      source_.request_stop();
      ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
      return;
    }
  });
}

StopSignals::~StopSignals() {
  done_ = true;
  watcher_.join();
  const sigset_t set = stopping_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace tc::cli
