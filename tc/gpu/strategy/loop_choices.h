#pragma once

#include <vector>

#include "tc/gpu/mapping/fused_group.h"
#include "tc/gpu/mapping/kernel.h"
#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/options/mapping.h"

/// How the loops of a launch are cut into blocks' and threads' tiles, for people: nothing is generated from it.
namespace tc::gpu {

std::vector<LoopChoice> loops_of(const Contraction& contraction, const ContractionPlan& plan);

/// Of a part by the recipe for elements or for rows, whose choice the options are.
std::vector<LoopChoice> loops_of(const FusedGroup& part, const options::MappingOptions& chosen);

/// Of a part by the classic strategy, which has bound the kernel: the members of its outermost band.
std::vector<LoopChoice> loops_of(const poly::Scop& part, const Kernel& bound);

}  // namespace tc::gpu
