#include "tc/compile/strategy_options.h"

#include "tc/cpu/runtime.h"
#include "tc/cpu/target.h"

namespace tc::compile {

Result<cpu::StrategyOptions> strategy_options(const Settings& settings) {
  TC_TRY(target, cpu::canonical_target(settings.target));
  return cpu::StrategyOptions{.cpu = settings.options,
                              .layouts = settings.layouts,
                              .vector_bits = cpu::vector_bits(target),
                              .threads = settings.threads > 0 ? settings.threads : cpu::thread_count(),
                              .verify = settings.verify};
}

}  // namespace tc::compile
