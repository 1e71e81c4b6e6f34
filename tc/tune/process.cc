#include "tc/tune/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "tc/support/result.h"

namespace tc::tune {
namespace {

/// A descriptor above the standard ones, which a process that has closed those gets first: become() would put streams
/// over them while it still needs them.
int above_standard(int descriptor) {
  if (descriptor > STDERR_FILENO) return descriptor;
  const int above = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return above;
}

/// A pipe whose ends no other child inherits.
struct Pipe {
  int read = -1, write = -1;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = above_standard(ends[0]), write = above_standard(ends[1]);
    return read >= 0 && write >= 0;
  }
  void close() const {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
};

/// The child's side, between fork and exec: only what is safe there.
[[noreturn]] void become(char* const* arguments, const Pipe& in, const Pipe& out, const Pipe& err, const Pipe& failure,
                         pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(in.read, STDIN_FILENO);
  ::dup2(out.write, STDOUT_FILENO);
  ::dup2(err.write, STDERR_FILENO);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_DFL);
  ::execvp(arguments[0], arguments);
  const int error = errno;
  if (::write(failure.write, &error, sizeof error) < 0) ::_exit(126);
  ::_exit(127);
}

}  // namespace

Result<Process> Process::start(const std::vector<std::string>& command) {
  if (command.empty()) return fail("a worker has no command");
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  Pipe in, out, err, failure;
  if (!in.open() || !out.open() || !err.open() || !failure.open()) {
    const int error = errno;
    for (const Pipe& pipe : {in, out, err, failure}) pipe.close();
    return fail("cannot make pipes for a worker: {}", std::strerror(error));
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(arguments.data(), in, out, err, failure, parent);
  for (const int theirs : {in.read, out.write, err.write, failure.write}) ::close(theirs);
  int error = pid < 0 ? errno : 0;
  if (pid > 0 && ::read(failure.read, &error, sizeof error) <= 0) error = 0;
  ::close(failure.read);
  Process process;
  process.pid_ = pid;
  process.in_ = in.write, process.out_ = out.read, process.err_ = err.read;
  if (error != 0) return fail("cannot start '{}': {}", command[0], std::strerror(error));
  for (const int ours : {process.in_, process.out_, process.err_}) ::fcntl(ours, F_SETFL, O_NONBLOCK);
  return process;
}

void Process::swap(Process& other) {
  std::swap(pid_, other.pid_);
  std::swap(in_, other.in_);
  std::swap(out_, other.out_);
  std::swap(err_, other.err_);
  std::swap(end_, other.end_);
}

Process::~Process() {
  kill();
  for (const int ours : {in_, out_, err_}) {
    if (ours >= 0) ::close(ours);
  }
}

void Process::kill() {
  if (pid_ <= 0 || end_) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // before it has made its group
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  end_ = "was killed";
}

std::optional<std::string> Process::ended() {
  if (pid_ <= 0 || end_) return end_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  if (WIFEXITED(status)) {
    end_ = fmt::format("exited with code {}", WEXITSTATUS(status));
  } else {
    const int signal = WTERMSIG(status);
    end_ = fmt::format("was killed by SIG{} ({})", ::sigabbrev_np(signal), ::strsignal(signal));
  }
  ::kill(-pid_, SIGKILL);  // whom it has started
  return end_;
}

}  // namespace tc::tune
