#include "tc/gpu/strategy/contraction/unfold_choice.h"

#include <algorithm>
#include <vector>

#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/operand_choice.h"
#include "tc/gpu/strategy/contraction/parts.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

using Halide::Internal::expr_uses_var;

/// How far from the last dimension of a read an index stands, as digits: those of its last dimension are the fastest.
size_t place_of(const Halide::Internal::Call* read, const std::string& index) {
  size_t result = 0;
  for (size_t d = 0; d < read->args.size(); ++d) result = expr_uses_var(read->args[d], index) ? d : result;
  return result;
}

/// The reduction indices in the order in which the larger operand has them, the slowest first; none where one has many
/// values, or not both operands have it.
std::vector<const ir::Index*> few_values(const ir::Program& program, const ir::Statement& statement) {
  constexpr int64_t kMany = 64;
  const auto reads = ir::reads_in(program, statement.value);
  const auto elements = [&](const Halide::Internal::Call* read) {
    double result = 1;
    for (const int64_t extent : ir::constant_shape(program.tensor(read->name))) result *= static_cast<double>(extent);
    return result;
  };
  const auto* larger = elements(reads[0]) < elements(reads[1]) ? reads[1] : reads[0];
  std::vector<const ir::Index*> result;
  for (const ir::Index& index : statement.indices) {
    if (!index.is_reduction) continue;
    const auto has_it = [&](const Halide::Internal::Call* read) {
      return std::any_of(read->args.begin(), read->args.end(),
                         [&](const Halide::Expr& e) { return expr_uses_var(e, index.name); });
    };
    if (extent_of(index) >= kMany || !std::all_of(reads.begin(), reads.end(), has_it)) return {};
    result.push_back(&index);
  }
  std::stable_sort(result.begin(), result.end(), [&](const ir::Index* a, const ir::Index* b) {
    return place_of(larger, a->name) < place_of(larger, b->name);
  });
  return result;
}

/// The time of the copies. A thread computes a short row at once; of longer ones each element by itself, in 7 times the
/// time (20 million took 107 us on an H100). Threads of a block have the rows of one dimension: fewer than a warp leave
/// lanes idle (67 million elements in groups of three rows took 500 us on an H200).
double copies_us(const Unfolded& unfolded, const Device& device) {
  constexpr double kLaunchUs = 1.5, kInstructions = 24, kOfLongRows = 160, kLanesOfProcessor = 128, kShare = 0.7;
  constexpr int64_t kShortRow = 64, kWarp = 32;
  double us = 0;
  for (const ir::Tensor& tensor : unfolded.tensors) {
    double elements = 1;
    const ir::Shape shape = ir::constant_shape(tensor);
    for (const int64_t extent : shape) elements *= static_cast<double>(extent);
    const bool is_short = shape.back() <= kShortRow;
    const int64_t rows = is_short && shape.size() > 1 ? std::min(shape[shape.size() - 2], kWarp) : kWarp;
    const double lanes = static_cast<double>(kWarp) / static_cast<double>(rows);
    const double instructions = elements * lanes * (is_short ? kInstructions : kOfLongRows);
    const double computed = instructions / kLanesOfProcessor / device.processors / (device.gigahertz * 1e3);
    const double moved = elements * tensor.type.bytes() / (device.memory_bytes_per_us * kShare);
    us += kLaunchUs + std::max(computed, moved);
  }
  return us;
}

/// The time of an unfolded product, and of its copies.
std::optional<double> unfolded_us(const ir::Program& program, const ir::Statement& statement,
                                  const Unfolding& unfolding, const options::MappingOptions& options,
                                  const Device& device) {
  const std::optional<Unfolded> unfolded = unfold(program, statement, unfolding);
  if (!unfolded) return std::nullopt;
  ir::Program with_copies = program;
  with_copies.tensors.insert(with_copies.tensors.end(), unfolded->tensors.begin(), unfolded->tensors.end());
  const std::optional<double> product = ordered_us(with_copies, unfolded->product, options, device);
  if (!product) return std::nullopt;
  return *product + copies_us(*unfolded, device);
}

}  // namespace

std::optional<Unfolding> choose_unfolding(const ir::Program& program, const ir::Statement& statement,
                                          const options::MappingOptions& options, const Device& device) {
  constexpr double kWorthIt = 0.95;  // of what estimates tell apart
  constexpr int64_t kLeastValues = 8, kMostValues = 512, kVectorBytes = 16;
  constexpr size_t kMostIndices = 4;
  if (!takes_contractions(options) || device.tensor_products == 0) return std::nullopt;
  if (!may_be_multiplied(program, statement, options.tf32)) return std::nullopt;
  const std::vector<const ir::Index*> indices = few_values(program, statement);
  if (indices.size() > kMostIndices) return std::nullopt;
  std::optional<Unfolding> best;
  double least = 0;
  for (size_t chosen = 1; chosen < size_t{1} << indices.size(); ++chosen) {
    Unfolding unfolding;
    int64_t values = 1;
    for (size_t i = 0; i < indices.size(); ++i) {
      if ((chosen >> i & 1) == 0) continue;
      unfolding.indices.push_back(indices[i]->name);
      values *= extent_of(*indices[i]);
    }
    if (values < kLeastValues || values > kMostValues) continue;
    unfolding.row = round_up(values, kVectorBytes / ir::reads_in(program, statement.value)[0]->type.bytes());
    const std::optional<double> us = unfolded_us(program, statement, unfolding, options, device);
    if (!us || (best && *us >= least)) continue;
    least = *us;
    best = std::move(unfolding);
  }
  if (!best) return std::nullopt;
  const std::optional<double> otherwise = ordered_us(program, statement, options, device);
  return !otherwise || least < kWorthIt * *otherwise ? best : std::nullopt;
}

}  // namespace tc::gpu
