// Runs every example and random programs on this machine's GPU, and compares the results with the interpreter's. kUsage
// has its arguments.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "benchmarks/gpu/on_device.h"
#include "tc/compile/gpu_target.h"
#include "tc/gpu/strategy/tunables.h"
#include "tc/interp/compare.h"
#include "tc/options/presets.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"
#include "tests/random/choices.h"
#include "tests/random/differential.h"
#include "tests/random/layouts.h"
#include "tests/random/placements.h"
#include "tests/random/products.h"
#include "tests/random/random.h"
#include "tests/random/streams.h"
#include "tests/random/warpgroup_products.h"

namespace tc::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsage =
    R"(Runs every example and random programs on this machine's GPU, by the compiler's defaults and under random options,
and compares the results with the interpreter's: integers exactly, floats to the bound that it computes. Every
example, and every fourth random program, also with tensors that are aligned to their elements only.
    gpu_differential [--examples=FOLDER] [--rounds=N] [--random=N] [--choices=N] [--products=N]
                     [--placements=N] [--streams=N] [--warpgroups=N] [--strided] [--seed=S] [--seconds=S]
--rounds: how often each example is run, at other sizes and options (default 4). --random: programs (default 200).
--choices: programs of either kind of tests/random/choices.h (default 200). --products: defs of
tests/random/products.h (default 200), each by default and by a plan that a search would try. --placements: those of
tests/random/placements.h (default 200), likewise. --streams: those of
tests/random/streams.h (default 200), in one kernel where one may do both products. --warpgroups: those of
tests/random/warpgroup_products.h (default 200; of sm_90a).
--strided: all but the examples, with random strides (tests/random/layouts.h).
--seed: of the first random program. --seconds: after which no further program is started. Ends with 0 if nothing
was found wrong. All defs of the folder's *.tc are run; by default it is the program's own.
)";

struct Arguments {
  fs::path examples;
  int rounds = 4;
  uint64_t random = 200;
  uint64_t choices = 200;
  uint64_t products = 200;
  uint64_t placements = 200;
  uint64_t streams = 200;
  uint64_t warpgroups = 200;
  bool strided = false;
  uint64_t seed = 1;
  double seconds = 1e9;
};

struct Counts {
  int agree = 0;
  int refused = 0;  ///< sizes that break a precondition: nothing of a kernel's
  int wrong = 0;
};

void report_wrong(const std::string& what, Counts& counts) {
  ++counts.wrong;
  std::printf("WRONG %s\n", what.c_str());
  std::fflush(stdout);
}

/// Windows (KH, KW) stay small, so that they fit what they slide over.
std::map<std::string, int64_t> random_sizes(const ir::Program& program, int round, Random& random) {
  constexpr int64_t kSmall[] = {1, 3, 5, 7, 9, 11, 13};
  constexpr int64_t kLarger[] = {4, 8, 16, 31, 33, 40, 64};
  std::map<std::string, int64_t> sizes;
  int large = 0;
  for (const std::string& name : program.sizes) {
    const bool is_window = name.starts_with("K") && name.size() == 2;
    sizes[name] = is_window                  ? 3
                  : round % 2 && large++ < 3 ? kLarger[random.below(7)]
                  : round % 2                ? 4
                                             : kSmall[random.below(7)];
  }
  return sizes;
}

options::MappingOptions random_options(Random& random) {
  options::MappingOptions options;
  if (random.chance(30)) return options;
  if (random.chance(15)) return options::presets()[random.below(options::presets().size())].second;
  if (random.chance(20)) options.use_shared_memory = random.chance(50);
  if (random.chance(20)) options.max_shared_memory = random.range(0, 100'000);
  if (random.chance(20)) options.copy_stages = random.range(1, 5);
  if (random.chance(20)) options.use_readonly_cache = random.chance(50);
  if (random.chance(30)) {
    options.split_reduction = random.range(2, 8);
    options.atomic_reduction = random.chance(70);
    return options;
  }
  if (random.chance(30)) return options;
  if (random.chance(60)) options.outer_schedule_options.fusion = static_cast<options::Fusion>(random.below(3));
  static constexpr int64_t kTiles[] = {1, 2, 3, 4, 7, 8, 16, 32};
  static constexpr int64_t kThreads[] = {1, 2, 3, 5, 8, 10};
  static constexpr int64_t kBlocks[] = {1, 2, 3, 7, 100};
  if (random.chance(60)) {
    for (int64_t n = random.range(1, 3); n > 0; --n) options.tile.push_back(kTiles[random.below(8)]);
  }
  if (random.chance(60)) {
    for (int64_t n = random.range(1, 3); n > 0; --n) options.map_to_threads.push_back(kThreads[random.below(6)]);
  }
  if (random.chance(60)) {
    for (int64_t n = random.range(1, 3); n > 0; --n) options.map_to_blocks.push_back(kBlocks[random.below(5)]);
  }
  if (random.chance(30)) options.use_private_memory = random.chance(50);
  options.strict = random.chance(20);
  return options;
}

/// Without parts where no reduction can be cut, which is refused.
Result<OnDevice> compiled(const std::string& text, const ir::Program& program,
                          const std::map<std::string, int64_t>& sizes, const std::map<std::string, int64_t>& scalars,
                          options::MappingOptions options) {
  if (options.split_reduction) {
    Result<OnDevice> kernel = OnDevice::compile(text, program, sizes, scalars, options);
    if (kernel) return kernel;
    options.split_reduction = std::nullopt;
    options.atomic_reduction = std::nullopt;
  }
  return OnDevice::compile(text, program, sizes, scalars, options);
}

std::string differences(const ir::Program& program, const OnDevice& kernel, uint64_t seed, int64_t elements_before) {
  const interp::Environment data = data_for(program, seed);
  const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
  if (!oracle) return oracle.error().to_string();
  const Result<interp::Environment> results = kernel.run(data, elements_before);
  if (!results) return results.error().to_string();
  std::string wrong;
  for (const interp::Comparison& comparison : interp::compare(*results, *oracle)) {
    if (!comparison.agrees) wrong += comparison.sentence + "\n";
  }
  return wrong;
}

/// A program on tensors whose strides the seed chooses, or on dense ones.
ir::Program laid_out(const ir::Program& program, uint64_t seed, bool strided) {
  return strided ? ir::with_layouts(program, random_layouts(program, seed)) : program;
}

/// A def of a file.
struct Example {
  std::string text;
  std::string entry;
};

std::vector<Example> examples_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".tc") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Example> examples;
  for (const fs::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const Result<api::Engine> engine = api::Engine::create(text, path.string());
    if (!engine) {
      std::fprintf(stderr, "%s\n", engine.error().to_string().c_str());
      std::exit(1);
    }
    for (const std::string& entry : engine->entries()) examples.push_back({text, entry});
  }
  return examples;
}

void run_example(const Example& example, int round, Counts& counts) {
  const ir::Program symbolic = program_from(example.text, example.entry);
  Random random(static_cast<uint64_t>(round) * 1000 + example.entry.size());
  const std::map<std::string, int64_t> sizes = random_sizes(symbolic, round, random);
  std::map<std::string, int64_t> scalars;
  for (const ir::Scalar& scalar : symbolic.scalars) {
    if (scalar.specialised) scalars[scalar.name] = 2;
  }
  const Result<ir::Program> program = try_specialised(example.text, sizes, scalars, example.entry);
  if (!program) {
    ++counts.refused;
    return;
  }
  const options::MappingOptions options = round == 0 ? options::MappingOptions() : random_options(random);
  std::string described = example.entry;
  for (const auto& [name, value] : sizes) described += fmt::format(" {}={}", name, value);
  described += fmt::format("\n{}", options::to_text(options));
  const Result<OnDevice> kernel = compiled(example.text, *program, sizes, scalars, options);
  if (!kernel) return report_wrong(described + kernel.error().to_string(), counts);
  for (const int64_t elements_before : {0, 1}) {
    const std::string wrong = differences(*program, *kernel, static_cast<uint64_t>(round + 1), elements_before);
    if (!wrong.empty()) return report_wrong(fmt::format("{}{}", described, wrong), counts);
  }
  ++counts.agree;
}

Backend device_backend(uint64_t seed, bool strided) {
  Random random(seed);
  const options::MappingOptions options = random_options(random);
  const int64_t elements_before = seed % 4 == 0 ? 1 : 0;
  const auto compile = [=](const RandomProgram& source, const ir::Program& program) -> Result<Runner> {
    const ir::Program view = laid_out(program, seed, strided);
    TC_TRY(kernel, compiled(source.source(), view, source.sizes, source.compiled_in, options));
    auto kept = std::make_shared<const OnDevice>(std::move(kernel));
    return [=](const interp::Environment& data) { return kept->run(data, elements_before); };
  };
  const auto held = [=](const ir::Program& program, interp::Environment data) {
    return as_held(laid_out(program, seed, strided), std::move(data));
  };
  return {compile, options::to_text(options), held};
}

void run_random(uint64_t seed, bool strided, Counts& counts) {
  const Outcome outcome = run_one(seed, device_backend(seed, strided));
  if (outcome.verdict == Outcome::Verdict::kAgrees) {
    ++counts.agree;
  } else if (outcome.verdict == Outcome::Verdict::kRejected) {
    ++counts.refused;
  } else {
    report_wrong(fmt::format("random program {}\n{}", seed, outcome.report), counts);
  }
}

/// A def that chooses between inputs and what it writes, or works on parts of tensors.
void run_text(const std::string& text, uint64_t seed, bool strided, Counts& counts) {
  Random random(seed);
  const std::map<std::string, int64_t> sizes = {{"N", random.range(6, 40)}, {"M", random.range(6, 40)}};
  Result<ir::Program> program = try_specialised(text, sizes);
  if (!program) {
    ++counts.refused;
    return;
  }
  program = laid_out(*program, seed, strided);
  const options::MappingOptions options = seed % 2 ? options::MappingOptions() : random_options(random);
  const Result<OnDevice> kernel = compiled(text, *program, sizes, {}, options);
  const std::string wrong = kernel ? differences(*program, *kernel, seed, 0) : kernel.error().to_string();
  if (!wrong.empty())
    return report_wrong(fmt::format("seed {}\n{}{}{}", seed, text, options::to_text(options), wrong), counts);
  ++counts.agree;
}

/// By default, and by one of the plans that a search with `asked` would try.
void run_product(const RandomProduct& product, const options::MappingOptions& asked, uint64_t seed, bool strided,
                 Counts& counts) {
  Result<ir::Program> program = try_specialised(product.text, product.sizes);
  if (!program) {
    ++counts.refused;
    return;
  }
  program = laid_out(*program, seed, strided);
  std::vector<options::MappingOptions> all = {{}};
  // Plans of another device may be options that have no kernel on this one.
  const Result<compile::GpuTarget> target = compile::target_of_device(0);
  if (!target) return report_wrong(target.error().to_string(), counts);
  if (const auto plans = gpu::top(*program, asked, target->device, 8)) {
    if (!plans->empty()) all.push_back((*plans)[seed % plans->size()].options);
  }
  for (const options::MappingOptions& options : all) {
    const int64_t elements_before = seed % 4 == 0 ? 1 : 0;
    const Result<OnDevice> kernel = compiled(product.text, *program, product.sizes, {}, options);
    const std::string wrong =
        kernel ? differences(*program, *kernel, seed, elements_before) : kernel.error().to_string();
    // Options that ask for tensor cores, or copies for them, may have no kernel of tensors that are aligned to their
    // elements only.
    const bool asks = options.tensor_cores.value_or(false) || options.copy_operands.value_or(false);
    const bool is_refused = elements_before > 0 && asks && wrong.find("and there is none without") != std::string::npos;
    if (is_refused) {
      ++counts.refused;
      continue;
    }
    if (!wrong.empty())
      return report_wrong(fmt::format("seed {}\n{}{}{}", seed, product.text, options::to_text(options), wrong), counts);
    ++counts.agree;
  }
}

/// Strides may leave no boxes for the tile that is asked for: then by default.
void run_warpgroups(uint64_t seed, bool strided, Counts& counts) {
  const WarpgroupProduct product = seed % 2 == 0 ? random_boxed_product(seed) : random_warpgroup_product(seed);
  Result<ir::Program> program = try_specialised(product.text, product.sizes);
  std::string wrong;
  if (program) {
    program = laid_out(*program, seed, strided);
    Result<OnDevice> kernel = compiled(product.text, *program, product.sizes, {}, product.options);
    if (!kernel && strided) kernel = compiled(product.text, *program, product.sizes, {}, {});
    wrong = kernel ? differences(*program, *kernel, seed, 0) : kernel.error().to_string();
  } else {
    wrong = program.error().to_string();
  }
  // Of options at random some need more registers than threads have.
  const bool is_serialised = wrong.find("wait for each other") != std::string::npos;
  if (wrong.empty()) {
    ++counts.agree;
  } else if (is_serialised) {
    ++counts.refused;
  } else {
    report_wrong(fmt::format("seed {}\n{}{}{}", seed, product.text, options::to_text(product.options), wrong), counts);
  }
}

int run(const Arguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  const std::vector<Example> examples = examples_of(arguments.examples);
  Counts counts;
  for (int round = 0; round < arguments.rounds; ++round) {
    for (const Example& example : examples) {
      if (seconds() < arguments.seconds) run_example(example, round, counts);
    }
  }
  std::printf("examples: %d runs agree, %d sizes refused, %d wrong, of %zu defs; %.0f s\n", counts.agree,
              counts.refused, counts.wrong, examples.size(), seconds());
  Counts random;
  uint64_t seed = arguments.seed;
  for (; seed < arguments.seed + arguments.random && seconds() < arguments.seconds; ++seed)
    run_random(seed, arguments.strided, random);
  std::printf("random programs: %d agree, %d rejected, %d wrong, of the %llu from seed %llu on; %.0f s\n", random.agree,
              random.refused, random.wrong, static_cast<unsigned long long>(seed - arguments.seed),
              static_cast<unsigned long long>(arguments.seed), seconds());
  Counts choices;
  for (seed = arguments.seed; seed < arguments.seed + arguments.choices && seconds() < arguments.seconds; ++seed) {
    run_text(random_choices(seed), seed, arguments.strided, choices);
    run_text(random_parts(seed), seed, arguments.strided, choices);
  }
  std::printf("choices and parts: %d agree, %d rejected, %d wrong; %.0f s\n", choices.agree, choices.refused,
              choices.wrong, seconds());
  Counts products;
  for (seed = arguments.seed; seed < arguments.seed + arguments.products && seconds() < arguments.seconds; ++seed) {
    run_product(random_product(seed), {.tensor_cores = true}, seed, arguments.strided, products);
  }
  std::printf("products: %d runs agree, %d rejected, %d wrong; %.0f s\n", products.agree, products.refused,
              products.wrong, seconds());
  Counts placements;
  for (seed = arguments.seed; seed < arguments.seed + arguments.placements && seconds() < arguments.seconds; ++seed) {
    run_product(random_placement(seed), {}, seed, arguments.strided, placements);
  }
  std::printf("placements: %d runs agree, %d rejected, %d wrong; %.0f s\n", placements.agree, placements.refused,
              placements.wrong, seconds());
  Counts streams;
  for (seed = arguments.seed; seed < arguments.seed + arguments.streams && seconds() < arguments.seconds; ++seed) {
    const options::MappingOptions chained = {.split_reduction = 1, .tensor_cores = true, .chain = true};
    run_product(random_stream(seed), chained, seed, arguments.strided, streams);
  }
  std::printf("streams: %d runs agree, %d rejected, %d wrong; %.0f s\n", streams.agree, streams.refused, streams.wrong,
              seconds());
  Counts warpgroups;
  for (seed = arguments.seed; seed < arguments.seed + arguments.warpgroups && seconds() < arguments.seconds; ++seed) {
    run_warpgroups(seed, arguments.strided, warpgroups);
  }
  std::printf("products of warpgroups: %d agree, %d rejected, %d wrong; %.0f s\n", warpgroups.agree, warpgroups.refused,
              warpgroups.wrong, seconds());
  const int wrong = counts.wrong + random.wrong + choices.wrong + products.wrong + placements.wrong + streams.wrong +
                    warpgroups.wrong;
  return wrong > 0 ? 1 : 0;
}

/// The text behind "--name=", if the argument has it.
std::optional<std::string> value_of(const std::string& argument, const std::string& name) {
  const std::string prefix = fmt::format("--{}=", name);
  if (!argument.starts_with(prefix)) return std::nullopt;
  return argument.substr(prefix.size());
}

}  // namespace
}  // namespace tc::testing

int main(int argc, char** argv) {
  tc::testing::Arguments arguments;
  arguments.examples = std::filesystem::path(argv[0]).parent_path();
  for (int i = 1; i < argc; ++i) {
    using tc::testing::value_of;
    const std::string argument = argv[i];
    if (argument == "--help") {
      std::fputs(tc::testing::kUsage, stdout);
      return 0;
    }
    if (const auto folder = value_of(argument, "examples")) {
      arguments.examples = *folder;
    } else if (const auto rounds = value_of(argument, "rounds")) {
      arguments.rounds = std::stoi(*rounds);
    } else if (const auto random = value_of(argument, "random")) {
      arguments.random = std::stoull(*random);
    } else if (const auto choices = value_of(argument, "choices")) {
      arguments.choices = std::stoull(*choices);
    } else if (const auto products = value_of(argument, "products")) {
      arguments.products = std::stoull(*products);
    } else if (const auto placements = value_of(argument, "placements")) {
      arguments.placements = std::stoull(*placements);
    } else if (const auto streams = value_of(argument, "streams")) {
      arguments.streams = std::stoull(*streams);
    } else if (const auto warpgroups = value_of(argument, "warpgroups")) {
      arguments.warpgroups = std::stoull(*warpgroups);
    } else if (argument == "--strided") {
      arguments.strided = true;
    } else if (const auto seed = value_of(argument, "seed")) {
      arguments.seed = std::stoull(*seed);
    } else if (const auto seconds = value_of(argument, "seconds")) {
      arguments.seconds = std::stod(*seconds);
    } else {
      std::fprintf(stderr, "gpu_differential: no such argument: %s; --help says which there are\n", argv[i]);
      return 1;
    }
  }
  if (!std::filesystem::is_directory(arguments.examples)) {
    std::fprintf(stderr, "gpu_differential: no such folder of examples: %s\n", arguments.examples.c_str());
    return 1;
  }
  return tc::testing::run(arguments);
}
