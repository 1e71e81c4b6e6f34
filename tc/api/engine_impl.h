#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tc/api/kernel_store.h"
#include "tc/api/tc.h"
#include "tc/compile/interface.h"
#include "tc/compile/pipeline.h"
#include "tc/ir/convert.h"
#include "tc/lang/instantiate.h"
#include "tc/support/check.h"

/// What an engine holds: engine.cc makes it and asks it, engine_defs.cc finds its defs.
namespace tc::api {

/// Our faults become errors here: none is thrown out of the library.
template <typename Work>
auto guarded(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const InternalError& fault) {
    return tl::unexpected(Error(fault.what()).with_kind(ErrorKind::kInternal));
  }
}

/// A def: what calls need to know of it at once, and its Compilation up to its Program when somebody asks.
struct Def {
  ir::Program program;                           ///< without statements, where it is known from a cache's file
  std::string text;                              ///< in canonical format; with a file only
  std::string digest;                            ///< of the whole Program
  bool has_run_time_checks = true;               ///< data-dependent subscripts
  std::optional<compile::Compilation> instance;  ///< of a generic def: its text, parsed, with types for the variables

  /// The Compilation without values of scalars, or with those of the settings. The values used last are remembered.
  Result<compile::Compilation> compilation(const compile::Compilation& front, const compile::Settings& of) const {
    const std::lock_guard<std::mutex> lock(mutex);
    compile::Settings settings;
    settings.entry = program.name;
    settings.budget = of.budget;
    settings.cancel = of.cancel;
    if (!made) {
      compile::Compilation compilation = instance ? *instance : front;
      TC_TRY_VOID(compile::run_passes(settings, compilation, "program"));
      made = std::move(compilation);
    }
    if (!made->program->waits_for_scalars() || of.given.scalars.empty()) return *made;
    const auto known = programs.find(of.given.scalars);
    compile::Compilation compilation = *made;
    if (known != programs.end()) {
      compilation.instance = known->second;
      return compilation;
    }
    settings.given.scalars = of.given.scalars;
    TC_TRY_VOID(compile::fill_in_scalars(settings, compilation));
    if (programs.size() >= kMaxPrograms) programs.clear();
    if (compilation.instance) programs[of.given.scalars] = compilation.instance;
    return compilation;
  }

  static constexpr size_t kMaxPrograms = 256;
  mutable std::mutex mutex;
  mutable std::optional<compile::Compilation> made;
  mutable std::map<ir::ScalarValues, std::shared_ptr<const ir::Program>> programs;  ///< by the values of scalars
};

/// How much a front end may do for a request that needs an instance first.
struct Limits {
  options::Budget budget;
  std::stop_token cancel;

  compile::Settings settings() const {
    compile::Settings settings;
    settings.budget = budget;
    settings.cancel = cancel;
    return settings;
  }
};

/// An instance of a generic def: made by whoever asks first, while others who ask for the same wait.
struct Instance {
  std::mutex mutex;
  std::unique_ptr<const Def> def;  ///< null until it is made
};

struct Engine::Impl {
  compile::Compilation front;  ///< the text, parsed; in production without a text: nothing
  std::map<std::string, Def> defs;
  std::vector<std::string> entries;
  mutable std::mutex instances_mutex;
  mutable std::map<std::string, Instance> instances;  ///< of generic defs that somebody has asked for, by name
  std::map<std::string, Result<Signature>> generic_signatures;
  std::vector<std::string> absent;  ///< in production: defs of the text that the file does not know
  std::optional<KernelStore> store;
  std::function<Result<CompiledKernel>(const Request&, const Error&)> on_miss;
  bool production = false;
  options::Budget budget;
  mutable std::atomic<int64_t> memory_hits{0}, file_hits{0}, reproved{0}, compiled{0};

  Result<void> open_store(const EngineOptions& options);
  Result<const Def*> find(const std::string& entry, const Request& request = {}) const;
  const lang::Definition* generic(const std::string& entry) const;
  Result<const Def*> find_generic(const lang::Definition& generic, const std::string& entry,
                                  const Request& request) const;
  Result<const Def*> find_instance(const lang::Definition& generic, const lang::TypeArguments& types,
                                   const Limits& limits) const;
  Result<const Def*> find_known_instance(const std::string& entry, const Request& request) const;
  Result<Signature> generic_signature(const lang::Definition& generic, const Limits& limits) const;
  void name_result_types(const lang::Definition& generic, const Limits& limits, Signature& signature) const;
  Result<std::string> gradient(const Def& def) const;
  Result<void> add_defs(const Limits& limits);
  Result<void> add_def(const std::string& entry, const Limits& limits);
  Result<bool> fill(Def& def, const std::string& entry, compile::Compilation& parsed, const Limits& limits) const;
  Result<void> fill_known(Def& def, const cache::Interface& interface) const;
  Result<std::shared_ptr<const ir::Program>> program_for(const Def& def, const compile::Settings& settings) const;
  void keep_instance(const Def& def, const compile::Compilation& compilation) const;
  bool is_absent(const std::string& entry) const { return std::ranges::find(absent, entry) != absent.end(); }
  tl::unexpected<Error> unknown(const std::string& entry) const;
  Result<compile::Settings> settings(const Request& request, const Def& def) const;
  Result<CompiledKernel> make(const Request& request, const Def& def, size_t& code_bytes) const;
  Result<CompiledKernel> make_element_aligned(Request request, const Def& def, const std::string& options) const;
  Result<CompiledKernel> compile(const compile::Settings& settings, const Def& def, size_t& code_bytes) const;
  /// `settings` have the request's options.
  Result<Explanation> explain(const compile::Settings& settings, const Def& def) const;
  /// The same of a kernel that was made by options, perhaps others.
  Result<Explanation> explain(const compile::Settings& settings, const Def& def, const Provenance& made) const;
};

}  // namespace tc::api
