#include "tc/tune/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tc::tune {
namespace {

/// Everything that comes until the other side closes it.
std::string read_all(int descriptor) {
  std::string text;
  char piece[256];
  for (;;) {
    pollfd ready{descriptor, POLLIN, 0};
    if (::poll(&ready, 1, 10'000) != 1) return text + "(nothing for 10 s)";
    const ssize_t n = ::read(descriptor, piece, sizeof piece);
    if (n <= 0) return text;
    text.append(piece, static_cast<size_t>(n));
  }
}

/// What goes wrong with a child's streams where these of ours are closed; 0 if nothing does.
int fault_without(unsigned closed) {
  for (int stream = 0; stream < 3; ++stream) {
    if ((closed >> stream & 1) != 0) ::close(stream);
  }
  Result<Process> process = Process::start({"/bin/sh", "-c", "read word; echo out $word; echo err $word >&2; exit 5"});
  if (!process) return 1;
  if (::write(process->in(), "it\n", 3) != 3) return 2;
  if (read_all(process->out()) != "out it\n") return 3;
  if (read_all(process->err()) != "err it\n") return 4;
  std::optional<std::string> how;
  for (int i = 0; i < 10'000 && !(how = process->ended()); ++i) ::usleep(1000);
  return how == "exited with code 5" ? 0 : 5;
}

TEST(Process, HasStandardStreamsWhereItsParentHasNone) {
  for (unsigned closed = 0; closed < 8; ++closed) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(fault_without(closed));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "closed: " << closed << ", status " << status;
  }
}

TEST(Process, SaysWhyItDoesNotStart) {
  EXPECT_EQ(Process::start({}).error().to_string(), "error: a worker has no command\n");
  EXPECT_EQ(Process::start({"/nonexistent/worker"}).error().to_string(),
            "error: cannot start '/nonexistent/worker': No such file or directory\n");
}

}  // namespace
}  // namespace tc::tune
