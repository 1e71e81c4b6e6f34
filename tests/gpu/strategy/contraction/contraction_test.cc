#include "tc/gpu/strategy/contraction/kernel.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <random>

#include "tc/interp/compare.h"
#include "tc/poly/from_ir.h"
#include "tc/tile/certificate.h"
#include "tc/tile/print.h"
#include "tc/tile/simulate.h"
#include "tc/tile/verify.h"
#include "tests/common/program.h"
#include "tests/common/tile_mutants.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Contractions and transpositions through shared memory: on the simulator as on the oracle, verified and certified.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

constexpr char kMatmul[] = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
constexpr char kTransposed[] = "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }";
constexpr char kBatched[] = "def f(float(B,N,M) X, float(B,K,M) Y) -> (Z) { Z(b,n,k) +=! X(b,n,m) * Y(b,k,m) }";
constexpr char kPerceptron[] = R"(
def f(float(B,I) x, float(O,I) w, float(O) bias) -> (y, z) {
  y(b,o) = bias(o)
  y(b,o) += x(b,i) * w(o,i)
  y(b,o) = fmax(y(b,o), 0)
  z(b,o) = 2 * y(b,o) + x(b,0)
})";
constexpr char kScaled[] = R"(
def f(float a, float b, float(M,K) A, float(K,N) B) -> (C) {
  C(m,n) = b * C(m,n)
  C(m,n) += a * A(m,k) * B(k,n)
})";
constexpr char kConvolution[] = R"(
def f(float(N,G,C,H,W) I, float(G,F,C,KH,KW) K, float(G,F) bias) -> (O) {
  O(n,g,f,h,w) +=! I(n,g,c,h + kh,w + kw) * K(g,f,c,kh,kw)
  O(n,g,f,h,w) = O(n,g,f,h,w) + bias(g,f)
})";
constexpr char kDepthwise[] =
    "def f(float(N,H,W,C) I, float(KH,KW,C) K) -> (O) { O(n,h,w,c) +=! I(n,h + kh,w + kw,c) * K(kh,kw,c) }";
constexpr char kPadded[] = R"(
def f(float(N,C,H,W) I, float(O,C,KH,KW) F, float(O) b) -> (float(N,O,H,W) R) {
  R(n,o,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,c,h + kh - 1,w + kw - 1) : 0.0)
    * F(o,c,kh,kw) where h in 0:H, w in 0:W
  R(n,o,h,w) = fmax(R(n,o,h,w) + b(o), 0)
})";
constexpr char kPaddedStrided[] = R"(
def f(float(N,C,H,W) I, float(O,C,KH,KW) F) -> (R) {
  R(n,o,h,w) +=! F(o,c,kh,kw) * (3 <= 2*h + kh && 2*h + kh < H + 3 && 0 < w + 2*kw - 1 && w + 2*kw < W + 2
    ? I(n,c,2*h + kh - 3,w + 2*kw - 2) : 0.0) where h in 0:(H + 1)/2, w in 0:W
})";
constexpr char kCausal[] = R"(
def f(float(B,C,T) X, float(O,C,K) W) -> (float(B,O,T) R) {
  R(b,o,t) +=! (t >= 2 * k ? X(b,c,t - 2 * k) : 0.0) * W(o,c,k)
})";
constexpr char kPaddedLast[] = R"(
def f(int8(N,H,W,C) I, int8(3,3,C,O) F) -> (int32(N,H,W,O) R) {
  R(n,h,w,o) +=! int32(h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,h + kh - 1,w + kw - 1,c) : int8(0))
    * int32(F(kh,kw,c,o)) where h in 0:H, w in 0:W
})";
constexpr char kChoice[] = R"(
def f(float(N,H,W,C) I, float(KH,KW,O,C) F) -> (float(N,O,H,W) R) {
  R(n,o,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ?
    I(n,h + kh - 1,w + kw - 1,c) * F(kh,kw,o,c) : 0.0) where h in 0:H, w in 0:W
})";
constexpr char kGreatest[] = "def f(int32(M,K) A, int32(K,N) B) -> (C) { C(m,n) max=! A(m,k) - B(k,n) + int32(k) }";
constexpr char kBytes[] = "def f(int8(M,K) A, int8(K,N) B) -> (C) { C(m,n) min=! A(m,k) * B(k,n) }";
constexpr char kTwice[] = "def f(float(M,K) A) -> (C) { C(m,n) +=! A(m,k) * A(n,k) }";
constexpr char kBackwards[] =
    "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,N - 1 - n) where n in 0:N }";
constexpr char kTensor[] =
    "def f(float(A,B,C,D) X, float(D,B,E,F) Y) -> (Z) { Z(a,c,e,f) +=! X(a,b,c,d) * Y(d,b,e,f) }";

constexpr char kTransposition[] = "def f(float(N,M) A) -> (B) { B(i,j) = A(j,i) }";
constexpr char kBytesAcross[] = R"(
def f(int8(N,M) A, int8(M,N) D) -> (B, C) {
  B(i,j) = A(j,i) + D(i,j)
  C(i,j) = B(i,j) * 2
})";
constexpr char kPermutation[] = "def f(float(A,B,C,D) X) -> (Y) { Y(c,b,d,a) = X(a,b,c,d) + 1 }";

struct Case {
  const char* text;
  Sizes sizes;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.text << " " << fmt::format("{}", c.sizes); }

const Case kCases[] = {
    {kMatmul, {{"M", 128}, {"N", 128}, {"K", 64}}},
    {kMatmul, {{"M", 131}, {"N", 127}, {"K", 61}}},
    {kMatmul, {{"M", 130}, {"N", 132}, {"K", 5}}},
    {kMatmul, {{"M", 260}, {"N", 68}, {"K", 2}}},
    {kMatmul, {{"M", 4}, {"N", 4100}, {"K", 12}}},
    {kTransposed, {{"M", 128}, {"N", 160}, {"K", 96}}},
    {kTransposed, {{"M", 129}, {"N", 130}, {"K", 77}}},
    {kBatched, {{"B", 30}, {"N", 26}, {"K", 26}, {"M", 72}}},
    {kBatched, {{"B", 25}, {"N", 27}, {"K", 25}, {"M", 7}}},
    {kPerceptron, {{"B", 130}, {"O", 129}, {"I", 37}}},
    {kPerceptron, {{"B", 128}, {"O", 132}, {"I", 48}}},
    {kScaled, {{"M", 128}, {"N", 136}, {"K", 40}}},
    {kScaled, {{"M", 133}, {"N", 127}, {"K", 19}}},
    {kConvolution, {{"N", 2}, {"G", 3}, {"C", 4}, {"F", 4}, {"H", 30}, {"W", 34}, {"KH", 3}, {"KW", 3}}},
    {kConvolution, {{"N", 20}, {"G", 2}, {"C", 10}, {"F", 9}, {"H", 9}, {"W", 9}, {"KH", 3}, {"KW", 2}}},
    {kDepthwise, {{"N", 2}, {"H", 18}, {"W", 19}, {"C", 36}, {"KH", 3}, {"KW", 3}}},
    {kPadded, {{"N", 2}, {"C", 8}, {"H", 16}, {"W", 16}, {"O", 16}, {"KH", 3}, {"KW", 3}}},
    {kPadded, {{"N", 1}, {"C", 6}, {"H", 11}, {"W", 20}, {"O", 9}, {"KH", 3}, {"KW", 3}}},
    {kPadded, {{"N", 3}, {"C", 16}, {"H", 9}, {"W", 13}, {"O", 10}, {"KH", 2}, {"KW", 3}}},
    {kPaddedStrided, {{"N", 2}, {"C", 8}, {"H", 14}, {"W", 18}, {"O", 16}, {"KH", 5}, {"KW", 3}}},
    {kChoice, {{"N", 2}, {"H", 16}, {"W", 16}, {"C", 3}, {"O", 32}, {"KH", 3}, {"KW", 3}}},
    {kChoice, {{"N", 1}, {"H", 9}, {"W", 12}, {"C", 4}, {"O", 16}, {"KH", 3}, {"KW", 3}}},
    {kCausal, {{"B", 2}, {"C", 12}, {"T", 40}, {"O", 20}, {"K", 3}}},
    {kPaddedLast, {{"N", 2}, {"C", 16}, {"H", 7}, {"W", 8}, {"O", 16}}},
    {kGreatest, {{"M", 129}, {"N", 130}, {"K", 33}}},
    {kBytes, {{"M", 140}, {"N", 144}, {"K", 48}}},
    {kTwice, {{"M", 130}, {"K", 40}}},
    {kBackwards, {{"M", 130}, {"N", 132}, {"K", 24}}},
    {kBackwards, {{"M", 130}, {"N", 132}, {"K", 29}}},
    {kBackwards, {{"M", 130}, {"N", 132}, {"K", 37}}},
    {kTransposition, {{"N", 200}, {"M", 190}}},
    {kTransposition, {{"N", 1700}, {"M", 1410}}},
    {kBytesAcross, {{"N", 77}, {"M", 100}}},
    {kPermutation, {{"A", 40}, {"B", 3}, {"C", 4}, {"D", 35}}},
    {kTensor, {{"A", 12}, {"B", 9}, {"C", 12}, {"D", 9}, {"E", 10}, {"F", 14}}},
};

class Contractions : public ::testing::TestWithParam<Case> {};

TEST_P(Contractions, AgreeWithTheOracleAndAreProved) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->program.kernels.size(), 1U);
  // Or threads have a window's elements in registers, in strips.
  const bool is_strip = mapping->kernels[0].recipe == gpu::Recipe::kHalo;
  EXPECT_TRUE(is_strip || mapping->program.kernels[0].shared_bytes() > 0);
  EXPECT_EQ(unproved(mapping->program), "");
  for (uint64_t seed : {1, 2}) EXPECT_EQ(difference(program, {}, seed), "");
}

INSTANTIATE_TEST_SUITE_P(Cases, Contractions, ::testing::ValuesIn(kCases));

TEST(Contraction, SmallDevicesGetSmallBlocks) {
  gpu::Device small;
  small.shared_bytes = 6000;
  small.threads_per_block = 64;
  small.block = {64, 64, 64};
  const ir::Program program = specialised_from(kMatmul, {{"M", 128}, {"N", 132}, {"K", 70}});
  const Result<gpu::Mapping> mapping = mapped(program, {}, small);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const tile::Kernel& kernel = mapping->program.kernels[0];
  EXPECT_GT(kernel.shared_bytes(), 0);
  EXPECT_LE(kernel.shared_bytes(), 6000);
  EXPECT_LE(kernel.block[0], 64);
  EXPECT_EQ(difference_of_mapping(program, *mapping), "");
}

/// A product under a guard is 0 where the guard fails, whatever the other factor is there, unless a factor has no
/// element there.
TEST(Contraction, GuardedProductsAreOperandsWithBordersAtEdgesAlone) {
  const std::string inside = "(t >= k ? X(b,c,t - k) : 0.0) * W(o,c,k)",
                    around = "t >= k ? X(b,c,t - k) * W(o,c,k) : 0.0",
                    hidden = "t > k && t >= k ? X(b,c,t - k) * W(o,c,k) : 0.0";  // what X has
  for (const auto& [value, infinite] : {std::pair{inside, true}, std::pair{around, true}, std::pair{hidden, false}}) {
    const ir::Program program =
        specialised_from("def f(float(B,C,T) X, float(O,C,K) W) -> (float(B,O,T) R) { R(b,o,t) +=! " + value + " }",
                         {{"B", 2}, {"C", 8}, {"T", 32}, {"O", 16}, {"K", 3}});
    const Result<gpu::Mapping> mapping = mapped(program);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    interp::Environment data = data_for(program, 1);
    data.at("W").floats.at(2) = std::numeric_limits<double>::infinity();  // k = 2 of the first channels
    const Result<interp::Environment> result = simulated(program, *mapping, data);
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(std::isnan(result->at("R").floats.at(0)), infinite) << value;
    EXPECT_EQ(difference_of_mapping(program, *mapping), "");
  }
}

/// No reduction axis is long, but each result has thousands of products. An H200 has 132 processors.
TEST(Contraction, OfSeveralShortReductionsKeepsTheDeviceBusy) {
  const std::string bilinear =
      "def f(float(B,I) X, float(O,I,J) W, float(B,J) Y) -> (Z) { Z(b,o) +=! X(b,i) * W(o,i,j) * Y(b,j) }";
  const std::string mttkrp =
      "def f(float(I,J,K) T, float(J,R) U, float(K,R) V) -> (Z) { Z(i,r) +=! T(i,j,k) * U(j,r) * V(k,r) }";
  for (const auto& [text, sizes] :
       {std::pair{bilinear, std::map<std::string, int64_t>{{"B", 512}, {"I", 64}, {"J", 64}, {"O", 32}}},
        std::pair{mttkrp, std::map<std::string, int64_t>{{"I", 128}, {"J", 128}, {"K", 128}, {"R", 16}}}}) {
    const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes));
    ASSERT_TRUE(mapping);
    const gpu::Kernel& product = mapping->kernels.front();
    const int64_t warps = product.grid[0] * product.grid[1] * product.grid[2] * product.block[0] / 32;
    EXPECT_GT(warps, 3 * 132) << gpu::report(*mapping);
  }
}

TEST(Contraction, EveryBarrierAndGuardIsNeeded) {
  const Case cases[] = {
      {kMatmul, {{"M", 40}, {"N", 40}, {"K", 80}}},      {kMatmul, {{"M", 33}, {"N", 35}, {"K", 131}}},
      {kTransposed, {{"M", 32}, {"N", 36}, {"K", 150}}}, {kPerceptron, {{"B", 30}, {"O", 33}, {"I", 7}}},
      {kBytes, {{"M", 40}, {"N", 35}, {"K", 90}}},       {kTransposition, {{"N", 33}, {"M", 40}}},
  };
  int removed = 0;
  for (const auto& [text, sizes] : cases) {
    const ir::Program program = specialised_from(text, sizes);
    const Result<gpu::Mapping> mapping = mapped(program);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    const interp::Environment data = data_for(program, 1);
    const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
    ASSERT_TRUE(oracle) << oracle.error().to_string();
    for (const tile::Mutant& mutant : tile::mutants(mapping->program)) {
      ++removed;
      if (!tile::verify(mutant.program).holds() || !tile::certify(mutant.program.kernels[0]).holds()) continue;
      gpu::Mapping changed = *mapping;
      changed.program = mutant.program;
      const Result<interp::Environment> results = simulated(program, changed, data);
      if (!results) continue;
      const std::vector<interp::Comparison> comparisons = interp::compare(*results, *oracle);
      EXPECT_FALSE(std::all_of(comparisons.begin(), comparisons.end(), [](const auto& c) { return c.agrees; }))
          << text << mutant.what;
    }
  }
  EXPECT_GT(removed, 20);
}

/// An operand that lies along the reduction is turned, by copies of single elements, unless the other lies so too.
TEST(Contraction, OneOperandIsTurned) {
  const options::MappingOptions options{.tile = {64, 64, 16}, .register_tile = {8, 4}, .copy_stages = 3};
  const auto has = [&](const char* def, int64_t k, const char* tensor) {
    const ir::Program program = specialised_from(def, {{"M", 70}, {"N", 132}, {"K", k}});
    const Result<gpu::Mapping> mapping = mapped(program, options);
    EXPECT_EQ(difference(program, options), "");
    return mapping && tile::to_text(mapping->program).find(tensor) != std::string::npos;
  };
  EXPECT_TRUE(has(kMatmul, 96, "A_shared (3,64,16):(1088,1,68)"));
  EXPECT_TRUE(has(kMatmul, 93, "A_shared (3,64,16):(1088,1,68)"));
  EXPECT_TRUE(has(kMatmul, 12, "A_shared (1,64,12):(816,1,68)"));
  EXPECT_TRUE(has(kTransposed, 96, "A_shared (3,64,16):(1280,20,1)"));
  EXPECT_TRUE(has(kTransposed, 96, "B_shared (3,64,16):(1280,20,1)"));
}

/// Steps of 2048 sums are laid out where no element is converted on its way to them.
TEST(Contraction, LessIsLaidOutOfElementsThatAreConverted) {
  const auto laid_out = [](const std::string& type) -> std::optional<int64_t> {
    std::string text = "def f(";
    text += type + "(M,K) A, " + type + "(K,N) B) -> (float(M,N) C) { C(m,n) +=! A(m,k) * B(k,n) }";
    gpu::Device device;
    device.shared_bytes = 227 * 1024;
    const Result<gpu::Mapping> mapping =
        mapped(specialised_from(text.c_str(), {{"M", 4096}, {"N", 4096}, {"K", 4096}}), {}, device);
    return mapping ? mapping->kernels.at(0).chosen.unroll : std::nullopt;
  };
  EXPECT_EQ(laid_out("float"), 2048);
  EXPECT_EQ(laid_out("half"), 1024);
  EXPECT_EQ(laid_out("bfloat16"), 1024);
}

/// Stores of a text to a tensor, of loops that are unrolled once for each iteration.
int64_t stores_laid_out(const tile::NodePtr& node, const std::string& tensor) {
  if (const auto* store = std::get_if<tile::Store>(&node->node)) return store->tensor == tensor ? 1 : 0;
  if (const auto* loop = std::get_if<tile::For>(&node->node)) {
    const int64_t count = loop->unrolled ? *Halide::Internal::as_const_int(loop->end) : 1;
    return count * stores_laid_out(loop->body, tensor);
  }
  if (const auto* allocate = std::get_if<tile::Allocate>(&node->node)) return stores_laid_out(allocate->body, tensor);
  if (const auto* let = std::get_if<tile::Let>(&node->node)) return stores_laid_out(let->body, tensor);
  int64_t count = 0;
  if (const auto* sequence = std::get_if<tile::Sequence>(&node->node)) {
    for (const tile::NodePtr& child : sequence->children) count += stores_laid_out(child, tensor);
  }
  return count;
}

/// A step with more products than may be laid out goes around a part of them.
TEST(Contraction, StepsAreLaidOutInPieces) {
  for (const char* text : {kMatmul, kTransposed}) {
    const ir::Program program = specialised_from(text, {{"M", 70}, {"N", 66}, {"K", 96}});
    constexpr int64_t kSums = 32;  // of a thread
    for (const auto& [most, laid_out] :
         std::map<int64_t, int64_t>{{8, 32}, {100, 64}, {128, 128}, {300, 256}, {512, 512}, {1024, 1024}}) {
      if (text == kTransposed && most < 128) continue;  // four values are read as vectors, and laid out always
      const options::MappingOptions options{
          .tile = {64, 64, 32}, .unroll = most, .map_to_threads = {16, 8}, .register_tile = {8, 4}, .copy_stages = 2};
      const Result<gpu::Mapping> mapping = mapped(program, options);
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      EXPECT_EQ(stores_laid_out(mapping->program.kernels.at(0).body, "C_sum"), kSums + laid_out) << most;
      EXPECT_EQ(difference_of_mapping(program, *mapping), "");
    }
  }
}

/// With more buffers than steps, all copies begin before the first is waited for.
TEST(Contraction, CopiesOfFewStepsBeginAtOnce) {
  const options::MappingOptions options{
      .tile = {32, 32, 16}, .map_to_threads = {8, 8}, .register_tile = {4, 4}, .copy_stages = 4};
  for (const char* text : {kMatmul, kTransposed}) {
    for (const int64_t k : {48, 50, 32}) {
      const ir::Program program = specialised_from(text, {{"M", 70}, {"N", 66}, {"K", k}});
      const Result<gpu::Mapping> mapping = mapped(program, options);
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      int closed = 0, closed_before_wait = -1;
      tile::for_each_node(mapping->program.kernels.at(0).body, [&](const tile::Node& node) {
        if (std::holds_alternative<tile::CommitGroup>(node.node)) ++closed;
        if (std::holds_alternative<tile::WaitGroup>(node.node) && closed_before_wait < 0) closed_before_wait = closed;
      });
      EXPECT_EQ(closed_before_wait, k / 16);
      EXPECT_EQ(unproved(mapping->program), "");
      EXPECT_EQ(difference_of_mapping(program, *mapping), "");
      const Result<gpu::Mapping> again = mapped(program, mapping->kernels[0].chosen);
      ASSERT_TRUE(again) << again.error().to_string();
      EXPECT_EQ(tile::to_text(again->program), tile::to_text(mapping->program));
    }
  }
}

/// A transposition reads and writes whole sectors, and its threads meet in no bank.
TEST(Contraction, TranspositionsAreCoalesced) {
  const ir::Program program = specialised_from(kTransposition, {{"N", 256}, {"M", 192}});
  const Result<gpu::Mapping> mapping = mapped(program);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  std::vector<std::byte> a(256 * 192 * 4), b(256 * 192 * 4);
  tile::Arguments arguments;
  arguments.tensors = {{"A", a}, {"B", b}};
  const Result<tile::Report> report = tile::simulate(mapping->program, arguments);
  ASSERT_TRUE(report) << report.error().to_string();
  const tile::Counters& counters = report->counters[0];
  EXPECT_EQ(counters.global_sectors * 32, counters.global_bytes_read + counters.global_bytes_written);
  EXPECT_EQ(counters.shared_wavefronts, counters.shared_requests);
}

/// What depends on neighbouring results is not of the contraction.
TEST(Contraction, StatementsOnOtherPointsStayOutside) {
  constexpr char text[] = R"(
def f(float(M,K) A, float(K,N) B) -> (C, D) {
  C(m,n) +=! A(m,k) * B(k,n)
  D(m,n) = C(m,n) + C(m,n + 1) where n in 0:N-1
})";
  const ir::Program program = specialised_from(text, {{"M", 128}, {"N", 129}, {"K", 20}});
  const Result<gpu::Mapping> mapping = mapped(program);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->program.kernels.size(), 2U);
  EXPECT_EQ(mapping->edges, (std::vector<gpu::Edge>{{"C", 0, 1}}));
  EXPECT_EQ(difference_of_mapping(program, *mapping), "");
}

/// Contractions of random shapes, on devices of random sizes.
TEST(Contraction, OfRandomShapesAgreeWithTheOracle) {
  const char* texts[] = {kMatmul, kTransposed, kBatched, kPerceptron, kConvolution, kDepthwise, kTensor, kBytesAcross};
  int with_shared_memory = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    const char* text = texts[random() % std::size(texts)];
    const ir::Program symbolic = program_from(text);
    const size_t count = symbolic.sizes.size();
    const uint64_t most = count <= 3 ? 150 : count <= 4 ? 40 : 14;
    Sizes sizes;
    for (const std::string& name : symbolic.sizes) {
      const auto any = static_cast<int64_t>(1 + random() % most);
      sizes[name] = name == "KH" || name == "KW" ? 1 + any % 3 : name == "H" || name == "W" ? any + 3 : any;
    }
    gpu::Device device;
    device.processors = static_cast<int64_t>(1 + random() % 200);
    if (random() % 2) device.shared_bytes = static_cast<int64_t>(3000 + random() % 200000);
    options::MappingOptions options;
    if (random() % 3 == 0) options.copy_stages = static_cast<int64_t>(1 + random() % 4);
    const ir::Program program = specialised_from(text, sizes);
    SCOPED_TRACE(fmt::format("seed {}: {} {}", seed, text, sizes));
    const Result<gpu::Mapping> mapping = mapped(program, options, device);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    for (const tile::Kernel& kernel : mapping->program.kernels) with_shared_memory += kernel.shared_bytes() > 0;
    EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
  }
  EXPECT_GE(with_shared_memory, 20);
}

/// Neighbours along a diagonal are no neighbours in memory, though their index is alone in a subscript.
TEST(Contraction, DiagonalsAreReadOneByOne) {
  const Sizes sizes = {{"M", 16}, {"N", 132}, {"K", 24}};
  const auto tiles = options::mapping_options_from_text("tile: [16, 64, 8] register_tile: [2, 4]");
  ASSERT_TRUE(tiles);
  const char* texts[] = {
      "def f(float(M,M) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,m) * B(k,n) }",
      "def f(float(K,M,M) A, float(K,N) B) -> (C) { C(m,n) +=! A(k,m,m) * B(k,n) }",
      "def f(float(M,M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,m,k) * B(k,n) }",
  };
  for (const char* text : texts) EXPECT_EQ(difference(specialised_from(text, sizes), *tiles), "") << text;
  const char* sums = "def f(float(M,K,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k,k) * B(n,k) }";
  EXPECT_EQ(difference(specialised_from(sums, {{"M", 66}, {"N", 128}, {"K", 32}})), "");
}

/// What is read once is not worth a copy.
TEST(Contraction, ReductionsWithoutReuseAreNone) {
  const Case cases[] = {
      {"def f(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }", {{"M", 160}, {"K", 64}}},
      {"def f(float(M,N,K) A, float(M,N,K) B) -> (y) { y(m,n) +=! A(m,n,k) * B(m,n,k) }",
       {{"M", 160}, {"N", 128}, {"K", 64}}},
  };
  for (const auto& [text, sizes] : cases) {
    const ir::Program program = specialised_from(text, sizes);
    const auto context = std::make_shared<poly::Context>();
    const Result<poly::Scop> scop = poly::from_ir(std::make_shared<const ir::Program>(program), context);
    ASSERT_TRUE(scop) << scop.error().to_string();
    EXPECT_FALSE(gpu::contraction_at(*scop, 0)) << text;
  }
}

}  // namespace
}  // namespace tc::testing
