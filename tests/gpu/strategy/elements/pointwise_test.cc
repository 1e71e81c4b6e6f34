#include <gtest/gtest.h>

#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Parts in which a thread has elements of its own: oracle = simulator, proved bounds and order, vectors where aligned.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// How many elements the widest copy takes at once.
int widest_copy(const std::string& text, const Sizes& sizes) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), {});
  int widest = 0;
  for (const tile::Kernel& kernel : mapping->program.kernels) {
    tile::for_each_node(kernel.body, [&](const tile::Node& node) {
      if (const auto* move = std::get_if<tile::Move>(&node.node)) widest = std::max(widest, move->elements);
    });
  }
  return widest;
}

TEST(Elements, OfEverySizeAgreeWithTheOracle) {
  for (const char* text :
       {"def f(float(N) A) -> (B) { B(n) = A(n) * 2 }",
        "def f(float16(N) A, float16(N) B) -> (C, D) { C(n) = A(n) + B(n)  D(n) = C(n) * A(n) }",
        "def f(int32(N) A) -> (B) { B(n) += A(n)  B(n) = B(n) * B(n) }", "def f(int8(N) A) -> (B) { int8 B(n) = A(n) }",
        "def f(float(N) A) -> (B) { B(i) +=! A(i) * k where k in 0:3 }"}) {
    for (const int64_t n : {0, 1, 7, 255, 256, 257, 1023, 1536, 270340}) {
      SCOPED_TRACE(fmt::format("{} N={}", text, n));
      EXPECT_EQ(faults_of(specialised_from(text, {{"N", n}})), "");
    }
  }
}

TEST(Elements, OfSeveralDimensionsAndShortReductions) {
  const std::string text = R"(
    def f(float(N,C,H,W) A, float(C) s) -> (B, M) {
      B(n,c,h,w) = A(n,c,h,w) * s(c)
      M(n,c,h,w) max=! B(n,c,h,w) - A(n, c, h, w) * k where k in 0:11
    })";
  for (const auto& [n, c, h, w] : {std::array<int64_t, 4>{1, 1, 1, 1}, {2, 3, 5, 7}, {3, 5, 4, 300}, {7, 3, 17, 64}}) {
    SCOPED_TRACE(fmt::format("{} {} {} {}", n, c, h, w));
    EXPECT_EQ(faults_of(specialised_from(text, {{"N", n}, {"C", c}, {"H", h}, {"W", w}})), "");
  }
}

TEST(Elements, AreCopiedAsVectorsWhereThatIsAligned) {
  const std::string copy = "def f(float(N) A) -> (B) { B(n) = A(n) }";
  EXPECT_EQ(widest_copy(copy, {{"N", 100'000'000}}), 4);
  EXPECT_EQ(widest_copy(copy, {{"N", 99'999'999}}), 4);
  const std::string rows = "def f(float16(M,N) A, float16(M) s) -> (B) { B(m,n) = A(m,n) * s(m) }";
  EXPECT_EQ(widest_copy(rows, {{"M", 10'000}, {"N", 4096}}), 8);
  EXPECT_EQ(widest_copy(rows, {{"M", 10'000}, {"N", 4094}}), 2);
  EXPECT_EQ(widest_copy(rows, {{"M", 10'000}, {"N", 4095}}), 0);
  const std::string window = "def f(float(N) A) -> (B) { B(n) = A(n) + A(n + 1) + A(n + 4) }";
  EXPECT_EQ(widest_copy(window, {{"N", 100'000'000}}), 4);
  const std::string wide = "def f(float(N) A) -> (B) { B(n) = A(n) + A(n + 5) }";
  EXPECT_EQ(widest_copy(wide, {{"N", 100'000'000}}), 0);
  const std::string shifted = "def f(float(N) A) -> (B) { B(n) = A(n + 1) }";
  EXPECT_EQ(widest_copy(shifted, {{"N", 100'000'000}}), 0);
}

/// Threads have several rows where each has little of one. Neighbours that go through a few runs in turn, as those of a
/// pixel shuffle, are read side by side.
TEST(Elements, OfShortRowsHaveSeveralRowsOfAThread) {
  gpu::Device device;
  device.processors = 1;
  const std::string upsampled =
      "def f(float16(N,H,W) X) -> (Y) { Y(n,h,w) = X(n,h/2,w/2) where h in 0:2*H, w in 0:2*W }";
  const std::string shuffled =
      "def f(float16(N,2,2,H,W) X) -> (Y) { Y(n,h,w) = X(n,h%2,w%2,h/2,w/2) where h in 0:2*H, w in 0:2*W }";
  const std::string odd = "def f(float(N,H,W) X, float(W) b) -> (Y) { Y(n,h,w) = X(n,h,w) + b(w) }";
  for (const auto& [text, sizes] : {std::pair{upsampled, Sizes{{"N", 8}, {"H", 20}, {"W", 28}}},
                                    {shuffled, {{"N", 8}, {"H", 32}, {"W", 20}}},
                                    {odd, {{"N", 3}, {"H", 96}, {"W", 61}}}}) {
    SCOPED_TRACE(text);
    const ir::Program program = specialised_from(text, sizes);
    EXPECT_EQ(faults_of(program, device), "");
    const Result<gpu::Mapping> mapping = mapped(program, {}, device);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(mapping->kernels[0].recipe, gpu::Recipe::kElements);
    const std::vector<int64_t>& elements = mapping->kernels[0].chosen.register_tile;
    EXPECT_GT(elements[elements.size() - 2], 1) << gpu::report(*mapping);
    const Result<gpu::Mapping> again = mapped(program, mapping->kernels[0].chosen, device);
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(tile::to_text(again->program), tile::to_text(mapping->program));
  }
}

TEST(Elements, FollowOptionsForRowsOfAThread) {
  const ir::Program program =
      specialised_from("def f(float(N,W) X, float(W) b) -> (Y) { Y(n,w) = X(n,w) + b(w) }", {{"N", 50}, {"W", 61}});
  for (const int64_t rows : {1, 2, 3, 7}) {
    const options::MappingOptions options{
        .tile = {4 * rows, 61}, .map_to_threads = {61, 4}, .register_tile = {rows, 1}};
    const Result<gpu::Mapping> mapping = mapped(program, options, {});
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(mapping->kernels[0].recipe, gpu::Recipe::kElements);
    EXPECT_EQ(mapping->program.kernels[0].grid[0], (50 + 4 * rows - 1) / (4 * rows));
    EXPECT_EQ(difference(program, options), "") << rows;
  }
}

/// Few threads wait for the numbers of rows: vectors cost no more time, as long as a row has a warp.
TEST(Elements, OfChosenRowsAreReadAsVectorsByFewThreads) {
  const std::string look_up =
      "def f(float(E,D) T, int32(B,L) I) -> (O) { O(b,d) +=! T(I(b,l),d) where b in 0:B, l in 0:L }";
  EXPECT_EQ(widest_copy(look_up, {{"E", 1000}, {"D", 64}, {"B", 128}, {"L", 50}}), 2);
  EXPECT_EQ(widest_copy(look_up, {{"E", 1000}, {"D", 32}, {"B", 128}, {"L", 50}}), 0);
  EXPECT_EQ(widest_copy(look_up, {{"E", 1000}, {"D", 64}, {"B", 65'536}, {"L", 50}}), 4);
  EXPECT_EQ(difference(specialised_from(look_up, {{"E", 50}, {"D", 64}, {"B", 8}, {"L", 10}})), "");
}

TEST(Elements, OfWindowsAgreeWithTheOracle) {
  for (const char* text : {"def f(float(N) A) -> (B) { B(n) = A(n) + A(n + 1) * A(n + 2) }",
                           "def f(float16(N) A) -> (B) { B(n) = A(n + 3) + A(n) + A(n + 2) }",
                           "def f(float(N) A, float(N) D) -> (B) { B(n) = A(n + 4) - A(n) + D(n + 1) }"}) {
    for (const int64_t n : {5, 6, 300'000, 300'001, 300'002, 300'003}) {
      SCOPED_TRACE(fmt::format("{} N={}", text, n));
      EXPECT_EQ(faults_of(specialised_from(text, {{"N", n}})), "");
    }
  }
}

/// Whether a loop that is not laid out as a vector reads the tensor in memory.
bool is_read_in_loop(const tile::Kernel& kernel, const std::string& tensor) {
  bool found = false;
  tile::for_each_node(kernel.body, [&](const tile::Node& node) {
    const auto* loop = std::get_if<tile::For>(&node.node);
    if (loop == nullptr || loop->unrolled) return;
    tile::for_each_node(loop->body, [&](const tile::Node& inner) {
      const auto* move = std::get_if<tile::Move>(&inner.node);
      found = found || (move != nullptr && move->source == tensor);
    });
  });
  return found;
}

/// What rows have in common is read once for several of them; they have threads of their own where threads are few.
TEST(Elements, OfSeveralRowsReadTheirColumnOnce) {
  const std::string text = "def f(float(M,N) A, float(N) s, float(N) t) -> (B) { B(m,n) = (A(m,n) - s(n)) / t(n) }";
  const Sizes large = {{"M", 8192}, {"N", 8192}};
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, large), {});
  EXPECT_EQ(mapping->kernels[0].chosen.register_tile, (std::vector<int64_t>{8, 4}));
  EXPECT_TRUE(is_read_in_loop(mapping->program.kernels[0], "A"));
  EXPECT_FALSE(is_read_in_loop(mapping->program.kernels[0], "s"));
  const Result<gpu::Mapping> few = mapped(specialised_from(text, {{"M", 8192}, {"N", 64}}), {});
  EXPECT_EQ(few->kernels[0].chosen.register_tile.at(0), 1);
  for (const int64_t rows : {1, 2, 5}) {
    for (const auto& [m, n] : {std::array<int64_t, 2>{10, 12}, {23, 7}, {16, 260}}) {
      SCOPED_TRACE(fmt::format("{} x {}, {} rows", m, n, rows));
      const options::MappingOptions options{.map_to_threads = {4, 2}, .register_tile = {rows, 4}};
      EXPECT_EQ(difference(specialised_from(text, {{"M", m}, {"N", n}}), options), "");
    }
  }
}

/// Layers of threads stand on whole rows.
TEST(Pointwise, ThreadsInZNeedAllOfALoopInY) {
  const ir::Program program = specialised_from(
      "def f(float(F,C,3,3) G, float(F,C,3) B) -> (O) { O(f,c,r,s) = G(f,c,r,s) + B(f,c,s) }", {{"F", 7}, {"C", 11}});
  for (const std::vector<int64_t>& threads : {std::vector<int64_t>{3, 3, 4}, {3, 3, 28}, {1, 3, 2}}) {
    EXPECT_EQ(difference(program, {.map_to_threads = threads}), "");
  }
  for (const std::vector<int64_t>& threads : {std::vector<int64_t>{3, 8, 4}, {3, 2, 4}}) {
    const Result<gpu::Mapping> mapping = mapped(program, {.map_to_threads = threads});
    if (!mapping) continue;  // else another recipe does as the options say
    EXPECT_NE(mapping->kernels.at(0).recipe, gpu::Recipe::kElements);
    EXPECT_EQ(difference_of_mapping(program, *mapping), "");
  }
}

}  // namespace
}  // namespace tc::testing
