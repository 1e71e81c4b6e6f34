#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>

#include "tc/options/presets.h"
#include "tests/compile/programs.h"

/// What travels, stage by stage: tests/golden/PROGRAM/STAGE.txt. scripts/update_golden writes them anew.
namespace tc::compile {
namespace {

struct Golden {
  const char* name;  ///< of examples/NAME.tc
  std::map<std::string, int64_t> sizes;
  std::map<std::string, int64_t> scalars;
  bool gpu = false;         ///< its stages for a GPU too, under the mapping options "naive"
  bool by_default = false;  ///< and without options
};

const std::vector<Golden>& goldens() {
  static const std::vector<Golden> kGoldens = {
      {"mv", {{"M", 128}, {"K", 64}}, {}},
      {"transposed_matmul", {{"M", 128}, {"N", 96}, {"K", 64}}, {}},
      {"sgemm", {{"N", 100}, {"M", 50}, {"K", 70}}, {}, true, true},
      {"fcrelu", {{"B", 32}, {"I", 64}, {"O", 48}}, {}},
      {"conv2d", {{"B", 2}, {"IP", 8}, {"H", 16}, {"W", 18}, {"OP", 16}, {"KH", 3}, {"KW", 3}}, {}, true},
      {"sconv2d", {{"N", 2}, {"C", 4}, {"H", 17}, {"W", 17}, {"F", 8}, {"KH", 3}, {"KW", 3}}, {{"sh", 2}, {"sw", 2}}},
      {"maxpool2x2", {{"B", 2}, {"C", 3}, {"H", 16}, {"W", 32}}, {}, true},
      {"gather", {{"N", 100}, {"A", 20}, {"B", 30}}, {}, true},
      {"softmax", {{"N", 64}, {"D", 100}}, {}},
      {"layernorm", {{"N", 64}, {"D", 100}}, {}},
      {"mlp3", {{"B", 32}, {"N", 64}, {"O", 48}, {"P", 40}, {"Q", 10}}, {}},
      {"padded_conv_copy", {{"H", 100}, {"KH", 3}}, {}},
  };
  return kGoldens;
}

struct Stage {
  const char* file;
  const char* pass;
};
constexpr Stage kStages[] = {{"ast", "analyse"}, {"program", "program"}, {"schedule", "schedule"}, {"stmt", "stmt"}};
constexpr Stage kGpuStages[] = {
    {"gpu_prepare", "prepare"}, {"scop", "scop"}, {"gpu_schedule", "schedule"}, {"map", "map"},
    {"tile", "tile"},           {"cuda", "cuda"}};

/// Of a GPU without options.
constexpr Stage kDefaultStages[] = {
    {"default_schedule", "schedule"}, {"default_map", "map"}, {"default_tile", "tile"}, {"default_cuda", "cuda"}};

const std::filesystem::path kFolder = std::filesystem::path(TC_SOURCE_DIR) / "tests" / "golden";

/// What passes make of a text, in files of a folder.
void expect_recorded(const std::string& source, const std::string& name, const Settings& settings,
                     std::span<const Stage> stages, const std::filesystem::path& folder) {
  Compilation compilation = testing::compilation_of(source, name + ".tc");
  const Result<void> done = run_passes(settings, compilation, stages.back().pass);
  ASSERT_TRUE(done) << done.error().to_string();
  const bool update = std::getenv("TC_UPDATE_GOLDEN") != nullptr;
  for (const Stage& stage : stages) {
    const Result<std::string> text = dump(settings, compilation, stage.pass);
    ASSERT_TRUE(text) << text.error().to_string();
    const std::filesystem::path path = folder / (std::string(stage.file) + ".txt");
    if (update) {
      std::filesystem::create_directories(folder);
      std::ofstream(path, std::ios::binary) << *text;
    }
    ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing; scripts/update_golden writes it";
    EXPECT_EQ(testing::read_whole(path), *text) << path << " is not what the pass '" << stage.pass << "' makes";
  }
}

void expect_recorded(const Golden& golden, const Settings& settings, std::span<const Stage> stages) {
  const std::string name = golden.name;
  const std::string source = testing::read_whole(std::filesystem::path(TC_SOURCE_DIR) / "examples" / (name + ".tc"));
  expect_recorded(source, name, settings, stages, kFolder / name);
}

/// What the verifiers prove of the kernels for a GPU.
void expect_certificate_recorded(const Golden& golden, const Settings& settings, const char* file) {
  const std::filesystem::path example = std::filesystem::path(TC_SOURCE_DIR) / "examples" / golden.name;
  Compilation compilation = testing::compilation_of(testing::read_whole(example.string() + ".tc"));
  const Result<void> done = run_passes(settings, compilation, "tile");
  ASSERT_TRUE(done) << done.error().to_string();
  ASSERT_TRUE(compilation.proof);
  const std::string text = tile::to_text(compilation.mapping->program, *compilation.proof);
  const std::filesystem::path path = kFolder / golden.name / file;
  if (std::getenv("TC_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << text;
  ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing; scripts/update_golden writes it";
  EXPECT_EQ(testing::read_whole(path), text) << path << " is not what the verifiers prove";
}

class GoldenTest : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenTest, EveryStageIsAsRecorded) {
  Settings settings = testing::settings_for(GetParam().sizes, GetParam().scalars);
  expect_recorded(GetParam(), settings, kStages);
  if (!GetParam().gpu) return;
  settings.backend = Backend::kCuda;
  settings.mapping = options::naive();
  expect_recorded(GetParam(), settings, kGpuStages);
  expect_certificate_recorded(GetParam(), settings, "certificate.txt");
  if (!GetParam().by_default) return;
  settings.mapping = {};
  expect_recorded(GetParam(), settings, kDefaultStages);
  expect_certificate_recorded(GetParam(), settings, "default_certificate.txt");
}

INSTANTIATE_TEST_SUITE_P(Programs, GoldenTest, ::testing::ValuesIn(goldens()),
                         [](const auto& info) { return std::string(info.param.name); });

/// The kernel that a user gets of each strategy, by default options, for the largest GPU of an architecture.
struct DefaultKernel {
  const char* strategy;
  const char* text;
  std::map<std::string, int64_t> sizes;
  options::MappingOptions options = {};
  int architecture = 0;  ///< 0: of compute capability 9.0
  bool verify = true;    ///< false: proofs take half a minute; other tests have those of small sizes
};

constexpr char kStrategies[] = "strategies";
const DefaultKernel kDefaultKernels[] = {
    {"contraction",
     "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
     {{"M", 512}, {"N", 512}, {"K", 512}}},
    {"tensor_cores",
     R"(
def f(float16(M,K) A, float16(K,N) B, float(N) b) -> (float(M,N) C) {
  C(m,n) +=! float(A(m,k)) * float(B(k,n))
  C(m,n) = fmax(C(m,n) + b(n), 0)
})",
     {{"M", 1000}, {"N", 1024}, {"K", 516}},
     {.copy_operands = false}},  // else warpgroups multiply a copy
    {"chain",
     R"(
def f(float16(M,K) A, float16(N,K) W, float16(N) b, float16(P,N) V) -> (float16(M,P) O) {
  float S(m,n) +=! A(m,k) * W(n,k)
  float16 H(m,n) = float16(fmax(S(m,n) + b(n), 0.0))
  O(m,p) +=! H(m,n) * V(p,n)
})",
     {{"M", 4000}, {"K", 128}, {"N", 120}, {"P", 64}}},
    {"streamed_chain",
     R"(
def f(float16(B,N,D) Q, float16(B,M,D) K, float16(B,M,E) V) -> (float16(B,N,E) O) {
  float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)
  top(b,n) max=! S(b,n,m)
  float16 P(b,n,m) = float16(exp((S(b,n,m) - top(b,n)) * rsqrt(float(D))))
  float total(b,n) +=! float(P(b,n,m))
  float A(b,n,e) +=! P(b,n,m) * V(b,m,e)
  O(b,n,e) = float16(A(b,n,e) / total(b,n))
})",
     {{"B", 64}, {"N", 4096}, {"M", 4096}, {"D", 128}, {"E", 128}}},
    {"streamed_chain_of_a_triangle",
     R"(
def f(float16(B,N,D) Q, float16(B,N,D) K, float16(B,N,E) V) -> (float16(B,N,E) O) {
  float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)
  S(b,n,m) = m <= n ? S(b,n,m) : -1e30
  top(b,n) max=! S(b,n,m)
  float16 P(b,n,m) = float16(exp((S(b,n,m) - top(b,n)) * rsqrt(float(D))))
  float total(b,n) +=! float(P(b,n,m))
  float A(b,n,e) +=! P(b,n,m) * V(b,m,e)
  O(b,n,e) = float16(A(b,n,e) / total(b,n))
})",
     {{"B", 64}, {"N", 4096}, {"D", 64}, {"E", 64}}},
    {"warpgroups",
     R"(
def f(float16(M,K) A, float16(K,N) B, float16(N) b) -> (C) {
  C(m,n) +=! A(m,k) * B(k,n)
  C(m,n) = fmax(C(m,n) + b(n), 0)
})",
     {{"M", 2048}, {"N", 2048}, {"K", 1088}}},
    {"reductions_of_a_product",
     R"(
def f(float16(M,K) A, float16(K,N) B, float(M,N) T) -> (Q, L) {
  C(m,n) +=! A(m,k) * B(k,n)
  Q(n) max=! C(m,n)
  L +=! (float(C(m,n)) - T(m,n)) * (float(C(m,n)) - T(m,n))
})",
     {{"M", 2000}, {"N", 2048}, {"K", 1032}}},
    {"warpgroups_float8",
     R"(
def f(float8_e4m3(M,K) A, float8_e4m3(N,K) B) -> (float16(M,N) C) {
  C(m,n) +=! half(A(m,k)) * half(B(n,k))
})",
     {{"M", 4096}, {"N", 4096}, {"K", 2064}},
     {.copy_operands = false}},
    {"warpgroups_tf32",
     "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! tf32(A(m,k)) * tf32(B(n,k)) }",
     {{"M", 2048}, {"N", 2048}, {"K", 1024}}},
    {"warpgroups_computed",
     R"(
def f(float16(M,K) X, int8(N,K) W, float16(N,G) S) -> (float16(M,N) Y) {
  float16 D(n,k) = W(n,k) * S(n, k / 128)
  Y(m,n) +=! X(m,k) * D(n,k)
})",
     {{"M", 256}, {"N", 8192}, {"K", 8192}, {"G", 64}}},
    {"selected_slices",
     R"(
def f(bfloat16(T,K) X, bfloat16(P,K,N) W, int(T) E) -> (bfloat16(T,N) Y) {
  Y(t,n) +=! X(t,k) * W(E(t),k,n)
})",
     {{"T", 4096}, {"P", 64}, {"K", 2048}, {"N", 1408}}},
    {"clusters",
     "def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
     {{"M", 4104}, {"N", 4104}, {"K", 4104}},
     {.copy_operands = false}},
    {"cluster_sums",
     R"(
def f(float16(M,K) A, float16(N,K) W, float16(N) b) -> (C) {
  C(m,n) +=! A(m,k) * W(n,k)
  C(m,n) = fmax(C(m,n) + b(n), 0)
})",
     {{"M", 64}, {"N", 8192}, {"K", 8192}}},
    {"padded_convolution",
     R"(
def f(float(N,C,H,W) X, float(O,C,3,3) W1) -> (float(N,O,H,W) Y) {
  Y(n,o,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? X(n,c,h + kh - 1,w + kw - 1) : 0.0) *
    W1(o,c,kh,kw) where h in 0:H, w in 0:W
})",
     {{"N", 8}, {"C", 32}, {"H", 28}, {"W", 28}, {"O", 32}}},
    {"convolution_by_warps",
     R"(
def f(float16(N,C,H,W) X, float16(O,C,3,3) W1, float16(O) b) -> (float16(N,O,H,W) Y) {
  Y(n,o,h,w) +=! (h + kh >= 1 && h + kh <= H && w + kw >= 1 && w + kw <= W ? X(n,c,h + kh - 1,w + kw - 1) : 0) *
    W1(o,c,kh,kw) where h in 0:H, w in 0:W
  Y(n,o,h,w) = relu(Y(n,o,h,w) + b(o))
})",
     {{"N", 32}, {"C", 128}, {"H", 28}, {"W", 28}, {"O", 128}},
     {},
     80,
     false},
    {"pooled_rows",
     R"(
def f(float16(M,K) A, float16(K,N) B, float16(N) b) -> (P) {
  C(m,n) +=! A(m,k) * B(k,n)
  C(m,n) = relu(C(m,n) + b(n))
  P(m,n) max=! C(2*m + i,n) where i in 0:2
})",
     {{"M", 4096}, {"N", 4096}, {"K", 1024}}},
    {"factored_sum",
     R"(
def f(float16(B,I) X, float16(O,I,J) W, float16(B,J) Y) -> (Z) {
  Z(b,o) +=! X(b,i) * W(o,i,j) * Y(b,j)
})",
     {{"B", 2048}, {"O", 128}, {"I", 128}, {"J", 128}}},
    {"three_factors",
     R"(
def f(float16(M,K) A, float16(N,K) B, float16(K) S) -> (C) {
  C(m,n) +=! A(m,k) * B(n,k) * S(k)
})",
     {{"M", 2048}, {"N", 2048}, {"K", 2048}}},
    {"transposition", "def f(float(M,N) A) -> (B) { B(n,m) = A(m,n) }", {{"M", 4096}, {"N", 4096}}},
    {"rows",
     R"(
def f(float(N,D) I) -> (O) {
  m(n) max=! I(n,d)
  s(n) +=! exp(I(n,d) - m(n))
  O(n,d) = exp(I(n,d) - m(n)) / s(n)
})",
     {{"N", 4096}, {"D", 1000}}},
    {"elements", "def f(float(N) A, float(N) B) -> (C) { C(i) = A(i) * sigmoid(B(i)) }", {{"N", 1000000}}},
    {"partial_sums", "def f(float(N) A) -> (s) { s +=! A(i) * A(i) }", {{"N", 10000000}}},
    {"scatter",
     "def f(float(N) A, int32(N) I, float(M) z) -> (float(M) O) { O(j) = z(j)\n O(I(i)) += A(i) }",
     {{"N", 1000000}, {"M", 1000}}},
};

TEST(Golden, DefaultKernelsOfStrategiesAreAsRecorded) {
  for (const DefaultKernel& kernel : kDefaultKernels) {
    SCOPED_TRACE(kernel.strategy);
    Settings settings = testing::settings_for(kernel.sizes);
    settings.backend = Backend::kCuda;
    settings.mapping = kernel.options;
    settings.verify = kernel.verify;
    if (kernel.architecture != 0) settings.gpu.device = gpu::device_of_architecture(kernel.architecture);
    const Stage stages[] = {{kernel.strategy, "cuda"}};
    expect_recorded(kernel.text, "strategy", settings, stages, kFolder / kStrategies);
  }
}

TEST(Golden, NoFolderIsWithoutItsProgram) {
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().string();
    if (name == kStrategies) continue;
    const auto has_name = [&](const Golden& golden) { return golden.name == name; };
    EXPECT_TRUE(std::ranges::any_of(goldens(), has_name)) << name;
  }
}

}  // namespace
}  // namespace tc::compile
