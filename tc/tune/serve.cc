#include "tc/tune/serve.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "tc/tune/frame.h"

namespace tc::tune {
namespace {

bool write_all(int fd, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

int serve(const Handler& handler) {
  const int out = ::dup(STDOUT_FILENO);
  if (out < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 1;
  if (!write_all(out, to_bytes({.id = 0, .payload = kTuneProtocol}))) return 0;
  FrameReader reader;
  char piece[1 << 16];
  while (true) {
    Result<std::optional<Frame>> frame = reader.next();
    if (!frame) {
      std::fprintf(stderr, "a worker's standard input: %s\n", frame.error().diagnostics().at(0).message.c_str());
      return 1;
    }
    if (*frame) {
      // A tuner that is gone needs no answer.
      if (!write_all(out, to_bytes({.id = (*frame)->id, .payload = handler((*frame)->payload)}))) return 0;
      continue;
    }
    const ssize_t n = ::read(STDIN_FILENO, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0 && reader.empty() ? 0 : 1;
    reader.add({piece, static_cast<size_t>(n)});
  }
}

}  // namespace tc::tune
