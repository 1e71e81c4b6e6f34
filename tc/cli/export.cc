#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tc/api/request.h"
#include "tc/cache/cache.h"
#include "tc/cache/version.h"
#include "tc/cli/add_code.h"
#include "tc/cli/arguments.h"
#include "tc/cli/backend.h"
#include "tc/cli/command_line.h"
#include "tc/cli/commands.h"
#include "tc/cli/export_c.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cli/job.h"
#include "tc/compile/cached.h"
#include "tc/ir/canonical.h"
#include "tc/support/check.h"
#include "tc/support/cpp_words.h"
#include "tc/support/identifier.h"

extern char** environ;

namespace tc::cli {
namespace {

struct Kernel {
  cache::Key key;
  cache::Entry entry;
};

/// Whether a kernel may be taken as it is: in production all may, else those of another version of the compiler are
/// proved again, as engines do it.
Result<bool> is_proved(const compile::Settings& settings, const compile::Compilation& front, const Kernel& kernel) {
  using Origin = cache::Certificate::Origin;
  if (FLAGS_production || kernel.key.compiler == cache::compiler_version()) return true;
  if (kernel.entry.certificate.origin == Origin::kHand) return true;
  TC_TRY(wanted, compile::with_options(settings, kernel.key.options));
  const Result<bool> holds = compile::reprove(wanted, front, kernel.entry);
  if (holds && *holds) return true;
  std::fprintf(stderr, "warning: a kernel that compiler %s made cannot be proved again; another is taken\n",
               kernel.key.compiler.c_str());
  return false;
}

/// The best known kernel of the cache's file for these settings, if it has one.
Result<std::optional<Kernel>> find_kernel(const compile::Settings& settings, const cache::Problem& problem,
                                          const compile::Compilation& front) {
  TC_TRY(cache, cache::Cache::open(FLAGS_cache, {.mode = cache::Mode::kReadOnly, .on_damage = [](const auto& sentence) {
                                                   std::fprintf(stderr, "warning: %s\n", sentence.c_str());
                                                 }}));
  std::vector<std::string> options = {compile::options_text(settings)};
  if (options[0].empty()) {
    TC_TRY(best, cache->best(problem, ""));
    if (best) options.insert(options.begin(), best->options);
  }
  TC_TRY(keys, cache->keys(problem));
  for (const std::string& wanted : options) {
    for (const cache::Key& key : keys) {
      if (key.options != wanted) continue;
      TC_TRY(entry, cache->find(key));
      if (!entry) continue;
      Kernel kernel{key, std::move(*entry)};
      TC_TRY(proved, is_proved(settings, front, kernel));
      if (proved) return kernel;
    }
  }
  return std::nullopt;
}

/// Of the cache, or compiled up to machine code: nothing is loaded.
Result<Kernel> kernel_of(const compile::Settings& settings, compile::Compilation& compilation) {
  TC_TRY(problem, compile::problem_of(settings, *compilation.program, ir::digest_of(*compilation.program).to_string()));
  const compile::Compilation front = compilation;
  TC_TRY_VOID(compile::run_passes(settings, compilation, "specialise"));
  if (!FLAGS_cache.empty()) {
    TC_TRY(found, find_kernel(settings, problem, front));
    if (found) return std::move(*found);
    if (FLAGS_production) return fail("the cache {} has no such kernel", FLAGS_cache);
  }
  const bool cpu = settings.backend == api::Backend::kCpu;
  TC_TRY_VOID(compile::run_passes(settings, compilation, cpu ? "object" : "cubin"));
  return Kernel{compile::key_of(settings, problem), compile::entry_of(settings, compilation, true)};
}

/// Runs a program of the system's and waits for it.
Result<void> run_program(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ);
  if (error != 0) {
    return fail("'{}' cannot be run ({}); a library needs a C compiler, --nolibrary does without", words[0],
                std::generic_category().message(error));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return fail("'{}' has failed", fmt::join(words, " "));
  return {};
}

std::string library_of(const std::string& base) {
  const std::filesystem::path path(base);
  return (path.parent_path() / fmt::format("lib{}.a", path.filename().string())).string();
}

/// libNAME.a of the C file and, on the CPU, of the kernel's object.
Result<void> make_library(const std::string& base, const cache::Entry& entry, const ExportedC& exported) {
  const char* chosen = std::getenv("CC");
  const std::string object = base + ".o", kernel = base + "_kernel.o";
  const std::string library = library_of(base);
  TC_TRY_VOID(run_program({chosen && *chosen ? chosen : "cc", "-O2", "-fPIC", "-c", base + ".c", "-o", object}));
  std::vector<std::string> parts = {object};
  if (!entry.cpu.object.empty()) {
    TC_TRY_VOID(replace_file(kernel, entry.cpu.object));
    std::vector<std::string> rename = {"objcopy"};
    for (const auto& [from, to] : exported.renamed) rename.push_back(fmt::format("--redefine-sym={}={}", from, to));
    rename.push_back(kernel);
    TC_TRY_VOID(run_program(rename));
    parts.push_back(kernel);
  }
  std::error_code ignored;
  std::filesystem::remove(library, ignored);
  std::vector<std::string> archive = {"ar", "rcs", library};
  archive.insert(archive.end(), parts.begin(), parts.end());
  TC_TRY_VOID(run_program(archive));
  for (const std::string& part : parts) std::filesystem::remove(part, ignored);
  return {};
}

bool is_identifier(const std::string& name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

}  // namespace

Result<void> run_export(const std::vector<std::string>& files) {
  if (FLAGS_kind != "c") return fail("there is no kind '{}'; there is c", FLAGS_kind);
  if (FLAGS_production && FLAGS_cache.empty()) return fail("'--production' is about a cache; '--cache' says which");
  TC_TRY(chosen, backend_of_flags());
  if (!chosen || *chosen == api::Backend::kSimulator) return fail("'tensorc export' is for the backends cpu and cuda");
  TC_TRY(compilation, open_def(files[0]));
  TC_TRY(request, request_of_flags(*compilation.program, *chosen));
  TC_TRY(settings, api::settings_of(request, *compilation.program));
  TC_TRY_VOID(check_sizes(settings, *compilation.program));
  TC_TRY(processor, processor_of_flags(settings.backend));
  settings.target = processor;
  settings.threads = static_cast<int>(FLAGS_threads);
  const std::vector<std::string> architectures = words_of(FLAGS_arch);
  TC_TRY(gpu, compile::target_of_arch(architectures.empty() ? "" : architectures[0]));
  settings.gpu = gpu;
  TC_TRY(kernel, kernel_of(settings, compilation));
  if (settings.backend == api::Backend::kCuda) TC_TRY_VOID(add_code_for(architectures, kernel.key, kernel.entry));
  const std::string name = FLAGS_name.empty() ? "tc_" + identifier_of(compilation.program->name) : FLAGS_name;
  if (!is_identifier(name) || is_cpp_word(name)) return fail("'{}' is no name of a function of C", name);
  TC_TRY(exported, export_c(name, api::signature_of(*compilation.program), api::specs_of(settings, compilation),
                            settings.given.scalars, kernel.key, kernel.entry));
  std::error_code error;
  std::filesystem::create_directories(FLAGS_output_dir, error);
  const std::string base = (std::filesystem::path(FLAGS_output_dir) / name).string();
  TC_TRY_VOID(replace_file(base + ".h", exported.header));
  TC_TRY_VOID(replace_file(base + ".c", exported.source));
  if (FLAGS_library) TC_TRY_VOID(make_library(base, kernel.entry, exported));
  std::printf("%s.h, %s.c%s\n", base.c_str(), base.c_str(), FLAGS_library ? (", " + library_of(base)).c_str() : "");
  return {};
}

}  // namespace tc::cli
