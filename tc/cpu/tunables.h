#pragma once

#include <cstdint>
#include <vector>

#include "tc/cpu/strategy.h"

namespace tc::cpu {

/// What is open to a search beside the options that every def has.
struct Tunables {
  /// Of the band of the group that is expected to take longest, outermost member first: how far tiles may reach.
  std::vector<int64_t> extents{};
  /// Register tiles of the same band, those that are expected to be fastest first: what follows its sizes in
  /// CpuOptions::tile. Empty where nothing is summed up.
  std::vector<std::vector<int64_t>> register_tiles{};
};

/// `scop` as schedule_for_cpu() takes it. Errors: the context's budget.
Result<Tunables> tunables(const poly::Scop& scop, const StrategyOptions& options);

struct Candidate {
  options::CpuOptions options{};
  double us = 0;  ///< estimated
};

/// Up to `count` options of least estimated time that agree with `options` in what these set, best first; without those
/// that leave everything else to the compiler. Errors: the context's budget.
Result<std::vector<Candidate>> top(const poly::Scop& scop, const StrategyOptions& options, size_t count);

}  // namespace tc::cpu
