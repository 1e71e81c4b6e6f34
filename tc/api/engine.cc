#include <fmt/format.h>
#include <fmt/ranges.h>

#include <new>

#include "tc/api/kernel.h"
#include "tc/api/request.h"
#include "tc/ir/expr_text.h"
#include "tc/support/check.h"
#include "tc/support/nearest.h"

namespace tc::api {

struct Engine::Impl {
  std::map<std::string, compile::Compilation> defs;  ///< each as a symbolic Program
  std::vector<std::string> entries;

  Result<const compile::Compilation*> find(const std::string& entry) const;
  Result<compile::Compilation> start(const Request& request, compile::Settings& settings) const;
};

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

}  // namespace

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

Engine::Engine(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<const compile::Compilation*> Engine::Impl::find(const std::string& entry) const {
  if (entry.empty() && entries.size() == 1) return &defs.at(entries[0]);
  if (entry.empty()) return fail("the text has {} defs; name one: {}", entries.size(), fmt::join(entries, ", "));
  const auto found = defs.find(entry);
  if (found != defs.end()) return &found->second;
  const std::string meant = nearest(entry, entries);
  if (!meant.empty()) return fail("there is no def '{}'; did you mean '{}'?", entry, meant);
  return fail("there is no def '{}'; there are {}", entry, fmt::join(entries, ", "));
}

/// A compilation that has its Program, and the settings for the rest of it.
Result<compile::Compilation> Engine::Impl::start(const Request& request, compile::Settings& settings) const {
  TC_TRY(def, find(request.entry));
  TC_TRY(translated, settings_of(request, *def->program));
  TC_TRY_VOID(check_sizes(translated, *def->program));
  settings = std::move(translated);
  return *def;
}

Result<Engine> Engine::create(std::string_view text, std::string_view name) {
  return guarded([&]() -> Result<Engine> {
    auto impl = std::make_shared<Impl>();
    compile::Compilation front;
    front.source = std::make_shared<const Source>(std::string(name), std::string(text));
    TC_TRY_VOID(compile::run_passes(compile::Settings(), front, "analyse"));
    for (const lang::TypedDefinition& definition : front.typed->definitions) {
      compile::Settings settings;
      settings.entry = definition.name;
      compile::Compilation compilation = front;
      TC_TRY_VOID(compile::run_passes(settings, compilation, "program"));
      impl->defs[definition.name] = std::move(compilation);
      impl->entries.push_back(definition.name);
    }
    return Engine(std::move(impl));
  });
}

std::vector<std::string> Engine::entries() const { return impl_->entries; }

Result<Signature> Engine::signature(std::string_view entry) const {
  return guarded([&]() -> Result<Signature> {
    TC_TRY(def, impl_->find(std::string(entry)));
    return signature_of(*def->program);
  });
}

Result<Specs> Engine::infer(const Request& request) const {
  return guarded([&]() -> Result<Specs> {
    compile::Settings settings;
    TC_TRY(compilation, impl_->start(request, settings));
    TC_TRY_VOID(compile::run_passes(settings, compilation, "specialise"));
    return specs_of(*compilation.specialised, settings.layouts);
  });
}

Result<CompiledKernel> Engine::compile(const Request& request) const {
  return guarded([&]() -> Result<CompiledKernel> {
    compile::Settings settings;
    TC_TRY(compilation, impl_->start(request, settings));
    if (request.backend == Backend::kCuda) {
      TC_TRY(target, compile::target_of_device(request.device));
      settings.gpu = target;
    }
    TC_TRY_VOID(compile::run_passes(settings, compilation));
    return kernel_of(settings, compilation);
  });
}

Result<CompiledKernel> compile(std::string_view text, const Request& request) {
  TC_TRY(engine, Engine::create(text));
  return engine.compile(request);
}

const char* version() { return "0.1.0"; }

}  // namespace tc::api
