#include "tc/gpu/strategy/schedule.h"

#include <algorithm>

#include "tc/gpu/cost/estimate.h"
#include "tc/gpu/lower/body.h"
#include "tc/gpu/mapping/barriers.h"
#include "tc/gpu/mapping/bind_loops.h"

#include "tc/gpu/lower/translate.h"
#include "tc/gpu/lower/vectorize.h"
#include "tc/gpu/mapping/registers.h"
#include "tc/gpu/mapping/thread_tile.h"
#include "tc/gpu/strategy/coverage.h"
#include "tc/gpu/strategy/expected.h"
#include "tc/gpu/strategy/limits.h"
#include "tc/ir/names.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/loop_fusion.h"
#include "tc/poly/loop_text.h"
#include "tc/poly/loop_tree.h"
#include "tc/poly/schedule.h"
#include "tc/support/identifier.h"
#include "tc/support/round.h"
#include "tc/tile/certificate.h"
#include "tc/tile/promise.h"
#include "tc/tile/shared_divisors.h"
#include "tc/tile/verify.h"

namespace tc::gpu {
namespace {

/// All that a kernel's text names.
ir::Names names_in(const tile::Kernel& kernel, const ir::Program& program) {
  ir::Names names = kernel_names(program);
  tile::for_each_node(kernel.body, [&](const tile::Node& node) {
    if (const std::string* variable = tile::bound_variable(node)) names.add(*variable);
    if (const tile::Tensor* tensor = tile::allocated_tensor(node)) names.add(tensor->name);
  });
  return names;
}

/// The place below a loop's band; an error where threads run the loop by themselves.
Result<poly::NodeRef> below_loop(const Kernel& kernel, const std::string& loop) {
  const std::optional<poly::NodeRef> mark = poly::find_mark(kernel.scop, poly::kLoopMark + loop);
  const auto refuse = [&] { return fail("'{}' is run by threads; a buffer stands above what is on threads", loop); };
  if (!mark) return refuse();
  poly::NodeRef ref = *mark;
  isl::schedule_node node = poly::node_at(kernel.scop, ref);
  for (isl::schedule_node at = node; at.has_parent(); at = at.parent()) {
    if (!at.isa<isl::schedule_node_mark>() || !poly::mark_name(at).starts_with(kBindMark)) continue;
    if (kernel.binding(poly::mark_name(at)).to == Dealt::To::kThreads) return refuse();
  }
  while (!node.isa<isl::schedule_node_band>()) {
    if (node.isa<isl::schedule_node_mark>() && poly::mark_name(node).starts_with(kBindMark) &&
        kernel.binding(poly::mark_name(node)).to == Dealt::To::kThreads) {
      return refuse();
    }
    ref = ref.below();
    node = node.child(0);
  }
  return ref.below();
}

Result<void> check_limits_of(const Kernel& kernel, const Device& device) {
  int64_t threads = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    const char name = static_cast<char>('x' + axis);
    if (kernel.block[axis] > device.block[axis]) {
      return fail("a block has {} threads in {}; the device has at most {}", kernel.block[axis], name,
                  device.block[axis]);
    }
    if (kernel.grid[axis] > device.grid[axis]) {
      return fail("the grid has {} blocks in {}; the device has at most {}", kernel.grid[axis], name,
                  device.grid[axis]);
    }
    threads *= kernel.block[axis];
  }
  if (threads > device.threads_per_block) {
    return fail("a block has {} threads; the device has at most {}", threads, device.threads_per_block);
  }
  return {};
}

Result<void> check_program(const tile::Program& program, const Device& device) {
  const tile::Verification verification = tile::verify(program, limits_of(device));
  if (!verification.holds()) return fail("the schedule makes no valid kernel: {}", verification.faults.at(0));
  for (const tile::Kernel& kernel : program.kernels) {
    const tile::Certificate certificate = tile::certify(kernel);
    if (!certificate.races.empty()) return fail("the schedule makes no valid kernel: {}", certificate.races.at(0));
  }
  return {};
}

/// Each kernel does what the schedule says that it does.
Result<void> check_work(const Mapping& mapping) {
  for (const tile::Coverage& coverage : cover(mapping)) {
    if (!coverage.holds()) return fail("the schedule makes no valid kernel: {}", coverage.faults.at(0));
  }
  return {};
}

}  // namespace

Result<Schedule> Schedule::create(const poly::Scop& scop, const options::SchedulerOptions& options,
                                  const Device& device) {
  TC_TRY(scheduled, poly::schedule(scop, options));
  return poly::within_budget(*scop.context, [&] { return Schedule(poly::name_loops(scheduled), device); });
}

std::vector<std::string> Schedule::loops() const { return poly::loop_names(scop_); }

std::string Schedule::to_text() const {
  poly::LoopNotes notes;
  for (const std::string& loop : unrolled_) notes.loops[loop] = vectors_.count(loop) > 0 ? "vector" : "unrolled";
  for (const std::string& loop : by_warp_) notes.loops[loop] = "a warp";
  for (const auto& [loop, place] : bound_) {
    std::string& all = notes.loops[loop];
    all = all.empty() ? text_of(place) : fmt::format("{}, {}", text_of(place), all);
  }
  for (const auto& [loop, teams] : persistent_) {
    std::string& all = notes.loops[loop];
    all += fmt::format("{}persistent{}", all.empty() ? "" : ", ", teams > 1 ? " in two teams" : "");
  }
  for (const auto& [loop, operation] : tiles_) {
    std::string& all = notes.loops[loop];
    all = fmt::format("{}{}a tile: {}", all, all.empty() ? "" : ", ", text_of(operation));
  }
  for (const Hold& hold : holds_) {
    std::string text = fmt::format("buffer {} in {}", poly::buffer_text(scop_, hold.tensor, hold.loop),
                                   hold.buffer == Buffer::kShared ? "shared memory" : "registers");
    if (hold.boxes) text += ", by boxes";
    if (hold.options.stages > 1) text += fmt::format(", {} stages", hold.options.stages);
    notes.buffers[hold.loop].push_back(std::move(text));
  }
  return poly::loop_text(scop_, notes);
}

Schedule Schedule::with(poly::Scop scop) const {
  Schedule result = *this;
  result.scop_ = std::move(scop);
  return result;
}

/// Nothing has been said of the loop's iterations.
Result<void> Schedule::check_unbound(const std::string& loop) const {
  TC_TRY_VOID(poly::find_loop(scop_, loop));
  if (bound_.count(loop) > 0) return fail("'{}' is bound; its loop stays as it is", loop);
  if (by_warp_.count(loop) > 0) return fail("a warp shares '{}'; its loop stays as it is", loop);
  if (std::any_of(holds_.begin(), holds_.end(), [&](const Hold& hold) { return hold.loop == loop; })) {
    return fail("a buffer stands below '{}'; its loop stays as it is", loop);
  }
  return {};
}

/// The loop may be cut and moved, too.
Result<void> Schedule::check_free(const std::string& loop) const {
  TC_TRY_VOID(check_unbound(loop));
  if (tiles_.empty()) return {};
  const std::string tile = tile_of(launch_with(loop));
  if (tile.empty()) return {};
  return fail("the launch of '{}' has the tile '{}'; its loop stays as it is", loop, tile);
}

Result<Schedule> Schedule::split(const std::string& loop, int64_t size, const std::string& outer,
                                 const std::string& inner) const {
  TC_TRY_VOID(check_free(loop));
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    const std::string first = poly::fresh_loop_name(scop_, outer), second = poly::fresh_loop_name(scop_, inner);
    TC_TRY(scop, poly::split_loop(scop_, loop, size, first, second));
    Schedule result = with(std::move(scop));
    if (const auto all = sizes_.find(loop); all != sizes_.end()) result.sizes_[first] = ceil_div(all->second, size);
    result.sizes_[second] = size;
    return result;
  });
}

Result<Schedule> Schedule::fuse(const std::string& outer, const std::string& inner, const std::string& fused) const {
  TC_TRY_VOID(check_free(outer));
  TC_TRY_VOID(check_free(inner));
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY(scop, poly::fuse_loops(scop_, outer, inner, poly::fresh_loop_name(scop_, fused)));
    return with(std::move(scop));
  });
}

Result<Schedule> Schedule::reorder(const std::vector<std::string>& loops) const {
  for (const std::string& loop : loops) TC_TRY_VOID(check_free(loop));
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY(scop, poly::reorder_loops(scop_, loops));
    return with(std::move(scop));
  });
}

Result<Schedule> Schedule::distribute(const std::string& loop) const {
  TC_TRY_VOID(check_free(loop));
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY(scop, poly::distribute_loop(scop_, loop));
    const std::vector<std::string> before = loops();
    Schedule result = with(std::move(scop));
    const auto size = sizes_.find(loop);
    for (const std::string& name : result.loops()) {
      const bool is_new = std::count(before.begin(), before.end(), name) == 0;
      if (is_new && size != sizes_.end()) result.sizes_[name] = size->second;
    }
    return result;
  });
}

Result<Schedule> Schedule::partition(const std::string& loop, int64_t at, std::string& rest) const {
  TC_TRY_VOID(check_free(loop));
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY(made, poly::partition_loop(scop_, loop, at));
    for (const auto& [copied, name] : made.rest) TC_TRY_VOID(check_free(copied));
    rest = made.rest.at(loop);
    Schedule result = with(std::move(made.scop));
    for (const auto& [copied, name] : made.rest) {
      if (unrolled_.count(copied) > 0) result.unrolled_.insert(name);
      if (vectors_.count(copied) > 0) result.vectors_.insert(name);
      if (const auto size = sizes_.find(copied); size != sizes_.end()) result.sizes_[name] = size->second;
    }
    if (const auto size = result.sizes_.find(loop); size != result.sizes_.end()) {
      result.sizes_[rest] = size->second - at;
      size->second = at;
    }
    return result;
  });
}

/// With another tree, in which what has been bound, shared by warps and promoted is asked again.
Result<Schedule> Schedule::settled(poly::Scop scop) const {
  Schedule result = with(std::move(scop));
  TC_TRY_VOID(result.check_places());
  for (const std::string& loop : by_warp_) TC_TRY_VOID(poly::check_reduction(result.scop_, loop));
  TC_TRY_VOID(result.check_decided());
  return result;
}

Result<Schedule> Schedule::merge(const std::string& first, const std::string& second) const {
  TC_TRY_VOID(check_free(first));
  TC_TRY_VOID(check_free(second));
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY(scop, poly::merge_loops(scop_, first, second));
    return settled(std::move(scop));
  });
}

Result<Schedule> Schedule::sink(const std::string& name, const std::string& loop) const {
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY(scop, poly::sink_below(scop_, name, loop));
    return settled(std::move(scop));
  });
}

Result<Schedule> Schedule::launch(const std::string& name) const {
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY(scop, poly::begin_launch(scop_, name));
    return with(std::move(scop));
  });
}

Result<Schedule> Schedule::split_reduction(const std::string& loop, int64_t count, bool cyclic,
                                           ReductionLoops& loops) const {
  TC_TRY_VOID(check_free(loop));
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY(split, gpu::split_reduction(scop_, loop, count, cyclic));
    loops = split.loops;
    return settled(std::move(split.scop));
  });
}

Result<Schedule> Schedule::reduce_by_warp(const std::string& loop) const {
  TC_TRY_VOID(check_free(loop));
  if (unrolled_.count(loop) > 0) return fail("no warp shares '{}': it is unrolled", loop);
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY_VOID(poly::check_reduction(scop_, loop));
    Schedule result = *this;
    result.by_warp_.insert(loop);
    return result;
  });
}

Result<Schedule> Schedule::unroll(const std::string& loop) const {
  TC_TRY_VOID(check_unbound(loop));
  Schedule result = *this;
  result.unrolled_.insert(loop);
  if (tiles_.empty()) return result;
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY_VOID(result.check_decided());
    return result;
  });
}

Result<Schedule> Schedule::vectorize(const std::string& loop) const {
  TC_TRY(result, unroll(loop));
  result.vectors_.insert(loop);
  return result;
}

Result<Schedule> Schedule::promote(const std::string& tensor, const std::string& loop, Buffer buffer,
                                   const CopyOptions& options, bool boxes) const {
  TC_TRY_VOID(poly::find_loop(scop_, loop));
  const auto& tensors = scop_.program->tensors;
  if (std::none_of(tensors.begin(), tensors.end(), [&](const ir::Tensor& t) { return t.name == tensor; })) {
    return fail("there is no tensor '{}'", tensor);
  }
  if (boxes && buffer != Buffer::kShared) return fail("boxes of '{}' come to shared memory", tensor);
  if (boxes && tile_of(launch_with(loop)).empty()) {
    return fail("boxes of '{}' come to a tile operation: tensorize a loop below '{}' first", tensor, loop);
  }
  Schedule result = *this;
  result.holds_.push_back({tensor, loop, buffer, options, boxes});
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY_VOID(result.check_decided());
    return result;
  });
}

Result<Schedule> Schedule::stage(const std::string& tensor, const std::string& loop, int64_t stages) const {
  TC_TRY_VOID(poly::find_loop(scop_, loop));
  if (stages < 2 || stages > options::kMaxCopyStages) {
    return fail("cannot stage '{}': {} stages; there may be 2 to {}", tensor, stages, options::kMaxCopyStages);
  }
  if (bound_.count(loop) > 0) return fail("cannot stage '{}': the iterations of '{}' run at once", tensor, loop);
  if (unrolled_.count(loop) > 0) return fail("cannot stage '{}': '{}' is unrolled", tensor, loop);
  Schedule result = *this;
  const auto held = std::find_if(result.holds_.begin(), result.holds_.end(), [&](const Hold& hold) {
    return hold.tensor == tensor && hold.loop == loop && hold.buffer == Buffer::kShared;
  });
  if (held == result.holds_.end()) return fail("'{}' is not held in shared memory below '{}'", tensor, loop);
  for (const Hold& other : holds_) {
    if (other.loop != loop || other.options.stages == 1 || other.options.stages == stages) continue;
    return fail("cannot stage '{}': '{}' has {} stages over '{}'", tensor, other.tensor, other.options.stages, loop);
  }
  held->options.stages = stages;
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY_VOID(result.check_decided());
    return result;
  });
}

Result<Kernel> Schedule::bound(const poly::Scop& launch, const Device& device) const {
  std::map<std::string, Dealt> here;
  for (const std::string& loop : poly::loop_names(launch)) {
    const auto found = bound_.find(loop);
    if (found == bound_.end()) continue;
    const auto [level, axis] = found->second;
    if (level != Level::kBlock && level != Level::kThread) {
      return fail("'{}' is on {}, which only loops of a tile operation are", loop, text_of(found->second));
    }
    here[loop] = Dealt{level == Level::kBlock ? Dealt::To::kBlocks : Dealt::To::kThreads, axis, 1};
  }
  std::set<std::string> by_warp;
  for (const std::string& loop : by_warp_) {
    if (poly::find_mark(launch, poly::kLoopMark + loop)) by_warp.insert(loop);
  }
  TC_TRY(kernel, bind_loops(launch, here, by_warp));
  TC_TRY_VOID(check_limits_of(kernel, device));
  if (const std::optional<std::string> fault = block_fault(kernel)) return fail("{}", *fault);
  kernel.unrolled = unrolled_;
  return kernel;
}

/// With buffers and barriers.
Result<Kernel> Schedule::decided(const poly::Scop& launch, const Device& device) const {
  TC_TRY(kernel, bound(launch, device));
  const std::vector<std::string> loops = poly::loop_names(launch);
  const auto is_here = [&](const Hold& hold) { return std::count(loops.begin(), loops.end(), hold.loop) > 0; };
  for (const Hold& hold : holds_) {
    if (hold.buffer != Buffer::kShared || !is_here(hold)) continue;
    TC_TRY(place, below_loop(kernel, hold.loop));
    TC_TRY(held, hold_in_shared_at(kernel, place, hold.tensor, hold.options));
    kernel = std::move(held);
    if (hold.options.stages > 1) kernel.staged[hold.loop] = hold.options.stages;
  }
  kernel = place_barriers(std::move(kernel));
  for (const Hold& hold : holds_) {
    if (hold.buffer != Buffer::kRegisters || !is_here(hold)) continue;
    TC_TRY(place, below_loop(kernel, hold.loop));
    TC_TRY(held, hold_in_threads_at(kernel, place, hold.tensor));
    kernel = std::move(held);
  }
  return hold_in_registers(std::move(kernel));
}

Result<Mapping> Schedule::lower(const Device& device, const options::MappingOptions& options) const {
  return poly::within_budget(*scop_.context, [&]() -> Result<Mapping> {
    Mapping mapping;
    mapping.program.name = scop_.program->name;
    for (const poly::Scop& launch : launches()) {
      const std::string name = fmt::format("{}_{}", identifier_of(scop_.program->name), mapping.kernels.size());
      if (!tile_of(launch).empty()) {
        TC_TRY(made, tile_launch(launch, tiled(launch, true), device, name));
        mapping.estimates.push_back(estimate(made.code, device, expected_of(made.kernel)));
        mapping.program.kernels.push_back(std::move(made.code));
        mapping.kernels.push_back(std::move(made.kernel));
        continue;
      }
      TC_TRY(kernel, decided(launch, device));
      tile::Kernel code = translate(kernel, name);
      if (!vectors_.empty()) {
        ir::Names names = names_in(code, *scop_.program);
        code.body = gpu::vectorize(code.body, *scop_.program, names);
      }
      mapping.estimates.push_back(estimate(code, device));
      mapping.program.kernels.push_back(std::move(code));
      mapping.kernels.push_back(std::move(kernel));
    }
    mapping.edges = edges_between(scop_, mapping.kernels);
    mapping.program.workspace = workspace_of(scop_, mapping.program.kernels);
    mapping.program = tile::promise(tile::share_divisors(std::move(mapping.program), options.strict),
                                    {.readonly_cache = options.use_readonly_cache.value_or(true),
                                     .processors = processors_that_start_early(device)});
    TC_TRY_VOID(check_program(mapping.program, device));
    if (!tiles_.empty()) TC_TRY_VOID(check_work(mapping));
    return mapping;
  });
}

}  // namespace tc::gpu
