#include "tc/api/tune.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "tc/api/tune_data.h"
#include "tc/api/tune_space.h"
#include "tc/cache/cache.h"
#include "tc/cache/records.h"
#include "tc/cache/version.h"
#include "tc/compile/cached.h"
#include "tc/compile/interface.h"
#include "tc/cpu/runtime.h"
#include "tc/ir/canonical.h"
#include "tc/support/check.h"
#include "tc/support/result.h"
#include "tc/support/write_log.h"
#include "tc/tune/tuner.h"
#include "tc/tune/worker_pool.h"

namespace tc::api {
namespace {

using tune::Outcome;
using tune::Record;
using State = cache::Measurement::State;

std::string sentence_of(const Error& error) { return error.diagnostics().at(0).message; }

/// A folder that goes away at the end, unless the caller brought it.
class Folder {
 public:
  static Result<Folder> make(const std::string& given) {
    if (!given.empty()) return Folder(given, false);
    std::error_code error;
    std::string path = (std::filesystem::temp_directory_path(error) / "tensorc-tune-XXXXXX").string();
    if (error || !::mkdtemp(path.data())) return fail("cannot make a folder for workers: '{}'", path);
    return Folder(path, true);
  }
  Folder(Folder&& other) noexcept : path_(std::move(other.path_)), is_ours_(std::exchange(other.is_ours_, false)) {}
  Folder& operator=(Folder&&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (is_ours_) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  Folder(std::string path, bool is_ours) : path_(std::move(path)), is_ours_(is_ours) {}
  std::string path_;
  bool is_ours_;
};

/// The tool beside the library that this is part of, or in PATH.
std::vector<std::string> default_worker() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&serve_tune_jobs), &info) != 0 && info.dli_fname) {
    const std::filesystem::path library = std::filesystem::absolute(info.dli_fname);
    for (const std::filesystem::path& tool :
         {library.parent_path() / "tensorc", library.parent_path() / "../bin/tensorc",
          library.parent_path() / "../../bin/tensorc"}) {
      std::error_code error;
      if (std::filesystem::is_regular_file(tool, error)) return {tool.lexically_normal().string(), "worker"};
    }
  }
  return {"tensorc", "worker"};
}

State state_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return State::kOk;
    case Outcome::kWrong:
      return State::kWrong;
    case Outcome::kCrash:
    case Outcome::kGarbage:
      return State::kCrashed;
    case Outcome::kHang:
      return State::kTimeLimit;
    case Outcome::kHopeless:
      return State::kTooSlow;
    default:
      return State::kRefused;
  }
}

Outcome outcome_of(State state) {
  switch (state) {
    case State::kOk:
      return Outcome::kDone;
    case State::kWrong:
      return Outcome::kWrong;
    case State::kCrashed:
      return Outcome::kCrash;
    case State::kTimeLimit:
      return Outcome::kHang;
    case State::kTooSlow:
      return Outcome::kHopeless;
    case State::kRefused:
      return Outcome::kRefused;
  }
  TC_CHECK(false, "a state that does not exist");
}

constexpr double kYears = 1e8;  ///< in seconds: no limit, and ten times that are still a number of nanoseconds
constexpr std::string_view kBetweenSeeds = "\n---\n";

std::vector<std::string> split(std::string_view seeds) {
  std::vector<std::string> list;
  while (!seeds.empty()) {
    const size_t end = seeds.find(kBetweenSeeds);
    list.emplace_back(seeds.substr(0, end));
    seeds = end == std::string_view::npos ? "" : seeds.substr(end + kBetweenSeeds.size());
  }
  return list;
}

/// What a cache's file knows of a problem, and gets to know.
class Memory {
 public:
  static Result<Memory> open(const TuneSetup& setup, const std::string& path) {
    Memory memory(setup);
    if (path.empty()) return memory;
    TC_TRY(file, cache::Cache::open(path));
    memory.file_ = std::move(file);
    TC_TRY(device, compile::device_name(setup.settings));
    memory.device_ = device;
    const ir::Program& program = *setup.compilation.program;
    TC_TRY(problem, compile::problem_of(memory.settings_, program, ir::digest_of(program).to_string()));
    memory.problem_ = problem;
    return memory;
  }

  /// Measurements of this compiler on this device.
  Result<std::vector<Record>> known() const {
    std::vector<Record> records;
    if (!file_) return records;
    TC_TRY(measurements, file_->measurements(problem_, device_));
    for (const cache::Measurement& m : measurements) {
      if (m.compiler != cache::compiler_version()) continue;
      const Result<std::string> text = full_text(m.options);
      if (!text) continue;  // a kernel by hand
      records.push_back({.options = *text,
                         .outcome = outcome_of(m.state),
                         .us = m.time_us,
                         .own_us = m.time_us,
                         .spread = m.time_us > 0 ? 2 * m.spread_us / m.time_us : 0,
                         .message = m.remark});
    }
    return records;
  }

  /// What a search begins with: the best known. One that was killed begins with what it had then, though more is known
  /// by now: so it breeds the same candidates again, and goes on behind those that it has measured.
  Result<std::vector<std::string>> seeds_of(const std::string& search) const {
    if (!file_) return std::vector<std::string>();
    TC_TRY(measurements, file_->measurements(problem_, device_));
    for (const cache::Measurement& m : measurements) {
      if (m.options == search && m.compiler == cache::compiler_version()) return split(m.remark);
    }
    TC_TRY(seeds, best_known());
    TC_TRY_VOID(file_->add(cache::Measurement{.problem = problem_,
                                              .options = search,
                                              .device = device_,
                                              .state = State::kRefused,
                                              .date = static_cast<int64_t>(std::time(nullptr)),
                                              .compiler = cache::compiler_version(),
                                              .remark = fmt::format("{}", fmt::join(seeds, kBetweenSeeds))}));
    return seeds;
  }

  /// Options that did best here, then those of the shapes next to this one.
  Result<std::vector<std::string>> best_known() const {
    std::vector<std::string> texts;
    const auto add = [&](const std::string& options) {
      if (const Result<std::string> text = full_text(options)) texts.push_back(*text);
    };
    TC_TRY(best, file_->best(problem_, device_, 4));
    for (const cache::Best& one : best) add(one.options);
    TC_TRY(near, file_->nearest(problem_, device_));
    for (const cache::Near& one : near) add(one.best.options);
    return texts;
  }

  Result<void> add(const Record& record) const {
    if (!file_ || (record.remembered && !record.corrected)) return {};
    // That says something of the clock, and nothing of the options.
    if (record.outcome == Outcome::kImpossible) return {};
    TC_TRY(options, key_text(record.options));
    return file_->add(cache::Measurement{.problem = problem_,
                                         .options = options,
                                         .device = device_,
                                         .state = state_of(record.outcome),
                                         .time_us = record.us,
                                         .spread_us = record.spread * record.us / 2,
                                         .date = static_cast<int64_t>(std::time(nullptr)),
                                         .compiler = cache::compiler_version(),
                                         .remark = record.message});
  }

  /// Keeps the code of the best, with what a production engine needs to know of the def. Where no worker of this
  /// machine has made it, it is compiled here, unless the search was stopped: then whoever asks for it next compiles
  /// it.
  Result<void> keep(const tune::Tuned& tuned) const {
    if (!file_) return {};
    TC_TRY(options, key_text(tuned.best));
    TC_TRY(settings, compile::with_options(settings_, options));
    const cache::Key key = compile::key_of(settings, problem_);
    const std::optional<cache::StoredEntry> made = cache::entry_from(tuned.artifact);
    if (made && made->key == key) {
      TC_TRY_VOID(file_->put(key, made->entry));
    } else if (tuned.ending != tune::Ending::kStopped) {
      TC_TRY(known, file_->find(key));
      if (!known) {
        compile::Compilation compilation = setup_->compilation;
        TC_TRY_VOID(compile::run_passes(settings, compilation, settings.backend == Backend::kCpu ? "object" : "cubin"));
        TC_TRY_VOID(file_->put(key, compile::entry_of(settings, compilation, true)));
      }
    }
    const ir::Program& program = *setup_->compilation.program;
    const std::string text = compile::source_of(*setup_->compilation.file, program.name);
    return compile::keep_interfaces(*file_, program, setup_->compilation.concrete(), text);
  }

 private:
  explicit Memory(const TuneSetup& setup) : setup_(&setup), settings_(setup.settings) {
    settings_.options = {.strict = setup.problem.program.request.options.strict,
                         .check_bounds = setup.problem.program.request.options.check_bounds};
    settings_.mapping = {.strict = setup.problem.program.request.mapping.strict,
                         .check_bounds = setup.problem.program.request.mapping.check_bounds};
  }

  /// A key's text has neither strict nor check_bounds, which are part of the problem.
  Result<std::string> full_text(const std::string& options) const {
    TC_TRY(settings, compile::with_options(settings_, options));
    return settings.backend == Backend::kCpu ? options::to_text(settings.options) : options::to_text(settings.mapping);
  }
  Result<std::string> key_text(const std::string& options) const {
    TC_TRY(settings, compile::with_options(settings_, options));
    return compile::options_text(settings);
  }

  const TuneSetup* setup_;
  compile::Settings settings_;
  std::shared_ptr<cache::Cache> file_;
  cache::Problem problem_;
  std::string device_;
};

/// The search by what its first candidates hang on, as a text that is no options.
std::string name_of(const TuneConfig& config) {
  const bool is_genetic = config.search == tune::SearchKind::kGenetic;
  return fmt::format("the first of a {} search: seed {}, population {}", is_genetic ? "genetic" : "random", config.seed,
                     config.population);
}

tune::TunerOptions tuner_options(const TuneConfig& config, const Request& request) {
  const auto ms = [](double s) {
    return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(1000 * std::min(s, kYears))));
  };
  tune::TunerOptions options{.search = config.search,
                             .generations = config.generations,
                             .population = config.population,
                             .elites = config.elites,
                             .genetic = {config.crossover_rate, config.mutation_rate},
                             .seed = config.seed,
                             .compile_slots = config.threads > 0 ? config.threads : cpu::thread_count(),
                             .devices = config.devices,
                             .exclusive = request.backend == Backend::kCpu,
                             .time_limit_s = config.time_limit_s,
                             .compile_limit = ms(config.compile_limit_s),
                             .measure_limit = ms(config.measure_limit_s),
                             .hopeless = config.hopeless,
                             .stop = config.stop};
  if (options.devices.empty()) options.devices = {request.device};
  return options;
}

constexpr int kMaxCandidates = 1'000'000'000;

Result<void> check(const TuneConfig& config, const Request& request) {
  if (config.generations < 0) return fail("{} generations", config.generations);
  if (config.population < 1) return fail("a population of {}", config.population);
  if (config.population > kMaxCandidates / std::max(config.generations, 1)) {
    return fail("{} generations of {} are more than {} candidates", config.generations, config.population,
                kMaxCandidates);
  }
  if (config.threads < 0) return fail("{} threads", config.threads);
  if (!(config.time_limit_s >= 0)) return fail("a time limit of {} s", config.time_limit_s);
  for (const int given : config.devices.empty() ? std::vector{request.device} : config.devices) {
    if (given < 0) return fail("device {}: they are numbered from 0", given);
    if (std::ranges::count(config.devices, given) > 1) return fail("device {} is given twice", given);
  }
  if (!config.devices.empty() && request.backend != Backend::kCuda) {
    return fail("devices are given that measure; only the backend cuda has several");
  }
  if (!config.cache.empty() && request.backend == Backend::kSimulator) {
    return fail("a cache is for the backends cpu and cuda");
  }
  if (config.crossover_rate < 0 || config.crossover_rate > 1)
    return fail("a crossover rate of {}", config.crossover_rate);
  if (config.mutation_rate < 0 || config.mutation_rate > 1) return fail("a mutation rate of {}", config.mutation_rate);
  if (config.hopeless != 0 && config.hopeless <= 1) {
    return fail("candidates slower by a factor of {} are hopeless; it must be above 1, or 0", config.hopeless);
  }
  if (config.compile_limit_s <= 0 || config.measure_limit_s <= 0) return fail("a candidate has no time");
  return {};
}

Result<tune::Tuned> tune_guarded(const TuneProgram& program, std::span<const Tensor> inputs, const TuneConfig& config,
                                 const TuneCallback& callback) {
  TC_TRY_VOID(check(config, program.request));
  TC_TRY(folder, Folder::make(config.folder));
  forget_results(folder.path());
  TuneProblem problem{.program = program, .seed = config.seed, .folder = folder.path(), .data_given = !inputs.empty()};
  if (!config.devices.empty()) problem.program.request.device = config.devices.front();
  TC_TRY(setup, set_up(problem));
  if (!inputs.empty()) TC_TRY_VOID(write_data(folder.path(), setup.specs, inputs));
  TC_TRY(memory, Memory::open(setup, config.cache));
  TC_TRY(known, memory.known());
  TC_TRY(seeds, memory.seeds_of(name_of(config)));
  TC_TRY(space, space_of(setup, static_cast<size_t>(config.population)));
  const bool is_cpu = program.request.backend == Backend::kCpu;
  seeds.push_back(is_cpu ? options::to_text(program.request.options) : options::to_text(program.request.mapping));
  seeds.insert(seeds.end(), space.seeds.begin(), space.seeds.end());
  std::string not_kept;
  const auto keep = [&](const Result<void>& kept) {
    if (!kept && not_kept.empty()) not_kept = sentence_of(kept.error());
  };
  const tune::Task task{.problem = to_bytes(setup.problem),
                        .space = space.space,
                        .seeds = seeds,
                        .known = known,
                        .infeasible = space.infeasible,
                        .on_progress = [&](const tune::Progress& progress) {
                          keep(memory.add(*progress.last));
                          if (callback) callback(progress);
                        }};
  tune::WorkerPool pool(config.worker.empty() ? default_worker() : config.worker);
  tune::Executor& executor = config.executor ? *config.executor : pool;
  const std::string& def = setup.compilation.program->name;
  TC_LOG(kInfo, "search for options of '{}' begins: up to {} candidates, {} of them measured before", def,
         1 + config.generations * config.population, known.size());
  TC_TRY(tuned, tune::tune(task, tuner_options(config, program.request), executor));
  TC_LOG(kInfo,
         "search for options of '{}' ends: {} candidates, the best {:.3f} us, {:.2f} times as fast as by default", def,
         tuned.history.size(), tuned.best_us, tuned.speedup);
  if (!tuned.noise.empty()) TC_LOG(kWarning, "the machine was too noisy for the search: {}", tuned.noise);
  for (const Record& record : tuned.history) {
    if (record.corrected) keep(memory.add(record));
  }
  tuned.reference =
      has_stand_in(setup) ? "the CPU's strict kernel, as the interpreter would take minutes" : "the interpreter";
  keep(memory.keep(tuned));
  tuned.not_kept = std::move(not_kept);
  return tuned;
}

}  // namespace

Result<tune::Tuned> tune(const TuneProgram& program, std::span<const Tensor> inputs, const TuneConfig& config,
                         const TuneCallback& callback) {
  try {
    return tune_guarded(program, inputs, config, callback);
  } catch (const InternalError& fault) {
    return tl::unexpected(Error(fault.what()).with_kind(ErrorKind::kInternal));
  }
}

}  // namespace tc::api
