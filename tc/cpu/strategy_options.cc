#include "tc/cpu/strategy_options.h"

#include <algorithm>
#include <set>

namespace tc::cpu {
namespace {

/// A def with more products than this has smaller tiles, of so many vectors of results altogether: their code takes
/// LLVM a millisecond each. A large product keeps its large tile, see plan_unit().
constexpr int64_t kProductsWithLargeTiles = 3;
constexpr int64_t kAccumulatorsOfMany = 40;
constexpr int64_t kLeastAccumulators = 6;

/// Statements that reduce products of two tensors or more.
int64_t products(const Analysis& analysis) {
  int64_t result = 0;
  for (const StatementInfo& info : analysis.statements) {
    std::set<std::string> read;
    for (const Reference& reference : info.references) {
      if (!reference.is_write && reference.tensor != info.statement->tensor) read.insert(reference.tensor);
    }
    result += info.reduces() && read.size() > 1 ? 1 : 0;
  }
  return result;
}

int64_t accumulators_per_tile(const Analysis& analysis) {
  const int64_t count = products(analysis);
  return count <= kProductsWithLargeTiles ? INT64_MAX : std::max(kLeastAccumulators, kAccumulatorsOfMany / count);
}

}  // namespace

UnitOptions unit_options(const Analysis& analysis, const StrategyOptions& options, size_t shared) {
  const std::vector<int64_t>& tile = options.cpu.tile;
  std::vector<int64_t> register_tile;
  if (shared > 0 && tile.size() > shared)
    register_tile.assign(tile.begin() + static_cast<ptrdiff_t>(shared), tile.end());
  return {.vector_bits = options.vector_bits,
          .vector_width = options.cpu.vector_width.value_or(0),
          .unroll = options.cpu.unroll.value_or(0),
          .register_tile = std::move(register_tile),
          .strict = options.cpu.strict,
          .promote = options.cpu.promote.value_or(true),
          .accumulators = accumulators_per_tile(analysis)};
}

GroupOptions group_options(const StrategyOptions& options) {
  GroupOptions result;
  result.threads = options.threads;
  if (const auto fusion = options.cpu.scheduler.fusion) {
    result.fuse_statements = result.fuse_units = *fusion != options::Fusion::kMin;
    result.weigh = *fusion != options::Fusion::kMax;
  }
  return result;
}

}  // namespace tc::cpu
