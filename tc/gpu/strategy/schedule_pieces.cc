#include "tc/gpu/strategy/schedule_pieces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/strategy/prepare.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/dependences.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/print.h"
#include "tc/poly/schedule.h"

namespace tc::gpu {

Result<Pieces> schedule_pieces(const poly::Scop& scop, const options::MappingOptions& options, const Device& device) {
  TC_TRY_VOID(check_limits(options, device));
  for (const options::KernelOptions& kernel : options.kernel) {
    TC_TRY_VOID(check_limits(options::overlaid(options, kernel), device));
  }
  return poly::within_budget(*scop.context, [&]() -> Result<Pieces> {
    Pieces cut = cut_out_contractions(scop, options, device);
    for (Piece& piece : cut.pieces) {
      if (piece.contraction) continue;
      TC_TRY(scheduled, poly::schedule(piece.scop, options.outer_schedule_options));
      piece.scop = std::move(scheduled);
    }
    return cut;
  });
}

std::string to_text(const Pieces& pieces) {
  std::string text;
  for (size_t p = 0; p < pieces.pieces.size(); ++p) {
    const Piece& piece = pieces.pieces[p];
    const std::vector<std::string> statements = poly::statements_at(piece.scop, piece.scop.schedule.root());
    text += fmt::format("{}piece {}: {}{}\n", p == 0 ? "" : "\n", p, piece.contraction ? "a contraction of " : "",
                        fmt::join(statements, ", "));
    if (piece.contraction) {
      for (const ContractionPlan& plan : piece.plans) {
        const std::string chosen = options::to_text(options_of(plan));
        for (size_t at = 0; at < chosen.size();) {
          const size_t end = std::min(chosen.find('\n', at), chosen.size());
          text += fmt::format("  {}\n", chosen.substr(at, end - at));
          at = end + 1;
        }
      }
    } else {
      text += poly::schedule_text(piece.scop);
    }
  }
  return text;
}

Result<void> check_pieces(const poly::Scop& scop, const Pieces& pieces) {
  return poly::within_budget(*scop.context, [&]() -> Result<void> {
    std::map<std::string, size_t> piece_of;
    for (size_t p = 0; p < pieces.pieces.size(); ++p) {
      const poly::Scop& own = pieces.pieces[p].scop;
      for (const std::string& statement : poly::statements_at(own, own.schedule.root())) {
        if (!piece_of.emplace(statement, p).second) return fail("{} is in two pieces", statement);
      }
      // A contraction has no tree: its kernel does one point after the other (contraction/contraction.h).
      if (!pieces.pieces[p].contraction) TC_TRY_VOID(poly::check_legal(own, "schedule"));
    }
    const std::vector<isl::set> domains = poly::sets_of(scop.domain);
    for (const poly::Statement& statement : scop.statements) {
      const bool runs = std::any_of(domains.begin(), domains.end(), [&](const isl::set& domain) {
        return poly::tuple_name(domain) == statement.id && !domain.is_empty();
      });
      if (runs && piece_of.count(statement.id) == 0) return fail("{} is in no piece", statement.id);
    }
    for (const isl::map& dependence : poly::maps_of(scop.dependences.ordered())) {
      if (dependence.is_empty()) continue;
      const std::string from = poly::domain_name(dependence), to = poly::range_name(dependence);
      if (piece_of.at(from) > piece_of.at(to)) return fail("{} runs after {}, which depends on it", from, to);
    }
    return {};
  });
}

}  // namespace tc::gpu
