// How long the compiler takes from the text of the board's rows to CUDA text for an H200: the processor time of this
// thread, pass by pass, least of several rounds in one process, so that what else the machine does counts little. Needs
// no GPU. Prints a table; exits 1 where a row takes longer than its bound.
// bench_planning [--rounds=N] [ROW...]: only rows whose name contains one of these.
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

using tc::compile::Backend;
using tc::compile::Compilation;
using tc::compile::Settings;

constexpr double kBoundMs = 20;

struct Row {
  const char* name;
  const char* file;  ///< below benchmarks/board/tc
  const char* entry;
  std::map<std::string, int64_t> sizes;
};

std::map<std::string, int64_t> mnk(int64_t m, int64_t n, int64_t k) { return {{"M", m}, {"N", n}, {"K", k}}; }

std::map<std::string, int64_t> image(int64_t channels, int64_t size) {
  return {{"N", 32}, {"C", channels}, {"F", channels}, {"H", size}, {"W", size}};
}

const std::vector<Row> kRows = {
    {"f16 4096x4096x4096", "products.tc", "gemm_f16", mnk(4096, 4096, 4096)},
    {"f16 1000x1000x1000", "products.tc", "gemm_f16", mnk(1000, 1000, 1000)},
    {"f16 1001x1001x1001", "products.tc", "gemm_f16", mnk(1001, 1001, 1001)},
    {"f16 333x777x555", "products.tc", "gemm_f16", mnk(333, 777, 555)},
    {"f16 5000x3000x200", "products.tc", "gemm_f16", mnk(5000, 3000, 200)},
    {"f16 128x1024x1024", "products.tc", "gemm_f16", mnk(128, 1024, 1024)},
    {"f16 64x12288x4096", "products.tc", "gemm_f16", mnk(64, 12288, 4096)},
    {"f16 nt 4096x4096x4096", "products.tc", "gemm_f16_nt", mnk(4096, 4096, 4096)},
    {"gelu 4096x4096x4096", "products.tc", "gemm_bias_gelu", mnk(4096, 4096, 4096)},
    {"f32 1024x1024x1024", "products.tc", "gemm_f32", mnk(1024, 1024, 1024)},
    {"int8 128x8192x8192", "products.tc", "int8_groups", {{"M", 128}, {"N", 8192}, {"K", 8192}, {"G", 64}}},
    {"conv3x3 nhwc 64 56", "images.tc", "conv3x3_nhwc", image(64, 56)},
    {"conv3x3 nhwc 256 14", "images.tc", "conv3x3_nhwc", image(256, 14)},
    {"conv3x3 nchw 64 56", "images.tc", "conv3x3_nchw", image(64, 56)},
    {"conv3x3 nchw 256 14", "images.tc", "conv3x3_nchw", image(256, 14)},
    {"llama 4096x4096x11008", "layers.tc", "llama_mlp", {{"B", 4096}, {"D", 4096}, {"F", 11008}}},
    {"lstm 4096x1024x1024", "layers.tc", "lstm_like", {{"M", 4096}, {"N", 1024}, {"K", 1024}, {"L", 1024}}},
    {"attention 384x64", "rows.tc", "attention", {{"B", 32}, {"H", 16}, {"N", 384}, {"M", 384}, {"D", 64}}},
    {"attention 4096x128", "rows.tc", "attention", {{"B", 4}, {"H", 16}, {"N", 4096}, {"M", 4096}, {"D", 128}}},
    {"softmax 32768x4096", "rows.tc", "softmax", {{"N", 32768}, {"D", 4096}}},
    {"layernorm 32768x4096", "rows.tc", "layernorm", {{"N", 32768}, {"D", 4096}}},
};

double now_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

/// The passes up to the CUDA text.
std::vector<tc::compile::Pass> timed_passes() {
  const std::vector<tc::compile::Pass>& all = tc::compile::passes(Backend::kCuda);
  const auto end =
      std::find_if(all.begin(), all.end(), [](const auto& pass) { return std::string(pass.name) == "cuda"; });
  return {all.begin(), end + 1};
}

/// The times of the passes of one compilation.
std::vector<double> compile(const Row& row, const std::string& text) {
  Settings settings;
  settings.backend = Backend::kCuda;
  settings.entry = row.entry;
  settings.given.sizes = row.sizes;
  Compilation compilation;
  compilation.source = std::make_shared<const tc::Source>(row.file, text);
  std::vector<double> times;
  for (const tc::compile::Pass& pass : timed_passes()) {
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

/// Prints one row. False if it takes too long.
bool measure(const Row& row, int rounds) {
  std::ifstream file(std::string(TC_BOARD_DIR "/tc/") + row.file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<double> first = compile(row, text);
  std::vector<double> best = first;
  double total = sum(first);
  for (int round = 1; round < rounds; ++round) {
    const std::vector<double> times = compile(row, text);
    total = std::min(total, sum(times));
    for (size_t i = 0; i < times.size(); ++i) best[i] = std::min(best[i], times[i]);
  }
  const bool kept = total <= kBoundMs;
  fmt::print("{:22}", row.name);
  for (double time : best) fmt::print(" {:8.1f}", time);
  fmt::print(" {:8.1f} {:8.1f}{}\n", total, sum(first), kept ? "" : "  <- too long");
  std::fflush(stdout);
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> wanted(argv + 1, argv + argc);
  int rounds = 4;
  if (!wanted.empty() && wanted[0].starts_with("--rounds=")) {
    rounds = std::atoi(wanted[0].c_str() + std::string("--rounds=").size());
    wanted.erase(wanted.begin());
  }
  fmt::print("{:22}", "milliseconds");
  for (const tc::compile::Pass& pass : timed_passes()) fmt::print(" {:>8.8}", pass.name);
  fmt::print(" {:>8} {:>8}\n", "total", "first");
  bool kept = true;
  for (const Row& row : kRows) {
    const bool chosen = wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& part) {
                          return std::string(row.name).find(part) != std::string::npos;
                        });
    if (chosen) kept = measure(row, rounds) && kept;
  }
  return kept ? 0 : 1;
}
