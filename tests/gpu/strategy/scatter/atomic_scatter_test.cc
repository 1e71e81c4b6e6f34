#include <gtest/gtest.h>

#include <algorithm>

#include "tc/tile/certificate.h"
#include "tc/tile/print.h"
#include "tc/tile/verify.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

/// Updates that threads make atomically.
namespace tc::testing {
namespace {

struct Case {
  const char* name;
  const char* text;
  std::map<std::string, int64_t> sizes;
  bool in_shared;
};

int count_scatters(const gpu::Mapping& mapping) {
  return static_cast<int>(std::count_if(mapping.kernels.begin(), mapping.kernels.end(), [](const gpu::Kernel& kernel) {
    return kernel.recipe == gpu::Recipe::kScatter;
  }));
}

class Scatter : public ::testing::TestWithParam<Case> {};

TEST_P(Scatter, IsDealtOutToAllThreadsAndProved) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const Result<gpu::Mapping> mapping = mapped(program);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(count_scatters(*mapping), 1) << gpu::report(*mapping);
  int64_t shared = 0;
  for (const tile::Kernel& kernel : mapping->program.kernels) shared += kernel.shared_bytes();
  EXPECT_EQ(shared > 0, GetParam().in_shared) << tile::to_text(mapping->program);
  for (uint64_t seed = 1; seed <= 3; ++seed) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
  for (const options::MappingOptions& options :
       {options::MappingOptions{.map_to_threads = {48}}, options::MappingOptions{.use_shared_memory = false},
        options::MappingOptions{.max_shared_memory = 16}, options::MappingOptions{.match_library_calls = false},
        options::MappingOptions{.strict = true}}) {
    EXPECT_EQ(difference(program, options), "");
  }
  const tile::Verification verification = tile::verify(mapping->program);
  EXPECT_TRUE(verification.holds()) << fmt::format("{}", fmt::join(verification.faults, "\n"));
  for (const tile::Kernel& kernel : mapping->program.kernels) {
    const tile::Certificate certificate = tile::certify(kernel);
    EXPECT_EQ(fmt::format("{}{}", fmt::join(certificate.races, "\n"), fmt::join(certificate.unproved, "\n")), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Scatter,
    ::testing::Values(
        Case{"histogram", "def f(int(N) I) -> (H) { H(b) = 0 where b in 0:7\n H(I(i)) += 1 }", {{"N", 3000}}, true},
        Case{"many_bins", "def f(int(N) I) -> (H) { H(b) = 0 where b in 0:1000\n H(I(i)) += 1 }", {{"N", 1111}}, false},
        Case{"rows_of_floats",
             "def f(float(N,D) g, int32(N) I) -> (d) { float d(b,k) = 0 where b in 0:50, k in 0:D\n"
             " d(I(n),k) += g(n,k) }",
             {{"N", 700}, {"D", 2}},
             true},
        Case{"least",
             "def f(float(N) x, int32(N) I) -> (m) { float m(b) = 100 where b in 0:9\n m(I(i)) min= x(i) }",
             {{"N", 2000}},
             true},
        Case{"greatest",
             "def f(double(N) x, int32(N) I) -> (m) { double m(b) = 0 where b in 0:9\n m(I(i)) max= x(i) }",
             {{"N", 2000}},
             true},
        Case{"some_of_them",
             "def f(float(N) x, int32(N) I) -> (m) { float m(b) = 0 where b in 0:9\n"
             " m(I(i)) += x(i) > 0 ? x(i) : 0 }",
             {{"N", 2000}},
             true},
        Case{"three_indices",
             "def f(int32(A,B,C) I) -> (H) { H(p,q) = 0 where p in 0:3, q in 0:5\n"
             " H(I(a,b,c) % 3, I(a,b,c) % 5) += 1 }",
             {{"A", 7}, {"B", 11}, {"C", 13}},
             true},
        Case{"longs",
             "def f(int64(N) x, int32(N) I) -> (m) { int64 m(b) = 0 where b in 0:9\n m(I(i)) += x(i) }",
             {{"N", 500}},
             true},
        Case{"in_out", "def f(int32(N) I) -> (float(B) H) { H(I(i)) += 1 }", {{"N", 600}, {"B", 10}}, true}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Scatter, TheSourcesOrderOfFloatsIsKeptIfItIsStrict) {
  const std::string text = "def f(float(N) x, int32(N) I) -> (m) { float m(b) = 0 where b in 0:9\n m(I(i)) += x(i) }";
  const ir::Program program = specialised_from(text, {{"N", 500}});
  const Result<gpu::Mapping> mapping = mapped(program, {.strict = true});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(count_scatters(*mapping), 0);
  const ir::Program of_integers =
      specialised_from("def f(int32(N) I) -> (H) { H(b) = 0 where b in 0:9\n H(I(i)) += 1 }", {{"N", 500}});
  const Result<gpu::Mapping> integers = mapped(of_integers, {.strict = true});
  ASSERT_TRUE(integers) << integers.error().to_string();
  EXPECT_EQ(count_scatters(*integers), 1);
}

TEST(Scatter, ProductsStayInOrder) {
  const ir::Program program = specialised_from(
      "def f(float(N) x, int32(N) I) -> (m) { float m(b) = 1 where b in 0:9\n m(I(i)) *= x(i) }", {{"N", 200}});
  const Result<gpu::Mapping> mapping = mapped(program);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(count_scatters(*mapping), 0);
  EXPECT_EQ(difference_of_mapping(program, *mapping), "");
}

TEST(Scatter, WhatTheTensorHeldBeforeIsReadBefore) {
  const ir::Program program = specialised_from(
      "def f(int32(N) x, int32(N) I) -> (int32(B) m) { m(I(i)) += m(3) * x(i) }", {{"N", 200}, {"B", 10}});
  EXPECT_EQ(difference(program), "");
}

}  // namespace
}  // namespace tc::testing
