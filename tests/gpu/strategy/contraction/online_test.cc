#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tc/gpu/strategy/coverage.h"
#include "tc/interp/compare.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Streamed chains whose points read a maximum of the first product's results while it still grows.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

const options::MappingOptions kChained{.split_reduction = 1, .copy_operands = false, .chain = true};

/// An H100.
const gpu::Device kDevice = [] {
  gpu::Device device;
  device.shared_bytes = 227 * 1024;
  return device;
}();

struct Case {
  const char* name;
  const char* text;
  Sizes sizes = {{"N", 40}, {"M", 200}, {"D", 32}, {"E", 16}};
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"Batches",
     R"(
def f(half(B,N,D) Q, half(B,M,D) K, half(B,M,E) V) -> (half(B,N,E) O) {
  float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)
  top(b,n) max=! S(b,n,m)
  half P(b,n,m) = half(exp((S(b,n,m) - top(b,n)) * rsqrt(float(D))))
  float total(b,n) +=! float(P(b,n,m))
  float A(b,n,e) +=! P(b,n,m) * V(b,m,e)
  O(b,n,e) = half(A(b,n,e) / total(b,n))
})",
     {{"B", 2}, {"N", 37}, {"M", 200}, {"D", 24}, {"E", 40}}},
    {"ScaledBefore", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) = S(n,m) * 0.125
  top(n) max=! S(n,m)
  half P(n,m) = half(exp(S(n,m) - top(n)))
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) / total(n))
})"},
    {"ScaledApart", R"(
def f(float c, half(N,D) Q, half(M,D) K, half(M,E) V) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  T(n,m) = S(n,m) * c
  top(n) max=! T(n,m)
  float E1(n,m) = exp(T(n,m) - top(n))
  half P(n,m) = half(E1(n,m))
  total(n) +=! E1(n,m)
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) / total(n))
})"},
    {"ScaledInside", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  top(n) max=! S(n,m)
  half P(n,m) = half(exp(S(n,m) * 0.125 - 0.125 * top(n)))
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) / total(n))
})"},
    {"Divided", R"(
def f(bfloat16(N,D) Q, bfloat16(M,D) K, bfloat16(M,E) V) -> (bfloat16(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  top(n) max=! S(n,m)
  bfloat16 P(n,m) = bfloat16(exp2((S(n,m) - top(n)) / 8.0))
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = bfloat16(A(n,e) / total(n))
})"},
    {"Causal",
     R"(
def f(half(N,D) Q, half(N,D) K, half(N,E) V) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) = m <= n ? S(n,m) : -1e30
  top(n) max=! S(n,m)
  half P(n,m) = half(exp((S(n,m) - top(n)) * rsqrt(float(D))))
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) / total(n))
})",
     {{"N", 150}, {"D", 32}, {"E", 16}}},
    {"MaskedByInfinity",
     R"(
def f(half(N,D) Q, half(N,D) K, half(N,E) V) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  T(n,m) = m >= n ? S(n,m) * rsqrt(float(D)) : -inf
  top(n) max=! T(n,m)
  half P(n,m) = half(exp(T(n,m) - top(n)))
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) / total(n))
})",
     {{"N", 150}, {"D", 32}, {"E", 16}}},
    {"MaskedTwice", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V, bool(N,M) keep) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) = keep(n,m) ? S(n,m) * rsqrt(float(D)) : -inf
  top(n) max=! S(n,m)
  half P(n,m) = keep(n,m) ? half(exp(S(n,m) - top(n))) : half(0.0)
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(total(n) > 0.0 ? A(n,e) / total(n) : 0.0)
})"},
    {"Bias", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V, half(N,M) bias) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) += float(bias(n,m))
  top(n) max=! S(n,m)
  half P(n,m) = half(exp(S(n,m) - top(n)))
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) / total(n))
})"},
    {"LeastOfNegative", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  T(n,m) = -0.25 * S(n,m)
  least(n) min=! T(n,m)
  half P(n,m) = half(exp(least(n) - T(n,m)))
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) / total(n))
})"},
    {"TotalBeforePoints", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  top(n) max=! S(n,m)
  total(n) +=! exp(S(n,m) - top(n))
  half P(n,m) = half(exp(S(n,m) - top(n)))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) / total(n))
})"},
    {"InPlace", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  top(n) max=! S(n,m)
  S(n,m) = exp((S(n,m) - top(n)) * 0.5)
  total(n) +=! S(n,m)
  half P(n,m) = half(S(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) / total(n))
})"},
    {"Results", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V) -> (float(N,E) A, top, total, float(N) lse) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  top(n) max=! S(n,m)
  half P(n,m) = half(exp((S(n,m) - top(n)) * 0.25))
  float total(n) +=! float(P(n,m))
  A(n,e) +=! P(n,m) * V(m,e)
  lse(n) = top(n) * 0.25 + log(total(n))
})"},
    {"Factors", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V, half(N,M) drop, float(M) weight) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  top(n) max=! S(n,m)
  float X(n,m) = exp((S(n,m) - top(n)) * 0.25)
  total(n) +=! X(n,m) * weight(m)
  half P(n,m) = half(X(n,m) * float(drop(n,m)) * 0.5)
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) * 0.125 + total(n))
})"},
    {"OtherReductions", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V) -> (half(N,E) O, sum, float(N) square) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  sum(n) +=! S(n,m)
  top(n) max=! S(n,m)
  half P(n,m) = half(exp((S(n,m) - top(n)) * 0.25))
  square(n) +=! S(n,m) * S(n,m)
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) / total(n))
})"},
};

bool is_one_launch(const gpu::Mapping& mapping) {
  return mapping.kernels.size() == 1 ||
         (mapping.kernels.size() == 2 && mapping.kernels[0].chosen.chain.value_or(false));
}

class Online : public ::testing::TestWithParam<Case> {
 protected:
  ir::Program program() const { return specialised_from(GetParam().text, GetParam().sizes); }
};

/// What is stored behind a chain may be another one.
TEST_P(Online, MakesTheFirstProductOnce) {
  const Result<gpu::Mapping> mapping = mapped(program(), kChained, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_TRUE(is_one_launch(*mapping)) << gpu::report(*mapping);
}

TEST_P(Online, AgreesWithTheOracle) {
  for (const uint64_t seed : {1, 2}) EXPECT_EQ(difference(program(), kChained, seed, kDevice), "");
}

TEST_P(Online, IsProved) {
  const ir::Program own = program();
  const Result<gpu::Mapping> mapping = mapped(own, kChained, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(unproved(mapping->program), "");
  for (const tile::Coverage& coverage : gpu::cover(*mapping)) {
    EXPECT_EQ(coverage.faults, std::vector<std::string>());
    for (const tile::Coverage::Item& item : coverage.items) EXPECT_TRUE(item.complete) << item.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Online, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// A bias brings infinities and NaN.
const Case kBiased[] = {
    {"All", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V, float(N,M) bias) -> (float(N,E) A, top, total, float(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) = S(n,m) + bias(n,m)
  top(n) max=! S(n,m)
  half P(n,m) = half(exp((S(n,m) - top(n)) * 0.25))
  float total(n) +=! float(P(n,m))
  A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = A(n,e) / total(n)
})"},
    {"Some", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V, float(N,M) bias, bool(N,M) keep) -> (float(N,E) A, top, total) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) = S(n,m) + bias(n,m)
  top(n) max=! keep(n,m) ? S(n,m) : -inf
  half P(n,m) = keep(n,m) ? half(exp((S(n,m) - top(n)) * 0.25)) : half(0.0)
  float total(n) +=! float(P(n,m))
  A(n,e) +=! P(n,m) * V(m,e)
})"},
    {"SomeOfAllMaxima", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V, float(N,M) bias, bool(N,M) keep) -> (float(N,E) A, top, total) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) = S(n,m) + bias(n,m)
  top(n) max=! S(n,m)
  half P(n,m) = keep(n,m) ? half(exp((S(n,m) - top(n)) * 0.25)) : half(0.0)
  float total(n) +=! float(P(n,m))
  A(n,e) +=! P(n,m) * V(m,e)
})"},
    {"Least", R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V, float(N,M) bias, bool(N,M) keep) -> (float(N,E) A, least, total) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) = S(n,m) + bias(n,m)
  least(n) min=! keep(n,m) ? -S(n,m) : inf
  half P(n,m) = keep(n,m) ? half(exp((S(n,m) + least(n)) * 0.25)) : half(0.0)
  float total(n) +=! float(P(n,m))
  A(n,e) +=! P(n,m) * V(m,e)
})"},
};

class Biased : public ::testing::TestWithParam<Case> {};

TEST_P(Biased, KeepInfinitiesAndNaN) {
  const char* text = GetParam().text;
  constexpr int64_t kColumns = 200;
  const ir::Program program = specialised_from(text, {{"N", 32}, {"M", kColumns}, {"D", 16}, {"E", 16}});
  const Result<gpu::Mapping> mapping = mapped(program, kChained, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels.size(), 1U) << gpu::report(*mapping);
  interp::Environment data = data_for(program, 1);
  interp::Value& bias = data.at("bias");
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto set = [&](int64_t row, int64_t first, int64_t last, double value) {
    for (int64_t m = first; m < last; ++m) bias.floats[static_cast<size_t>(row * kColumns + m)] = value;
  };
  set(0, 0, kColumns, -inf);      // nothing but the identity
  set(1, 0, kColumns - 1, -inf);  // a number at the end
  set(2, 0, 130, -inf);           // behind the first slabs
  set(3, 70, kColumns, -inf);     // and before the last
  set(4, 150, 151, inf);
  set(5, 0, 1, inf);
  set(6, 0, 140, -inf);
  set(6, 140, 141, inf);
  set(7, 3, 4, nan);
  set(8, 199, 200, nan);
  set(9, 0, kColumns, -inf);
  set(9, 100, 101, nan);
  set(10, 0, 150, -1e30);  // numbers that are far away
  set(11, 0, kColumns, -1e30);
  set(12, 190, 191, 1e30);
  set(13, 0, 2, 3e38);
  set(14, 0, kColumns, inf);
  for (int64_t m = 0; m < kColumns; ++m) set(15, m, m + 1, 1e9 + 1000.0 * static_cast<double>(m % 7));  // all large
  if (data.count("keep") > 0) {  // rows 16 to 31 are the same, but some or all of them are masked
    const auto half = static_cast<long>(bias.floats.size() / 2);
    std::copy(bias.floats.begin(), bias.floats.begin() + half, bias.floats.begin() + half);
    for (int64_t i = 0; i < bias.elements(); ++i) {
      const int64_t row = i / kColumns, m = i % kColumns;
      data.at("keep").integers[static_cast<size_t>(i)] = row < 16 ? m % 3 != 0 : row % 2 == 0 && m > 180;
    }
  }
  const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
  ASSERT_TRUE(oracle) << oracle.error().to_string();
  const Result<interp::Environment> results = simulated(program, *mapping, data);
  ASSERT_TRUE(results) << results.error().to_string();
  for (const interp::Comparison& comparison : interp::compare(*results, *oracle)) {
    EXPECT_TRUE(comparison.agrees) << comparison.sentence;
    EXPECT_GT(comparison.elements, comparison.undecidable * 2) << comparison.sentence;
  }
  EXPECT_TRUE(std::isnan(results->at("total").floats[0]));
  if (data.count("keep") > 0) EXPECT_EQ(results->at("total").floats[17], 0);
}
INSTANTIATE_TEST_SUITE_P(Programs, Biased, ::testing::ValuesIn(kBiased),
                         [](const auto& info) { return std::string(info.param.name); });

/// What points make of a maximum must be an exponential that is bounded while the maximum grows.
TEST(OnlineReductions, AreNoneWhereSumsCannotBeCorrected) {
  const std::string head = R"(
def f(float c, half(N,D) Q, half(M,D) K, half(M,E) V, half(N,M) B, float(N,M) F) -> (float(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  top(n) max=! S(n,m)
)";
  const std::string tail = R"(
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = A(n,e) / total(n)
})";
  const Sizes sizes = {{"N", 40}, {"M", 96}, {"D", 32}, {"E", 16}};
  const auto launches = [&](const std::string& points) {
    const ir::Program program = specialised_from(head + points + tail, sizes);
    options::MappingOptions options = kChained;
    Result<gpu::Mapping> mapping = mapped(program, options, kDevice);
    if (!mapping) mapping = mapped(program, options = {.split_reduction = 1}, kDevice);  // there is no chain to ask for
    EXPECT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(difference(program, options, 1, kDevice), "") << points;
    return mapping ? mapping->kernels.size() : 0;
  };
  EXPECT_EQ(launches("  half P(n,m) = half(exp(S(n,m) - top(n)))"), 1U);
  for (const char* points : {
           "  half P(n,m) = half(S(n,m) - top(n))",                                      // no exponential
           "  half P(n,m) = half(exp(top(n) - S(n,m)) * 0.0)",                           // grows with the maximum
           "  half P(n,m) = half(exp(S(n,m) - top(n)) + 1.0)",                           // a sum with another value
           "  half P(n,m) = half(exp((S(n,m) - top(n)) * c))",                           // of either sign
           "  half P(n,m) = half(exp(S(n,m) + float(B(n,m)) - top(n)))",                 // not bounded
           "  half P(n,m) = half(exp(S(n,m) - top(n)) * F(n,m))",                        // nor in half
           "  half P(n,m) = S(n,m) > 0.0 ? half(exp(S(n,m) - top(n))) : half(0.0)",      // zero, if top is NaN, too
           "  half P(n,m) = half(exp(S(n,m) - top(N - 1 - n)))",                         // of another row
           "  half P(n,m) = half(exp(S(n,m) - top(n)) * exp(2.0 * (S(n,m) + top(n))))",  // grows, as a whole
       }) {
    EXPECT_GE(launches(points), 2U) << points;
  }
}

}  // namespace
}  // namespace tc::testing
