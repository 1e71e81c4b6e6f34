#pragma once

#include <vector>

#include "tc/ir/names.h"
#include "tc/ir/program.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// Copies of whole vectors instead of single elements, in unrolled loops over neighbours.
///     unrolled v in 0:4                       Move r[0..4) = A[4*t ..]
///       B(4*t + v) = A(4*t + v) * 2    ==>    unrolled v in 0:4
///                                               w(v) = r(v) * 2
///                                             Move B[4*t ..] = w[0..4)
/// What is also read a few elements further on, A(4*t + v + 1), is taken from a vector with single elements behind it.
/// A single element that the whole vector reads, S((8*t + v) / 128), is read once. Sums and products of float16 within
/// a wider value are computed before it, in pairs, for which there are instructions. For loops from 0 over 2 to 16
/// elements, a power of two, whose body is stores alone: of more than 16 bytes up to four vectors are copied. It is
/// done for those of their accesses to global tensors, and to `shared` ones, that run along a last dimension at offsets
/// that are provably multiples of the vector. A choice that neighbours make alike is made before them (hoist_choice()).
/// Reads under another choice stay as they are. So do those of tensors that the loop writes, unless each element is
/// read before it is written, and nothing else is. Changes no order between threads.
tile::NodePtr vectorize(const tile::NodePtr& body, const ir::Program& program, ir::Names& names,
                        const std::vector<tile::Tensor>& shared = {});

}  // namespace tc::gpu
