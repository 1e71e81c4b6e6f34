#include <gtest/gtest.h>

#include <set>

#include "tc/compile/cached.h"
#include "tc/support/check.h"
#include "tests/compile/programs.h"

namespace tc::compile {
namespace {

using testing::compilation_of;
using testing::settings_for;

constexpr const char* kMv = "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }";

Settings gpu_settings(Backend backend) {
  Settings settings = settings_for({{"M", 5}, {"K", 6}});
  settings.backend = backend;
  return settings;
}

TEST(GpuPipeline, PassesHaveDistinctNamesAndACommonFront) {
  for (Backend backend : {Backend::kCuda, Backend::kSimulator}) {
    std::set<std::string> names;
    for (size_t i = 0; i < passes(backend).size(); ++i) {
      const Pass& pass = passes(backend)[i];
      EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
      EXPECT_NE(pass.run, nullptr) << pass.name;
      EXPECT_NE(pass.dump, nullptr) << pass.name;
      const std::vector<Pass>& of_cpu = passes(Backend::kCpu);
      EXPECT_EQ(i < of_cpu.size() && pass.run == of_cpu[i].run, i < 4 || i == 5) << pass.name;
    }
  }
  EXPECT_EQ(find_pass("stmt", Backend::kCuda).error().to_string(),
            "error: there is no pass 'stmt'; there are parse, analyse, program, specialise, prepare, scop, schedule, "
            "map, tile, cuda, cubin, load\n");
}

TEST(GpuPipeline, StopsAfterEachPassAndGoesOn) {
  const Settings settings = gpu_settings(Backend::kCuda);
  Compilation compilation = compilation_of(kMv);
  for (size_t i = 0; std::string(passes(Backend::kCuda)[i].name) != "cubin"; ++i) {
    const std::string name = passes(Backend::kCuda)[i].name;
    const Result<void> done = run_passes(settings, compilation, name);
    ASSERT_TRUE(done) << done.error().to_string();
    ASSERT_EQ(compilation.done, i + 1);
    const Result<std::string> text = dump(settings, compilation, name);
    ASSERT_TRUE(text) << text.error().to_string();
    EXPECT_FALSE(text->empty()) << name;
  }
}

/// A statement without instances needs no piece and no launch.
TEST(GpuPipeline, VerifiesStatementsWithoutInstances) {
  Settings settings = settings_for({{"M", 5}, {"K", 0}});
  settings.backend = Backend::kSimulator;
  ASSERT_TRUE(settings.verify);
  Compilation compilation = compilation_of(kMv);
  const Result<void> done = run_passes(settings, compilation, "tile");
  EXPECT_TRUE(done) << done.error().to_string();
}

/// What the verifier of a pass says of a compilation that has been changed.
template <typename Change>
std::string fault_after(const char* name, Change change) {
  constexpr const char* kTwo = R"(
def two(float(M,K) A, float(K,N) B, float(N,P) W) -> (C, D) {
  C(m,n) +=! A(m,k) * B(k,n)
  D(m,p) +=! C(m,n) * W(n,p)
})";
  Settings settings = settings_for({{"M", 128}, {"K", 256}, {"N", 256}, {"P", 128}});
  settings.backend = Backend::kCuda;
  Compilation compilation = compilation_of(kTwo);
  const Result<void> done = run_passes(settings, compilation, name);
  EXPECT_TRUE(done) << done.error().to_string();
  change(compilation);
  try {
    const Result<void> verified = passes(Backend::kCuda)[*find_pass(name, Backend::kCuda)].verify(compilation);
    return verified ? "" : verified.error().to_string();
  } catch (const InternalError& fault) {
    const std::string text = fault.what();
    const size_t at = text.find("error: ");
    return text.substr(at, text.find('\n') - at);
  }
}

TEST(GpuPipeline, PiecesInWrongOrderAreFound) {
  const auto swapped = [](Compilation& c) { std::swap(c.pieces->pieces.at(0), c.pieces->pieces.at(1)); };
  EXPECT_EQ(fault_after("schedule", [](Compilation&) {}), "");
  EXPECT_EQ(fault_after("schedule", swapped), "error: S0 runs after S1, which depends on it");
  EXPECT_EQ(fault_after("schedule", [](Compilation& c) { c.pieces->pieces.pop_back(); }),
            "error: S1_init is in no piece");
  EXPECT_EQ(fault_after("schedule", [](Compilation& c) { c.pieces->pieces.push_back(c.pieces->pieces.at(0)); }),
            "error: S0_init is in two pieces");
}

TEST(GpuPipeline, LaunchesInWrongOrderAreFound) {
  const auto swapped = [](Compilation& c) { std::swap(c.mapping->kernels.at(0), c.mapping->kernels.at(1)); };
  EXPECT_EQ(fault_after("map", [](Compilation&) {}), "");
  EXPECT_EQ(fault_after("map", swapped),
            "error: two_1 runs { S0[m = 0, n = 0, k = 0] }, which an earlier kernel depends on");
  EXPECT_EQ(fault_after("map", [](Compilation& c) { c.mapping->kernels.pop_back(); }),
            "error: no kernel runs { S1[m = 0, p = 0, n = 0] }");
  EXPECT_EQ(fault_after("map", [](Compilation& c) { c.mapping->kernels.at(1) = c.mapping->kernels.at(0); }),
            "error: two_1 runs again what an earlier kernel runs: { S0[m = 0, n = 0, k = 0] }");
}

TEST(GpuPipeline, TheSameInputGivesTheSameText) {
  const Settings settings = gpu_settings(Backend::kCuda);
  Compilation first = compilation_of(kMv), second = compilation_of(kMv);
  ASSERT_TRUE(run_passes(settings, first, "cuda"));
  ASSERT_TRUE(run_passes(settings, second, "cuda"));
  EXPECT_EQ(first.cuda_text, second.cuda_text);
}

/// The entry of a cache counts what the verifiers proved, where they ran.
TEST(GpuPipeline, EntriesSayWhatWasProved) {
  for (const bool verify : {false, true}) {
    Settings settings = gpu_settings(Backend::kCuda);
    settings.verify = verify;
    Compilation compilation = compilation_of(kMv);
    ASSERT_TRUE(run_passes(settings, compilation, "cuda"));
    EXPECT_EQ(compilation.proof.has_value(), verify);
    compilation.compiled = cuda::Compiled{};
    const std::string plain = "accesses in bounds, schedule legal";
    const std::string statement = entry_of(settings, compilation).certificate.statement;
    EXPECT_EQ(statement, verify ? plain + ", verified after every pass: " + tile::summary(*compilation.proof) : plain);
  }
}

TEST(GpuPipeline, TheTextBeginsWithSourceShapesAndOptions) {
  Settings settings = gpu_settings(Backend::kCuda);
  settings.mapping = {.tile = {4, 4}, .map_to_threads = {8}};
  Compilation compilation = compilation_of(std::string(kMv) + "\ndef other(float(N) x) -> (y) { y(i) = x(i) }");
  settings.entry = "mv";
  ASSERT_TRUE(run_passes(settings, compilation, "cuda"));
  const std::string& text = compilation.cuda_text;
  EXPECT_TRUE(
      text.starts_with("// def mv(float32(M, K) A, float32(K) x) -> (y) {\n"
                       "//   y(m) +=! A(m, k) * x(k)\n"
                       "// }\n"
                       "// A(5, 6), x(6), y(5)\n"
                       "// kernel mv_0: "))
      << text;
  EXPECT_NE(text.find("\n//   estimate: "), std::string::npos) << text;
  EXPECT_NE(text.find("\n//   options: tile: [4, 4] map_to_threads: [8]\n"), std::string::npos) << text;
}

TEST(GpuTarget, LimitsAreThoseOfTheArchitecture) {
  EXPECT_EQ(target_of_arch("sm_75")->device.shared_bytes, 65536);
  EXPECT_EQ(target_of_arch("sm_86")->device.processors, 84);
  EXPECT_EQ(target_of_arch("sm_90a")->device.shared_bytes, 232448);
  EXPECT_EQ(target_of_arch("sm_103")->device.shared_bytes, 232448);  // like sm_100
  EXPECT_EQ(target_of_arch("hopper").error().to_string(),
            "error: 'hopper' is no GPU architecture; one is written like sm_80 or sm_90a\n");
}

TEST(GpuPipeline, ABudgetEndsTheMapping) {
  Settings settings = gpu_settings(Backend::kSimulator);
  settings.budget.isl_operations = 2000;
  Compilation compilation = compilation_of(kMv);
  const Result<void> done = run_passes(settings, compilation);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), ErrorKind::kBudget) << done.error().to_string();
}

}  // namespace
}  // namespace tc::compile
