// Runs random programs on the simulator of GPU kernels and compares the results with the interpreter's; needs no GPU.
// kUsage has its arguments.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include "tc/gpu/strategy/tunables.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"
#include "tests/gpu/simulator_backend.h"
#include "tests/random/layouts.h"
#include "tests/random/placements.h"
#include "tests/random/products.h"
#include "tests/random/seeds.h"
#include "tests/random/warpgroup_products.h"

namespace tc::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kUsage =
    R"(Runs random programs on the simulator of GPU kernels and compares the results with the interpreter's; needs no GPU.
    simulator_differential [--programs=N] [--schedules=N] [--products=N] [--placements=N] [--warpgroups=N] [--seed=S]
                           [--jobs=J] [--strided=N] [--limit=S] [--seconds=S]
--programs: under random options (default 10000). --schedules: programs whose loops are written by random verbs
(default 2500). --products: defs of tests/random/products.h, each by default and by a plan of tensor cores that a
search would try (default 0). --placements: those of tests/random/placements.h, by default, by a plan that a search would
try, and on a device where few elements are many (default 0). --warpgroups: those of tests/random/warpgroup_products.h (default 0). --strided: all
but the schedules in turns, with random strides (default 0). --seed: the first one of each kind (default 1). --jobs:
processes (default: the machine's cores). --limit: seconds for one program (default 120). --seconds: after which no
further program is started. Prints each program that is wrong, with the command that repeats it, and stops after ten
of them. Ends with 0 if none was wrong.
)";

struct Arguments {
  int64_t programs = 10000, schedules = 2500, products = 0, placements = 0, warpgroups = 0, strided = 0;
  int64_t seed = 1;
  int64_t jobs = 0;
  int64_t limit = 120;
  double seconds = 1e9;
};

/// What is wrong with a def on the simulator; "" if nothing is.
Outcome outcome_of(const std::string& text, const Result<ir::Program>& program,
                   const std::vector<options::MappingOptions>& all, uint64_t seed, const gpu::Device& device) {
  if (!program) return {Outcome::Verdict::kRejected, text + program.error().to_string()};
  for (const options::MappingOptions& options : all) {
    const std::string wrong = difference(*program, options, seed, device);
    if (!wrong.empty()) return {Outcome::Verdict::kDiffers, text + options::to_text(options) + wrong};
  }
  return {};
}

/// An H200, for which products have the most kinds of kernels.
gpu::Device hopper() { return gpu::device_of_architecture(90); }

/// With strides that the seed chooses, or as it is.
Result<ir::Program> laid_out(Result<ir::Program> program, uint64_t seed, bool strided) {
  if (program && strided) program = ir::with_layouts(*program, random_layouts(*program, seed));
  return program;
}

Outcome run_product(uint64_t seed, bool strided) {
  const RandomProduct product = random_product(seed);
  const Result<ir::Program> program = laid_out(try_specialised(product.text, product.sizes), seed, strided);
  std::vector<options::MappingOptions> all = {{}};
  if (program) {
    const auto plans = gpu::top(*program, {.tensor_cores = true}, hopper(), 8);
    if (plans && !plans->empty()) all.push_back((*plans)[seed % plans->size()].options);
  }
  return outcome_of(product.text, program, all, seed, hopper());
}

Outcome run_placement(uint64_t seed) {
  const RandomProduct placement = random_placement(seed);
  const Result<ir::Program> program = try_specialised(placement.text, placement.sizes);
  gpu::Device busy = hopper();
  busy.instances_of_launch = 16;
  std::vector<options::MappingOptions> all = {{}};
  if (program) {
    const auto plans = gpu::top(*program, {}, hopper(), 8);
    if (plans && !plans->empty()) all.push_back((*plans)[seed % plans->size()].options);
  }
  const Outcome outcome = outcome_of(placement.text, program, all, seed, hopper());
  if (outcome.verdict != Outcome::Verdict::kAgrees) return outcome;
  return outcome_of(placement.text, program, {{}, {.split_reduction = 1}}, seed, busy);
}

Outcome run_warpgroups(uint64_t seed, bool strided) {
  const WarpgroupProduct product = seed % 2 == 0 ? random_boxed_product(seed) : random_warpgroup_product(seed);
  const Result<ir::Program> program = laid_out(try_specialised(product.text, product.sizes), seed, strided);
  // Strides may leave no boxes for the tile that is asked for.
  const bool fits = !strided || !program || mapped(*program, product.options, hopper());
  return outcome_of(product.text, program, {fits ? product.options : options::MappingOptions()}, seed, hopper());
}

Outcome run_strided(uint64_t seed) {
  if (seed % 3 == 0) return run_one(seed, strided_backend(seed));
  return seed % 3 == 1 ? run_product(seed, true) : run_warpgroups(seed, true);
}

/// An error that is thrown is the program's, too.
Outcome caught(const std::function<Outcome(uint64_t)>& run, uint64_t seed) {
  try {
    return run(seed);
  } catch (const std::exception& fault) {
    return {Outcome::Verdict::kFails, fmt::format("{}\n", fault.what())};
  }
}

class Runs {
 public:
  explicit Runs(const Arguments& arguments) : arguments_(arguments) {}

  /// Runs so many seeds of one kind, which the option `kind` counts.
  void run(const std::string& kind, int64_t count, const std::function<Outcome(uint64_t)>& run_seed) {
    if (count == 0) return;
    const auto repeat = [&](uint64_t seed) {
      return fmt::format("to repeat: simulator_differential{} --seed={} --jobs=1\n", only(kind), seed);
    };
    const auto run = [&](uint64_t seed) {
      Outcome outcome = caught(run_seed, seed);
      if (outcome.verdict != Outcome::Verdict::kAgrees) outcome.report = repeat(seed) + outcome.report;
      return outcome;
    };
    size_t reported = 0;
    auto told = Clock::now();
    const auto after_each = [&](const Summary& summary) {
      for (; reported < summary.reports.size(); ++reported)
        std::printf("WRONG %s\n", summary.reports[reported].c_str());
      constexpr auto kPause = std::chrono::seconds(10);
      if (Clock::now() - told > kPause) {
        told = Clock::now();
        std::printf("%s: %lld of %lld, %zu wrong; %.0f s\n", kind.c_str(), static_cast<long long>(summary.seeds),
                    static_cast<long long>(count), reported, seconds());
      }
      std::fflush(stdout);
    };
    const Summary summary = run_seeds(arguments_.seed, count, run, repeat,
                                      {.seconds_each = static_cast<unsigned>(arguments_.limit),
                                       .seconds = arguments_.seconds - seconds(),
                                       .processes = arguments_.jobs,
                                       .after_each = after_each});
    wrong_ += summary.reports.size();
    std::printf("%s: %lld of %lld ran to their end from seed %lld on, %zu wrong; %.0f s\n", kind.c_str(),
                static_cast<long long>(summary.seeds), static_cast<long long>(count),
                static_cast<long long>(arguments_.seed), summary.reports.size(), seconds());
    std::fflush(stdout);
  }
  size_t wrong() const { return wrong_; }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  /// The arguments that run one program, of this kind.
  static std::string only(const std::string& kind) {
    std::string text;
    for (const char* other : {"programs", "schedules", "products", "placements", "warpgroups", "strided"}) {
      text += fmt::format(" --{}={}", other, kind == other ? 1 : 0);
    }
    return text;
  }

  const Arguments& arguments_;
  Clock::time_point began_ = Clock::now();
  size_t wrong_ = 0;
};

int run(const Arguments& arguments) {
  Runs runs(arguments);
  runs.run("programs", arguments.programs, [](uint64_t seed) { return run_one(seed, simulator_backend(seed)); });
  runs.run("schedules", arguments.schedules, [](uint64_t seed) { return run_one(seed, schedule_backend(seed)); });
  runs.run("products", arguments.products, [](uint64_t seed) { return run_product(seed, false); });
  runs.run("placements", arguments.placements, run_placement);
  runs.run("warpgroups", arguments.warpgroups, [](uint64_t seed) { return run_warpgroups(seed, false); });
  runs.run("strided", arguments.strided, run_strided);
  return runs.wrong() > 0 ? 1 : 0;
}

/// Takes the number of an argument "--name=NUMBER"; false if it is another argument.
template <typename Number>
bool take(const std::string& argument, const std::string& name, Number& number) {
  const std::string prefix = fmt::format("--{}=", name);
  if (argument.rfind(prefix, 0) != 0) return false;
  number = static_cast<Number>(std::stod(argument.substr(prefix.size())));
  return true;
}

}  // namespace
}  // namespace tc::testing

int main(int argc, char** argv) {
  tc::testing::Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    using tc::testing::take;
    const std::string argument = argv[i];
    if (argument == "--help") {
      std::fputs(tc::testing::kUsage, stdout);
      return 0;
    }
    const bool taken =
        take(argument, "programs", arguments.programs) || take(argument, "schedules", arguments.schedules) ||
        take(argument, "products", arguments.products) || take(argument, "warpgroups", arguments.warpgroups) ||
        take(argument, "placements", arguments.placements) || take(argument, "strided", arguments.strided) ||
        take(argument, "seed", arguments.seed) || take(argument, "jobs", arguments.jobs) ||
        take(argument, "limit", arguments.limit) || take(argument, "seconds", arguments.seconds);
    if (taken) continue;
    std::fprintf(stderr, "simulator_differential: no such argument: %s; --help says which there are\n", argv[i]);
    return 1;
  }
  return tc::testing::run(arguments);
}
