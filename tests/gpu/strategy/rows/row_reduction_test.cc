#include <gtest/gtest.h>

#include <set>

#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Rows that several threads share: oracle = simulator, proved bounds and order.
namespace tc::testing {
namespace {

constexpr char kSoftmax[] = R"(
def softmax(float(N,D) I) -> (O) {
  m(n) max=! I(n,d)
  O(n,d) = exp(I(n,d) - m(n))
  s(n) +=! O(n,d)
  O(n,d) = O(n,d) / s(n)
})";

TEST(Rows, OfEveryLengthAgreeWithTheOracle) {
  for (const int64_t n : {1, 5, 700}) {
    for (const int64_t d : {1, 2, 31, 33, 128, 255, 260, 1000, 1024}) {
      if (n * d > 100'000) continue;
      SCOPED_TRACE(fmt::format("N={} D={}", n, d));
      EXPECT_EQ(faults_of(specialised_from(kSoftmax, {{"N", n}, {"D", d}})), "");
    }
  }
}

TEST(Rows, TooLongForRegistersAreReadAgain) {
  EXPECT_EQ(faults_of(specialised_from(kSoftmax, {{"N", 2}, {"D", 100'004}})), "");
  EXPECT_EQ(faults_of(specialised_from(kSoftmax, {{"N", 140}, {"D", 40'001}})), "");
}

TEST(Rows, ReduceByEveryOperatorInEveryType) {
  for (const char* op : {"+=!", "*=!", "min=!", "max=!"}) {
    for (const char* type : {"float", "float16", "double", "int8", "int32", "int64", "uint32"}) {
      const std::string text = fmt::format("def f({}(M,K) A) -> (r) {{ r(m) {} A(m,k) }}", type, op);
      SCOPED_TRACE(text);
      EXPECT_EQ(faults_of(specialised_from(text, {{"M", 3}, {"K", 300}})), "");
    }
  }
}

TEST(Rows, OfSeveralDimensionsInsideAndOut) {
  const std::string text = R"(
    def f(float eps, float(N,C,H) I, float(C) gamma) -> (O, mean, var) {
      mean(c) +=! I(nn,c,hh)
      mean(c) = mean(c) / (N * H)
      var(c) +=! (I(nn,c,hh) - mean(c)) * (I(nn,c,hh) - mean(c))
      O(n,c,h) = (I(n,c,h) - mean(c)) * rsqrt(var(c) + eps) * gamma(c)
    })";
  for (const auto& [n, c, h] : {std::array<int64_t, 3>{1, 1, 1}, {2, 5, 12}, {3, 300, 7}, {9, 3, 256}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", n, c, h));
    EXPECT_EQ(faults_of(specialised_from(text, {{"N", n}, {"C", c}, {"H", h}})), "");
  }
}

TEST(Rows, AreNotReadWhereAConditionForbidsIt) {
  const std::string text = R"(
    def f(float(N,M) I) -> (s, m) {
      m(n) max=! d < M ? I(n,d) : 0.0 where d in 0:2*M
      s(n) +=! d < M ? I(n,d) : 0.0 where d in 0:2*M
    })";
  EXPECT_EQ(faults_of(specialised_from(text, {{"N", 30}, {"M", 100}})), "");
}

TEST(Rows, OfAPartOfATensorStayInRegisters) {
  const std::string text = R"(
    def f(float(N,M) I) -> (s, m) {
      m(n,p) max=! I(n, 256 * p + d) where d in 0:256, p in 0:4
      s(n,p) +=! I(n, 256 * p + d) - m(n,p) where d in 0:256, p in 0:4
    })";
  const ir::Program program = specialised_from(text, {{"N", 30}, {"M", 1024}});
  EXPECT_EQ(faults_of(program), "");
  const Result<gpu::Mapping> mapping = mapped(program, {});
  ASSERT_TRUE(mapping);
  tile::Report report;
  ASSERT_TRUE(simulated(program, *mapping, data_for(program, 1), 1, &report));
  EXPECT_EQ(report.counters.at(0).global_bytes_read, 30 * 1024 * 4);
}

/// Sums and products of float16 within a sum of float32 are those of two neighbours at once, each in a loop of two.
/// What a choice reads stays where it is.
TEST(Rows, ComputeNeighbouringHalvesInPairs) {
  struct Value {
    const char* text;
    int pairs;  // loops, of a vector
  };
  for (const Value& value :
       {Value{"float(x(k)) * float(float16(W(n,k)) * S(n, k / 128))", 1},
        Value{"float(x(k) + R(n,k)) + float((x(k) - R(n,k)) * x(k))", 2},
        Value{"float(x(k) + R(n,k)) * float(x(k) + R(n,k))", 1},
        Value{"float(k % 3 == 0 ? x(k) * R(n,k) : float16(0.0))", 0}, Value{"float(x(k)) * float(W(n,k))", 0}}) {
    SCOPED_TRACE(value.text);
    const std::string text = fmt::format(
        "def f(float16(K) x, int8(N,K) W, float16(N,G) S, float16(N,K) R) -> (float(N) y) {{ y(n) +=! {} }}",
        value.text);
    const ir::Program program = specialised_from(text, {{"N", 3}, {"K", 4096}, {"G", 32}});
    EXPECT_EQ(faults_of(program), "");
    const Result<gpu::Mapping> mapping = mapped(program, {});
    ASSERT_TRUE(mapping);
    std::set<std::string> halves;
    tile::for_each_node(mapping->program.kernels[0].body, [&](const tile::Node& node) {
      const auto* loop = std::get_if<tile::For>(&node.node);
      const auto* store = loop ? std::get_if<tile::Store>(&loop->body->node) : nullptr;
      if (store && store->value.type() == Halide::Float(16) && tile::constant_trips(*loop) == 2)
        halves.insert(store->tensor);
    });
    EXPECT_EQ(halves.size(), static_cast<size_t>(value.pairs));
  }
}

/// A number for each group of a row's elements does not keep the others from being read by vectors.
TEST(Rows, WithANumberOfEachGroupAreReadByVectors) {
  const std::string text = R"(
    def f(float16(K) x, int8(N,K) W, float16(N,G) S) -> (y) {
      y(n) +=! float(x(k)) * float(W(n,k)) * float(S(n, (k + SHIFT) / GROUP))
    })";
  // Groups, and what they are shifted by; how many elements of W are read at once. Vectors of x have 8 elements.
  for (const auto& [group, shift, elements] : {std::array<int64_t, 3>{128, 0, 8},
                                               {16, 0, 8},
                                               {4, 0, 4},
                                               {12, 0, 4},
                                               {128, 8, 8},
                                               {128, 2, 2},
                                               {128, 3, 1},
                                               {7, 0, 1}}) {
    SCOPED_TRACE(fmt::format("groups of {}, shifted by {}", group, shift));
    std::string own = text;
    own.replace(own.find("SHIFT"), 5, std::to_string(shift)).replace(own.find("GROUP"), 5, std::to_string(group));
    const ir::Program program = specialised_from(own, {{"N", 3}, {"K", 4096}, {"G", (4095 + shift) / group + 1}});
    EXPECT_EQ(faults_of(program), "");
    const Result<gpu::Mapping> mapping = mapped(program, {});
    ASSERT_TRUE(mapping);
    int most = 1;
    tile::for_each_node(mapping->program.kernels[0].body, [&](const tile::Node& node) {
      const auto* move = std::get_if<tile::Move>(&node.node);
      if (move != nullptr && move->source == "W") most = std::max(most, move->elements);
    });
    EXPECT_EQ(most, elements);
  }
}

TEST(Rows, WriteWhatTheyHaveReadAfterAllHaveReadIt) {
  const std::string text = "def f(float(M,K) A) -> (r) { r(m) += A(m,k) * 2  r(m) = r(m) + 1 }";
  EXPECT_EQ(faults_of(specialised_from(text, {{"M", 7}, {"K", 100}})), "");
}

/// A device on which few results are many.
gpu::Device small_device() {
  gpu::Device device;
  device.processors = 3;
  return device;
}

TEST(Parts, OfReductionsWithFewResultsAddUp) {
  for (const char* text :
       {"def f(float(N) A) -> (r) { r +=! A(n) }", "def f(int32(N) A) -> (r) { r max= A(n) }",
        "def f(float(3,N) A) -> (r) { r(i) min=! A(i,n) }", "def f(int32(N,5) A) -> (r) { r(i) +=! A(n,i) * n }"}) {
    for (const int64_t n : {5, 8192, 16384, 20000, 20011}) {
      SCOPED_TRACE(fmt::format("{} N={}", text, n));
      EXPECT_EQ(faults_of(specialised_from(text, {{"N", n}}), small_device()), "");
    }
  }
}

TEST(Parts, AreLaunchedBeforeWhatNeedsAllOfThem) {
  const std::string text = R"(
    def moments(float(N,K) I) -> (mean, var) {
      mean(n) +=! I(n,k)
      mean(n) = mean(n) / K
      var(n) +=! I(n,k) * I(n,k)
      var(n) = var(n) / K - mean(n) * mean(n)
    })";
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, {{"N", 64}, {"K", 1'000'000}}));
  ASSERT_TRUE(mapping);
  ASSERT_EQ(mapping->kernels.size(), 2U);
  EXPECT_EQ(mapping->kernels[0].grid, (std::array<int64_t, 3>{8, 64, 1}));
  EXPECT_EQ(mapping->edges.size(), 2U);
}

TEST(Parts, OfColumnsAreNotMixedWithWhatIsElementwise) {
  const std::string text = R"(
    def softmax(float(N,D) I) -> (O) {
      m(d) max=! I(n,d)
      O(n,d) = exp(I(n,d) - m(d))
      s(d) +=! O(n,d)
      O(n,d) = O(n,d) / s(d)
    })";
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, {{"N", 32768}, {"D", 4096}}));
  ASSERT_TRUE(mapping);
  for (const gpu::Kernel& kernel : mapping->kernels) {
    EXPECT_GE(kernel.grid[0] * kernel.grid[1] * kernel.block[0], 4096 / 4) << gpu::report(*mapping);
  }
  EXPECT_EQ(mapping->kernels.size(), 6U);
  EXPECT_EQ(faults_of(specialised_from(text, {{"N", 700}, {"D", 400}}), small_device()), "");
}

TEST(Parts, OfASingleRowAreAddedByOneBlock) {
  const Result<gpu::Mapping> mapping =
      mapped(specialised_from("def f(float(N,K) A) -> (r) { r(n) +=! A(n,k) }", {{"N", 1}, {"K", 1'000'000}}));
  ASSERT_TRUE(mapping);
  ASSERT_EQ(mapping->kernels.size(), 2U);
  EXPECT_GE(mapping->kernels[0].grid[0], 100);
  EXPECT_GE(mapping->kernels[1].block[0], 32);
}

TEST(Parts, OfColumnsAreBesideEachOther) {
  const Result<gpu::Mapping> mapping =
      mapped(specialised_from("def f(float(N,M) I) -> (r) { r(m) max=! I(n,m) }", {{"N", 100'000}, {"M", 1000}}),
             options::MappingOptions{.atomic_reduction = false});
  ASSERT_TRUE(mapping);
  ASSERT_EQ(mapping->kernels.size(), 2U);
  const auto& first = mapping->kernels[0];
  EXPECT_GE(first.grid[0] * first.grid[1] * first.block[0] * first.block[1], 100'000);
}

/// Where many parts have few results, a launch that adds them up would have few threads, each with much to read.
TEST(Parts, OfFewColumnsAreAddedByAtomicUpdates) {
  const char* text = "def f(float(N,M) x) -> (s) { s(m) +=! x(n,m) }";
  const auto workspace = [&](int64_t rows, int64_t columns) {
    const Result<gpu::Mapping> mapping = mapped(specialised_from(text, {{"N", rows}, {"M", columns}}));
    EXPECT_TRUE(mapping);
    return mapping->program.workspace.size();
  };
  EXPECT_EQ(workspace(1'000'000, 64), 0U);
  EXPECT_EQ(workspace(4096, 4096), 1U);
}

/// A maximum over results of a product that are read again is no sum of partial results.
TEST(Parts, ThatOthersReadAreStored) {
  const std::string text = R"(
    def f(int32(N,K) A, int32(K,D) B) -> (O) {
      C(n,d) +=! A(n,k) * B(k,d)
      top(n) max=! C(n,d)
      total(n) +=! C(n,d) - top(n)
      O(n,d) = C(n,d) * total(n)
    })";
  const ir::Program program = specialised_from(text, {{"N", 300}, {"D", 12'001}, {"K", 2}});
  EXPECT_FALSE(mapped(program, options::MappingOptions{.atomic_reduction = true}));
  EXPECT_EQ(difference(program), "");
}

TEST(Rows, MoreThanTheGridHasBlocksAreMappedClassically) {
  gpu::Device device;
  device.grid = {3, 2, 1};
  EXPECT_EQ(faults_of(specialised_from(kSoftmax, {{"N", 300}, {"D", 40}}), device), "");
  EXPECT_EQ(faults_of(specialised_from("def f(float(M,N) A, float(M) s) -> (B) { B(m,n) = A(m,n) * s(m) }",
                                       {{"M", 300}, {"N", 40}}),
                      device),
            "");
}

TEST(Rows, AreReadFromMemoryOnce) {
  const ir::Program program = specialised_from(kSoftmax, {{"N", 500}, {"D", 300}});
  const Result<gpu::Mapping> mapping = mapped(program, {});
  ASSERT_TRUE(mapping);
  tile::Report report;
  ASSERT_TRUE(simulated(program, *mapping, data_for(program, 1), 1, &report));
  EXPECT_EQ(report.counters.at(0).global_bytes_read, 500 * 300 * 4);
  EXPECT_EQ(report.counters.at(0).global_bytes_written, 500 * 300 * 4);
}

}  // namespace
}  // namespace tc::testing
