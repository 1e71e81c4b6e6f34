#pragma once

#include "tc/gpu/strategy/contraction/plan.h"

namespace tc::gpu {

/// Whether elements that are read are narrower than 32 bits, so that each costs a conversion, too.
bool converts_operands(const Contraction& contraction);

/// Whether blocks compute an operand where they would copy it.
bool has_computed(const Contraction& contraction);

/// Registers of 32 bits that a thread of the plan needs, estimated.
int64_t registers_of_thread(const Contraction& contraction, const ContractionPlan& plan);

/// Values of an operand that a warp's fragments have for an atom's part of the reduction.
double fragment_values(const ContractionPlan& plan, size_t operand);

/// The time of two things done at once: neither hides behind the other as a whole.
double together(double a, double b);

/// How a plan's blocks share a processor, if a thread needs so many registers and a block so many bytes.
struct BlocksOfProcessor {
  double blocks = 1;   ///< of the device
  double threads = 1;  ///< of a block, in whole warps
  double each = 1;     ///< blocks of a processor, one after the other or at once
  double waves = 1;
  double warps = 1;  ///< of the blocks that run at once
};
BlocksOfProcessor blocks_of_processor(const ContractionPlan& plan, const Device& device, int64_t registers,
                                      int64_t shared_bytes);

/// Cycles that take so many microseconds, or a little more.
double cycles_within(double us, const Device& device);

/// Cycles that all products take one by one, of each element: no plan without tensor cores takes less.
double least_element_cycles(const Contraction& contraction, const Device& device);

/// Cycles of the device from the launch's first block to its last, estimated from what a processor issues, what shared
/// memory and the L2 cache give, and what steps and waves of blocks cost.
double estimated_cycles(const Contraction& contraction, const ContractionPlan& plan, const Device& device);

/// A lower bound of the same, for all plans without warpgroups that differ from this one in how operands are copied.
/// Their boxes may be longer, their copies smaller, and their buffers fewer. Reads of theirs may be of fewer elements
/// or have more conflicts, and their blocks more than `shared_bytes`.
double least_cycles(const Contraction& contraction, const ContractionPlan& plan, const Device& device,
                    int64_t shared_bytes);

/// The same of a product in a chain, whose kernel needs so many registers of a thread and so many bytes of shared
/// memory. `in_ring`: copies are under way while the product before it is added up.
double chained_cycles(const Contraction& contraction, const ContractionPlan& plan, const Device& device,
                      int64_t registers, int64_t shared_bytes, bool in_ring);

/// The cycles of two products of which the first is made in slabs, steps of the second one's reduction. Its plan is
/// that of one slab. `instructions` are a thread's for one of its results.
struct StreamCost {
  double first = 0, second = 0;  ///< shares of the kernel's time
};
StreamCost streamed_cycles(const Contraction& first, const ContractionPlan& of_first, const Contraction& second,
                           const ContractionPlan& of_second, double instructions, const Device& device,
                           int64_t registers, int64_t shared_bytes);

/// What comes before the first product of a chain is added up.
double chain_start_cycles();

}  // namespace tc::gpu
