#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>

#include "tc/api/emit.h"
#include "tc/api/engine_impl.h"
#include "tc/api/explain_of.h"
#include "tc/api/kernel.h"
#include "tc/api/memory_cache.h"
#include "tc/api/request.h"
#include "tc/compile/cached.h"
#include "tc/lang/generic_gradient.h"
#include "tc/support/clock.h"
#include "tc/support/profiled_range.h"
#include "tc/support/write_log.h"

namespace tc::api {
namespace {

using OnWarning = std::function<void(const std::string&)>;

/// Warnings go to the log, and to the caller who asked for them.
OnWarning logged(OnWarning on_warning) {
  return [on_warning = std::move(on_warning)](const std::string& sentence) {
    TC_LOG(kWarning, "{}", sentence);
    if (on_warning) on_warning(sentence);
  };
}

const char* name_of(Backend backend) {
  return backend == Backend::kCpu ? "cpu" : backend == Backend::kCuda ? "cuda" : "sim";
}

/// "'matmul' for M=4, K=5, N=6 on cpu", for the log.
std::string title_of(const compile::Settings& settings, const ir::Program& program) {
  const std::string sizes = compile::instance_text(settings, program);
  return fmt::format("'{}'{}{} on {}", program.name, sizes.empty() ? "" : " for ", sizes, name_of(settings.backend));
}

}  // namespace

// --- creating ---------------------------------------------------------------------------------------------------

Engine::Engine(std::shared_ptr<const Impl> impl, size_t memory_bytes)
    : impl_(std::move(impl)), memory_(std::make_shared<MemoryCache>(memory_bytes)) {}

/// A file whose damage leaves nothing to be read costs a warning where there is somebody to warn: the user's work goes
/// on without it, and nothing is written over it.
Result<void> Engine::Impl::open_store(const EngineOptions& options) {
  const cache::OpenOptions open{.mode = options.read_only ? cache::Mode::kReadOnly : cache::Mode::kReadWrite,
                                .on_damage = logged(options.on_warning)};
  Result<std::shared_ptr<cache::Cache>> file = cache::Cache::open(options.cache, open);
  if (!file && options.on_warning && cache::is_unreadable(options.cache)) {
    logged(options.on_warning)(
        fmt::format("{}; nothing is taken from it or added to it; remove it, or name another file",
                    file.error().diagnostics().at(0).message));
    return {};
  }
  if (!file) return tl::unexpected(file.error());
  store.emplace(std::move(*file), KernelStore::Policy{.production = false,
                                                      .reprove = options.reprove,
                                                      .nearest = options.nearest,
                                                      .keep_text = options.keep_text,
                                                      .on_warning = options.on_warning});
  return {};
}

Result<Engine> Engine::create(std::string_view text, std::string_view name, const EngineOptions& options) {
  return guarded([&]() -> Result<Engine> {
    const Clock::time_point begin = Clock::now();
    auto impl = std::make_shared<Impl>();
    impl->budget = options.budget;
    if (!options.cache.empty()) TC_TRY_VOID(impl->open_store(options));
    impl->front.source = std::make_shared<const Source>(std::string(name), std::string(text));
    // All defs are checked, also where the file knows one or the other.
    const Limits limits{options.budget, options.cancel};
    TC_TRY_VOID(compile::run_passes(limits.settings(), impl->front, impl->store ? "parse" : "analyse"));
    TC_TRY_VOID(impl->add_defs(limits));
    TC_LOG(kDetail, "checked '{}' in {:.1f} ms; its defs: {}", name, us_since(begin) / 1000,
           fmt::join(impl->entries, ", "));
    return Engine(std::move(impl), options.memory_bytes);
  });
}

Result<Engine> Engine::production(const std::string& cache, const ProductionOptions& options) {
  return guarded([&]() -> Result<Engine> {
    auto impl = std::make_shared<Impl>();
    TC_TRY(file, cache::Cache::open(cache, {.mode = cache::Mode::kReadOnly, .on_damage = logged(options.on_warning)}));
    impl->production = true;
    impl->on_miss = options.on_miss;
    impl->store.emplace(std::move(file), KernelStore::Policy{.production = true, .on_warning = options.on_warning});
    if (!options.text.empty()) {
      impl->front.source = std::make_shared<const Source>(options.name, options.text);
      TC_TRY_VOID(compile::run_passes(compile::Settings(), impl->front, "parse"));
      TC_TRY_VOID(impl->add_defs({}));
      return Engine(std::move(impl), options.memory_bytes);
    }
    TC_TRY(interfaces, impl->store->file()->interfaces());
    for (const cache::Interface& interface : interfaces) {
      const bool is_instance =
          std::ranges::any_of(interface.scalars, [](const cache::Interface::Scalar& s) { return s.value.has_value(); });
      if (is_instance) continue;
      if (impl->defs.contains(interface.entry)) {
        return fail("the cache {} has several programs called '{}'; the text must say which", cache, interface.entry);
      }
      TC_TRY_VOID(impl->fill_known(impl->defs[interface.entry], interface));
      impl->entries.push_back(interface.entry);
    }
    if (impl->entries.empty()) return fail("the cache {} has no programs", cache);
    std::ranges::sort(impl->entries);
    return Engine(std::move(impl), options.memory_bytes);
  });
}

// --- asking -----------------------------------------------------------------------------------------------------

std::vector<std::string> Engine::entries() const { return impl_->entries; }

EngineStatistics Engine::statistics() const {
  return {impl_->memory_hits, impl_->file_hits, impl_->reproved, impl_->compiled};
}

Result<Signature> Engine::signature(std::string_view entry) const {
  return guarded([&]() -> Result<Signature> {
    const std::string wanted = entry.empty() && impl_->entries.size() == 1 ? impl_->entries[0] : std::string(entry);
    const lang::Definition* generic = impl_->generic(wanted);
    if (generic && wanted == generic->name.text) return impl_->generic_signatures.at(wanted);
    TC_TRY(def, impl_->find(wanted));
    return signature_of(def->program);
  });
}

Result<compile::Settings> Engine::Impl::settings(const Request& request, const Def& def) const {
  TC_TRY(translated, settings_of(request, def.program));
  TC_TRY_VOID(check_sizes(translated, def.program));
  return translated;
}

Result<Specs> Engine::infer(const Request& request) const {
  return guarded([&]() -> Result<Specs> {
    TC_TRY(def, impl_->find(request.entry, request));
    TC_TRY(settings, impl_->settings(request, *def));
    if (impl_->production) {
      TC_TRY(program, impl_->program_for(*def, settings));
      TC_TRY(bindings, ir::bind(*program, settings.given));
      return specs_of(settings, *program, bindings);
    }
    TC_TRY(compilation, def->compilation(impl_->front, settings));
    TC_TRY_VOID(compile::run_passes(settings, compilation, "specialise"));
    return specs_of(settings, compilation);
  });
}

// --- compiling --------------------------------------------------------------------------------------------------

Result<CompiledKernel> Engine::Impl::compile(const compile::Settings& settings, const Def& def,
                                             size_t& code_bytes) const {
  const ProfiledRange range([&] { return def.program.name + ": compile"; });
  const Clock::time_point begin = Clock::now();
  TC_TRY(compilation, def.compilation(this->front, settings));
  TC_TRY_VOID(compile::run_passes(settings, compilation));
  ++compiled;
  TC_LOG(kInfo, "compiled {} in {:.1f} ms", title_of(settings, def.program), us_since(begin) / 1000);
  if (store && settings.backend != Backend::kSimulator) {
    keep_instance(def, compilation);
    store->put(settings, {def.program, def.digest, def.has_run_time_checks, {}}, compilation);
  }
  const CompiledKernel kernel = kernel_of(settings, compilation);
  code_bytes = kernel.impl_->code_bytes;
  return kernel;
}

Result<CompiledKernel> Engine::Impl::make(const Request& request, const Def& def, size_t& code_bytes) const {
  TC_TRY(settings, this->settings(request, def));
  if (request.backend == Backend::kCuda) {
    TC_TRY(target, compile::target_of_device(request.device));
    settings.gpu = target;
  }
  const bool kept = request.backend != Backend::kSimulator;
  if (!kept && production) return fail("a cache keeps no kernels of the simulator; production compiles nothing");
  if (!store || !kept) return compile(settings, def, code_bytes);
  TC_TRY(program, program_for(def, settings));
  TC_TRY(found, store->find(settings, {*program, def.digest, def.has_run_time_checks,
                                       [&] { return def.compilation(front, settings); }}));
  if (found.kernel) {
    TC_LOG(kDetail, "{}: in the cache {}{}", title_of(settings, *program), store->file()->path(),
           found.reproved ? ", and proved again" : "");
    ++file_hits;
    if (found.reproved) ++reproved;
    code_bytes = found.kernel->impl_->code_bytes;
    return *found.kernel;
  }
  TC_LOG(kDetail, "{}: not in the cache {}", title_of(settings, *program), store->file()->path());
  for (const KernelStore::Found::Candidate& candidate : found.to_compile) {
    auto kernel = guarded([&] { return compile(candidate.settings, def, code_bytes); });
    const bool last = &candidate == &found.to_compile.back();
    if (kernel || last || kernel.error().kind() == ErrorKind::kCancelled) return kernel;
    store->warn(fmt::format("'{}' cannot be compiled with {}: {}", def.program.name, candidate.origin,
                            kernel.error().diagnostics().at(0).message));
  }
  TC_CHECK(false, "nothing to compile");
}

/// What the kernel of a request with these options leaves to another one: tensors aligned to their elements only.
Result<CompiledKernel> Engine::Impl::make_element_aligned(Request request, const Def& def,
                                                          const std::string& options) const {
  TC_LOG(kInfo, "'{}' runs on tensors that are not aligned to the vectors of its kernel, and gets a second kernel",
         def.program.name);
  request.element_aligned = true;
  request.cancel = {};
  const bool strict = request.mapping.strict, check_bounds = request.mapping.check_bounds;
  const options::MappingOptions asked = request.mapping;
  // Those that somebody wrote code for by hand are no options.
  if (auto mapping = options::mapping_options_from_text(options)) request.mapping = *std::move(mapping);
  request.mapping.strict = strict;
  request.mapping.check_bounds = check_bounds;
  size_t code_bytes = 0;
  Result<CompiledKernel> kernel = make(request, def, code_bytes);
  if (!kernel && production) {
    // A file that was tuned for aligned tensors may have one for others by the compiler's own options.
    request.mapping = asked;
    if (Result<CompiledKernel> other = make(request, def, code_bytes)) return other;
  }
  if (!kernel && production && on_miss) return on_miss(request, kernel.error());
  if (kernel) return kernel;
  return fail(
      "a tensor is not aligned to the vectors by which the kernel of '{}' copies, and there is none without: {}",
      def.program.name, kernel.error().diagnostics().at(0).message);
}

Result<CompiledKernel> Engine::compile(const Request& request) const {
  return guarded([&]() -> Result<CompiledKernel> {
    const Result<const Def*> found = impl_->find(request.entry, request);
    // Of a generic def the file may lack the instance.
    const bool is_only = request.entry.empty() && impl_->entries.size() == 1;
    const std::string& entry = is_only ? impl_->entries[0] : request.entry;
    const bool may_lack = impl_->is_absent(entry) || impl_->generic(entry) != nullptr;
    if (!found && impl_->on_miss && may_lack) return impl_->on_miss(request, found.error());
    TC_TRY(def, found);
    const std::string bytes = request_bytes(request, def->program);
    if (!request.cancel.stop_requested()) {
      if (std::optional<CompiledKernel> known = memory_->find(bytes)) {
        ++impl_->memory_hits;
        TC_LOG(kTrace, "'{}': the engine has the kernel", def->program.name);
        return *known;
      }
    }
    size_t code_bytes = 0;
    Result<CompiledKernel> kernel = impl_->make(request, *def, code_bytes);
    if (!kernel && impl_->production) {
      // A kernel that checks more than it was asked to serves, too.
      Request checked = request;
      checked.options.check_bounds = checked.mapping.check_bounds = true;
      if (Result<CompiledKernel> other = impl_->make(checked, *def, code_bytes)) kernel = std::move(other);
    }
    if (!kernel) {
      TC_LOG(kDetail, "'{}' has no kernel: {}", def->program.name, kernel.error().diagnostics().at(0).message);
    }
    if (!kernel && impl_->production && impl_->on_miss) return impl_->on_miss(request, kernel.error());
    if (kernel && request.backend != Backend::kCpu && !request.element_aligned) {
      kernel->impl_->element_aligned.made_by(
          // The runner goes away after what is made here.
          [impl = impl_, def, aligned = request, options = kernel->provenance().options,
           runner = kernel->impl_->runner.get()] {
            Result<CompiledKernel> made = fail("not made");
            runner->beside([&] { made = guarded([&] { return impl->make_element_aligned(aligned, *def, options); }); });
            return made;
          },
          !impl_->production);
    }
    if (kernel) {
      Request again = request;
      again.cancel = {};
      kernel->impl_->explain = [impl = impl_, def, again, made = kernel->provenance()] {
        return guarded([&]() -> Result<Explanation> {
          TC_TRY(settings, impl->settings(again, *def));
          if (again.backend == Backend::kCuda) {
            TC_TRY(target, compile::target_of_device(again.device));
            settings.gpu = target;
          }
          return impl->explain(settings, *def, made);
        });
      };
      memory_->put(bytes, *kernel, code_bytes);
    }
    return kernel;
  });
}

// --- explaining -------------------------------------------------------------------------------------------------

namespace {

/// Whose measurements count: the settings' device's, or any where there is none.
std::string device_of_measurements(const compile::Settings& settings) {
  return compile::device_name(settings).value_or("");
}

tl::unexpected<Error> nothing_to_explain(const std::string& entry) {
  return fail("production compiles nothing, and has nothing to explain of '{}'", entry);
}

}  // namespace

Result<Explanation> Engine::Impl::explain(const compile::Settings& settings, const Def& def) const {
  if (production) return nothing_to_explain(def.program.name);
  TC_TRY(compilation, def.compilation(front, settings));
  if (!store || settings.backend == Backend::kSimulator) return api::explain(settings, compilation);
  return explain_with(*store->file(), settings, compilation, device_of_measurements(settings));
}

Result<Explanation> Engine::Impl::explain(const compile::Settings& settings, const Def& def,
                                          const Provenance& made) const {
  if (production) return nothing_to_explain(def.program.name);
  TC_TRY(compilation, def.compilation(front, settings));
  const bool is_users = !compile::options_text(settings).empty();
  const bool is_by_hand = made.options.starts_with("by hand ");
  TC_TRY(chosen, is_by_hand ? Result<compile::Settings>(settings) : compile::with_options(settings, made.options));
  TC_TRY(explanation,
         is_by_hand ? explain_by_hand(settings, compilation, made.options) : api::explain(chosen, compilation));
  if (!is_by_hand && !is_users && !made.options.empty()) explanation.options.origin = "cache";
  if (!store || settings.backend == Backend::kSimulator) return explanation;
  TC_TRY(facts, facts_of(*store->file(), chosen, *compilation.program, device_of_measurements(settings)));
  facts.cache.hit = made.from_file;
  add_facts(std::move(facts), explanation);
  return explanation;
}

Result<Explanation> Engine::explain(const Request& request, std::string_view arch) const {
  return guarded([&]() -> Result<Explanation> {
    TC_TRY(def, impl_->find(request.entry, request));
    TC_TRY(settings, impl_->settings(request, *def));
    TC_TRY(gpu, compile::target_of_arch(std::string(arch)));
    settings.gpu = gpu;
    return impl_->explain(settings, *def);
  });
}

Result<std::string> Engine::emit(const Request& request, std::string_view stage, std::string_view arch) const {
  return guarded([&]() -> Result<std::string> {
    const bool concrete =
        !request.inputs.empty() || !request.outputs.empty() || !request.sizes.empty() || !request.scalars.empty();
    TC_TRY(wanted, find_stage(stage, concrete, request.backend));
    Request of_stage = request;
    of_stage.backend = wanted.backend;
    of_stage.device = 0;  // none is needed
    TC_TRY(def, impl_->find(request.entry, request));
    if (impl_->production) return fail("production compiles nothing, and has no stages of '{}' to show", request.entry);
    TC_TRY(settings, settings_of(of_stage, def->program));
    TC_TRY(gpu, compile::target_of_arch(std::string(arch)));
    settings.gpu = gpu;
    TC_TRY(run, def->compilation(impl_->front, settings));
    TC_TRY(specialise, compile::find_pass("specialise", wanted.backend));
    TC_TRY(last, compile::find_pass(wanted.pass, wanted.backend));
    if (last >= specialise) TC_TRY_VOID(check_sizes(settings, *run.program));
    TC_TRY_VOID(compile::run_passes(settings, run, wanted.pass));
    return text_of(wanted, settings, run);
  });
}

Result<std::string> Engine::gradient(std::string_view entry) const {
  return guarded([&]() -> Result<std::string> {
    if (impl_->production) return fail("production compiles nothing, and derives no gradient of '{}'", entry);
    const std::string wanted = entry.empty() && impl_->entries.size() == 1 ? impl_->entries[0] : std::string(entry);
    const lang::Definition* generic = impl_->generic(wanted);
    if (generic && wanted == generic->name.text) {
      return lang::generic_gradient(*generic, [&](const lang::TypeArguments& types) -> Result<std::string> {
        TC_TRY(instance, impl_->find_instance(*generic, types, {.budget = impl_->budget, .cancel = {}}));
        return impl_->gradient(*instance);
      });
    }
    TC_TRY(def, impl_->find(wanted));
    return impl_->gradient(*def);
  });
}

Result<CompiledKernel> compile(std::string_view text, const Request& request) {
  // A budget out of bounds is an error of the request.
  EngineOptions options;
  if (request.budget.wall_clock_ms > 0) options.budget = request.budget;
  TC_TRY(engine, Engine::create(text, "tc", options));
  return engine.compile(request);
}

const char* version() { return "0.1.0"; }

}  // namespace tc::api
