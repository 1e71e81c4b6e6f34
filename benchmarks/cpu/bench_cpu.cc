// Kernels of programs.tc against what the machine can do: OpenBLAS for the matmul, memcpy for what only moves data.
// Both sides of a pair run interleaved in one process, on all cores; the closing table holds their best times.
#include <benchmark/benchmark.h>
#include <cblas.h>
#include <tc/api/tc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using tc::api::CompiledKernel;
using tc::api::Tensor;

/// The value, or the end of the program with the error's text.
template <typename T>
T expect(tc::Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().to_string().c_str());
  std::exit(1);
}

/// A compiled def with its tensors, the inputs filled with numbers in [-1, 1).
class Prepared {
 public:
  Prepared(const std::string& entry, std::map<std::string, int64_t> sizes)
      : kernel_(compile(entry, std::move(sizes))), outputs_(expect(kernel_.allocate_outputs())) {
    std::mt19937 random(0);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (const auto& spec : kernel_.inputs()) {
      inputs_.push_back(expect(Tensor::allocate(spec)));
      std::generate_n(inputs_.back().data_as<float>(), spec.elements(), [&] { return uniform(random); });
    }
  }

  void run() {
    auto done = kernel_.run(inputs_, outputs_);
    if (done) return;
    std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
    std::exit(1);
  }

 private:
  static CompiledKernel compile(const std::string& entry, std::map<std::string, int64_t> sizes) {
    const std::string path = TC_BENCHMARK_DIR "/programs.tc";
    std::ifstream file(path);
    auto engine = expect(tc::api::Engine::create(std::string{std::istreambuf_iterator<char>(file), {}}, path));
    return expect(engine.compile({.entry = entry, .sizes = std::move(sizes)}));
  }

  CompiledKernel kernel_;
  std::vector<Tensor> outputs_;
  std::vector<Tensor> inputs_;
};

/// Two sides that do the same work: ours may take at most `bound` times as long.
struct Pair {
  std::string name;
  double bound;
  std::function<std::function<void()>()> ours, theirs;  // each prepares, and gives what is timed
  double ours_us = std::numeric_limits<double>::infinity();
  double theirs_us = std::numeric_limits<double>::infinity();
};

std::function<void()> prepare(const std::string& entry, const std::map<std::string, int64_t>& sizes) {
  auto prepared = std::make_shared<Prepared>(entry, sizes);
  return [prepared] { prepared->run(); };
}

std::function<void()> prepare_openblas(int n, CBLAS_TRANSPOSE transpose_b) {
  auto data = std::make_shared<std::vector<float>>(3 * static_cast<size_t>(n) * n, 0.5F);
  return [data, n, transpose_b] {
    float* a = data->data();
    float* b = a + static_cast<size_t>(n) * n;
    float* c = b + static_cast<size_t>(n) * n;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, transpose_b, n, n, n, 1, a, n, b, n, 0, c, n);
  };
}

/// memcpy of so many bytes, shared by all cores.
std::function<void()> prepare_memcpy(size_t bytes) {
  auto data = std::make_shared<std::vector<char>>(2 * bytes, 1);
  return [data, bytes] {
    const size_t workers = std::max(1U, std::thread::hardware_concurrency());
    const size_t share = bytes / workers;
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < workers; ++i) {
      threads.emplace_back([&, i] { std::memcpy(&(*data)[bytes + i * share], &(*data)[i * share], share); });
    }
    std::memcpy(&(*data)[bytes], data->data(), share);
  };
}

std::vector<Pair> all_pairs() {
  const std::map<std::string, int64_t> cube = {{"M", 1024}, {"N", 1024}, {"K", 1024}};
  const std::map<std::string, int64_t> square = {{"M", 4096}, {"N", 4096}};
  const size_t bytes = size_t{4096} * 4096 * sizeof(float);
  return {
      {"matmul 1024x1024x1024 / OpenBLAS", 1 / 0.7, [=] { return prepare("matmul", cube); },
       [] { return prepare_openblas(1024, CblasNoTrans); }},
      {"the same, B transposed / OpenBLAS", 1 / 0.7, [=] { return prepare("matmul_transposed", cube); },
       [] { return prepare_openblas(1024, CblasTrans); }},
      {"copy 4096x4096 / memcpy", 1.3, [=] { return prepare("copy", square); }, [=] { return prepare_memcpy(bytes); }},
      {"transpose 4096x4096 / memcpy", 1.3, [=] { return prepare("transpose", square); },
       [=] { return prepare_memcpy(bytes); }},
      // A sum moves its input once, a memcpy of half as many bytes as many.
      {"sum 4096x4096 / memcpy of half", 1.3, [=] { return prepare("sum", square); },
       [=] { return prepare_memcpy(bytes / 2); }},
  };
}

void add(const std::string& name, const std::function<std::function<void()>()>& prepare_side) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [run = std::function<void()>(), prepare_side](benchmark::State& state) mutable {
                                 if (!run) run = prepare_side();
                                 for (auto _ : state) run();
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

/// Prints as usual, and keeps the best time of each side.
class Reporter : public benchmark::ConsoleReporter {
 public:
  explicit Reporter(std::vector<Pair>& pairs) : ConsoleReporter(OO_Tabular), pairs_(pairs) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
      for (Pair& pair : pairs_) {
        if (run.run_name.function_name == pair.name + ": ours") keep(pair.ours_us, run);
        if (run.run_name.function_name == pair.name + ": theirs") keep(pair.theirs_us, run);
      }
    }
    ConsoleReporter::ReportRuns(runs);
  }

 private:
  static void keep(double& best_us, const Run& run) { best_us = std::min(best_us, run.GetAdjustedRealTime()); }

  std::vector<Pair>& pairs_;
};

/// True if every pair that ran is within its bound.
bool print_ratios(const std::vector<Pair>& pairs) {
  bool good = true;
  std::printf("\n%-36s %12s %12s %8s %8s\n", "best times, us", "ours", "theirs", "ratio", "at most");
  for (const Pair& pair : pairs) {
    const double ratio = pair.ours_us / pair.theirs_us;
    if (!(ratio < std::numeric_limits<double>::infinity())) continue;  // one side was filtered out
    good = good && ratio <= pair.bound;
    std::printf("%-36s %12.0f %12.0f %8.2f %8.2f%s\n", pair.name.c_str(), pair.ours_us, pair.theirs_us, ratio,
                pair.bound, ratio <= pair.bound ? "" : "  MISSED");
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words = {argv[0], "--benchmark_repetitions=5", "--benchmark_enable_random_interleaving=true",
                                    "--benchmark_min_time=0.3"};
  words.insert(words.end(), argv + 1, argv + argc);  // later flags win
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 1;

  std::vector<Pair> pairs = all_pairs();
  for (const Pair& pair : pairs) {
    add(pair.name + ": ours", pair.ours);
    add(pair.name + ": theirs", pair.theirs);
  }
  Reporter reporter(pairs);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return print_ratios(pairs) ? 0 : 1;
}
