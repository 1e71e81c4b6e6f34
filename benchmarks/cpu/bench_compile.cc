// How long every example takes to compile: the processor time of this thread, pass by pass, least of several rounds in
// one process, so that what else the machine does counts little. Prints a table; exits 1 where a bound is broken.
// bench_compile [PROGRAM...]: only examples whose name contains one of these.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tc/compile/pipeline.h"

namespace {

using tc::compile::Compilation;
using tc::compile::Settings;

constexpr double kFirstMs = 1200;  // in a process
constexpr double kLaterMs = 150;
constexpr int kRounds = 4;

struct Example {
  const char* name;
  std::map<std::string, int64_t> sizes;
  std::map<std::string, int64_t> scalars = {};
};

const std::vector<Example> kExamples = {
    {"softmax", {{"N", 1024}, {"D", 1024}}},
    {"softmax", {{"N", 64}, {"D", 100}}},
    {"layernorm", {{"N", 1024}, {"D", 1024}}},
    {"layernorm", {{"N", 64}, {"D", 100}}},
    {"mv", {{"M", 1024}, {"K", 1024}}},
    {"mv_two_statements", {{"M", 1024}, {"K", 1024}}},
    {"sgemm", {{"N", 1024}, {"M", 1024}, {"K", 1024}}},
    {"sgemm", {{"N", 100}, {"M", 50}, {"K", 70}}},
    {"transposed_matmul", {{"M", 1024}, {"N", 1024}, {"K", 1024}}},
    {"transposed_matmul", {{"M", 128}, {"N", 96}, {"K", 64}}},
    {"batched_matmul", {{"B", 500}, {"N", 26}, {"M", 72}, {"K", 26}}},
    {"outer_product_mm", {{"P", 16}, {"Q", 32}, {"R", 64}, {"S", 8}, {"T", 24}}},
    {"fcrelu", {{"B", 128}, {"I", 1024}, {"O", 1024}}},
    {"mlp1", {{"B", 128}, {"M", 2000}, {"N", 128}}},
    {"mlp3", {{"B", 128}, {"N", 128}, {"O", 128}, {"P", 64}, {"Q", 32}}},
    {"mlp3", {{"B", 32}, {"N", 64}, {"O", 48}, {"P", 40}, {"Q", 10}}},
    {"conv2d", {{"B", 1}, {"IP", 64}, {"H", 58}, {"W", 58}, {"OP", 64}, {"KH", 3}, {"KW", 3}}},
    {"conv2d", {{"B", 2}, {"IP", 8}, {"H", 16}, {"W", 18}, {"OP", 16}, {"KH", 3}, {"KW", 3}}},
    {"sconv2d", {{"N", 2}, {"C", 32}, {"H", 57}, {"W", 57}, {"F", 32}, {"KH", 3}, {"KW", 3}}, {{"sh", 2}, {"sw", 2}}},
    {"group_convolution", {{"N", 4}, {"G", 32}, {"C", 16}, {"F", 16}, {"H", 14}, {"W", 14}, {"KH", 3}, {"KW", 3}}},
    {"padded_conv_copy", {{"H", 1000}, {"KH", 5}}},
    {"padded_conv_guard", {{"H", 1000}, {"KH", 5}}},
    {"attention", {{"B", 2}, {"H", 8}, {"N", 128}, {"M", 128}, {"D", 64}, {"E", 64}}},
    {"wavenet", {{"B", 1}, {"R", 32}, {"T", 1000}, {"D", 32}, {"S", 64}}, {{"dilation", 2}}},
    {"group_norm", {{"N", 4}, {"G", 32}, {"D", 16}, {"H", 48}, {"W", 48}}},
    {"batchnorm", {{"N", 16}, {"C", 64}, {"H", 28}, {"W", 28}}},
    {"kronecker", {{"M", 256}, {"D0", 16}, {"D1", 16}, {"D2", 16}, {"N0", 16}, {"N1", 16}, {"N2", 16}}},
    {"moments", {{"N", 1024}, {"K", 36}}},
    {"argmin", {{"N", 1024}, {"K", 100}}},
    {"maxpool2x2", {{"B", 2}, {"C", 16}, {"H", 56}, {"W", 56}}},
    {"avgpool", {{"B", 2}, {"C", 16}, {"H", 56}, {"W", 56}}, {{"KH", 2}, {"KW", 2}}},
    {"gather", {{"N", 1000}, {"A", 200}, {"B", 300}}},
    {"two_lut", {{"E1", 1000}, {"E2", 1000}, {"D", 64}, {"B", 128}, {"L1", 50}, {"L2", 50}}},
    {"histogram", {{"N", 100000}}, {{"bins", 256}}},
    {"prefix_sum", {{"N", 1000}}},
};

double now_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

/// The times of the passes of one compilation.
std::vector<double> compile(const Example& example, const std::string& text) {
  Settings settings;
  settings.given.sizes = example.sizes;
  settings.given.scalars = example.scalars;
  settings.threads = 2;
  Compilation compilation;
  compilation.source = std::make_shared<const tc::Source>(example.name, text);
  std::vector<double> times;
  for (const tc::compile::Pass& pass : tc::compile::passes()) {
    const double begin = now_ms();
    const auto done = tc::compile::run_passes(settings, compilation, pass.name);
    times.push_back(now_ms() - begin);
    if (done) continue;
    std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
    std::exit(1);
  }
  return times;
}

double sum(const std::vector<double>& times) {
  double result = 0;
  for (double time : times) result += time;
  return result;
}

/// Prints one row. False if a bound is broken.
bool measure(const Example& example, bool first_in_process) {
  std::ifstream file(std::string(TC_EXAMPLES_DIR "/") + example.name + ".tc");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<double> best;
  double first = 0;
  double total = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<double> times = compile(example, text);
    if (round == 0) first = sum(times);
    if (round == 0) continue;
    total = round == 1 ? sum(times) : std::min(total, sum(times));
    if (best.empty()) best = times;
    for (size_t i = 0; i < times.size(); ++i) best[i] = std::min(best[i], times[i]);
  }
  const bool kept = first <= kFirstMs && (first_in_process || first <= 2 * kLaterMs) && total <= kLaterMs;
  fmt::print("{:18} {:6}", example.name, example.sizes.begin()->second);
  for (double time : best) fmt::print(" {:8.1f}", time);
  fmt::print(" {:8.1f} {:8.1f}{}\n", total, first, kept ? "" : "  <- too long");
  std::fflush(stdout);
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  fmt::print("{:18} {:>6}", "milliseconds", "size");
  for (const tc::compile::Pass& pass : tc::compile::passes()) fmt::print(" {:>8.8}", pass.name);
  fmt::print(" {:>8} {:>8}\n", "total", "first");
  bool first = true;
  bool kept = true;
  for (const Example& example : kExamples) {
    const bool chosen = wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& part) {
                          return std::string(example.name).find(part) != std::string::npos;
                        });
    if (!chosen) continue;
    kept = measure(example, first) && kept;
    first = false;
  }
  return kept ? 0 : 1;
}
