#include "tc/api/explain.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tc/api/explain_of.h"
#include "tc/options/presets.h"
#include "tests/compile/programs.h"

/// What an explanation says, as recorded: tests/golden/PROGRAM/explain_BACKEND.txt and .json. scripts/update_golden
/// writes them anew.
namespace tc::api {
namespace {

using options::Backend;
using Sizes = std::map<std::string, int64_t>;

/// Of examples/NAME.tc, or of a text.
Result<Explanation> explanation_of(const std::string& name, const compile::Settings& settings,
                                   const std::string& text = {}) {
  const std::filesystem::path root = TC_SOURCE_DIR;
  const std::string file = name + ".tc";
  const std::string source = text.empty() ? testing::read_whole(root / "examples" / file) : text;
  compile::Compilation compilation = testing::compilation_of(source, file);
  const Result<void> done = compile::run_passes(settings, compilation, "program");
  if (!done) return tl::unexpected(done.error());
  return explain(settings, compilation);
}

compile::Settings settings_for(Backend backend, const Sizes& sizes, const Sizes& scalars = {}) {
  compile::Settings settings = testing::settings_for(sizes, scalars);
  settings.backend = backend;
  return settings;
}

void expect_recorded(const std::filesystem::path& path, const std::string& text) {
  if (std::getenv("TC_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing; scripts/update_golden writes it";
  EXPECT_EQ(testing::read_whole(path), text) << path;
}

struct Golden {
  const char* name;
  Sizes sizes;
};

class ExplainGolden : public ::testing::TestWithParam<Golden> {};

TEST_P(ExplainGolden, IsAsRecorded) {
  const std::filesystem::path folder = std::filesystem::path(TC_SOURCE_DIR) / "tests/golden" / GetParam().name;
  for (const auto& [backend, word] : {std::pair(Backend::kCpu, "cpu"), std::pair(Backend::kCuda, "cuda")}) {
    const auto explanation = explanation_of(GetParam().name, settings_for(backend, GetParam().sizes));
    ASSERT_TRUE(explanation) << explanation.error().to_string();
    expect_recorded(folder / fmt::format("explain_{}.txt", word), to_text(*explanation));
    Explanation without = *explanation;  // stages of their own have these
    without.code = without.schedule = "";
    expect_recorded(folder / fmt::format("explain_{}.json", word), to_json(without));
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, ExplainGolden,
                         ::testing::Values(Golden{"sgemm", {{"N", 512}, {"M", 512}, {"K", 512}}},
                                           Golden{"softmax", {{"N", 4096}, {"D", 1000}}},
                                           Golden{"mlp3", {{"B", 128}, {"N", 256}, {"O", 256}, {"P", 128}, {"Q", 64}}},
                                           Golden{"maxpool2x2", {{"B", 2}, {"C", 3}, {"H", 16}, {"W", 32}}}),
                         [](const auto& info) { return std::string(info.param.name); });

const Explanation::Edge* find_edge(const Explanation& e, const std::string& tensor, const std::string& to) {
  for (const Explanation::Edge& edge : e.edges) {
    if (edge.tensor == tensor && edge.to == to) return &edge;
  }
  return nullptr;
}

TEST(Explain, CodeAndScheduleAreThoseOfThePipeline) {
  for (const Backend backend : {Backend::kCpu, Backend::kCuda, Backend::kSimulator}) {
    const compile::Settings settings = settings_for(backend, {{"N", 64}, {"D", 100}});
    const auto explanation = explanation_of("softmax", settings);
    ASSERT_TRUE(explanation) << explanation.error().to_string();
    const std::filesystem::path file = std::filesystem::path(TC_SOURCE_DIR) / "examples/softmax.tc";
    compile::Compilation c = testing::compilation_of(testing::read_whole(file), "softmax.tc");
    const char* const stage = backend == Backend::kCpu ? "stmt" : backend == Backend::kCuda ? "cuda" : "tile";
    ASSERT_TRUE(compile::run_passes(settings, c, stage));
    EXPECT_EQ(explanation->code, compile::dump(settings, c, stage).value());
    EXPECT_NE(explanation->schedule.find("band"), std::string::npos);
  }
}

/// A temporary that its readers compute is in no kernel, and its edges are inline.
TEST(Explain, SaysWhichStatementsAreInline) {
  const auto explanation =
      explanation_of("batchnorm", settings_for(Backend::kCuda, {{"N", 64}, {"C", 64}, {"H", 56}, {"W", 56}}));
  ASSERT_TRUE(explanation) << explanation.error().to_string();
  const auto centered = std::ranges::find(explanation->statements, "S3", &Explanation::Statement::id);
  ASSERT_NE(centered, explanation->statements.end());
  EXPECT_FALSE(centered->kernel);
  ASSERT_NE(find_edge(*explanation, "centered", "S7"), nullptr);
  EXPECT_EQ(find_edge(*explanation, "centered", "S7")->rung, Rung::kInline);
  EXPECT_EQ(find_edge(*explanation, "mean", "S7")->rung, Rung::kMemory);
  EXPECT_EQ(find_edge(*explanation, "mean", "S1")->rung, Rung::kRegister);
}

/// Elements of rows that are too long for the registers of their lanes go through memory.
TEST(Explain, LongRowsPassTheirElementsInMemory) {
  const auto rung = [](int64_t d) {
    const auto explanation = explanation_of("softmax", settings_for(Backend::kCuda, {{"N", 4096}, {"D", d}}));
    EXPECT_TRUE(explanation);
    const Explanation::Edge* const edge = explanation ? find_edge(*explanation, "O", "S3") : nullptr;
    EXPECT_NE(edge, nullptr);
    return edge ? edge->rung : Rung::kInline;
  };
  EXPECT_EQ(rung(1000), Rung::kRegister);
  EXPECT_EQ(rung(1'000'000), Rung::kMemory);
}

TEST(Explain, TheClassicStrategySaysWhatIsInSharedMemory) {
  compile::Settings settings = settings_for(Backend::kCuda, {{"B", 32}, {"N", 64}, {"O", 48}, {"P", 40}, {"Q", 10}});
  settings.mapping = options::mlp();
  const auto explanation = explanation_of("mlp3", settings);
  ASSERT_TRUE(explanation) << explanation.error().to_string();
  EXPECT_EQ(explanation->options.origin, "user");
  ASSERT_FALSE(explanation->kernels.empty());
  const Explanation::Kernel& kernel = explanation->kernels[0];
  EXPECT_EQ(kernel.strategy, "classic");
  ASSERT_EQ(kernel.unfit.size(), 1U);
  EXPECT_EQ(kernel.unfit[0].reason, "the options choose loops that only 'classic' makes");
  EXPECT_TRUE(std::ranges::any_of(explanation->edges, [](const Explanation::Edge& edge) {
    return edge.rung == Rung::kShared || edge.rung == Rung::kRegister;
  })) << to_text(*explanation);
}

TEST(Explain, FusionStrategyMinIsAReason) {
  const char* const text = "def f(float(N) x) -> (y, z) { y(i) = x(i) * 2\n  z(i) = y(i) + 1 }";
  compile::Settings settings = settings_for(Backend::kCpu, {{"N", 1000}});
  auto explanation = explanation_of("f", settings, text);
  ASSERT_TRUE(explanation);
  EXPECT_EQ(explanation->kernels.size(), 1U);
  EXPECT_TRUE(explanation->apart.empty());
  settings.options.scheduler.fusion = options::Fusion::kMin;
  explanation = explanation_of("f", settings, text);
  ASSERT_TRUE(explanation);
  EXPECT_EQ(explanation->kernels.size(), 2U);
  ASSERT_EQ(explanation->apart.size(), 1U);
  EXPECT_EQ(explanation->apart[0].reason, "the fusion strategy MIN merges no statements");
  settings.backend = Backend::kCuda;
  settings.mapping.outer_schedule_options.fusion = options::Fusion::kMin;
  explanation = explanation_of("f", settings, text);
  ASSERT_TRUE(explanation);
  ASSERT_EQ(explanation->apart.size(), 1U);
  EXPECT_EQ(explanation->apart[0].reason, "the fusion strategy MIN merges no statements");
}

TEST(Explain, StatementsRunWhereTheyReduceNotWhereTheyStart) {
  const auto e =
      explanation_of("f", settings_for(Backend::kCuda, {{"M", 2048}, {"N", 1024}, {"K", 256}}),
                     "def f(float(M,K) A, float(K,N) B) -> (C, x) { C(m,n) +=! A(m,k) * B(k,n)  x(n) max=! C(m,n) }");
  ASSERT_TRUE(e);
  ASSERT_EQ(e->kernels.size(), 2U);
  EXPECT_EQ(e->kernels[0].statements, (std::vector<std::string>{"S0", "S1_parts"}));  // blocks reduce their tiles
  EXPECT_EQ(e->statements.back().id, "S1");
  EXPECT_EQ(e->statements.back().kernel, 1U);
}

TEST(Explain, AFloorIsBelowItsEstimate) {
  for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
    for (const char* name : {"sgemm", "transposed_matmul"}) {
      const auto e = explanation_of(name, settings_for(backend, {{"M", 300}, {"N", 200}, {"K", 100}}));
      ASSERT_TRUE(e);
      EXPECT_GT(e->floor_us(), 0);
      EXPECT_LE(e->floor_us(), e->estimate_us()) << to_text(*e);
    }
  }
}

/// Every tile that is drawn is one rectangle, of the tile's size.
TEST(Explain, ThePageDrawsEachTile) {
  const auto e = explanation_of("sgemm", settings_for(Backend::kCuda, {{"M", 512}, {"N", 512}, {"K", 512}}));
  ASSERT_TRUE(e);
  const std::string page = to_html(*e);
  const Explanation::Tiling& tiling = e->kernels.at(0).tilings.at(0);
  int64_t tiles = 0;
  const auto count = [](int64_t whole, int64_t part) { return (whole + part - 1) / part; };
  const auto &i = tiling.loops.at(0), &j = tiling.loops.at(1), &k = tiling.loops.at(2);
  tiles += count(i.extent, i.levels[0].size) * count(j.extent, j.levels[0].size);
  tiles += count(i.levels[0].size, i.levels[1].size) * count(j.levels[0].size, j.levels[1].size);
  tiles += count(k.extent, k.levels[0].size);
  int64_t drawn = 0;
  for (size_t at = 0; (at = page.find("<rect class=\"tile\"", at)) != std::string::npos; ++at) ++drawn;
  EXPECT_EQ(drawn, tiles);
}

TEST(Explain, ThePageEscapesWhatItShows) {
  const auto e = explanation_of("f", settings_for(Backend::kCpu, {{"N", 10}}),
                                "# <b> & \"quotes\"\ndef f(float(N) x) -> (y) { y(i) = x(i) < 0 ? 0 : x(i) }");
  ASSERT_TRUE(e);
  const std::string page = to_html(*e);
  EXPECT_NE(page.find("# &lt;b&gt; &amp; &quot;quotes&quot;"), std::string::npos);
  EXPECT_EQ(page.find("# <b>"), std::string::npos);
}

}  // namespace
}  // namespace tc::api
