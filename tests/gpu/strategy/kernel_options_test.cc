#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tc/gpu/strategy/tunables.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

/// Options of single kernels: each kernel follows its own, and none falls on another.
namespace tc::testing {
namespace {

using options::MappingOptions;

constexpr char kLayers[] = R"(
def f(float(B,I) x, float(I,J) w, float(J,N) v) -> (H, O) {
  H(b,j) +=! x(b,i) * w(i,j)
  H(b,j) = fmax(H(b,j), 0)
  O(b,n) +=! H(b,j) * v(j,n)
})";
const std::map<std::string, int64_t> kSizes = {{"B", 64}, {"I", 96}, {"J", 128}, {"N", 48}};

ir::Program layers() { return specialised_from(kLayers, kSizes); }

MappingOptions options_from(const std::string& text) {
  const Result<MappingOptions> options = options::mapping_options_from_text(text);
  EXPECT_TRUE(options) << options.error().to_string();
  return options.value_or(MappingOptions());
}

std::string error_of(const ir::Program& program, const std::string& text) {
  const Result<gpu::Mapping> mapping = gpu::map_program(program, options_from(text), {});
  return mapping ? "none" : mapping.error().diagnostics().at(0).message;
}

std::string text_with(const ir::Program& program, const MappingOptions& options) {
  const Result<gpu::Mapping> mapping = gpu::map_program(program, options, {});
  return mapping ? tile::to_text(mapping->program) : mapping.error().to_string();
}

using Values = std::vector<int64_t>;

TEST(KernelOptions, EachProductFollowsItsOwn) {
  const ir::Program program = layers();
  const MappingOptions options = options_from(R"(
    kernel { writes: "H" tile: [32, 64, 16] register_tile: [4, 4] copy_stages: 3 }
    kernel { writes: "O" tile: [16, 16, 32] register_tile: [2, 2] copy_stages: 2 })");
  const Result<gpu::Mapping> mapping = gpu::map_program(program, options, {});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->kernels.size(), 2U);
  EXPECT_EQ(mapping->kernels[0].chosen.tile, Values({32, 64, 16}));
  EXPECT_EQ(mapping->kernels[0].chosen.register_tile, Values({4, 4}));
  EXPECT_EQ(mapping->kernels[0].chosen.copy_stages, 3);
  EXPECT_EQ(mapping->kernels[0].grid, (std::array<int64_t, 3>{2, 2, 1}));
  EXPECT_EQ(mapping->kernels[1].chosen.tile, Values({16, 16, 32}));
  EXPECT_EQ(mapping->kernels[1].chosen.register_tile, Values({2, 2}));
  EXPECT_EQ(mapping->kernels[1].chosen.copy_stages, 2);
  EXPECT_EQ(mapping->kernels[1].grid, (std::array<int64_t, 3>{3, 4, 1}));
  EXPECT_EQ(difference(program, options), "");
}

TEST(KernelOptions, ComeBeforeThoseOfTheDefWhichComeBeforeTheCompilers) {
  const ir::Program program = layers();
  const Result<gpu::Mapping> mapping = gpu::map_program(
      program, options_from(R"(tile: [32, 32, 32] copy_stages: 2 kernel { writes: "O" tile: [16, 16, 32] })"), {});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels[0].chosen.tile, Values({32, 32, 32}));
  EXPECT_EQ(mapping->kernels[1].chosen.tile, Values({16, 16, 32}));
  EXPECT_EQ(mapping->kernels[1].chosen.copy_stages, 2);
}

TEST(KernelOptions, ThatSayNothingChangeNothing) {
  const ir::Program program = layers();
  EXPECT_EQ(text_with(program, options_from(R"(kernel { writes: "H" } kernel { writes: "O" })")),
            text_with(program, {}));
  EXPECT_EQ(text_with(program, options_from(R"(tile: [16, 32, 16] kernel { writes: "H" })")),
            text_with(program, options_from("tile: [16, 32, 16]")));
}

TEST(KernelOptions, OfAllKernelsAskForWhatTheCompilerChose) {
  const ir::Program program = layers();
  const Result<gpu::Mapping> mapping = gpu::map_program(program, {}, {});
  ASSERT_TRUE(mapping);
  MappingOptions together = gpu::options_for(*mapping, 0);
  for (size_t k = 1; k < mapping->kernels.size(); ++k) {
    for (const options::KernelOptions& kernel : gpu::options_for(*mapping, k).kernel) together.kernel.push_back(kernel);
  }
  EXPECT_EQ(together.kernel.size(), 2U);
  EXPECT_EQ(text_with(program, together), tile::to_text(mapping->program));
  EXPECT_NE(gpu::report(*mapping).find("  options: kernel { writes: \"H\" tile: ["), std::string::npos)
      << gpu::report(*mapping);
}

TEST(KernelOptions, SplitTheReductionOfOneProduct) {
  const ir::Program program = layers();
  const MappingOptions options = options_from(R"(kernel { writes: "O" split_reduction: 4 })");
  const Result<gpu::Mapping> mapping = gpu::map_program(program, options, {});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const auto of = std::find_if(mapping->kernels.begin(), mapping->kernels.end(),
                               [](const gpu::Kernel& kernel) { return kernel.address.writes == "O"; });
  ASSERT_NE(of, mapping->kernels.end());
  EXPECT_EQ(of->anchor, "S2_parts");
  EXPECT_EQ(of->chosen.split_reduction, 4);
  EXPECT_EQ(mapping->kernels[0].anchor, "S0");
  EXPECT_EQ(difference(program, options), "");
}

TEST(KernelOptions, OneMayTakeTheClassicMapping) {
  const ir::Program program = layers();
  const MappingOptions options =
      options_from(R"(kernel { writes: "O" map_to_blocks: [4, 2] map_to_threads: [16, 4] })");
  const Result<gpu::Mapping> mapping = gpu::map_program(program, options, {});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->kernels.size(), 2U);
  EXPECT_EQ(mapping->kernels[0].recipe, gpu::Recipe::kContraction);
  EXPECT_EQ(mapping->kernels[1].recipe, gpu::Recipe::kClassic);
  EXPECT_EQ(mapping->kernels[1].block, (std::array<int64_t, 3>{16, 4, 1}));
  EXPECT_EQ(difference(program, options), "");
}

TEST(KernelOptions, AddressesThatNoKernelHasAreErrors) {
  const ir::Program program = layers();
  EXPECT_EQ(error_of(program, R"(kernel { writes: "y" tile: [8] })"),
            "options are about the kernel 'y', but there is none; there are 'H', 'O'");
  EXPECT_EQ(error_of(program, R"(kernel { writes: "H" occurrence: 2 tile: [8] })"),
            "options are about the kernel 'H' occurrence 2, but there is none; there are 'H', 'O'");
}

TEST(KernelOptions, OccurrencesTellKernelsOfOneTensorApart) {
  const ir::Program program = specialised_from(R"(
def f(float(N,N) A, float(N,N) B) -> (C, D) {
  C(m,n) +=! A(m,k) * B(k,n)
  D(m,n) +=! C(m,k) * A(k,n)
  C(m,n) += D(m,k) * B(k,n)
})",
                                               {{"N", 64}});
  const Result<gpu::Mapping> mapping = gpu::map_program(program, {}, {});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  std::string names;
  for (const gpu::Kernel& kernel : mapping->kernels) names += options::address_text(kernel.address) + "; ";
  EXPECT_EQ(names, "'C' occurrence 1; 'D'; 'C' occurrence 2; ");
  EXPECT_EQ(error_of(program, R"(kernel { writes: "C" unroll: 4 })"),
            "options are about the kernel 'C', but there are several: 'C' occurrence 1, 'D', 'C' occurrence 2");
  EXPECT_EQ(error_of(program, R"(kernel { writes: "C" occurrence: 1 tile: [16, 16, 32] })"), "none");
}

TEST(KernelOptions, ThatTheirKernelDoesNotFollowAreErrors) {
  const ir::Program program = layers();
  EXPECT_EQ(
      error_of(program, R"(kernel { writes: "H" tensor_cores: true })"),
      "'tensor_cores' of the kernel 'H' is set, but the recipe 'elements', which makes it, does not follow it: it is "
      "no product of two operands for which the device has tensor cores");
  EXPECT_EQ(error_of(program, R"(kernel { writes: "H" map_to_blocks: [8] copy_stages: 3 })"),
            "'copy_stages' of the kernel 'H' is set, but the recipe 'classic', which makes it, does not follow it: the "
            "options choose loops that only 'classic' makes");
  EXPECT_EQ(error_of(program, R"(kernel { writes: "H" split_reduction: 100 })"),
            "'split_reduction' of the kernel 'H' is 100, but it has no reduction with twice as many instances for a "
            "result to be cut");
}

/// Products of different shapes ask for different tiles.
TEST(KernelOptions, AreOpenToASearchKernelByKernel) {
  const ir::Program program = layers();
  const Result<std::vector<gpu::Tunable>> open = gpu::tunables(program, {}, {});
  ASSERT_TRUE(open);
  for (const char* of : {"H", "O"}) {
    for (const char* field : {"tile", "register_tile", "map_to_threads", "copy_stages", "split_reduction"}) {
      const bool found = std::any_of(open->begin(), open->end(), [&](const gpu::Tunable& t) {
        return t.of.writes == of && t.field == field && t.values.size() > 1;
      });
      EXPECT_TRUE(found) << of << " " << field;
    }
  }
  const auto top = gpu::top(program, {}, {}, 8);
  ASSERT_TRUE(top);
  const auto apart = std::find_if(top->begin(), top->end(), [](const gpu::Candidate& candidate) {
    const auto& kernels = candidate.options.kernel;
    return kernels.size() == 2 && kernels[0].tile != kernels[1].tile;
  });
  ASSERT_NE(apart, top->end());
  const Result<gpu::Mapping> mapping = gpu::map_program(program, apart->options, {});
  ASSERT_TRUE(mapping);
  for (const options::KernelOptions& wanted : apart->options.kernel) {
    const auto of = std::find_if(mapping->kernels.begin(), mapping->kernels.end(),
                                 [&](const gpu::Kernel& kernel) { return kernel.address.writes == wanted.writes; });
    ASSERT_NE(of, mapping->kernels.end());
    EXPECT_EQ(of->chosen.tile, wanted.tile);
    EXPECT_EQ(of->chosen.register_tile, wanted.register_tile);
  }
}

TEST(KernelOptions, RandomOnesAreFollowedOrRefusedWithASentence) {
  std::mt19937_64 random(14);
  const ir::Program program = layers();
  const Result<std::vector<gpu::Tunable>> open = gpu::tunables(program, {}, {});
  ASSERT_TRUE(open);
  int followed = 0;
  for (int i = 0; i < 24; ++i) {
    MappingOptions options;
    for (const gpu::Tunable& t : *open) {
      if (random() % 3 == 0) options = gpu::with(options, t, t.values[random() % t.values.size()]);
    }
    const Result<gpu::Mapping> mapping = gpu::map_program(program, options, {});
    if (!mapping) {
      EXPECT_FALSE(mapping.error().diagnostics().at(0).message.empty());
      continue;
    }
    ++followed;
    EXPECT_EQ(difference(program, options), "") << options::to_text(options);
  }
  EXPECT_GE(followed, 4);
}

}  // namespace
}  // namespace tc::testing
