#include "tc/api/schedule.h"

#include <algorithm>
#include <set>
#include <variant>

#include "tc/api/call.h"
#include "tc/api/elements.h"
#include "tc/api/kernel.h"
#include "tc/api/layout.h"
#include "tc/api/request.h"
#include "tc/api/tune_bench.h"
#include "tc/cache/cache.h"
#include "tc/cache/version.h"
#include "tc/compile/cached.h"
#include "tc/compile/interface.h"
#include "tc/cpu/prepare.h"
#include "tc/cpu/schedule.h"
#include "tc/cuda/print.h"
#include "tc/gpu/strategy/schedule.h"
#include "tc/ir/bounds.h"
#include "tc/ir/canonical.h"
#include "tc/ir/print.h"
#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/step.h"
#include "tc/support/check.h"
#include "tc/tile/print.h"
#include "tc/tile/simulate.h"
#include "tc/tune/measure.h"

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

using AnySchedule = std::variant<cpu::Schedule, gpu::Schedule>;

constexpr uint64_t kSeeds = 3;  ///< of random inputs that a kernel is compared on before it is kept

}  // namespace

struct Schedule::Impl {
  std::string text;
  Request request;
  compile::Settings settings;
  compile::Compilation compilation;  ///< up to the Scop
  AnySchedule loops;

  /// Calls `work` as a step of its own (poly/step.h). A step that runs out of its budget anywhere is an Error.
  template <typename Work>
  auto step(Work work) const -> decltype(work()) {
    return guarded([&] {
      const poly::Context& context = *compilation.scop->context;
      const poly::Step step(context);
      return poly::within_budget(context, work);
    });
  }

  /// Puts what verb(schedule) makes into the place of `impl`; the verb is one of both backends.
  template <typename Verb>
  static Result<void> change(std::shared_ptr<const Impl>& impl, Verb verb) {
    return impl->step([&]() -> Result<void> {
      return std::visit(
          [&](const auto& schedule) -> Result<void> {
            TC_TRY(changed, verb(schedule));
            impl = impl->with(std::move(changed));
            return {};
          },
          impl->loops);
    });
  }
  /// The same for a verb of a GPU; of a CPU it is the error.
  template <typename Verb>
  static Result<void> change_gpu(std::shared_ptr<const Impl>& impl, const char* error, Verb verb) {
    const auto* schedule = std::get_if<gpu::Schedule>(&impl->loops);
    if (!schedule) return fail("{}", error);
    return impl->step([&]() -> Result<void> {
      TC_TRY(changed, verb(*schedule));
      impl = impl->with(std::move(changed));
      return {};
    });
  }

  /// The same with other loops.
  std::shared_ptr<const Impl> with(AnySchedule changed) const {
    return std::make_shared<const Impl>(Impl{text, request, settings, compilation, std::move(changed)});
  }
  std::vector<std::string> names() const {
    return std::visit([](const auto& schedule) { return schedule.loops(); }, loops);
  }
  Result<const gpu::Schedule*> of_gpu() const {
    if (const auto* schedule = std::get_if<gpu::Schedule>(&loops)) return schedule;
    return fail("a CPU has no tile program; its stages are schedule, stmt and object");
  }
  Result<gpu::Mapping> mapping() const { return mapping(settings); }
  /// For the device of other settings.
  Result<gpu::Mapping> mapping(const compile::Settings& target) const {
    TC_TRY(schedule, of_gpu());
    TC_TRY(mapping, schedule->lower(target.gpu.device, target.mapping));
    mapping.program.header = gpu::report(mapping);
    return mapping;
  }
  /// The compilation behind the pass that a schedule takes the place of, and settings for the device at hand.
  struct Scheduled {
    compile::Settings settings;
    compile::Compilation compilation;
  };
  Result<Scheduled> scheduled() const {
    Scheduled made{settings, compilation};
    const auto* of_cpu = std::get_if<cpu::Schedule>(&loops);
    if (settings.backend == Backend::kCuda) {
      TC_TRY(target, compile::target_of_device(settings.gpu.ordinal));
      made.settings.gpu = target;
    }
    if (of_cpu) {
      TC_TRY(lowered, of_cpu->lower());
      made.compilation.scop = std::move(lowered);
    } else {
      TC_TRY(mapped, mapping(made.settings));
      made.compilation.mapping = std::move(mapped);
    }
    TC_TRY(pass, compile::find_pass(of_cpu ? "schedule" : "tile", settings.backend));
    made.compilation.done = pass + 1;
    return made;
  }
  /// The same, compiled.
  Result<Scheduled> compiled(std::stop_token cancel) const {
    TC_TRY(made, scheduled());
    made.settings.cancel = cancel;
    TC_TRY_VOID(compile::run_passes(made.settings, made.compilation));
    return made;
  }
};

/// A bench with random data, and what is wrong with a kernel on it, as an error.
struct Schedule::Trial {
  std::unique_ptr<TuneSetup> setup;  ///< which the bench refers to
  std::unique_ptr<Bench> bench;
  Candidate candidate;
};

namespace {

Result<void> add_tensor(tile::Arguments& arguments, const std::string& name, const TensorSpec& spec,
                        const Tensor& tensor) {
  if (tensor.empty()) return fail("'{}' is empty", name);
  const TensorSpec given = tensor.spec();
  if (!(with_strides(given) == spec)) {
    return fail("'{}' is {}; the def takes {}", name, given.to_string(), spec.to_string());
  }
  arguments.tensors[name] = {tensor.data_as<std::byte>(), static_cast<size_t>(spec.span_bytes())};
  return {};
}

Result<void> add_scalar(tile::Arguments& arguments, const ir::Scalar& scalar, const Scalar& value) {
  const ScalarType type = ir::from_halide(scalar.type);
  const std::optional<int64_t> bits = scalar_bits(value, type);
  if (!bits) return fail("scalar '{}' is {}; {}", scalar.name, value.to_string(), what_fits(type));
  if (scalar.specialised) return {};
  if (is_float(type)) arguments.scalars[scalar.name] = load_float(type, &*bits);
  if (!is_float(type)) arguments.scalars[scalar.name] = load_integer(type, &*bits);
  return {};
}

/// What is done to a program before it is scheduled is the user's to do here, but for what its meaning asks for.
Result<void> prepare(const compile::Settings& settings, compile::Compilation& compilation) {
  if (settings.backend == Backend::kCpu) {
    compilation.prepared = compilation.checked;
    return {};
  }
  compile::Settings strict = settings;
  strict.mapping.strict = true;
  return compile::run_passes(strict, compilation, "prepare");
}

/// Lets no verb change the order in which the updates of an element run.
Result<void> keep_order_of_reductions(poly::Scop& scop) {
  return poly::within_budget(*scop.context, [&] {
    scop.dependences.all_ordered = scop.dependences.all_ordered.unite(scop.dependences.reduction);
  });
}

Result<AnySchedule> loops_of(const poly::Scop& scop, const compile::Settings& settings) {
  if (settings.backend == Backend::kCpu) {
    TC_TRY(schedule, cpu::Schedule::create(scop, settings.options.scheduler));
    return schedule;
  }
  gpu::Device device = settings.gpu.device;
  if (settings.backend == Backend::kCuda) {
    // Without a GPU at hand the text is that for a typical one.
    if (const Result<compile::GpuTarget> target = compile::target_of_device(settings.gpu.ordinal)) {
      device = target->device;
    }
  }
  TC_TRY(schedule, gpu::Schedule::create(scop, settings.mapping.outer_schedule_options, device));
  return schedule;
}

const char* backend_name(Backend backend) {
  if (backend == Backend::kCpu) return "cpu";
  return backend == Backend::kCuda ? "cuda" : "sim";
}

}  // namespace

Schedule::Schedule(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<Schedule> Schedule::create(std::string_view text, const Request& request) {
  return guarded([&]() -> Result<Schedule> {
    compile::Settings front;
    front.entry = request.entry;
    front.backend = request.backend;
    compile::Compilation compilation;
    compilation.source = std::make_shared<const Source>("tc", std::string(text));
    TC_TRY_VOID(compile::run_passes(front, compilation, "program"));
    TC_TRY(settings, settings_of(request, *compilation.program));
    TC_TRY_VOID(check_sizes(settings, *compilation.program));
    settings.gpu.ordinal = request.device;
    TC_TRY_VOID(compile::run_passes(settings, compilation, "specialise"));
    TC_TRY_VOID(prepare(settings, compilation));
    settings.cancel = {};
    // Steps have time limits of their own.
    const auto context = std::make_shared<poly::Context>(settings.budget, ir::after(INT64_MAX));
    const poly::Step step(*context);
    TC_TRY(scop, poly::from_ir(compilation.prepared, context));
    const bool of_cpu = request.backend == Backend::kCpu;
    const bool strict = of_cpu ? settings.options.strict : settings.mapping.strict;
    if (strict) TC_TRY_VOID(keep_order_of_reductions(scop));
    compilation.scop = std::move(scop);
    TC_TRY(pass, compile::find_pass("scop", request.backend));
    compilation.done = pass + 1;
    TC_TRY(loops, loops_of(*compilation.scop, settings));
    Request kept = request;
    kept.cancel = {};
    return Schedule(std::make_shared<const Impl>(
        Impl{std::string(text), std::move(kept), std::move(settings), std::move(compilation), std::move(loops)}));
  });
}

std::vector<std::string> Schedule::loops() const { return impl_->names(); }

Result<std::string> Schedule::to_text() const {
  return impl_->step([&]() -> Result<std::string> {
    return poly::within_budget(*impl_->compilation.scop->context, [&] {
      const std::string signature = ir::signature_text(*impl_->compilation.specialised);
      const std::string loops = std::visit([](const auto& schedule) { return schedule.to_text(); }, impl_->loops);
      return fmt::format("{} on {}\n{}", signature.substr(sizeof("def ") - 1), backend_name(impl_->settings.backend),
                         loops);
    });
  });
}

namespace {

/// Where a loop stands among all.
size_t place_of(const std::vector<std::string>& loops, const std::string& loop) {
  return static_cast<size_t>(std::find(loops.begin(), loops.end(), loop) - loops.begin());
}

}  // namespace

Result<Schedule::Loops> Schedule::split(const std::string& loop, int64_t size) {
  const size_t at = place_of(loops(), loop);  // where the two will stand
  TC_TRY_VOID(Impl::change(
      impl_, [&](const auto& schedule) { return schedule.split(loop, size, loop + "_outer", loop + "_inner"); }));
  const std::vector<std::string> after = loops();
  return Loops{after.at(at), after.at(at + 1)};
}

Result<std::vector<std::string>> Schedule::tile(const std::vector<std::string>& loops,
                                                const std::vector<int64_t>& sizes) {
  if (loops.size() != sizes.size()) return fail("{} sizes for {} loops", sizes.size(), loops.size());
  const std::shared_ptr<const Impl> before = impl_;
  std::vector<std::string> order(2 * loops.size());
  Result<void> done;
  for (size_t i = 0; i < loops.size() && done; ++i) {
    Result<Loops> both = split(loops[i], sizes[i]);
    if (!both) {
      done = tl::unexpected(both.error());
    } else {
      order[i] = both->first;
      order[loops.size() + i] = both->second;
    }
  }
  if (done) done = reorder(order);
  if (done) return order;
  impl_ = before;
  return tl::unexpected(done.error());
}

Result<std::string> Schedule::fuse(const std::string& outer, const std::string& inner) {
  const size_t at = place_of(loops(), outer);
  TC_TRY_VOID(
      Impl::change(impl_, [&](const auto& schedule) { return schedule.fuse(outer, inner, outer + "_" + inner); }));
  return loops().at(at);
}

Result<void> Schedule::reorder(const std::vector<std::string>& loops) {
  return Impl::change(impl_, [&](const auto& schedule) { return schedule.reorder(loops); });
}

Result<void> Schedule::distribute(const std::string& loop) {
  return Impl::change(impl_, [&](const auto& schedule) { return schedule.distribute(loop); });
}

Result<Schedule::Loops> Schedule::partition(const std::string& loop, int64_t at) {
  std::string rest;
  TC_TRY_VOID(Impl::change(impl_, [&](const auto& schedule) { return schedule.partition(loop, at, rest); }));
  return Loops{loop, rest};
}

Result<void> Schedule::merge(const std::string& first, const std::string& second) {
  return Impl::change(impl_, [&](const auto& schedule) { return schedule.merge(first, second); });
}

Result<void> Schedule::sink(const std::string& name, const std::string& loop) {
  return Impl::change(impl_, [&](const auto& schedule) { return schedule.sink(name, loop); });
}

Result<ReductionLoops> Schedule::split_reduction(const std::string& loop, int64_t parts, Part part) {
  const compile::Settings& settings = impl_->settings;
  if (settings.backend == Backend::kCpu ? settings.options.strict : settings.mapping.strict) {
    return fail("cannot split the reduction over '{}': the request is strict, its order is that of the source", loop);
  }
  gpu::ReductionLoops made;
  TC_TRY_VOID(impl_->step([&]() -> Result<void> {
    if (const auto* of_gpu = std::get_if<gpu::Schedule>(&impl_->loops)) {
      TC_TRY(changed, of_gpu->split_reduction(loop, parts, part == Part::kCyclic, made));
      impl_ = impl_->with(std::move(changed));
      return {};
    }
    const auto& of_cpu = std::get<cpu::Schedule>(impl_->loops);
    return poly::within_budget(*of_cpu.scop().context, [&]() -> Result<void> {
      TC_TRY(split, gpu::split_reduction(of_cpu.scop(), loop, parts, part == Part::kCyclic));
      TC_TRY(changed, of_cpu.replaced(loop, std::move(split.scop)));
      made = split.loops;
      impl_ = impl_->with(std::move(changed));
      return {};
    });
  }));
  return ReductionLoops{made.part, made.rest, made.together, made.partial, made.parts};
}

Result<void> Schedule::launch(const std::string& at) {
  return Impl::change_gpu(impl_, "a CPU has no launches: what stands first runs first",
                          [&](const gpu::Schedule& schedule) { return schedule.launch(at); });
}

Result<void> Schedule::parallelize(const std::string& loop) {
  const auto* schedule = std::get_if<cpu::Schedule>(&impl_->loops);
  if (!schedule) return fail("a GPU has blocks and threads: bind '{}' to an axis of these", loop);
  return impl_->step([&]() -> Result<void> {
    TC_TRY(changed, schedule->parallelize(loop));
    impl_ = impl_->with(std::move(changed));
    return {};
  });
}

namespace {

gpu::LoopPlace place_of(Axis axis) {
  switch (axis) {
    case Axis::kBlockX:
    case Axis::kBlockY:
    case Axis::kBlockZ:
      return {gpu::Level::kBlock, static_cast<int>(axis) - static_cast<int>(Axis::kBlockX)};
    case Axis::kWarpX:
    case Axis::kWarpY:
    case Axis::kWarpZ:
      return {gpu::Level::kWarp, static_cast<int>(axis) - static_cast<int>(Axis::kWarpX)};
    case Axis::kWarpgroup:
      return {gpu::Level::kWarpgroup, 0};
    case Axis::kCluster:
      return {gpu::Level::kCluster, 0};
    case Axis::kThreadX:
    case Axis::kThreadY:
    case Axis::kThreadZ:
      break;
  }
  return {gpu::Level::kThread, static_cast<int>(axis) - static_cast<int>(Axis::kThreadX)};
}

gpu::TileOperation operation_of(TileOperation operation) {
  switch (operation) {
    case TileOperation::kFma:
      return gpu::TileOperation::kFma;
    case TileOperation::kMma:
      return gpu::TileOperation::kMma;
    case TileOperation::kWgmma:
      return gpu::TileOperation::kWgmma;
    case TileOperation::kPointwise:
      return gpu::TileOperation::kPointwise;
    case TileOperation::kReduce:
      break;
  }
  return gpu::TileOperation::kReduce;
}

}  // namespace

Result<void> Schedule::bind(const std::string& loop, Axis axis) {
  return Impl::change_gpu(impl_, "a CPU has no blocks and threads: parallelize a loop",
                          [&](const gpu::Schedule& schedule) { return schedule.bind(loop, place_of(axis)); });
}

Result<void> Schedule::tensorize(const std::string& loop, TileOperation operation) {
  const compile::Settings& settings = impl_->settings;
  const bool of_gpu = settings.backend != Backend::kCpu;
  if (of_gpu && settings.mapping.strict && operation != TileOperation::kPointwise) {
    return fail("cannot make '{}' a tile: the request is strict, its order is that of the source", loop);
  }
  if (of_gpu && settings.element_aligned) {
    return fail("cannot make '{}' a tile: its vectors need tensors that are aligned to more than elements", loop);
  }
  return Impl::change_gpu(
      impl_, "a CPU has no tile operations: unroll and vectorize loops",
      [&](const gpu::Schedule& schedule) { return schedule.tensorize(loop, operation_of(operation)); });
}

Result<void> Schedule::persist(const std::string& loop, int64_t teams) {
  return Impl::change_gpu(impl_, "a CPU has no blocks that could persist",
                          [&](const gpu::Schedule& schedule) { return schedule.persist(loop, teams); });
}

Result<void> Schedule::reduce_by_warp(const std::string& loop) {
  if (impl_->settings.mapping.strict) {
    return fail("cannot reduce '{}' by a warp: the request is strict, its order is that of the source", loop);
  }
  return Impl::change_gpu(impl_, "a CPU has no warps: vectorize the loop of a reduction",
                          [&](const gpu::Schedule& schedule) { return schedule.reduce_by_warp(loop); });
}

Result<void> Schedule::unroll(const std::string& loop) {
  return Impl::change(impl_, [&](const auto& schedule) { return schedule.unroll(loop); });
}

Result<void> Schedule::vectorize(const std::string& loop) {
  return Impl::change(impl_, [&](const auto& schedule) { return schedule.vectorize(loop); });
}

Result<void> Schedule::promote(const std::string& tensor, const std::string& loop, Memory memory, Fetch fetch) {
  const bool of_gpu = std::holds_alternative<gpu::Schedule>(impl_->loops);
  if (!of_gpu && memory == Memory::kShared) {
    return fail("a CPU has no shared memory: buffers are in registers or in the cache");
  }
  if (of_gpu && memory == Memory::kCache) {
    return fail("a GPU has no buffers in a cache: they are in shared memory or in registers");
  }
  return impl_->step([&]() -> Result<void> {
    if (const auto* schedule = std::get_if<cpu::Schedule>(&impl_->loops)) {
      TC_TRY(changed, schedule->promote(tensor, loop, memory == Memory::kRegisters));
      impl_ = impl_->with(std::move(changed));
      return {};
    }
    const gpu::CopyOptions options{.vector_bytes = fetch == Fetch::kVectorized ? 16 : 1,
                                   .by_one = fetch == Fetch::kOneThread};
    const auto buffer = memory == Memory::kShared ? gpu::Buffer::kShared : gpu::Buffer::kRegisters;
    const bool boxes = fetch == Fetch::kBoxes;
    TC_TRY(changed, std::get<gpu::Schedule>(impl_->loops).promote(tensor, loop, buffer, options, boxes));
    impl_ = impl_->with(std::move(changed));
    return {};
  });
}

Result<void> Schedule::stage(const std::string& tensor, const std::string& loop, int64_t stages) {
  return Impl::change_gpu(impl_, "a CPU has no asynchronous copies to stage",
                          [&](const gpu::Schedule& schedule) { return schedule.stage(tensor, loop, stages); });
}

Result<std::string> Schedule::emit(std::string_view stage) const {
  const bool of_cpu = std::holds_alternative<cpu::Schedule>(impl_->loops);
  if (!of_cpu && stage == "tile") return tile_text();
  if (!of_cpu && stage == "cuda") return cuda_text();
  if (!of_cpu) return fail("a schedule of a GPU has no stage '{}'; there are tile and cuda", stage);
  if (stage != "schedule" && stage != "stmt" && stage != "object") {
    return fail("a schedule of a CPU has no stage '{}'; there are schedule, stmt and object", stage);
  }
  return impl_->step([&]() -> Result<std::string> {
    TC_TRY(made, impl_->scheduled());
    TC_TRY_VOID(compile::run_passes(made.settings, made.compilation, stage));
    return compile::dump(made.settings, made.compilation, stage);
  });
}

Result<std::string> Schedule::tile_text() const {
  return impl_->step([&]() -> Result<std::string> {
    TC_TRY(mapping, impl_->mapping());
    return tile::to_text(mapping.program);
  });
}

Result<std::string> Schedule::cuda_text() const {
  return impl_->step([&]() -> Result<std::string> {
    TC_TRY(mapping, impl_->mapping());
    return cuda::print(mapping.program);
  });
}

Result<CompiledKernel> Schedule::compile(std::stop_token cancel) const {
  return impl_->step([&]() -> Result<CompiledKernel> {
    TC_TRY(made, impl_->compiled(cancel));
    return kernel_of(made.settings, made.compilation);
  });
}

// --- comparing and keeping --------------------------------------------------------------------------------------

Result<Schedule::Trial> Schedule::trial(uint64_t seed, std::stop_token cancel) const {
  TC_TRY(made, impl_->compiled(cancel));
  Trial trial;
  TuneProblem problem{.program = {.text = impl_->text, .request = impl_->request}, .seed = seed};
  TC_TRY(setup, set_up(problem));
  trial.setup = std::make_unique<TuneSetup>(std::move(setup));
  trial.candidate.settings = made.settings;
  if (made.settings.backend == Backend::kSimulator) {
    trial.candidate.simulated = std::make_shared<const tile::Program>(made.compilation.mapping->program);
  } else {
    trial.candidate.kernel = kernel_of(made.settings, made.compilation);
  }
  TC_TRY(bench, make_bench(*trial.setup, made.settings.gpu.ordinal, cancel));
  trial.bench = std::move(bench);
  TC_TRY(wrong, trial.bench->check(trial.candidate));
  if (!wrong.empty()) return fail("{}", wrong);
  return trial;
}

Result<void> Schedule::check(uint64_t seed, std::stop_token cancel) const {
  return impl_->step([&]() -> Result<void> {
    TC_TRY_VOID(trial(seed, cancel));
    return {};
  });
}

Result<Saved> Schedule::save(const std::string& path, std::stop_token cancel) const {
  return impl_->step([&]() -> Result<Saved> {
    if (impl_->settings.backend == Backend::kSimulator) return fail("a cache keeps no kernels of the simulator");
    tune::Timing timing;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      TC_TRY(tried, trial(seed, cancel));
      if (seed < kSeeds) continue;
      TC_TRY(measured, tune::measure(tried.bench->subject(tried.candidate), nullptr, {}));
      timing = measured;
    }
    TC_TRY(made, impl_->compiled({}));
    const auto& [settings, compilation] = made;
    TC_TRY(cache, cache::Cache::open(path));
    TC_TRY(device, compile::device_name(settings));
    TC_TRY_VOID(compile::keep_interfaces(*cache, *compilation.program, compilation.concrete(),
                                         compile::source_of(*compilation.file, compilation.program->name)));
    cache::Entry entry = compile::entry_of(settings, compilation, true);
    entry.certificate.origin = cache::Certificate::Origin::kHand;
    entry.certificate.statement =
        fmt::format("a schedule by hand, proved legal; agrees with the oracle on {} random inputs", kSeeds);
    const Saved saved{"by hand " + entry.certificate.proved_text.substr(0, 12), timing.hot_us,
                      timing.spread * timing.hot_us / 2};
    TC_TRY(problem,
           compile::problem_of(settings, *compilation.program, ir::digest_of(*compilation.program).to_string()));
    // What has no subscripts to check serves requests that ask for checks, and those that do not. Where this request
    // asks for none, a def without checks may have such subscripts.
    std::set<bool> checks_bounds = {problem.check_bounds};
    const bool has_none_to_check =
        settings.checks_bounds() ? compilation.checks.empty() : ir::run_time_checks(*compilation.program).empty();
    if (has_none_to_check) checks_bounds = {false, true};
    for (const bool checks : checks_bounds) {
      cache::Key key = compile::key_of(settings, problem);
      key.problem.check_bounds = checks;
      key.options = saved.options;
      TC_TRY_VOID(cache->put(key, entry));
      TC_TRY_VOID(cache->add({.problem = key.problem,
                              .options = key.options,
                              .device = device,
                              .time_us = saved.time_us,
                              .spread_us = saved.spread_us,
                              .date = entry.created,
                              .compiler = cache::compiler_version()}));
    }
    return saved;
  });
}

Result<Counters> Schedule::count(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                 std::span<const Scalar> scalars) const {
  return impl_->step([&]() -> Result<Counters> {
    TC_TRY(mapping, impl_->mapping());
    const ir::Program& program = *impl_->compilation.specialised;
    const std::vector<std::string> names = inputs_of(program);
    if (inputs.size() != names.size() || outputs.size() != program.results.size() ||
        scalars.size() != program.scalars.size()) {
      return fail("'{}' takes {} tensors and {} scalars, and has {} results", program.name, names.size(),
                  program.scalars.size(), program.results.size());
    }
    tile::Arguments arguments;
    const Specs specs = specs_of(impl_->settings, program);
    for (size_t i = 0; i < inputs.size(); ++i) {
      TC_TRY_VOID(add_tensor(arguments, names[i], specs.inputs[i], inputs[i]));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      TC_TRY_VOID(add_tensor(arguments, program.results[i], specs.outputs[i], outputs[i]));
    }
    for (size_t i = 0; i < scalars.size(); ++i) TC_TRY_VOID(add_scalar(arguments, program.scalars[i], scalars[i]));
    TC_TRY(report, tile::simulate(mapping.program, arguments));
    if (!report.findings.empty()) return fail("the simulator finds: {}", report.findings.front().sentence);
    Counters all;
    for (const tile::Counters& c : report.counters) {
      all.global_bytes_read += c.global_bytes_read;
      all.global_bytes_written += c.global_bytes_written;
      all.global_requests += c.global_requests;
      all.global_sectors += c.global_sectors;
      all.shared_requests += c.shared_requests;
      all.shared_wavefronts += c.shared_wavefronts;
      all.barriers += c.barriers;
    }
    return all;
  });
}

Result<Counters> Schedule::count(uint64_t seed) const {
  return guarded([&]() -> Result<Counters> {
    TC_TRY(setup, set_up({.program = {.text = impl_->text, .request = impl_->request}, .seed = seed}));
    TC_TRY(data, make_data(setup));
    return count(data.inputs, data.outputs, data.scalars);
  });
}

}  // namespace tc::api
