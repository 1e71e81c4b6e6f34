#include "tc/gpu/strategy/loop_choices.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tc/gpu/strategy/contraction/selection.h"
#include "tc/ir/expr_text.h"
#include "tc/poly/band_ref.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

int64_t at_or(const std::vector<int64_t>& values, size_t i, int64_t other) {
  return i < values.size() ? values[i] : other;
}

/// The first binding of blocks, or of threads, that deals out members of a band.
const Binding* first_binding(const Kernel& kernel, Dealt::To to) {
  const auto found = std::ranges::find_if(kernel.bindings, [&](const Binding& binding) {
    const auto is_dealt = [](const std::optional<Dealt>& dealt) { return dealt.has_value(); };
    return binding.to == to && !binding.cooperative && std::ranges::any_of(binding.members, is_dealt);
  });
  return found == kernel.bindings.end() ? nullptr : &*found;
}

std::optional<Dealt> dealt(const Binding* binding, size_t member) {
  return binding && member < binding->members.size() ? binding->members[member] : std::nullopt;
}

}  // namespace

std::vector<LoopChoice> loops_of(const Contraction& contraction, const ContractionPlan& plan) {
  std::vector<LoopChoice> loops;
  for (size_t i = 0; i < contraction.parallel.size(); ++i) {
    const Axis& axis = contraction.parallel[i];
    loops.push_back({axis.name, axis.extent, plan.parallel[i].tile, plan.parallel[i].registers});
  }
  for (size_t r = 0; r < contraction.reduction.size(); ++r) {
    const Axis& axis = contraction.reduction[r];
    loops.push_back({axis.name, axis.extent, plan.chunk[r], plan.chunk[r], true});
  }
  if (contraction.selection) {
    const auto slices = static_cast<int64_t>(std::ceil(expected_slices(contraction, plan)));
    loops.push_back({ir::to_text(*contraction.selection), slices_of(contraction), slices, slices});
  }
  return loops;
}

std::vector<LoopChoice> loops_of(const FusedGroup& part, const options::MappingOptions& chosen) {
  std::vector<LoopChoice> loops;
  const GroupStatement& last = part.statements.back();
  for (size_t m = 0; m < part.members.size(); ++m) {
    const std::string& index = last.statement->indices[static_cast<size_t>(last.shared[m])];
    loops.push_back({index, part.members[m].extent, at_or(chosen.tile, m, 1), at_or(chosen.register_tile, m, 1)});
  }
  return loops;
}

std::vector<LoopChoice> loops_of(const poly::Scop& part, const Kernel& bound) {
  std::vector<LoopChoice> loops;
  const std::vector<poly::BandRef> bands = poly::bands(part);
  if (bands.empty()) return loops;
  const poly::BandInfo band = poly::band_info(part, bands.front());
  const Binding* const blocks = first_binding(bound, Dealt::To::kBlocks);
  const Binding* const threads = first_binding(bound, Dealt::To::kThreads);
  if (!blocks) return loops;
  for (size_t m = 0; m < band.extents.size(); ++m) {
    std::string index;
    for (const std::string& statement : band.statements) {
      if (index.empty()) index = band.index_of(static_cast<int>(m), statement);
    }
    LoopChoice loop{.index = index, .extent = band.extents[m], .block = band.extents[m]};
    if (const auto block = dealt(blocks, m)) loop.block = std::min(block->stride, loop.extent);
    const auto thread = dealt(threads, m);
    loop.thread = thread ? ceil_div(loop.block, bound.count(*thread)) : loop.block;
    loops.push_back(std::move(loop));
  }
  return loops;
}

}  // namespace tc::gpu
