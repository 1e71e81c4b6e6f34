#pragma once

#include <set>
#include <string>

namespace tc::cuda {

/// Definitions that the text of a kernel may use, each printed only where it is used: CUDA text needs no header.
enum class Helper {
  kTypes,          ///< int8 ... uint64, by the language's names
  kFloat16,        ///< float16, to_float, to_float16, round_float16
  kBFloat16,       ///< bfloat16, to_float, to_bfloat16, round_bfloat16
  kFloat8,         ///< float_from_e4m3, e4m3_from_float, float_from_e5m2, e5m2_from_float
  kTf32,           ///< round_tf32
  kFloatOdd,       ///< float_odd: to float by rounding to odd, so that a second rounding to 16 bits is exact
  kConvert,        ///< convert_int8 ...: float to integer, toward zero, the nearest where it does not fit, NaN to 0
  kWrap,           ///< wrap_add, wrap_sub, wrap_mul, wrap_abs: signed arithmetic modulo 2^bits
  kFloorDiv,       ///< floor_div, floor_mod: toward minus infinity; a zero divisor gives 0
  kShift,          ///< shift_left, shift_right of the language
  kNegate,         ///< negate: of 16 bits
  kSign,           ///< sign_of
  kReciprocal,     ///< reciprocal_near
  kSigmoid,        ///< sigmoid
  kExp2OfFloat16,  ///< exp2_for_float16
  kMinMax,         ///< min_nan, max_nan: a NaN wins
  kSameInWarp,     ///< same_in_warp: an integer that all threads of a warp have, and the compiler knows it
  kOpaque,         ///< opaque: an integer of which NVIDIA's compilers cannot tell how it was computed
  kWidened,        ///< widened: an integer of 64 bits of which NVVM cannot tell that it was a narrow one
  kMinMaxFloat16,  ///< min_nan, max_nan of two as they stand in memory
  kMinMaxBFloat16,
  kQuotient,         ///< quotient: a / b, cheap where many are divided by one b
  kNarrowQuotient,   ///< narrow_quotient: the same for floats of 16 bits
  kNext,             ///< next_float16, next_bfloat16
  kCopyAsync,        ///< copy_async, commit_copies, wait_copies
  kCopyAsyncIf,      ///< copy_async_if
  kCopyAsyncOrZero,  ///< copy_async_or_zero: zeros where nothing is read
  kPair,             ///< pair_of, split: two floats of 16 bits as a register of 32
  kRoundedFloat16,   ///< float16_pair: two float32 that are rounded at once
  kRoundedBFloat16,  ///< bfloat16_pair: likewise
  kFloat16Pair,      ///< both_of, add_pair, sub_pair, mul_pair, pair_from: two float16 at once
  kMatrixLoad,       ///< load_matrices: ldmatrix
  kMatrixStore,      ///< store_matrices: stmatrix
  kMatMulFloat16,    ///< mma_m16n8k16: mma.sync of a warp
  kMatMulBFloat16,
  kMatMulTf32,     ///< mma_m16n8k8: the same of float32
  kTensorMap,      ///< TensorMap: what the driver encodes
  kRing,           ///< make_ring, acquire, commit, await, release: mbarriers
  kHandOver,       ///< make_hand_overs, take, pass: of teams that read a ring by turns
  kBoxStore,       ///< store_box, fence_boxes, commit_boxes, wait_boxes_read, wait_boxes
  kGroupBarrier,   ///< sync_warpgroup
  kRegisters,      ///< take_registers, give_registers
  kBoxCopy,        ///< copy_box: of a tensor map
  kSharedRing,     ///< wait_for_rings, release_in, drain: of blocks of a cluster
  kSharedBoxCopy,  ///< copy_box_to: to blocks of a cluster
  kClusterStep,    ///< arrive_in_cluster, wait_for_cluster
  kClusterLoad,    ///< load_of_block: shared memory of a block of the cluster
  kProducts,       ///< wait_products, receive: of warpgroups
  kIntegerSums,    ///< receive_integers: of their sums of integers
  kHeld,           ///< receive_held: operands of theirs
  kRenewed,        ///< renew_held: the same, of which no later product is unfinished
  kOverlap,        ///< wait_for_kernels_before, let_next_kernel_start
  kUnpromised,     ///< unpromised: a tensor at an address of unknown origin
  kAtomicInteger,  ///< atomic_add, atomic_min, atomic_max of 32 and 64 bits
  kAtomicFloat,    ///< of float and double
  kAtomicVector,   ///< atomic_add_vector: of 2 or 4 floats that are neighbours
  kAtomicUpdate,   ///< atomic_update: compare and swap on 8 and 16 bits
  kAtomicNarrow,   ///< of integers of 8 and 16 bits
  kAtomicFloat16,
  kAtomicBFloat16,
};

/// The helpers and all that they need, in a fixed order.
std::string prelude_text(const std::set<Helper>& helpers);

/// True for a name that some helper defines.
bool is_prelude_name(const std::string& name);

}  // namespace tc::cuda
