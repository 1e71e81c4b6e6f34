#include "tc/gpu/strategy/classic/classic.h"

#include "tc/gpu/lower/translate.h"
#include "tc/gpu/lower/unroll.h"
#include "tc/gpu/mapping/barriers.h"
#include "tc/gpu/mapping/bind.h"
#include "tc/gpu/mapping/promote.h"
#include "tc/gpu/mapping/registers.h"
#include "tc/support/check.h"

namespace tc::gpu {
namespace {

/// On blocks and threads, with what is held in shared memory. Reductions go step by step where more is held then.
Kernel bound(const poly::Scop& part, const options::MappingOptions& options, const Device& device) {
  Promoted whole = hold_in_shared(bind(part, options, device), options, device);
  if (!whole.crowded && !options.shared_depth) return std::move(whole.kernel);
  Promoted steps = hold_in_shared(bind(part, options, device, true), options, device);
  return std::move(steps.tensors > whole.tensors ? steps.kernel : whole.kernel);
}

}  // namespace

Launch classic(const poly::Scop& part, const options::MappingOptions& options, const Device& device,
               const std::string& name) {
  Kernel kernel = bound(part, options, device);
  const std::optional<std::string> fault = block_fault(kernel);
  TC_CHECK(!fault, "kernel {}: {}", name, *fault);
  kernel.chosen = options;
  kernel = place_barriers(std::move(kernel));
  if (options.use_private_memory.value_or(true)) kernel = hold_in_registers(std::move(kernel), options.private_depth);
  kernel.unroll_copies = options.unroll_copy_shared.value_or(false);
  tile::Kernel code = translate(kernel, name);
  if (options.unroll) code.body = unroll_loops(code.body, *options.unroll);
  return {std::move(kernel), std::move(code)};
}

}  // namespace tc::gpu
