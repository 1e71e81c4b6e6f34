#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tc/compile/pipeline.h"
#include "tc/cpu/object.h"
#include "tc/cpu/target.h"
#include "tests/random/differential.h"

/// Programs that were compiled to wrong numbers by a step behind the proof of their schedule: by a mark, by one of
/// Halide's passes, by one of LLVM's.
namespace tc::testing {
namespace {

constexpr char kSkylake[] = "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41";
/// What a Zen 4 is to Halide 14, which looks for bfloat16 and VNNI. LLVM 14 does not know "znver4".
constexpr char kZen4[] =
    "x86-64-linux-avx-avx2-avx512-avx512_skylake-avx512_cannonlake-avx512_sapphirerapids-f16c-fma-sse41";

void expect_agreement(const RandomProgram& source, const Backend& backend) {
  const Outcome outcome = run_program(source, backend);
  EXPECT_EQ(outcome.verdict, Outcome::Verdict::kAgrees) << outcome.report;
  EXPECT_GT(outcome.elements, 0);
}

RandomProgram program(const std::vector<std::string>& parameters, const std::map<std::string, std::string>& results,
                      const std::vector<std::pair<std::string, std::string>>& statements,
                      const std::map<std::string, int64_t>& sizes) {
  RandomProgram result;
  result.seed = 1;
  result.parameters = parameters;
  result.results = results;
  for (const auto& [target, text] : statements) {
    result.targets.push_back(target);
    result.statements.push_back(text);
  }
  result.sizes = sizes;
  return result;
}

// --- a vector of updates of which some meet --------------------------------------------------------------------

struct Scattered {
  const char* subscripts;  ///< of the left side
  bool matrix;             ///< A has two dimensions
};
constexpr Scattered kScattered[] = {
    {"i/2", false},   {"i/3", false},    {"i/16", false},   {"i%4", false},  {"i%8", false},
    {"N-1-i", false}, {"i,j/2", true},   {"i/2,j/2", true}, {"i,j%4", true}, {"(i+j)/2", true},
    {"i+j", true},    {"i/4+j%4", true}, {"i%2,j", true},   {"i/2+j", true}, {"i,(j*3+1)%N", true},
};

class Collisions : public ::testing::TestWithParam<Scattered> {};

TEST_P(Collisions, NoUpdateIsLost) {
  for (const char* type : {"float32", "float64", "int32", "int8", "uint16", "float16"}) {
    for (const char* op : {"+=!", "min=!", "max=!", "+="}) {
      for (const int64_t n : {4, 8, 13, 64}) {
        const bool narrow_sum = op[0] == '+' && std::string(type).find("32") == std::string::npos;
        if ((narrow_sum || std::string(op) == "min=!") && n != 8) continue;  // the mechanism has no more
        const std::string a = fmt::format("{}({}) A", type, GetParam().matrix ? "N,N" : "N");
        const std::string dimensions = std::string(GetParam().subscripts).find(',') != std::string::npos &&
                                               std::string(GetParam().subscripts)[0] != '('
                                           ? "2*N,2*N"
                                           : "2*N";
        const std::string t = fmt::format("{}({}) T", type, dimensions);
        const std::string text = fmt::format("T({}) {} A({}) where i in 0:N{}", GetParam().subscripts, op,
                                             GetParam().matrix ? "i,j" : "i", GetParam().matrix ? ", j in 0:N" : "");
        const RandomProgram source = program({a}, {{"T", t}}, {{"T", text}}, {{"N", n}});
        expect_agreement(source, cpu_backend());
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(BehindTheProof, Collisions, ::testing::ValuesIn(kScattered));

// --- an extremum of the index itself ------------------------------------------------------------------------------

TEST(BehindTheProof, AnExtremumOfAnIndexIsThatOfAllItsValues) {
  for (const char* type : {"int32", "int64", "int16", "float32"}) {
    for (const char* value : {"k", "k/2", "k%5", "7-k", "k*k%11"}) {
      for (const char* range : {"0:10", "3:9", "0:1000", "9:10"}) {
        for (const char* op : {"min=!", "max=!", "min=", "max=", "+=!"}) {
          const std::string t = fmt::format("{} T", type);
          const RandomProgram source = program(
              {"float32(N) A"}, {{"T", t}},
              {{"T", fmt::format("T {} {}({}) where k in {}, exists A(0)", op, type, value, range)}}, {{"N", 2}});
          expect_agreement(source, cpu_backend());
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

// --- a read behind a write of a part, in a loop that LLVM vectorises ---------------------------------------------

RandomProgram partly_written(int64_t n, int64_t m, const std::string& range, const std::string& op) {
  return program({"float32(M,N) B"}, {{"T", "float32(N,M) T"}, {"O", "float32(N,M) O"}},
                 {{"T", fmt::format("T(i,j) {} B(j,i) where {}", op, range)},
                  {"O", "O(i,j) = T(i,j)*2.0 where i in 0:N, j in 0:M"}},
                 {{"N", n}, {"M", m}});
}

TEST(BehindTheProof, APartThatIsWrittenIsReadBack) {
  for (const char* target : {kSkylake, kZen4}) {
    const bool runs = cpu::host_can_run(cpu::parse_target(target).value());
    for (const int64_t n : {16, 20, 37, 64, 100}) {
      for (const int64_t m : {2, 3, 4, 5, 8}) {
        for (const char* range : {"i in 1:N-1, j in 1:M-1", "i in 2:N-1, j in 0:M-1"}) {
          if (m == 2 && range[5] == '1') continue;  // an empty range
          const RandomProgram source = partly_written(n, m, range, "=");
          expect_agreement(source, cpu_backend_optimised_for(target));
          if (runs) expect_agreement(source, cpu_backend({}, std::nullopt, target));
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
    expect_agreement(partly_written(64, 4, "i in 1:N-1, j in 1:M-1", "+="), cpu_backend_optimised_for(target));
  }
}

/// Objects for both are compiled on any machine, and run by the test above where they can.
TEST(BehindTheProof, ObjectsForSkylakeAndZen4AreCompiledAnywhere) {
  for (const auto& [target, cpu] : {std::pair(kSkylake, "skylake-avx512"), {kZen4, "icelake-server"}}) {
    EXPECT_EQ(cpu::parse_target(target).value().cpu, cpu);
    compile::Settings settings;
    settings.target = target;
    settings.given.sizes = {{"N", 64}, {"M", 4}};
    compile::Compilation compilation;
    compilation.source = std::make_shared<const Source>(
        "partly.tc",
        "def f(float(M,N) B) -> (float(N,M) T, float(N,M) O) { T(i,j) = B(j,i) where i in 1:N-1, j in 1:M-1\n"
        "O(i,j) = T(i,j)*2.0 where i in 0:N, j in 0:M }");
    ASSERT_TRUE(compile::run_passes(settings, compilation, "object")) << target;
    EXPECT_EQ(compilation.object->target, cpu::canonical_target(target).value());
    const auto loaded = compile::run_passes(settings, compilation);
    EXPECT_EQ(loaded.has_value(), cpu::host_can_run(cpu::parse_target(target).value())) << target;
  }
}

TEST(BehindTheProof, TheTargetOfAZen4IsThatOfTheTests) {
  std::ifstream info("/proc/cpuinfo");
  const std::string text((std::istreambuf_iterator<char>(info)), std::istreambuf_iterator<char>());
  for (const char* flag : {" avx512_bf16", " avx512_vnni", " avx512ifma", " avx512vbmi"}) {
    if (text.find(flag) == std::string::npos) GTEST_SKIP() << "this processor has no" << flag;
  }
  EXPECT_EQ(cpu::canonical_target("host").value(), cpu::canonical_target(kZen4).value());
}

TEST(BehindTheProof, AnInOutReadsWhatItsOwnStatementsWrite) {
  const RandomProgram source = program(
      {"float32(N,M) B"}, {{"T", "float32(M,N) T"}},
      {{"T", "T(i,j) = B(j,i) where i in 2:N-1, j in 0:M-1"}, {"T", "T(i,j) = T(i-2,j) where i in 2:N-3, j in 3:M-2"}},
      {{"N", 8}, {"M", 8}});
  for (const char* target : {kSkylake, kZen4}) expect_agreement(source, cpu_backend_optimised_for(target));
}

/// A skewed schedule has no vectors: LLVM sees all of its loops, unrolled where they are short.
options::CpuOptions skewed(bool positive_orthant) {
  options::CpuOptions options;
  options.scheduler.fusion = options::Fusion::kMax;
  options.scheduler.allow_skewing = true;
  options.scheduler.positive_orthant = positive_orthant;
  options.parallel = false;
  return options;
}

TEST(BehindTheProof, ASkewedScheduleOverwritesInOrder) {
  const RandomProgram source = program({"int32(N) C"}, {{"R", "int32(N,K) R"}},
                                       {{"R", "R(i,j) max=! C(i) where i in 0:N, j in 0:K, k in 0:4, l in 0:K"},
                                        {"R", "R(i,j) min=! int32(1) where i in 0:N, j in 0:K-2, k in 0:N"}},
                                       {{"N", 4}, {"K", 3}});
  for (const char* target : {kSkylake, kZen4}) {
    expect_agreement(source, cpu_backend_optimised_for(target, skewed(false)));
  }
}

TEST(BehindTheProof, ASkewedScheduleReadsBackASum) {
  for (const int64_t k : {3, 4, 8}) {
    const RandomProgram source =
        program({"float32(M) A"}, {{"T", "uint8(N,K) T"}}, {{"T", "T(j,0) += uint8(1) where j in 0:N, exists A(0)"}},
                {{"N", 4}, {"K", k}, {"M", 1}});
    for (const char* target : {kSkylake, kZen4}) {
      expect_agreement(source, cpu_backend_optimised_for(target, skewed(true)));
    }
  }
}

TEST(BehindTheProof, ASkewedScheduleReadsBySteps) {
  for (const int64_t n : {16, 32, 64}) {
    const RandomProgram source =
        program({"int32(N) A"}, {{"T", "int32(N) T"}}, {{"T", "T(i) = A(i*3 % N) where i in 0:N"}}, {{"N", n}});
    expect_agreement(source, cpu_backend(skewed(true)));
    for (const char* target : {kSkylake, kZen4}) {
      expect_agreement(source, cpu_backend_optimised_for(target, skewed(true)));
    }
  }
}

TEST(BehindTheProof, RandomSkewedProgramsOptimisedForAvx512) {
  for (uint64_t seed = 41'000; seed < 41'040; ++seed) {
    const Outcome outcome = run_one(seed, cpu_backend_optimised_for(seed % 2 ? kSkylake : kZen4, skewed(seed % 3)));
    EXPECT_TRUE(outcome.verdict == Outcome::Verdict::kAgrees || outcome.verdict == Outcome::Verdict::kRejected)
        << outcome.report;
  }
}

TEST(BehindTheProof, RandomProgramsOptimisedForAvx512) {
  for (uint64_t seed = 40'000; seed < 40'040; ++seed) {
    const Outcome outcome = run_one(seed, cpu_backend_optimised_for(seed % 2 ? kSkylake : kZen4));
    EXPECT_TRUE(outcome.verdict == Outcome::Verdict::kAgrees || outcome.verdict == Outcome::Verdict::kRejected)
        << outcome.report;
  }
}

// --- names ---------------------------------------------------------------------------------------------------------

/// Halide calls what it makes "t0": so may a program.
TEST(BehindTheProof, ATensorMayHaveANameOfHalides) {
  const RandomProgram source = program({"float32(K) A"}, {{"T", "uint8(K) T"}},
                                       {{"t0", "uint8 t0(i) max=! uint8(1) where i in 0:K"},
                                        {"t0", "t0(i) max=! uint8(i/2) - t0(0) where i in 0:4"},
                                        {"T", "T(i) = t0(i) where i in 0:K, exists A(i)"}},
                                       {{"K", 4}});
  expect_agreement(source, cpu_backend());
}

// --- vectors of odd sizes -----------------------------------------------------------------------------------------

/// LLVM 14 fails at vectors of 3 bytes of which elements are read again.
TEST(BehindTheProof, TilesOfEveryWidthAreCompiled) {
  for (const char* type : {"uint8", "int16", "bool", "float16", "float32", "float64"}) {
    for (const int64_t m : {2, 3, 4, 6, 7, 8, 11, 14, 16, 20}) {
      options::CpuOptions options;
      options.tile = {32, m, 2};
      options.vector_width = 1;
      const bool is_bool = std::string(type) == "bool";
      const std::string t = fmt::format("{}(N,M) T", is_bool ? "uint8" : type);
      const std::string value = is_bool ? "uint8(A(i,j))" : "A(i,j)";
      const RandomProgram source = program(
          {fmt::format("{}(N,M) A", type)}, {{"T", t}},
          {{"T", fmt::format("T(i,j) max= {} where i in 0:N, j in 0:M-1, k in 0:N", value)}}, {{"N", 20}, {"M", m}});
      expect_agreement(source, cpu_backend(options));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

/// The same at masked accesses of 7 lanes, on processors that have them.
TEST(BehindTheProof, VectorsOfEveryWidthAreCompiledForAvx512) {
  for (const char* type : {"uint8", "int16", "float32", "int64"}) {
    for (const int64_t lanes : {3, 5, 6, 7, 11, 13}) {
      compile::Settings settings;
      settings.options.tile = {lanes, 32};
      settings.options.vector_width = 32;
      settings.options.unroll = 8;
      settings.options.parallel = false;
      settings.target = kZen4;
      compile::Compilation compilation;
      const std::string text = fmt::format(
          "def f() -> ({0}({1}) T) {{ T(2) min=! T(k) - T(i) where i in 0:{1}, k in 0:{1} }}", type, lanes + 1);
      compilation.source = std::make_shared<const Source>("widths.tc", text);
      const Result<void> done = compile::run_passes(settings, compilation, "object");
      EXPECT_TRUE(done) << text << "\n" << (done ? "" : done.error().to_string());
    }
  }
}

}  // namespace
}  // namespace tc::testing
