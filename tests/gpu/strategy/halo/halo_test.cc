#include <gtest/gtest.h>

#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Temporaries that are read near the element that is written: one launch, whose tiles overlap.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

constexpr char kSums[] = R"(
def blur(int32(N,M) X, int32(R) w) -> (Y) {
  T(i,j) +=! X(i,j+r) * w(r)
  Y(i,j) +=! T(i+r,j) * w(r)
})";
constexpr char kByHand[] = R"(
def blur(int32(N,M) X) -> (Y) {
  T(i,j) = X(i,j) + 2 * X(i,j+1) + X(i,j+2)
  Y(i,j) = T(i,j) + 2 * T(i+1,j) + T(i+2,j)
})";
constexpr char kGuarded[] = R"(
def blur(int32(N,M) X) -> (Y) {
  T(i,j) = (j > 0 ? X(i,j-1) : 0) + X(i,j) + (j < M - 1 ? X(i,j+1) : 0) where i in 0:N, j in 0:M
  Y(i,j) = (i > 0 ? T(i-1,j) : 0) + T(i,j) + (i < N - 1 ? T(i+1,j) : 0) where i in 0:N, j in 0:M
})";
constexpr char kClamped[] = R"(
def blur(int32(N,M) X) -> (Y) {
  T(i,j) = X(i,max(j-1,0)) + X(i,j) + X(i,min(j+1,M-1)) where i in 0:N, j in 0:M
  Y(i,j) = T(max(i-1,0),j) + T(i,j) + T(min(i+1,N-1),j) where i in 0:N, j in 0:M
})";
constexpr char kThreeStages[] = R"(
def f(int32(N,M) X) -> (Y) {
  A(i,j) = X(i,j) + X(i,j+1)
  B(i,j) max=! A(i+r,j) where r in 0:3
  Y(i,j) = B(i,j) - B(i+1,j+2)
})";
constexpr char kTwoReaders[] = R"(
def f(int32(N,M) X) -> (Y, Z) {
  T(i,j) = X(i,j) + 2 * X(i,j+1) + X(i,j+2)
  Y(i,j) = T(i,j) - T(i+1,j) + T(i+2,j)
  Z(i,j) = T(i,j) * Y(i,j)
})";

/// On which few elements are many, so that they have launches of their own.
gpu::Device busy_device() {
  gpu::Device device = gpu::device_of_architecture(90);
  device.instances_of_launch = 256;
  return device;
}

std::string faults(const char* text, const Sizes& sizes) {
  return faults_of(specialised_from(text, sizes), busy_device());
}

bool has_halo(const char* text, const Sizes& sizes) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), {}, busy_device());
  return mapping && mapping->kernels.size() == 1 && mapping->kernels[0].recipe == gpu::Recipe::kHalo;
}

/// How many launches a def has on the largest GPU of an architecture.
size_t launches(const char* text, const Sizes& sizes, const options::MappingOptions& options = {}) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), options, gpu::device_of_architecture(90));
  EXPECT_TRUE(mapping);
  return mapping ? mapping->kernels.size() : 0;
}

TEST(Halo, BlursAreOneLaunchInEverySpelling) {
  for (const int64_t r : {3, 5, 7}) EXPECT_EQ(launches(kSums, {{"N", 8192}, {"M", 8192}, {"R", r}}), 1U) << r;
  for (const char* text : {kByHand, kGuarded, kClamped, kThreeStages}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(launches(text, {{"N", 8192}, {"M", 8192}}), 1U);
  }
}

TEST(Halo, TilesAgreeExactlyAndAreProved) {
  for (const auto& [n, m] : {std::pair<int64_t, int64_t>{5, 6}, {40, 64}, {70, 131}, {129, 300}}) {
    SCOPED_TRACE(fmt::format("{} x {}", n, m));
    EXPECT_EQ(faults(kSums, {{"N", n}, {"M", m}, {"R", 3}}), "");
    EXPECT_EQ(faults(kSums, {{"N", n + 6}, {"M", m + 6}, {"R", 5}}), "");
    for (const char* text : {kByHand, kGuarded, kClamped, kThreeStages, kTwoReaders}) {
      SCOPED_TRACE(text);
      EXPECT_EQ(faults(text, {{"N", n}, {"M", m}}), "");
      EXPECT_TRUE(n < 40 || has_halo(text, {{"N", n}, {"M", m}}));
    }
  }
}

TEST(Halo, TilesHaveAnyNumberOfDimensions) {
  const char* const texts[] = {
      "def f(int32(N) X) -> (Y) { T(i) = X(i) + X(i+1)  Y(i) = T(i) * T(i+3) }",
      R"(def f(int32(N,N,N) X) -> (Y) {
        T(a,b,c) = X(a,b,c) + X(a,b,c+1)
        Y(a,b,c) = T(a,b,c) + T(a+1,b+1,c)
      })",
      // Neighbours of another tensor's rows.
      R"(def f(int32(N) s, int32(N,N) X) -> (Y) {
        T(i) = s(i) * 2
        Y(i,j) = T(i) * X(i,j) + T(i+1)
      })",
  };
  for (const char* text : texts) {
    for (const int64_t n : {9, 33, 70}) {
      SCOPED_TRACE(fmt::format("{} {}", n, text));
      EXPECT_EQ(faults(text, {{"N", n}}), "");
    }
  }
}

TEST(Halo, TilesHaveElementsOfEveryType) {
  for (const char* type : {"int8", "float16", "float", "double", "int64"}) {
    const std::string text = fmt::format(R"(
      def f({0}(N,M) X) -> (Y) {{
        T(i,j) = fmax(fmax(X(i,j), X(i,j+1)), X(i,j+2))
        Y(i,j) = fmin(fmin(T(i,j), T(i+1,j)), T(i+2,j))
      }})",
                                         type);
    SCOPED_TRACE(text);
    EXPECT_EQ(faults(text.c_str(), {{"N", 100}, {"M", 203}}), "");
  }
}

TEST(Halo, IsReadFromMemoryAboutOnce) {
  const ir::Program program = specialised_from(kByHand, {{"N", 514}, {"M", 1026}});
  const Result<gpu::Mapping> mapping = mapped(program, {}, busy_device());
  ASSERT_TRUE(mapping);
  ASSERT_EQ(mapping->kernels.size(), 1U);
  EXPECT_EQ(mapping->kernels[0].recipe, gpu::Recipe::kHalo);
  EXPECT_EQ(mapping->kernels[0].in_shared.count("T"), 1U);
  EXPECT_TRUE(mapping->program.workspace.empty());
  tile::Report report;
  ASSERT_TRUE(simulated(program, *mapping, data_for(program, 1), 1, &report));
  EXPECT_EQ(report.counters.at(0).global_bytes_written, 512 * 1024 * 4);
  EXPECT_LT(report.counters.at(0).global_bytes_read, 1.2 * 512 * 1024 * 4);
}

TEST(Halo, ResultsAreWrittenOnce) {
  const char* text = R"(
    def f(int32(N,M) X) -> (T, Y) {
      T(i,j) = X(i,j) + X(i,j+1)
      Y(i,j) = T(i,j) + T(i+1,j)
    })";
  EXPECT_EQ(launches(text, {{"N", 8192}, {"M", 8192}}), 2U);
  EXPECT_EQ(faults(text, {{"N", 60}, {"M", 70}}), "");
}

/// Blocks that compute a temporary again would see what others have changed.
TEST(Halo, NothingIsReadThatTheLaunchWrites) {
  const char* text = R"(
    def f(int32(N,M) X) -> (int32(N,M) Y) {
      T(i,j) = Y(i,j) + X(i,j)
      Y(i,j) = T(i,j) + T(i+1,j) where i in 0:N-1, j in 0:M
    })";
  EXPECT_EQ(launches(text, {{"N", 4096}, {"M", 4096}}), 2U);
  EXPECT_EQ(faults(text, {{"N", 60}, {"M", 70}}), "");
}

/// What a launch before has written of a temporary is not in a tile.
TEST(Halo, TemporariesWithSeveralWritersAgree) {
  const char* const texts[] = {
      R"(def f(int32(N,N) X, int32(N) b) -> (Y) {
        T(i,j) = b(i) where i in 0:N, j in 0:N
        T(i,j) max= X(i,j) * X(i,j+1) * X(i,j+2) where i in 0:N, j in 0:N-2
        Y(i,j) = T(i,j) + T(i+1,j) * T(i+2,j)
      })",
      R"(def f(int32(N,N) X) -> (s, Y) {
        T(i,j) = X(i,j) + 2 * X(i,j+1) + 3 * X(i,j+2)
        s(j) +=! T(i,j)
        T(i,j) = T(i,j) - X(i,j)
        Y(i,j) = T(i,j) * s(j) + T(i+1,j)
      })",
  };
  for (const char* text : texts) {
    for (const int64_t n : {20, 90}) {
      SCOPED_TRACE(fmt::format("{} {}", n, text));
      EXPECT_EQ(faults(text, {{"N", n}}), "");
    }
  }
}

TEST(Halo, RecurrencesStayInOrder) {
  const char* text = R"(
    def f(int32(N,M) X) -> (Y) {
      T(i,j) = X(i,j) + 2 * X(i,j+1) + X(i,j+2)
      T(i,j) += T(i-1,j) where i in 1:N, j in 0:M-2
      Y(i,j) = T(i,j) - T(i+1,j)
    })";
  EXPECT_EQ(faults(text, {{"N", 40}, {"M", 50}}), "");
}

/// A sum of many products costs more than memory.
TEST(Halo, LongReductionsAreNotRepeated) {
  const char* text = R"(
    def f(float(N,K) A, float(K,M) B) -> (Y) {
      T(i,j) +=! A(i,k) * B(k,j)
      Y(i,j) = T(i,j) + T(i+1,j)
    })";
  EXPECT_EQ(launches(text, {{"N", 1024}, {"M", 1024}, {"K", 512}}), 2U);
}

TEST(Halo, LaunchesThatCopyTheSameTensorStayApart) {
  const char* text = R"(
    def f(float32(4) A, int32(N) B) -> (T, S, U) {
      T(i,j) = (B(j) == B(j) ? A(i) : 1.5)
      S(i) +=! T(3 - r,i + 2) where i in 8:11, r in 0:4, k in 0:N
      S(i) +=! (B(k) == B(k) ? A(r) + S(i) : 1.5) where r in 2:4
      U(i,j) min=! T(i + 1,j) where i in 0:2, r in 1:4
    })";
  options::MappingOptions options;
  options.use_shared_memory = true;
  const ir::Program program = specialised_from(text, {{"N", 20}});
  const Result<gpu::Mapping> mapping = mapped(program, options, gpu::device_of_architecture(90));
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels.size(), 2U);
  EXPECT_EQ(unproved(mapping->program) + difference(program, options, 1), "");
}

TEST(Halo, OptionsLeaveLaunchesApart) {
  const Sizes sizes = {{"N", 8192}, {"M", 8192}};
  options::MappingOptions options;
  options.use_shared_memory = false;
  EXPECT_EQ(launches(kByHand, sizes, options), 2U);
  options = {};
  options.kernel = {{.writes = "T"}};
  options.kernel[0].tile = {1, 1024};
  options.kernel[0].register_tile = {1, 4};
  options.kernel[0].map_to_threads = {256, 1};
  EXPECT_EQ(launches(kByHand, sizes, options), 2U);
  options = {};
  options.strict = true;
  EXPECT_EQ(launches(kByHand, sizes, options), 2U);
}

}  // namespace
}  // namespace tc::testing
