#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

#include "tc/api/emit.h"
#include "tc/api/kernel.h"
#include "tc/api/kernel_store.h"
#include "tc/api/memory_cache.h"
#include "tc/api/request.h"
#include "tc/compile/interface.h"
#include "tc/ir/canonical.h"
#include "tc/ir/expr_text.h"
#include "tc/lang/gradient.h"
#include "tc/support/check.h"
#include "tc/support/nearest.h"

namespace tc::api {
namespace {

/// Our faults become errors here: none is thrown out of the library.
template <typename Work>
auto guarded(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const InternalError& fault) {
    return tl::unexpected(Error(fault.what()).with_kind(ErrorKind::kInternal));
  }
}

Argument describe(const ir::Tensor& tensor) {
  Argument argument{.name = tensor.name, .type = ir::from_halide(tensor.type)};
  argument.role = tensor.role == ir::Role::kInput   ? Role::kInput
                  : tensor.role == ir::Role::kInOut ? Role::kInOut
                                                    : Role::kResult;
  for (const Halide::Expr& extent : tensor.extents) argument.shape.push_back(ir::to_text(extent));
  return argument;
}

/// The same index of the same statement, of which the Program may have made several.
bool is_same(const ir::Index& index, const lang::Index& typed) {
  return index.name == typed.name && index.range == (typed.given ? typed.given->range : typed.range);
}

/// The ranges of a statement's indices. The Program has statements of its own among the def's: fills, copies, stores of
/// wider sums, which lack one of its indices or have what the statement has.
std::vector<std::pair<std::string, std::string>> ranges_of(const ir::Program& program,
                                                           const lang::TypedStatement& typed) {
  for (const ir::Statement& statement : program.statements) {
    if (statement.range != typed.range) continue;
    std::vector<std::pair<std::string, std::string>> ranges;
    for (const lang::Index& wanted : typed.indices) {
      const auto index =
          std::ranges::find_if(statement.indices, [&](const ir::Index& known) { return is_same(known, wanted); });
      if (index != statement.indices.end()) ranges.emplace_back(ir::to_text(index->begin), ir::to_text(index->end));
    }
    if (ranges.size() == typed.indices.size()) return ranges;
  }
  TC_CHECK(false, "a statement of '{}' is not in the program", program.name);
}

/// What has been inferred for a typed def, as text.
lang::InferredRanges ranges_of(const ir::Program& program, const lang::TypedDefinition& definition) {
  lang::InferredRanges ranges;
  for (const lang::Tensor& typed : definition.tensors) {
    const auto tensor = std::ranges::find(program.tensors, typed.name, &ir::Tensor::name);
    TC_CHECK(tensor != program.tensors.end(), "the tensor '{}' is not in the program", typed.name);
    ranges.extents.push_back(describe(*tensor).shape);
  }
  for (const lang::TypedStatement& statement : definition.statements) {
    ranges.indices.push_back(ranges_of(program, statement));
  }
  return ranges;
}

/// A def: what calls need to know of it at once, and its Compilation up to its Program when somebody asks.
struct Def {
  ir::Program program;  ///< without statements, where it is known from a cache's file
  std::string digest;   ///< of the whole Program

  Result<const compile::Compilation*> compilation(const compile::Compilation& front,
                                                  const options::Budget& budget) const {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!made) {
      compile::Settings settings;
      settings.entry = program.name;
      settings.budget = budget;
      compile::Compilation compilation = front;
      TC_TRY_VOID(compile::run_passes(settings, compilation, "program"));
      made = std::move(compilation);
    }
    return &*made;
  }

  mutable std::mutex mutex;
  mutable std::optional<compile::Compilation> made;
};

}  // namespace

struct Engine::Impl {
  compile::Compilation front;  ///< the text, parsed; in production without a text: nothing
  std::map<std::string, Def> defs;
  std::vector<std::string> entries;
  std::vector<std::string> absent;  ///< in production: defs of the text that the file does not know
  std::optional<KernelStore> store;
  std::function<Result<CompiledKernel>(const Request&, const Error&)> on_miss;
  bool production = false;
  options::Budget budget;
  mutable std::atomic<int64_t> memory_hits{0}, file_hits{0}, reproved{0}, compiled{0};

  Result<void> open_store(const EngineOptions& options);
  Result<const Def*> find(const std::string& entry) const;
  Result<void> add_defs();
  Result<void> add_def(const std::string& entry);
  Result<void> add_known(const cache::Interface& interface);
  bool is_absent(const std::string& entry) const { return std::ranges::find(absent, entry) != absent.end(); }
  tl::unexpected<Error> unknown(const std::string& entry) const;
  Result<compile::Settings> settings(const Request& request, const Def& def) const;
  Result<CompiledKernel> make(const Request& request, const Def& def, size_t& code_bytes) const;
  Result<CompiledKernel> make_element_aligned(Request request, const Def& def, const std::string& options) const;
  Result<CompiledKernel> compile(const compile::Settings& settings, const Def& def, size_t& code_bytes) const;
};

Signature signature_of(const ir::Program& program) {
  Signature signature{.entry = program.name, .sizes = program.sizes};
  for (const std::string& name : program.parameters) {
    if (const ir::Scalar* scalar = program.find_scalar(name)) {
      signature.parameters.push_back({.name = name,
                                      .role = Role::kScalar,
                                      .type = ir::from_halide(scalar->type),
                                      .compiled_in = scalar->specialised});
    } else {
      signature.parameters.push_back(describe(program.tensor(name)));
    }
  }
  for (const std::string& name : program.results) signature.results.push_back(describe(program.tensor(name)));
  return signature;
}

// --- defs -------------------------------------------------------------------------------------------------------

Result<const Def*> Engine::Impl::find(const std::string& entry) const {
  if (entry.empty() && entries.size() == 1) return &defs.at(entries[0]);
  if (entry.empty()) return fail("the text has {} defs; name one: {}", entries.size(), fmt::join(entries, ", "));
  const auto found = defs.find(entry);
  if (found != defs.end()) return &found->second;
  if (is_absent(entry)) return unknown(entry);
  const std::string meant = nearest(entry, entries);
  if (!meant.empty()) return fail("there is no def '{}'; did you mean '{}'?", entry, meant);
  return fail("there is no def '{}'; there are {}", entry, fmt::join(entries, ", "));
}

/// A def that the file knows by its interface.
Result<void> Engine::Impl::add_known(const cache::Interface& interface) {
  auto program = compile::program_of(interface);
  if (!program)
    return fail("the cache {}: the interface of '{}' cannot be read", store->file()->path(), interface.entry);
  Def& def = defs[interface.entry];
  def.program = std::move(*program);
  def.digest = interface.program;
  entries.push_back(interface.entry);
  return {};
}

/// A def of the text: by its interface if the file knows it, else through the front end.
Result<void> Engine::Impl::add_def(const std::string& entry) {
  std::string text;
  if (store) {
    text = compile::source_of(*front.file, entry);
    Result<std::optional<cache::Interface>> known = store->file()->find_interface(Digest::of(text));
    if (!known) store->warn(known.error().diagnostics().at(0).message);
    if (known && *known) return add_known(**known);
    if (production) {
      absent.push_back(entry);
      return {};
    }
  }
  if (!front.typed) TC_TRY_VOID(compile::run_passes(compile::Settings(), front, "analyse"));
  compile::Settings settings;
  settings.entry = entry;
  settings.budget = budget;
  compile::Compilation compilation = front;
  TC_TRY_VOID(compile::run_passes(settings, compilation, "program"));
  Def& def = defs[entry];
  def.program = *compilation.program;
  def.made = std::move(compilation);
  entries.push_back(entry);
  if (!store) return {};
  def.digest = ir::digest_of(def.program).to_string();
  const std::optional<cache::Interface> interface = compile::interface_of(def.program, text);
  if (!interface || store->file()->mode() == cache::Mode::kReadOnly) return {};
  if (auto written = store->file()->put(Digest::of(text), *interface); !written) {
    store->warn(written.error().diagnostics().at(0).message);
  }
  return {};
}

Result<void> Engine::Impl::add_defs() {
  for (const lang::Definition& definition : front.file->definitions) {
    // Two defs of one name: the analysis says so.
    if (defs.contains(definition.name.text)) return compile::run_passes(compile::Settings(), front, "analyse");
    TC_TRY_VOID(add_def(definition.name.text));
  }
  if (entries.empty() && !absent.empty() && !on_miss) return unknown(absent[0]);
  return {};
}

tl::unexpected<Error> Engine::Impl::unknown(const std::string& entry) const {
  return fail("the cache {} does not know the def '{}'", store->file()->path(), entry);
}

// --- creating ---------------------------------------------------------------------------------------------------

Engine::Engine(std::shared_ptr<const Impl> impl, size_t memory_bytes)
    : impl_(std::move(impl)), memory_(std::make_shared<MemoryCache>(memory_bytes)) {}

/// A file whose damage leaves nothing to be read costs a warning where there is somebody to warn: the user's work goes
/// on without it, and nothing is written over it.
Result<void> Engine::Impl::open_store(const EngineOptions& options) {
  const cache::OpenOptions open{.mode = options.read_only ? cache::Mode::kReadOnly : cache::Mode::kReadWrite,
                                .on_damage = options.on_warning};
  Result<std::shared_ptr<cache::Cache>> file = cache::Cache::open(options.cache, open);
  if (!file && options.on_warning && cache::is_unreadable(options.cache)) {
    options.on_warning(fmt::format("{}; nothing is taken from it or added to it; remove it, or name another file",
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
    auto impl = std::make_shared<Impl>();
    impl->budget = options.budget;
    if (!options.cache.empty()) TC_TRY_VOID(impl->open_store(options));
    impl->front.source = std::make_shared<const Source>(std::string(name), std::string(text));
    // All defs are checked, also where the file knows one or the other.
    TC_TRY_VOID(compile::run_passes(compile::Settings(), impl->front, impl->store ? "parse" : "analyse"));
    TC_TRY_VOID(impl->add_defs());
    return Engine(std::move(impl), options.memory_bytes);
  });
}

Result<Engine> Engine::production(const std::string& cache, const ProductionOptions& options) {
  return guarded([&]() -> Result<Engine> {
    auto impl = std::make_shared<Impl>();
    TC_TRY(file, cache::Cache::open(cache, {.mode = cache::Mode::kReadOnly, .on_damage = options.on_warning}));
    impl->production = true;
    impl->on_miss = options.on_miss;
    impl->store.emplace(std::move(file), KernelStore::Policy{.production = true, .on_warning = options.on_warning});
    if (!options.text.empty()) {
      impl->front.source = std::make_shared<const Source>(options.name, options.text);
      TC_TRY_VOID(compile::run_passes(compile::Settings(), impl->front, "parse"));
      TC_TRY_VOID(impl->add_defs());
      return Engine(std::move(impl), options.memory_bytes);
    }
    TC_TRY(interfaces, impl->store->file()->interfaces());
    for (const cache::Interface& interface : interfaces) {
      if (impl->defs.contains(interface.entry)) {
        return fail("the cache {} has several programs called '{}'; the text must say which", cache, interface.entry);
      }
      TC_TRY_VOID(impl->add_known(interface));
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
    TC_TRY(def, impl_->find(std::string(entry)));
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
    TC_TRY(def, impl_->find(request.entry));
    TC_TRY(settings, impl_->settings(request, *def));
    if (impl_->production) {
      TC_TRY(bindings, ir::bind(def->program, settings.given));
      return specs_of(def->program, bindings, settings.layouts);
    }
    TC_TRY(front, def->compilation(impl_->front, impl_->budget));
    compile::Compilation compilation = *front;
    TC_TRY_VOID(compile::run_passes(settings, compilation, "specialise"));
    return specs_of(*compilation.specialised, settings.layouts);
  });
}

// --- compiling --------------------------------------------------------------------------------------------------

Result<CompiledKernel> Engine::Impl::compile(const compile::Settings& settings, const Def& def,
                                             size_t& code_bytes) const {
  TC_TRY(front, def.compilation(this->front, settings.budget));
  compile::Compilation compilation = *front;
  TC_TRY_VOID(compile::run_passes(settings, compilation));
  ++compiled;
  if (store && settings.backend != Backend::kSimulator) {
    store->put(settings, {def.program, def.digest, {}}, compilation);
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
  TC_TRY(found,
         store->find(settings, {def.program, def.digest, [&] { return def.compilation(front, settings.budget); }}));
  if (found.kernel) {
    ++file_hits;
    if (found.reproved) ++reproved;
    code_bytes = found.kernel->impl_->code_bytes;
    return *found.kernel;
  }
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
  request.element_aligned = true;
  request.cancel = {};
  const bool strict = request.mapping.strict;
  const options::MappingOptions asked = request.mapping;
  // Those that somebody wrote code for by hand are no options.
  if (auto mapping = options::mapping_options_from_text(options)) request.mapping = *std::move(mapping);
  request.mapping.strict = strict;
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
    const Result<const Def*> found = impl_->find(request.entry);
    if (!found && impl_->on_miss && impl_->is_absent(request.entry)) return impl_->on_miss(request, found.error());
    TC_TRY(def, found);
    const std::string bytes = request_bytes(request, def->program);
    if (!request.cancel.stop_requested()) {
      if (std::optional<CompiledKernel> known = memory_->find(bytes)) {
        ++impl_->memory_hits;
        return *known;
      }
    }
    size_t code_bytes = 0;
    Result<CompiledKernel> kernel = impl_->make(request, *def, code_bytes);
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
    if (kernel) memory_->put(bytes, *kernel, code_bytes);
    return kernel;
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
    TC_TRY(def, impl_->find(request.entry));
    if (impl_->production) return fail("production compiles nothing, and has no stages of '{}' to show", request.entry);
    TC_TRY(settings, settings_of(of_stage, def->program));
    TC_TRY(gpu, compile::target_of_arch(std::string(arch)));
    settings.gpu = gpu;
    TC_TRY(front, def->compilation(impl_->front, impl_->budget));
    compile::Compilation run = *front;
    TC_TRY(specialise, compile::find_pass("specialise", wanted.backend));
    TC_TRY(last, compile::find_pass(wanted.pass, wanted.backend));
    if (last >= specialise) TC_TRY_VOID(check_sizes(settings, *run.program));
    TC_TRY_VOID(compile::run_passes(settings, run, wanted.pass));
    return text_of(wanted, settings, run);
  });
}

Result<std::string> Engine::gradient(std::string_view entry) const {
  return guarded([&]() -> Result<std::string> {
    TC_TRY(def, impl_->find(std::string(entry)));
    if (impl_->production) return fail("production compiles nothing, and derives no gradient of '{}'", entry);
    TC_TRY(front, def->compilation(impl_->front, impl_->budget));
    const auto& definitions = front->typed->definitions;
    const auto typed = std::ranges::find(definitions, front->program->name, &lang::TypedDefinition::name);
    TC_CHECK(typed != definitions.end(), "the def '{}' is not in its text", front->program->name);
    return lang::gradient(*typed, front->source, ranges_of(*front->program, *typed));
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
