#include "tests/random/seeds.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace tc::testing {
namespace {

constexpr size_t kMostReports = 10;

/// What a process says of a seed, before it runs and after. A report follows.
struct Message {
  int64_t seed;
  int64_t done;  ///< 0 before, 1 after
  Outcome::Verdict verdict;
  int64_t elements;
  int64_t undecidable;
  uint64_t report_bytes;
};

void write_all(int pipe, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(pipe, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);
    at += written;
    bytes -= static_cast<size_t>(written);
  }
}

/// False at the end of the pipe.
bool read_all(int pipe, void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = read(pipe, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

void send(int pipe, int64_t seed, int64_t done, const Outcome& outcome) {
  const Message message{seed, done, outcome.verdict, outcome.elements, outcome.undecidable, outcome.report.size()};
  write_all(pipe, &message, sizeof message);
  write_all(pipe, outcome.report.data(), outcome.report.size());
}

/// One process and the seeds it has before it: next, next + step, ...
struct Worker {
  pid_t process = -1;
  int pipe = -1;
  int64_t next = 0;
};

class Pool {
 public:
  Pool(int64_t end, int64_t step, const std::function<Outcome(uint64_t)>& run,
       const std::function<std::string(uint64_t)>& describe, const SeedLimits& limits)
      : end_(end), step_(step), run_(run), describe_(describe), limits_(limits) {}

  Summary run(int64_t begin) {
    for (int64_t n = 0; n < step_; ++n) start(workers_.emplace_back(Worker{-1, -1, begin + n}));
    while (std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.process > 0; })) {
      if (summary_.reports.size() >= kMostReports) stop();
      listen();
    }
    return std::move(summary_);
  }

 private:
  void start(Worker& worker) {
    worker.process = -1;
    if (worker.next >= end_ || summary_.reports.size() >= kMostReports) return;
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
    worker.process = fork();
    if (worker.process < 0) throw std::runtime_error(fmt::format("no process: {}", std::strerror(errno)));
    if (worker.process == 0) {
      close(ends[0]);
      work(ends[1], worker.next);
    }
    close(ends[1]);
    worker.pipe = ends[0];
  }

  [[noreturn]] void work(int pipe, int64_t first) {
    for (int64_t seed = first; seed < end_ && seconds() < limits_.seconds; seed += step_) {
      send(pipe, seed, 0, {});
      alarm(limits_.seconds_each);
      send(pipe, seed, 1, run_(static_cast<uint64_t>(seed)));
    }
    _exit(0);  // no destructors: they are the parent's
  }

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }

  void ended() const {
    if (limits_.after_each) limits_.after_each(summary_);
  }

  void listen() {
    std::vector<pollfd> waiting;
    for (const Worker& worker : workers_) waiting.push_back({worker.process > 0 ? worker.pipe : -1, POLLIN, 0});
    if (poll(waiting.data(), waiting.size(), -1) < 0) return;
    for (size_t n = 0; n < waiting.size(); ++n) {
      if (waiting[n].revents != 0) receive(workers_[n]);
    }
  }

  void receive(Worker& worker) {
    Message message;
    if (!read_all(worker.pipe, &message, sizeof message)) return finish(worker);
    std::string report(message.report_bytes, 0);
    if (!read_all(worker.pipe, report.data(), report.size())) return finish(worker);
    worker.next = message.seed + (message.done ? step_ : 0);
    if (!message.done) return;
    ++summary_.seeds;
    summary_.elements += message.elements;
    summary_.undecidable += message.undecidable;
    if (message.verdict != Outcome::Verdict::kAgrees && !stopped_) summary_.reports.push_back(report);
    ended();
  }

  /// The process has ended: with all its seeds, or in the middle of one.
  void finish(Worker& worker) {
    int status = 0;
    close(worker.pipe);
    waitpid(worker.process, &status, 0);
    worker.process = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    if (stopped_) return;
    const auto seed = static_cast<uint64_t>(worker.next);
    const std::string how = !WIFSIGNALED(status) ? fmt::format("exits with {}", WEXITSTATUS(status))
                            : WTERMSIG(status) == SIGALRM
                                ? fmt::format("takes longer than {} s", limits_.seconds_each)
                                : fmt::format("dies of signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    summary_.reports.push_back(fmt::format("{}the process {}\n", describe_(seed), how));
    ended();
    worker.next += step_;
    start(worker);
  }

  void stop() {
    stopped_ = true;
    for (const Worker& worker : workers_) {
      if (worker.process > 0) kill(worker.process, SIGKILL);
    }
  }

  int64_t end_;
  int64_t step_;
  const std::function<Outcome(uint64_t)>& run_;
  const std::function<std::string(uint64_t)>& describe_;
  const SeedLimits& limits_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::vector<Worker> workers_;
  Summary summary_;
  bool stopped_ = false;
};

}  // namespace

Summary run_seeds(int64_t begin, int64_t count, const std::function<Outcome(uint64_t)>& run,
                  const std::function<std::string(uint64_t)>& describe, const SeedLimits& limits) {
  const auto cores = static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  return Pool(begin + count, limits.processes > 0 ? limits.processes : cores, run, describe, limits).run(begin);
}

}  // namespace tc::testing
