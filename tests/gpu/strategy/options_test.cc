#include <gtest/gtest.h>

#include <random>

#include "tc/gpu/strategy/tunables.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Options steer every recipe exactly, or are refused with the reason; what the compiler chose can be given back.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

struct Def {
  const char* text;
  Sizes sizes;
};

constexpr char kMatmul[] = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
constexpr char kPerceptron[] = R"(
def f(float(B,I) x, float(O,I) w, float(O) bias) -> (y) {
  y(b,o) = bias(o)
  y(b,o) += x(b,i) * w(o,i)
  y(b,o) = fmax(y(b,o), 0)
})";
constexpr char kSoftmax[] = R"(
def f(float(N,D) I) -> (O) {
  m(n) max=! I(n,d)
  O(n,d) = exp(I(n,d) - m(n))
  s(n) +=! O(n,d)
  O(n,d) = O(n,d) / s(n)
})";
constexpr char kPointwise[] = "def f(float(M,N) A, float(N) b) -> (C) { C(m,n) = A(m,n) * b(n) }";

const Def kDefs[] = {
    {kMatmul, {{"M", 130}, {"N", 132}, {"K", 64}}},
    {kMatmul, {{"M", 33}, {"N", 47}, {"K", 501}}},
    {kPerceptron, {{"B", 32}, {"O", 48}, {"I", 1024}}},
    {"def f(float(B,N,M) X, float(B,K,M) Y) -> (Z) { Z(b,n,k) +=! X(b,n,m) * Y(b,k,m) }",
     {{"B", 5}, {"N", 26}, {"K", 26}, {"M", 72}}},
    {"def f(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) { O(n,f,h,w) +=! I(n,c,h + kh,w + kw) * K(f,c,kh,kw) }",
     {{"N", 2}, {"C", 4}, {"F", 5}, {"H", 20}, {"W", 24}, {"KH", 3}, {"KW", 3}}},
    {"def f(float(N,M) A) -> (B) { B(i,j) = A(j,i) }", {{"N", 100}, {"M", 90}}},
    {kSoftmax, {{"N", 100}, {"D", 300}}},
    {kPointwise, {{"M", 99}, {"N", 200}}},
    {"def f(float(N) A) -> (r) { r +=! A(n) }", {{"N", 3000}}},
};

options::MappingOptions chosen_of(const gpu::Mapping& mapping) {
  for (const gpu::Kernel& kernel : mapping.kernels) {
    if (kernel.recipe == gpu::Recipe::kContraction) return kernel.chosen;
  }
  return mapping.kernels.at(0).chosen;
}

TEST(MappingOptions, WhatTheCompilerChoseAsksForTheSameKernels) {
  for (const auto& [text, sizes] : kDefs) {
    SCOPED_TRACE(text);
    const ir::Program program = specialised_from(text, sizes);
    const Result<gpu::Mapping> first = mapped(program);
    ASSERT_TRUE(first) << first.error().to_string();
    const options::MappingOptions chosen = chosen_of(*first);
    EXPECT_NE(chosen, options::MappingOptions());
    const Result<options::MappingOptions> read = options::mapping_options_from_text(options::to_text(chosen));
    ASSERT_TRUE(read) << read.error().to_string();
    const Result<gpu::Mapping> again = mapped(program, *read);
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(tile::to_text(again->program), tile::to_text(first->program));
    EXPECT_EQ(gpu::report(*again), gpu::report(*first));
  }
}

TEST(MappingOptions, AreFollowedExactlyByContractions) {
  const ir::Program program = specialised_from(kMatmul, {{"M", 100}, {"N", 70}, {"K", 90}});
  const auto options = options::MappingOptions{
      .tile = {24, 40, 12}, .map_to_threads = {10, 8, 3}, .register_tile = {3, 4}, .copy_stages = 2};
  const Result<gpu::Mapping> mapping = mapped(program, options);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->kernels.size(), 1U);
  EXPECT_EQ(mapping->kernels[0].recipe, gpu::Recipe::kContraction);
  EXPECT_EQ(mapping->kernels[0].grid, (std::array<int64_t, 3>{2, 5, 1}));
  EXPECT_EQ(mapping->kernels[0].block, (std::array<int64_t, 3>{240, 1, 1}));
  EXPECT_EQ(mapping->kernels[0].chosen.tile, options.tile);
  EXPECT_EQ(mapping->kernels[0].chosen.register_tile, options.register_tile);
  EXPECT_EQ(mapping->kernels[0].chosen.map_to_threads, options.map_to_threads);
  EXPECT_EQ(mapping->kernels[0].chosen.copy_stages, 2);
  EXPECT_EQ(difference_of_mapping(program, *mapping), "");
}

TEST(MappingOptions, ThreadsAndTilesSayWhatEachThreadHas) {
  const ir::Program program = specialised_from(kMatmul, {{"M", 100}, {"N", 70}, {"K", 90}});
  const Result<gpu::Mapping> mapping =
      mapped(program, options::MappingOptions{.tile = {32, 32, 32}, .map_to_threads = {32, 8}});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels.at(0).chosen.register_tile, (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(mapping->kernels.at(0).block, (std::array<int64_t, 3>{256, 1, 1}));
}

TEST(MappingOptions, AreFollowedExactlyByElementsAndRows) {
  const ir::Program pointwise = specialised_from(kPointwise, {{"M", 100}, {"N", 200}});
  options::MappingOptions options{.tile = {3, 80}, .map_to_threads = {10, 3}, .register_tile = {1, 8}};
  Result<gpu::Mapping> mapping = mapped(pointwise, options);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels.at(0).recipe, gpu::Recipe::kElements);
  EXPECT_EQ(mapping->kernels.at(0).grid, (std::array<int64_t, 3>{3, 34, 1}));
  EXPECT_EQ(mapping->kernels.at(0).block, (std::array<int64_t, 3>{10, 3, 1}));
  EXPECT_EQ(difference(pointwise, options), "");

  const ir::Program softmax = specialised_from(kSoftmax, {{"N", 30}, {"D", 200}});
  options = options::MappingOptions{.unroll = 2, .map_to_threads = {16, 4}};
  mapping = mapped(softmax, options);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels.at(0).recipe, gpu::Recipe::kRows);
  EXPECT_EQ(mapping->kernels.at(0).grid, (std::array<int64_t, 3>{8, 1, 1}));
  EXPECT_EQ(mapping->kernels.at(0).block, (std::array<int64_t, 3>{16, 4, 1}));
  EXPECT_EQ(difference(softmax, options), "");
}

TEST(MappingOptions, ReductionsAreCutIntoAsManyPartsAsTheyAsk) {
  for (const int64_t parts : {1, 2, 3, 8}) {
    SCOPED_TRACE(parts);
    const options::MappingOptions options{.split_reduction = parts};
    for (const auto& [text, sizes] : {kDefs[0], kDefs[1], kDefs[2], kDefs[8]}) {
      const ir::Program program = specialised_from(text, sizes);
      const Result<gpu::Mapping> mapping = mapped(program, options);
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      EXPECT_EQ(mapping->kernels.size() > 1, parts > 1) << gpu::report(*mapping);
      EXPECT_EQ(difference_of_mapping(program, *mapping), "");
    }
  }
}

TEST(MappingOptions, PartsOfReductionsAreCombinedByAtomicUpdatesIfTheyAsk) {
  const Def defs[] = {
      {"def f(float(N) x) -> (s) { s +=! x(i) }", {{"N", 1003}}},
      {"def f(int32(N,M) x) -> (s) { s(m) min=! x(n,m) }", {{"N", 100}, {"M", 17}}},
      {"def f(double(N,M) x, double(M) b) -> (s,q) { s(m) = b(m)\n s(m) += x(n,m)\n q(m) max=! x(n,m) }",
       {{"N", 100}, {"M", 17}}},
      {"def f(float(M,K) A, float(K,N) B, float(N) b) -> (C) {\n"
       " C(m,n) = b(n)\n C(m,n) += A(m,k) * B(k,n)\n C(m,n) = fmax(C(m,n), 0) }",
       {{"M", 33}, {"K", 96}, {"N", 40}}},
      {"def f(float(M,K) A, float(K,N) B) -> (C) { C(m+2,n) +=! A(m,k) * B(k,n) where m in 0:M, n in 3:N }",
       {{"M", 32}, {"K", 96}, {"N", 40}}}};
  for (const Def& def : defs) {
    SCOPED_TRACE(def.text);
    const ir::Program program = specialised_from(def.text, def.sizes);
    for (const int64_t parts : {2, 3, 8}) {
      const options::MappingOptions options{.split_reduction = parts, .atomic_reduction = true};
      const Result<gpu::Mapping> mapping = mapped(program, options);
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      EXPECT_TRUE(mapping->program.workspace.empty()) << gpu::report(*mapping);
      for (uint64_t seed = 1; seed <= 2; ++seed) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
      EXPECT_EQ(unproved(mapping->program), "");
      const options::MappingOptions two_stages{.split_reduction = parts, .atomic_reduction = false};
      EXPECT_FALSE(mapped(program, two_stages)->program.workspace.empty());
    }
  }
}

/// The contraction reads the dimensions of W as one.
TEST(MappingOptions, AtomicUpdatesLeaveOperandsAsTheirKernelReadsThem) {
  const ir::Program program = specialised_from(
      "def bilinear(float(B,I) X, float(O,I,J) W, float(B,J) Y) -> (Z) { Z(b,o) +=! X(b,i) * W(o,i,j) * Y(b,j) }",
      {{"B", 64}, {"I", 8}, {"J", 64}, {"O", 16}});
  const options::MappingOptions options{.tile = {4, 32, 4, 8, 16},
                                        .map_to_threads = {1, 8, 8},
                                        .register_tile = {4, 4, 4},
                                        .copy_stages = 1,
                                        .split_reduction = 4,
                                        .atomic_reduction = true};
  const Result<gpu::Mapping> mapping = mapped(program, options);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const std::vector<tile::Tensor>& tensors = mapping->program.kernels.back().tensors;
  const auto w = std::find_if(tensors.begin(), tensors.end(), [](const auto& t) { return t.name == "W"; });
  ASSERT_NE(w, tensors.end());
  EXPECT_EQ(w->rank(), 1);
  EXPECT_EQ(difference_of_mapping(program, *mapping), "");
  EXPECT_EQ(unproved(mapping->program), "");
}

/// A thread has two parts of one result, beside each other.
TEST(MappingOptions, AtomicUpdatesTakeVectorsOfPartsApart) {
  const ir::Program program = specialised_from(
      "def bilinear(float(B,I) X, float(O,I,J) W, float(B,J) Y) -> (Z) { Z(b,o) +=! X(b,i) * W(o,i,j) * Y(b,j) }",
      {{"B", 4}, {"I", 16}, {"J", 4}, {"O", 64}});
  const options::MappingOptions options{
      .map_to_threads = {4, 16, 2}, .copy_stages = 2, .split_reduction = 8, .atomic_reduction = true};
  ASSERT_TRUE(mapped(program, options));
  EXPECT_EQ(difference(program, options), "");
  EXPECT_EQ(unproved(mapped(program, options)->program), "");
}

/// A row of t in shared memory is written back whole, so nothing of it is held in registers alone.
TEST(MappingOptions, WhatIsWrittenBackIsWritten) {
  const ir::Program program = specialised_from(
      "def f() -> (float(2,2) T) {\n T(i,j) = 9.0 where i in 0:2, j in 0:1\n"
      " uint64 t(i,j) +=! uint64(0) where i in 0:2, j in 0:4\n t(i,i) +=! t(0,i) where i in 0:2 }",
      {});
  EXPECT_EQ(difference(program, {}), "");
}

std::string refusal(const Def& def, const options::MappingOptions& options, const gpu::Device& device = {}) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(def.text, def.sizes), options, device);
  return mapping ? "" : mapping.error().diagnostics().at(0).message;
}

TEST(MappingOptions, ThatNoKernelFollowsAreRefused) {
  using options::MappingOptions;
  EXPECT_EQ(refusal(kDefs[0], MappingOptions{.tile = {32, 32}, .register_tile = {3, 4}}),
            "'register_tile' is set, but no kernel follows it: 3 results of a thread along 'm' do not divide a block's "
            "32");
  EXPECT_EQ(refusal(kDefs[0], MappingOptions{.tile = {64, 64}, .map_to_threads = {8, 8}, .register_tile = {4, 4}}),
            "'register_tile' is set, but no kernel follows it: a block's results and a thread's make 16 by 16 threads, "
            "not 8 by 8");
  EXPECT_EQ(
      refusal(kDefs[0], MappingOptions{.tile = {128, 128, 64}, .max_shared_memory = 999, .register_tile = {8, 8}}),
      "'register_tile' is set, but no kernel follows it: a block needs 66544 bytes of shared memory, of 999");
  EXPECT_EQ(refusal(kDefs[6], MappingOptions{.map_to_threads = {24}, .register_tile = {1}}),
            "'register_tile' is set, but no kernel follows it: the 24 threads of a row are no power of two");
  EXPECT_EQ(refusal(kDefs[7], MappingOptions{.shared_depth = 1, .register_tile = {1, 4}}),
            "'register_tile' is set, but no kernel follows it: 'shared_depth' asks for a contraction or the classic "
            "mapping");
  EXPECT_EQ(refusal(kDefs[0], MappingOptions{.split_reduction = 1000}),
            "'split_reduction' is 1000, but no reduction has twice as many instances for a result to be cut");
  EXPECT_EQ(refusal(kDefs[0], MappingOptions{.split_reduction = 2, .strict = true}),
            "'split_reduction' is 2, but strict kernels cut no reduction into parts");
  EXPECT_EQ(refusal(kDefs[0], MappingOptions{.atomic_reduction = true, .strict = true}),
            "'atomic_reduction' is true, but sums of strict kernels keep their order");
  const Def in_memory = {
      "def f(int32(N) A, int64(M) B) -> (T) {"
      " int32 T(i,j) +=! (A(l) + A(i)) * int32(B(j) + B(k)) where i in 0:N, j in 3:N, k in 0:M, l in 0:N }",
      {{"N", 7}, {"M", 8}}};
  EXPECT_EQ(refusal(in_memory, MappingOptions{.split_reduction = 4, .atomic_reduction = true}),
            "'atomic_reduction' is true, but no launch combines partial results that a recipe's launch stores");
  EXPECT_EQ(refusal(kDefs[0], MappingOptions{.split_reduction = 1, .atomic_reduction = true}),
            "'atomic_reduction' is true, but no launch combines partial results that a recipe's launch stores");
}

/// Also where nothing is worth a place in shared memory, and where a contraction has no copies at that depth.
TEST(MappingOptions, SharedDepthIsFollowedByContractionsOrTheClassicMapping) {
  using gpu::Recipe;
  const auto recipe = [](const Def& def, int64_t depth) {
    const options::MappingOptions options{.shared_depth = depth};
    const ir::Program program = specialised_from(def.text, def.sizes);
    EXPECT_EQ(difference(program, options), "");
    return mapped(program, options)->kernels.at(0).recipe;
  };
  EXPECT_EQ(recipe(kDefs[7], 1), Recipe::kClassic);
  EXPECT_EQ(recipe(kDefs[6], 0), Recipe::kClassic);
  EXPECT_EQ(recipe(kDefs[1], 1), Recipe::kClassic);
  EXPECT_EQ(recipe(kDefs[1], 2), Recipe::kContraction);
}

/// The text of the kernels, which compute what they should.
std::string kernel_of(const ir::Program& program, const options::MappingOptions& options) {
  EXPECT_EQ(difference(program, options), "") << options::to_text(options);
  const Result<gpu::Mapping> mapping = mapped(program, options);
  EXPECT_TRUE(mapping) << mapping.error().to_string();
  return mapping ? tile::to_text(mapping->program) : "";
}

/// What is fused outside may be apart within a tile.
TEST(MappingOptions, PointsOfATileAreScheduledByOptionsOfTheirOwn) {
  const ir::Program program = specialised_from(
      "def f(float(N,M) A) -> (T, B) { T(i,j) = A(i,j) + 1  B(i,j) = T(i,j) * T(i,j) }", {{"N", 40}, {"M", 50}});
  options::MappingOptions options{.tile = {16, 16}, .map_to_threads = {16, 4}};
  const std::string together = kernel_of(program, options);
  EXPECT_EQ(together.find("barrier"), std::string::npos);
  options.intra_tile_schedule_options.fusion = options::Fusion::kMin;
  const std::string apart = kernel_of(program, options);
  EXPECT_NE(apart, together);
  options.intra_tile_schedule_options = {.fusion = options::Fusion::kMax};
  EXPECT_EQ(kernel_of(program, options), together);
}

/// A sum is held in a register above its loop, and nowhere if registers are wanted deeper.
TEST(MappingOptions, PrivateDepthSaysWhereRegistersAreFilled) {
  const ir::Program program = specialised_from(kMatmul, {{"M", 20}, {"N", 30}, {"K", 10}});
  options::MappingOptions options{.tile = {8, 8}, .map_to_threads = {8, 8}, .use_shared_memory = false};
  options.private_depth = 4;
  EXPECT_NE(kernel_of(program, options).find("register"), std::string::npos);
  options.private_depth = 5;
  EXPECT_EQ(kernel_of(program, options).find("register"), std::string::npos);
  options.private_depth = 3;
  EXPECT_EQ(refusal({kMatmul, {{"M", 20}, {"N", 30}, {"K", 10}}}, options),
            "'private_depth' is 3, but 4 band members stand above what a thread runs by itself");
}

TEST(MappingOptions, SmallDevicesAreKept) {
  gpu::Device small;
  small.shared_bytes = 6000;
  small.threads_per_block = 64;
  small.block = {64, 64, 64};
  for (const auto& [text, sizes] : kDefs) {
    SCOPED_TRACE(text);
    const ir::Program program = specialised_from(text, sizes);
    const Result<gpu::Mapping> mapping = mapped(program, {}, small);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    for (const tile::Kernel& kernel : mapping->program.kernels) {
      EXPECT_LE(kernel.block[0] * kernel.block[1] * kernel.block[2], 64) << gpu::report(*mapping);
      EXPECT_LE(kernel.shared_bytes(), 6000);
    }
    EXPECT_EQ(difference_of_mapping(program, *mapping), "");
  }
}

/// Any value of any tunable field is legal or refused with a sentence; what is legal computes the same.
TEST(Tunables, AreLegalOrRefused) {
  int legal = 0;
  for (const auto& [text, sizes] : kDefs) {
    const ir::Program program = specialised_from(text, sizes);
    const Result<std::vector<gpu::Tunable>> tunables = gpu::tunables(program, {}, {});
    ASSERT_TRUE(tunables) << tunables.error().to_string();
    ASSERT_GE(tunables->size(), 3U) << text;
    std::mt19937_64 random(sizes.begin()->second);
    for (int i = 0; i < 4; ++i) {
      options::MappingOptions options;
      for (const gpu::Tunable& t : *tunables) {
        if (random() % 2) options = gpu::with(options, t, t.values[random() % t.values.size()]);
      }
      SCOPED_TRACE(fmt::format("{}\n{}", text, options::to_text(options)));
      const Result<gpu::Mapping> mapping = mapped(program, options);
      if (!mapping) {
        EXPECT_NE(mapping.error().diagnostics().at(0).message, "");
        continue;
      }
      ++legal;
      EXPECT_EQ(difference_of_mapping(program, *mapping), "");
    }
  }
  EXPECT_GE(legal, 12);
}

TEST(Tunables, TheBestByEstimateAreLegalAndInOrder) {
  for (const size_t def : {0, 6}) {
    SCOPED_TRACE(kDefs[def].text);
    const ir::Program program = specialised_from(kDefs[def].text, kDefs[def].sizes);
    const Result<std::vector<gpu::Candidate>> top = gpu::top(program, {}, {}, 6);
    ASSERT_TRUE(top) << top.error().to_string();
    ASSERT_FALSE(top->empty());
    EXPECT_LE(top->size(), 6U);
    for (size_t i = 0; i < top->size(); ++i) {
      EXPECT_GE((*top)[i].us, (*top)[i > 0 ? i - 1 : 0].us);
      EXPECT_GT((*top)[i].us, 0);
      EXPECT_TRUE(mapped(program, (*top)[i].options)) << options::to_text((*top)[i].options);
    }
  }
}

}  // namespace
}  // namespace tc::testing
