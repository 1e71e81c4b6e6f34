#include <gtest/gtest.h>

#include <set>

#include "tc/gpu/strategy/coverage.h"
#include "tc/gpu/strategy/halo/halo.h"
#include "tc/poly/band_ref.h"
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

/// With a filter of three values where a text has one.
Sizes sized(const char* text, int64_t n, int64_t m) {
  Sizes sizes{{"N", n}, {"M", m}};
  if (text == kSums) sizes["R"] = 3;
  return sizes;
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

/// Borders that are clamped: registers have no subscripts that data or members decide.
TEST(Halo, TilesAreReadFromMemoryAboutOnce) {
  const ir::Program program = specialised_from(kClamped, {{"N", 512}, {"M", 1024}});
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

TEST(Halo, StripsNeedNoSharedMemoryAndNoBarrier) {
  const char* const texts[] = {kSums, kByHand, kGuarded, kThreeStages, kTwoReaders};
  for (const char* text : texts) {
    SCOPED_TRACE(text);
    const Result<gpu::Mapping> mapping =
        mapped(specialised_from(text, sized(text, 4096, 4096)), {}, gpu::device_of_architecture(90));
    ASSERT_TRUE(mapping);
    ASSERT_EQ(mapping->kernels.size(), 1U);
    const tile::Kernel& code = mapping->program.kernels[0];
    EXPECT_EQ(mapping->kernels[0].recipe, gpu::Recipe::kHalo);
    EXPECT_EQ(code.shared_bytes(), 0);
    size_t barriers = 0, vectors = 0;
    tile::for_each_node(code.body, [&](const tile::Node& node) {
      const auto* move = std::get_if<tile::Move>(&node.node);
      barriers += std::holds_alternative<tile::Barrier>(node.node) ? 1 : 0;
      vectors += move && move->elements == 4 ? 1 : 0;
    });
    EXPECT_EQ(barriers, 0U);
    if (text == kByHand) EXPECT_GT(vectors, 0U);
  }
}

/// Reads of one statement that meet in registers: a window of six columns serves four results, and more in a strip.
TEST(Halo, OneStatementHasStrips) {
  const char* const texts[] = {
      R"(def f(half(N,M) X) -> (Y) {
        Y(i,j) = half(float(X(i,j)) + X(i,j+1) + X(i,j+2) + X(i+1,j) + X(i+1,j+1) + X(i+1,j+2) + X(i+2,j) + X(i+2,j+1))
      })",
      R"(def f(float(N,M) X) -> (Y) { Y(i,j) max=! X(i+a,j+b) where a in 0:3, b in 0:3 })",
      R"(def f(float(N,M) X) -> (Y) { Y(i,j) max=! X(2*i+a,2*j+b) where a in 0:2, b in 0:2 })",
      R"(def f(half(N,M) X) -> (Y) {
        Y(i,j) max=! 2*i+a >= 1 && 2*i+a <= N && 2*j+b >= 1 && 2*j+b <= M ? X(2*i+a-1,2*j+b-1) : -1
            where i in 0:N/2, j in 0:M/2, a in 0:3, b in 0:3
      })",
      R"(def f(float(N,M) X, float(3,3) W) -> (Y) { Y(i,j) +=! X(i+2*a,3*j+b) * W(a,b) })",
  };
  for (const char* text : texts) {
    SCOPED_TRACE(text);
    const Result<gpu::Mapping> mapping =
        mapped(specialised_from(text, {{"N", 8192}, {"M", 8192}}), {}, gpu::device_of_architecture(90));
    ASSERT_TRUE(mapping);
    ASSERT_EQ(mapping->kernels.size(), 1U);
    EXPECT_EQ(mapping->kernels[0].recipe, gpu::Recipe::kHalo);
    for (const int64_t n : {5, 9, 33, 70}) EXPECT_EQ(faults(text, {{"N", n}, {"M", 2 * n + 1}}), "");
  }
}

/// Tiles of all sizes and strips of all lengths, with and without copies, whichever is the fastest.
TEST(Halo, EveryPlanAgreesAndIsProved) {
  const char* sums_of_sums = R"(
    def f(int32(N,M) X) -> (int32(N,M) Y, Z) {
      T(i,j) = X(i,j) * 3 where i in 0:N, j in 0:M
      Y(i,j) += (i > 0 ? T(i-1,j) : 5) - T(i,j) where i in 0:N, j in 0:M
      Z(i,j) = Y(i,j) * 2 + (j > 1 ? T(i,j-2) : 7) where i in 0:N, j in 0:M
    })";
  const char* three_dimensions = R"(
    def f(half(N,M,8) X) -> (Y) {
      T(a,b,c) = X(a,b,c) + X(a,b+1,c)
      Y(a,b,c) = T(a,b,c) + T(a+1,b,c)
    })";
  const char* halves = R"(
    def f(int32(N,M) X) -> (Z) {
      T(i,j) = X(i,2*j) + X(i,2*j+1)
      Z(i,j) = T(2*i,j) - T(2*i+1,j) * 2 + (2*i+2 < N ? T(2*i+2,j) : 9) where i in 0:N/2
    })";
  gpu::Device device = busy_device();
  device.processors = 1;  // so that strips of eight rows keep it busy
  std::set<std::vector<int64_t>> strips, tiles;
  for (const char* text :
       {kSums, kByHand, kGuarded, kClamped, kThreeStages, kTwoReaders, sums_of_sums, three_dimensions, halves}) {
    for (const auto& [n, m] : {std::pair<int64_t, int64_t>{67, 74}, {101, 137}, {98, 150}}) {
      SCOPED_TRACE(fmt::format("{} x {}: {}", n, m, text));
      const ir::Program program = specialised_from(text, sized(text, n, m));
      Result<gpu::Mapping> mapping = mapped(program, {}, device);
      ASSERT_TRUE(mapping);
      if (mapping->kernels.size() != 1) continue;
      const poly::Scop& scop = mapping->kernels[0].scop;
      for (const gpu::HaloPlan& plan : gpu::plan_halo(scop, poly::statements_at(scop, scop.schedule.root()), device)) {
        if (!plan.strip && !tiles.insert(plan.tile).second) continue;
        if (plan.strip) strips.insert(plan.tile);
        mapping->program.kernels[0] = gpu::halo(scop, plan, device, mapping->program.kernels[0].name);
        EXPECT_EQ(unproved(mapping->program) + difference_of_mapping(program, *mapping), "");
      }
    }
  }
  for (const std::vector<int64_t>& strip : {std::vector<int64_t>{2, 4}, {8, 1}, {4, 1}})
    EXPECT_EQ(strips.count(strip), 1U);
  EXPECT_GE(tiles.size(), 8U);
}

/// A result that is read before it is written stays in memory, and others are in registers until the end.
TEST(Halo, StripsReadOldResults) {
  const char* const texts[] = {
      R"(def f(int32(N,M) X) -> (int32(N,M) Y) {
        Y(i,j) = Y(i,j) * 2 + X(i,j) + (i + 1 < N ? X(i+1,j) : 0) + (i + 2 < N ? X(i+2,j) : 0)
      })",
      R"(def f(int32(N,M) X) -> (Z, int32(N,M) Y) {
        Z(i,j) = Y(i,j) + (i + 1 < N ? X(i+1,j) : 0) - (i > 1 ? X(i-2,j) : 0) where i in 0:N, j in 0:M
        Y(i,j) = X(i,j) + (i > 0 ? X(i-1,j) : 3) where i in 0:N, j in 0:M
      })",
      R"(def f(int32(N,M) X) -> (int32(N,M) Y) {
        T(i,j) = X(i,j) + (j > 0 ? X(i,j-1) : 3) where i in 0:N, j in 0:M
        Y(i,j) = (i > 0 ? T(i-1,j) : 5) + T(i,j) - (Y(i,j) > 0 ? 1 : 2) where i in 0:N, j in 0:M
      })",
  };
  gpu::Device device = busy_device();
  device.processors = 1;
  size_t strips = 0;
  for (const char* text : texts) {
    for (const auto& [n, m] : {std::pair<int64_t, int64_t>{67, 74}, {101, 137}, {98, 152}}) {
      SCOPED_TRACE(fmt::format("{} x {}: {}", n, m, text));
      const ir::Program program = specialised_from(text, {{"N", n}, {"M", m}});
      Result<gpu::Mapping> mapping = mapped(program, {}, device);
      ASSERT_TRUE(mapping);
      if (mapping->kernels.size() != 1) continue;
      const poly::Scop& scop = mapping->kernels[0].scop;
      for (const gpu::HaloPlan& plan : gpu::plan_halo(scop, poly::statements_at(scop, scop.schedule.root()), device)) {
        if (!plan.strip) continue;
        mapping->program.kernels[0] = gpu::halo(scop, plan, device, mapping->program.kernels[0].name);
        EXPECT_EQ(unproved(mapping->program) + difference_of_mapping(program, *mapping), "");
        ++strips;
      }
    }
  }
  EXPECT_GE(strips, 6U);
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

/// What a reader found: vectors that pass a guard's edge, reads that another read's other branch hides, zeros with a
/// sign, rows that a strip has no index for.
TEST(Halo, CopiesAreWhatGuardsChoose) {
  const char* const texts[] = {
      R"(def f(double(N,M) X) -> (Y) {
        Y(i,j) max=! (3*j + r >= 0 && 3*j + r < M ? X(i + q,3*j + r) : -1.0) where r in 0:3, q in 0:3, j in 0:M/3+1
      })",
      R"(def f(half(N,M) X) -> (Y) {
        Y(i,j) max=! (i + r >= 2 && i + r < N + 2 && 3*j < M ? X(i + r - 2,3*j) : half(-1.0))
            where i in 0:N, r in 0:5, j in 0:M/3+5
      })",
      R"(def f(float(N,M) X, float(N,M) Z) -> (Y) {
        Y(i,j) max=! (i + r >= 6 && i + r < N + 4 ? X(i + r - 4,j) : 0.0) * (i >= 1 ? Z(i - 1,j) : X(i,j))
            where i in 0:N, j in 0:M, r in 0:9
      })",
      R"(def f(int32(N,M) X) -> (Y) {
        Y(i,j) min=! 1.0 / (i + r >= 4 && i + r < N + 4 ? float(X(i + r - 4,j)) : -0.0) where i in 0:N, r in 0:9
      })",
      R"(def f(float(N,M) X, float(N,8) Z) -> (Y) {
        T(i) max=! Z(i,k)
        Y(i,j) = max(max(X(i,j) + T(i), X(i+1,j) + T(i+1)), max(X(i+2,j) + T(i+2), X(i+3,j) + T(i+3)))
      })",
  };
  gpu::Device device = busy_device();
  device.processors = 1;
  int strips = 0;
  for (const char* text : texts) {
    SCOPED_TRACE(text);
    const ir::Program program = specialised_from(text, {{"N", 300}, {"M", 104}});
    Result<gpu::Mapping> mapping = mapped(program, {}, device);
    ASSERT_TRUE(mapping);
    EXPECT_EQ(difference_of_mapping(program, *mapping), "");
    if (mapping->kernels.size() != 1) continue;
    const poly::Scop& scop = mapping->kernels[0].scop;
    for (const gpu::HaloPlan& plan : gpu::plan_halo(scop, poly::statements_at(scop, scop.schedule.root()), device)) {
      strips += plan.strip ? 1 : 0;
      mapping->program.kernels[0] = gpu::halo(scop, plan, device, mapping->program.kernels[0].name);
      EXPECT_EQ(unproved(mapping->program) + difference_of_mapping(program, *mapping), "");
    }
  }
  EXPECT_GE(strips, 6);
}

/// Elements of a temporary that nobody reads, and a minimum to which more is added: nothing is reported.
TEST(Halo, NothingIsMissedThatNobodyReads) {
  const char* const texts[] = {
      R"(def f(int8(N) X) -> (Z) {
        T(i) min=! (2*i + 2*r + 1 < N - 1 ? X(2*i + 2*r + 1) : -5) where i in 1:(N-9)/2, r in 0:7
        Z(i) = T(i + 1) + T(i + 1) where i in 0:(N-9)/2-1
      })",
      R"(def f(float(N,M) X) -> (Z) {
        Z(i,j) min=! (2*j + q >= 1 ? X(2*i + r,2*j + q - 1) : -2.5) where i in 0:N/2-1, j in 0:M/2, r in 0:3, q in 0:2
        Z(i,j) = Z(i,j) + (2*j + 1 < M ? X(2*i,2*j + 1) : -2.5) where i in 0:N/2-1, j in 0:M/2
      })",
  };
  for (const char* text : texts) {
    SCOPED_TRACE(text);
    Sizes sizes;
    for (const std::string& size : program_from(text).sizes)
      sizes[size] = size == "M" ? 514 : text == texts[0] ? 40087 : 299;
    const ir::Program program = specialised_from(text, sizes);
    const Result<gpu::Mapping> mapping = mapped(program, {}, gpu::device_of_architecture(90));
    ASSERT_TRUE(mapping);
    ASSERT_EQ(mapping->kernels.size(), 1U);
    EXPECT_EQ(mapping->kernels[0].recipe, gpu::Recipe::kHalo);
    const tile::Proof proof = gpu::prove(mapping->kernels[0].scop, *mapping);
    for (const tile::Coverage& coverage : proof.coverages) {
      EXPECT_TRUE(coverage.holds()) << fmt::format("{}", fmt::join(coverage.faults, "\n"));
    }
    EXPECT_EQ(difference_of_mapping(program, *mapping), "");
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
