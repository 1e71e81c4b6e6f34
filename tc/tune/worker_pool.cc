#include "tc/tune/worker_pool.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "tc/support/result.h"
#include "tc/support/write_log.h"
#include "tc/tune/serve.h"

namespace tc::tune {
namespace {

constexpr std::chrono::seconds kHelloLimit(30);
constexpr int kStarts = 3;
constexpr size_t kErrorsKept = 2000;

/// A write to a worker that is gone is an error there, not a signal here: of this thread alone, since what signals do
/// belongs to the process.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutSigpipe() {
    if (::sigismember(&before_, SIGPIPE) != 0) return;
    const timespec at_once{};
    while (::sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

std::string last_lines(const std::string& errors) {
  const size_t end = errors.find_last_not_of(" \n");
  return end == std::string::npos ? "" : "; its last words: " + errors.substr(0, end + 1);
}

}  // namespace

Result<WorkerPool::Worker*> WorkerPool::start_worker(int device) {
  TC_TRY(process, Process::start(command_));
  ++started_;
  workers_.push_back(std::make_unique<Worker>(
      Worker{.process = std::move(process), .device = device, .hello_until = Clock::now() + kHelloLimit}));
  return workers_.back().get();
}

void WorkerPool::assign(Worker& worker, Job job) {
  worker.to_write = to_bytes({.id = job.id, .payload = std::move(job.bytes)});
  job.bytes = {};
  // Nothing is written before the hello, and the job's time begins with it.
  worker.until = Clock::now() + job.limit;
  worker.job = std::move(job);
}

Result<void> WorkerPool::submit(Job job) {
  const auto idle =
      std::ranges::find_if(workers_, [&](const auto& worker) { return !worker->job && worker->device == job.device; });
  if (idle != workers_.end()) {
    assign(**idle, std::move(job));
    return {};
  }
  TC_TRY(worker, start_worker(job.device));
  assign(*worker, std::move(job));
  return {};
}

void WorkerPool::write_to(Worker& worker) {
  while (!worker.to_write.empty()) {
    const ssize_t n = ::write(worker.process.in(), worker.to_write.data(), worker.to_write.size());
    if (n <= 0) return;  // full, or gone, which its standard output will tell
    worker.to_write.erase(0, static_cast<size_t>(n));
  }
}

/// Gives the lines that a worker writes to standard error to the log: its own log, for one.
void WorkerPool::log_lines(Worker& worker, std::string_view piece) {
  if (!is_logged(LogLevel::kDetail)) return;
  worker.line += piece;
  for (size_t end; (end = worker.line.find('\n')) != std::string::npos; worker.line.erase(0, end + 1)) {
    TC_LOG(kDetail, "worker {}: {}", worker.process.pid(), std::string_view(worker.line).substr(0, end));
  }
}

/// Reads what is there; false at the end of its standard output.
bool WorkerPool::read_from(Worker& worker) {
  char piece[1 << 16];
  while (true) {
    const ssize_t n = ::read(worker.process.err(), piece, sizeof piece);
    if (n <= 0) break;
    worker.errors.append(piece, static_cast<size_t>(n));
    log_lines(worker, {piece, static_cast<size_t>(n)});
    if (worker.errors.size() > kErrorsKept) worker.errors.erase(0, worker.errors.size() - kErrorsKept);
  }
  while (true) {
    const ssize_t n = ::read(worker.process.out(), piece, sizeof piece);
    if (n == 0) return false;
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    worker.reader.add({piece, static_cast<size_t>(n)});
  }
}

/// Removes a worker. Its job ends with it, unless it never began.
Result<void> WorkerPool::lose(Worker& worker, Loss loss, const std::string& what, std::vector<Done>& done) {
  worker.process.kill();
  const std::string sentence = what + last_lines(worker.errors);
  std::optional<Job> job = std::move(worker.job);
  const bool said_hello = worker.said_hello;
  const std::string pending = std::move(worker.to_write);
  std::erase_if(workers_, [&](const auto& w) { return w.get() == &worker; });
  if (said_hello) {
    if (job) done.push_back({job->id, loss, sentence});
    return {};
  }
  if (++failed_starts_ >= kStarts) return fail("the worker '{}' does not start: {}", command_[0], sentence);
  if (!job) return {};
  TC_TRY(next, start_worker(job->device));
  next->to_write = pending;
  next->until = Clock::now() + job->limit;
  next->job = std::move(job);
  return {};
}

/// False if the worker is lost.
Result<bool> WorkerPool::read_frames(Worker& worker, std::vector<Done>& done) {
  const auto garbage = [&](const std::string& what) -> Result<bool> {
    TC_TRY_VOID(lose(worker, Loss::kGarbage, what, done));
    return false;
  };
  while (true) {
    Result<std::optional<Frame>> frame = worker.reader.next();
    if (!frame) return garbage(frame.error().diagnostics().at(0).message);
    if (!*frame) return true;
    Frame& got = **frame;
    if (!worker.said_hello && got.id == 0) {
      if (got.payload != kTuneProtocol) return garbage("speaks another protocol");
      worker.said_hello = true;
      failed_starts_ = 0;
      if (worker.job) worker.until = Clock::now() + worker.job->limit;
      continue;
    }
    if (!worker.job || got.id != worker.job->id) return garbage("answers what was not asked");
    worker.job.reset();
    done.push_back({got.id, Loss::kNone, std::move(got.payload)});
  }
}

Result<void> WorkerPool::attend(Worker& worker, std::vector<Done>& done) {
  const bool is_open = read_from(worker);
  TC_TRY(is_alive, read_frames(worker, done));
  if (!is_alive) return {};
  if (!is_open) {
    std::optional<std::string> how;
    for (int i = 0; i < 200 && !(how = worker.process.ended()); ++i) ::usleep(1000);
    return lose(worker, Loss::kCrash, how.value_or("closed its standard output"), done);
  }
  const Clock::time_point now = Clock::now();
  if (!worker.said_hello && now > worker.hello_until) {
    return lose(worker, Loss::kHang, "said no hello in time", done);
  }
  if (worker.said_hello && worker.job && now > worker.until) {
    return lose(worker, Loss::kHang, fmt::format("took longer than {} ms", worker.job->limit.count()), done);
  }
  if (worker.said_hello) write_to(worker);
  return {};
}

Result<std::vector<Executor::Done>> WorkerPool::wait(std::chrono::milliseconds timeout) {
  const WithoutSigpipe guard;
  const Clock::time_point end = Clock::now() + timeout;
  std::vector<Done> done;
  while (true) {
    std::vector<Worker*> all;
    for (const auto& worker : workers_) all.push_back(worker.get());
    for (Worker* worker : all) TC_TRY_VOID(attend(*worker, done));
    Clock::time_point next = end;
    std::vector<pollfd> fds;
    for (const auto& worker : workers_) {
      fds.push_back({worker->process.out(), POLLIN, 0});
      if (worker->said_hello && !worker->to_write.empty()) fds.push_back({worker->process.in(), POLLOUT, 0});
      if (!worker->said_hello) next = std::min(next, worker->hello_until);
      if (worker->job && worker->said_hello) next = std::min(next, worker->until);
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count();
    if (!done.empty() || Clock::now() >= end) return done;
    ::poll(fds.data(), fds.size(), static_cast<int>(std::clamp<int64_t>(left + 1, 0, 1000)));
  }
}

}  // namespace tc::tune
