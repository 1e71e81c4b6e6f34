#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "tc/tune/executor.h"
#include "tc/tune/frame.h"
#include "tc/tune/process.h"

namespace tc::tune {

/// Worker processes on this machine, or wherever the command that starts one puts it (ssh, mpirun, srun): it speaks
/// with them over their standard streams (tc/tune/serve.h) and nothing else. One worker for each device, which keeps
/// its data there, and as many others as there are jobs. A worker that is lost is replaced at its next job.
///
/// A worker that ends before it has said hello costs no job: another one is started, three times in a row; then the
/// pool gives up with an error that says how it ended and what it wrote to standard error.
class WorkerPool : public Executor {
 public:
  explicit WorkerPool(std::vector<std::string> command) : command_(std::move(command)) {}

  Result<void> submit(Job job) override;
  Result<std::vector<Done>> wait(std::chrono::milliseconds timeout) override;

  /// How many workers were started so far.
  int started() const { return started_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Worker {
    Process process;
    int device = -1;
    bool said_hello = false;
    Clock::time_point hello_until{};
    std::optional<Job> job{};
    Clock::time_point until{};  ///< of the job
    std::string to_write{};
    FrameReader reader{};
    std::string errors{};  ///< the end of its standard error
    std::string line{};    ///< of that, what the log does not have yet
  };

  Result<Worker*> start_worker(int device);
  void assign(Worker& worker, Job job);
  Result<void> attend(Worker& worker, std::vector<Done>& done);
  void write_to(Worker& worker);
  bool read_from(Worker& worker);
  void log_lines(Worker& worker, std::string_view piece);
  Result<bool> read_frames(Worker& worker, std::vector<Done>& done);
  Result<void> lose(Worker& worker, Loss loss, const std::string& what, std::vector<Done>& done);

  std::vector<std::string> command_;
  std::vector<std::unique_ptr<Worker>> workers_;
  int started_ = 0;
  int failed_starts_ = 0;  ///< in a row
};

}  // namespace tc::tune
