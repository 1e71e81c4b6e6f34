#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tc/support/scalar_type.h"
#include "tc/tile/matrix_descriptor.h"
#include "tc/tile/program.h"

/// A kernel as instructions for a machine whose registers hold one value for each thread of a warp.
///
/// Integers and bools are int64, wrapped to their type after each operation; float64 is double; the other floats are
/// float, rounded to their type after each operation. Arithmetic is done for all lanes, whether they are active or
/// not, and so moves out of loops and branches; what touches memory is done for the active lanes where it stands.
namespace tc::tile {

inline constexpr int kLanes = 32;

struct alignas(64) Lanes {
  union {
    std::array<int64_t, kLanes> i;
    std::array<double, kLanes> d;
    std::array<float, kLanes> f;
  };
};

/// How lanes hold a type. An 8-bit float, which no operation takes, is an integer: its bits.
enum class Representation : uint8_t { kInteger, kFloat, kDouble };
Representation representation_of(ScalarType type);

enum class Op : uint8_t {
  // Of integers: dst = a op b, not wrapped.
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,       ///< toward minus infinity, in `type`
  kModulo,       ///< in `type`
  kDivideSmall,  ///< 0 <= a < 2^32, by the immediate
  kModuloSmall,
  kShiftRight,  ///< by the immediate
  kMask,        ///< a & immediate
  kMin,
  kMax,
  kEqual,
  kLess,
  kLessEqual,
  kLessUnsigned,
  kAnd,
  kOr,
  kNot,
  kWrap,     ///< a, to `type`
  kInRange,  ///< 0 <= a < immediate
  kSwizzle,  ///< immediate: bits + base * 2^8 + shift * 2^16
  // Of floats, in the representation of `type`, not rounded to it.
  kAddFloat,
  kSubtractFloat,
  kMultiplyFloat,
  kDivideFloat,
  kMinFloat,  ///< a NaN wins
  kMaxFloat,
  kEqualFloat,
  kLessFloat,
  kLessEqualFloat,
  kRound,  ///< a float to float16 or bfloat16
  // Of either.
  kConvert,  ///< a, of type `from`, to `type`
  kSelect,   ///< a ? b : c
  kCopy,     ///< dst = a
  kRealFunction,
  kRealPredicate,
  kIntegerFunction,
  kMixedFunction,  ///< a float, b integer
  // Control. Jumps are relative, by the immediate.
  kEnter,     ///< saves the active lanes
  kIf,        ///< saves them, keeps those where a; jumps if there are none
  kElse,      ///< the saved ones where not a; jumps if there are none
  kLeave,     ///< restores them
  kLoopTest,  ///< keeps the lanes where a < b; jumps if there are none
  kLoopNext,  ///< dst += a; jumps
  kBlockBarrier,
  kWarpBarrier,
  kGroupBarrier,  ///< of a warpgroup
  kClusterBarrier,
  kArriveInCluster,  ///< a: the site
  kWaitForCluster,
  kWaitForKernels,
  kMakeRing,  ///< ring a; behind a barrier
  kAcquire,   ///< turn, register b, of ring a; c: the site
  kAwait,
  kDrain,
  kTake,  ///< of the hand-over, register b
  kHalt,
  // Memory. a, b: indices of accesses.
  kLoad,    ///< dst = [a]
  kStore,   ///< [a] = register b
  kAtomic,  ///< [a] = [a] op register b; immediate: an Atomic::Op
  kMove,    ///< [a] = [b], `immediate` elements
  kCopyAsync,
  kCommit,
  kWait,         ///< immediate: groups that may stay pending
  kShuffle,      ///< [a] = register b of lane c; immediate: the width; kind in `flag`
  kMatMul,       ///< a: an index into Code::matmuls
  kMatrixLoad,   ///< a: an index into Code::matrix_loads
  kMatrixStore,  ///< a: an index into Code::matrix_stores
  kCommitTurn,   ///< as kAcquire; immediate: bytes
  kRelease,
  kPass,
  kBoxCopy,       ///< a: an index into Code::box_copies
  kBoxStore,      ///< a: an index into Code::box_stores
  kClusterLoad,   ///< [a] = [b] of block, register c, `immediate` elements
  kBoxStep,       ///< a BoxStep::Kind in `flag`; immediate: groups that may stay pending
  kStartProduct,  ///< a: an index into Code::products; c: the site
  kWaitProducts,  ///< a: an index into Code::product_waits; c: the site
  kPoison,        ///< register tensor a
};

struct Instruction {
  Op op = Op::kHalt;
  ScalarType type = ScalarType::kInt64;
  ScalarType from = ScalarType::kInt64;
  uint8_t flag = 0;
  bool uniform = false;  ///< of conditions and tests: the same in all lanes
  int dst = -1;
  int a = -1, b = -1, c = -1, d = -1;
  int64_t immediate = 0;
  const void* function = nullptr;  ///< an interp::RealFunction, RealPredicate, IntegerFunction or MixedFunction, by op
};

struct Access {
  int tensor = -1;
  int address = -1;    ///< a register: the offset in elements
  int in_bounds = -1;  ///< a register, or -1 where it is proved
  bool uniform = false;
  std::vector<int> coordinates;  ///< registers, for messages
  int site = -1;
};

/// The accesses of a MatMul, one for each value.
struct CodeMatMul {
  const MatMulAtom* atom = nullptr;
  std::vector<int> d, a, b;
};
struct CodeMatrixLoad {
  std::vector<int> destination;
  int source = -1;
  bool transposed = false;
};

struct CodeMatrixStore {
  int destination = -1;
  std::vector<int> source;
  bool transposed = false;
};

struct CodeRing {
  std::string name;
  int stages = 0;
  int readers = 0;  ///< of a team
  int teams = 1;
  std::vector<BlockGroup> groups;
  int releases = 0;  ///< of a turn: by readers of all blocks that share boxes
};
struct CodeBoxCopy {
  const TensorMap* map = nullptr;
  int source = -1;               ///< tensor
  int destination = -1;          ///< access
  std::vector<int> coordinates;  ///< registers
  int ring = -1;
  int turn = -1;  ///< register
  BlockGroup group;
};
struct CodeBoxStore {
  const TensorMap* map = nullptr;
  int tensor = -1;
  int destination = -1;          ///< access, of the first element
  int source = -1;               ///< likewise
  std::vector<int> coordinates;  ///< registers
};
/// A WarpgroupMatMul.
struct CodeProduct {
  struct Tile {
    int access = -1;  ///< of its first element
    std::optional<MatrixDescriptor> descriptor;
  };
  WarpgroupAtom atom;
  int slices = 1;
  int d = -1;  ///< tensor
  Tile a, b;   ///< that threads hold of a has no descriptor
  bool starts = false;
  int held = -1;  ///< tensor, of a that threads hold
  int d_first = 0;
};
struct CodeProductWait {
  int pending = 0;
  std::vector<int> sums;  ///< tensors
};

struct CodeTensor {
  Tensor tensor;
  ScalarType type = ScalarType::kFloat32;
  int64_t shared_offset = 0;  ///< bytes
  int register_base = -1;     ///< of a register tensor: its first element among all those of a thread
  bool filled = false;        ///< by boxes
  bool stored = false;        ///< by boxes: they read it
  bool in_cluster = false;    ///< other blocks read it
};

struct Code {
  struct Constant {
    int reg;
    Representation representation;
    int64_t integer;
    double real;
  };
  struct ScalarSlot {
    std::string name;
    ScalarType type;
    int reg;
  };
  std::vector<Instruction> instructions;
  int registers = 0;
  std::vector<Constant> constants;
  std::array<int, 3> block_registers = {-1, -1, -1};  ///< -1 where the extent is 1
  std::array<int, 3> thread_registers = {-1, -1, -1};
  std::vector<ScalarSlot> scalars;
  std::vector<CodeTensor> tensors;
  std::vector<Access> accesses;
  std::vector<CodeMatMul> matmuls;
  std::vector<CodeMatrixLoad> matrix_loads;
  std::vector<CodeMatrixStore> matrix_stores;
  std::vector<CodeRing> rings;
  std::vector<CodeBoxCopy> box_copies;
  std::vector<CodeBoxStore> box_stores;
  std::vector<CodeProduct> products;
  std::vector<CodeProductWait> product_waits;
  std::vector<std::string> sites;  ///< the text of each spec
  int register_elements = 0;       ///< of all register tensors, per thread
  int64_t shared_bytes = 0;
  bool waits = false;  ///< for the kernels before it
};

Code compile(const Kernel& kernel);

}  // namespace tc::tile
