#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/ir/names.h"
#include "tc/ir/reads.h"
#include "tc/poly/ranged.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// The number of the block or thread along an axis, of which there are `count`.
poly::Ranged block_number(int axis, int64_t count);
poly::Ranged thread_number(int axis, int64_t count);

/// Deals blocks out over several loops, that of the fastest first: the grid, and each loop's own number. Each has an
/// axis if there are no more than three, or else all are on x. The device has as many blocks in x.
std::vector<poly::Ranged> deal_blocks(const std::vector<int64_t>& counts, const Device& device,
                                      std::array<int64_t, 3>& grid);

using Body = std::function<tile::NodePtr(const poly::Ranged&)>;

/// The body for each value of a range, `unroll` of them laid out at once.
tile::NodePtr loop_over(const std::string& name, const ir::Range& range, int64_t unroll, ir::Names& names,
                        const Body& body);

/// A variable for a value that is used more than once.
tile::NodePtr let(const std::string& name, const poly::Ranged& value, ir::Names& names, const Body& body);

/// A register tensor of one dimension, for each thread.
tile::Tensor registers(const std::string& name, Halide::Type type, int64_t elements);
Halide::Expr element(const tile::Tensor& tensor, const Halide::Expr& at);
Halide::Expr index(int64_t value);

}  // namespace tc::gpu
