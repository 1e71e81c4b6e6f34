#include "tc/gpu/strategy/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "tc/gpu/strategy/pieces.h"
#include "tc/gpu/verbs/partition_launches.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/promote.h"

namespace tc::gpu {
namespace {

std::vector<std::string> ids_of(const Piece& piece) {
  std::vector<std::string> ids;
  for (const isl::set& domain : poly::statement_domains(piece.scop)) ids.push_back(poly::tuple_name(domain));
  return ids;
}

std::string reason_between(const Piece& first, const Piece& second) {
  if (first.contraction && second.contraction) return "each is a contraction, which has a launch of its own";
  if (first.contraction || second.contraction) {
    return fmt::format("the {} is a contraction, and the other's instances are not those of its points",
                       first.contraction ? "first" : "second");
  }
  return "one of them has too few results to keep the device busy, and the other much to do";
}

}  // namespace

Result<std::vector<poly::Apart>> why_apart(const poly::Scop& scop, const options::MappingOptions& options,
                                           const Device& device) {
  return poly::within_budget(*scop.context, [&]() -> Result<std::vector<poly::Apart>> {
    const std::vector<Piece> pieces = cut_out_contractions(scop, options, device).pieces;
    std::vector<poly::Apart> result;
    for (size_t p = 0; p < pieces.size(); ++p) {
      if (p > 0) result.push_back({ids_of(pieces[p - 1]), ids_of(pieces[p]), reason_between(pieces[p - 1], pieces[p])});
      if (pieces[p].contraction) continue;
      TC_TRY(inside, poly::why_apart(pieces[p].scop, options.outer_schedule_options));
      result.insert(result.end(), inside.begin(), inside.end());
    }
    return result;
  });
}

tile::Memory held_between(const Kernel& kernel, const std::string& tensor, const std::string& from,
                          const std::string& to) {
  // Blocks add what they have to the element in memory.
  const bool updates = kernel.scop.statement(to).kind == poly::Statement::Kind::kUpdate;
  if (updates && kernel.chosen.atomic_reduction.value_or(false)) return tile::Memory::kGlobal;
  if (kernel.in_memory.count(tensor) > 0) return tile::Memory::kGlobal;
  if (kernel.in_shared.count(tensor) > 0) return tile::Memory::kShared;
  // Other recipes' statements meet at points that one thread, or the threads of a row, have in registers.
  if (kernel.recipe != Recipe::kClassic) return tile::Memory::kRegister;
  tile::Memory held = tile::Memory::kGlobal;
  for (const poly::Promotion& promotion : kernel.scop.promotions) {
    if (promotion.tensor != tensor || !poly::holds_between(kernel.scop, promotion, from, to)) continue;
    if (promotion.in_registers) return tile::Memory::kRegister;
    held = tile::Memory::kShared;
  }
  return held;
}

}  // namespace tc::gpu
