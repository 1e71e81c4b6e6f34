// A worker without a compiler, whose kernels' times are a landscape, and which fails in every way that there is, as the
// options of a job say. Arguments: how often it dies at its start (counted in the file that follows); or "mute".
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tc/tune/messages.h"
#include "tc/tune/serve.h"
#include "tests/tune/landscape.h"

namespace {

using namespace tc::tune;

/// What unroll says to do, when compiled (odd) or measured (even).
void misbehave(const std::string& options, bool compiles, int raw_out) {
  const auto has = [&](const char* field) { return options.find(field) != std::string::npos; };
  if (has("unroll: 2\n") && !compiles) {
    std::signal(SIGSEGV, SIG_DFL);  // which a sanitizer handles
    std::raise(SIGSEGV);
  }
  if (has("unroll: 3\n") && compiles) std::abort();
  if (has("unroll: 4\n") && !compiles) ::sleep(1000);
  if (has("unroll: 6\n") && !compiles) {
    const std::string garbage(500, 'x');
    if (::write(raw_out, garbage.data(), garbage.size()) < 0) std::abort();
    ::sleep(1000);
  }
  if (has("unroll: 7\n") && compiles) std::exit(3);
  std::printf("noise on standard output\n");
}

std::string answer(const std::string& bytes, int raw_out) {
  const std::optional<Job> job = job_from(bytes);
  if (!job) return "what was asked is no job";
  const auto* measure = std::get_if<MeasureJob>(&job->work);
  misbehave(job->options, measure == nullptr, raw_out);
  if (job->problem == "unusable") return to_bytes(Reply{.outcome = Outcome::kUnusable, .message = "no such def"});
  if (measure == nullptr) {
    if (job->options.find("unroll: 1\n") != std::string::npos) {
      return to_bytes(Reply{.outcome = Outcome::kRefused, .message = "the options ask for too much"});
    }
    return to_bytes(Reply{.artifact = "made of " + job->options, .compile_ms = 1});
  }
  if (measure->artifact != "made of " + job->options) std::abort();
  Space space = testing::landscape_space();
  const auto us = [&](const std::string& options) { return testing::landscape_us(*candidate_of(space, options)); };
  Reply reply{.hot_us = us(job->options), .device = "landscape"};
  if (measure->has_incumbent) reply.incumbent_us = us(measure->incumbent_options);
  if (job->options.find("unroll: 8\n") != std::string::npos) {
    reply = Reply{.outcome = Outcome::kWrong, .message = "'C' differs at (0, 0)"};
  }
  return to_bytes(reply);
}

/// Counts in a file; true the first `times` times.
bool dies(int times, const char* path) {
  std::ofstream(path, std::ios::app) << 'x';
  std::ifstream file(path, std::ios::ate);
  return file.tellg() <= times;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) {
    std::printf("%s", std::string(500, 'x').c_str());
    std::fflush(stdout);
    ::sleep(1000);
  }
  if (argc == 3 && dies(std::atoi(argv[1]), argv[2])) {
    std::fprintf(stderr, "a library is missing\n");
    return 9;
  }
  const int raw_out = ::dup(STDOUT_FILENO);
  return serve([raw_out](const std::string& job) { return answer(job, raw_out); });
}
