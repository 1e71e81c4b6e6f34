#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tc/gpu/rewrite/gather_rows.h"
#include "tc/gpu/strategy/tunables.h"
#include "tc/tile/certificate.h"
#include "tc/tile/print.h"
#include "tc/tile/verify.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

/// Rows that data choose, copied to shared memory from where they are.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;
using options::MappingOptions;

const MappingOptions kStraight{.max_gathered_memory = 0};
constexpr char kRows[] = "def f(float(V,K) E, int32(N) I, float(K,M) W) -> (Z) { Z(n,m) +=! E(I(n),k) * W(k,m) }";

struct Case {
  const char* text;
  Sizes sizes;
  const char* copy;  ///< what brings rows, as the tile program's text has it
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.text << " " << fmt::format("{}", c.sizes); }

const Case kCases[] = {
    {kRows, {{"V", 20}, {"N", 70}, {"K", 48}, {"M", 40}}, "E(I("},
    {kRows, {{"V", 9}, {"N", 65}, {"K", 37}, {"M", 33}}, "E(I("},
    {"def f(half(V,K) E, int32(N) I, half(K,M) W) -> (Z) { Z(n,m) +=! E(I(n),k) * W(k,m) }",
     {{"V", 20}, {"N", 64}, {"K", 72}, {"M", 40}},
     "E(I("},
    {"def f(float(V,K) E, int32(N,J) I, float(J,K,M) W) -> (Z) { Z(n,m) +=! E(I(n,j),k) * W(j,k,m) }",
     {{"V", 20}, {"N", 40}, {"J", 3}, {"K", 16}, {"M", 32}},
     "E(I("},
    {"def f(float(V,K) E, int32(N) I, int32(M) J) -> (Z) { Z(n,m) +=! E(I(n),k) * E(J(m),k) }",
     {{"V", 20}, {"N", 40}, {"K", 16}, {"M", 36}},
     "E(J("},
    {"def f(float(V,K) E, int64(P) I, int32(N) J, float(K,M) W) -> (Z) { Z(n,m) +=! E(I(J(n)),k) * W(k,m) }",
     {{"V", 20}, {"P", 21}, {"N", 40}, {"K", 16}, {"M", 32}},
     "E(I(J("},
    {"def f(float(A,V,K) E, uint8(N) I, float(K,M) W) -> (Z) { Z(a,n,m) +=! E(a,I(n),k) * W(k,m) }",
     {{"A", 3}, {"V", 20}, {"N", 20}, {"K", 16}, {"M", 32}},
     "E("},
    {"def f(float(V,K) E, int32(N) I, float(K,M) W) -> (Z) {"
     "  Z(n,m) +=! E(I(n) + 1,k + 4) * W(k,m) where n in 3:40, k in 4:K-4 }",
     {{"V", 20}, {"N", 40}, {"K", 32}, {"M", 32}},
     "E("},
    // Neighbours along k are none in the tensor.
    {"def f(float(V,K,K) E, int32(N) I, float(K,M) W) -> (Z) { Z(n,m) +=! E(I(n),k,k) * W(k,m) }",
     {{"V", 20}, {"N", 40}, {"K", 16}, {"M", 32}},
     "E(I("},
    // What chooses rows is multiplied, too.
    {"def f(float(V,K) E, int32(N,J) I, float(J,K,M) W) -> (Z) {"
     "  Z(n,m) +=! E(I(n,j),k) * W(j,k,m) * float(I(n,j)) }",
     {{"V", 20}, {"N", 40}, {"J", 3}, {"K", 16}, {"M", 32}},
     "E(I("},
};

class GatheredRows : public ::testing::TestWithParam<Case> {};

TEST_P(GatheredRows, GoStraightToSharedMemory) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, kStraight);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->kernels.size(), 1U);
  EXPECT_EQ(mapping->kernels[0].recipe, gpu::Recipe::kContraction);
  EXPECT_TRUE(mapping->program.workspace.empty());
  const std::string text = tile::to_text(mapping->program);
  EXPECT_NE(text.find("E_shared"), std::string::npos) << text;
  EXPECT_NE(text.find(GetParam().copy), std::string::npos) << text;
  const tile::Verification verification = tile::verify(mapping->program);
  EXPECT_TRUE(verification.holds()) << fmt::format("{}", fmt::join(verification.faults, "\n"));
  const tile::Certificate certificate = tile::certify(mapping->program.kernels[0]);
  EXPECT_TRUE(certificate.races.empty()) << fmt::format("{}", fmt::join(certificate.races, "\n"));
  for (uint64_t seed = 1; seed <= 3; ++seed) EXPECT_EQ(difference(program, kStraight, seed), "");
  MappingOptions parts = kStraight;
  parts.split_reduction = 2;
  EXPECT_EQ(difference(program, parts), "");
}

INSTANTIATE_TEST_SUITE_P(Cases, GatheredRows, ::testing::ValuesIn(kCases));

/// Rows of whole vectors are copied by vectors; others, and neighbours that are none, by elements.
TEST(GatheredRow, IsCopiedByVectors) {
  const auto elements = [](const char* text, int64_t k) {
    const ir::Program program = specialised_from(text, {{"V", 20}, {"N", 64}, {"K", k}, {"M", 64}});
    const Result<gpu::Mapping> mapping = mapped(program, kStraight);
    int most = 0;
    if (!mapping) return most;
    tile::for_each_node(mapping->program.kernels.at(0).body, [&](const tile::Node& node) {
      const auto* move = std::get_if<tile::Move>(&node.node);
      if (move != nullptr && move->source == "E") most = std::max(most, move->elements);
    });
    return most;
  };
  EXPECT_EQ(elements(kRows, 64), 4);
  EXPECT_EQ(elements(kRows, 62), 2);
  EXPECT_EQ(elements(kRows, 61), 1);
  EXPECT_EQ(elements(kCases[8].text, 64), 1);
}

/// Rows that would take more workspace than there may be go straight to shared memory, as all do by default.
TEST(GatheredRow, TakesWorkspaceUpToABound) {
  const auto launches = [](int64_t n, const MappingOptions& options) {
    const Result<gpu::Mapping> mapping =
        mapped(specialised_from(kRows, {{"V", 1000}, {"N", n}, {"K", 64}, {"M", 64}}), options);
    return mapping ? mapping->kernels.size() : 0;
  };
  EXPECT_EQ(launches(1 << 20, {}), 1U);
  EXPECT_EQ(launches((1 << 20) + 1, {.max_gathered_memory = int64_t{1} << 30}), 2U);
  EXPECT_EQ(launches(100, {.max_gathered_memory = 100 * 64 * 4}), 2U);
  EXPECT_EQ(launches(100, {.max_gathered_memory = 100 * 64 * 4 - 1}), 1U);
}

TEST(GatheredRow, IsOpenToASearch) {
  const auto is_open = [](const char* text, const Sizes& sizes) {
    const Result<std::vector<gpu::Tunable>> open = gpu::tunables(specialised_from(text, sizes), {}, {});
    return open && std::any_of(open->begin(), open->end(),
                               [](const gpu::Tunable& t) { return t.field == "max_gathered_memory"; });
  };
  EXPECT_TRUE(is_open(kRows, {{"V", 20}, {"N", 64}, {"K", 64}, {"M", 64}}));
  EXPECT_FALSE(is_open("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
                       {{"M", 64}, {"N", 64}, {"K", 64}}));
}

/// A row that exists under a condition only, and one that the results choose, are not looked up ahead.
TEST(GatheredRow, IsNotLookedUpWhereItMayNotBe) {
  for (const char* text : {"def f(float(V,K) E, int32(N) I, float(K,M) W) -> (Z) {"
                           "  Z(n,m) +=! (I(n) >= 0 ? E(I(n),k) : 0) * W(k,m) }",
                           "def f(int32(V,K) E, int32(K,M) W) -> (int32(64,M) Z) {"
                           "  Z(n,m) += E(Z(n,m),k) * W(k,m) }"}) {
    SCOPED_TRACE(text);
    Sizes sizes = {{"V", 20}, {"N", 64}, {"K", 64}, {"M", 64}};
    std::erase_if(sizes, [&](const auto& size) { return program_from(text).sizes.size() < 4 && size.first == "N"; });
    const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), kStraight);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(tile::to_text(mapping->program).find("E_shared"), std::string::npos);
  }
}

}  // namespace
}  // namespace tc::testing
