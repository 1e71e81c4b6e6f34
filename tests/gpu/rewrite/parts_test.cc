#include "tc/gpu/rewrite/parts.h"

#include <gtest/gtest.h>

#include "tc/gpu/rewrite/memory_order.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Reductions over several indices, in parts that keep the device busy.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// Those of the sizes that the text has.
ir::Program sized(const std::string& text, const Sizes& all) {
  Sizes sizes;
  for (const std::string& name : program_from(text).sizes) sizes[name] = all.at(name);
  return specialised_from(text, sizes);
}

/// A device on which a few thousand instances are worth a launch.
gpu::Device small_device() {
  gpu::Device device;
  device.processors = 8;
  device.instances_of_launch = 512;
  return device;
}

constexpr const char* kSpellings[] = {
    "def f(float(K,M,N) x, float(N) w) -> (s) { s +=! x(k,m,n) * w(n) }",
    "def f(float(K,M,N) x, float(N) w) -> (s) { s max=! w(n) * x(k,m,n) }",
    "def f(float(K,M,N) x, float(M) b) -> (s) { s min=! x(k,m,n) * b(m) }",
    "def f(half(K,M,N) x, half(K) a, half(N) w) -> (s) { s +=! float(a(k)) * float(x(k,m,n)) * float(w(n)) }",
    "def f(float(K,M,N) x) -> (s) { s +=! x(k,m,n) * float(n) }",
    "def f(float(K,M,N) x, float(N) w) -> (s) { s(k) +=! w(n) * x(k,m,n) }",
    "def f(float(K,M,N) x, float(M) b) -> (s) { s(n) max=! x(k,m,n) * b(m) }",
    "def f(float(K,M,N) x, float(K) a, float(M) b) -> (s) { s(n) +=! a(k) * b(m) * x(k,m,n) }",
    "def f(float(K,M,N) x, float(K) a) -> (s) { s(n) +=! a(k) * x(k,m,n) }",
};

/// Microseconds by estimate, and those that the launches and memory need.
struct Times {
  double estimated = 0, least = 0;
};

Times times_of(const ir::Program& program) {
  const gpu::Device device;
  const Result<gpu::Mapping> mapping = mapped(program);
  if (!mapping) return {};
  Times times;
  int64_t bytes = 0;
  for (const ir::Tensor& tensor : program.tensors) {
    int64_t size = tensor.type.bytes();
    for (const int64_t extent : ir::constant_shape(tensor)) size *= extent;
    bytes += size;
  }
  times.least = static_cast<double>(bytes) / device.memory_bytes_per_us;
  for (const gpu::Estimate& estimate : mapping->estimates) {
    times.estimated += estimate.us;
    times.least += 1.1;
  }
  return times;
}

TEST(PartsOfSeveral, TakeAboutAsLongAsMemory) {
  for (const char* text : kSpellings) {
    for (const Sizes& sizes : std::vector<Sizes>{{{"K", 8}, {"M", 512}, {"N", 512}},
                                                 {{"K", 64}, {"M", 256}, {"N", 1024}},
                                                 {{"K", 509}, {"M", 127}, {"N", 64}},
                                                 {{"K", 2}, {"M", 4096}, {"N", 2048}}}) {
      const Times times = times_of(sized(text, sizes));
      EXPECT_GT(times.estimated, 0);
      EXPECT_LT(times.estimated, 2 * times.least) << text << " K=" << sizes.at("K") << " N=" << sizes.at("N");
    }
  }
}

TEST(PartsOfSeveral, OfAProductOfAVectorAndAMatrix) {
  const Times times = times_of(specialised_from("def f(float(K,N) A, float(K) x) -> (y) { y(n) +=! x(k) * A(k,n) }",
                                                {{"K", 4096}, {"N", 4096}}));
  EXPECT_GT(times.estimated, 0);
  EXPECT_LT(times.estimated, 2 * times.least);
}

TEST(PartsOfSeveral, AgreeWithTheOracle) {
  for (const char* text : kSpellings) {
    for (const Sizes& sizes : std::vector<Sizes>{{{"K", 8}, {"M", 24}, {"N", 64}},
                                                 {{"K", 3}, {"M", 131}, {"N", 33}},
                                                 {{"K", 37}, {"M", 2}, {"N", 160}},
                                                 {{"K", 1}, {"M", 61}, {"N", 67}}}) {
      EXPECT_EQ(faults_of(sized(text, sizes), small_device()), "") << text << " K=" << sizes.at("K");
    }
  }
}

TEST(PartsOfSeveral, AreOfTheIndexThatLeapsFarthest) {
  const auto partial_shape = [](const char* text, const Sizes& sizes) {
    ir::Program program = gpu::reduce_along_memory(sized(text, sizes));
    const gpu::ContractionParts none = {[](const auto&, const auto&) { return false; },
                                        [](const auto&, const auto&, const auto&) { return std::nullopt; }};
    const Result<gpu::Prepared> parts = gpu::split_into_parts(std::move(program), {}, {}, none);
    return parts ? ir::constant_shape(parts->program.tensor("s_parts")) : ir::Shape{};
  };
  // Rows of memory stay whole.
  EXPECT_EQ(partial_shape(kSpellings[0], {{"K", 1}, {"M", 2048}, {"N", 2048}}), ir::Shape({512}));
  EXPECT_EQ(partial_shape(kSpellings[1], {{"K", 1}, {"M", 2048}, {"N", 2048}}), ir::Shape({512}));
  // Indices that are too short share the cut.
  EXPECT_EQ(partial_shape(kSpellings[0], {{"K", 16}, {"M", 128}, {"N", 1024}}), ir::Shape({16, 32}));
  EXPECT_EQ(partial_shape(kSpellings[0], {{"K", 4}, {"M", 4}, {"N", 262144}}), ir::Shape({4, 4, 32}));
  // Two parts of 1009 rows each, but for the last.
  EXPECT_EQ(partial_shape(kSpellings[0], {{"K", 1}, {"M", 1009}, {"N", 2048}}), ir::Shape({504}));
}

TEST(PartsOfSeveral, AreAskedForByTheirNumber) {
  const ir::Program program = sized(kSpellings[0], {{"K", 16}, {"M", 64}, {"N", 1024}});
  const Result<gpu::Mapping> chosen = mapped(program);
  ASSERT_TRUE(chosen);
  const std::optional<int64_t> count = chosen->kernels.at(0).chosen.split_reduction;
  ASSERT_TRUE(count);
  EXPECT_GT(*count, 64);
  options::MappingOptions options;
  options.split_reduction = count;
  const Result<gpu::Mapping> asked = mapped(program, options);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->kernels.at(0).grid, chosen->kernels.at(0).grid);
  for (const int64_t other : {2, 3, 48}) {
    options.split_reduction = other;
    EXPECT_EQ(difference(sized(kSpellings[0], {{"K", 4}, {"M", 24}, {"N", 256}}), options), "") << other;
  }
}

TEST(PartsOfSeveral, LeaveStrictSumsInTheirOrder) {
  options::MappingOptions options;
  options.strict = true;
  const ir::Program program = sized(kSpellings[1], {{"K", 8}, {"M", 512}, {"N", 512}});
  const Result<gpu::Mapping> mapping = mapped(program, options);
  ASSERT_TRUE(mapping);
  EXPECT_EQ(mapping->program.workspace.size(), 0U);
  EXPECT_EQ(difference(sized(kSpellings[1], {{"K", 2}, {"M", 9}, {"N", 17}}), options), "");
}

}  // namespace
}  // namespace tc::testing
