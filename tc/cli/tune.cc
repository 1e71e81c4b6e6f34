#include "tc/api/tune.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sstream>

#include "tc/api/request.h"
#include "tc/cli/arguments.h"
#include "tc/cli/backend.h"
#include "tc/cli/command_line.h"
#include "tc/cli/commands.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cli/job.h"
#include "tc/cli/log.h"
#include "tc/cli/report.h"
#include "tc/cli/stop_signals.h"
#include "tc/cli/tune_report.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

/// Which part of the work this process does: of `of` processes that an engine has started side by side.
struct Part {
  int number = 0;
  int of = 1;
};

std::optional<int> number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const Result<int64_t> value = parse_integer(name, text);
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

/// The tasks of an array have numbers from MIN on, STEP apart, unless they are listed one by one.
Result<Part> part_of_array() {
  const auto task = number_in_environment("SLURM_ARRAY_TASK_ID"), first = number_in_environment("SLURM_ARRAY_TASK_MIN"),
             count = number_in_environment("SLURM_ARRAY_TASK_COUNT");
  if (!task || !first || !count) return Part{};
  const int step = std::max(number_in_environment("SLURM_ARRAY_TASK_STEP").value_or(1), 1);
  const Part part{(*task - *first) / step, *count};
  const bool is_even = (*task - *first) % step == 0 && part.number >= 0 && part.number < part.of;
  if (!is_even) return fail("which part task {} of a Slurm array does is not known; '--part' says it", *task);
  return part;
}

/// --part, or what Open MPI and Slurm's arrays tell their processes.
Result<Part> part_of_flags() {
  if (!FLAGS_part.empty()) {
    const size_t slash = FLAGS_part.find('/');
    TC_TRY(number, parse_integer("part", FLAGS_part.substr(0, slash)));
    TC_TRY(of, parse_integer("part", slash == std::string::npos ? "" : FLAGS_part.substr(slash + 1)));
    if (number < 0 || number >= of) return fail("'--part' is {}; of N parts the first is 0/N", FLAGS_part);
    return Part{static_cast<int>(number), static_cast<int>(of)};
  }
  const auto rank = number_in_environment("OMPI_COMM_WORLD_RANK"), size = number_in_environment("OMPI_COMM_WORLD_SIZE");
  if (rank && size) return Part{*rank, *size};
  return part_of_array();
}

/// One problem of a list of shapes: "ENTRY SIZES [SCALARS]".
struct Shape {
  std::string entry, sizes, scalars;
  int line = 0;  ///< of the list
};

Result<std::vector<Shape>> shapes_of_flags() {
  if (FLAGS_shapes.empty())
    return std::vector<Shape>{{.entry = FLAGS_entry, .sizes = FLAGS_sizes, .scalars = FLAGS_scalars}};
  if (!FLAGS_entry.empty() || !FLAGS_sizes.empty() || !FLAGS_inputs.empty()) {
    return fail("'--shapes' excludes '--entry', '--sizes' and '--inputs'");
  }
  TC_TRY(text, read_file(FLAGS_shapes, kMaxOptionsBytes));
  std::vector<Shape> shapes;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    Shape shape{.line = number};
    std::string more;
    if (!(words >> shape.entry)) continue;
    words >> shape.sizes >> shape.scalars;
    if (words >> more) return fail("{}:{}: a line is ENTRY SIZES [SCALARS], not '{}'", FLAGS_shapes, number, line);
    if (shape.scalars.empty()) shape.scalars = FLAGS_scalars;
    shapes.push_back(std::move(shape));
  }
  if (shapes.empty()) return fail("'{}' lists no shapes", FLAGS_shapes);
  return shapes;
}

Result<std::vector<int>> devices_of_flags() {
  std::vector<int> devices;
  TC_TRY(backend, backend_of_flags());
  if (backend != api::Backend::kCuda) {
    if (!FLAGS_devices.empty() && FLAGS_backend != "auto") return fail("'--devices' is for the backend cuda");
    return devices;
  }
  std::istringstream words(FLAGS_devices);
  for (std::string word; std::getline(words, word, ',');) {
    TC_TRY(device, parse_integer("devices", word));
    if (device != static_cast<int>(device)) return fail("there is no GPU {}", device);
    devices.push_back(static_cast<int>(device));
  }
  return devices;
}

/// The words of --worker, separated by blanks.
std::vector<std::string> worker_of_flags() {
  std::vector<std::string> command;
  std::istringstream words(FLAGS_worker);
  for (std::string word; words >> word;) command.push_back(word);
  if (!command.empty()) return command;
  command = {"/proc/self/exe", "worker"};
  for (std::string& flag : given_log_flags()) command.push_back(std::move(flag));
  return command;
}

int within_int(uint32_t value) { return static_cast<int>(std::min<uint32_t>(value, std::numeric_limits<int>::max())); }

Result<api::TuneConfig> config_of_flags(const Part& part, bool shares_seed) {
  api::TuneConfig config;
  if (FLAGS_search == "random") {
    config.search = tune::SearchKind::kRandom;
  } else if (FLAGS_search != "genetic") {
    return fail("there is no search '{}'; there are genetic and random", FLAGS_search);
  }
  config.generations = within_int(FLAGS_generations);
  config.population = within_int(FLAGS_population);
  config.seed = FLAGS_seed + (shares_seed ? 0 : static_cast<uint64_t>(part.number));
  config.threads = within_int(FLAGS_threads);
  TC_TRY(devices, devices_of_flags());
  config.devices = devices;
  config.time_limit_s = static_cast<double>(FLAGS_time_limit);
  config.measure_limit_s = static_cast<double>(FLAGS_measure_limit);
  config.compile_limit_s = static_cast<double>(FLAGS_time_limit_ms) / 1000;
  config.cache = FLAGS_cache;
  config.worker = worker_of_flags();
  return config;
}

/// The tensors of --inputs, and the rest at random; none if there is no --inputs.
Result<std::vector<api::Tensor>> inputs_of_flags(const compile::Compilation& def, api::Request& request) {
  std::vector<api::Tensor> inputs;
  if (FLAGS_inputs.empty()) return inputs;
  const api::Signature signature = api::signature_of(*def.program);
  TC_TRY(files, input_files_of_flags(signature));
  TC_TRY_VOID(describe_files(files, signature, request));
  TC_TRY(settings, api::settings_of(request, *def.program));
  compile::Compilation compilation = def;
  TC_TRY_VOID(check_sizes(settings, *def.program));
  TC_TRY_VOID(compile::run_passes(settings, compilation, "specialise"));
  const api::Specs specs = api::specs_of(settings, compilation);
  TC_TRY(arguments, make_arguments(*compilation.specialised, signature, specs, files, request, FLAGS_seed));
  return std::move(arguments.inputs);
}

/// One problem, checked but for what a compilation finds.
struct Problem {
  api::Backend backend;
  compile::Compilation def;
  api::Request request;
  std::string title;
};

Result<Problem> problem_of(const std::string& path, const Shape& shape) {
  FLAGS_entry = shape.entry;
  FLAGS_sizes = shape.sizes == "-" ? "" : shape.sizes;
  FLAGS_scalars = shape.scalars;
  TC_TRY(backend, backend_of_flags());
  if (!backend) return fail("the interpreter has nothing to tune; the backends are cpu, cuda and sim");
  TC_TRY(def, open_def(path));
  TC_TRY(request, request_of_flags(*def.program, *backend));
  if (FLAGS_inputs.empty()) {
    TC_TRY(settings, api::settings_of(request, *def.program));
    TC_TRY_VOID(check_sizes(settings, *def.program));
  }
  TC_TRY_VOID(check_scalars(api::signature_of(*def.program), request));
  std::string title = request.entry;
  for (const std::string& given : {FLAGS_sizes, FLAGS_scalars}) title += given.empty() ? "" : " " + given;
  return Problem{*backend, def, request, title};
}

/// Tunes one shape; adds to the history, and prints what was found.
Result<void> tune_shape(const std::string& path, const Shape& shape, api::TuneConfig config, std::string& history) {
  TC_TRY(problem, problem_of(path, shape));
  TC_TRY(inputs, inputs_of_flags(problem.def, problem.request));
  const api::TuneProgram program{
      .text = std::string(problem.def.source->text()), .name = path, .request = problem.request};
  TuneProgress progress(problem.title);
  auto tuned = api::tune(program, inputs, config, [&](const tune::Progress& p) { progress.show(p); });
  if (!tuned) return tl::unexpected(tuned.error());
  history += history_rows(problem.title, *tuned);
  const std::string report = tune_report(problem.title, problem.backend, *tuned);
  std::fwrite(report.data(), 1, report.size(), stdout);
  std::fflush(stdout);
  if (tuned->not_kept.empty()) return {};
  return fail("the search is done, but not all of it is in the cache: {}", tuned->not_kept);
}

/// Holds if no shape of the list has an error that is found without a search.
Result<void> check_shapes(const std::string& path, const std::vector<Shape>& shapes) {
  std::string errors;
  for (const Shape& shape : shapes) {
    const auto problem = problem_of(path, shape);
    if (!problem) errors += fmt::format("{}:{}: {}", FLAGS_shapes, shape.line, problem.error().to_string());
  }
  if (errors.empty()) return {};
  return fail("nothing was tuned, as the list has errors:\n{}", errors);
}

}  // namespace

Result<void> run_tune(const std::vector<std::string>& files) {
  TC_TRY(shapes, shapes_of_flags());
  TC_TRY(part, part_of_flags());
  // Processes side by side share out a list of shapes; one shape they search from different seeds.
  const bool is_list = !FLAGS_shapes.empty();
  TC_TRY(config, config_of_flags(part, is_list));
  if (!FLAGS_history.empty()) TC_TRY_VOID(check_replaceable(FLAGS_history));
  if (is_list) TC_TRY_VOID(check_shapes(files[0], shapes));
  const StopSignals stop;
  config.stop = stop.token();
  std::string history = history_header();
  std::string failures;
  for (size_t s = 0; s < shapes.size() && !config.stop.stop_requested(); ++s) {
    if (is_list && static_cast<int>(s) % part.of != part.number) continue;
    if (auto done = tune_shape(files[0], shapes[s], config, history); !done) {
      if (!is_list) return done;
      failures += fmt::format("{} {}: {}", shapes[s].entry, shapes[s].sizes, done.error().to_string());
    }
  }
  if (!FLAGS_history.empty()) TC_TRY_VOID(replace_file(FLAGS_history, history));
  if (!failures.empty()) return fail("not all shapes were tuned:\n{}", failures);
  return {};
}

Result<void> run_worker(const std::vector<std::string>&) { std::exit(api::serve_tune_jobs()); }

}  // namespace tc::cli
