#include "tc/api/schedule.h"

#include <algorithm>

#include "tc/api/call.h"
#include "tc/api/elements.h"
#include "tc/api/kernel.h"
#include "tc/api/layout.h"
#include "tc/api/request.h"
#include "tc/cuda/print.h"
#include "tc/gpu/schedule.h"
#include "tc/support/check.h"
#include "tc/tile/print.h"
#include "tc/tile/simulate.h"

namespace tc::api {

struct Schedule::Impl {
  compile::Settings settings;
  compile::Compilation compilation;  ///< up to the Scop
  gpu::Schedule schedule;

  /// The same with another schedule.
  std::shared_ptr<const Impl> with(gpu::Schedule changed) const {
    return std::make_shared<const Impl>(Impl{settings, compilation, std::move(changed)});
  }
  Result<gpu::Mapping> mapping() const { return mapping(settings); }
  /// For the device of other settings.
  Result<gpu::Mapping> mapping(const compile::Settings& target) const {
    const bool readonly_cache = target.mapping.use_readonly_cache.value_or(true);
    TC_TRY(mapping, schedule.lower(target.gpu.device, {.readonly_cache = readonly_cache}));
    mapping.program.header = gpu::report(mapping);
    return mapping;
  }
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

/// Passes that a schedule takes the place of begin here.
constexpr char kLastPass[] = "scop";

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

}  // namespace

Schedule::Schedule(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<Schedule> Schedule::create(std::string_view text, const Request& request) {
  return guarded([&]() -> Result<Schedule> {
    if (request.backend == Backend::kCpu) return fail("a schedule of blocks and threads is for a GPU or the simulator");
    compile::Settings front;
    front.entry = request.entry;
    front.backend = request.backend;
    compile::Compilation compilation;
    compilation.source = std::make_shared<const Source>("tc", std::string(text));
    TC_TRY_VOID(compile::run_passes(front, compilation, "program"));
    TC_TRY(settings, settings_of(request, *compilation.program));
    TC_TRY_VOID(check_sizes(settings, *compilation.program));
    // What is done to a program before it is mapped is the user's to do here.
    TC_TRY_VOID(compile::run_passes(settings, compilation, "specialise"));
    settings.mapping.strict = true;
    TC_TRY_VOID(compile::run_passes(settings, compilation, kLastPass));
    settings.mapping = request.mapping;
    settings.gpu.ordinal = request.device;
    TC_TRY(schedule, gpu::Schedule::create(*compilation.scop, settings.mapping.outer_schedule_options));
    return Schedule(
        std::make_shared<const Impl>(Impl{std::move(settings), std::move(compilation), std::move(schedule)}));
  });
}

std::vector<std::string> Schedule::loops() const { return impl_->schedule.loops(); }

Result<Schedule::Loops> Schedule::split(const std::string& loop, int64_t size) {
  return guarded([&]() -> Result<Loops> {
    TC_TRY(changed, impl_->schedule.split(loop, size, loop + "_outer", loop + "_inner"));
    const std::vector<std::string> before = loops(), after = changed.loops();
    // The two stand where the one stood.
    const auto at = static_cast<size_t>(std::find(before.begin(), before.end(), loop) - before.begin());
    impl_ = impl_->with(std::move(changed));
    return Loops{after.at(at), after.at(at + 1)};
  });
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
  return guarded([&]() -> Result<std::string> {
    TC_TRY(changed, impl_->schedule.fuse(outer, inner, outer + "_" + inner));
    const std::vector<std::string> before = loops();
    const auto at = static_cast<size_t>(std::find(before.begin(), before.end(), outer) - before.begin());
    impl_ = impl_->with(std::move(changed));
    return loops().at(at);
  });
}

Result<void> Schedule::reorder(const std::vector<std::string>& loops) {
  return guarded([&]() -> Result<void> {
    TC_TRY(changed, impl_->schedule.reorder(loops));
    impl_ = impl_->with(std::move(changed));
    return {};
  });
}

Result<void> Schedule::distribute(const std::string& loop) {
  return guarded([&]() -> Result<void> {
    TC_TRY(changed, impl_->schedule.distribute(loop));
    impl_ = impl_->with(std::move(changed));
    return {};
  });
}

Result<void> Schedule::merge(const std::string& first, const std::string& second) {
  return guarded([&]() -> Result<void> {
    TC_TRY(changed, impl_->schedule.merge(first, second));
    impl_ = impl_->with(std::move(changed));
    return {};
  });
}

Result<void> Schedule::sink(const std::string& name, const std::string& loop) {
  return guarded([&]() -> Result<void> {
    TC_TRY(changed, impl_->schedule.sink(name, loop));
    impl_ = impl_->with(std::move(changed));
    return {};
  });
}

Result<ReductionLoops> Schedule::split_reduction(const std::string& loop, int64_t parts, Part part) {
  return guarded([&]() -> Result<ReductionLoops> {
    if (impl_->settings.mapping.strict) {
      return fail("cannot split the reduction over '{}': the request is strict, its order is that of the source", loop);
    }
    gpu::ReductionLoops made;
    TC_TRY(changed, impl_->schedule.split_reduction(loop, parts, part == Part::kCyclic, made));
    impl_ = impl_->with(std::move(changed));
    return ReductionLoops{made.part, made.rest, made.together, made.partial, made.parts};
  });
}

Result<void> Schedule::launch(const std::string& at) {
  return guarded([&]() -> Result<void> {
    TC_TRY(changed, impl_->schedule.launch(at));
    impl_ = impl_->with(std::move(changed));
    return {};
  });
}

Result<void> Schedule::bind(const std::string& loop, Axis axis) {
  return guarded([&]() -> Result<void> {
    const auto to = axis < Axis::kThreadX ? gpu::Dealt::To::kBlocks : gpu::Dealt::To::kThreads;
    TC_TRY(changed, impl_->schedule.bind(loop, to, static_cast<int>(axis) % 3));
    impl_ = impl_->with(std::move(changed));
    return {};
  });
}

Result<void> Schedule::reduce_by_warp(const std::string& loop) {
  return guarded([&]() -> Result<void> {
    if (impl_->settings.mapping.strict) {
      return fail("cannot reduce '{}' by a warp: the request is strict, its order is that of the source", loop);
    }
    TC_TRY(changed, impl_->schedule.reduce_by_warp(loop));
    impl_ = impl_->with(std::move(changed));
    return {};
  });
}

Result<void> Schedule::unroll(const std::string& loop) {
  return guarded([&]() -> Result<void> {
    TC_TRY(changed, impl_->schedule.unroll(loop));
    impl_ = impl_->with(std::move(changed));
    return {};
  });
}

Result<void> Schedule::vectorize(const std::string& loop) {
  return guarded([&]() -> Result<void> {
    TC_TRY(changed, impl_->schedule.vectorize(loop));
    impl_ = impl_->with(std::move(changed));
    return {};
  });
}

Result<void> Schedule::promote(const std::string& tensor, const std::string& loop, Memory memory, Fetch fetch) {
  return guarded([&]() -> Result<void> {
    const gpu::CopyOptions options{.vector_bytes = fetch == Fetch::kVectorized ? 16 : 1,
                                   .by_one = fetch == Fetch::kOneThread};
    const auto buffer = memory == Memory::kShared ? gpu::Buffer::kShared : gpu::Buffer::kRegisters;
    TC_TRY(changed, impl_->schedule.promote(tensor, loop, buffer, options));
    impl_ = impl_->with(std::move(changed));
    return {};
  });
}

Result<void> Schedule::stage(const std::string& tensor, const std::string& loop, int64_t stages) {
  return guarded([&]() -> Result<void> {
    TC_TRY(changed, impl_->schedule.stage(tensor, loop, stages));
    impl_ = impl_->with(std::move(changed));
    return {};
  });
}

Result<std::string> Schedule::tile_text() const {
  return guarded([&]() -> Result<std::string> {
    TC_TRY(mapping, impl_->mapping());
    return tile::to_text(mapping.program);
  });
}

Result<std::string> Schedule::cuda_text() const {
  return guarded([&]() -> Result<std::string> {
    TC_TRY(mapping, impl_->mapping());
    return cuda::print(mapping.program);
  });
}

Result<CompiledKernel> Schedule::compile() const {
  return guarded([&]() -> Result<CompiledKernel> {
    compile::Settings settings = impl_->settings;
    if (settings.backend == Backend::kCuda) {
      TC_TRY(target, compile::target_of_device(settings.gpu.ordinal));
      settings.gpu = target;
    }
    compile::Compilation compilation = impl_->compilation;
    TC_TRY(mapping, impl_->mapping(settings));
    compilation.mapping = std::move(mapping);
    TC_TRY(tile_pass, compile::find_pass("tile", settings.backend));
    compilation.done = tile_pass + 1;
    TC_TRY_VOID(compile::run_passes(settings, compilation));
    return kernel_of(settings, compilation);
  });
}

Result<Counters> Schedule::count(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                 std::span<const Scalar> scalars) const {
  return guarded([&]() -> Result<Counters> {
    TC_TRY(mapping, impl_->mapping());
    const ir::Program& program = *impl_->compilation.specialised;
    const std::vector<std::string> names = inputs_of(program);
    if (inputs.size() != names.size() || outputs.size() != program.results.size() ||
        scalars.size() != program.scalars.size()) {
      return fail("'{}' takes {} tensors and {} scalars, and has {} results", program.name, names.size(),
                  program.scalars.size(), program.results.size());
    }
    tile::Arguments arguments;
    const Specs specs = specs_of(program, impl_->settings.layouts);
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

}  // namespace tc::api
