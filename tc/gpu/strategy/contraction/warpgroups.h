#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/tile/program.h"

/// Contractions by products of warpgroups (Hopper). One thread of a further warp copies boxes of the operands to a ring
/// of buffers; warpgroups multiply what lies there. A warpgroup has 64 rows of the tile for each of its `row_atoms`
/// instructions. The tile's columns are those of one instruction:
///     row    = 64 * warpgroups * atom + 16 * warp + 8 * register + lane / 4
///     column = (high * 4 + lane % 4) * group + low
/// The instruction leaves a thread groups of two columns. Where groups of eight are wanted, so that 16-bit results are
/// written as vectors, four threads exchange their sums.
/// Rows and columns count through the axes of their side in the order of the operand's dimensions, the fastest first,
/// as a box brings them: of 8 by 8 by 2 values of (w, h, n) row 70 is (6, 0, 1).
namespace tc::gpu {

inline constexpr int64_t kProducerThreads = 32;

/// The dimension that counts along an axis of the block's tile, by ones or by the step of its boxes (strided_boxes.h);
/// -1: there is none, or several.
int dimension_along(const Operand& operand, const std::vector<int64_t> Subscript::*side, size_t axis);

/// The same products, with the axes of each side in the order of the operand's dimensions: first those of which a block
/// may have several values, each of a dimension of its own.
TensorCores in_order_of_boxes(const Contraction& contraction, size_t main, TensorCores cores);

/// Tiles that are tried, along the axes of each side.
struct WarpgroupShape {
  std::vector<int64_t> rows, columns;
  int64_t group = 2;                              ///< columns of a thread that are neighbours
  int64_t row_atoms = 1;                          ///< of a warpgroup
  int64_t cluster_rows = 1, cluster_columns = 1;  ///< blocks that share boxes, along the first axis of each side
  bool store_boxes = false;                       ///< results are stored by boxes
  bool persistent = false;                        ///< blocks go through several tiles
  bool ping_pong = false;                         ///< two teams of warpgroups have these by turns
  int64_t cluster_parts = 1;                      ///< blocks that deal out the steps of a tile
};
/// Those that leave little of a tile outside, of products whose axes are in the order of boxes. `wanted`: per parallel
/// axis the only tile, or 0. `has_any_width`: results of any number of columns are stored as fast as of 32.
std::vector<WarpgroupShape> warpgroup_shapes(const Contraction& contraction, size_t main, const TensorCores& cores,
                                             const std::vector<int64_t>& wanted, bool has_any_width = false);

/// The axes that the operand's rows (the columns of b) go along in a block.
const std::vector<size_t>& side_of(size_t operand, const ContractionPlan& plan);

/// Values of a block along all axes of a side, and blocks.
int64_t tile_of(const std::vector<size_t>& axes, const ContractionPlan& plan);
int64_t blocks_of(const std::vector<size_t>& axes, const ContractionPlan& plan);

/// The rows of a thread are counted by digits of 2 values: within an instruction, then of the instructions. How far the
/// rows of a digit lie apart along an axis of the rows; 0: they have the same value.
enum class RowDigit { kWithinAtom, kAtoms };
int64_t rows_apart(size_t axis, const ContractionPlan& plan, RowDigit digit = RowDigit::kWithinAtom);

/// The digits that have several values along an axis, in order: its registers count through them.
std::vector<RowDigit> row_digits(size_t axis, const ContractionPlan& plan);

/// The most steps that a block has.
int64_t steps_of_block(const Contraction& contraction, const ContractionPlan& plan);

/// The blocks that have the same tile of an operand, and copy a part of it each for all of them.
tile::BlockGroup sharers(size_t operand, const ContractionPlan& plan);

/// The dimension of the operand along which such a part is a part of a box: that of its rows, or of the reduction; none
/// where parts are boxes.
std::optional<size_t> cut_dimension(const Contraction& contraction, size_t operand, const ContractionPlan& plan);

/// How many rows of blocks go before the next column, such that the blocks that run at once read the fewest rows and
/// columns of the operands: all along the first axes, and a divisor along the next. Where several do, and mostly where
/// all blocks run at once, neighbours share tiles of the larger operand: 448 x 1984 by 4096 took 13.4 us so on an H200,
/// and 20 the other way round (docs/design/0027).
int64_t row_blocks(const ContractionPlan& plan, const Device& device);

/// A digit of a block's number: so many blocks along an axis, `scale` blocks apart.
struct BlockDigit {
  size_t axis = 0;
  int64_t count = 1;
  int64_t scale = 1;
  bool operator==(const BlockDigit&) const = default;
};
/// The digits of more than one value, the fastest first: a cluster's rows, then its columns; the rows of a group of
/// row_blocks; all columns; the groups; then the axes of neither side.
std::vector<BlockDigit> block_digits(const ContractionPlan& plan);

/// Elements of a row of an operand in shared memory.
int64_t row_of(const Operand& operand);

/// Values of the reduction in a step: as many as the longest row of an operand has.
int64_t chunk_of(const Contraction& contraction);

/// Values in a step along each axis of the reduction. Mostly all are along `main`. Where no operand has rows along the
/// reduction, and a step along `main` would be filled with zeros, parts of several axes make a step: an image of 28 x
/// 28 pixels, 4 x 4 of 4 images.
std::vector<int64_t> chunks_of(const Contraction& contraction, size_t main);

/// Values of all reduction axes in a step.
int64_t values_of_chunks(const ContractionPlan& plan);

/// The rows, one behind the other along the reduction, that a step has of an operand: a box each.
int64_t boxes_along(const Contraction& contraction, size_t operand, const ContractionPlan& plan);

/// Values of the reduction that one instruction of a warpgroup multiplies.
int64_t values_of_slice(const Operand& operand);

/// Values of the reduction that a step of warpgroups multiplies: those of its boxes. Of a reduction that is shorter
/// than one step these are whole slices.
int64_t values_of_step(const Contraction& contraction, const ContractionPlan& plan);

/// Whether products of warpgroups take elements only where their neighbours lie along the reduction: all but those of
/// 16 bits.
bool runs_along_reduction(Halide::Type type);

/// Why boxes do not bring an operand, or products of warpgroups do not take it; empty: they do.
std::string box_fault(const Contraction& contraction, size_t operand, const ContractionPlan& plan);

/// What a block has of an operand for a step, where box_fault() finds nothing.
OperandPlan boxed_operand(const Contraction& contraction, size_t operand, const ContractionPlan& plan);

/// Whether rows of an operand lie in lines of the cache, so that a row of a box touches one of them.
bool lies_in_lines(const Operand& operand);

/// Whether the rows in shared memory run along the operand's rows (columns), not along the reduction.
bool runs_across(const Contraction& contraction, size_t operand, const ContractionPlan& plan);

/// The element at which a map's dimension begins: where a guard lets the operand be read.
int64_t first_inside(const Operand& operand, size_t dimension);

/// The map of an operand. Its dimensions begin and end where what is read does, so that zeros lie behind the reduction
/// and where a guard lets nothing be read.
tile::TensorMap map_of(const Contraction& contraction, size_t operand, const ContractionPlan& plan,
                       const std::string& name);

/// Whether the operands of two products on one tile come to the same buffers.
bool share_ring(const Contraction& a, const ContractionPlan& plan_a, const Contraction& b,
                const ContractionPlan& plan_b);

/// What the threads of a plan that shares registers have: those that copy as few as there may be, and what is left.
tile::RegisterShares register_shares(const ContractionPlan& plan);

/// Registers of a thread that multiplies, at most.
int64_t most_registers(const ContractionPlan& plan);

/// Whether a thread has the registers that the assembler wants beside the sums of several products. Of 168 it has them
/// with 2 x 68 sums. With 2 x 72 it serialises the products.
bool leaves_registers(const ContractionPlan& plan, int64_t sums);

}  // namespace tc::gpu
