#include <gtest/gtest.h>

#include "tc/cpu/prepare.h"
#include "tests/common/program.h"
#include "tests/random/differential.h"

/// Sums of products one of whose factors is read under a guard: the CPU makes it once, with its borders.
namespace tc::testing {
namespace {

struct Padded {
  const char* name;
  std::vector<std::string> parameters;
  std::string result, statement;
  std::map<std::string, int64_t> sizes;
  bool is_padded = true;
  std::vector<std::string> before = {};  ///< statements that set T
};

void PrintTo(const Padded& p, std::ostream* out) { *out << p.name; }

const Padded kAll[] = {
    {"convolution",
     {"float32(N, C, H, W) I", "float32(O, C, 3, 3) F"},
     "float32(N, O, H, W) R",
     "R(n,o,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(n,c,h + kh - 1,w + kw - 1) : 0.0)"
     " * F(o,c,kh,kw) where h in 0:H, w in 0:W",
     {{"N", 2}, {"C", 5}, {"H", 11}, {"W", 17}, {"O", 20}}},
    {"halves, channels last",
     {"float16(H, W, C) I", "float16(3, 3, C, O) F"},
     "float32(H, W, O) R",
     "R(h,w,o) +=! float32(h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? I(h + kh - 1,w + kw - 1,c)"
     " : float16(0.5)) * float32(F(kh,kw,c,o)) where h in 0:H, w in 0:W",
     {{"C", 8}, {"H", 9}, {"W", 10}, {"O", 40}}},
    {"causal, dilated",
     {"float32(B, C, T) X", "float32(O, C, K) W"},
     "float32(B, O, T) R",
     "R(b,o,t) +=! (t >= 2 * k ? X(b,c,t - 2 * k) : 0.0) * W(o,c,k)",
     {{"B", 2}, {"C", 12}, {"T", 40}, {"O", 32}, {"K", 3}}},
    {"strided, a border of ones, least of sums",
     {"int32(C, H) X", "int32(O, C, K) W"},
     "int32(O, L) R",
     "R(o,h) min=! (3 * h + k >= 2 && 3 * h + k < H + 2 ? X(c,3 * h + k - 2) : 1) + W(o,c,k) where h in 0:L",
     {{"C", 9}, {"H", 60}, {"L", 20}, {"O", 64}, {"K", 5}}},
    {"of a tensor that is written before, and lies across",
     {"float32(N, K) A", "float32(K, M) B"},
     "float32(M, N) R",
     "R(m,n) +=! (n + j >= 1 && n + j <= N ? T(n + j - 1,k) : 0.0) * B(k,m) where j in 0:3, n in 0:N",
     {{"N", 64}, {"M", 48}, {"K", 32}},
     true,
     {"float32 T(n,k) = A(n,k) * 2"}},
    {"few uses",
     {"float32(T) X", "float32(K) W"},
     "float32(T) R",
     "R(t) +=! (t >= k ? X(t - k) : 0.0) * W(k)",
     {{"T", 20000}, {"K", 4}},
     false},
    {"a guard of something else",
     {"float32(C, T) X", "float32(O, C, K) W"},
     "float32(O, T) R",
     "R(o,t) +=! (t >= k && c % 2 == 0 ? X(c,t - k) : 0.0) * W(o,c,k)",
     {{"C", 12}, {"T", 40}, {"O", 32}, {"K", 3}},
     false},
};

RandomProgram program_of(const Padded& padded) {
  RandomProgram result;
  result.parameters = padded.parameters;
  result.results = {{"R", padded.result}};
  for (const std::string& statement : padded.before) {
    result.targets.emplace_back("T");
    result.statements.push_back(statement);
  }
  result.targets.emplace_back("R");
  result.statements.push_back(padded.statement);
  result.sizes = padded.sizes;
  return result;
}

class PaddedOperands : public ::testing::TestWithParam<Padded> {};

TEST_P(PaddedOperands, AgreeWithTheOracle) {
  const RandomProgram source = program_of(GetParam());
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Outcome outcome =
        run_program(source, seed == 0 ? cpu_backend() : cpu_backend(random_cpu_options(seed), seed));
    EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
    EXPECT_GT(outcome.elements, 0);
  }
}

TEST_P(PaddedOperands, AreMadeWhereTheyAreUsedOften) {
  const ir::Program program = specialised_from(program_of(GetParam()).source(), GetParam().sizes);
  const ir::Program prepared = cpu::prepare_operands(program, {});
  EXPECT_EQ(prepared.statements.size() > program.statements.size(), GetParam().is_padded);
}

INSTANTIATE_TEST_SUITE_P(Cases, PaddedOperands, ::testing::ValuesIn(kAll));

}  // namespace
}  // namespace tc::testing
