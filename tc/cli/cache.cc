#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>

#include "tc/cache/cache.h"
#include "tc/cache/version.h"
#include "tc/cli/add_code.h"
#include "tc/cli/cache_text.h"
#include "tc/cli/command_line.h"
#include "tc/cli/commands.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cli/prove.h"
#include "tc/cpu/object.h"
#include "tc/support/plural.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

constexpr size_t kIdDigits = 12;
constexpr int64_t kDay = 24 * 3600;  ///< in seconds

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Result<std::shared_ptr<cache::Cache>> open(const std::string& path, cache::Mode mode) {
  const auto warn = [](const std::string& sentence) { std::fprintf(stderr, "warning: %s\n", sentence.c_str()); };
  return cache::Cache::open(path, {.mode = mode, .on_damage = warn});
}

/// A file that is changed has to be there: only what compiles makes one.
Result<std::shared_ptr<cache::Cache>> open_existing(const std::string& path) {
  TC_TRY(readable, cache::Cache::open(path, {.mode = cache::Mode::kReadOnly}));
  readable.reset();
  return open(path, cache::Mode::kReadWrite);
}

using Members = std::vector<std::pair<std::string, std::string>>;

std::string json_number(int64_t number) { return fmt::format("{}", number); }

Members json_members(const cache::Merged& merged) {
  return {{"kernels", json_number(merged.entries)},
          {"measurements", json_number(merged.measurements)},
          {"programs", json_number(merged.interfaces)}};
}

std::string merged_text(const cache::Merged& merged) {
  return fmt::format("{}, {} and {}", plural(merged.entries, "kernel"), plural(merged.measurements, "measurement"),
                     plural(merged.interfaces, "program"));
}

/// A CPU's target lists all its features; what matters in a table is how wide its vectors are.
std::string short_target(const cache::Problem& problem) {
  if (problem.backend != cache::Backend::kCpu || !cpu::canonical_target(problem.target)) return problem.target;
  return fmt::format("x86-64 {} bits", cpu::vector_bits(problem.target));
}

std::string name_or_digest(const cache::Listed& line) {
  return line.entry.empty() ? line.key.problem.program.substr(0, kIdDigits) : line.entry;
}

std::string time_of(const std::optional<cache::Measurement>& measured) {
  return measured ? fmt::format("{:.2f}", measured->time_us) : "";
}

Members json_members(const cache::Listed& line) {
  Members members = {{"id", json_string(line.id)}, {"def", json_string(line.entry)}};
  for (auto& member : cli::json_members(line.key.problem)) members.push_back(std::move(member));
  members.emplace_back("options", json_string(line.key.options));
  members.emplace_back("machine", json_string(line.key.machine));
  members.emplace_back("compiler", json_string(line.key.compiler));
  members.emplace_back("by_hand", line.certificate.origin == cache::Certificate::Origin::kHand ? "true" : "false");
  members.emplace_back("created", fmt::format("{}", line.created));
  members.emplace_back("bytes", fmt::format("{}", line.bytes));
  members.emplace_back("best", line.measured ? cli::json_of(*line.measured) : "null");
  return members;
}

bool is_among(const std::vector<std::string>& list, const std::string& name) {
  return std::ranges::find(list, name) != list.end();
}

/// Defs that --entries names are in the file.
Result<void> check_entries(const std::string& file, const std::vector<std::string>& wanted,
                           const std::vector<cache::Interface>& interfaces) {
  for (const std::string& name : wanted) {
    if (std::ranges::find(interfaces, name, &cache::Interface::entry) == interfaces.end()) {
      return fail("{} has no def '{}'", file, name);
    }
  }
  return {};
}

/// The line whose id begins so.
Result<cache::Listed> find_line(const cache::Cache& cache, const std::string& id) {
  TC_TRY(lines, cache.list());
  std::erase_if(lines, [&](const cache::Listed& line) { return !line.id.starts_with(id); });
  if (lines.empty()) return fail("{} has no kernel whose id begins with '{}'", cache.path(), id);
  if (lines.size() > 1) {
    return fail("{} has {} kernels whose ids begin with '{}': {} and {}", cache.path(), lines.size(), id, lines[0].id,
                lines[1].id);
  }
  return lines[0];
}

/// What --stage names of an entry.
Result<std::string> stage_of(const cache::Entry& entry) {
  const std::map<std::string, const std::string*> stages = {
      {"cuda", &entry.gpu.text}, {"cubin", &entry.gpu.cubin}, {"object", &entry.cpu.object}};
  const auto stage = stages.find(FLAGS_stage);
  if (stage == stages.end()) return fail("a cache has no stage '{}'; it has cuda, cubin and object", FLAGS_stage);
  if (stage->second->empty()) return fail("the kernel has no {}", FLAGS_stage);
  return *stage->second;
}

std::string launches_text(const cuda::LaunchPlan& plan) {
  std::string text;
  for (const cuda::KernelLaunch& launch : plan.kernels) {
    const std::string cluster =
        launch.in_clusters() ? fmt::format(", cluster ({})", fmt::join(launch.cluster, ", ")) : "";
    text +=
        fmt::format("launch       {}: grid ({}), block ({}){}, {} bytes of dynamic shared memory\n", launch.symbol,
                    fmt::join(launch.grid, ", "), fmt::join(launch.block, ", "), cluster, launch.dynamic_shared_bytes);
  }
  if (!plan.workspace.empty()) text += fmt::format("workspace    {} bytes\n", plan.workspace_bytes());
  return text;
}

std::string shown(const cache::Listed& line, const cache::Entry& entry,
                  const std::vector<cache::Measurement>& measurements) {
  const cache::Key& key = line.key;
  std::string text;
  const auto field = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<13}{}\n", name, value);
  };
  field("id", line.id);
  field("def", line.entry);
  field("program", key.problem.program);
  field("sizes", cache::instance_text(key.problem));
  field("target", key.problem.target);
  field("machine", key.machine);
  field("options", options_line(key.options));
  field("compiler", key.compiler);
  field("made", date_text(line.created));
  field("certificate", entry.certificate.statement);
  std::string code = fmt::format("{} bytes", entry.cpu.object.size() + entry.gpu.cubin.size());
  for (const cache::Cubin& other : entry.gpu.others) code += fmt::format(", {} for {}", other.bytes.size(), other.arch);
  field("code", code);
  text += launches_text(entry.gpu.plan);
  if (measurements.empty()) return text;
  std::vector<std::vector<std::string>> rows = {{"device", "state", "time us", "spread us", "date", "remark"}};
  for (const cache::Measurement& one : measurements) {
    rows.push_back({one.device, name_of(one.state), fmt::format("{:.2f}", one.time_us),
                    fmt::format("{:.2f}", one.spread_us), date_text(one.date), one.remark});
  }
  return text + "\n" + table(rows);
}

std::string shown_json(const cache::Listed& line, const cache::Entry& entry,
                       const std::vector<cache::Measurement>& measurements) {
  Members members = json_members(line), code;
  members.emplace_back("certificate", json_string(entry.certificate.statement));
  const bool is_cpu = line.key.problem.backend == cache::Backend::kCpu;
  code.emplace_back(line.key.problem.target, json_number(std::ssize(is_cpu ? entry.cpu.object : entry.gpu.cubin)));
  for (const cache::Cubin& other : entry.gpu.others)
    code.emplace_back(other.arch, json_number(std::ssize(other.bytes)));
  members.emplace_back("code_bytes", json_object(code));
  std::vector<std::string> launches, times;
  for (const cuda::KernelLaunch& launch : entry.gpu.plan.kernels) {
    launches.push_back(json_object({{"kernel", json_string(launch.symbol)},
                                    {"grid", fmt::format("[{}]", fmt::join(launch.grid, ", "))},
                                    {"block", fmt::format("[{}]", fmt::join(launch.block, ", "))},
                                    {"cluster", fmt::format("[{}]", fmt::join(launch.cluster, ", "))},
                                    {"dynamic_shared_bytes", json_number(launch.dynamic_shared_bytes)}}));
  }
  for (const cache::Measurement& one : measurements) times.push_back(cli::json_of(one));
  members.emplace_back("launches", fmt::format("[{}]", fmt::join(launches, ", ")));
  members.emplace_back("workspace_bytes", json_number(entry.gpu.plan.workspace_bytes()));
  members.emplace_back("measurements", fmt::format("[{}]", fmt::join(times, ", ")));
  return json_object(members) + "\n";
}

/// The targets that --targets names, as a problem has them: by that name, or by what the table of 'cache list' says.
Result<std::vector<std::string>> targets_of_flags(const cache::Cache& cache) {
  std::vector<std::string> targets;
  if (FLAGS_targets.empty()) return targets;
  TC_TRY(lines, cache.list());
  for (const std::string& name : words_of(FLAGS_targets)) {
    const size_t before = targets.size();
    for (const cache::Listed& line : lines) {
      const cache::Problem& problem = line.key.problem;
      if (problem.target == name || short_target(problem) == name) targets.push_back(problem.target);
    }
    if (targets.size() == before) return fail("{} has no kernel for '{}'", cache.path(), name);
  }
  return targets;
}

}  // namespace

Result<void> run_cache_list(const std::vector<std::string>& files) {
  TC_TRY(cache, open(files[0], cache::Mode::kReadOnly));
  TC_TRY(lines, cache->list());
  if (FLAGS_json) {
    std::vector<std::string> values;
    for (const cache::Listed& line : lines) values.push_back(json_object(json_members(line)));
    print(json_list(values));
    return {};
  }
  std::vector<std::vector<std::string>> rows = {
      {"id", "def", "sizes", "target", "options", "bytes", "best us", "compiler", "made"}};
  for (const cache::Listed& line : lines) {
    rows.push_back({line.id.substr(0, kIdDigits), name_or_digest(line), cache::instance_text(line.key.problem),
                    short_target(line.key.problem), options_line(line.key.options), fmt::format("{}", line.bytes),
                    time_of(line.measured), line.key.compiler, date_text(line.created)});
  }
  print(table(rows));
  return {};
}

Result<void> run_cache_show(const std::vector<std::string>& files) {
  TC_TRY(cache, open(files[0], cache::Mode::kReadOnly));
  TC_TRY(line, find_line(*cache, files[1]));
  TC_TRY(entry, cache->find(line.key));
  if (!entry) return fail("the kernel {} is damaged", line.id);
  if (!FLAGS_stage.empty()) {
    TC_TRY(bytes, stage_of(*entry));
    if (!FLAGS_output.empty()) return replace_file(FLAGS_output, bytes);
    TC_TRY_VOID(check_printable(bytes));
    print(bytes);
    return {};
  }
  TC_TRY(measurements, cache->measurements(line.key.problem));
  std::erase_if(measurements, [&](const cache::Measurement& one) { return one.options != line.key.options; });
  if (FLAGS_json) {
    print(shown_json(line, *entry, measurements));
    return {};
  }
  print(shown(line, *entry, measurements));
  return {};
}

Result<void> run_cache_best(const std::vector<std::string>& files) {
  TC_TRY(cache, open(files[0], cache::Mode::kReadOnly));
  TC_TRY(all, cache->all_measurements());
  TC_TRY(interfaces, cache->interfaces());
  std::map<std::string, std::string> names;
  const std::vector<std::string> wanted = words_of(FLAGS_entries);
  TC_TRY_VOID(check_entries(files[0], wanted, interfaces));
  // A program may be known by several names; one that is asked for goes before others.
  for (const cache::Interface& interface : interfaces) {
    if (is_among(wanted, interface.entry)) names[interface.program] = interface.entry;
    names.try_emplace(interface.program, interface.entry);
  }
  std::vector<std::vector<std::string>> rows = {{"def", "sizes", "target", "device", "time us", "options"}};
  std::vector<std::string> values;
  std::set<std::string> seen;
  for (const cache::Measurement& one : all) {  // the fastest first
    const std::string name =
        names.contains(one.problem.program) ? names[one.problem.program] : one.problem.program.substr(0, kIdDigits);
    if (one.state != cache::Measurement::State::kOk) continue;
    if (!wanted.empty() && !is_among(wanted, name)) continue;
    if (!seen.insert(cache::canonical_text(one.problem) + one.device).second) continue;
    auto members = json_members(one.problem);
    members.insert(members.begin(), {"def", json_string(name)});
    members.emplace_back("best", cli::json_of(one));
    values.push_back(json_object(members));
    rows.push_back({name, cache::instance_text(one.problem), short_target(one.problem), one.device,
                    fmt::format("{:.2f}", one.time_us), options_line(one.options)});
  }
  std::sort(rows.begin() + 1, rows.end());
  print(FLAGS_json ? json_list(values) : table(rows));
  return {};
}

Result<void> run_cache_merge(const std::vector<std::string>& files) {
  TC_TRY(into, open(files[0], cache::Mode::kReadWrite));
  std::vector<std::string> values;
  for (size_t i = 1; i < files.size(); ++i) {
    TC_TRY(from, open(files[i], cache::Mode::kReadOnly));
    TC_TRY(merged, into->merge(*from));
    if (!FLAGS_json) print(fmt::format("{}: {} added\n", files[i], merged_text(merged)));
    Members members = json_members(merged);
    members.insert(members.begin(), {"from", json_string(files[i])});
    values.push_back(json_object(members));
  }
  if (FLAGS_json) print(json_list(values));
  return {};
}

Result<void> run_cache_verify(const std::vector<std::string>& files) {
  TC_TRY(cache, cache::Cache::open(files[0], {.mode = cache::Mode::kReadOnly}));
  TC_TRY(verified, cache->verify());
  std::vector<Diagnostic> faults;
  const auto add_fault = [&](std::string sentence) { faults.push_back({std::nullopt, std::move(sentence), {}}); };
  for (const std::string& sentence : verified.damage) add_fault(sentence);
  int64_t proved = 0;
  if (FLAGS_reprove) {
    TC_TRY(proofs, prove_entries(*cache));
    for (const Proof& proof : proofs) {
      if (proof.holds) ++proved;
      if (!proof.holds) {
        const std::string id = proof.id.substr(0, kIdDigits);
        add_fault(fmt::format("{}: the kernel {} is not proved: {}", files[0], id, proof.why));
      }
    }
  }
  if (FLAGS_json) {
    std::vector<std::string> sentences;
    for (const Diagnostic& fault : faults) sentences.push_back(json_string(fault.message));
    print(json_object({{"rows", json_number(verified.rows)},
                       {"proved", FLAGS_reprove ? json_number(proved) : "null"},
                       {"faults", fmt::format("[{}]", fmt::join(sentences, ", "))}}) +
          "\n");
  }
  if (!faults.empty()) return tl::unexpected(Error(nullptr, std::move(faults)));
  if (FLAGS_json) return {};
  print(fmt::format("{}: {}, all as written\n", files[0], plural(verified.rows, "row")));
  if (FLAGS_reprove) print(fmt::format("{}: {} proved again\n", files[0], plural(proved, "kernel")));
  return {};
}

Result<void> run_cache_prune(const std::vector<std::string>& files) {
  if (FLAGS_older_than_days < 0 || FLAGS_keep_best < 0) return fail("a number of days or of options is not negative");
  TC_TRY(cache, open_existing(files[0]));
  cache::PruneOptions options;
  if (FLAGS_older_than_days > 0) {
    using std::chrono::system_clock;
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch()).count();
    options.older_than = now - std::min<int64_t>(FLAGS_older_than_days, now / kDay) * kDay;
  }
  if (FLAGS_keep_best > 0) options.best_only = FLAGS_keep_best;
  if (FLAGS_other_compilers) options.other_compilers_than = cache::compiler_version();
  TC_TRY(pruned, cache->prune(options));
  if (FLAGS_json) {
    print(json_object({{"kernels", json_number(pruned.entries)},
                       {"measurements", json_number(pruned.measurements)},
                       {"programs", json_number(pruned.interfaces)},
                       {"damaged", json_number(pruned.damaged)}}) +
          "\n");
    return {};
  }
  print(fmt::format("{}: {}, {}, {} and {} removed\n", files[0], plural(pruned.entries, "kernel"),
                    plural(pruned.measurements, "measurement"), plural(pruned.interfaces, "program"),
                    plural(pruned.damaged, "damaged row")));
  return {};
}

Result<void> run_cache_export(const std::vector<std::string>& files) {
  TC_TRY(cache, open(files[0], cache::Mode::kReadOnly));
  const auto complete = [&](const cache::Key& key, cache::Entry& entry) -> Result<void> {
    if (key.problem.backend == cache::Backend::kCpu) return {};
    return add_code_for(words_of(FLAGS_code_for), key, entry);
  };
  TC_TRY(targets, targets_of_flags(*cache));
  const cache::Selection selection{.entries = words_of(FLAGS_entries),
                                   .programs = {},
                                   .targets = targets,
                                   .best_only = !FLAGS_all_options,
                                   .complete = complete};
  TC_TRY(interfaces, cache->interfaces());
  TC_TRY_VOID(check_entries(files[0], selection.entries, interfaces));
  TC_TRY(written, cache->export_to(files[1], selection));
  print(FLAGS_json ? json_object(json_members(written)) + "\n"
                   : fmt::format("{}: {}\n", files[1], merged_text(written)));
  return {};
}

}  // namespace tc::cli
