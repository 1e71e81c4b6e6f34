#include <gtest/gtest.h>

#include <algorithm>

#include "tc/gpu/strategy/coverage.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"
#include "tests/random/warpgroup_products.h"

/// Results of tensor cores that a warp stores row after row.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  options::MappingOptions options;
  int staged = 1;  ///< results
  bool by_warpgroups = true;
  bool at_any_address = false;  ///< all tensors
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr char kNT[] = "def f(float16(M,K) A, float16(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }";
constexpr char kEpilogue[] = R"(
def f(bfloat16(M,K) A, bfloat16(N,K) B, bfloat16(N) b, bfloat16(M,N) R) -> (bfloat16(M,N) C) {
  C(m,n) +=! A(m,k) * B(n,k)
  C(m,n) = fmax(C(m,n) + b(n), 0) + R(m,n)
})";
constexpr char kTwoResults[] = R"(
def f(float16(M,K) A, float16(N,K) B, float16(N) b) -> (float16(M,N) C, float16(M,N) D, float(M,N) E) {
  C(m,n) +=! A(m,k) * B(n,k)
  D(m,n) = fmax(C(m,n) + b(n), 0)
  E(m,n) = float(C(m,n)) + 1
})";
constexpr char kWide[] =
    "def f(float16(M,K) A, float16(N,K) B) -> (float(M,N) C) { C(m,n) +=! float(A(m,k)) * float(B(n,k)) }";
constexpr char kNarrow[] =
    "def f(float16(M,K) A, float16(N,K) B) -> (float8_e4m3(M,N) C) { C(m,n) +=! A(m,k) * B(n,k) }";
constexpr char kInPlace[] = "def f(float16(M,K) A, float16(N,K) B) -> (float16(M,N) C) { C(m,n) += A(m,k) * B(n,k) }";
constexpr char kBatch[] =
    "def f(float16(B,M,K) A, float16(B,N,K) D) -> (float16(B,M,N) C) { C(b,m,n) +=! A(b,m,k) * D(b,n,k) }";
constexpr char kRows[] =
    "def f(float16(P,Q,K) A, float16(N,K) B) -> (float16(Q,P,N) C) { C(q,p,n) +=! A(p,q,k) * B(n,k) }";

options::MappingOptions by_atoms(std::vector<int64_t> tile = {64, 64, 32}, std::vector<int64_t> registers = {4, 8}) {
  return {.tile = std::move(tile),
          .map_to_threads = {8, 16, 1},
          .register_tile = std::move(registers),
          .tensor_cores = true,
          .copy_operands = false};
}

const Case kCases[] = {
    {"warpgroups", kNT, {{"M", 130}, {"N", 75}, {"K", 128}}, warpgroup_tile(2, 64, 2)},
    {"one column", kNT, {{"M", 70}, {"N", 65}, {"K", 64}}, warpgroup_tile(1, 64, 2)},
    {"slabs", kNT, {{"M", 64}, {"N", 301}, {"K", 72}}, warpgroup_tile(1, 256, 2)},
    {"narrow", kNT, {{"M", 64}, {"N", 41}, {"K", 64}}, warpgroup_tile(1, 24, 2)},
    {"words of two", kNT, {{"M", 70}, {"N", 134}, {"K", 72}}, warpgroup_tile(2, 96, 2)},
    {"words of four", kNT, {{"M", 70}, {"N", 308}, {"K", 72}}, warpgroup_tile(1, 256, 2)},
    {"words of four, slabs", kNT, {{"M", 130}, {"N", 76}, {"K", 64}}, warpgroup_tile(1, 64, 2)},
    {"words of two, epilogue", kEpilogue, {{"M", 130}, {"N", 74}, {"K", 128}}, warpgroup_tile(1, 96, 2)},
    {"words, two results", kTwoResults, {{"M", 70}, {"N", 132}, {"K", 128}}, warpgroup_tile(1, 64, 2), 2},
    {"words, batch", kBatch, {{"B", 3}, {"M", 64}, {"N", 68}, {"K", 72}}, warpgroup_tile(1, 64, 2, {1})},
    {"four bytes", kWide, {{"M", 70}, {"N", 131}, {"K", 128}}, warpgroup_tile(1, 64, 2)},
    {"four bytes, words of two", kWide, {{"M", 70}, {"N", 130}, {"K", 64}}, warpgroup_tile(2, 96, 2)},
    {"one byte", kNarrow, {{"M", 70}, {"N", 131}, {"K", 128}}, warpgroup_tile(1, 64, 2)},
    {"one byte, words of four", kNarrow, {{"M", 70}, {"N", 132}, {"K", 64}}, warpgroup_tile(1, 96, 2)},
    {"epilogue", kEpilogue, {{"M", 130}, {"N", 75}, {"K", 128}}, warpgroup_tile(1, 96, 2)},
    {"two results", kTwoResults, {{"M", 70}, {"N", 131}, {"K", 128}}, warpgroup_tile(1, 64, 2), 3},
    {"in place", kInPlace, {{"M", 70}, {"N", 131}, {"K", 128}}, warpgroup_tile(1, 64, 2)},
    {"batch", kBatch, {{"B", 3}, {"M", 64}, {"N", 67}, {"K", 72}}, warpgroup_tile(1, 64, 2, {1})},
    {"atoms", kNT, {{"M", 150}, {"N", 77}, {"K", 62}}, by_atoms(), 1, false},
    {"atoms, large", kNT, {{"M", 474}, {"N", 369}, {"K", 62}}, by_atoms({128, 64, 32}, {8, 8}), 1, false},
    {"atoms, at any address", kNT, {{"M", 150}, {"N", 80}, {"K", 62}}, by_atoms(), 1, false, true},
    {"atoms, words of two", kNT, {{"M", 150}, {"N", 78}, {"K", 62}}, by_atoms(), 1, false},
    {"atoms, words of four", kNT, {{"M", 150}, {"N", 76}, {"K", 62}}, by_atoms(), 1, false},
    {"atoms, vectors", kNT, {{"M", 150}, {"N", 80}, {"K", 62}}, by_atoms(), 1, false},
    {"atoms, four bytes", kWide, {{"M", 150}, {"N", 77}, {"K", 62}}, by_atoms(), 1, false},
    {"atoms, one byte", kNarrow, {{"M", 150}, {"N", 77}, {"K", 62}}, by_atoms(), 1, false},
    {"atoms, vectors of 16", kNarrow, {{"M", 150}, {"N", 80}, {"K", 62}}, by_atoms(), 1, false},
    {"atoms, eight columns of one byte",
     kNarrow,
     {{"M", 150}, {"N", 80}, {"K", 62}},
     {.tile = {64, 8, 32},
      .map_to_threads = {4, 16, 1},
      .register_tile = {4, 2},
      .tensor_cores = true,
      .copy_operands = false},
     1,
     false},
    {"atoms, epilogue", kEpilogue, {{"M", 140}, {"N", 201}, {"K", 40}}, by_atoms(), 1, false},
    {"atoms, two results", kTwoResults, {{"M", 70}, {"N", 131}, {"K", 48}}, by_atoms(), 3, false},
    {"atoms, in place", kInPlace, {{"M", 70}, {"N", 131}, {"K", 48}}, by_atoms(), 1, false},
    {"atoms, batch",
     kBatch,
     {{"B", 3}, {"M", 64}, {"N", 67}, {"K", 48}},
     by_atoms({1, 64, 64, 32}, {1, 4, 8}),
     1,
     false},
    {"atoms, rows of two axes",
     kRows,
     {{"P", 6}, {"Q", 30}, {"N", 67}, {"K", 48}},
     by_atoms({8, 8, 64, 32}, {2, 2, 8}),
     1,
     false},
};

int count(const tile::Program& program, const std::function<bool(const tile::Node&)>& is_it) {
  int result = 0;
  for (const tile::Kernel& kernel : program.kernels) {
    tile::for_each_node(kernel.body, [&](const tile::Node& node) { result += is_it(node) ? 1 : 0; });
  }
  return result;
}

/// Whether a node is the buffer of rows that a warp stores.
bool is_staged(const tile::Node& node) {
  const tile::Tensor* tensor = tile::allocated_tensor(node);
  return tensor && tensor->memory == tile::Memory::kShared && tensor->name.ends_with("_rows");
}

class RowStores : public ::testing::TestWithParam<Case> {};

TEST_P(RowStores, AgreeWithTheOracleAndAreProved) {
  const gpu::Device device = gpu::device_of_architecture(90);
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, GetParam().options, device, GetParam().at_any_address);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->program.kernels.size(), 1U);
  const auto is_product = [](const tile::Node& node) { return tile::warpgroup_product_of(node) != nullptr; };
  EXPECT_EQ(count(mapping->program, is_product) > 0, GetParam().by_warpgroups);
  EXPECT_EQ(count(mapping->program, is_staged), GetParam().staged) << gpu::report(*mapping);
  EXPECT_EQ(unproved(mapping->program), "");
  for (const tile::Coverage& coverage : gpu::cover(*mapping)) {
    EXPECT_EQ(coverage.faults, std::vector<std::string>{});
    for (const tile::Coverage::Item& item : coverage.items) EXPECT_TRUE(item.complete) << item.name;
  }
  for (uint64_t seed : {1, 2}) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
}

/// A product that makes a part of each row leaves what another kernel makes of it alone: words of several columns end
/// where its part does.
TEST(RowStoresOfParts, EndWhereThePartDoes) {
  const gpu::Device device = gpu::device_of_architecture(90);
  for (const auto& [part, rest, words] : {std::tuple("0:100", "100:N", 0), std::tuple("0:101", "101:N", 0),
                                          std::tuple("8:N", "0:8", 1), std::tuple("0:104", "104:N", 1)}) {
    const std::string text = fmt::format(R"(
def f(float16(M,K) A, float16(K,N) B, float16(M,N) Z) -> (float16(M,N) C) {{
  C(m,n) = Z(m,n) where n in {}
  C(m,n) +=! A(m,k) * B(k,n) where n in {}
}})",
                                         rest, part);
    SCOPED_TRACE(text);
    const ir::Program program = specialised_from(text, {{"M", 256}, {"N", 108}, {"K", 64}});
    const options::MappingOptions options =
        *options::mapping_options_from_text(R"(kernel { writes: "C_sum" tensor_cores: true tile: [64, 64, 64] })");
    const Result<gpu::Mapping> mapping = mapped(program, options, device);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(count(mapping->program, is_staged), words);
    for (uint64_t seed : {1, 2}) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, RowStores, ::testing::ValuesIn(kCases));

/// Neighbours along the last index are in different rows: no word or box has several of them.
TEST(RowStoresOfDiagonals, AreElementByElement) {
  const gpu::Device device = gpu::device_of_architecture(90);
  for (const char* type : {"float", "half"}) {
    for (const char* at : {"C(m + n, n)", "C(m + n, m, n)", "C(m, m + n)"}) {
      for (const char* options :
           {"", "tile: [8, 8, 40] register_tile: [2, 2] map_to_threads: [4, 4, 10] copy_stages: 1 split_reduction: 1",
            "tile: [64, 64, 32] tensor_cores: true", "tile: [64, 32, 64] tensor_cores: true map_to_threads: [4, 32]"}) {
        const std::string text = fmt::format(R"(
def f({0}(M,K) A, {0}(K,N) B) -> ({0}({1}) C) {{
  float S(m,n) +=! A(m,k) * B(k,n)
  {2} = {0}(S(m,n)) where m in 0:M, n in 0:N
}})",
                                             type,
                                             at == std::string("C(m + n, n)")   ? "M + N, N"
                                             : at == std::string("C(m, m + n)") ? "M, M + N"
                                                                                : "M + N, M, N",
                                             at);
        const ir::Program program = specialised_from(text, {{"M", 64}, {"N", 40}, {"K", 64}});
        const Result<gpu::Mapping> mapping = mapped(program, *options::mapping_options_from_text(options), device);
        const bool of_floats = type == std::string("float"),
                   asks = std::string(options).find("cores") != std::string::npos;
        ASSERT_EQ(mapping.has_value(), !(of_floats && asks)) << text << options;
        if (!mapping) continue;
        EXPECT_EQ(unproved(mapping->program), "") << text << options;
        for (const tile::Coverage& coverage : gpu::cover(*mapping)) {
          EXPECT_EQ(coverage.faults, std::vector<std::string>{}) << text << options;
        }
        EXPECT_EQ(difference_of_mapping(program, *mapping, 1), "") << text << options;
      }
    }
  }
}

}  // namespace
}  // namespace tc::testing
