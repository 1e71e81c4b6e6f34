#pragma once

#include <span>

#include "tc/poly/band_ref.h"

namespace tc::poly {

/// The verbs on a schedule tree. Each takes a Scop and a place, and returns the Scop with its tree changed, or an Error
/// that quotes a pair of instances which the change would run in the wrong order: the exact test of dependences.h,
/// asked only where the band's flags do not already answer. Marks come last: a marked band is not sunk or distributed.

/// Splits every member of a band into a tile and a point member.
///     band [m, n, k]   ==>   band [m - m%32, n - n%32, k - k%4]
///                              band [m%32, n%32, k%4]
/// `sizes` go to the outermost members; those without a size, or with size 0, stay whole, among the points. The tile
/// band stands at `band`, the point band at band.below().
Result<Scop> tile(const Scop& scop, const BandRef& band, std::span<const int64_t> sizes);

/// Splits one member in place, which needs no permutability.
///     band [m, n, k]   ==>   band [m]; band [n - n%8]; band [n%8]; band [k]          (member 1, size 8)
/// The tile member's band stands at band.below(member > 0), its points' below that.
Result<Scop> strip_mine(const Scop& scop, const BandRef& band, int member, int64_t size);

/// band [m, n, k]   ==>   band [m]; band [n, k]          (position 1). Always legal; 0 < position < members.
Scop split(const Scop& scop, const BandRef& band, int position);

/// Fuses a band and the band that is its only child into one: the order stays, the flags are found anew.
Scop fuse(const Scop& scop, const BandRef& band);

/// Puts the members into another order: the new member p is the old member permutation[p].
Result<Scop> reorder(const Scop& scop, const BandRef& band, std::span<const int> permutation);

/// Moves a band below all bands of its subtree, to the leaves (paper 2018, section 5.3: parallel point loops).
///     band [i%32, j%32]              sequence
///       sequence              ==>      S0: band [i%32, j%32]
///         S0                           S1: band [k]
///         S1: band [k]                   band [i%32, j%32]
Result<Scop> sink(const Scop& scop, const BandRef& band);

/// Distributes a band over the sequence below it: each child gets the band for its own instances. The sequence then
/// stands at `band`, and the copies at the children of its filters.
Result<Scop> distribute(const Scop& scop, const BandRef& band);

/// Merges two neighbours of a sequence, children `first` and `first` + 1, which must each begin with a band: the
/// outermost members that both have become one band, in order.
///     sequence                            sequence
///       S0: band [i, j]       ==>           band [i, j]
///       S1: band [i, j]                       sequence S0, S1
/// What is merged stands at the sequence's child `first`; where the sequence had two children, in its place.
Result<Scop> merge(const Scop& scop, const NodeRef& sequence, int first);

/// Marks the band (whose ref then is band.below()): its outermost member's iterations run at once.
/// Refused where any dependence, reductions included, is between two of them.
Result<Scop> mark_parallel(const Scop& scop, const BandRef& band);
/// Marks a band of one member as a vector. Dependences of reductions between its iterations are left to the code
/// generator (carries_reduction); any other refuses.
Result<Scop> mark_vector(const Scop& scop, const BandRef& band);
/// Marks a band as unrolled. Always legal.
Scop mark_unroll(const Scop& scop, const BandRef& band);

}  // namespace tc::poly
