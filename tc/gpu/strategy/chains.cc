#include "tc/gpu/strategy/chains.h"

#include "tc/gpu/rewrite/kernel_options.h"
#include "tc/poly/restricted.h"

namespace tc::gpu {
namespace {

/// Pieces [first, first + plans) as one.
Piece joined(const poly::Scop& scop, const ChosenChain& chosen) {
  const Chain& chain = chosen.chain;
  std::vector<std::string> statements;
  for (size_t s = chain.products.front().first; s < chain.products.back().last; ++s) {
    statements.push_back(scop.statements[s].id);
  }
  Piece piece{poly::restricted(scop, statements), chain.products[chosen.anchor], {chosen.anchors[0]}};
  piece.chain = chosen;
  return piece;
}

}  // namespace

std::vector<Piece> join_chains(const poly::Scop& scop, std::vector<Piece> pieces,
                               const options::MappingOptions& options, const Device& device) {
  std::vector<Piece> result;
  for (size_t first = 0; first < pieces.size();) {
    std::vector<const Contraction*> products;
    std::vector<double> alone;
    std::vector<options::MappingOptions> own;
    size_t end = first;
    for (; end < pieces.size() && pieces[end].contraction && pieces[end].plans.size() == 1; ++end) {
      const Contraction& c = *pieces[end].contraction;
      products.push_back(&c);
      alone.push_back(pieces[end].plans[0].cycles);
      own.push_back(options_at(*scop.program, c.update.id, options));
    }
    if (products.size() < 2) {
      result.push_back(std::move(pieces[first++]));
      continue;
    }
    std::vector<ChosenChain> chains = choose_chains(scop, products, alone, own, device);
    size_t next = first;
    for (const ChosenChain& chain : chains) {
      for (; next < first + chain.first; ++next) result.push_back(std::move(pieces[next]));
      result.push_back(joined(scop, chain));
      next += chain.chain.products.size();
    }
    for (; next < end; ++next) result.push_back(std::move(pieces[next]));
    first = end;
  }
  return result;
}

}  // namespace tc::gpu
