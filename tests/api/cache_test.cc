#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tc/api/tc.h"
#include "tc/cache/cache.h"
#include "tc/cache/version.h"
#include "tc/compile/cached.h"
#include "tests/common/temporary_folder.h"

namespace tc::api {
namespace {

constexpr char kText[] = R"(
def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }
def scaled(float(N) a, float s) -> (b) { b(n) = a(n) * s }
)";
constexpr char kSpacedText[] = R"(
# The same in other words.
def mv(float(M,K) A,
       float(K) x) -> (y) {
  y(m) +=!   A(m, k) * x(k)
}
)";

Request mv_of(int64_t m, int64_t k) { return {.entry = "mv", .sizes = {{"M", m}, {"K", k}}}; }

template <typename T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return std::move(*result);
}

/// Runs the kernel of mv on small integers and compares with the sums.
void expect_product(const CompiledKernel& kernel, int64_t m, int64_t k) {
  std::vector<Tensor> inputs;
  inputs.push_back(value_of(Tensor::allocate({.shape = {m, k}})));
  inputs.push_back(value_of(Tensor::allocate({.shape = {k}})));
  auto* a = static_cast<float*>(inputs[0].data());
  auto* x = static_cast<float*>(inputs[1].data());
  for (int64_t i = 0; i < m * k; ++i) a[i] = static_cast<float>(i % 7 - 3);
  for (int64_t i = 0; i < k; ++i) x[i] = static_cast<float>(i % 5 - 2);
  std::vector<Tensor> outputs = value_of(kernel.allocate_outputs());
  const auto done = kernel.run(inputs, outputs);
  ASSERT_TRUE(done) << done.error().to_string();
  for (int64_t row = 0; row < m; ++row) {
    float sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += a[row * k + i] * x[i];
    ASSERT_EQ(static_cast<const float*>(outputs[0].data())[row], sum);
  }
}

TEST(EngineCache, TheSameRequestGivesTheSameKernel) {
  const Engine engine = value_of(Engine::create(kText));
  const CompiledKernel first = value_of(engine.compile(mv_of(8, 16)));
  (void)value_of(engine.compile(mv_of(8, 16)));
  (void)value_of(engine.compile(mv_of(8, 17)));
  EXPECT_EQ(engine.statistics().compiled, 2);
  EXPECT_EQ(engine.statistics().memory_hits, 1);
  EXPECT_FALSE(first.provenance().from_file);
}

TEST(EngineCache, MemoryIsBounded) {
  const Engine engine = value_of(Engine::create(kText, "tc", {.memory_bytes = 0}));
  (void)value_of(engine.compile(mv_of(8, 16)));
  (void)value_of(engine.compile(mv_of(8, 16)));
  EXPECT_EQ(engine.statistics().compiled, 2);
  const Engine small = value_of(Engine::create(kText, "tc", {.memory_bytes = 60'000}));
  for (const int64_t k : {16, 17, 18, 19, 16, 19}) (void)value_of(small.compile(mv_of(8, k)));
  EXPECT_EQ(small.statistics().memory_hits, 1) << "16 was forgotten, 19 was not";
}

TEST(EngineCache, AScalarThatIsNotCompiledInIsNoOtherKernel) {
  const Engine engine = value_of(Engine::create(kText));
  for (const double s : {1.0, 2.0, 3.0}) {
    (void)value_of(engine.compile({.entry = "scaled", .sizes = {{"N", 8}}, .scalars = {{"s", s}}}));
  }
  EXPECT_EQ(engine.statistics().compiled, 1);
}

TEST(EngineCache, AFileServesAnotherEngine) {
  const testing::TemporaryFolder folder;
  const EngineOptions options{.cache = folder.path("c")};
  expect_product(value_of(value_of(Engine::create(kText, "tc", options)).compile(mv_of(9, 33))), 9, 33);
  const Engine engine = value_of(Engine::create(kText, "tc", options));
  const CompiledKernel kernel = value_of(engine.compile(mv_of(9, 33)));
  EXPECT_EQ(engine.statistics().file_hits, 1);
  EXPECT_EQ(engine.statistics().compiled, 0);
  EXPECT_TRUE(kernel.provenance().from_file);
  EXPECT_EQ(kernel.provenance().compiler, cache::compiler_version());
  EXPECT_TRUE(kernel.pass_times().empty());
  EXPECT_EQ(kernel.inputs()[0].shape, (std::vector<int64_t>{9, 33}));
  EXPECT_EQ(kernel.outputs()[0].shape, (std::vector<int64_t>{9}));
  expect_product(kernel, 9, 33);
  // No subscript depends on data, so that the check of such subscripts changes nothing.
  Request checked = mv_of(9, 33);
  checked.options.check_bounds = true;
  EXPECT_TRUE(value_of(value_of(Engine::create(kText, "tc", options)).compile(checked)).provenance().from_file);
  // The same kernel for tensors in place of sizes, and for the text in other words.
  const Request by_shapes{.entry = "mv", .inputs = {TensorSpec{.shape = {9, 33}}, TensorSpec{.shape = {33}}}};
  (void)value_of(engine.compile(by_shapes));
  EXPECT_EQ(engine.statistics().file_hits, 2);
  const Engine spaced = value_of(Engine::create(kSpacedText, "tc", options));
  (void)value_of(spaced.compile(by_shapes));
  EXPECT_EQ(spaced.statistics().file_hits, 1);
}

TEST(EngineCache, AnotherNameIsNotAnotherKernel) {
  const testing::TemporaryFolder folder;
  const EngineOptions options{.cache = folder.path("c")};
  (void)value_of(value_of(Engine::create(kText, "tc", options)).compile(mv_of(9, 33)));
  const char* renamed = "def product(float(P,Q) W, float(Q) v) -> (r) { r(i) +=! W(i,j) * v(j) }";
  const Engine engine = value_of(Engine::create(renamed, "tc", options));
  const CompiledKernel kernel = value_of(engine.compile({.sizes = {{"P", 9}, {"Q", 33}}}));
  EXPECT_EQ(engine.statistics().file_hits, 1);
  EXPECT_EQ(kernel.signature().parameters[0].name, "W");
  expect_product(kernel, 9, 33);
  const auto wrong = kernel.run(std::span<const Tensor>(), {});
  EXPECT_EQ(wrong.error().to_string(), "error: the call has 0 inputs; the kernel takes 2\n");
}

TEST(EngineCache, AConstantOrAnOptionIsAnotherKernel) {
  const testing::TemporaryFolder folder;
  const EngineOptions options{.cache = folder.path("c")};
  const auto text = [](const char* constant) {
    return std::string("def f(float(N) a) -> (b) { b(n) = a(n) * ") + constant + " }";
  };
  const Request request{.sizes = {{"N", 8}}};
  (void)value_of(value_of(Engine::create(text("0.1"), "tc", options)).compile(request));
  const Engine other = value_of(Engine::create(text("0.10000001"), "tc", options));
  (void)value_of(other.compile(request));
  EXPECT_EQ(other.statistics().compiled, 1);
  const Engine same = value_of(Engine::create(text("0.1"), "tc", options));
  for (Request changed : {request, request, request, request}) {
    const int64_t which = same.statistics().compiled;
    if (which == 0) changed.options.strict = true;
    if (which == 1) changed.options.unroll = 2;
    if (which == 2) changed.sizes["N"] = 9;
    if (which == 3) changed.inputs = {TensorSpec{.shape = {8}, .strides = {2}}}, changed.sizes.clear();
    (void)value_of(same.compile(changed));
  }
  EXPECT_EQ(same.statistics().compiled, 4);
  EXPECT_EQ(same.statistics().file_hits, 0);
}

/// Notes a time for each kernel of mv in the file: the shorter the longer the options' text.
void measure(const std::string& path, const std::string& device) {
  auto file = value_of(cache::Cache::open(path));
  for (const cache::Listed& line : value_of(file->list())) {
    if (line.entry != "mv") continue;
    ASSERT_TRUE(file->add({.problem = line.key.problem,
                           .options = line.key.options,
                           .device = device,
                           .time_us = 100.0 - static_cast<double>(line.key.options.size())}));
  }
}

std::string this_processor() { return value_of(compile::device_name({})); }

TEST(EngineCache, BestKnownOptionsAreTaken) {
  const testing::TemporaryFolder folder;
  const EngineOptions options{.cache = folder.path("c")};
  Request unrolled = mv_of(8, 16);
  unrolled.options.unroll = 3;
  {
    const Engine engine = value_of(Engine::create(kText, "tc", options));
    (void)value_of(engine.compile(mv_of(8, 16)));
    (void)value_of(engine.compile(unrolled));
  }
  const auto options_taken = [&] {
    const CompiledKernel kernel = value_of(value_of(Engine::create(kText, "tc", options)).compile(mv_of(8, 16)));
    EXPECT_TRUE(kernel.provenance().from_file);
    expect_product(kernel, 8, 16);
    return kernel.provenance().options;
  };
  EXPECT_EQ(options_taken(), "") << "nothing was measured";
  measure(options.cache, "another processor");
  EXPECT_EQ(options_taken(), "") << "nothing was measured here";
  measure(options.cache, this_processor());
  EXPECT_EQ(options_taken(), "unroll: 3\n");
  const Engine production = value_of(Engine::production(options.cache));
  EXPECT_EQ(value_of(production.compile(mv_of(8, 16))).provenance().options, "unroll: 3\n");
  // The kernel gone, its options are still the best known.
  auto file = value_of(cache::Cache::open(options.cache));
  for (const cache::Listed& line : value_of(file->list())) EXPECT_TRUE(value_of(file->remove(line.key)));
  const Engine engine = value_of(Engine::create(kText, "tc", options));
  EXPECT_EQ(value_of(engine.compile(mv_of(8, 16))).provenance().options, "unroll: 3\n");
  EXPECT_EQ(engine.statistics().compiled, 1);
}

TEST(EngineCache, NearestShape) {
  const testing::TemporaryFolder folder;
  EngineOptions options{.cache = folder.path("c")};
  for (const auto& [k, unroll] : {std::pair(64, 2), std::pair(1024, 4)}) {
    Request request = mv_of(8, k);
    request.options.unroll = unroll;
    (void)value_of(value_of(Engine::create(kText, "tc", options)).compile(request));
  }
  measure(options.cache, this_processor());
  const auto options_taken = [&](int64_t k) {
    const CompiledKernel kernel = value_of(value_of(Engine::create(kText, "tc", options)).compile(mv_of(8, k)));
    expect_product(kernel, 8, k);
    return kernel.provenance().options;
  };
  EXPECT_EQ(options_taken(100), "");
  options.nearest = true;
  EXPECT_EQ(options_taken(101), "unroll: 2\n");
  EXPECT_EQ(options_taken(900), "unroll: 4\n");
  const Engine engine = value_of(Engine::create(kText, "tc", options));
  EXPECT_TRUE(value_of(engine.compile(mv_of(8, 900))).provenance().from_file);
}

TEST(EngineCache, Production) {
  const testing::TemporaryFolder folder;
  const EngineOptions options{.cache = folder.path("c")};
  {
    const Engine engine = value_of(Engine::create(kText, "tc", options));
    (void)value_of(engine.compile(mv_of(9, 33)));
    ASSERT_TRUE(value_of(cache::Cache::open(options.cache))->export_to(folder.path("exported"), {}));
  }
  const Engine engine = value_of(Engine::production(folder.path("exported"), {.text = kSpacedText}));
  expect_product(value_of(engine.compile(mv_of(9, 33))), 9, 33);
  EXPECT_EQ(value_of(engine.infer(mv_of(5, 6))).outputs[0].shape, (std::vector<int64_t>{5}));
  const auto missing = engine.compile(mv_of(9, 34));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().to_string().find("has no kernel of 'mv' for 9x34 on x86-64-linux"), std::string::npos)
      << missing.error().to_string();
  const auto unknown =
      Engine::production(folder.path("exported"), {.text = "def f(float(N) a) -> (b) { b(n) = a(n) }"});
  EXPECT_EQ(unknown.error().to_string(),
            "error: the cache " + folder.path("exported") + " does not know the def 'f'\n");
  const std::string both = std::string(kText) + "def f(float(N) a) -> (b) { b(n) = a(n) }";
  const Engine partly = value_of(Engine::production(folder.path("exported"), {.text = both}));
  expect_product(value_of(partly.compile(mv_of(9, 33))), 9, 33);
  EXPECT_EQ(partly.compile({.entry = "f", .sizes = {{"N", 3}}}).error().to_string(), unknown.error().to_string());
  // Without a text: by the names in the file. The caller decides what a miss is.
  const Engine fallback = value_of(Engine::create(kText));
  const Engine lenient = value_of(
      Engine::production(folder.path("exported"),
                         {.on_miss = [&](const Request& request, const Error&) { return fallback.compile(request); }}));
  EXPECT_EQ(lenient.entries(), (std::vector<std::string>{"mv", "scaled"}));
  expect_product(value_of(lenient.compile(mv_of(9, 34))), 9, 34);
  EXPECT_EQ(fallback.statistics().compiled, 1);
  EXPECT_EQ(lenient.statistics().compiled, 0);
}

TEST(EngineCache, AnotherCompilersKernelIsProvedAgain) {
  const testing::TemporaryFolder folder;
  const EngineOptions options{.cache = folder.path("c")};
  (void)value_of(value_of(Engine::create(kText, "tc", options)).compile(mv_of(9, 33)));
  // As an older compiler would have left it.
  const auto age = [&](const char* proved_text) {
    auto file = value_of(cache::Cache::open(options.cache));
    const cache::Key key = value_of(file->list()).front().key;
    cache::Entry entry = *value_of(file->find(key));
    ASSERT_TRUE(value_of(file->remove(key)));
    cache::Key old = key;
    old.compiler = "0.0.9";
    entry.certificate.compiler = "0.0.9";
    if (proved_text) entry.certificate.proved_text = proved_text;
    ASSERT_TRUE(file->put(old, entry));
  };
  age(nullptr);
  {
    const Engine engine = value_of(Engine::create(kText, "tc", options));
    expect_product(value_of(engine.compile(mv_of(9, 33))), 9, 33);
    EXPECT_EQ(engine.statistics().reproved, 1);
    EXPECT_EQ(engine.statistics().compiled, 0);
  }
  {
    const Engine again = value_of(Engine::create(kText, "tc", options));
    (void)value_of(again.compile(mv_of(9, 33)));
    EXPECT_EQ(again.statistics().reproved, 0) << "proved once, it is this compiler's";
    EngineOptions always = options;
    always.reprove = Reprove::kAlways;
    const Engine strict = value_of(Engine::create(kText, "tc", always));
    (void)value_of(strict.compile(mv_of(9, 33)));
    EXPECT_EQ(strict.statistics().reproved, 1);
  }
  std::filesystem::remove(options.cache);
  (void)value_of(value_of(Engine::create(kText, "tc", options)).compile(mv_of(9, 33)));
  age("another schedule's");
  std::vector<std::string> warnings;
  EngineOptions warned = options;
  warned.on_warning = [&](const std::string& sentence) { warnings.push_back(sentence); };
  const Engine engine = value_of(Engine::create(kText, "tc", warned));
  expect_product(value_of(engine.compile(mv_of(9, 33))), 9, 33);
  EXPECT_EQ(engine.statistics().compiled, 1);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0], "the cache " + options.cache +
                             ": a kernel of 'mv' that compiler 0.0.9 made cannot be proved again; it is compiled anew");
}

TEST(EngineCache, ADamagedEntryIsReportedAndCompiled) {
  const testing::TemporaryFolder folder;
  const EngineOptions options{.cache = folder.path("c")};
  (void)value_of(value_of(Engine::create(kText, "tc", options)).compile(mv_of(9, 33)));
  {
    // Somewhere in the machine code.
    std::FILE* file = std::fopen(options.cache.c_str(), "r+");
    std::string bytes(std::filesystem::file_size(options.cache), '\0');
    ASSERT_EQ(std::fread(bytes.data(), 1, bytes.size(), file), bytes.size());
    const size_t at = bytes.find(".text");
    ASSERT_NE(at, std::string::npos);
    std::fseek(file, static_cast<long>(at), SEEK_SET);
    std::fputc('!', file);
    std::fclose(file);
  }
  std::vector<std::string> warnings;
  EngineOptions warned = options;
  warned.on_warning = [&](const std::string& sentence) { warnings.push_back(sentence); };
  const Engine engine = value_of(Engine::create(kText, "tc", warned));
  expect_product(value_of(engine.compile(mv_of(9, 33))), 9, 33);
  EXPECT_EQ(engine.statistics().compiled, 1);
  ASSERT_FALSE(warnings.empty());
  EXPECT_NE(warnings[0].find("is damaged (its checksum does not match); it is skipped"), std::string::npos);
  const Engine after = value_of(Engine::create(kText, "tc", options));
  (void)value_of(after.compile(mv_of(9, 33)));
  EXPECT_EQ(after.statistics().file_hits, 1) << "what was compiled has replaced it";
}

}  // namespace
}  // namespace tc::api
