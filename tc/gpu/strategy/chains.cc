#include "tc/gpu/strategy/chains.h"

#include <algorithm>

#include "tc/gpu/rewrite/kernel_options.h"
#include "tc/gpu/strategy/contraction/requested_tile.h"
#include "tc/gpu/strategy/contraction/stream.h"
#include "tc/gpu/strategy/piece_time.h"
#include "tc/poly/restricted.h"

namespace tc::gpu {
namespace {

/// The products of a chain as one piece.
Piece joined(const poly::Scop& scop, const ChosenChain& chosen) {
  const Chain& chain = chosen.chain;
  Piece piece{poly::restricted(scop, chain.products.front().first, chain.products.back().last),
              chain.products[chosen.anchor],
              {chosen.anchors[0]}};
  piece.chain = chosen;
  return piece;
}

/// What stands for all of pieces [first, last), if the first and the last are products whose results are streamed from
/// one to the other, and that is asked for or gains by estimate: their chain, perhaps behind what the first one
/// computes as they are. Else nothing.
std::vector<Piece> streamed(const poly::Scop& scop, const std::vector<Piece>& pieces, size_t first, size_t last,
                            const options::MappingOptions& options, const Device& device) {
  const Piece &maker = pieces[first], &reader = pieces[last - 1];
  const auto own = [&](const Piece& piece) { return options_at(*scop.program, piece.contraction->update.id, options); };
  const options::MappingOptions of_first = own(maker), of_second = own(reader);
  for (const options::MappingOptions* o : {&of_first, &of_second}) {
    if (!o->chain.value_or(!says_tile_sizes(*o))) return {};
  }
  std::optional<Chain> chain = streamed_chain(scop, *maker.contraction, *reader.contraction);
  if (!chain) return {};
  std::optional<ChosenChain> chosen = plan_stream(*scop.program, *chain, {of_first, of_second}, device);
  if (!chosen) return {};
  double apart_us = 0;
  for (size_t p = first; p < last; ++p) apart_us += estimated_us(pieces[p], device);
  std::vector<Piece> result;
  const size_t begin = maker.contraction->first, chained = chain->products.front().first;
  if (begin < chained) result.push_back({poly::restricted(scop, begin, chained), {}, {}});
  result.push_back(joined(scop, *chosen));
  double us = 0;
  for (const Piece& piece : result) us += estimated_us(piece, device);
  const bool is_asked_for = of_first.chain.value_or(false) || of_second.chain.value_or(false);
  return is_asked_for || us < apart_us ? result : std::vector<Piece>();
}

/// The next piece that is a contraction by itself, behind one that is.
std::optional<size_t> next_product(const std::vector<Piece>& pieces, size_t after) {
  const auto is_alone = [](const Piece& piece) { return piece.contraction && piece.plans.size() == 1 && !piece.chain; };
  if (!is_alone(pieces[after])) return std::nullopt;
  for (size_t p = after + 1; p < pieces.size(); ++p) {
    if (pieces[p].contraction) return is_alone(pieces[p]) ? std::optional(p) : std::nullopt;
  }
  return std::nullopt;
}

/// Pairs of products that no other chain has taken.
std::vector<Piece> join_streams(const poly::Scop& scop, std::vector<Piece> pieces,
                                const options::MappingOptions& options, const Device& device) {
  std::vector<Piece> result;
  for (size_t p = 0; p < pieces.size();) {
    const std::optional<size_t> reader = next_product(pieces, p);
    std::vector<Piece> both;
    if (reader) both = streamed(scop, pieces, p, *reader + 1, options, device);
    if (both.empty()) {
      result.push_back(std::move(pieces[p++]));
    } else {
      std::move(both.begin(), both.end(), std::back_inserter(result));
      p = *reader + 1;
    }
  }
  return result;
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
  return join_streams(scop, std::move(result), options, device);
}

}  // namespace tc::gpu
