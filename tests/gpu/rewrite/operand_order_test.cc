#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tc/gpu/rewrite/operand_order.h"
#include "tc/gpu/strategy/contraction/operand_choice.h"
#include "tc/gpu/strategy/prepare.h"
#include "tc/gpu/strategy/tunables.h"
#include "tc/ir/print.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"
#include "tests/random/warpgroup_products.h"

/// Operands of products in the order and pitch that warpgroups take.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;
using options::MappingOptions;

const gpu::Device kDevice = gpu::device_of_architecture(90);

constexpr char kNN[] = "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
constexpr char kTN[] = "def f(bfloat16(K,M) A, bfloat16(N,K) B) -> (C) { C(m,n) +=! A(k,m) * B(n,k) }";
constexpr char kSquare[] = "def f(float16(M,K) A) -> (float(M,M) C) { C(m,n) +=! float(A(m,k)) * float(A(n,k)) }";
constexpr char kShifted[] = R"(
def f(float16(M,L) A, float16(L,N) B) -> (float16(M,N) C) {
  C(m,n) +=! A(m,k + 3) * B(k + 3,n) where k in 0:L-3
})";
constexpr char kPart[] = R"(
def f(float16(P,M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(2,m,k) * B(k,n) where k in 8:K-1 })";
constexpr char kEpilogue[] = R"(
def f(float16(M,K) A, float16(K,N) B, float16(N) b) -> (float16(M,N) C) {
  C(m,n) = b(n)
  C(m,n) += A(m,k) * B(k,n)
  C(m,n) = fmax(C(m,n), 0)
})";
constexpr char kGated[] = R"(
def f(float16(M,K) A, float16(K,N) B, float16(K,N) G) -> (float(M,N) O) {
  P(m,n) +=! float(A(m,k)) * float(B(k,n))
  Q(m,n) +=! float(A(m,k)) * float(G(k,n))
  O(m,n) = P(m,n) * fmax(Q(m,n), 0)
})";
constexpr char kChain[] = R"(
def f(float16(M,K) A, float16(K,L) B, float16(L,N) D) -> (float16(M,N) E) {
  half C(m,l) +=! A(m,k) * B(k,l)
  E(m,n) +=! C(m,l) * D(l,n)
})";
constexpr char kWrittenBefore[] = R"(
def f(float16(M,K) A, float16(K,N) B) -> (float16(M,K) X, float16(M,N) C) {
  X(m,k) = A(m,k) + 1
  C(m,n) +=! X(m,k) * B(k,n)
})";
constexpr char kBatch[] = "def f(float16(B,M,K) A, float16(B,K,N) D) -> (C) { C(b,m,n) +=! A(b,m,k) * D(b,k,n) }";
constexpr char kPadded[] = R"(
def f(float16(N,C,H,W) I, float16(O,C,3,3) F) -> (float16(N,O,H,W) R) {
  R(n,o,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,c,h + kh - 1,w + kw - 1)
    : float16(0.0)) * F(o,c,kh,kw) where h in 0:H, w in 0:W
})";
constexpr char kUnpadded[] = R"(
def f(float16(N,C,H,W) I, float16(O,C,3,3) F) -> (float16(N,O,H-2,W-2) R) {
  R(n,o,h,w) +=! I(n,c,h + kh,w + kw) * F(o,c,kh,kw)
})";
constexpr char kPair[] = R"(
def f(half(N,C,H,W) I, half(C,C,3,3) V, half(C,C,3,3) U) -> (half(N,C,H,W) O) {
  float A(n,f,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,c, h + kh - 1, w + kw - 1)
    : half(0.0)) * V(f,c,kh,kw) where h in 0:H, w in 0:W
  half B(n,f,h,w) = half(relu(A(n,f,h,w)))
  O(n,f,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? B(n,c, h + kh - 1, w + kw - 1)
    : half(0.0)) * U(f,c,kh,kw) where h in 0:H, w in 0:W
})";

constexpr char kFloat8[] = "def f(float8_e4m3(K,M) A, float8_e5m2(K,N) B) -> (C) { C(m,n) +=! A(k,m) * B(k,n) }";

/// Rows are 128 values of 8 bits.
MappingOptions tile_of_float8() {
  MappingOptions options = warpgroup_tile(1, 64, 2);
  options.tile.back() = 128;
  return options;
}

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  std::vector<std::string> copies;  ///< tensors
  MappingOptions options = {};
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"odd", kNN, {{"M", 70}, {"N", 75}, {"K", 101}}, {"A", "B"}, warpgroup_tile(1, 64, 2)},
    {"odd_rows_of_one", kNN, {{"M", 70}, {"N", 64}, {"K", 101}}, {"A"}, warpgroup_tile(2, 64, 3)},
    {"rows_of_vectors", kNN, {{"M", 65}, {"N", 128}, {"K", 72}}, {"A"}, warpgroup_tile(1, 128, 2)},
    {"other_majors", kTN, {{"M", 67}, {"N", 70}, {"K", 97}}, {"A", "B"}, warpgroup_tile(1, 96, 2)},
    {"square", kSquare, {{"M", 70}, {"K", 75}}, {"A"}, warpgroup_tile(1, 64, 2)},
    {"shifted", kShifted, {{"M", 64}, {"L", 131}, {"N", 64}}, {"A"}, warpgroup_tile(1, 64, 2)},
    {"part", kPart, {{"P", 4}, {"M", 64}, {"K", 90}, {"N", 64}}, {"A"}, warpgroup_tile(1, 64, 2)},
    {"epilogue", kEpilogue, {{"M", 70}, {"N", 75}, {"K", 101}}, {"A", "B"}, warpgroup_tile(1, 64, 2)},
    {"gated", kGated, {{"M", 64}, {"N", 77}, {"K", 75}}, {"A", "B", "G"}, warpgroup_tile(1, 64, 2)},
    {"chain", kChain, {{"M", 64}, {"K", 75}, {"L", 77}, {"N", 64}}, {"A", "B"}},
    {"written_before", kWrittenBefore, {{"M", 64}, {"N", 64}, {"K", 77}}, {"X"}},
    {"batch", kBatch, {{"B", 3}, {"M", 65}, {"N", 66}, {"K", 67}}, {"A", "D"}, warpgroup_tile(1, 64, 2, {1})},
    {"padded", kPadded, {{"N", 2}, {"C", 64}, {"H", 5}, {"W", 9}, {"O", 16}}, {"I", "F"}},
    {"unpadded", kUnpadded, {{"N", 2}, {"C", 64}, {"H", 6}, {"W", 11}, {"O", 24}}, {"I", "F"}},
    {"float8", kFloat8, {{"M", 66}, {"N", 70}, {"K", 210}}, {"A", "B"}, tile_of_float8()},
    {"pair", kPair, {{"N", 1}, {"C", 64}, {"H", 4}, {"W", 9}}, {"I", "V", "U"}},
};

MappingOptions copying(MappingOptions options) {
  options.copy_operands = true;
  return options;
}

/// The tensors that are copied, sorted.
std::vector<std::string> copied(const ir::Program& prepared) {
  std::vector<std::string> result;
  for (const ir::Statement& s : prepared.statements) {
    if (gpu::is_operand_copy(s.id)) result.push_back(s.tensor.substr(0, s.tensor.find("_copy")));
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<std::string> copied(const char* text, const Sizes& sizes, const MappingOptions& options = {}) {
  const Result<gpu::Prepared> prepared = gpu::prepare(specialised_from(text, sizes), options, kDevice);
  return prepared ? copied(prepared->program) : std::vector<std::string>{prepared.error().to_string()};
}

class OperandOrder : public ::testing::TestWithParam<Case> {};

TEST_P(OperandOrder, OfCopiesGivesTheSameResults) {
  const Case& c = GetParam();
  const ir::Program program = specialised_from(c.text, c.sizes);
  const MappingOptions options = copying(c.options);
  std::vector<std::string> expected = c.copies;
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(copied(c.text, c.sizes, options), expected);
  const Result<gpu::Mapping> mapping = mapped(program, options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  if (!c.options.tile.empty()) {
    EXPECT_NE(tile::to_text(mapping->program).find("wgmma"), std::string::npos) << tile::to_text(mapping->program);
  }
  EXPECT_EQ(unproved(mapping->program), "");
  for (uint64_t seed = 1; seed <= 2; ++seed) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
}

INSTANTIATE_TEST_SUITE_P(Cases, OperandOrder, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Random products of 16-bit floats of which no row is a multiple of 16 bytes. Narrower ones are widened first.
TEST(OperandOrderChoice, RandomProductsAgree) {
  for (uint64_t seed = 1; seed <= 36; ++seed) {
    WarpgroupProduct product = random_warpgroup_product(seed);
    if (product.text.find("float8") != std::string::npos) continue;
    for (const char* size : {"M", "N", "K"}) product.sizes[size] = product.sizes[size] / 8 * 8 + 1 + seed % 7;
    product.options.copy_operands = true;
    product.options.store_boxes = std::nullopt;  // rows of the result are no multiples of 16 bytes now
    product.options.split_results = {};          // they were those of other sizes
    const std::string what = fmt::format("{}\n{}{}", seed, product.text, options::to_text(product.options));
    const ir::Program program = specialised_from(product.text, product.sizes);
    EXPECT_EQ(copied(product.text.c_str(), product.sizes, product.options), (std::vector<std::string>{"A", "B"}));
    const Result<gpu::Mapping> mapping = mapped(program, product.options, kDevice);
    ASSERT_TRUE(mapping) << what << mapping.error().to_string();
    EXPECT_NE(tile::to_text(mapping->program).find("wgmma"), std::string::npos) << what;
    EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "") << what;
    if (seed % 4 == 0) EXPECT_EQ(unproved(mapping->program), "") << what;
  }
}

/// Copies take time, so only what gains has them.
TEST(OperandOrderChoice, WeighsTheCopies) {
  const std::vector<std::string> none, both = {"A", "B"};
  const auto square = [](int64_t size) { return Sizes{{"M", size}, {"N", size}, {"K", size}}; };
  EXPECT_EQ(copied(kNN, square(4096)), none);
  EXPECT_EQ(copied(kNN, square(4095)), both);
  EXPECT_EQ(copied(kNN, square(255)), none);
  EXPECT_EQ(copied(kNN, square(4095), {.copy_operands = false}), none);
  EXPECT_EQ(copied(kNN, {{"M", 4096}, {"N", 4096}, {"K", 4095}}), std::vector<std::string>{"A"});
  EXPECT_EQ(copied("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", square(4095)), none);
  EXPECT_EQ(copied(kPair, {{"N", 8}, {"C", 256}, {"H", 14}, {"W", 14}}), (std::vector<std::string>{"I", "U", "V"}));
}

/// Of an operand that no guard lets in nothing is left to copy.
TEST(OperandOrderChoice, CopiesNothingThatNoGuardLetsIn) {
  const ir::Program program = specialised_from(R"(
def f(float16(M,K,P) A, float16(K,N) B) -> (C) { C(m,p,n) +=! (p >= 3 ? A(m,k,p) : float16(0)) * B(k,n) }
)",
                                               {{"M", 64}, {"K", 64}, {"P", 1}, {"N", 64}});
  EXPECT_TRUE(gpu::choose_orders(program, program.statements[0], {}, {.copy_operands = true}, kDevice).empty());
  EXPECT_EQ(difference(program, {}, 1, kDevice), "");
}

/// What the def makes is stored in the order that its reader wants, by the product that makes it.
TEST(OperandOrderChoice, StoresTemporariesInOrder) {
  const Result<gpu::Prepared> prepared =
      gpu::prepare(specialised_from(kPair, {{"N", 8}, {"C", 256}, {"H", 14}, {"W", 14}}), {}, kDevice);
  ASSERT_TRUE(prepared);
  EXPECT_EQ(prepared->options.copy_operands, true);
  for (const char* name : {"A", "B"}) {
    const std::vector<Halide::Expr>& extents = prepared->program.tensor(name).extents;
    EXPECT_TRUE(Halide::Internal::is_const(extents.back(), 256)) << ir::to_text(prepared->program);
  }
}

/// A temporary that tells where elements go stays as it is: left sides read it as it was.
TEST(OperandOrderChoice, StoresNothingThatTellsWhereElementsGo) {
  const char* text = R"(
def f(int8(M,K) A, int8(K,N) B, int8(N,P) W) -> (C, int32(256) H) {
  int8 T(m,n) +=! A(m,k) * B(k,n)
  C(m,p) +=! T(n,m) * W(n,p)
  H(T(m,n) + 128) +=! 1 + m where m in 0:M, n in 0:N
})";
  const auto may_be_stored = [](const std::string& text) {
    const ir::Program program = specialised_from(text, {{"M", 64}, {"K", 64}, {"N", 64}, {"P", 64}});
    std::vector<std::string> alongside;
    return gpu::may_be_stored(program, program.statements[2], "T", alongside);
  };
  EXPECT_FALSE(may_be_stored(text));
  std::string without = text;
  without.replace(without.find("T(m,n) + 128"), 12, "m");
  EXPECT_TRUE(may_be_stored(without));
}

/// A tensor that two products read is copied once. Each copy is a launch.
TEST(OperandOrderChoice, CopiesOnce) {
  const ir::Program program = specialised_from(kGated, {{"M", 64}, {"N", 77}, {"K", 75}});
  const Result<gpu::Mapping> mapping = mapped(program, copying(warpgroup_tile(1, 64, 2)), kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels.size(), 4U);
  EXPECT_EQ(mapping->program.workspace.size(), 3U);
}

TEST(OperandOrderChoice, RefusesToCopyForOthers) {
  const ir::Program program = specialised_from(kNN, {{"M", 128}, {"N", 128}, {"K", 128}});
  const auto message = [&](MappingOptions options, const gpu::Device& device) {
    const Result<gpu::Mapping> mapping = mapped(program, copying(std::move(options)), device);
    return mapping ? "" : mapping.error().diagnostics().at(0).message;
  };
  constexpr char kNone[] = "'copy_operands' is true, but no order of operands makes a product one for tensor cores";
  EXPECT_EQ(message({}, kDevice), kNone);
  EXPECT_EQ(message({}, gpu::device_of_architecture(80)), kNone);
  EXPECT_EQ(message({.strict = true}, kDevice), "'copy_operands' is true, but strict kernels copy no operands");
}

TEST(OperandOrderChoice, IsOpenToASearch) {
  const auto is_open = [](int64_t k) {
    const Result<std::vector<gpu::Tunable>> open =
        gpu::tunables(specialised_from(kNN, {{"M", 128}, {"N", 128}, {"K", k}}), {}, kDevice);
    return open &&
           std::any_of(open->begin(), open->end(), [](const gpu::Tunable& t) { return t.field == "copy_operands"; });
  };
  EXPECT_TRUE(is_open(127));
  EXPECT_FALSE(is_open(128));
}

/// The options that are printed ask for the same kernels.
TEST(OperandOrderChoice, IsAskedForByItsOptions) {
  const ir::Program program = specialised_from(kNN, {{"M", 2047}, {"N", 2047}, {"K", 2047}});
  const Result<gpu::Mapping> chosen = mapped(program, {}, kDevice);
  ASSERT_TRUE(chosen) << chosen.error().to_string();
  ASSERT_EQ(chosen->kernels.size(), 3U);
  MappingOptions options;
  for (size_t k = 0; k < chosen->kernels.size(); ++k) {
    const MappingOptions own = gpu::options_for(*chosen, k);
    options.copy_operands = own.copy_operands;
    options.kernel.insert(options.kernel.end(), own.kernel.begin(), own.kernel.end());
  }
  EXPECT_EQ(options.copy_operands, true);
  const Result<gpu::Mapping> again = mapped(program, options, kDevice);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(tile::to_text(again->program), tile::to_text(chosen->program));
}

}  // namespace
}  // namespace tc::testing
