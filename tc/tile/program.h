#pragma once

#include <Halide.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tc/tile/atoms.h"
#include "tc/tile/layout.h"

namespace tc::tile {

enum class Memory { kGlobal, kShared, kRegister };

/// A tensor of a kernel. A coordinate maps to an element offset through the layout (whose modes are the tensor's
/// dimensions, each possibly nested), then through the swizzle. A register tensor is private to each thread, and
/// its coordinates are constants once the unrolled loops around it are.
struct Tensor {
  std::string name;  ///< unique in its kernel
  Halide::Type type;
  Memory memory = Memory::kGlobal;
  Layout layout;
  std::optional<Swizzle> swizzle;
  bool written = false;  ///< in this launch
  std::string place_of;  ///< in shared memory: that which it begins at the place of, when nobody uses that any more
                         ///< (places.h); empty: it has a place of its own

  // What the printer may promise of a global tensor (promise.h decides, promise_faults.h proves).
  bool read_only = false;   ///< nobody writes it while the launch runs: read past the coherent cache
  bool restricted = false;  ///< no other pointer, and no other thread, changes what the thread sees in it; and none of
                            ///< its loads can be merged with one of a tensor that is written

  int rank() const { return layout.rank(); }
  int64_t elements() const { return layout.cosize(); }
};

/// Expressions are Halide Exprs over: loop variables and lets by name; kBlock and kThread; scalar parameters by name;
/// reads of tensors as PureExtern calls by tensor name, one argument per dimension; intrinsics as in ir::Program, and
/// kQuotient, a / b of float32 for a divisor that many share, and kExp2ForFloat16, a float32 power of two which becomes
/// a float16: 0 may stand for what is subnormal in float32. Index arithmetic is Int(32) where proved to fit, else
/// Int(64). Loops and conditions may depend on threads.
inline constexpr std::array<const char*, 3> kBlock = {"block_x", "block_y", "block_z"};
inline constexpr std::array<const char*, 3> kThread = {"thread_x", "thread_y", "thread_z"};
inline constexpr const char* kQuotient = "tc.quotient";
inline constexpr const char* kExp2ForFloat16 = "tc.exp2_for_float16";

struct Node;
using NodePtr = std::shared_ptr<const Node>;

struct Sequence {
  std::vector<NodePtr> children;
};
/// for (variable = begin; variable < end; variable += step)
struct For {
  std::string variable;
  Halide::Expr begin, end, step;
  bool unrolled = false;  ///< printed with #pragma unroll; its trip count is constant
  NodePtr body;
  bool rolled = false;  ///< printed with #pragma unroll 1: its body is long
};
/// True unless the loop is known to run.
bool may_be_empty(const For& loop);
/// How often the loop runs, if that is a constant.
std::optional<int64_t> constant_trips(const For& loop);
struct If {
  Halide::Expr condition;
  NodePtr then_case, else_case;  ///< else_case may be null
  bool predicated = false;       ///< a condition of the instruction, no branch: then_case is an asynchronous copy alone
};
/// The test that a failed one goes on with, of a chain of tests; null at its end.
const If* next_test(const If& branch);
struct Let {
  std::string name;
  Halide::Expr value;
  NodePtr body;
};
/// A shared or register tensor that lives in body. Its elements start poisoned.
struct Allocate {
  Tensor tensor;
  NodePtr body;
};
/// All threads of the block (or of the warp, or of the warpgroup: 128 that follow each other) arrive before any goes
/// on; orders memory between them. Must be reached by all of them or none.
struct Barrier {
  enum class Scope { kBlock, kWarp, kWarpgroup } scope = Scope::kBlock;
};

/// A step of the barrier of a cluster (PTX ISA, "barrier.cluster"): all threads of all its blocks arrive, then each
/// waits until all have. What a thread does before it arrives is ordered before what others do behind their wait. Steps
/// are in no loop or branch, and take turns: arrive, wait, arrive, wait.
struct ClusterStep {
  enum class Kind { kArrive, kWait } kind = Kind::kArrive;
};

/// Waits until the kernels before this one have ended, those of the program and those on the stream before it; what
/// they wrote is seen after it. A kernel that holds one starts while they may still run, and every thread of it comes
/// to one.
struct WaitForKernels {};
/// Lets the next kernel start, of the program or behind it on the stream, if it holds a WaitForKernels.
struct StartNextKernel {};

// Specs. Each is executed by every thread that reaches it, with its own values of the variables. Some are carried out
// by all threads of a warp together.

/// tensor(subscripts) = value. The scalar statement: everything that no other spec covers.
struct Store {
  std::string tensor;
  std::vector<Halide::Expr> subscripts;
  Halide::Expr value;
};
/// tensor(subscripts) = tensor(subscripts) op value, atomically at the device's scope.
struct Atomic {
  std::string tensor;
  std::vector<Halide::Expr> subscripts;
  enum class Op { kAdd, kMin, kMax } op;
  Halide::Expr value;
};
/// Copies `elements` (1, 2, 4, 8 or 16; at most 16 bytes) along the unit-stride dimension `dimension` of both, one per
/// thread: ld/st of a vector, or cp.async (global to shared) into the current group. Both ends must be aligned to the
/// vector. With `update` each element of the destination, in global or shared memory, is combined with the source's
/// atomically, as by an Atomic; not asynchronously. An asynchronous one may have a guard: where it is false, the source
/// is not read and zeros arrive (PTX: cp.async with a source size of 0).
struct Move {
  std::string destination;
  std::vector<Halide::Expr> destination_subscripts;
  int destination_dimension = 0;
  std::string source;
  std::vector<Halide::Expr> source_subscripts;
  int source_dimension = 0;
  int elements = 1;
  bool asynchronous = false;
  std::optional<Atomic::Op> update = {};
  Halide::Expr guard = {};  ///< absent: it is read everywhere
};
/// What a Move with `update` does to elements of the type, each by itself.
std::vector<Atomic> updates_of(const Move& move, Halide::Type type);
/// Closes the thread's group of asynchronous copies.
struct CommitGroup {};
/// Waits until at most `pending` of the thread's groups are unfinished.
struct WaitGroup {
  int pending = 0;
};
/// register(subscripts) = value, as the lane `lane ^ mask`, or `lane + delta`, or lane `from` of the warp has it.
struct Shuffle {
  enum class Kind { kXor, kDown, kIndex } kind = Kind::kXor;
  std::string tensor;
  std::vector<Halide::Expr> subscripts;
  Halide::Expr value;
  Halide::Expr lane;  ///< the mask, delta or source lane
  int width = 32;     ///< lanes that exchange: a power of two
};

/// A thread's part of a tile that the threads of a warp hold together: an element of a register tensor for each value
/// of the atom's layout.
struct Fragment {
  std::string tensor;
  std::vector<std::vector<Halide::Expr>> values;  ///< the subscripts of each
};
/// d += a * b on tiles, by all threads of a warp together.
struct MatMul {
  const MatMulAtom* atom = nullptr;
  Fragment d, a, b;
};
/// Loads 1, 2 or 4 matrices of 8 rows of 8 elements of 16 bits, by all threads of a warp together (PTX ISA, ldmatrix).
/// Thread 8 i + r says where row r of matrix i is; those behind the last matrix name any row. Thread t gets the
/// elements 2 (t mod 4) and the next one of row t / 4 of each matrix; transposed, of column t / 4.
struct MatrixLoad {
  Fragment destination;  ///< two values for each matrix
  std::string source;    ///< in shared memory
  std::vector<Halide::Expr> source_subscripts;
  int source_dimension = 0;  ///< along which a row lies: its elements are neighbours, aligned to 16 bytes
  bool transposed = false;

  int matrices() const { return static_cast<int>(destination.values.size()) / 2; }
};
inline constexpr int kMatrixRow = 8;  ///< elements
/// Stores what such a load would load, by all threads of a warp together (PTX ISA, stmatrix). A thread that names a row
/// counts as the one that writes it; others write nothing. A block's threads along x are whole warps.
struct MatrixStore {
  std::string destination;  ///< in shared memory
  std::vector<Halide::Expr> destination_subscripts;
  int destination_dimension = 0;  ///< along which a row lies, as a MatrixLoad's
  Fragment source;                ///< two values for each matrix
  bool transposed = false;

  int matrices() const { return static_cast<int>(source.values.size()) / 2; }
};

/// Blocks of a cluster whose numbers in it differ in one digit: number / stride mod count. They partition the cluster.
struct BlockGroup {
  int stride = 1, count = 1;
  bool operator==(const BlockGroup&) const = default;
};

/// How many registers a thread of a warp that reads a ring has from there on, and any other one (PTX ISA,
/// "setmaxnreg"). Multiples of 8 from 24 to 256; warpgroups have as many as a whole. Those of the block together are at
/// most what it has at its start.
struct RegisterShares {
  int of_readers = 0, of_others = 0;
  bool operator==(const RegisterShares&) const = default;
};
/// Registers of 32 bits that each thread of a block has at its start, if the block is alone on its processor.
int registers_at_start(int64_t threads);

/// A ring of buffers that one thread fills with boxes and warps read (PTX ISA, "mbarrier"). Turn t uses buffer
/// t mod stages of each tensor. The node makes the ring's barriers, and orders their making before all of its body;
/// each thread of the block comes to it once. Blocks of a cluster may share boxes: each has a ring of its own, and they
/// do the same turns. Then the rings of the whole cluster are made before any body begins.
///
/// Several teams of warps may read it by turns (ping-pong): the warps from readers * t on are team t. Each turn is one
/// team's. A hand-over from one team to the next orders what both await.
struct Ring {
  std::string name;  ///< unique in its kernel
  int stages = 2;
  int readers = 1;  ///< warps of a team, each of which releases each turn of the team
  NodePtr body;
  std::vector<BlockGroup> groups =
      {};  ///< of blocks with which it shares boxes; other digits of the block's number each
  std::optional<RegisterShares> registers = {};  ///< absent: all threads keep what they have
  int teams = 1;

  int all_readers() const { return readers * teams; }  ///< warps
  /// The blocks whose boxes come to a buffer, with its own: as many tell each other that they have read it.
  int sharers() const;
};
/// A step of a ring's turn. The thread that fills the ring does, for the turns 0, 1, ... in order,
///     acquire   waits until all readers, of all blocks that it shares boxes with, have released turn - stages
///     commit    behind the turn's boxes: says how many bytes come to the buffer
///     drain     waits until the same have released all turns below this one: no other block touches this one then
/// and each warp that reads it, for the same turns in order,
///     await     waits until all boxes of the turn have arrived, which orders them before what follows
///     release   orders what it has read before later boxes in the same buffers; carried out by the warp together
/// Teams hand the ring over, for the numbers 0, 1, ... in order. The team that has taken n passes n + 1; the one that
/// takes no number passes 0. All warps of a team do, each together,
///     pass      says that the warp has awaited what it awaits before the next team does
///     take      waits until all warps of the team before have passed the number, which orders what they awaited before
///               what this one awaits
struct RingStep {
  enum class Kind { kAcquire, kCommit, kDrain, kAwait, kRelease, kPass, kTake } kind = Kind::kAcquire;
  std::string ring;
  Halide::Expr turn;  ///< of a pass or take: the hand-over's number
  int64_t bytes = 0;  ///< of a commit
};
inline bool hands_over(RingStep::Kind kind) { return kind == RingStep::Kind::kPass || kind == RingStep::Kind::kTake; }
/// Whether warps that read the ring do it, each together.
inline bool is_of_readers(RingStep::Kind kind) {
  return kind == RingStep::Kind::kAwait || kind == RingStep::Kind::kRelease || hands_over(kind);
}
/// Copies a box of a tensor map to shared memory, asynchronously (PTX ISA, "cp.async.bulk.tensor"). One thread carries
/// it out, for a ring's turn that it has acquired and not committed. The box lies there without gaps, the map's
/// dimensions fastest first, swizzled as the map says: rows of 16 bytes by the bits of their address. What lies outside
/// of the map's extents is zero. It comes to all blocks of a group, in the same place and turn.
struct BoxCopy {
  std::string map;
  std::string tensor;                     ///< that the map is of
  std::vector<Halide::Expr> coordinates;  ///< per dimension of the map, of the box's first element
  std::string destination;
  std::vector<Halide::Expr> destination_subscripts;  ///< of its first element
  std::string ring;
  Halide::Expr turn;
  BlockGroup group = {};  ///< that it comes to; of one block: this one
};
/// Copies a box from shared memory to a tensor map, asynchronously, into the current group of the thread's box stores
/// (PTX ISA, "cp.async.bulk.tensor"). One thread carries it out. The box lies as that of a BoxCopy does, and is a whole
/// slice of its source. What it has outside of the map's extents is not written.
struct BoxStore {
  std::string map;
  std::string tensor;                     ///< that the map is of: its dimensions are the map's, from the slowest on
  std::vector<Halide::Expr> coordinates;  ///< per dimension of the map, of the box's first element
  std::vector<int64_t> box;               ///< as the map says
  std::string source;
  std::vector<Halide::Expr> source_subscripts;  ///< of its first element
  std::vector<int64_t> source_extents;          ///< of the slice: 1, then all of the last dimensions
};
/// A step of the thread's groups of box stores.
///     fence      what the thread has written to shared memory is seen by box stores behind a barrier, or of its own
///     commit     closes the current group
///     wait_read  waits until all but `pending` groups have read their sources, which may be overwritten then
///     wait       waits until all but `pending` groups have written
struct BoxStep {
  enum class Kind { kFence, kCommit, kWaitRead, kWait } kind = Kind::kFence;
  int pending = 0;  ///< of a wait
};
/// Loads `elements` (1, 2 or 4; at most 16 bytes) of a tensor in the shared memory of a block of the cluster to
/// registers, along the unit-stride dimension of both (PTX ISA, "mapa", "ld.shared::cluster").
struct ClusterLoad {
  std::string destination;
  std::vector<Halide::Expr> destination_subscripts;
  int destination_dimension = 0;
  std::string source;
  std::vector<Halide::Expr> source_subscripts;
  int source_dimension = 0;
  int elements = 1;
  Halide::Expr block;  ///< its number in the cluster, x first
};
/// A tile of an operand in shared memory that a matrix descriptor describes, from an element on.
struct MatrixTile {
  std::string tensor;
  std::vector<Halide::Expr> subscripts;  ///< of its first element
  int mn_dimension = 0;                  ///< along which the rows of a, or the columns of b, go
  int k_dimension = 1;
};
/// A tile of the operand a that the threads of a warpgroup hold: value v of a thread of slice s is the element of a
/// register tensor that lies s * WarpgroupAtom::values_of_a() + v behind the first one. A register has e = 4 / bytes
/// values. Thread t has in register r of a slice the row 16 (t / 32) + t mod 32 / 4 + 8 (r mod 2), and the values of k
/// from e (t mod 4) + k / 2 (r / 2) on (PTX ISA, "Register Fragments for wgmma.mma_async").
struct FragmentTile {
  std::string tensor;
  std::vector<Halide::Expr> subscripts;  ///< of the first element
};
/// d += a * b by a warpgroup, for `slices` tiles that follow each other along k: one group of asynchronous products.
/// Until a MatMulWait has waited for the group nobody touches d's registers or those of a, and nobody writes what it
/// reads. Further products may read the same registers of a.
struct WarpgroupMatMul {
  WarpgroupAtom atom;
  int slices = 1;
  std::string d;  ///< a register tensor, whose element at offset d_first + v is the thread's value v
  MatrixTile a, b;
  bool starts = false;                    ///< d = a * b: what d held is not read
  std::optional<FragmentTile> held = {};  ///< in the place of a, which is not used then
  int d_first = 0;                        ///< the offset in d of the thread's value 0; a multiple of atom.values()

  /// Those in shared memory.
  std::vector<const MatrixTile*> shared_tiles() const { return held ? std::vector{&b} : std::vector{&a, &b}; }
  int64_t values_held() const { return held ? int64_t{slices} * atom.values_of_a() : 0; }  ///< by each thread
};
/// Waits until at most `pending` of the warpgroup's groups of products are unfinished.
struct MatMulWait {
  int pending = 0;
  std::vector<std::string> sums = {};  ///< registers of products that are finished then, which may be touched
};

/// Instances of a statement that a spec carries out: for each thread and iteration, a box of them behind each of the
/// points `first`. What the strategy says that it does; coverage.h proves that all of a statement's instances are done.
struct Instances {
  std::string statement;
  std::vector<std::vector<Halide::Expr>> first;  ///< values of the statement's indices
  std::vector<int64_t> lengths = {};             ///< of the box along each index; empty: one value each
  std::vector<int64_t> zero_below = {};  ///< per index; outside of the statement's domain, but below, zeros are added
};

struct Node {
  std::variant<Sequence, For, If, Let, Allocate, Ring, Barrier, ClusterStep, WaitForKernels, StartNextKernel, RingStep,
               Store, Atomic, Move, CommitGroup, WaitGroup, MatMulWait, BoxStep, Shuffle, MatMul, MatrixLoad,
               MatrixStore, BoxCopy, BoxStore, ClusterLoad, WarpgroupMatMul>
      node;
  std::string comment;                                   ///< printed above it
  std::shared_ptr<const Instances> instances = nullptr;  ///< of a spec; null: it only moves values, or says nothing
};

/// A case for some kinds names them: [](const OneOf<CommitGroup, WaitGroup> auto&) {}.
template <typename Kind, typename... Kinds>
concept OneOf = (std::same_as<std::remove_const_t<Kind>, Kinds> || ...);
/// Kinds that hold nodes and touch no element but by their expressions.
template <typename Kind>
concept Structure = OneOf<Kind, Sequence, For, If, Let, Allocate, Ring>;
/// Kinds that order threads and copies. They hold no nodes, no expressions but a ring's turn, and touch no element.
template <typename Kind>
concept Synchronisation = OneOf<Kind, Barrier, ClusterStep, WaitForKernels, StartNextKernel, RingStep, CommitGroup,
                                WaitGroup, MatMulWait, BoxStep>;
/// Kinds that touch elements and hold no node.
template <typename Kind>
concept Spec = OneOf<Kind, Store, Atomic, Move, Shuffle, MatMul, MatrixLoad, MatrixStore, BoxCopy, BoxStore,
                     ClusterLoad, WarpgroupMatMul>;
/// Specs that the threads of a warp carry out together; a WarpgroupMatMul, those of four warps.
template <typename Kind>
concept Collective = OneOf<Kind, Shuffle, MatMul, MatrixLoad, MatrixStore, WarpgroupMatMul>;

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

/// A kind that no node has. A case that takes it would take any new kind unseen.
struct UnknownKind {};

template <typename Visitor, typename AnyNode, typename... Kinds>
auto takes_each_of(const std::variant<Kinds...>&) -> std::bool_constant<
    (std::invocable<Visitor&, std::conditional_t<std::is_const_v<AnyNode>, const Kinds, Kinds>&> && ...)>;
/// Whether a visitor has a case for each kind of node, and none for "all others".
template <typename Visitor, typename AnyNode = const Node>
inline constexpr bool is_exhaustive = decltype(takes_each_of<Visitor, AnyNode>(Node().node))() &&
                                      !std::invocable<Visitor&, UnknownKind&>;

/// Calls the case for the node's kind. This is the one way to tell kinds apart: a new kind does not compile until each
/// match has decided about it. A class of visit() functions is called by [&](const auto& n) -> decltype(visit(n)).
template <typename AnyNode, typename... Cases>
requires OneOf<AnyNode, Node>
decltype(auto) match(AnyNode& node, Cases... cases) {
  Overloaded visitor{std::move(cases)...};
  static_assert(is_exhaustive<decltype(visitor), AnyNode>,
                "each kind of node needs a case, and no case may take all kinds");
  return std::visit(visitor, node.node);
}

/// The node as one that carries out these instances.
NodePtr carrying(std::shared_ptr<const Instances> instances, const NodePtr& node);

/// Calls `visit` for each child of a node, in order of the text; a branch may have none (null).
void for_each_child(const Node& node, const std::function<void(const NodePtr&)>& visit);
/// The node with others in the place of its children; itself if they are the same.
NodePtr map_children(const NodePtr& node, const std::function<NodePtr(const NodePtr&)>& map);
/// Calls `visit` for each expression of the node itself: bounds, conditions, subscripts, values.
void for_each_expr(const Node& node, const std::function<void(const Halide::Expr&)>& visit);
/// The node with others in the place of its own expressions, and of those of its instances.
NodePtr map_exprs(const NodePtr& node, const std::function<Halide::Expr(const Halide::Expr&)>& map);

/// An access that a node makes besides the reads in its expressions.
struct NodeAccess {
  const std::string& tensor;
  const std::vector<Halide::Expr>& subscripts;  ///< of its first element
  bool is_write = false;
  bool atomic = false;        ///< reads and writes at once
  bool asynchronous = false;  ///< arrives later
  int dimension = -1;         ///< that a vector runs along
  int elements = 1;
  bool in_cluster = false;  ///< in the shared memory of any block of the cluster
  bool region = false;      ///< stands for a box, or tile, that begins there; of a global tensor, for any part of it
  std::vector<int64_t> lengths = {};  ///< of a region, along each dimension, cut to the tensor; empty: not said
  Halide::Expr condition = {};        ///< under which the node does it; absent: always
};
/// Calls `visit` for each access of the node itself; what it writes is first. Of a box's global
/// tensor, and of a WarpgroupMatMul's sums, there are no subscripts.
void for_each_access(const Node& node, const std::function<void(const NodeAccess&)>& visit);

/// The tensor that a node allocates, or null.
const Tensor* allocated_tensor(const Node& node);
/// The ring that a node makes, or null.
const Ring* ring_of(const Node& node);
/// The box that a node copies, or null.
const BoxCopy* box_of(const Node& node);
/// The box that a node stores, or null.
const BoxStore* box_store_of(const Node& node);
/// The step of box stores that a node is, or null.
const BoxStep* box_step_of(const Node& node);
/// The step of a ring that a node is, or null.
const RingStep* ring_step_of(const Node& node);
/// The product of a warpgroup that a node is, or null.
const WarpgroupMatMul* warpgroup_product_of(const Node& node);
/// The wait for products that a node is, or null.
const MatMulWait* matmul_wait_of(const Node& node);
/// The step of a cluster's barrier that a node is, or null.
const ClusterStep* cluster_step_of(const Node& node);
/// The asynchronous copy that a node is, or null.
const Move* asynchronous_copy(const Node& node);
/// The variable that a node binds in its body, or null.
const std::string* bound_variable(const Node& node);

/// What a node puts in order: accesses of a warp's threads, a warpgroup's, a block's, or a cluster's; asynchronous
/// copies, of threads or by a ring, and products; stores of boxes; kernels.
enum class Order { kNone, kWarp, kWarpgroup, kBlock, kCluster, kCopies, kRing, kBoxStores, kKernels };
Order order_of(const Node& node);
/// The barrier that a node is, or null.
const Barrier* barrier_of(const Node& node);
inline bool is_barrier(const Node& node) { return barrier_of(node) != nullptr; }

/// Calls `visit` for a node and all below it, outermost first, in order of the text.
void for_each_node(const NodePtr& node, const std::function<void(const Node&)>& visit);

struct Scalar {
  std::string name;
  Halide::Type type;
};

/// A tensor map: how boxes of a global tensor are copied by one instruction (PTX ISA, "Tensor maps"; CUDA driver API,
/// cuTensorMapEncodeTiled). Dimensions go from the fastest on. What a box has outside of the extents is read as zero.
struct TensorMap {
  std::string name;    ///< unique in the kernel
  std::string tensor;  ///< global
  int64_t offset = 0;  ///< of the first element, in elements
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;  ///< elements; the first is 1
  std::vector<int64_t> box;      ///< extents of what is copied at once
  int swizzle = 0;               ///< bytes of a row that are swizzled: 0, 32, 64 or 128
};

/// A tensor in shared memory: all have their own place for the whole launch, one after the other.
struct SharedTensor {
  const Tensor* tensor;
  int64_t byte_offset;  ///< from the start of the block's shared memory; a multiple of kSharedAlignment
};
inline constexpr int64_t kSharedAlignment = 16;
inline constexpr int64_t kBoxAlignment = 128;  ///< of the bytes that a box is copied to
/// Of tensors that boxes fill: swizzles go by the bits of addresses (PTX ISA, "Swizzling modes").
inline constexpr int64_t kSwizzledAlignment = 1024;
inline int64_t shared_alignment(const Tensor& tensor) { return tensor.swizzle ? kSwizzledAlignment : kSharedAlignment; }

/// A ring's barriers in shared memory: of each stage one that says that it is full, then one each that it is empty,
/// then one for each team that says that a hand-over to it has been passed.
struct RingBarriers {
  const Ring* ring;
  int64_t byte_offset;  ///< from the start of the block's shared memory; a multiple of 8
  static constexpr int64_t kBytes = 8;
  int64_t bytes() const { return (2 * ring->stages + (ring->teams > 1 ? ring->teams : 0)) * kBytes; }
};

/// The bytes of an element in memory; a bool takes one.
inline int64_t element_bytes(Halide::Type type) { return type.bytes(); }

/// One launch.
struct Kernel {
  std::string name;
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};
  std::vector<Tensor> tensors;  ///< global, in order of the call
  std::vector<Scalar> scalars;
  NodePtr body;
  std::vector<TensorMap> maps = {};
  /// Blocks that a processor is to hold at once, whatever registers that leaves a thread; 0: the assembler chooses.
  int64_t resident_blocks = 0;
  std::array<int64_t, 3> cluster = {1, 1, 1};  ///< blocks that run at once, on neighbouring multiprocessors
  /// All Allocates of shared memory, in order of the text, each at its place in the block's shared memory.
  std::vector<SharedTensor> shared_tensors() const;
  /// Behind them, the barriers of all rings.
  std::vector<RingBarriers> rings() const;
  int64_t shared_bytes() const;
  /// Whether some shared tensor lies where others do.
  bool has_shared_places() const;
  /// The first architecture that has all of its instructions, as 80 for sm_80; 0: any.
  int architecture() const;
  /// Whether some of its instructions are those of the one architecture that has them: architecture() with an 'a'.
  bool accelerated() const;
  int64_t cluster_blocks() const { return cluster[0] * cluster[1] * cluster[2]; }
};

/// A def on a GPU: kernels in order of launch on one stream, and global buffers that live between them.
struct Program {
  std::string name;
  std::vector<Kernel> kernels;
  std::vector<Tensor> workspace;
  std::string header;  ///< text for the top of the printed source: program, options, estimate
};

}  // namespace tc::tile
