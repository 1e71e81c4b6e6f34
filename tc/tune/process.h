#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tc/support/error.h"

namespace tc::tune {

/// A child process and its standard streams. It is in a process group of its own (a terminal's Ctrl-C does not reach
/// it) and is killed, with its group, when this goes away or when the thread that started it ends.
class Process {
 public:
  /// Starts a program, looked up in PATH. Errors: it cannot be started.
  static Result<Process> start(const std::vector<std::string>& command);
  Process(Process&& other) noexcept { swap(other); }
  Process& operator=(Process&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Process();

  pid_t pid() const { return pid_; }

  // Of the parent's side; none blocks.
  int in() const { return in_; }    ///< what is written here is its standard input
  int out() const { return out_; }  ///< its standard output
  int err() const { return err_; }  ///< its standard error

  void kill();
  /// How it ended, once it has: "exited with code 3", "was killed by SIGSEGV (Segmentation fault)".
  std::optional<std::string> ended();

 private:
  Process() = default;
  void swap(Process& other);

  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  std::optional<std::string> end_;
};

}  // namespace tc::tune
