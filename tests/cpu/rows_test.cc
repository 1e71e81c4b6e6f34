#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tc/cpu/from_poly.h"
#include "tc/cpu/prepare.h"
#include "tc/cpu/strategy.h"
#include "tc/cpu/target.h"
#include "tc/poly/from_ir.h"
#include "tests/cpu/kernels.h"
#include "tests/poly/programs.h"

namespace tc::cpu {
namespace {

using Halide::Expr;
using poly::test::index;
using poly::test::ProgramBuilder;

constexpr int64_t kRows = 5;

/// top(i) max=! A(i,j); low(i) min=! A(i,j); e(i,j) = A(i,j) + A(i,j); s(i) +=! e(i,j); y(i,j) = e(i,j) - s(i)
poly::test::ProgramPtr rows(int64_t length) {
  ProgramBuilder b("rows");
  b.input("A", {kRows, length}).temporary("e", {kRows, length});
  b.result("top", {kRows}).result("low", {kRows}).result("s", {kRows}).result("y", {kRows, length});
  const std::vector<ProgramBuilder::Loop> i{{"i", kRows}}, j{{"j", length}}, both{{"i", kRows}, {"j", length}};
  const Expr a = b.at("A", {index("i"), index("j")});
  const Expr e = b.at("e", {index("i"), index("j")});
  return b.statement("top", {index("i")}, ir::Assign::kMax, true, i, j, a)
      .statement("low", {index("i")}, ir::Assign::kMin, true, i, j, a)
      .set("e", {index("i"), index("j")}, both, a + a)
      .sum("s", {index("i")}, i, j, e)
      .set("y", {index("i"), index("j")}, both, e - b.at("s", {index("i")}))
      .build();
}

KernelStmt stmt_for(const poly::test::ProgramPtr& program, int bits, const options::CpuOptions& options) {
  const bool strict = options.strict;
  auto prepared =
      std::make_shared<const ir::Program>(prepare(*program, {.layouts = {}, .vector_bits = bits, .strict = strict}));
  auto scop = poly::from_ir(prepared, std::make_shared<poly::Context>()).value();
  auto scheduled = schedule_for_cpu(scop, {.cpu = options, .layouts = {}, .vector_bits = bits, .verify = true}).value();
  return from_poly(scheduled, {.layouts = {}, .vector_bits = bits});
}

std::shared_ptr<const Loaded> build_for(const poly::test::ProgramPtr& program, const std::string& target, bool strict) {
  const int bits = vector_bits(canonical_target(target).value());
  const KernelStmt stmt = stmt_for(program, bits, {.strict = strict});
  return build({.name = "kernel", .arguments = stmt.arguments, .body = stmt.body, .no_alias = true},
               {.target = target, .strict = strict});
}

/// Whether what a buffer holds goes through a vector that sets others of its lanes.
bool keeps_old_lanes(const KernelStmt& stmt, const std::string& buffer) {
  return to_text(stmt.body).find(", " + buffer + "[") != std::string::npos;
}

/// The vector behind the 96th element of a row of 100 has lanes that nobody has set, unless zeros are in them. Where
/// rows of 100 follow each other without a gap, they are the next row's.
TEST(Rows, WhatNoElementIsInIsZero) {
  EXPECT_FALSE(keeps_old_lanes(stmt_for(rows(100), 512, {}), "e_tile"));
  EXPECT_FALSE(keeps_old_lanes(stmt_for(rows(100), 512, {.strict = true}), "e_tile"));
  EXPECT_TRUE(keeps_old_lanes(stmt_for(rows(100), 512, {.tile = {kRows}, .strict = true}), "e_tile"));
}

TEST(Rows, LongOnesGoInStepsOfTwoVectors) {
  const auto has = [](int64_t length, const options::CpuOptions& options, const std::string& loop) {
    return to_text(stmt_for(rows(length), 512, options).body).find(loop) != std::string::npos;
  };
  EXPECT_TRUE(has(1024, {}, "vectorized (j, 0, 32)"));
  EXPECT_FALSE(has(1024, {.vector_width = 16}, "vectorized (j, 0, 32)"));
  EXPECT_FALSE(has(100, {}, "vectorized (j, 0, 32)"));
}

/// Small integers; then only minus infinity, a NaN last, an infinity last, and only minus zero.
std::vector<float> data(int64_t length) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> a(static_cast<size_t>(kRows * length));
  auto row = [&](int64_t i) { return a.begin() + i * length; };
  for (size_t k = 0; k < a.size(); ++k) a[k] = static_cast<float>(k * 7 % 11) - 5;
  std::fill(row(1), row(2), -infinity);
  *(row(3) - 1) = std::numeric_limits<float>::quiet_NaN();
  *(row(4) - 1) = infinity;
  std::fill(row(4), a.end(), -0.0f);
  return a;
}

void expect_same(float made, float wanted, const std::string& what) {
  EXPECT_TRUE(made == wanted || (std::isnan(made) && std::isnan(wanted))) << what << ": " << made << ", not " << wanted;
}

TEST(Rows, OfAnyLengthOnEveryWidthOfVector) {
  for (const char* target : {"host", "x86-64-linux-avx2-fma-f16c-avx-sse41", "x86-64-linux-sse41"}) {
    if (!host_can_run(parse_target(target).value())) continue;
    for (int64_t n : {1, 5, 17, 33, 100, 131, 300}) {
      for (bool strict : {false, true}) {
        const std::vector<float> a = data(n);
        std::vector<float> top(kRows), low(kRows), s(kRows), y(a.size());
        const void* arguments[] = {a.data(), top.data(), low.data(), s.data(), y.data()};
        ASSERT_EQ(build_for(rows(n), target, strict)->call(const_cast<void**>(arguments)), 0);
        for (int64_t i = 0; i < kRows; ++i) {
          const float* row = a.data() + i * n;
          const std::string what = fmt::format("{}{} row {} of {}", target, strict ? " strict" : "", i, n);
          float most = row[0], least = row[0], sum = 0;
          for (int64_t j = 0; j < n; ++j) {
            most = std::isnan(row[j]) || row[j] > most ? row[j] : most;
            least = std::isnan(row[j]) || row[j] < least ? row[j] : least;
            sum += row[j] + row[j];
          }
          const auto r = static_cast<size_t>(i);
          expect_same(top[r], most, what + " top");
          expect_same(low[r], least, what + " low");
          expect_same(s[r], sum, what + " sum");
          for (int64_t j = 0; j < n; ++j) {
            expect_same(y[static_cast<size_t>(i * n + j)], row[j] + row[j] - sum, what + " y");
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tc::cpu
