#include "tc/tile/verify.h"

#include <gtest/gtest.h>

#include "../common/tile_mutants.h"
#include "kernels.h"
#include "tc/tile/certificate.h"
#include "tc/tile/print.h"

namespace tc::tile {
namespace {

using namespace build;
using Halide::Float;
using Sentences = std::vector<std::string>;

TEST(Verify, SamplesAreRight) {
  for (const Sample& sample :
       {vector_add(1000), row_sums(5, 333, 128), tiled_matmul(33, 20, 50), pipelined_matmul(64, 96, 64),
        transpose(64, Spread::kPadded), transpose(64, Spread::kSwizzled)}) {
    const Verification result = verify(sample.program);
    EXPECT_EQ(result.faults, Sentences{});
    EXPECT_EQ(result.unproved, Sentences{});
  }
  EXPECT_EQ(verify(histogram(100, 7)).unproved,
            Sentences{"histogram: the subscript 'keys(i)' of 'counts' in 'atomic counts(keys(i)) += 1' is not affine"});
}

/// Guards are needed for the bounds, or for the order, or the work is done by too many threads to no harm.
TEST(Verify, EveryGuardOfTheSamplesIsNeeded) {
  Sentences survivors;
  int removed = 0;
  for (const Sample& sample :
       {vector_add(1000), row_sums(5, 333, 128), tiled_matmul(33, 20, 50), pipelined_matmul(64, 96, 64)}) {
    for (const Mutant& mutant : mutants(sample.program)) {
      if (mutant.what.find("guard") == std::string::npos) continue;
      ++removed;
      const bool caught = !verify(mutant.program).holds() || !certify(mutant.program.kernels[0]).races.empty();
      if (!caught) survivors.push_back(mutant.what);
    }
  }
  EXPECT_EQ(removed, 1 + 4 + 3 + 1);
  ASSERT_EQ(survivors.size(), 1u);
  EXPECT_NE(survivors[0].find("thread_x < 32"), std::string::npos) << "all warps may add up the partial sums";
}

/// One kernel of 64 threads with x (read) and y (written), float32, 64 elements.
struct Small {
  Small() {
    y.written = true;
    y.name = "y";
    kernel.name = "small";
    kernel.block = {64, 1, 1};
    kernel.tensors = {x, y};
  }
  Sentences faults(NodePtr body) {
    kernel.body = std::move(body);
    Program program;
    program.kernels = {kernel};
    return verify(program).faults;
  }
  Tensor x = global("x", Float(32), Layout::row_major({64}));
  Tensor y = x;
  Tensor s = shared("s", Float(32), Layout::row_major({64}));
  Tensor r = registers("r", Float(32), Layout::row_major({4}));
  Kernel kernel;
};

TEST(Verify, NamesRanksAndTypes) {
  Small k;
  EXPECT_EQ(k.faults(store(k.y, {var("i")}, 1.0f)), Sentences{"small: 'i' means nothing in 'y(i) = 1.0'"});
  EXPECT_EQ(k.faults(store(k.s, {thread_x()}, 1.0f)), Sentences{"small: 's' in 's(thread_x) = 1.0' is no tensor"});
  EXPECT_EQ(k.faults(store(k.y, {thread_x(), 0}, 1.0f)),
            Sentences{"small: 'y' has 1 dimensions but 2 subscripts in 'y(thread_x, 0) = 1.0'"});
  EXPECT_EQ(k.faults(store(k.y, {thread_x()}, 1)),
            Sentences{"small: 'y(thread_x) = 1' stores int32 in 'y', which is float32"});
  EXPECT_EQ(k.faults(store(k.x, {thread_x()}, 1.0f)),
            Sentences{"small: 'x' is written by 'x(thread_x) = 1.0', but is not marked as written"});
  EXPECT_EQ(k.faults(for_loop("i", 0, 4, for_loop("i", 0, 4, sequence({})))), Sentences{"small: 'i' has two meanings"});
}

TEST(Verify, UnrolledLoopsAndRegisters) {
  Small k;
  EXPECT_EQ(k.faults(unrolled("i", 0, thread_x(), sequence({}))),
            Sentences{"small: the loop over 'i' is to be unrolled, but has no constant trip count"});
  EXPECT_EQ(k.faults(allocate(k.r, unrolled("i", 0, 4, store(k.r, {var("i")}, 1.0f)))), Sentences{});
  EXPECT_EQ(k.faults(allocate(k.r, for_loop("i", 0, 4, store(k.r, {var("i")}, 1.0f)))),
            Sentences{"small: the subscript 'i' of 'r' in 'r(i) = 1.0' is no constant once loops are unrolled"});
}

TEST(Verify, BarriersInUniformControlFlow) {
  Small k;
  EXPECT_EQ(k.faults(if_then(thread_x() < 32, barrier())),
            Sentences{"small: 'barrier' is reached by some threads of a block only: 'thread_x < 32' differs between "
                      "them"});
  EXPECT_EQ(k.faults(if_then(thread_x() < 32, barrier(Barrier::Scope::kWarp))), Sentences{});
  EXPECT_EQ(k.faults(if_then(thread_x() < 33, barrier(Barrier::Scope::kWarp))).size(), 1u);
  EXPECT_EQ(k.faults(if_then(thread_x() < 64, barrier())), Sentences{}) << "all of them";
  EXPECT_EQ(k.faults(if_then(block_x() < 1, barrier())), Sentences{});
  EXPECT_EQ(k.faults(for_loop("i", thread_x(), 128, barrier(), 64)), Sentences{}) << "twice, for every thread";
  EXPECT_EQ(k.faults(for_loop("i", thread_x(), 100, barrier(), 64)),
            Sentences{"small: 'barrier' is reached by some threads of a block only: the number of iterations of 'i' "
                      "differs between them"});
  EXPECT_EQ(k.faults(if_then(read(k.x, {thread_x()}) < 1.0f, barrier())).size(), 1u);
  EXPECT_EQ(k.faults(if_then(read(k.x, {0}) < 1.0f, barrier())), Sentences{}) << "of memory that nobody writes";
}

TEST(Verify, Limits) {
  Small k;
  k.kernel.block = {1024, 2, 1};
  EXPECT_EQ(k.faults(sequence({})), Sentences{"small: a block has 2048 threads, but 1024 are the most"});
  k.kernel.block = {64, 1, 1};
  k.kernel.grid = {1, 70000, 1};
  EXPECT_EQ(k.faults(sequence({})),
            Sentences{"small: the grid has 70000 blocks in dimension 1, which must be 1 to 65535"});
  k.kernel.grid = {1, 1, 1};
  const Tensor large = shared("large", Float(32), Layout::row_major({60000}));
  EXPECT_EQ(k.faults(allocate(large, sequence({}))),
            Sentences{"small: it needs 240000 bytes of shared memory, but a block has 232448"});
}

TEST(Verify, Vectors) {
  Small k;
  const Expr t = thread_x() % 16;
  const auto with = [&](const Tensor& s, Expr to, Expr from, int elements, bool asynchronous = false) {
    return k.faults(allocate(s, move(s, {to}, k.x, {from}, elements, asynchronous)));
  };
  EXPECT_EQ(with(k.s, t * 4, t * 4, 4), Sentences{});
  EXPECT_EQ(with(k.s, t * 4, t * 4, 4, true), Sentences{});
  EXPECT_EQ(k.faults(allocate(k.s, predicated(thread_x() < 16, move(k.s, {t * 4}, k.x, {t * 4}, 4, true)))),
            Sentences{});
  EXPECT_EQ(k.faults(allocate(k.s, predicated(thread_x() < 16, move(k.s, {t * 4}, k.x, {t * 4}, 4, false)))),
            Sentences{"small: what the condition 'thread_x < 16' is a predicate of is no asynchronous copy"});
  EXPECT_EQ(with(k.s, t * 4, t * 3, 4),
            Sentences{"small: the offset of 'x' in 'move s(thread_x % 16 * 4 +: 4) = x(thread_x % 16 * 3 +: 4)' is no "
                      "multiple of 4 for thread (63,0,0) of block (0,0,0)"});
  EXPECT_EQ(with(k.s, t * 3, t * 3, 3).size(), 1u);
  EXPECT_EQ(with(shared("s", Float(32), Layout(64, 2)), t * 4, t * 4, 4),
            Sentences{"small: 'move s(thread_x % 16 * 4 +: 4) = x(thread_x % 16 * 4 +: 4)' takes 4 neighbours of 's', "
                      "which lie apart: float32 s 64:2"});
}

TEST(Verify, Bounds) {
  Small k;
  EXPECT_EQ(k.faults(store(k.y, {thread_x() + 1}, 1.0f)),
            Sentences{"small: the subscript 'thread_x + 1' of 'y' in 'y(thread_x + 1) = 1.0' leaves [0, 64) for thread "
                      "(63,0,0) of block (0,0,0)"});
  EXPECT_EQ(k.faults(if_then(thread_x() < 63, store(k.y, {thread_x() + 1}, 1.0f))), Sentences{});
  EXPECT_EQ(k.faults(store(k.y, {thread_x() * 2 % 64}, 1.0f)), Sentences{});
}

/// Where the guard of a copy is false its source is not read, so that it may lie anywhere.
TEST(Verify, BoundsOfGuardedCopies) {
  Small k;
  const auto copied_if = [&](const Halide::Expr& guard) {
    const NodePtr copy = guarded(guard, move(k.s, {thread_x()}, k.x, {thread_x() + 1}, 1, true));
    return allocate(k.s, sequence({copy, commit_group(), wait_group(0)}));
  };
  EXPECT_EQ(k.faults(copied_if(thread_x() < 63)), Sentences{});
  const Sentences faults = k.faults(copied_if(thread_x() < 64));
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_NE(faults[0].find("the subscript 'thread_x + 1' of 'x'"), std::string::npos) << faults[0];
  EXPECT_NE(faults[0].find("leaves [0, 64) for thread (63,0,0)"), std::string::npos) << faults[0];
}

TEST(Print, ShowsMapsAndClusters) {
  Kernel kernel;
  kernel.name = "k";
  kernel.grid = {4, 1, 1};
  kernel.cluster = {2, 1, 1};
  kernel.tensors = {global("x", Float(16), Layout::row_major({64, 128}))};
  kernel.body = sequence({});
  kernel.maps = {{.name = "m",
                  .tensor = "x",
                  .offset = 8,
                  .extents = {120, 64},
                  .strides = {1, 128},
                  .box = {64, 32},
                  .swizzle = 128}};
  EXPECT_EQ(to_text(kernel),
            "kernel k grid (4,1,1) block (1,1,1) cluster (2,1,1)\n"
            "  global float16 x (64,128):(128,1)\n"
            "  map m of x at 8, extents (120,64), strides (1,128), box (64,32), swizzle 128\n");
}

TEST(Print, ShowsKernelsAsPeopleReadThem) {
  Sample sample = transpose(32, Spread::kSwizzled);
  sample.program.workspace = {global("t", Float(32), Layout::row_major({4, 8}))};
  sample.program.kernels[0].scalars = {{"alpha", Float(32)}};
  EXPECT_EQ(to_text(sample.program), R"(program transpose
  workspace float32 t (4,8):(8,1)

kernel transpose grid (1,1,1) block (32,8,1)
  global float32 A (32,32):(32,1)
  global float32 B (32,32):(32,1) written
  scalar float32 alpha
  shared float32 tile Sw<5,0,5> o (32,32):(32,1)
  for r in 0:4 unrolled
    tile(thread_y + r * 8, thread_x) = A(block_y * 32 + (thread_y + r * 8), block_x * 32 + thread_x)
  barrier
  for r in 0:4 unrolled
    B(block_x * 32 + (thread_y + r * 8), block_y * 32 + thread_x) = tile(thread_x, thread_y + r * 8)
)");
}

TEST(Print, ShowsEverySpec) {
  const Tensor y = global("y", Float(32), Layout::row_major({64}), true);
  const Tensor s = shared("s", Float(32), Layout::row_major({64}));
  const Tensor r = registers("r", Float(32), Layout(1, 0));
  const NodePtr body = allocate(
      s, allocate(r, let("i", thread_x() * 4,
                         for_loop("k", 0, 8,
                                  if_then(var("k") < 4,
                                          sequence({with_comment("stage", move(s, {var("i")}, y, {var("i")}, 4, true)),
                                                    commit_group(), wait_group(1)}),
                                          sequence({shuffle(r, {0}, Shuffle::Kind::kDown, 1.0f, 16, 32),
                                                    atomic(y, {0}, Atomic::Op::kMax, read(r, {0})),
                                                    barrier(Barrier::Scope::kWarp)})),
                                  2))));
  Kernel kernel;
  kernel.name = "all";
  kernel.body = body;
  EXPECT_EQ(to_text(kernel), R"(kernel all grid (1,1,1) block (1,1,1)
  shared float32 s (64):(1)
  register float32 r 1:0
  let i = thread_x * 4
  for k in 0:8 step 2
    if k < 4
      # stage
      move async s(i +: 4) = y(i +: 4)
      commit group
      wait group 1
    else
      r(0) = shuffle down(1.0, 16) width 32
      atomic y(0) max= r(0)
      barrier warp
)");
}

/// A kernel with one map of a tensor of 64 rows of 128 float16, after a change.
Sentences map_faults(const std::function<void(TensorMap&, Kernel&)>& change) {
  Kernel kernel;
  kernel.name = "k";
  kernel.grid = {4, 1, 1};
  kernel.tensors = {global("x", Float(16), Layout::row_major({64, 128}))};
  kernel.body = sequence({});
  kernel.maps = {
      {.name = "m", .tensor = "x", .extents = {128, 64}, .strides = {1, 128}, .box = {64, 64}, .swizzle = 128}};
  change(kernel.maps[0], kernel);
  Program program;
  program.kernels = {kernel};
  return verify(program).faults;
}

TEST(Verify, TensorMaps) {
  EXPECT_EQ(map_faults([](TensorMap&, Kernel&) {}), Sentences{});
  const auto faults = [](auto change) { return map_faults([&](TensorMap& map, Kernel&) { change(map); }); };
  EXPECT_EQ(faults([](TensorMap& m) { m.tensor = "y"; }),
            Sentences{"k: the tensor map 'm' is of 'y', which is no global tensor"});
  EXPECT_EQ(
      faults([](TensorMap& m) { m.box = {64}; }),
      Sentences{"k: the tensor map 'm' has 2 extents, 2 strides and a box of 1; each must be 1 to 5, and the same"});
  EXPECT_EQ(faults([](TensorMap& m) { m.extents[1] = 65; }),
            Sentences{"k: the tensor map 'm' reaches from element 0 to 8319 of 'x', which has 8192"});
  EXPECT_EQ(faults([](TensorMap& m) { m.extents[1] = 0; }),
            Sentences{"k: the tensor map 'm' has an extent of 0 in dimension 1, which must be 1 to 4294967296"});
  EXPECT_EQ(faults([](TensorMap& m) { m.box[1] = 257; }),
            Sentences{"k: the tensor map 'm' has a box of 257 in dimension 1, which must be 1 to 256"});
  EXPECT_EQ(faults([](TensorMap& m) {
              m.strides = {128, 128};
            }).at(0),
            "k: the tensor map 'm' has a stride of 128 in dimension 0, which must be 1");
  EXPECT_EQ(faults([](TensorMap& m) { m.strides[1] = 124; }),
            Sentences{"k: the tensor map 'm' has a stride of 124 elements in dimension 1; it must be a multiple of 16 "
                      "bytes below 2^40"});
  EXPECT_EQ(faults([](TensorMap& m) { m.box[0] = 60; }),
            Sentences{"k: the tensor map 'm' has rows of 120 bytes in its box, which is no multiple of 16"});
  EXPECT_EQ(faults([](TensorMap& m) { m.swizzle = 64; }),
            Sentences{"k: the tensor map 'm' has rows of 128 bytes in its box, but swizzles 64"});
  EXPECT_EQ(faults([](TensorMap& m) { m.swizzle = 16; }),
            Sentences{"k: the tensor map 'm' swizzles 16 bytes; 0, 32, 64 and 128 are possible"});
  EXPECT_EQ(faults([](TensorMap& m) { m = {m.name, m.tensor, 4, {64}, {1}, {8}}; }),
            Sentences{"k: the tensor map 'm' begins at element 4, which is no multiple of 16 bytes"});
  EXPECT_EQ(map_faults([](TensorMap& m, Kernel& kernel) { kernel.maps.push_back(m); }),
            Sentences{"k: 'm' has two meanings"});
}

TEST(Verify, Clusters) {
  const auto faults = [](std::array<int64_t, 3> cluster) {
    return map_faults([&](TensorMap&, Kernel& kernel) { kernel.cluster = cluster; });
  };
  EXPECT_EQ(faults({2, 1, 1}), Sentences{});
  EXPECT_EQ(faults({3, 1, 1}), Sentences{"k: a cluster has 3 blocks in dimension 0, which must divide the grid's 4"});
  EXPECT_EQ(map_faults([&](TensorMap&, Kernel& kernel) {
              kernel.grid = kernel.cluster = {4, 4, 1};
            }),
            Sentences{"k: a cluster has 16 blocks, but 8 are the most"});
}

TEST(Verify, MapsAndClustersAreOfTheirArchitecture) {
  Program program;
  program.kernels.resize(1);
  Kernel& kernel = program.kernels[0];
  kernel.name = "k";
  kernel.grid = kernel.cluster = {2, 1, 1};
  kernel.body = sequence({});
  EXPECT_EQ(verify(program, Limits{.architecture = 90}).faults, Sentences{});
  EXPECT_EQ(verify(program, Limits{.architecture = 89}).faults,
            Sentences{"k: it has instructions of sm_90, but is for sm_89"});
}

}  // namespace
}  // namespace tc::tile
