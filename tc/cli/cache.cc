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

std::string json_of(const cache::Listed& line) {
  std::vector<std::pair<std::string, std::string>> members = {{"id", json_string(line.id)},
                                                              {"def", json_string(line.entry)}};
  for (auto& member : json_members(line.key.problem)) members.push_back(std::move(member));
  members.emplace_back("options", json_string(line.key.options));
  members.emplace_back("machine", json_string(line.key.machine));
  members.emplace_back("compiler", json_string(line.key.compiler));
  members.emplace_back("by_hand", line.certificate.origin == cache::Certificate::Origin::kHand ? "true" : "false");
  members.emplace_back("created", fmt::format("{}", line.created));
  members.emplace_back("bytes", fmt::format("{}", line.bytes));
  members.emplace_back("best", line.measured ? cli::json_of(*line.measured) : "null");
  return json_object(members);
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
    text += fmt::format("launch       {}: grid ({}), block ({}), {} bytes of dynamic shared memory\n", launch.symbol,
                        fmt::join(launch.grid, ", "), fmt::join(launch.block, ", "), launch.dynamic_shared_bytes);
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

}  // namespace

Result<void> run_cache_list(const std::vector<std::string>& files) {
  TC_TRY(cache, open(files[0], cache::Mode::kReadOnly));
  TC_TRY(lines, cache->list());
  if (FLAGS_json) {
    std::vector<std::string> values;
    for (const cache::Listed& line : lines) values.push_back(json_of(line));
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
    print(bytes);
    return {};
  }
  TC_TRY(measurements, cache->measurements(line.key.problem));
  std::erase_if(measurements, [&](const cache::Measurement& one) { return one.options != line.key.options; });
  if (FLAGS_json) {
    print(json_of(line) + "\n");
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
  for (const cache::Interface& interface : interfaces) names[interface.program] = interface.entry;
  const std::vector<std::string> wanted = words_of(FLAGS_entries);
  std::vector<std::vector<std::string>> rows = {{"def", "sizes", "target", "device", "time us", "options"}};
  std::vector<std::string> values;
  std::set<std::string> seen;
  for (const cache::Measurement& one : all) {  // the fastest first
    const std::string name =
        names.contains(one.problem.program) ? names[one.problem.program] : one.problem.program.substr(0, kIdDigits);
    if (one.state != cache::Measurement::State::kOk) continue;
    if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) continue;
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
  for (size_t i = 1; i < files.size(); ++i) {
    TC_TRY(from, open(files[i], cache::Mode::kReadOnly));
    TC_TRY(merged, into->merge(*from));
    print(fmt::format("{}: {} added\n", files[i], merged_text(merged)));
  }
  return {};
}

Result<void> run_cache_verify(const std::vector<std::string>& files) {
  TC_TRY(cache, cache::Cache::open(files[0], {.mode = cache::Mode::kReadOnly}));
  TC_TRY(verified, cache->verify());
  std::vector<Diagnostic> faults;
  for (const std::string& sentence : verified.damage) faults.push_back({std::nullopt, sentence, {}});
  int64_t proved = 0;
  if (FLAGS_reprove) {
    TC_TRY(proofs, prove_entries(*cache));
    for (const Proof& proof : proofs) {
      if (proof.holds) ++proved;
      if (!proof.holds) {
        const std::string id = proof.id.substr(0, kIdDigits);
        faults.push_back(
            {std::nullopt, fmt::format("{}: the kernel {} is not proved: {}", files[0], id, proof.why), {}});
      }
    }
  }
  if (!faults.empty()) return tl::unexpected(Error(nullptr, std::move(faults)));
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
    options.older_than = now - FLAGS_older_than_days * 24 * 3600;
  }
  if (FLAGS_keep_best > 0) options.best_only = FLAGS_keep_best;
  if (FLAGS_other_compilers) options.other_compilers_than = cache::compiler_version();
  TC_TRY(pruned, cache->prune(options));
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
  const cache::Selection selection{.entries = words_of(FLAGS_entries),
                                   .programs = {},
                                   .targets = words_of(FLAGS_targets),
                                   .best_only = !FLAGS_all_options,
                                   .complete = complete};
  TC_TRY(interfaces, cache->interfaces());
  for (const std::string& name : selection.entries) {
    if (std::ranges::none_of(interfaces, [&](const cache::Interface& one) { return one.entry == name; })) {
      return fail("{} has no def '{}'", files[0], name);
    }
  }
  TC_TRY(written, cache->export_to(files[1], selection));
  print(fmt::format("{}: {}\n", files[1], merged_text(written)));
  return {};
}

}  // namespace tc::cli
