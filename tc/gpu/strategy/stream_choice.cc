#include "tc/gpu/strategy/stream_choice.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "tc/gpu/rewrite/kernel_options.h"
#include "tc/gpu/strategy/piece_time.h"
#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"

namespace tc::gpu {
namespace {

constexpr double kSmallLaunchUs = 1.5;  // brings the parts of tiles together

struct Timed {
  double us = 0;
  bool streams = false;  ///< the results of one of the products in question
  bool is_asked_for = false;
};

/// Whether all that a piece does is to reduce what a product's tiles will reduce, once it is cut into parts.
bool is_in_tiles(const Piece& piece, const std::set<std::string>& uncut) {
  const std::vector<isl::set> domains = poly::sets_of(piece.scop.domain);
  return !uncut.empty() && std::all_of(domains.begin(), domains.end(), [&](const isl::set& domain) {
    const poly::Statement& s = piece.scop.statement(poly::tuple_name(domain));
    return s.kind == poly::Statement::Kind::kInit || uncut.count(s.id) > 0;
  });
}

/// `asks_for`: whether a product, by its id, is in question. Nothing if the program is too hard for isl.
std::optional<Timed> timed(const ir::Program& program, const std::function<bool(const std::string&)>& asks_for,
                           const options::MappingOptions& options, const Device& device) {
  const auto context = std::make_shared<poly::Context>();
  const auto measure = [&]() -> Result<Timed> {
    TC_TRY(scop, poly::from_ir(std::make_shared<const ir::Program>(program), context));
    Timed result;
    std::set<std::string> uncut;
    for (const Piece& piece : cut_out_contractions(scop, options, device).pieces) {
      result.us += is_in_tiles(piece, uncut) ? kSmallLaunchUs : estimated_us(piece, device);
      for (const TileReduction& reduction : piece.uncut) uncut.insert(reduction.statement.id);
      if (!piece.chain || !piece.chain->chain.links[0].streamed) continue;
      const std::vector<Contraction>& chained = piece.chain->chain.products;
      result.streams = result.streams || asks_for(chained[0].update.id);
      for (const Contraction& product : chained) {
        const std::optional<bool> chain = options_at(*scop.program, product.update.id, options).chain;
        result.is_asked_for = result.is_asked_for || chain.value_or(false);
      }
    }
    return result;
  };
  const Result<Timed> result = poly::within_budget(*context, measure);
  return result ? std::optional(*result) : std::nullopt;
}

}  // namespace

bool gains_by_recomputing(const ir::Program& before, const ir::Program& after, const MadeAgain& made,
                          const options::MappingOptions& options, const Device& device) {
  constexpr double kClearly = 1.1;  // estimates of unlike kernels are rough
  const auto is_in = [](const std::set<std::string>& ids) {
    return [&ids](const std::string& id) { return ids.count(id) > 0; };
  };
  const std::optional<Timed> made_again = timed(after, is_in(made.again), options, device);
  if (!made_again || !made_again->streams) return false;
  const std::optional<Timed> once = timed(before, is_in(made.statements), options, device);
  // One chain that makes them once may be what is asked for, too.
  if (made_again->is_asked_for && !(once && once->streams)) return true;
  return once && made_again->us * kClearly < once->us;
}

bool gains_by_streaming(const ir::Program& ordered, const ir::Program& as_made, const options::MappingOptions& options,
                        const Device& device) {
  const auto any = [](const std::string&) { return true; };
  const std::optional<Timed> streamed = timed(as_made, any, options, device);
  if (!streamed || !streamed->streams) return false;
  if (streamed->is_asked_for) return true;
  const std::optional<Timed> apart = timed(ordered, any, options, device);
  return !apart || streamed->us < apart->us;
}

}  // namespace tc::gpu
