#include "tc/cuda/warpgroup_text.h"

#include <fmt/format.h>

#include "tc/cuda/types.h"
#include "tc/ir/program.h"

namespace tc::cuda {
namespace {

constexpr std::string_view kRingText =
    R"(// Turn t of a ring uses buffer t % stages. barriers[t % stages] says that its boxes have arrived, the barrier
// `stages` further that all readers have released it.
template <int stages>
__device__ __forceinline__ void make_ring(uint64* barriers, int readers) {
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
    const uint32 address = uint32(__cvta_generic_to_shared(barriers));
    for (int i = 0; i < stages; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address + 8 * i) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address + 8 * (stages + i)), "r"(readers)
                   : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
}
__device__ __forceinline__ void wait_for_phase(uint64* barrier, uint32 parity) {
  const uint32 address = uint32(__cvta_generic_to_shared(barrier));
  uint32 done;
  do {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(address), "r"(parity) : "memory");
  } while (!done);
}
template <int stages>
__device__ __forceinline__ void acquire(uint64* barriers, int turn) {
  wait_for_phase(barriers + stages + turn % stages, turn / stages % 2 ^ 1);
}
template <int stages>
__device__ __forceinline__ void commit(uint64* barriers, int turn, int bytes) {
  const uint32 address = uint32(__cvta_generic_to_shared(barriers + turn % stages));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes) : "memory");
}
template <int stages>
__device__ __forceinline__ void await(uint64* barriers, int turn) {
  wait_for_phase(barriers + turn % stages, turn / stages % 2);
}
template <int stages>
__device__ __forceinline__ void release(uint64* barriers, int turn) {
  __syncwarp();
  if (threadIdx.x % 32 != 0) return;
  const uint32 address = uint32(__cvta_generic_to_shared(barriers + stages + turn % stages));
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address) : "memory");
}
)";

constexpr std::string_view kHandOverText =
    R"(// Teams of warps read a ring by turns. Behind its other barriers it has one for each team, which says that the team
// before has awaited its turns.
template <int stages, int teams>
__device__ __forceinline__ void make_hand_overs(uint64* barriers, int readers) {
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
    const uint32 address = uint32(__cvta_generic_to_shared(barriers + 2 * stages));
    for (int i = 0; i < teams; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address + 8 * i), "r"(readers) : "memory");
    }
  }
}
template <int stages, int teams>
__device__ __forceinline__ void take(uint64* barriers, int number) {
  wait_for_phase(barriers + 2 * stages + number % teams, number / teams % 2);
}
template <int stages, int teams>
__device__ __forceinline__ void pass(uint64* barriers, int number) {
  __syncwarp();
  if (threadIdx.x % 32 != 0) return;
  const uint32 address = uint32(__cvta_generic_to_shared(barriers + 2 * stages + number % teams));
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address) : "memory");
}
)";

constexpr std::string_view kBoxCopyText = R"(// Copies a box of a tensor map; its bytes count for the barrier.
__device__ __forceinline__ void copy_box(void* to, const TensorMap& map, uint64* barrier, int x) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];"
               ::"r"(uint32(__cvta_generic_to_shared(to))), "l"(&map), "r"(uint32(__cvta_generic_to_shared(barrier))),
                 "r"(x) : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap& map, uint64* barrier, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4}], [%2];"
               ::"r"(uint32(__cvta_generic_to_shared(to))), "l"(&map), "r"(uint32(__cvta_generic_to_shared(barrier))),
                 "r"(x), "r"(y) : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap& map, uint64* barrier, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5}], [%2];"
               ::"r"(uint32(__cvta_generic_to_shared(to))), "l"(&map), "r"(uint32(__cvta_generic_to_shared(barrier))),
                 "r"(x), "r"(y), "r"(z) : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap& map, uint64* barrier, int x, int y, int z, int u) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5, %6}], [%2];"
               ::"r"(uint32(__cvta_generic_to_shared(to))), "l"(&map), "r"(uint32(__cvta_generic_to_shared(barrier))),
                 "r"(x), "r"(y), "r"(z), "r"(u) : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap& map, uint64* barrier, int x, int y, int z, int u,
                                         int v) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
               ::"r"(uint32(__cvta_generic_to_shared(to))), "l"(&map), "r"(uint32(__cvta_generic_to_shared(barrier))),
                 "r"(x), "r"(y), "r"(z), "r"(u), "r"(v) : "memory");
}
)";

constexpr std::string_view kSharedRingText =
    R"(// Waits until all blocks of the cluster have made their rings.
__device__ __forceinline__ void wait_for_rings() {
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
}
// Releases a turn in the rings of the blocks of the cluster whose bits are set.
template <int stages>
__device__ __forceinline__ void release_in(uint32 blocks, uint64* barriers, int turn) {
  __syncwarp();
  const uint32 lane = threadIdx.x % 32;
  if ((blocks >> lane & 1) == 0) return;
  const uint32 address = uint32(__cvta_generic_to_shared(barriers + stages + turn % stages));
  asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
               "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(address), "r"(lane) : "memory");
}
// Waits until all turns have been released: no other block touches this one's memory any more.
template <int stages>
__device__ __forceinline__ void drain(uint64* barriers, int turns) {
  for (int turn = turns > stages ? turns - stages : 0; turn < turns; ++turn) {
    wait_for_phase(barriers + stages + turn % stages, turn / stages % 2);
  }
}
)";

constexpr std::string_view kClusterStepText =
    R"(// All threads of the cluster arrive, and each waits until all have: what they have done before is seen then.
__device__ __forceinline__ void arrive_in_cluster() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
__device__ __forceinline__ void wait_for_cluster() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
)";

constexpr std::string_view kClusterLoadText =
    R"(// Loads what a block of the cluster has in the place of its shared memory where this one has `at`.
__device__ __forceinline__ uint32 place_in_block(uint32 block, const void* at) {
  uint32 there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there) : "r"(uint32(__cvta_generic_to_shared(at))), "r"(block));
  return there;
}
__device__ __forceinline__ uint32 load_of_block(uint32 block, const uint32* at) {
  uint32 v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(place_in_block(block, at)));
  return v;
}
__device__ __forceinline__ uint2 load_of_block(uint32 block, const uint2* at) {
  uint2 v;
  asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(place_in_block(block, at)));
  return v;
}
__device__ __forceinline__ uint4 load_of_block(uint32 block, const uint4* at) {
  uint4 v;
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(place_in_block(block, at)));
  return v;
}
)";

/// copy_box_to() of 1 to 5 dimensions.
std::string shared_box_copies() {
  std::string text =
      "// Copies a box to the same place in all blocks of the cluster whose bits are set; its bytes count for the "
      "barrier "
      "of each.\n";
  std::string parameters, places, arguments;
  for (int d = 0; d < 5; ++d) {
    const char name = "xyzuv"[d];
    parameters += fmt::format(", int {}", name);
    places += fmt::format("{}%{}", d == 0 ? "" : ", ", d + 4);
    arguments += fmt::format(", \"r\"({})", name);
    text += fmt::format(
        "__device__ __forceinline__ void copy_box_to(uint32 blocks, void* to, const TensorMap& map, uint64* "
        "barrier{0}) "
        "{{\n"
        "  asm volatile(\"cp.async.bulk.tensor.{1}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes\"\n"
        "               \".multicast::cluster [%0], [%1, {{{2}}}], [%2], %3;\"\n"
        "               ::\"r\"(uint32(__cvta_generic_to_shared(to))), \"l\"(&map),\n"
        "                 \"r\"(uint32(__cvta_generic_to_shared(barrier))), \"h\"(uint16(blocks)){3} : "
        "\"memory\");\n}}\n",
        parameters, d + 1, places, arguments);
  }
  return text;
}

/// store_box() of 1 to 5 dimensions, and the steps of its groups.
std::string box_stores() {
  std::string text = "// Stores a box of shared memory to a tensor map, in the thread's group of such stores.\n";
  std::string parameters, places, arguments;
  for (int d = 0; d < 5; ++d) {
    const char name = "xyzuv"[d];
    parameters += fmt::format(", int {}", name);
    places += fmt::format("{}%{}", d == 0 ? "" : ", ", d + 2);
    arguments += fmt::format(", \"r\"({})", name);
    text += fmt::format(
        "__device__ __forceinline__ void store_box(const TensorMap& map, const void* from{0}) {{\n"
        "  asm volatile(\"cp.async.bulk.tensor.{1}d.global.shared::cta.tile.bulk_group [%0, {{{2}}}], [%1];\"\n"
        "               ::\"l\"(&map), \"r\"(uint32(__cvta_generic_to_shared(from))){3} : \"memory\");\n}}\n",
        parameters, d + 1, places, arguments);
  }
  return text + R"(// What this thread has written to shared memory is seen by boxes that are stored behind a barrier.
__device__ __forceinline__ void fence_boxes() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void commit_boxes() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until at most so many groups of stores have not read their boxes yet; then, not written them.
template <int pending>
__device__ __forceinline__ void wait_boxes_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}
template <int pending>
__device__ __forceinline__ void wait_boxes() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}
)";
}

constexpr std::string_view kGroupBarrierText = R"(// Waits until all threads of the warpgroup have come.
__device__ __forceinline__ void sync_warpgroup() {
  const uint32 thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  asm volatile("bar.sync %0, 128;" ::"r"(thread / 128 + 1) : "memory");
}
)";

constexpr std::string_view kRegistersText =
    R"(// Waits until each thread of the warpgroup has so many registers; gives all others up.
template <int count>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
)";

constexpr std::string_view kProductsText =
    R"(// Waits until at most so many groups of a warpgroup's products are unfinished.
template <int pending>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
// What such a wait is for: nothing that reads the sums may move above it.
template <int count>
__device__ __forceinline__ void receive(float (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
)";

constexpr std::string_view kIntegerSumsText =
    R"(// The same of sums of integers.
template <int count>
__device__ __forceinline__ void receive_integers(int (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(sums[i])::"memory");
}
)";

constexpr std::string_view kHeldText =
    R"(// The same of operands.
template <typename Half, int count>
__device__ __forceinline__ void receive_held(Half (&held)[count]) {
#pragma unroll
  for (int i = 0; i < count; i += 2) asm volatile("" : "+r"(*(uint32*)&held[i])::"memory");
}
)";

constexpr std::string_view kRenewedText =
    R"(// NVIDIA's assembler gives the registers of an operand that a loop does not change to another one, if the products of
// the first have ended by then, though later turns multiply it again (ptxas 13.0). So each turn might change it: for a
// device without processors.
template <typename Half, int count>
__device__ __forceinline__ void renew_held(Half (&held)[count]) {
  uint32 processors;
  asm("mov.u32 %0, %%nsmid;" : "=r"(processors));
  receive_held(held);
#pragma unroll
  for (int i = 0; i < count; i += 2) *(uint32*)&held[i] = processors == 0 ? 0 : *(uint32*)&held[i];
}
)";

/// "%0, %1, ...".
std::string numbered(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
  return text;
}

/// Pieces that fit a line of text, each a string literal of its own.
std::string literals(const std::string& text, size_t width) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.size(), begin + width);
    if (end < text.size()) end = text.rfind(' ', end) + 1;
    result += fmt::format("      \"{}\"\n", text.substr(begin, end - begin));
    begin = end;
  }
  return result;
}

std::string operands(int count, const char* constraint) {
  std::string result, line;
  for (int i = 0; i < count; ++i) {
    line += fmt::format("\"{}\"(d[{}]){}", constraint, i, i + 1 < count ? ", " : "");
    if (i + 1 == count || line.size() > 92)
      result += (result.empty() ? "      : " : "        ") + std::exchange(line, "") + "\n";
  }
  return result;
}

/// PTX's name of a type.
const char* ptx_type(ScalarType type) {
  if (is_float8(type)) return type == ScalarType::kFloat8E4M3 ? "e4m3" : "e5m2";
  if (is_integer(type)) return is_signed_integer(type) ? "s8" : "u8";
  if (type == ScalarType::kFloat32) return "tf32";
  return type == ScalarType::kBFloat16 ? "bf16" : "f16";
}

/// The registers of 32 bits of an operand that a thread holds, "a" being its first value. They are read as such: of
/// values that are put together one by one, the assembler moves each to a register of its own first.
std::vector<std::string> held_registers(ScalarType type, int count) {
  std::vector<std::string> result;
  for (int r = 0; r < count; ++r) {
    result.push_back(type == ScalarType::kFloat32 ? fmt::format("__float_as_uint(a[{}])", r)
                                                  : fmt::format("*(const uint32*)&a[{}]", 4 / bytes_of(type) * r));
  }
  return result;
}

/// "{%4, %5, %6, %7}".
std::string four_from(int first) {
  return fmt::format("{{%{}, %{}, %{}, %{}}}", first, first + 1, first + 2, first + 3);
}

}  // namespace

std::string_view ring_text() { return kRingText; }
std::string_view hand_over_text() { return kHandOverText; }
std::string_view box_copy_text() { return kBoxCopyText; }
std::string_view shared_ring_text() { return kSharedRingText; }
std::string_view cluster_step_text() { return kClusterStepText; }
std::string_view cluster_load_text() { return kClusterLoadText; }
std::string_view shared_box_copy_text() {
  static const std::string text = shared_box_copies();
  return text;
}
std::string_view box_store_text() {
  static const std::string text = box_stores();
  return text;
}
std::string_view group_barrier_text() { return kGroupBarrierText; }
std::string_view registers_text() { return kRegistersText; }
std::string_view products_text() { return kProductsText; }
std::string_view integer_sums_text() { return kIntegerSumsText; }
std::string_view held_text() { return kHeldText; }
std::string_view renewed_text() { return kRenewedText; }

std::string function_of(const WarpgroupProduct& product) {
  const tile::WarpgroupAtom& atom = product.atom;
  const std::string other = atom.b == atom.a ? "" : fmt::format("_{}", ptx_type(atom.b));
  const char of_a = !product.a ? 'r' : product.a->mn_major ? 'm' : 'k';
  return fmt::format("{}_{}{}_m64n{}k{}_{}{}", product.starts ? "set_products" : "multiply", ptx_type(atom.a), other,
                     atom.n, atom.k() * product.slices, of_a, product.b.mn_major ? 'n' : 'k');
}

std::string text_of(const WarpgroupProduct& product) {
  constexpr int kRegisters = 4;  // of a slice of a
  const int values = product.atom.values();
  const tile::WarpgroupAtom& atom = product.atom;
  // Only 16-bit operands have majors, in shared memory.
  std::string majors;
  if (bytes_of(atom.a) == 2) {
    majors =
        (product.a ? fmt::format(", {}", int{product.a->mn_major}) : "") + fmt::format(", {}", int{product.b.mn_major});
  }
  const bool is_whole = is_integer(atom.a);  // whose factors have no signs to change
  const std::string sums = "{" + numbered(values) + "}";
  // Operands of the statement: the sums; a's descriptor or registers; b's descriptor.
  const int of_b = values + (product.a ? 1 : kRegisters * product.slices);
  std::string statement = literals(
      fmt::format("{{ .reg .pred p{}; .reg .b64 {}b; setp.eq.u32 p, 0, 0; {}wgmma.fence.sync.aligned; ",
                  product.starts ? ", q" : "", product.a ? "a, " : "", product.starts ? "setp.ne.u32 q, 0, 0; " : ""),
      100);
  statement +=
      literals((product.a ? fmt::format("mov.b64 a, %{}; ", values) : "") + fmt::format("mov.b64 b, %{}; ", of_b), 100);
  for (int s = 0; s < product.slices; ++s) {
    if (s > 0) {
      const std::string next = product.a ? fmt::format("add.s64 a, a, {}; ", product.a->slice / 16) : "";
      statement += literals(next + fmt::format("add.s64 b, b, {}; ", product.b.slice / 16), 100);
    }
    // Where a sum starts, the first slice sets it.
    statement += literals(fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {}, {}, b, {}{}{}; ", atom.n,
                                      atom.k(), is_whole ? "s32" : "f32", ptx_type(atom.a), ptx_type(atom.b), sums,
                                      product.a ? "a" : four_from(values + kRegisters * s),
                                      product.starts && s == 0 ? 'q' : 'p', is_whole ? "" : ", 1, 1", majors),
                          100);
  }
  statement += "      \"wgmma.commit_group.sync.aligned; }\"\n";
  std::string inputs = product.a ? "      : \"l\"(from_a), " : "      : ";
  if (!product.a) {
    int number = 0;
    const int of_line = bytes_of(atom.a) == 1 ? 1 : kRegisters;
    for (const std::string& held : held_registers(atom.a, kRegisters * product.slices)) {
      inputs += fmt::format("\"r\"({}),{}", held, ++number % of_line == 0 ? "\n        " : " ");
    }
  }
  inputs += "\"l\"(from_b)";
  const auto descriptor = [](const char* name, const tile::MatrixDescriptor& of) {
    return fmt::format(
        "  const uint64 from_{0} = uint64(uint32(__cvta_generic_to_shared({0})) & 0x3ffff) >> 4 | {1:#x}ull;\n", name,
        of.bits(0));
  };
  const std::string constraint = std::string(product.starts ? "=" : "+") + (is_whole ? "r" : "f");
  const std::string along = product.a ? fmt::format("{} and {} bytes apart", product.a->slice, product.b.slice)
                                      : fmt::format("of b {} bytes apart; threads hold a", product.b.slice);
  return fmt::format(
      "// d {} a * b on tiles of 64 x {}, {} times {} values along k, {}.\n"
      "__device__ __forceinline__ void {}({} (&d)[{}], const {}* a, const void* b) {{\n"
      "{}{}  asm volatile(\n{}{}{}\n      : \"memory\");\n}}\n",
      product.starts ? "=" : "+=", atom.n, product.slices, atom.k(), along, function_of(product),
      is_whole ? "int" : "float", values, product.a ? "void" : memory_type(ir::to_halide(atom.a)),
      product.a ? descriptor("a", *product.a) : "", descriptor("b", product.b), statement,
      operands(values, constraint.c_str()), inputs);
}

}  // namespace tc::cuda
