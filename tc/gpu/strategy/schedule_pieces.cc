#include "tc/gpu/strategy/schedule_pieces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/strategy/prepare.h"
#include "tc/gpu/strategy/split_waves.h"
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
    Pieces cut = split_waves(cut_out_contractions(scop, options, device), *scop.program, options, device);
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
    std::map<std::string, size_t> first_of, last_of;  // pieces of a statement
    isl::union_set before = isl::union_set::empty(scop.context->get());
    for (size_t p = 0; p < pieces.pieces.size(); ++p) {
      const poly::Scop& own = pieces.pieces[p].scop;
      for (const std::string& statement : poly::statements_at(own, own.schedule.root())) {
        first_of.emplace(statement, p);
        last_of[statement] = p;
      }
      const isl::union_set again = before.intersect(own.domain);
      if (!again.is_empty()) return fail("{} is in two pieces", poly::tuple_name(poly::sets_of(again).front()));
      before = before.unite(own.domain);
      // A contraction has no tree: its kernel does one point after the other (contraction/contraction.h).
      if (!pieces.pieces[p].contraction) TC_TRY_VOID(poly::check_legal(own, "schedule"));
    }
    const std::vector<isl::set> left = poly::sets_of(scop.domain.subtract(before));
    for (const poly::Statement& statement : scop.statements) {
      const bool is_left = std::any_of(left.begin(), left.end(), [&](const isl::set& instances) {
        return poly::tuple_name(instances) == statement.id;
      });
      if (is_left) return fail("{} is in no piece", statement.id);
    }
    for (const isl::map& dependence : poly::maps_of(scop.dependences.ordered())) {
      if (dependence.is_empty()) continue;
      const std::string from = poly::domain_name(dependence), to = poly::range_name(dependence);
      if (last_of.at(from) <= first_of.at(to)) continue;
      for (size_t p = first_of.at(to) + 1; p <= last_of.at(from); ++p) {
        isl::union_set earlier = isl::union_set::empty(scop.context->get());
        for (size_t q = first_of.at(to); q < p; ++q) earlier = earlier.unite(pieces.pieces[q].scop.domain);
        const isl::union_map backwards =
            isl::union_map(dependence).intersect_domain(pieces.pieces[p].scop.domain).intersect_range(earlier);
        if (!backwards.is_empty()) return fail("{} runs after {}, which depends on it", from, to);
      }
    }
    return {};
  });
}

}  // namespace tc::gpu
