#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/gpu/strategy/tunables.h"
#include "tc/tile/print.h"
#include "tc/tile/simulate.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Transpositions and permutations by vectors both ways: right, proved, without bank conflicts, in whole sectors.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;
using options::MappingOptions;

std::string transposition(const std::string& type) { return "def f(" + type + "(N,M) A) -> (B) { B(i,j) = A(j,i) }"; }
constexpr char kPermutation[] = "def f(float(A,B,C,D) X) -> (Y) { Y(c,b,d,a) = X(a,b,c,d) + 1 }";
constexpr char kShifted[] = "def f(float(N,M) A) -> (B) { B(i,j) = A(j + 4,i + 3) where i in 0:M-4, j in 0:N-4 }";
constexpr char kBackwards[] = "def f(float(N,M) A) -> (B) { B(i,j) = A(N - 1 - j,i) where j in 0:N }";
constexpr char kNarrowed[] = "def f(float(N,M) A) -> (half(M,N) B) { B(i,j) = half(A(j,i)) }";
constexpr char kWidened[] = "def f(half(N,M) A) -> (float(M,N) B) { B(i,j) = A(j,i) }";
constexpr char kTwoResults[] = R"(
def f(float(N,M) A, float(M,N) D) -> (B, C) {
  B(i,j) = A(j,i) + D(i,j)
  C(i,j) = B(i,j) * 2
})";

/// Tiles are large where there are enough of them, which this one has soon.
gpu::Device small_device() {
  gpu::Device device;
  device.processors = 1;
  return device;
}

/// Threads by eight beside each other: what asks for vectors.
MappingOptions by_vectors(int64_t rows = 32) { return {.map_to_threads = {8, rows}}; }

struct Case {
  std::string text;
  Sizes sizes;
  std::string buffer;  ///< in shared memory, as its text says it
  bool free_of_conflicts = true;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.text << " " << fmt::format("{}", c.sizes); }

const Case kCases[] = {
    {transposition("float"), {{"N", 256}, {"M", 192}}, "A_shared (1,(4,16),64):(4352,(1088,68),1)"},
    {transposition("float"), {{"N", 200}, {"M", 180}}, "(1,(4,16),64):(4352,(1088,68),1)"},
    {transposition("float"), {{"N", 190}, {"M", 134}}, "(1,(2,32),64):(4352,(2176,68),1)"},
    {transposition("double"), {{"N", 130}, {"M", 192}}, "(1,(2,32),64):(4224,(2112,66),1)"},
    {transposition("int64"), {{"N", 128}, {"M", 134}}, "(1,(2,32),64):(4224,(2112,66),1)"},
    {transposition("half"), {{"N", 256}, {"M", 192}}, "(1,(8,8),64):(4608,(576,72),1)"},
    {transposition("half"), {{"N", 200}, {"M", 136}}, "(1,(8,8),64):(4608,(576,72),1)"},
    {transposition("int8"), {{"N", 256}, {"M", 256}}, "(1,(16,8),64)"},
    {transposition("uint8"), {{"N", 144}, {"M", 160}}, "(1,(16,8),64)"},
    {kPermutation, {{"A", 72}, {"B", 3}, {"C", 2}, {"D", 68}}, "X_shared (1,(4,16),1,1,64)"},
    {kShifted, {{"N", 204}, {"M", 92}}, "(1,(4,16),64)"},
    {kBackwards, {{"N", 192}, {"M", 128}}, "A_shared (1,64,64)", false},
    {kNarrowed, {{"N", 256}, {"M", 192}}, "(1,(8,8),64):(4352,(544,68),1)"},
    {kWidened, {{"N", 256}, {"M", 192}}, "(1,(4,16),64):(4608,(1152,72),1)"},
    {kTwoResults, {{"N", 132}, {"M", 128}}, "(1,(4,16),64)"},
};

class Rearrangements : public ::testing::TestWithParam<Case> {};

TEST_P(Rearrangements, ByVectorsAgreeWithTheOracleAndAreProved) {
  const ir::Program program = specialised_from(GetParam().text.c_str(), GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, by_vectors(), small_device());
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->program.kernels.size(), 1U);
  EXPECT_EQ(mapping->kernels[0].block[0], 256);
  const std::string text = tile::to_text(mapping->program);
  EXPECT_NE(text.find(GetParam().buffer), std::string::npos) << text;
  EXPECT_EQ(unproved(mapping->program), "");
  for (const int64_t rows : {32, 64}) EXPECT_EQ(difference(program, by_vectors(rows), 1, small_device()), "");
  const interp::Environment data = data_for(program, 1);
  tile::Report report;
  ASSERT_TRUE(simulated(program, *mapping, data, 1, &report));
  const tile::Counters& counters = report.counters[0];
  if (GetParam().free_of_conflicts) {
    EXPECT_EQ(counters.shared_wavefronts, counters.shared_requests);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Rearrangements, ::testing::ValuesIn(kCases));

/// Whole sectors both ways, each once, and a quarter of the requests of single elements.
TEST(Rearrangement, VectorsAreWholeSectors) {
  const ir::Program program = specialised_from(transposition("float").c_str(), {{"N", 256}, {"M", 192}});
  const auto counters = [&](const MappingOptions& options) {
    tile::Report report;
    const Result<gpu::Mapping> mapping = mapped(program, options, small_device());
    EXPECT_TRUE(mapping && simulated(program, *mapping, data_for(program, 1), 1, &report));
    return report.counters.at(0);
  };
  const tile::Counters vectors = counters(by_vectors()), elements = counters({});
  EXPECT_EQ(vectors.global_sectors * 32, 2 * 256 * 192 * 4);
  EXPECT_EQ(vectors.global_requests * 4, elements.global_requests);
}

/// What is chosen for 16 bits that no cache holds, and nothing else; where rows are no whole vectors, single elements.
TEST(Rearrangement, VectorsAreChosenForManyElementsOf16Bits) {
  const auto chosen = [](const std::string& text, const Sizes& sizes) {
    const Result<gpu::Mapping> mapping = mapped(specialised_from(text.c_str(), sizes));
    return mapping ? mapping->kernels.at(0).chosen.map_to_threads : std::vector<int64_t>();
  };
  const std::vector<int64_t> vectors = {8, 32, 1}, elements = {32, 16, 1};
  EXPECT_EQ(chosen(transposition("half"), {{"N", 8192}, {"M", 8192}}), vectors);
  EXPECT_EQ(chosen(transposition("int16"), {{"N", 8184}, {"M", 8200}}), vectors);
  EXPECT_EQ(chosen(transposition("half"), {{"N", 8188}, {"M", 8192}}), elements);
  EXPECT_EQ(chosen(transposition("half"), {{"N", 8192}, {"M", 8188}}), elements);
  EXPECT_EQ(chosen(transposition("half"), {{"N", 2048}, {"M", 2048}}), elements);
  EXPECT_EQ(chosen(transposition("float"), {{"N", 8192}, {"M", 8192}}), elements);
  EXPECT_EQ(chosen(transposition("float"), {{"N", 500}, {"M", 512}}), (std::vector<int64_t>{32, 8, 1}));
  EXPECT_EQ(chosen(kTwoResults, {{"N", 8192}, {"M", 8192}}), elements);
}

constexpr char kWeights[] = "def f(half(F,C,3,3) W) -> (half(F,3,3,C) O) { O(f,i,j,c) = W(f,c,i,j) }";
constexpr char kFloatWeights[] = "def f(float(F,C,3,3) W) -> (float(F,3,3,C) O) { O(f,i,j,c) = W(f,c,i,j) }";
constexpr char kImages[] = R"(
def f(half(N,C,H,W) I, half(H) s) -> (half(N,H,W,C) O) { O(n,h,w,c) = I(n,c,h,w) * s(h) })";

/// Short dimensions are read as one run, and each sector once.
TEST(Rearrangement, ShortRowsAreRuns) {
  struct Run {
    const char* text;
    Sizes sizes;
    std::vector<int64_t> tile;
    int64_t bytes = 0;  ///< of operand and result; 0: others are read too
    MappingOptions options = {};
  };
  const std::vector<Run> runs = {
      {kWeights, {{"F", 64}, {"C", 128}}, {4, 9, 64, 1}, 2 * 64 * 128 * 9 * 2},
      {kWeights, {{"F", 5}, {"C", 96}}, {1, 9, 32, 1}, 2 * 5 * 96 * 9 * 2, {.register_tile = {1, 9, 1}}},
      {kFloatWeights,
       {{"F", 8}, {"C", 64}},
       {4, 9, 64, 1},
       2 * 8 * 64 * 9 * 4,
       {.tile = {4, 9, 64}, .map_to_threads = {32, 4}, .register_tile = {1, 9, 2}}},
      {kImages, {{"N", 3}, {"C", 64}, {"H", 7}, {"W", 7}}, {1, 7, 7, 64, 1}},
      {kImages, {{"N", 8}, {"C", 64}, {"H", 2}, {"W", 5}}, {2, 2, 5, 64, 1}},
  };
  for (const Run& run : runs) {
    const ir::Program program = specialised_from(run.text, run.sizes);
    const Result<gpu::Mapping> mapping = mapped(program, run.options);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    ASSERT_EQ(mapping->program.kernels.size(), 1U);
    EXPECT_EQ(mapping->kernels[0].chosen.tile, run.tile) << run.text;
    EXPECT_EQ(unproved(mapping->program), "");
    EXPECT_EQ(difference_of_mapping(program, *mapping), "");
    const Result<gpu::Mapping> again = mapped(program, mapping->kernels[0].chosen);
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(tile::to_text(again->program), tile::to_text(mapping->program));
    tile::Report report;
    ASSERT_TRUE(simulated(program, *mapping, data_for(program, 1), 1, &report));
    if (run.bytes > 0) EXPECT_EQ(report.counters.at(0).global_sectors * 32, run.bytes) << run.text;
  }
  // No whole number of a warp's columns: not by runs.
  const ir::Program crooked = specialised_from(kWeights, {{"F", 6}, {"C", 50}});
  EXPECT_EQ(difference(crooked), "");
}

/// Both are open to a search, and the options of each ask for it.
TEST(Rearrangement, PlansComeBackFromTheirOptions) {
  const ir::Program program = specialised_from(transposition("float").c_str(), {{"N", 4096}, {"M", 2048}});
  const Result<std::vector<gpu::Tunable>> open = gpu::tunables(program, {}, {});
  ASSERT_TRUE(open) << open.error().to_string();
  const auto threads =
      std::find_if(open->begin(), open->end(), [](const gpu::Tunable& t) { return t.field == "map_to_threads"; });
  ASSERT_NE(threads, open->end());
  for (const std::vector<int64_t>& value : std::vector<std::vector<int64_t>>{{32, 16, 1}, {8, 32, 1}, {8, 64, 1}}) {
    EXPECT_EQ(std::count(threads->values.begin(), threads->values.end(), value), 1) << fmt::format("{}", value);
    const Result<gpu::Mapping> once = mapped(program, {.map_to_threads = value});
    ASSERT_TRUE(once) << once.error().to_string();
    EXPECT_EQ(once->kernels[0].chosen.map_to_threads, value);
    const Result<gpu::Mapping> again = mapped(program, once->kernels[0].chosen);
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(tile::to_text(again->program), tile::to_text(once->program));
  }
}

}  // namespace
}  // namespace tc::testing
