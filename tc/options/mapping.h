#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tc/options/options.h"

namespace tc::options {

/// Bounds on the values of MappingOptions, each inclusive. Those of threads and blocks are what every GPU since compute
/// capability 3.0 takes.
inline constexpr std::array<int64_t, 3> kMaxThreads = {1024, 1024, 64};
inline constexpr int64_t kMaxThreadsPerBlock = 1024;
inline constexpr std::array<int64_t, 3> kMaxBlocks = {2147483647, 65535, 65535};
inline constexpr int64_t kMaxMappingUnroll = 4096;
inline constexpr int64_t kMaxSharedMemory = int64_t{1} << 20;  ///< bytes
inline constexpr int64_t kMaxDepth = 64;
inline constexpr int64_t kMaxRegisterTile = 64;
inline constexpr int64_t kMaxCopyStages = 8;
inline constexpr int64_t kMaxCluster = 8;
inline constexpr int64_t kMaxReductionParts = 65535;
inline constexpr int64_t kMaxSplitResults = int64_t{1} << 40;
inline constexpr int64_t kMaxOccurrence = 1000000;
inline constexpr size_t kMaxKernels = 256;                       ///< that have options of their own
inline constexpr size_t kMaxName = 256;                          ///< bytes
inline constexpr int64_t kMaxGatheredMemory = int64_t{1} << 40;  ///< bytes

/// Options of one kernel of a def, which come before those of the def. Fields have the names and meanings of
/// MappingOptions. The address names a statement of the def, so that it outlives changes of what shares a kernel.
struct KernelOptions {
  std::string writes = {};                 ///< tensor of the kernel's anchor: its product, reduction or first statement
  std::optional<int64_t> occurrence = {};  ///< which statement of those that write it, from 1 on; absent: the only one
  std::vector<int64_t> tile = {};
  std::vector<int64_t> register_tile = {};
  std::vector<int64_t> map_to_threads = {};
  std::vector<int64_t> map_to_blocks = {};
  std::optional<int64_t> copy_stages = {};
  std::vector<int64_t> cluster = {};
  std::optional<bool> store_boxes = {};
  std::optional<bool> persistent = {};
  std::optional<bool> ping_pong = {};
  std::optional<bool> tensor_cores = {};
  std::optional<bool> chain = {};
  std::optional<int64_t> split_reduction = {};
  std::vector<int64_t> split_results = {};
  std::optional<int64_t> unroll = {};
  std::optional<bool> unroll_copy_shared = {};
  std::optional<bool> use_shared_memory = {};
  std::optional<bool> use_private_memory = {};
  std::optional<int64_t> max_shared_memory = {};
  std::optional<int64_t> shared_depth = {};
  std::optional<int64_t> private_depth = {};
  std::optional<bool> match_library_calls = {};
  bool operator==(const KernelOptions&) const = default;
};

/// How a def is mapped to a GPU. The names and meanings are those of Tensor Comprehensions, but for the last fifteen,
/// which it does not have. An absent or empty value is chosen by the compiler's own estimate. A value that the mapping
/// cannot follow is an error there (tc/gpu/mapping/limits.h): none is ignored.
struct MappingOptions {
  SchedulerOptions outer_schedule_options = {};
  SchedulerOptions intra_tile_schedule_options = {};       ///< of the points within a tile
  std::optional<bool> fix_parameters_before_scheduling{};  ///< schedule for the sizes at hand, not for all sizes
  std::vector<int64_t> tile = {};                          ///< of each kernel's outermost band, outermost member first
  std::optional<int64_t> unroll = {};                      ///< the most instances that unrolling a loop may lay out
  std::optional<bool> match_library_calls = {};            ///< take a recipe for work that there is one for
  std::vector<int64_t> map_to_threads = {};       ///< threads of a block in x, y and z; x runs over the innermost loop
  std::vector<int64_t> map_to_blocks = {};        ///< blocks of the grid in x, y and z; x runs over the outermost loop
  std::optional<bool> use_shared_memory = {};     ///< hold what a block uses again in shared memory
  std::optional<bool> use_private_memory = {};    ///< hold what a thread works on by itself in registers
  std::optional<bool> unroll_copy_shared = {};    ///< unroll the copies to and from shared memory too
  std::optional<int64_t> max_shared_memory = {};  ///< bytes that a block may use; absent: the device's limit
  std::optional<bool> use_readonly_cache = {};    ///< read what no kernel of the def writes past the coherent cache
  std::optional<int64_t> shared_depth = {};       ///< band members above what is copied to shared memory
  std::optional<int64_t> private_depth = {};      ///< band members above what is copied to registers
  std::vector<int64_t> register_tile = {};        ///< results of each thread, by member of the outermost band
  std::optional<int64_t> copy_stages = {};        ///< buffers that asynchronous copies rotate through
  std::vector<int64_t> cluster = {};              ///< blocks that share copies, by band member, then a tile
  std::optional<bool> store_boxes = {};           ///< results of products are stored by boxes, from shared memory
  std::optional<bool> persistent = {};            ///< blocks of products go through several tiles
  std::optional<bool> ping_pong = {};             ///< then: two warpgroups have them by turns
  std::optional<int64_t> split_reduction = {};    ///< parts of a reduction that blocks of their own work on
  std::vector<int64_t> split_results = {};  ///< results of a product's first launch, by axis; a second has the rest
  std::optional<int64_t> max_gathered_memory = {};  ///< bytes of workspace that rows chosen by data may be copied to
  std::optional<bool> atomic_reduction = {};        ///< blocks combine what they have of a result by atomic updates
  std::optional<bool> tensor_cores = {};            ///< multiply tiles of 16-bit floats by tensor cores
  std::optional<bool> copy_operands = {};           ///< copy what products read to an order that tensor cores take
  std::optional<bool> chain = {};                   ///< products that follow each other share a kernel
  bool strict = false;                              ///< T5: the order of reductions is that of the source
  bool check_bounds = false;                        ///< C8: data-dependent subscripts are checked at every run
  bool fast_accumulation = false;                   ///< T5: sums of products of 8-bit floats need no parts
  bool tf32 = false;                                ///< T5: products of float32 may take operands as TF32
  std::vector<KernelOptions> kernel = {};           ///< of single kernels
  bool operator==(const MappingOptions&) const = default;
};

/// Holds when every value lies within its bounds; the error names each field that does not, and its value.
Result<void> validate(const MappingOptions& options);

/// The options that a kernel has: its own, then those of the def. `kernel` is empty in them.
MappingOptions overlaid(MappingOptions def, const KernelOptions& kernel);

/// What KernelOptions can say of options, at no address.
KernelOptions kernel_part_of(const MappingOptions& options);

/// What they cannot.
MappingOptions def_part_of(MappingOptions options);

/// "'H'", or "'H' occurrence 2".
std::string address_text(const KernelOptions& kernel);

/// Text form (protobuf text format of tc.proto.MappingOptions), as of CpuOptions: mapping_options_from_text(to_text(o))
/// == o for every o that validates.
std::string to_text(const MappingOptions& options);
Result<MappingOptions> mapping_options_from_text(const std::string& text, const std::string& name = "options");

/// The options as C++ that builds them: an initialiser, ready to paste.
///     tc::options::MappingOptions{
///         .tile = {32, 32},
///         .map_to_threads = {32, 8},
///     }
std::string to_cpp(const MappingOptions& options);

}  // namespace tc::options
