#include "tc/api/kernel_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "tc/api/kernel.h"
#include "tc/api/request.h"
#include "tc/cache/version.h"
#include "tc/compile/cached.h"
#include "tc/cpu/target.h"
#include "tc/support/check.h"
#include "tc/support/write_log.h"

namespace tc::api {
namespace {

constexpr char kByHand[] = "by hand ";

/// How many of the fastest options are tried before one is compiled: what is damaged is passed over.
constexpr int kTried = 4;

std::string text_of(const Error& error) { return error.diagnostics().at(0).message; }

}  // namespace

void KernelStore::warn(const std::string& sentence) const {
  TC_LOG(kWarning, "{}", sentence);
  if (policy_.on_warning) policy_.on_warning(sentence);
}

/// One look-up.
struct KernelStore::Search {
  const compile::Settings& settings;
  const Def& def;
  cache::Problem problem;
  std::string options;  ///< of the request
};

Result<KernelStore::Found> KernelStore::find(const compile::Settings& settings, const Def& def) const {
  TC_TRY(problem, compile::problem_of(settings, def.program, def.digest, def.has_run_time_checks));
  Search search{settings, def, problem, compile::options_text(settings)};
  if (!policy_.production) {
    Result<Found> found = find_problem(search);
    if (found || found.error().kind() == ErrorKind::kCancelled) return found;
    warn(text_of(found.error()));
    return Found{{}, false, {{settings, ""}}};
  }
  TC_TRY(found, find_problem(search));
  if (found.kernel) return found;
  TC_TRY(others, runnable_problems(search));
  for (const cache::Problem& other : others) {
    search.problem = other;
    TC_TRY(foreign, find_problem(search));
    if (foreign.kernel) return foreign;
  }
  search.problem = problem;
  return miss(search);
}

/// The problem of the search, or one that differs from it in its target.
Result<KernelStore::Found> KernelStore::find_problem(const Search& search) const {
  Found found;
  std::vector<cache::Best> best;
  const bool left_open = search.options.empty();
  if (left_open) {
    TC_TRY(device, compile::device_name(search.settings));
    TC_TRY(here, file_->best(search.problem, device, kTried));
    best = std::move(here);
    for (const cache::Best& one : best) {
      TC_TRY(kernel, find_options(search, one.options, true, found.reproved));
      if (kernel) return Found{std::move(kernel), found.reproved, {}};
      if (policy_.production || one.options.starts_with(kByHand)) continue;
      auto settings = compile::with_options(search.settings, one.options);
      if (settings) return Found{{}, false, {{*settings, "the best known options"}, {search.settings, ""}}};
      warn(fmt::format("the cache {}: options that cannot be read: {}", file_->path(), text_of(settings.error())));
    }
  }
  TC_TRY(kernel, find_options(search, search.options, false, found.reproved));
  found.kernel = std::move(kernel);
  if (found.kernel || policy_.production) {
    if (found.kernel || !left_open) return found;
    // Nothing was measured on this device: the best of any.
    TC_TRY(anywhere, file_->best(search.problem, "", kTried));
    for (const cache::Best& one : anywhere) {
      TC_TRY(taken, find_options(search, one.options, false, found.reproved));
      if (taken) return Found{std::move(taken), found.reproved, {}};
    }
    return found;
  }
  if (left_open && policy_.nearest) {
    TC_TRY(device, compile::device_name(search.settings));
    TC_TRY(near, file_->nearest(search.problem, device, kTried));
    for (const cache::Near& one : near) {
      auto settings = compile::with_options(search.settings, one.best.options);
      if (!settings) continue;
      TC_TRY(carried, find_options(search, one.best.options, false, found.reproved));
      if (carried) return Found{std::move(carried), found.reproved, {}};
      settings->verify = true;
      found.to_compile.push_back(
          {*settings, fmt::format("those of the nearest shape, {}", cache::instance_text(one.problem))});
      break;
    }
  }
  found.to_compile.push_back({search.settings, ""});
  return found;
}

/// In production: problems that differ in a target that this machine can run too.
Result<std::vector<cache::Problem>> KernelStore::runnable_problems(const Search& search) const {
  TC_TRY(problems, file_->problems(search.problem.program));
  std::erase_if(problems, [&](const cache::Problem& other) {
    cache::Problem same = search.problem;
    same.target = other.target;
    if (!(same == other) || other.target == search.problem.target) return true;
    if (other.backend == Backend::kCpu) {
      const auto target = cpu::parse_target(other.target);
      return !target || !cpu::host_can_run(*target);
    }
    return !has_code_for(other, search.settings.gpu.arch.number);
  });
  // The longest list of features, the latest architecture first.
  std::ranges::stable_sort(problems, [](const cache::Problem& a, const cache::Problem& b) {
    return std::tuple(a.target.size(), a.target) > std::tuple(b.target.size(), b.target);
  });
  return problems;
}

/// True if some kernel of a problem has code that a GPU of this compute capability runs.
bool KernelStore::has_code_for(const cache::Problem& problem, int device) const {
  const Result<std::vector<cache::Key>> keys = file_->keys(problem);
  return keys && std::ranges::any_of(*keys, [&](const cache::Key& key) {
           const Result<std::optional<cache::Entry>> entry = file_->find(key);
           return entry && *entry && (*entry)->gpu.code_for(device);
         });
}

/// A kernel for options: this compiler's for this machine, else this compiler's for another one, else another's.
Result<std::optional<CompiledKernel>> KernelStore::find_options(const Search& search, const std::string& options,
                                                                bool measured, bool& reproved) const {
  cache::Key exact{.problem = search.problem,
                   .options = options,
                   .machine = compile::machine_text(search.settings),
                   .compiler = cache::compiler_version()};
  TC_TRY(kernel, take(search, exact, measured, reproved));
  if (kernel) return kernel;
  TC_TRY(keys, file_->keys(search.problem));
  std::erase_if(keys, [&](const cache::Key& key) {
    return key.options != options || key == exact ||
           (key.machine != exact.machine && !policy_.production && !options.starts_with(kByHand));
  });
  std::ranges::stable_sort(keys, std::greater<>(), [&](const cache::Key& key) {
    return std::pair(key.compiler == exact.compiler, key.machine == exact.machine);
  });
  for (const cache::Key& key : keys) {
    TC_TRY(other, take(search, key, measured, reproved));
    if (other) return other;
  }
  return std::nullopt;
}

/// The kernel of a key, if its entry is whole, its proof holds and its code can be loaded.
Result<std::optional<CompiledKernel>> KernelStore::take(const Search& search, const cache::Key& key, bool measured,
                                                        bool& reproved) const {
  TC_TRY(entry, file_->find(key));
  TC_LOG(kTrace, "the cache {} {} a kernel of '{}' for {} on {}, {}, made by {} with options '{}'", file_->path(),
         entry ? "has" : "lacks", search.def.program.name, cache::instance_text(key.problem), key.problem.target,
         key.machine, key.compiler, key.options);
  if (!entry) return std::nullopt;
  const bool own = entry->certificate.origin == cache::Certificate::Origin::kCompiler;
  const bool prove_it = policy_.reprove == Reprove::kAlways ||
                        (policy_.reprove == Reprove::kOtherCompiler && key.compiler != cache::compiler_version());
  if (own && prove_it && !policy_.production) {
    TC_TRY(holds, prove(search, key, *entry));
    if (!holds) return std::nullopt;
    reproved = true;
  }
  auto kernel = kernel_of(search.settings, search.def.program, *entry, key.options, measured);
  if (!kernel) {
    warn(fmt::format("the cache {}: a kernel of '{}' does not load, and is skipped: {}", file_->path(),
                     search.def.program.name, text_of(kernel.error())));
    return std::nullopt;
  }
  return std::move(*kernel);
}

Result<bool> KernelStore::prove(const Search& search, const cache::Key& key, const cache::Entry& entry) const {
  auto settings = compile::with_options(search.settings, key.options);
  Result<bool> holds = false;
  if (settings) {
    TC_TRY(compilation, search.def.compilation());
    holds = compile::reprove(*settings, compilation, entry);
  }
  if (!holds && holds.error().kind() == ErrorKind::kCancelled) return holds;
  if (!holds || !*holds) {
    warn(fmt::format("the cache {}: a kernel of '{}' that compiler {} made cannot be proved again; it is compiled anew",
                     file_->path(), search.def.program.name, entry.certificate.compiler));
    return false;
  }
  if (key.compiler == cache::compiler_version() || file_->mode() == cache::Mode::kReadOnly) return true;
  cache::Key ours = key;
  ours.compiler = cache::compiler_version();
  cache::Entry proved = entry;
  proved.certificate.statement += fmt::format("; proved again by {}", cache::compiler_version());
  if (auto written = file_->put(ours, proved); !written) warn(text_of(written.error()));
  return true;
}

void KernelStore::put(const compile::Settings& settings, const Def& def,
                      const compile::Compilation& compilation) const {
  if (file_->mode() == cache::Mode::kReadOnly) return;
  const auto problem = compile::problem_of(settings, def.program, def.digest, def.has_run_time_checks);
  TC_CHECK(problem, "what has been compiled has no problem: {}", text_of(problem.error()));
  const cache::Entry entry = compile::entry_of(settings, compilation, policy_.keep_text);
  if (auto written = file_->put(compile::key_of(settings, *problem), entry); !written) warn(text_of(written.error()));
}

tl::unexpected<Error> KernelStore::miss(const Search& search) const {
  const std::string options = search.options.empty() ? "" : " with the options asked for";
  return fail("the cache {} has no kernel of '{}' for {} on {}{}; production compiles nothing", file_->path(),
              search.def.program.name, cache::instance_text(search.problem), search.problem.target, options);
}

}  // namespace tc::api
