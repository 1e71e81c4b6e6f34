#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tc/tile/program.h"

/// Tile programs written by hand.
///     for_loop("k", 0, 8, store("C", {i}, read(C, {i}) + read(A, {i, var("k")})))
namespace tc::tile::build {

using Halide::Expr;

/// An Int(32) variable: a loop's, a let's, or one of kBlock and kThread.
Expr var(const std::string& name);
inline Expr block_x() { return var(kBlock[0]); }
inline Expr block_y() { return var(kBlock[1]); }
inline Expr thread_x() { return var(kThread[0]); }
inline Expr thread_y() { return var(kThread[1]); }

Tensor global(const std::string& name, Halide::Type type, Layout layout, bool written = false);
Tensor shared(const std::string& name, Halide::Type type, Layout layout);
Tensor registers(const std::string& name, Halide::Type type, Layout layout);

Expr read(const Tensor& tensor, std::vector<Expr> subscripts);

NodePtr sequence(std::vector<NodePtr> children);
NodePtr for_loop(const std::string& variable, Expr begin, Expr end, NodePtr body, Expr step = 1);
NodePtr unrolled(const std::string& variable, Expr begin, Expr end, NodePtr body);
NodePtr rolled(const std::string& variable, Expr begin, Expr end, NodePtr body);
NodePtr if_then(Expr condition, NodePtr then_case, NodePtr else_case = nullptr);
NodePtr predicated(Expr condition, NodePtr copy);  ///< an asynchronous one
/// An asynchronous copy whose source is read where the guard holds; zeros arrive elsewhere.
NodePtr guarded(Expr guard, const NodePtr& copy);
NodePtr let(const std::string& name, Expr value, NodePtr body);
NodePtr allocate(Tensor tensor, NodePtr body);
NodePtr barrier(Barrier::Scope scope = Barrier::Scope::kBlock);
NodePtr arrive_in_cluster();
NodePtr wait_for_cluster();
NodePtr wait_for_kernels();
NodePtr start_next_kernel();
NodePtr store(const Tensor& tensor, std::vector<Expr> subscripts, Expr value);
NodePtr atomic(const Tensor& tensor, std::vector<Expr> subscripts, Atomic::Op op, Expr value);
/// Both ends contiguous along their last dimension.
NodePtr move(const Tensor& destination, std::vector<Expr> to, const Tensor& source, std::vector<Expr> from,
             int elements, bool asynchronous = false);
NodePtr commit_group();
NodePtr wait_group(int pending);
NodePtr shuffle(const Tensor& tensor, std::vector<Expr> subscripts, Shuffle::Kind kind, Expr value, Expr lane,
                int width = 32);
NodePtr matmul(const MatMulAtom& atom, Fragment d, Fragment a, Fragment b);
/// Of rows along the source's last dimension.
NodePtr matrix_load(Fragment destination, const Tensor& source, std::vector<Expr> row, bool transposed = false);
NodePtr matrix_store(const Tensor& destination, std::vector<Expr> row, Fragment source, bool transposed = false);
NodePtr ring(const std::string& name, int stages, int readers, NodePtr body, std::vector<BlockGroup> groups = {},
             std::optional<RegisterShares> registers = {}, int teams = 1);
NodePtr acquire(const std::string& ring, Expr turn);
NodePtr commit(const std::string& ring, Expr turn, int64_t bytes);
NodePtr drain(const std::string& ring, Expr turn);
NodePtr await(const std::string& ring, Expr turn);
NodePtr release(const std::string& ring, Expr turn);
NodePtr pass(const std::string& ring, Expr number);
NodePtr take(const std::string& ring, Expr number);
NodePtr box_copy(const TensorMap& map, std::vector<Expr> coordinates, const Tensor& destination, std::vector<Expr> to,
                 const std::string& ring, Expr turn, BlockGroup group = {});
/// Stores the slice of `source` that begins at an element: 1 along the first dimensions, all of the last ones, as many
/// elements as the map's box has.
NodePtr box_store(const TensorMap& map, std::vector<Expr> coordinates, const Tensor& source, std::vector<Expr> from);
/// Both ends contiguous along their last dimension.
NodePtr cluster_load(const Tensor& destination, std::vector<Expr> to, const Tensor& source, std::vector<Expr> from,
                     int elements, Expr block);
NodePtr fence_boxes();
NodePtr commit_boxes();
NodePtr wait_boxes_read(int pending);
NodePtr wait_boxes(int pending);
/// d's registers from `d_first` on.
NodePtr warpgroup_matmul(const WarpgroupAtom& atom, int slices, const Tensor& d, MatrixTile a, MatrixTile b,
                         bool starts = false, int d_first = 0);
/// The same of an operand a that threads hold.
NodePtr warpgroup_matmul(const WarpgroupAtom& atom, int slices, const Tensor& d, FragmentTile a, MatrixTile b,
                         bool starts = false);
NodePtr matmul_wait(int pending, std::vector<std::string> sums = {});
NodePtr with_comment(const std::string& comment, const NodePtr& node);

}  // namespace tc::tile::build
