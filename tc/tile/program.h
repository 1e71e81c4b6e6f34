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

  // What the printer may promise of a global tensor (promise.h decides, promise_faults.h proves).
  bool read_only = false;   ///< nobody writes it while the launch runs: read past the coherent cache
  bool restricted = false;  ///< no other pointer, and no other thread, changes what the thread sees in it; and none of
                            ///< its loads can be merged with one of a tensor that is written

  int rank() const { return layout.rank(); }
  int64_t elements() const { return layout.cosize(); }
};

/// Expressions are Halide Exprs over: loop variables and lets by name; kBlock and kThread; scalar parameters by name;
/// reads of tensors as PureExtern calls by tensor name, one argument per dimension; intrinsics as in ir::Program, and
/// kQuotient, a / b of float32 for a divisor that many share.
/// Index arithmetic is Int(32) where proved to fit, else Int(64). Loops and conditions may depend on threads.
inline constexpr std::array<const char*, 3> kBlock = {"block_x", "block_y", "block_z"};
inline constexpr std::array<const char*, 3> kThread = {"thread_x", "thread_y", "thread_z"};
inline constexpr const char* kQuotient = "tc.quotient";

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
/// All threads of the block (or of the warp) arrive before any goes on; orders memory between them. Must be reached by
/// all of them or none.
struct Barrier {
  enum class Scope { kBlock, kWarp } scope = Scope::kBlock;
};

/// Waits until the kernels of the program before this one have ended; what they wrote is seen after it. A kernel that
/// holds one starts while they may still run, and every thread of it comes to one.
struct WaitForKernels {};
/// Lets the next kernel of the program start, if it holds a WaitForKernels.
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

/// Instances of a statement that a spec carries out: for each thread and iteration, a box of them behind each of the
/// points `first`. What the strategy says that it does; coverage.h proves that all of a statement's instances are done.
struct Instances {
  std::string statement;
  std::vector<std::vector<Halide::Expr>> first;  ///< values of the statement's indices
  std::vector<int64_t> lengths = {};             ///< of the box along each index; empty: one value each
  std::vector<int64_t> zero_below = {};  ///< per index; outside of the statement's domain, but below, zeros are added
};

struct Node {
  std::variant<Sequence, For, If, Let, Allocate, Barrier, WaitForKernels, StartNextKernel, Store, Atomic, Move,
               CommitGroup, WaitGroup, Shuffle, MatMul, MatrixLoad>
      node;
  std::string comment;                                   ///< printed above it
  std::shared_ptr<const Instances> instances = nullptr;  ///< of a spec; null: it only moves values, or says nothing
};

/// A case for some kinds names them: [](const OneOf<CommitGroup, WaitGroup> auto&) {}.
template <typename Kind, typename... Kinds>
concept OneOf = (std::same_as<std::remove_const_t<Kind>, Kinds> || ...);
/// Kinds that hold nodes and touch no element but by their expressions.
template <typename Kind>
concept Structure = OneOf<Kind, Sequence, For, If, Let, Allocate>;
/// Kinds that order threads and copies. They hold neither nodes nor expressions, and touch no element.
template <typename Kind>
concept Synchronisation = OneOf<Kind, Barrier, WaitForKernels, StartNextKernel, CommitGroup, WaitGroup>;
/// Kinds that touch elements and hold no node.
template <typename Kind>
concept Spec = OneOf<Kind, Store, Atomic, Move, Shuffle, MatMul, MatrixLoad>;
/// Specs that the threads of a warp carry out together.
template <typename Kind>
concept Collective = OneOf<Kind, Shuffle, MatMul, MatrixLoad>;

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
};
/// Calls `visit` for each access of the node itself; what it writes is first.
void for_each_access(const Node& node, const std::function<void(const NodeAccess&)>& visit);

/// The tensor that a node allocates, or null.
const Tensor* allocated_tensor(const Node& node);
/// The asynchronous copy that a node is, or null.
const Move* asynchronous_copy(const Node& node);
/// The variable that a node binds in its body, or null.
const std::string* bound_variable(const Node& node);

/// What a node puts in order: accesses of a warp's threads, or a block's; asynchronous copies; kernels.
enum class Order { kNone, kWarp, kBlock, kCopies, kKernels };
Order order_of(const Node& node);
inline bool is_barrier(const Node& node) { return order_of(node) == Order::kWarp || order_of(node) == Order::kBlock; }

/// Calls `visit` for a node and all below it, outermost first, in order of the text.
void for_each_node(const NodePtr& node, const std::function<void(const Node&)>& visit);

struct Scalar {
  std::string name;
  Halide::Type type;
};

/// A tensor in shared memory: all have their own place for the whole launch, one after the other.
struct SharedTensor {
  const Tensor* tensor;
  int64_t byte_offset;  ///< from the start of the block's shared memory; a multiple of kSharedAlignment
};
inline constexpr int64_t kSharedAlignment = 16;

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
  /// All Allocates of shared memory, in order of the text, each at its place in the block's shared memory.
  std::vector<SharedTensor> shared_tensors() const;
  int64_t shared_bytes() const;
  /// The first architecture that has all of its instructions, as 80 for sm_80; 0: any.
  int architecture() const;
};

/// A def on a GPU: kernels in order of launch on one stream, and global buffers that live between them.
struct Program {
  std::string name;
  std::vector<Kernel> kernels;
  std::vector<Tensor> workspace;
  std::string header;  ///< text for the top of the printed source: program, options, estimate
};

}  // namespace tc::tile
