#include "tc/cpu/schedule.h"

#include <algorithm>

#include "tc/cpu/from_poly.h"
#include "tc/cpu/program_edit.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/dependences.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/loop_fusion.h"
#include "tc/poly/loop_text.h"
#include "tc/poly/loop_tree.h"
#include "tc/poly/promote.h"
#include "tc/poly/rebuild.h"
#include "tc/poly/schedule.h"

namespace tc::cpu {
namespace {

/// Of a loop that is laid out, or whose iterations are lanes: more fill no registers, and LLVM takes long over them.
constexpr int64_t kMaxLaidOut = 64;

/// Of a statement, by all unrolled loops around it: more take LLVM minutes.
constexpr int64_t kMaxCopies = 512;

/// The place of a loop's band, below its marks.
poly::NodeRef band_of(const poly::Scop& scop, const std::string& loop) {
  poly::NodeRef ref = poly::find_mark(scop, poly::kLoopMark + loop)->below();
  while (!poly::node_at(scop, ref).isa<isl::schedule_node_band>()) ref = ref.below();
  return ref;
}

poly::Scop marked(const poly::Scop& scop, const poly::NodeRef& ref, const char* name) {
  const isl::schedule_node node = poly::node_at(scop, ref);
  poly::Scop result = scop;
  result.schedule = node.insert_mark(poly::make_id(node.ctx(), name)).schedule();
  return result;
}

}  // namespace

const char* Schedule::word_of(Mark mark) {
  if (mark == Mark::kParallel) return "parallel";
  return mark == Mark::kVector ? "vector" : "unrolled";
}

Result<Schedule> Schedule::create(const poly::Scop& scop, const options::SchedulerOptions& options) {
  TC_TRY(scheduled, poly::schedule(scop, options));
  return poly::within_budget(*scop.context, [&] { return Schedule(poly::name_loops(scheduled)); });
}

std::vector<std::string> Schedule::loops() const { return poly::loop_names(scop_); }

std::string Schedule::to_text() const {
  poly::LoopNotes notes;
  for (const auto& [loop, mark] : marked_) notes.loops[loop] = word_of(mark);
  for (const Hold& hold : holds_) {
    notes.buffers[hold.loop].push_back(fmt::format("buffer {} in {}", poly::buffer_text(scop_, hold.tensor, hold.loop),
                                                   hold.in_registers ? "registers" : "the cache"));
  }
  return poly::loop_text(scop_, notes);
}

Schedule Schedule::with(poly::Scop scop) const {
  Schedule result = *this;
  result.scop_ = std::move(scop);
  return result;
}

Result<void> Schedule::check_free(const std::string& loop) const {
  TC_TRY_VOID(poly::find_loop(scop_, loop));
  if (const auto found = marked_.find(loop); found != marked_.end()) {
    return fail("'{}' is {}; its loop stays as it is", loop, word_of(found->second));
  }
  if (std::any_of(holds_.begin(), holds_.end(), [&](const Hold& hold) { return hold.loop == loop; })) {
    return fail("a buffer stands below '{}'; its loop stays as it is", loop);
  }
  return {};
}

Result<Schedule> Schedule::split(const std::string& loop, int64_t size, const std::string& outer,
                                 const std::string& inner) const {
  TC_TRY_VOID(check_free(loop));
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY(scop, poly::split_loop(scop_, loop, size, poly::fresh_loop_name(scop_, outer),
                                  poly::fresh_loop_name(scop_, inner)));
    return with(std::move(scop));
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
    return settled(std::move(scop));
  });
}

Result<Schedule> Schedule::distribute(const std::string& loop) const {
  TC_TRY_VOID(check_free(loop));
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY(scop, poly::distribute_loop(scop_, loop));
    return settled(std::move(scop));
  });
}

Result<Schedule> Schedule::partition(const std::string& loop, int64_t at, std::string& rest) const {
  TC_TRY_VOID(check_free(loop));
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY(made, poly::partition_loop(scop_, loop, at));
    Schedule copied = *this;
    for (const auto& [below, name] : made.rest) {
      const auto is_here = [&](const Hold& hold) { return hold.loop == below; };
      if (std::any_of(holds_.begin(), holds_.end(), is_here)) TC_TRY_VOID(check_free(below));
      if (const auto mark = marked_.find(below); mark != marked_.end()) copied.marked_[name] = mark->second;
    }
    rest = made.rest.at(loop);
    return copied.settled(std::move(made.scop));
  });
}

/// With another tree, in which the marks and buffers are proved again.
Result<Schedule> Schedule::settled(poly::Scop scop) const {
  Schedule result = with(std::move(scop));
  for (const auto& [loop, mark] : marked_) {
    if (mark != Mark::kUnrolled) TC_TRY_VOID(poly::check_at_once(result.scop_, loop, mark == Mark::kVector));
    if (mark == Mark::kUnrolled) TC_TRY_VOID(result.check_copies(loop));
  }
  if (!holds_.empty()) TC_TRY_VOID(result.lower());
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
    for (const auto& [marked, mark] : marked_) {
      const poly::NodeRef ref = *poly::find_mark(scop, poly::kLoopMark + marked);
      poly::Scop below = scop;
      below.schedule = poly::subtree(poly::node_at(scop, ref));
      if (mark == Mark::kVector && poly::loop_names(below).size() > 1) {
        return fail("cannot sink '{}' below '{}': '{}' is a vector, and no loop stands below it", name, loop, marked);
      }
    }
    return settled(std::move(scop));
  });
}

Result<Schedule> Schedule::replaced(const std::string& loop, poly::Scop scop) const {
  TC_TRY_VOID(check_free(loop));
  return poly::within_budget(*scop_.context, [&] { return settled(std::move(scop)); });
}

Result<Schedule> Schedule::parallelize(const std::string& loop) const {
  TC_TRY_VOID(check_free(loop));
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY_VOID(poly::check_parallel(scop_, loop));
    Schedule result = *this;
    result.marked_[loop] = Mark::kParallel;
    TC_TRY_VOID(result.lower());
    return result;
  });
}

Result<void> Schedule::check_few_iterations(const std::string& loop, const char* verb) const {
  TC_TRY(ref, poly::find_loop(scop_, loop));
  const int64_t extent = poly::loop_range(scop_, ref).extent;
  if (extent <= kMaxLaidOut) return {};
  return fail("cannot {} '{}': it has {} iterations, and may have {}; split it first", verb, loop, extent, kMaxLaidOut);
}

/// Refused where the unrolled loops around a statement lay it out too often.
Result<void> Schedule::check_copies(const std::string& loop) const {
  std::map<std::string, int64_t> extents, copies;
  for (const auto& [unrolled, mark] : marked_) {
    if (mark != Mark::kUnrolled) continue;
    TC_TRY(ref, poly::find_loop(scop_, unrolled));
    extents[poly::kLoopMark + unrolled] = poly::loop_range(scop_, ref).extent;
  }
  // A statement may stand in several loops, one after the other.
  scop_.schedule.root().foreach_descendant_top_down([&](const isl::schedule_node& leaf) {
    if (leaf.has_children()) return true;
    int64_t here = 1;
    for (isl::schedule_node at = leaf; at.has_parent(); at = at.parent()) {
      if (!poly::is_loop(at)) continue;
      const auto extent = extents.find(poly::mark_name(at));
      if (extent != extents.end()) here = std::min(here * extent->second, int64_t{1} << 40);
    }
    if (here == 1) return true;
    for (const std::string& statement : poly::statements_at(scop_, leaf)) copies[statement] += here;
    return true;
  });
  for (const auto& [statement, all] : copies) {
    if (all <= kMaxCopies) continue;
    return fail("cannot unroll '{}': {} would be laid out {} times, and may be {}", loop, statement, all, kMaxCopies);
  }
  return {};
}

Result<Schedule> Schedule::unroll(const std::string& loop) const {
  TC_TRY_VOID(check_free(loop));
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY_VOID(check_few_iterations(loop, "unroll"));
    Schedule result = *this;
    result.marked_[loop] = Mark::kUnrolled;
    TC_TRY_VOID(result.check_copies(loop));
    return result;
  });
}

Result<Schedule> Schedule::vectorize(const std::string& loop) const {
  TC_TRY_VOID(check_free(loop));
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    TC_TRY_VOID(check_few_iterations(loop, "vectorize"));
    poly::Scop below = scop_;
    below.schedule = poly::subtree(poly::node_at(scop_, band_of(scop_, loop)).child(0));
    if (const std::vector<std::string> loops = poly::loop_names(below); !loops.empty()) {
      return fail("cannot vectorize '{}': the loops {} stand below it; reorder them first", loop,
                  fmt::join(loops, ", "));
    }
    TC_TRY_VOID(poly::check_at_once(scop_, loop, true));
    Schedule result = *this;
    result.marked_[loop] = Mark::kVector;
    return result;
  });
}

Result<Schedule> Schedule::promote(const std::string& tensor, const std::string& loop, bool in_registers) const {
  TC_TRY_VOID(poly::find_loop(scop_, loop));
  const auto& tensors = scop_.program->tensors;
  if (std::none_of(tensors.begin(), tensors.end(), [&](const ir::Tensor& t) { return t.name == tensor; })) {
    return fail("there is no tensor '{}'", tensor);
  }
  return poly::within_budget(*scop_.context, [&]() -> Result<Schedule> {
    if (const auto found = marked_.find(loop); found != marked_.end() && found->second == Mark::kVector) {
      return fail("cannot promote '{}': '{}' is a vector, and no buffer stands below it", tensor, loop);
    }
    Schedule result = *this;
    result.holds_.push_back({tensor, loop, in_registers});
    TC_TRY_VOID(result.lower());
    return result;
  });
}

Result<poly::Scop> Schedule::lower() const {
  return poly::within_budget(*scop_.context, [&]() -> Result<poly::Scop> {
    poly::Scop scop = scop_;
    for (const auto& [loop, mark] : marked_) {
      if (mark == Mark::kParallel) scop = marked(scop, band_of(scop, loop), "parallel");
    }
    for (const Hold& hold : holds_) {
      const poly::NodeRef place = band_of(scop, hold.loop).below();
      const poly::PromoteOptions options{.name = fresh(*scop_.program, hold.tensor + "_tile"),
                                         .in_registers = hold.in_registers};
      TC_TRY(held, poly::promote(scop, place, hold.tensor, options));
      scop = hold.in_registers ? marked(held, place, kSeparateMark) : std::move(held);
    }
    for (const auto& [loop, mark] : marked_) {
      if (mark == Mark::kParallel) continue;
      scop = marked(scop, band_of(scop, loop), mark == Mark::kVector ? "vector" : "unroll");
    }
    scop = poly::contract_temporaries(scop);
    if (const auto violation = poly::find_violation(scop)) return fail("{}", violation->sentence());
    if (const auto fault = poly::promotion_fault(scop)) return fail("{}", *fault);
    return scop;
  });
}

}  // namespace tc::cpu
