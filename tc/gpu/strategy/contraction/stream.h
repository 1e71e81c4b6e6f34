#pragma once

#include <optional>
#include <string>

#include "tc/gpu/strategy/contraction/chain.h"

/// Two products of which the second sums over the columns that the first makes, slab by slab: neither the first one's
/// results nor what is made of them is ever stored.
///     S(m,n) +=! Q(m,k) * K(n,k)
///     P(m,n) = f(S(m,n), top(m))      a slab of n: the first product's sums, as fragments of the second
///     total(m) +=! g(P(m,n))          reductions along rows go on over all slabs
///     A(m,e) +=! P(m,n) * V(n,e)
///     O(m,e) = A(m,e) / total(m)      may read them at its row
/// A maximum of S along the columns, of which P is an exponential, is one that goes on, too (online_reduction.h).
namespace tc::gpu {

/// Two products as such a chain, with all statements between them. Neither computes an operand then: what the first one
/// computes is left to another launch, so that the chain may begin behind `first`.
std::optional<Chain> streamed_chain(const poly::Scop& scop, const Contraction& first, const Contraction& reader);

/// The axis of the first product along which slabs follow each other.
size_t slab_axis_of(const ChainLink& link);

/// The second one's parallel axis for one of the first that makes rows.
std::optional<size_t> row_of_second(const ChainLink& link, size_t axis_of_first);

/// Whether somebody beside a chain looks at a tensor that it writes.
bool is_stored(const poly::Scop& scop, const Chain& chain, const std::string& tensor);

/// The options of each of the two products.
struct StreamOptions {
  const options::MappingOptions& first;
  const options::MappingOptions& second;  ///< with the sizes of the kernel, if some are asked for
};

/// The plan of least estimated time of such a chain by mma.sync, with all that options may ask for, best first; cycles
/// of its products are the share of each. None: there is none, or none has the sizes that options give.
std::optional<ChosenChain> plan_stream(const ir::Program& program, const Chain& chain, const StreamOptions& options,
                                       const Device& device);

}  // namespace tc::gpu
