#include "tc/gpu/strategy/factor_choice.h"

#include <memory>
#include <numeric>
#include <utility>

#include "tc/gpu/rewrite/kernel_options.h"
#include "tc/gpu/strategy/contraction/contraction.h"
#include "tc/gpu/strategy/contraction/parts.h"
#include "tc/gpu/strategy/piece_time.h"
#include "tc/gpu/strategy/pieces.h"
#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"

namespace tc::gpu {
namespace {

/// Microseconds of a product and the sum of its results; nothing where no product by tensor cores makes them.
std::optional<double> factored_us(ir::Program program, const FactoredSum& way, const options::MappingOptions& options,
                                  const Device& device) {
  constexpr double kLaunchUs = 1, kPartsUs = 2;
  program.tensors.push_back(way.temporary);
  program.statements = {way.product, way.sum};
  const auto context = std::make_shared<poly::Context>();
  const auto measure = [&]() -> Result<double> {
    TC_TRY(scop, poly::from_ir(std::make_shared<const ir::Program>(std::move(program)), context));
    const Pieces pieces = cut_out_contractions(scop, options, device);
    const Piece& piece = pieces.pieces[0];
    if (!piece.contraction || !piece.plans[0].tensor_cores) return fail("no product by tensor cores");
    if (piece.contraction->reductions.empty() && piece.uncut.empty()) {
      return std::accumulate(pieces.pieces.begin(), pieces.pieces.end(), 0.0,
                             [&](double us, const Piece& one) { return us + estimated_us(one, device); });
    }
    return kLaunchUs + piece.plans[0].cycles / (1e3 * device.gigahertz) + (piece.uncut.empty() ? 0 : kPartsUs);
  };
  const Result<double> us = poly::within_budget(*context, measure);
  return us ? std::optional(*us) : std::nullopt;
}

}  // namespace

std::optional<size_t> choose_factor(const ir::Program& program, const ir::Statement& statement,
                                    const std::vector<FactoredSum>& ways, const options::MappingOptions& options,
                                    const Device& device) {
  constexpr double kClearly = 0.9;  // of what estimates tell apart
  const options::MappingOptions own = options_at(program, statement.id, options);
  if (own.split_reduction.value_or(1) > 1 || !own.tile.empty() || !own.tensor_cores.value_or(true)) return std::nullopt;
  std::optional<size_t> best;
  double least = 0;
  for (size_t w = 0; w < ways.size(); ++w) {
    const std::optional<double> us = factored_us(program, ways[w], without_sizes(options), device);
    if (!us || (best && *us >= least)) continue;
    best = w;
    least = *us;
  }
  if (!best) return std::nullopt;
  const std::optional<Contraction> as_it_is = contraction_of(program, statement);
  if (!as_it_is) return best;
  return least < kClearly * least_us(program, statement, *as_it_is, own, device) ? best : std::nullopt;
}

}  // namespace tc::gpu
