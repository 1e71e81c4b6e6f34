#include <gtest/gtest.h>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/strategy/explain.h"
#include "tc/gpu/strategy/tunables.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Rows that are too long for registers, and stay in shared memory.
namespace tc::testing {
namespace {

constexpr char kSoftmax[] = R"(
def softmax(float(N,D) I) -> (O) {
  top(n) max=! I(n,d)
  E(n,d) = exp(I(n,d) - top(n))
  total(n) +=! E(n,d)
  O(n,d) = E(n,d) / total(n)
})";

constexpr char kIntegers[] = R"(
def f(int32(N,D) I, int32(N,D) J) -> (O, P) {
  top(n) max=! I(n,d)
  least(n) min=! J(n,d)
  E(n,d) = (I(n,d) - top(n)) * J(n,d)
  total(n) +=! E(n,d)
  O(n,d) = E(n,d) - total(n)
  P(n,d) = J(n,d) - least(n)
})";

/// Of an architecture, with few processors: few rows are many.
gpu::Device few_processors(int architecture) {
  gpu::Device device = gpu::device_of_architecture(architecture);
  device.memory_bytes_per_us *= 2.0 / static_cast<double>(device.processors);
  device.processors = 2;
  device.cache_bytes = 1 << 16;
  return device;
}

struct Traffic {
  int64_t read = 0, written = 0;
  size_t launches = 0;
};

Traffic traffic(const ir::Program& program, const gpu::Device& device, const options::MappingOptions& options = {}) {
  const Result<gpu::Mapping> mapping = mapped(program, options, device);
  EXPECT_TRUE(mapping) << mapping.error().to_string();
  if (!mapping) return {};
  tile::Report report;
  EXPECT_TRUE(simulated(program, *mapping, data_for(program, 1), 1, &report));
  Traffic result{0, 0, mapping->kernels.size()};
  for (const auto& counters : report.counters) {
    result.read += counters.global_bytes_read;
    result.written += counters.global_bytes_written;
  }
  return result;
}

TEST(KeptRows, AreReadFromMemoryOnce) {
  for (const int64_t d : {50'256, 50'257}) {
    SCOPED_TRACE(d);
    const ir::Program program = specialised_from(kSoftmax, {{"N", 4}, {"D", d}});
    const Traffic found = traffic(program, few_processors(90));
    EXPECT_EQ(found.launches, 1U);
    EXPECT_EQ(found.read, 4 * d * 4);
    EXPECT_EQ(found.written, 4 * d * 4);
  }
}

TEST(KeptRows, AreAsMuchOfARowAsFits) {
  const int64_t n = 4, d = 50'257;
  const ir::Program program = specialised_from(kSoftmax, {{"N", n}, {"D", d}});
  options::MappingOptions none;
  none.use_shared_memory = false;
  const gpu::Device device = few_processors(86);  // 99 KB
  const Traffic kept = traffic(program, device), all = traffic(program, device, none);
  EXPECT_EQ(all.read, 3 * n * d * 4);
  EXPECT_LT(kept.read, 2.2 * n * d * 4);
  EXPECT_GT(kept.read, n * d * 4);
  EXPECT_EQ(kept.written, n * d * 4);
}

TEST(KeptRows, OfIntegersAreExact) {
  for (const int architecture : {75, 80, 86, 90}) {
    for (const int64_t d : {30'000, 40'001, 70'004}) {
      SCOPED_TRACE(fmt::format("sm_{} D={}", architecture, d));
      EXPECT_EQ(faults_of(specialised_from(kIntegers, {{"N", 3}, {"D", d}}), few_processors(architecture)), "");
    }
  }
}

TEST(KeptRows, OfEveryTypeAgreeWithTheOracle) {
  for (const char* type : {"float", "float16", "double", "int8", "uint8", "int16", "int64"}) {
    const std::string text = fmt::format(R"(
      def f({}(N,D) I) -> (O) {{
        top(n) max=! I(n,d)
        least(n) min=! I(n,d)
        O(n,d) = top(n) - I(n,d) + least(n)
      }})",
                                         type);
    for (const int64_t d : {70'000, 70'003}) {
      SCOPED_TRACE(fmt::format("{} {}", type, d));
      EXPECT_EQ(faults_of(specialised_from(text, {{"N", 3}, {"D", d}}), few_processors(90)), "");
    }
  }
}

TEST(KeptRows, MayBeNormalisedInAnyWay) {
  const char* const texts[] = {
      R"(def layernorm(float eps, float(N,D) I, float(D) gamma, float(D) beta) -> (O) {
        mean(n) +=! I(n,d)
        mean(n) = mean(n) / D
        var(n) +=! (I(n,d) - mean(n)) * (I(n,d) - mean(n))
        var(n) = var(n) / D
        O(n,d) = (I(n,d) - mean(n)) * rsqrt(var(n) + eps) * gamma(d) + beta(d)
      })",
      R"(def log_softmax(float16(N,D) I) -> (O) {
        top(n) max=! I(n,d)
        float total(n) +=! exp(float(I(n,d)) - top(n))
        O(n,d) = float(I(n,d)) - top(n) - log(total(n))
      })",
      R"(def rmsnorm(float16(N,D) I, float16(D) gamma) -> (O) {
        float square(n) +=! float(I(n,d)) * I(n,d)
        O(n,d) = float16(I(n,d) * rsqrt(square(n) / D + 1.0) * gamma(d))
      })",
      // Results that are read again, and written twice.
      R"(def softmax(float(N,D) I) -> (O) {
        m(n) max=! I(n,d)
        O(n,d) = exp(I(n,d) - m(n))
        s(n) +=! O(n,d)
        O(n,d) = O(n,d) / s(n)
      })",
      // In place.
      R"(def f(int32(N,D) B) -> (int32(N,D) A) {
        s(n) +=! A(n,d)
        A(n,d) += s(n) + B(n,d)
        m(n) max=! A(n,d)
        A(n,d) = m(n) - A(n,d)
      })",
  };
  for (const char* text : texts) {
    for (const int64_t d : {33'000, 60'001}) {
      for (const int architecture : {86, 90}) {
        SCOPED_TRACE(fmt::format("D={} sm_{} {}", d, architecture, text));
        EXPECT_EQ(faults_of(specialised_from(text, {{"N", 3}, {"D", d}}), few_processors(architecture)), "");
      }
    }
  }
}

TEST(KeptRows, MayHaveSeveralDimensions) {
  const std::string text = R"(
    def f(int32(N,C,H) I) -> (O) {
      s(c) +=! I(nn,c,hh)
      m(c) max=! I(nn,c,hh) + s(c)
      O(n,c,h) = I(n,c,h) - m(c)
    })";
  for (const int64_t h : {4'000, 4'001}) {
    SCOPED_TRACE(h);
    const ir::Program program = specialised_from(text, {{"N", 9}, {"C", 3}, {"H", h}});
    EXPECT_EQ(faults_of(program, few_processors(90)), "");
    EXPECT_EQ(traffic(program, few_processors(90)).read, 9 * 3 * h * 4);
  }
}

TEST(KeptRows, AreKeptBesideReadsOfOtherElements) {
  const std::string text = R"(
    def log_softmax_at(float(N,D) I, int32(N) label) -> (O) {
      top(n) max=! I(n,d)
      total(n) +=! exp(I(n,d) - top(n))
      O(n) = I(n, label(n)) - top(n) - log(total(n))
    })";
  const int64_t n = 4, d = 40'000;
  const ir::Program program = specialised_from(text, {{"N", n}, {"D", d}});
  EXPECT_EQ(difference(program, {}, 1, few_processors(90)), "");
  EXPECT_LT(traffic(program, few_processors(90)).read, 1.1 * n * d * 4);
}

/// The most elements of an asynchronous copy of a kernel.
int widest_copy(const tile::Kernel& kernel) {
  int widest = 0;
  tile::for_each_node(kernel.body, [&](const tile::Node& node) {
    if (const tile::Move* move = tile::asynchronous_copy(node)) widest = std::max(widest, move->elements);
  });
  return widest;
}

TEST(KeptRows, ThatBeginBetweenVectorsAreCopiedByVectors) {
  const std::string text = R"(
    def f(float16(N,D) I, float16(N,D) J) -> (O) {
      top(n) max=! I(n,d)
      least(n) min=! J(n,d)
      O(n,d) = float16(float(I(n,d)) - top(n) + (J(n,d) - least(n)))
    })";
  for (const int64_t d : {50'255, 50'256, 50'257, 50'258, 50'260}) {
    SCOPED_TRACE(d);
    const ir::Program program = specialised_from(text, {{"N", 9}, {"D", d}});
    const Result<gpu::Mapping> mapping = mapped(program, {}, few_processors(90));
    ASSERT_TRUE(mapping);
    EXPECT_GE(widest_copy(mapping->program.kernels[0]), 4);
    EXPECT_EQ(faults_of(program, few_processors(90)), "");
    EXPECT_EQ(traffic(program, few_processors(90)).read, 2 * 9 * d * 2);
  }
}

TEST(KeptRows, MayLieAtAnyAddress) {
  for (const int64_t d : {50'256, 50'257}) {
    const ir::Program program = specialised_from(kIntegers, {{"N", 3}, {"D", d}});
    const Result<gpu::Mapping> mapping = mapped(program, {}, few_processors(90), true);
    ASSERT_TRUE(mapping);
    EXPECT_EQ(unproved(mapping->program), "");
    EXPECT_TRUE(simulated(program, *mapping, data_for(program, 1)));
  }
}

TEST(KeptRows, MayBeginAnywhereInATensor) {
  const std::string text = R"(
    def f(int32(N,M) I) -> (s, m) {
      m(n) max=! I(n, 3 + d) where d in 0:39998
      s(n) +=! I(n, 3 + d) - m(n) where d in 0:39998
    })";
  EXPECT_EQ(faults_of(specialised_from(text, {{"N", 5}, {"M", 40'003}}), few_processors(90)), "");
}

/// Two computations of a value may differ in the last bit, and then none would equal the largest.
TEST(KeptRows, AreNotComputedAgainForAComparison) {
  const std::string text = R"(
    def f(float(N,D) A, float(N,D) B) -> (count) {
      E(n,d) = A(n,d) * B(n,d) + A(n,d)
      m(n) max=! E(n,d)
      count(n) +=! E(n,d) == m(n) ? 1 : 0
    })";
  EXPECT_EQ(faults_of(specialised_from(text, {{"N", 3}, {"D", 30'000}}), few_processors(90)), "");
}

TEST(KeptRows, ComputeNothingAgainThatHasChanged) {
  const std::string text = R"(
    def f(int32(N,D) A) -> (O) {
      s(n) +=! A(n,d)
      E(n,d) = A(n,d) - s(n)
      s(n) max=! E(n,d)
      O(n,d) = E(n,d) * s(n)
    })";
  EXPECT_EQ(faults_of(specialised_from(text, {{"N", 3}, {"D", 30'001}}), few_processors(90)), "");
}

TEST(KeptRows, AreWhatTheOptionsSay) {
  const ir::Program program = specialised_from(kSoftmax, {{"N", 6}, {"D", 20'000}});
  const gpu::Device device = few_processors(90);
  options::MappingOptions options;
  for (const bool keep : {false, true}) {
    options.use_shared_memory = keep;
    EXPECT_EQ(difference(program, options, 1, device), "");
    const Result<gpu::Mapping> mapping = mapped(program, options, device);
    ASSERT_TRUE(mapping);
    EXPECT_EQ(mapping->program.kernels[0].shared_bytes() >= 20'000 * 4, keep);
    EXPECT_EQ(mapping->kernels[0].in_shared.count("I"), keep ? 1U : 0U);
  }
  options.max_shared_memory = 40'000;
  const Result<gpu::Mapping> mapping = mapped(program, options, device);
  ASSERT_TRUE(mapping);
  EXPECT_LE(mapping->program.kernels[0].shared_bytes(), 40'000);
  EXPECT_EQ(difference_of_mapping(program, *mapping), "");
}

TEST(KeptRows, HaveOptionsThatAskForThemAgain) {
  for (const int64_t d : {30'000, 50'257, 200'000}) {
    SCOPED_TRACE(d);
    const ir::Program program = specialised_from(kSoftmax, {{"N", 4}, {"D", d}});
    const gpu::Device device = few_processors(90);
    const Result<gpu::Mapping> first = mapped(program, {}, device);
    ASSERT_TRUE(first);
    EXPECT_TRUE(first->kernels[0].chosen.use_shared_memory.value_or(false));
    const Result<gpu::Mapping> second = mapped(program, first->kernels[0].chosen, device);
    ASSERT_TRUE(second);
    EXPECT_EQ(gpu::report(*first), gpu::report(*second));
    EXPECT_EQ(first->program.kernels[0].shared_bytes(), second->program.kernels[0].shared_bytes());
  }
}

TEST(KeptRows, LeaveShortRowsInRegisters) {
  const Result<gpu::Mapping> mapping =
      mapped(specialised_from(kSoftmax, {{"N", 4096}, {"D", 4096}}), {}, gpu::device_of_architecture(90));
  ASSERT_TRUE(mapping);
  EXPECT_FALSE(mapping->kernels[0].chosen.use_shared_memory.has_value());
}

}  // namespace
}  // namespace tc::testing
