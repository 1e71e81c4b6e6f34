#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/common/tile_mutants.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Products of warpgroups whose threads compute one operand from what boxes bring: on the simulator as on the oracle,
/// verified and certified.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

const gpu::Device kDevice = gpu::device_of_architecture(90);

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  options::MappingOptions options;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// Weights of 8 bits with a scale for each row and group of the reduction.
constexpr char kGroups[] = R"(
def f(half(M,K) X, int8(N,K) W, half(N,G) S) -> (half(M,N) Y) {
  half D(n,k) = W(n,k) * S(n, k / 128)
  Y(m,n) +=! X(m,k) * D(n,k)
})";
constexpr char kGroups64[] = R"(
def f(half(M,K) X, uint8(N,K) W, half(N,G) S, uint8(N,G) Z) -> (half(M,N) Y) {
  half D(n,k) = (half(W(n,k)) - half(Z(n, k / 64))) * S(n, k / 64)
  Y(m,n) +=! X(m,k) * D(n,k)
})";
constexpr char kGroups32[] = R"(
def f(half(M,K) X, int8(N,K) W, half(G,N) S) -> (half(M,N) Y) {
  half D(n,k) = W(n,k) * S(k / 32, n)
  Y(m,n) +=! X(m,k) * D(n,k)
})";
constexpr char kGroups8[] = R"(
def f(half(M,K) X, int8(N,K) W, half(N,G) S) -> (half(M,N) Y) {
  half D(n,k) = W(n,k) * S(n, k / 8)
  Y(m,n) +=! X(m,k) * D(n,k)
})";
constexpr char kByRow[] = R"(
def f(bfloat16(M,K) X, int8(N,K) W, bfloat16(N) S, bfloat16(N) b) -> (bfloat16(M,N) Y) {
  bfloat16 D(n,k) = bfloat16(W(n,k)) * S(n)
  Y(m,n) +=! X(m,k) * D(n,k)
  Y(m,n) = Y(m,n) + b(n)
})";
constexpr char kByValue[] = R"(
def f(half(M,K) X, half(N,K) W, half(K) S) -> (half(M,N) Y) {
  half D(n,k) = W(n,k) * S(k)
  Y(m,n) +=! X(m,k) * D(n,k)
})";
constexpr char kAcross[] = R"(
def f(half(M,K) X, int8(K,N) W, half(N) S) -> (half(M,N) Y) {
  half D(k,n) = half(W(k,n)) * S(n)
  Y(m,n) +=! X(m,k) * D(k,n)
})";
constexpr char kSquares[] = R"(
def f(half(M,K) A, half(K,N) B) -> (half(M,N) C) {
  half E(m,k) = A(m,k) * A(m,k)
  C(m,n) +=! E(m,k) * B(k,n)
})";
constexpr char kInverse[] = R"(
def f(half(M,K) A, half(K,N) B) -> (half(M,N) C) {
  half E(m,k) = half(1.0) / A(m,k)
  C(m,n) +=! E(m,k) * B(k,n)
})";
constexpr char kCast[] = R"(
def f(half(M,K) X, float(N,K) W) -> (float(M,N) Y) {
  half D(n,k) = half(W(n,k))
  Y(m,n) +=! float(X(m,k)) * float(D(n,k))
})";
constexpr char kBatch[] = R"(
def f(half(B,M,K) X, int8(B,N,K) W, half(B,N) S) -> (half(B,M,N) Y) {
  half D(b,n,k) = half(W(b,n,k)) * S(b,n)
  Y(b,m,n) +=! X(b,m,k) * D(b,n,k)
})";
constexpr char kTurned[] = R"(
def f(half(M,K) X, int8(N,K) W) -> (half(N,M) Y) {
  half D(n,k) = half(W(n,k)) + half(1.0)
  Y(n,m) +=! X(m,k) * D(n,k)
})";
constexpr char kReduced[] = R"(
def f(half(M,K) X, int8(N,K) W) -> (half(M,N) Y, half(N) Q, half(M) R) {
  half D(n,k) = half(W(n,k)) + half(1.0)
  Y(m,n) +=! X(m,k) * D(n,k)
  Q(n) max=! Y(m,n)
  R(m) max=! Y(m,n)
})";

constexpr char kPooled[] = R"(
def f(half(M,K) X, int8(N,K) W) -> (half(M,N) Y, half(M,J) P) {
  half D(n,k) = half(W(n,k)) + half(1.0)
  Y(m,n) +=! X(m,k) * D(n,k)
  P(m,j) = fmax(Y(m,2 * j), Y(m,2 * j + 1)) where j in 0:J
})";

/// Tiles of (columns, rows) of the result, of so many warpgroups, in steps of so many values.
options::MappingOptions tile(int64_t warpgroups, int64_t columns, int64_t step, int64_t stages,
                             std::vector<int64_t> before = {}) {
  options::MappingOptions options;
  options.tile = before;
  options.register_tile.assign(before.size(), 1);
  options.tile.insert(options.tile.end(), {columns, 64 * warpgroups, step});
  options.register_tile.insert(options.register_tile.end(), {columns / 4, 2});
  options.map_to_threads = {32 * warpgroups, 4, 1};
  options.copy_stages = stages;
  options.tensor_cores = true;
  return options;
}

/// The same where the computed operand's rows are rows of the result.
options::MappingOptions upright(int64_t warpgroups, int64_t columns, int64_t step, int64_t stages) {
  options::MappingOptions options;
  options.tile = {64 * warpgroups, columns, step};
  options.register_tile = {2, columns / 4};
  options.map_to_threads = {4, 32 * warpgroups, 1};
  options.copy_stages = stages;
  options.tensor_cores = true;
  return options;
}

options::MappingOptions in_clusters(options::MappingOptions options, std::vector<int64_t> cluster) {
  options.cluster = std::move(cluster);
  return options;
}

const Case kCases[] = {
    {"groups of 128", kGroups, {{"M", 16}, {"N", 64}, {"K", 384}, {"G", 3}}, tile(1, 16, 128, 2)},
    {"groups of 128, two warpgroups", kGroups, {{"M", 64}, {"N", 128}, {"K", 256}, {"G", 2}}, tile(2, 64, 128, 2)},
    {"groups of 128, partial", kGroups, {{"M", 13}, {"N", 72}, {"K", 272}, {"G", 3}}, tile(1, 16, 128, 3)},
    {"groups of 128, odd rows", kGroups, {{"M", 9}, {"N", 67}, {"K", 144}, {"G", 2}}, tile(1, 16, 128, 2)},
    {"groups of 128, less than a step", kGroups, {{"M", 8}, {"N", 64}, {"K", 80}, {"G", 1}}, tile(1, 8, 128, 2)},
    {"groups of 128, one slice", kGroups, {{"M", 8}, {"N", 64}, {"K", 16}, {"G", 1}}, tile(1, 8, 128, 2)},
    {"groups of 64, zero points", kGroups64, {{"M", 24}, {"N", 64}, {"K", 256}, {"G", 4}}, tile(1, 24, 128, 2)},
    {"groups of 32", kGroups32, {{"M", 16}, {"N", 128}, {"K", 288}, {"G", 9}}, tile(1, 16, 128, 2)},
    {"groups of 8", kGroups8, {{"M", 16}, {"N", 64}, {"K", 128}, {"G", 16}}, tile(1, 16, 128, 2)},
    {"bfloat16, by row", kByRow, {{"M", 40}, {"N", 70}, {"K", 256}}, tile(2, 40, 128, 2)},
    {"by value of the reduction", kByValue, {{"M", 32}, {"N", 64}, {"K", 200}}, tile(1, 32, 64, 3)},
    {"across the reduction", kAcross, {{"M", 16}, {"N", 80}, {"K", 256}}, tile(1, 16, 128, 2)},
    {"squares", kSquares, {{"M", 128}, {"N", 64}, {"K", 192}}, upright(2, 64, 64, 2)},
    {"squares, partial", kSquares, {{"M", 70}, {"N", 40}, {"K", 136}}, upright(1, 40, 64, 3)},
    {"float32 as half", kCast, {{"M", 16}, {"N", 64}, {"K", 192}}, tile(1, 16, 64, 2)},
    {"batch", kBatch, {{"B", 2}, {"M", 16}, {"N", 64}, {"K", 256}}, tile(1, 16, 128, 2, {1})},
    {"turned result", kTurned, {{"M", 64}, {"N", 64}, {"K", 128}}, upright(1, 64, 128, 2)},
    {"pooled", kPooled, {{"M", 16}, {"N", 64}, {"K", 128}, {"J", 32}}, tile(1, 16, 128, 2)},
    {"reduced", kReduced, {{"M", 16}, {"N", 64}, {"K", 128}}, tile(1, 16, 128, 2)},
    {"two rows", kGroups, {{"M", 16}, {"N", 128}, {"K", 256}, {"G", 2}}, in_clusters(tile(1, 16, 128, 2), {1, 2})},
    {"two columns", kGroups, {{"M", 64}, {"N", 64}, {"K", 256}, {"G", 2}}, in_clusters(tile(1, 32, 128, 2), {2, 1})},
    {"steps dealt out",
     kGroups,
     {{"M", 16}, {"N", 64}, {"K", 640}, {"G", 5}},
     in_clusters(tile(1, 16, 128, 2), {1, 1, 2})},
};

class ComputedRows : public ::testing::TestWithParam<Case> {};

int count_products(const tile::Program& program, bool held) {
  int result = 0;
  for (const tile::Kernel& kernel : program.kernels) {
    tile::for_each_node(kernel.body, [&](const tile::Node& node) {
      const tile::WarpgroupMatMul* product = tile::warpgroup_product_of(node);
      result += product && product->held.has_value() == held ? 1 : 0;
    });
  }
  return result;
}

TEST_P(ComputedRows, AgreeWithTheOracleAndAreProved) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, GetParam().options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->program.kernels.size(), 1U) << tile::to_text(mapping->program);
  EXPECT_GE(count_products(mapping->program, true), 1);
  EXPECT_EQ(count_products(mapping->program, false), 0);
  EXPECT_EQ(unproved(mapping->program), "");
  for (uint64_t seed : {1, 2}) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
}

TEST_P(ComputedRows, OptionsAskForTheSameKernel) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program, GetParam().options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const Result<gpu::Mapping> again = mapped(program, mapping->kernels[0].chosen, kDevice);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(tile::to_text(again->program), tile::to_text(mapping->program));
}

/// Zeros behind the reduction do not become what is computed of them: 1 / 0 times 0 is no number.
TEST(ComputedRows, AreZeroBehindTheReduction) {
  const ir::Program program = specialised_from(kInverse, {{"M", 64}, {"N", 64}, {"K", 88}});
  const Result<gpu::Mapping> mapping = mapped(program, upright(1, 64, 64, 2), kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_GE(count_products(mapping->program, true), 1);
  interp::Environment data = data_for(program, 1);
  std::fill(data.at("A").floats.begin(), data.at("A").floats.end(), 2);
  std::fill(data.at("B").floats.begin(), data.at("B").floats.end(), 1);
  const Result<interp::Environment> result = simulated(program, *mapping, data);
  ASSERT_TRUE(result) << result.error().to_string();
  for (const double value : result->at("C").floats) ASSERT_EQ(value, 44);
}

/// Without any one of its waits a kernel is not proved, or computes something else.
TEST(ComputedRows, NeedTheirWaits) {
  const ir::Program program = specialised_from(kGroups, {{"M", 8}, {"N", 64}, {"K", 384}, {"G", 3}});
  const Result<gpu::Mapping> mapping = mapped(program, tile(1, 8, 128, 2), kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const interp::Environment data = data_for(program, 1);
  const Result<interp::Environment> right = simulated(program, *mapping, data);
  ASSERT_TRUE(right) << right.error().to_string();
  int waits = 0;
  for (const tile::Mutant& mutant : tile::mutants(mapping->program)) {
    waits += mutant.what.find("wait") != std::string::npos ? 1 : 0;
    gpu::Mapping changed = *mapping;
    changed.program = mutant.program;
    bool caught = !unproved(changed.program).empty();
    if (!caught) {
      const Result<interp::Environment> result = simulated(program, changed, data);
      caught = !result || result->at("Y").floats != right->at("Y").floats;
    }
    EXPECT_TRUE(caught) << "survives: " << mutant.what;
  }
  EXPECT_GE(waits, 3);
}

/// Few rows and many: one launch, in which threads hold what they compute.
TEST(ComputedRows, AreTakenByWeights) {
  for (const int64_t rows : {16, 64, 256, 1024}) {
    const ir::Program program = specialised_from(kGroups, {{"M", rows}, {"N", 8192}, {"K", 8192}, {"G", 64}});
    const Result<gpu::Mapping> mapping = mapped(program, {}, kDevice);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(mapping->program.kernels.size(), 1U) << rows;
    EXPECT_GE(count_products(mapping->program, true), 1) << rows;
    EXPECT_EQ(unproved(mapping->program), "") << rows;
  }
}

/// How many products hold an operand, and how many do not, where the options ask for tensor cores.
std::pair<int, int> products_of(const char* text, const Sizes& sizes) {
  const Result<gpu::Mapping> mapping =
      mapped(specialised_from(text, sizes), {.tensor_cores = true, .copy_operands = false}, kDevice);
  EXPECT_TRUE(mapping) << mapping.error().to_string();
  return {count_products(mapping->program, true), count_products(mapping->program, false)};
}

/// What boxes do not bring, or of which there are two, is computed otherwise.
TEST(ComputedRows, NeedOneSource) {
  const Sizes sizes = {{"M", 256}, {"N", 1024}, {"K", 1024}};
  EXPECT_GT(products_of(R"(
def f(half(M,K) X, int8(N,K) W) -> (half(M,N) Y) {
  half D(n,k) = half(W(n,k)) + half(1.0)
  Y(m,n) +=! X(m,k) * D(n,k)
})",
                        sizes)
                .first,
            0);
  EXPECT_EQ(products_of(R"(
def f(half(M,K) X, int8(N,K) W, half(N,K) V) -> (half(M,N) Y) {
  half D(n,k) = half(W(n,k)) * V(n,k)
  Y(m,n) +=! X(m,k) * D(n,k)
})",
                        sizes)
                .first,
            0);
  EXPECT_EQ(products_of(R"(
def f(half(M,K) X, int8(N,L) W) -> (half(M,N) Y) {
  half D(n,k) = half(W(n,k)) + half(1.0) where n in 0:N, k in 0:K
  Y(m,n) +=! X(m,k) * D(n,k)
})",
                        {{"M", 256}, {"N", 1024}, {"K", 1024}, {"L", 1025}})
                .first,
            0);
}

INSTANTIATE_TEST_SUITE_P(Cases, ComputedRows, ::testing::ValuesIn(kCases));

}  // namespace
}  // namespace tc::testing
