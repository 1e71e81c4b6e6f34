#include "tc/compile/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>

#include "tc/compile/ast_text.h"
#include "tc/compile/gpu_passes.h"
#include "tc/compile/index_functions.h"
#include "tc/compile/scop_text.h"
#include "tc/compile/strategy_options.h"
#include "tc/cpu/prepare.h"
#include "tc/cpu/runtime.h"
#include "tc/cpu/strategy.h"
#include "tc/ir/from_lang.h"
#include "tc/ir/layouts.h"
#include "tc/ir/print.h"
#include "tc/lang/format.h"
#include "tc/lang/instantiate.h"
#include "tc/lang/parser.h"
#include "tc/lang/sema.h"
#include "tc/poly/dependences.h"
#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"
#include "tc/support/identifier.h"
#include "tc/support/nearest.h"
#include "tc/support/profiled_range.h"
#include "tc/support/write_log.h"

namespace tc::compile {
namespace {

using Clock = std::chrono::steady_clock;

Error too_long(const Settings& settings, const char* where, const char* pass) {
  return Error(fmt::format("the compilation took longer than {} ms, {} the pass '{}'", settings.budget.wall_clock_ms,
                           where, pass))
      .with_kind(ErrorKind::kBudget);
}

ir::Deadline deadline_of(const Settings& settings, const Compilation& c) {
  return ir::Deadline(settings.budget.wall_clock_ms, c.deadline, settings.cancel);
}

Error cancelled() { return Error("the compilation was cancelled").with_kind(ErrorKind::kCancelled); }

// --- parse: text to untyped tree --------------------------------------------------------------------------------

Result<void> parse(const Settings& settings, Compilation& c) {
  TC_TRY(file, lang::parse(c.source));
  if (std::optional<lang::File> instance = lang::file_of_instance(file, settings.entry)) file = *std::move(instance);
  c.file = std::make_shared<const lang::File>(std::move(file));
  return {};
}

Result<std::string> dump_parse(const Settings&, const Compilation& c) { return lang::format(*c.file); }

// --- analyse: names, types and roles ----------------------------------------------------------------------------

Result<void> analyse(const Settings& settings, Compilation& c) {
  auto typed = lang::analyse(*c.file, stop_of(settings, c));
  if (!typed && typed.error().ended_early()) {
    return tl::unexpected(settings.cancel.stop_requested() ? cancelled() : too_long(settings, "in", "analyse"));
  }
  if (!typed) return tl::unexpected(typed.error());
  c.typed = std::make_shared<const lang::TypedProgram>(*std::move(typed));
  return {};
}

Result<std::string> dump_analyse(const Settings& settings, const Compilation& c) {
  std::string text;
  for (const lang::TypedDefinition& definition : c.typed->definitions) {
    if (settings.entry.empty() || settings.entry == definition.name) text += ast_text(definition);
  }
  return text;
}

// --- program: ranges and shapes, over symbolic sizes ------------------------------------------------------------

/// True for a Program that has in place what the settings say of its compiled-in scalars.
bool fits(const ir::Program& program, const Settings& settings) {
  return std::ranges::all_of(program.scalars, [&](const ir::Scalar& scalar) {
    const auto given = settings.given.scalars.find(scalar.name);
    return !scalar.specialised ||
           (scalar.value && given != settings.given.scalars.end() && *scalar.value == given->second);
  });
}

/// C11: the def with the numbers in the places of compiled-in scalars is another Program, inferred anew. Nothing is
/// done where one of them has no value.
Result<void> fill_in(const Settings& settings, Compilation& c) {
  if (!c.program->waits_for_scalars()) {
    c.instance = c.program;
    return {};
  }
  const bool given = std::ranges::all_of(c.program->scalars, [&](const ir::Scalar& scalar) {
    return !scalar.specialised || settings.given.scalars.contains(scalar.name);
  });
  if (!given || (c.instance && fits(*c.instance, settings))) return {};
  TC_TRY(filled, ir::from_lang(*c.typed, c.program->name, deadline_of(settings, c), settings.given.scalars));
  c.instance = std::make_shared<const ir::Program>(std::move(filled));
  return {};
}

Result<void> program(const Settings& settings, Compilation& c) {
  TC_TRY(program, ir::from_lang(*c.typed, settings.entry, deadline_of(settings, c)));
  c.program = std::make_shared<const ir::Program>(std::move(program));
  return fill_in(settings, c);
}

Result<std::string> dump_program(const Settings&, const Compilation& c) { return ir::to_text(c.concrete()); }

// --- specialise: to the sizes of this compilation ---------------------------------------------------------------

Result<void> specialise(const Settings& settings, Compilation& c) {
  TC_TRY_VOID(fill_in(settings, c));
  // Where a scalar has no value, bind() says so.
  const ir::Program& program = c.concrete();
  TC_TRY(bindings, ir::bind(program, settings.given));
  TC_TRY(specialised, ir::specialise(program, bindings, deadline_of(settings, c)));
  TC_TRY_VOID(check_index_functions(specialised, settings.checks_bounds(), deadline_of(settings, c)));
  if (settings.backend != Backend::kCpu) specialised = ir::with_layouts(std::move(specialised), settings.layouts);
  c.specialised = std::make_shared<const ir::Program>(std::move(specialised));
  c.checked = c.specialised;
  if (!settings.checks_bounds()) return {};
  TC_TRY(checked, ir::check_subscripts(*c.specialised));
  c.checked = std::make_shared<const ir::Program>(std::move(checked.program));
  c.checks = std::move(checked.checks);
  return {};
}

Result<std::string> dump_specialise(const Settings&, const Compilation& c) { return ir::to_text(*c.specialised); }

// --- prepare: reductions as a CPU wants them --------------------------------------------------------------------

Result<void> prepare(const Settings& settings, Compilation& c) {
  TC_TRY(target, cpu::canonical_target(settings.target));
  const cpu::PrepareOptions options{.layouts = settings.layouts,
                                    .vector_bits = cpu::vector_bits(target),
                                    .threads = settings.threads > 0 ? settings.threads : cpu::thread_count(),
                                    .strict = settings.options.strict,
                                    .vector_width = settings.options.vector_width.value_or(0)};
  c.prepared = std::make_shared<const ir::Program>(cpu::prepare(*c.checked, options));
  return {};
}

Result<std::string> dump_prepare(const Settings&, const Compilation& c) { return ir::to_text(*c.prepared); }

// --- scop: sets, relations, dependences, and the program's own order --------------------------------------------

/// Runs `work` on the Scop while a request to cancel reaches isl.
template <typename Work>
Result<void> while_cancellable(const Settings& settings, poly::Context& context, Work work) {
  const std::stop_callback forward(settings.cancel, [&] { context.cancel(); });
  return work();
}

Result<void> scop(const Settings& settings, Compilation& c) {
  auto context = std::make_shared<poly::Context>(settings.budget, c.deadline);
  return while_cancellable(settings, *context, [&]() -> Result<void> {
    TC_TRY(scop, poly::from_ir(c.prepared, context));
    c.scop = std::move(scop);
    return {};
  });
}

Result<std::string> dump_scop(const Settings&, const Compilation& c) { return scop_text(*c.scop); }

Result<void> verify_scop(Compilation& c) { return poly::check_legal(*c.scop, "scop"); }

// --- schedule: which statements share loops, tiles, vectors, buffers, what runs in parallel ----------------------

Result<void> schedule(const Settings& settings, Compilation& c) {
  TC_TRY(options, strategy_options(settings));
  return while_cancellable(settings, *c.scop->context, [&]() -> Result<void> {
    TC_TRY(scheduled, cpu::schedule_for_cpu(*c.scop, options));
    c.scop = std::move(scheduled);
    return {};
  });
}

Result<void> verify_schedule(Compilation& c) { return poly::check_legal(*c.scop, "schedule"); }

Result<std::string> dump_schedule(const Settings&, const Compilation& c) { return schedule_text(*c.scop); }

// --- stmt: loops ------------------------------------------------------------------------------------------------

Result<void> stmt(const Settings& settings, Compilation& c) {
  TC_TRY(target, cpu::canonical_target(settings.target));
  const cpu::FromPolyOptions options{.layouts = settings.layouts, .vector_bits = cpu::vector_bits(target)};
  return while_cancellable(settings, *c.scop->context, [&] {
    return poly::within_budget(*c.scop->context, [&] { c.stmt = cpu::from_poly(*c.scop, options); });
  });
}

Result<std::string> dump_stmt(const Settings&, const Compilation& c) { return cpu::to_text(c.stmt->body); }

// --- object: machine code ---------------------------------------------------------------------------------------

cpu::Kernel kernel_of(const Compilation& c) {
  // Two of the caller's tensors never overlap where one is written: tc/api checks it at every call.
  return {.name = "tc_" + identifier_of(c.program->name),
          .arguments = c.stmt->arguments,
          .body = c.stmt->body,
          .no_alias = true};
}

cpu::ObjectOptions object_options(const Settings& settings) {
  return {.target = settings.target, .strict = settings.options.strict};
}

Result<void> object(const Settings& settings, Compilation& c) {
  cpu::ObjectOptions options = object_options(settings);
  options.stop = stop_of(settings, c);
  TC_TRY(object, cpu::compile_object(kernel_of(c), options));
  c.object = std::move(object);
  return {};
}

Result<std::string> dump_object(const Settings& settings, const Compilation& c) {
  return cpu::assembly_text(kernel_of(c), object_options(settings));
}

// --- load: into this process ------------------------------------------------------------------------------------

Result<void> load(const Settings& settings, Compilation& c) {
  TC_TRY(loaded, cpu::load_object(*c.object, instance_text(settings, *c.program)));
  c.loaded = std::move(loaded);
  return {};
}

Result<std::string> dump_load(const Settings&, const Compilation& c) {
  return fmt::format("{}: {} arguments, target {}\n", c.object->name, c.object->arguments, c.object->target);
}

// --- running them -----------------------------------------------------------------------------------------------

/// The def that a compilation is about, or the text's name before there is one.
std::string_view subject_of(const Settings& settings, const Compilation& c) {
  if (c.program) return c.program->name;
  return settings.entry.empty() && c.source ? std::string_view(c.source->name()) : std::string_view(settings.entry);
}

/// Runs one pass. Whatever it throws, but for a lack of memory, is a fault of ours, and says in which pass.
Result<void> run_pass(const Pass& pass, const Settings& settings, Compilation& compilation) {
  try {
    const Result<void> done = pass.run(settings, compilation);
    // Compilers of others know of a request to stop, and not of its reason.
    if (!done && done.error().kind() == ErrorKind::kCancelled && !settings.cancel.stop_requested()) {
      return tl::unexpected(too_long(settings, "in", pass.name));
    }
    TC_TRY_VOID(done);
    if (settings.verify && pass.verify) TC_TRY_VOID(pass.verify(compilation));
    return {};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& fault) {
    throw InternalError(fmt::format("in the pass '{}': {}", pass.name, fault.what()));
  }
}

}  // namespace

std::string instance_text(const Settings& settings, const ir::Program& program) {
  const Result<ir::Bindings> bindings = ir::bind(program, settings.given);
  if (!bindings) return "";
  std::string text;
  for (const auto* values : {&bindings->sizes, &bindings->scalars}) {
    for (const auto& [name, value] : *values) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

Stop stop_of(const Settings& settings, const Compilation& compilation) {
  return [&settings, &compilation] { return settings.cancel.stop_requested() || Clock::now() > compilation.deadline; };
}

const std::vector<Pass>& passes(Backend backend) {
  static const std::vector<Pass> kFront = {
      {"parse", "text to a tree as it was written", parse, dump_parse, nullptr},
      {"analyse", "names, types and roles", analyse, dump_analyse, nullptr},
      {"program", "index ranges and shapes over symbolic sizes", program, dump_program, nullptr},
      {"specialise", "to the sizes of this compilation", specialise, dump_specialise, nullptr},
  };
  static const Pass kScop = {"scop", "sets, relations, dependences, and the order of the text", scop, dump_scop,
                             verify_scop};
  static const auto behind_front = [](std::vector<Pass> rest) {
    rest.insert(rest.begin(), kFront.begin(), kFront.end());
    return rest;
  };
  static const std::vector<Pass> kCpu = behind_front({
      {"prepare", "reductions as a CPU wants them: wide sums, partial results", prepare, dump_prepare, nullptr},
      kScop,
      {"schedule", "loops, tiles, vectors, buffers, parallel loops", schedule, dump_schedule, verify_schedule},
      {"stmt", "the same as loops", stmt, dump_stmt, nullptr},
      {"object", "machine code", object, dump_object, nullptr},
      {"load", "into this process", load, dump_load, nullptr},
  });
  static const std::vector<Pass> kSimulator =
      behind_front({gpu_prepare_pass(), kScop, gpu_schedule_pass(), map_pass(), tile_pass()});
  static const std::vector<Pass> kCuda = behind_front({gpu_prepare_pass(), kScop, gpu_schedule_pass(), map_pass(),
                                                       tile_pass(), cuda_pass(), cubin_pass(), gpu_load_pass()});
  return backend == Backend::kCpu ? kCpu : backend == Backend::kCuda ? kCuda : kSimulator;
}

Result<size_t> find_pass(std::string_view name, Backend backend) {
  std::vector<std::string> names;
  for (const Pass& pass : passes(backend)) {
    if (pass.name == name) return names.size();
    names.emplace_back(pass.name);
  }
  const std::string meant = nearest(name, names);
  if (!meant.empty()) return fail("there is no pass '{}'; did you mean '{}'?", name, meant);
  return fail("there is no pass '{}'; there are {}", name, fmt::join(names, ", "));
}

Result<void> run_passes(const Settings& settings, Compilation& compilation, std::string_view last) {
  const std::vector<Pass>& all = passes(settings.backend);
  size_t end = all.size();
  if (!last.empty()) {
    TC_TRY(found, find_pass(last, settings.backend));
    end = found + 1;
  }
  compilation.deadline = ir::after(settings.budget.wall_clock_ms) - compilation.spent;
  while (compilation.done < end) {
    if (settings.cancel.stop_requested()) return tl::unexpected(cancelled());
    const Clock::time_point begin = Clock::now();
    const Pass& pass = all[compilation.done];
    if (begin > compilation.deadline) return tl::unexpected(too_long(settings, "before", pass.name));
    const ProfiledRange range([&] { return fmt::format("{}: {}", subject_of(settings, compilation), pass.name); });
    Result<void> done = run_pass(pass, settings, compilation);
    compilation.spent += Clock::now() - begin;
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    if (!done) {
      TC_LOG(kDetail, "{}: pass {} fails after {:.2f} ms: {}", subject_of(settings, compilation), pass.name, ms,
             done.error().diagnostics().at(0).message);
      return tl::unexpected(compilation.file ? lang::in_instance(done.error(), *compilation.file) : done.error());
    }
    TC_LOG(kDetail, "{}: pass {} took {:.2f} ms", subject_of(settings, compilation), pass.name, ms);
    compilation.times.push_back({pass.name, ms});
    ++compilation.done;
  }
  return {};
}

Result<void> fill_in_scalars(const Settings& settings, Compilation& compilation) {
  compilation.deadline = ir::after(settings.budget.wall_clock_ms) - compilation.spent;
  const Clock::time_point begin = Clock::now();
  const Result<void> filled = fill_in(settings, compilation);
  compilation.spent += Clock::now() - begin;
  return filled;
}

Result<std::string> dump(const Settings& settings, const Compilation& compilation, std::string_view pass) {
  TC_TRY(found, find_pass(pass, settings.backend));
  TC_CHECK(found < compilation.done, "the pass '{}' has not run", pass);
  return passes(settings.backend)[found].dump(settings, compilation);
}

}  // namespace tc::compile
