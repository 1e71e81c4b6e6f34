#pragma once

#include <Halide.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

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
/// reads of tensors as PureExtern calls by tensor name, one argument per dimension; intrinsics as in ir::Program.
/// Index arithmetic is Int(32) where proved to fit, else Int(64). Loops and conditions may depend on threads.
inline constexpr std::array<const char*, 3> kBlock = {"block_x", "block_y", "block_z"};
inline constexpr std::array<const char*, 3> kThread = {"thread_x", "thread_y", "thread_z"};

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
struct If {
  Halide::Expr condition;
  NodePtr then_case, else_case;
};  ///< else_case may be null
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

// Specs. Each is executed by every thread that reaches it, with its own values of the variables.

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
/// atomically, as by an Atomic; not asynchronously.
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

/// A new kind must be handled wherever nodes are visited: no visitor has a case for "all others".
struct Node {
  std::variant<Sequence, For, If, Let, Allocate, Barrier, WaitForKernels, StartNextKernel, Store, Atomic, Move,
               CommitGroup, WaitGroup, Shuffle>
      node;
  std::string comment;  ///< printed above it
};

/// Cases for std::visit.
template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

/// Calls `change` for each child of a node, in order of the text; a branch may have none (null).
void change_children(Node& node, const std::function<void(NodePtr&)>& change);
/// Calls `change` for each expression of the node itself: bounds, conditions, values, subscripts.
void change_exprs(Node& node, const std::function<void(Halide::Expr&)>& change);

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
};

/// A def on a GPU: kernels in order of launch on one stream, and global buffers that live between them.
struct Program {
  std::string name;
  std::vector<Kernel> kernels;
  std::vector<Tensor> workspace;
  std::string header;  ///< text for the top of the printed source: program, options, estimate
};

}  // namespace tc::tile
