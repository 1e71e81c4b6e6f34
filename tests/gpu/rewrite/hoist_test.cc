#include "tc/gpu/rewrite/hoist.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tc/gpu/strategy/contraction/contraction.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

/// Statements between a product and what goes on with its results.
namespace tc::testing {
namespace {

/// The tensors that statements write, in order.
std::string order_of(const std::string& text) {
  const ir::Program program = specialised_from(text, {{"M", 34}, {"N", 38}, {"K", 20}});
  std::vector<std::string> names;
  for (const ir::Statement& s : gpu::hoist_before_products(program, gpu::is_contraction).statements) {
    names.push_back(s.tensor);
  }
  EXPECT_EQ(difference(program, {}, 1, gpu::device_of_architecture(90)), "") << text;
  return fmt::format("{}", fmt::join(names, " "));
}

TEST(HoistBeforeProducts, WhatHasNothingToDoWithThem) {
  const std::string head = "def f(float(M,K) A, float(K,N) B) -> (C) { ";
  EXPECT_EQ(order_of(head + "C(m,n) +=! A(m,k) * B(k,n)  R(m) +=! A(m,k)  C(m,n) = C(m,n) - R(m) }"), "R C C");
  EXPECT_EQ(order_of(head + "C(m,n) +=! A(m,k) * B(k,n)  R(m) +=! A(m,k)  r(m) = R(m) * 2  S(n) max=! B(k,n)  "
                            "C(m,n) = C(m,n) - r(m) * S(n) }"),
            "R r S C C");
  // What leads to the product stays right before it.
  EXPECT_EQ(order_of(head + "E(m,k) = exp(A(m,k))  C(m,n) = 1 where m in 0:M, n in 0:N  C(m,n) += E(m,k) * B(k,n)  "
                            "S(n) max=! B(k,n)  C(m,n) = C(m,n) - S(n) }"),
            "S E C C C");
  EXPECT_EQ(order_of("def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n)  S(n) max=! B(k,n)  "
                     "C(m,n) = C(m,n) - S(n) }"),
            "S C_sum C C");
}

TEST(HoistBeforeProducts, NothingElse) {
  const std::string head = "def f(float(M,K) A, float(K,N) B, float(M,N) D) -> (C, R) { C(m,n) +=! A(m,k) * B(k,n)  ";
  // It needs the results, nothing goes on with them, it is a product, or shares the points.
  EXPECT_EQ(order_of(head + "R(m) max=! C(m,n)  C(m,n) = C(m,n) - R(m) }"), "C R C");
  EXPECT_EQ(order_of(head + "C(m,n) = C(m,n) + 1  R(m) max=! A(m,k) }"), "C C R");
  EXPECT_EQ(order_of(head + "R(m,n) +=! A(m,k) * B(k,n)  C(m,n) = C(m,n) - R(m,n) }"), "C R C");
  EXPECT_EQ(order_of(head + "R(m,n) = D(m,n) * 2  C(m,n) = C(m,n) - R(m,n) }"), "C R C");
  // It begins a reduction of the results.
  EXPECT_EQ(order_of("def f(float(M,K) A, float(K,N) B, float l) -> (float s) { C(m,n) +=! A(m,k) * B(k,n)  s = l  "
                     "s += C(m,n) }"),
            "C s s");
  // It changes what the product reads.
  EXPECT_EQ(order_of("def f(float(K,N) B) -> (float(M,K) A, C) { C(m,n) +=! A(m,k) * B(k,n)  "
                     "A(0,k) +=! B(k,n)  C(m,n) = C(m,n) - 1 }"),
            "C A C");
}

/// The order of independent statements does not decide how many launches there are.
TEST(HoistBeforeProducts, SavesLaunches) {
  const char* heads[] = {"C(m,n) +=! A(m,k) * B(k,n)  R(m) +=! A(m,k)", "R(m) +=! A(m,k)  C(m,n) +=! A(m,k) * B(k,n)"};
  for (const char* type : {"float", "half"}) {
    std::vector<size_t> launches;
    for (const char* head : heads) {
      const std::string text =
          fmt::format("def f({0}(M,K) A, {0}(K,N) B) -> (C) {{ {1}  C(m,n) = fmax(C(m,n) - R(m), 0) }}", type, head);
      const ir::Program program = specialised_from(text, {{"M", 512}, {"N", 512}, {"K", 512}});
      const Result<gpu::Mapping> mapping = mapped(program, {}, gpu::device_of_architecture(90));
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      launches.push_back(mapping->kernels.size());
    }
    EXPECT_EQ(launches, std::vector<size_t>({2, 2})) << type;
  }
}

}  // namespace
}  // namespace tc::testing
