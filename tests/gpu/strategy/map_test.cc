#include <gtest/gtest.h>

#include <regex>

#include "tc/tile/verify.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

namespace tc::testing {
namespace {

constexpr char kSoftmax[] = R"(
def softmax(float(N,D) I) -> (O) {
  m(n) max=! I(n,d)
  e(n,d) = exp(I(n,d) - m(n))
  s(n) +=! e(n,d)
  O(n,d) = e(n,d) / s(n)
})";

std::string error_of(const options::MappingOptions& options, const gpu::Device& device = {}) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(kSoftmax, {{"N", 4}, {"D", 4}}), options, device);
  EXPECT_FALSE(mapping);
  return mapping ? std::string() : mapping.error().to_string();
}

TEST(Map, OptionsOutOfTheDevicesLimitsAreErrors) {
  EXPECT_EQ(error_of({.tile = {4, 0}}), "error: 'tile' is 0 at position 1; it must be from 1 to 1073741824\n");
  gpu::Device small;
  small.threads_per_block = 128;
  small.grid = {10, 10, 1};
  EXPECT_EQ(error_of({.map_to_threads = {32, 8}}, small),
            "error: 'map_to_threads' asks for 256 threads in a block; the device has at most 128\n");
  EXPECT_EQ(error_of({.map_to_blocks = {1, 70}}, small),
            "error: 'map_to_blocks' is 70 in y; the device has at most 10\n");
}

TEST(Map, WhatTheMappingCannotFollowIsRefused) {
  EXPECT_EQ(error_of({.fix_parameters_before_scheduling = false}),
            "error: 'fix_parameters_before_scheduling' is false; schedules are made for the sizes at hand\n");
  EXPECT_EQ(
      error_of({.intra_tile_schedule_options = {.allow_skewing = true}}),
      "error: 'intra_tile_schedule_options' allows skewing; statements of a tile share a loop, and only those that "
      "share none are skewed\n");
  EXPECT_EQ(error_of({.private_depth = 0}),
            "error: 'private_depth' is 0, but 2 band members stand above what a thread runs by itself\n");
}

TEST(Map, ReductionsOfEveryOperatorRunOnManyThreads) {
  for (const char* op : {"+=!", "*=!", "min=!", "max=!", "+=", "max="}) {
    for (const int64_t extent : {1, 63, 64, 65, 300, 1023, 1024, 5000}) {
      SCOPED_TRACE(fmt::format("{} over {}", op, extent));
      const std::string text = fmt::format("def f(int32(K) A, int32 s) -> (r) {{ r {} A(k) * s }}", op);
      const std::string text_of_in_out =
          fmt::format("def f(int32(K) A, int32 s, int32 r) -> (r) {{ r {} A(k) * s }}", op);
      const bool starts = std::string_view(op).ends_with("!");
      Result<ir::Program> program = try_specialised(starts ? text : text_of_in_out, {{"K", extent}});
      if (!program) program = try_specialised(text, {{"K", extent}});
      ASSERT_TRUE(program) << program.error().to_string();
      EXPECT_EQ(difference(*program), "");
      options::MappingOptions strict;
      strict.strict = true;
      EXPECT_EQ(difference(*program, strict), "");
    }
  }
}

TEST(Map, ReductionsOfSeveralIndicesAndRows) {
  const std::string text = "def f(int32(M,K,L) A) -> (r) { r(m) +=! A(m,k,l) * (k - l) }";
  for (const int64_t m : {1, 3, 40}) {
    for (const int64_t k : {1, 5, 70}) {
      for (const int64_t l : {2, 33, 130}) {
        SCOPED_TRACE(fmt::format("M={} K={} L={}", m, k, l));
        EXPECT_EQ(difference(specialised_from(text, {{"M", m}, {"K", k}, {"L", l}})), "");
      }
    }
  }
}

TEST(Map, MoreTilesThanTheGridHasBlocks) {
  const ir::Program program =
      specialised_from("def f(float(M,N) A) -> (B) { B(m,n) = A(m,n) + m }", {{"M", 70}, {"N", 50}});
  gpu::Device device;
  device.grid = {3, 2, 1};
  options::MappingOptions options;
  options.tile = {2, 4};
  const Result<gpu::Mapping> mapping = mapped(program, options, device);
  ASSERT_TRUE(mapping);
  EXPECT_EQ(mapping->program.kernels.at(0).grid, (std::array<int64_t, 3>{3, 2, 1}));
  EXPECT_EQ(difference_of_mapping(program, *mapping), "");
}

// Two tiles of one point each: isl likes to count such loops in tiles.
TEST(Map, ResultsThatBeginInsideOfATile) {
  const ir::Program program =
      specialised_from("def f(int32(N) A) -> (T) { int32 T(i) = A(6) where i in 11:13 }", {{"N", 13}});
  options::MappingOptions options;
  options.map_to_threads = {5, 5, 2};
  EXPECT_EQ(difference(program, options), "");
}

TEST(Map, ADefWithoutInstancesHasNoKernels) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from("def f(float(N) A) -> (B) { B(n) = A(n) }", {{"N", 0}}));
  ASSERT_TRUE(mapping);
  EXPECT_TRUE(mapping->program.kernels.empty());
}

TEST(Map, RowsThatOneBlockRunsAreOneKernelWithBarriers) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(kSoftmax, {{"N", 500}, {"D", 300}}));
  ASSERT_TRUE(mapping);
  ASSERT_EQ(mapping->kernels.size(), 1U);
  EXPECT_EQ(mapping->program.kernels[0].grid, (std::array<int64_t, 3>{500, 1, 1}));
  EXPECT_EQ(mapping->edges.size(), 0U);
}

/// A band is printed twice, under a condition and its opposite: each has a buffer of its own.
TEST(Map, ABufferOfEachBranch) {
  const ir::Program program = specialised_from(R"(
def f() -> (uint16(1,1) T0) {
  int32 t0(i,j) +=! int32(1) where i in 0:63, j in 0:63
  T0(i,j) = uint16(1) where i in 0:1, j in 0:1
  t0(i,j) +=! t0(j / 2,i) where i in 0:63, j in 1:63
  t0(i,j) = int32(1) where i in 0:60, j in 0:63
})",
                                               {});
  const Result<gpu::Mapping> mapping = mapped(program, {}, {});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(tile::verify(mapping->program).faults, std::vector<std::string>{});
  EXPECT_EQ(difference_of_mapping(program, *mapping, 1), "");
}

/// So have registers of bands that stand in several places.
TEST(Map, RegistersOfEachPlace) {
  const ir::Program program = specialised_from(R"(
def f(uint8(N,M) A, int32(N) J) -> (uint8(N,M) T0, uint8(N,M) T1) {
  T0(i,j) += max(T0(i,j), T1((i+2)%N,M-1-j)) where i in 0:N-0, j in 3:M-1, k in 0:3
  T0(i,j) = (i%2==0 ? T0(i,j) : T1(i,j)) where i in 0:N-0, j in 2:M-0
  T1(i,j) += max(T0(i,j), T1(N-1-i,j)) where i in 3:N-2, j in 0:M-1, k in 0:3
  T0(i,j) max= max(T0((i*3+1)%N,j/2), T1(i,j/2)) where i in 1:N-2, j in 0:M-0, k in 0:3
  T0(i,j) min=! max(T1(i,j), T1(i,j)) where i in 3:N-1, j in 2:M-0
})",
                                               {{"N", 18}, {"M", 7}});
  const Result<gpu::Mapping> mapping = mapped(program, {}, {});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(tile::verify(mapping->program).faults, std::vector<std::string>{});
  EXPECT_EQ(difference_of_mapping(program, *mapping, 1), "");
}

/// What isl needs minutes to answer, and the kernel can do without, is not asked to the end.
TEST(Map, RemaindersInSubscriptsTakeNoMinutes) {
  const ir::Program program = specialised_from(R"(
def f(half(N,M) A, half(N,M) B) -> (half(N,M) T0, half(N,M) T1) {
  T0(i,j) = (A(i,M-1-j) * A(N-1-i,j)) where i in 0:N, j in 0:M
  T1(i,j) = A(i,(i+j)%M) where i in 0:N, j in 0:M
  T1(i,j) += ((i % 2 == 0 ? T0(i,M-1-j) : T1(i,j)) + min(T0(i,M-1-j), A((i*3+j)%N,j))) where i in 0:N, j in 0:M
  T1(i,j) +=! T1((i*3+j)%N,M-1-j) where i in 0:N, j in 0:M, k in 0:3
  T0(i,j) +=! (T0((i*3+j)%N,(i+j)%M) < half(2)
                 ? (T0((i*3+j)%N,j) < half(1) ? A(i,M-1-j) : B(i,j))
                 : (B((i*3+j)%N,M-1-j) < half(1) ? T1((i+1)%N,j) : B((i+1)%N,(i+j)%M))) where i in 0:N, j in 0:M
})",
                                               {{"N", 17}, {"M", 23}});
  const Result<gpu::Mapping> mapping = mapped(program, {}, {});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(difference_of_mapping(program, *mapping, 1), "");
}

/// The same of the least box around what is used.
TEST(Map, BoxesOfRemaindersTakeNoMinutes) {
  const ir::Program program = specialised_from(R"(
def f(double(N,M) A, double(N,M) B) -> (double(N,M) T0, double(N,M) T1) {
  T0(i,j) = (i + j < N ? A(N-1-i,j) : A(N-1-i,(j+2)%M)) where i in 0:N, j in 0:M
  T1(i,j) = (i + j < N ? A((i*3+j)%N,(i+j)%M) : B((i*3+j)%N,(i+j)%M)) where i in 0:N, j in 0:M
  T0(i,j) = T0(N-1-i,(i+j)%M) where i in 0:N, j in 0:M
  T0(i,j) max= min(T1((i*3+j)%N,j), min(A(i,j), A(i,j))) where i in 0:N, j in 0:M
  T0(i,j) max= (T1(i,j) < double(0) ? (j < 3 ? T1(i,(j+2)%M) : B((i*3+j)%N,(j+2)%M))
                                    : (i + j < N ? B((i+1)%N,(i+j)%M) : T0(i,M-1-j)))
                 where i in 0:N, j in 0:M, k in 0:3
  T0(i,j) = ((A((i*3+j)%N,M-1-j) * T0((i*3+j)%N,j)) + (j < 3 ? T1(N-1-i,M-1-j) : B(N-1-i,j)))
                 where i in 0:N, j in 0:M
})",
                                               {{"N", 38}, {"M", 35}});
  const Result<gpu::Mapping> mapping = mapped(program, {}, {});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(difference_of_mapping(program, *mapping, 1), "");
}

TEST(Map, TheReportNamesTheEdgesBetweenKernels) {
  options::MappingOptions options;
  options.outer_schedule_options.fusion = options::Fusion::kMin;
  const Result<gpu::Mapping> mapping = mapped(
      specialised_from("def f(float(N) A) -> (B, C) { B(n) = A(n) + 1  C(n) = B(n) * 2 }", {{"N", 600}}), options);
  ASSERT_TRUE(mapping);
  const std::string report = std::regex_replace(gpu::report(*mapping), std::regex("[0-9.]+ us,.*"), "...");
  const auto with_options = [](const char* tensor) {
    return fmt::format(
        "  estimate: ...\n"
        "  options: kernel {{ writes: \"{}\" tile: [256] register_tile: [1] map_to_threads: [256, 1] unroll: 1 }}\n",
        tensor);
  };
  EXPECT_EQ(report, "kernel f_0: grid (3, 1, 1), block (256, 1, 1), 0 barriers, runs S0\n" + with_options("B") +
                        "kernel f_1: grid (3, 1, 1), block (256, 1, 1), 0 barriers, runs S1\n" + with_options("C") +
                        "options of all: outer_schedule_options { fusion_strategy: MIN }\n" +
                        "edge B: f_0 to f_1, through global memory\n");
}

}  // namespace
}  // namespace tc::testing
