#include "tc/gpu/rewrite/join_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "tc/ir/index_expr.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Statements over parts of one range: one launch, by vectors, as on the oracle.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

const char* const kRotary[] = {
    R"(def f(real(T,H,D) x, real(T,E) c, real(T,E) s) -> (real(T,H,D) y) {
      y(t,h,e) = x(t,h,e) * c(t,e) - x(t,h,e + E) * s(t,e) where e in 0:E
      y(t,h,e + E) = x(t,h,e + E) * c(t,e) + x(t,h,e) * s(t,e) where e in 0:E
    })",
    R"(def f(real(T,H,D) x, real(T,E) c, real(T,E) s) -> (real(T,H,D) y) {
      y(t,h,d) = x(t,h,d) * c(t,d - E) + x(t,h,d - E) * s(t,d - E) where d in E:D
      y(a,b,g) = x(a,b,g) * c(a,g) - x(a,b,g + E) * s(a,g) where g in 0:E
    })",
    R"(def f(real(T,H,D) x, real(T,E) c, real(T,E) s) -> (real(T,H,D) y) {
      y(t,h,d) = d < E ? x(t,h,d) * c(t,d) - x(t,h,d + E) * s(t,d) : x(t,h,d) * c(t,d - E) + x(t,h,d - E) * s(t,d - E)
        where d in 0:D
    })",
    R"(def f(real(T,H,D) x, real(T,D) c, real(T,D) s, real(T,E) e) -> (real(T,H,D) y) {
      y(t,h,d) = x(t,h,d) * c(t,d) + (d / E == 0 ? -x(t,h,d + E) : x(t,h,d - E)) * s(t,d) where d in 0:D, exists e(t,0)
    })"};

ir::Program join_ranges_of(const ir::Program& program) {
  return gpu::join_ranges(
      program, 0, [](const ir::Program&, const ir::Statement& s) { return s.reduces(); },
      [](const std::string&) { return true; });
}

std::string of_type(const char* text, const char* type) { return std::regex_replace(text, std::regex("real"), type); }

struct Shape {
  size_t launches = 0;
  int widest = 0;   ///< elements of the widest copy
  int singles = 0;  ///< stores to global memory
  bool operator==(const Shape&) const = default;
};

void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.launches << " launches, copies of " << s.widest << ", " << s.singles << " single stores";
}

Shape shape_of(const ir::Program& program) {
  const Result<gpu::Mapping> mapping = mapped(program, {});
  Shape shape{mapping->kernels.size()};
  for (const tile::Kernel& kernel : mapping->program.kernels) {
    tile::for_each_node(kernel.body, [&](const tile::Node& node) {
      if (const auto* move = std::get_if<tile::Move>(&node.node)) shape.widest = std::max(shape.widest, move->elements);
      if (const auto* store = std::get_if<tile::Store>(&node.node))
        shape.singles += program.find_tensor(store->tensor) != nullptr;
    });
  }
  return shape;
}

TEST(JoinRanges, RotaryEmbeddingsAreOneLaunchByVectors) {
  const Sizes sizes = {{"T", 8192}, {"H", 32}, {"D", 128}, {"E", 64}};
  for (const char* text : kRotary) {
    EXPECT_EQ(shape_of(specialised_from(of_type(text, "half"), sizes)), (Shape{1, 8, 0})) << text;
    EXPECT_EQ(shape_of(specialised_from(of_type(text, "float"), sizes)), (Shape{1, 4, 0})) << text;
  }
}

/// Reads under a choice come by vectors where whole vectors choose alike.
TEST(JoinRanges, ChoicesOfWholeVectorsKeepVectors) {
  const auto shape = [](const char* condition) {
    const std::string text = fmt::format(
        "def f(float(N) a, float(N) b) -> (y) {{ y(n) = {} ? a(n) * 2 : b(n) + 1 where n in 0:N }}", condition);
    EXPECT_EQ(faults_of(specialised_from(text, {{"N", 5000}})), "") << text;
    return shape_of(specialised_from(text, {{"N", 1 << 24}}));
  };
  for (const char* condition :
       {"n < 64", "n <= 63", "n > 63", "64 <= n", "100 - n > 36", "n % 16 < 8", "n % 16 / 8 == 0", "n / 8 % 2 == 1",
        "(n < 64 || n >= 128) && !(n / 4 == 40)", "n % 12 + n / 12 * 12 < 1024", "2 * n < 128"}) {
    EXPECT_EQ(shape(condition), (Shape{1, 4, 0})) << condition;
  }
}

TEST(JoinRanges, ChoicesWithinVectorsAreMadeForEachElement) {
  for (const char* condition : {"n < 66", "n <= 64", "n % 16 < 7", "n % 2 == 0", "n / 3 % 2 == 1", "n == 64",
                                "3 * n < 64", "n % 6 < 4", "(n + 1) / 8 % 2 == 0", "99 - n > 36"}) {
    const std::string text = fmt::format(
        "def f(float(N) a, float(N) b) -> (y) {{ y(n) = {} ? a(n) * 2 : b(n) + 1 where n in 0:N }}", condition);
    EXPECT_EQ(faults_of(specialised_from(text, {{"N", 1 << 19}})), "") << text;
  }
}

TEST(JoinRanges, RotaryEmbeddingsAgreeWithTheOracleAtEverySize) {
  for (const char* text : kRotary) {
    for (const char* type : {"float", "half"}) {
      for (const auto& [t, h, e] : {std::array<int64_t, 3>{3, 5, 8}, {2, 3, 7}, {1, 1, 1}, {2, 2, 12}, {40, 32, 64}}) {
        const Sizes sizes = {{"T", t}, {"H", h}, {"D", 2 * e}, {"E", e}};
        EXPECT_EQ(faults_of(specialised_from(of_type(text, type), sizes)), "") << text << t << " " << h << " " << e;
      }
    }
  }
}

/// Parts of other lengths, more than two, out of order, of several results, along any dimension.
TEST(JoinRanges, JoinsAnyNumberOfParts) {
  for (const char* text :
       {"def f(float(M,N) x) -> (float(M,N) y) { y(m,n) = x(m,n) where n in 16:24  y(m,n) = x(m,n) * 2 where n in "
        "24:N  y(m,n) = x(m,n + 8) where n in 0:16 }",
        "def f(float(M,N) x) -> (float(M,N) y, float(M,N) z) { y(m,n) = x(m,n) where n in 0:16  z(m,n) = x(m,n) + 1 "
        "where n in 0:16  y(m,n) = x(m,n) * 2 where n in 16:N  z(m,n) = x(m,n) * 3 where n in 16:N }",
        "def f(float(M,N) x, float(2,N) b) -> (y) { y(m,n) = x(m,n)  y(m + M,n) = b(m,n) where m in 0:2 }",
        "def f(float(M,N) x, float(M,8) b) -> (y) { y(m,n) = x(m,n)  y(i,j + N) = b(i,j) }",
        "def f(float(M,N) x) -> (s, float(M,N) y) { y(m,n) = x(m,n) where n in 0:16  y(m,n) = 0.5 where n in 16:N  "
        "s(m) +=! y(m,n) }"}) {
    const ir::Program program = specialised_from(text, {{"M", 40}, {"N", 48}});
    std::map<std::string, int> writers;
    for (const ir::Statement& s : join_ranges_of(program).statements) ++writers[s.tensor];
    for (const auto& [tensor, count] : writers) EXPECT_EQ(count, 1) << tensor << ": " << text;
    EXPECT_EQ(faults_of(program), "") << text;
  }
}

TEST(JoinRanges, LeavesPartsThatOverlap) {
  const char* text =
      "def f(float(M,N) x) -> (float(M,N) y) { y(m,n) = x(m,n) where n in 0:17  y(m,n) = 0.5 where n in 16:N }";
  const ir::Program program = specialised_from(text, {{"M", 40}, {"N", 48}});
  EXPECT_EQ(join_ranges_of(program).statements.size(), 2U);
  EXPECT_EQ(difference(program), "");
}

/// Apart, in between; what a part reads of another, or of what is made in between; readers of one part.
TEST(JoinRanges, LeavesPartsThatOrderOrSharingKeepsApart) {
  for (const char* text :
       {"def f(float(M,N) x) -> (float(M,N) y) { y(m,n) = x(m,n) where n in 0:16  y(m,n) = 0.5 where n in 24:N }",
        "def f(float(M,N) x) -> (float(M,N) y) { y(m,n) = x(m,n) where n in 0:16  y(m,n) = y(m,n - 16) where n in "
        "16:32 }",
        "def f(float(M,N) x) -> (float(M,N) y) { y(m,n) = y(m,n + 16) where n in 0:16  y(m,n) = x(m,n) where n in "
        "16:32 }",
        "def f(float(M,N) x) -> (float(M,N) y, z) { y(m,n) = x(m,n) where n in 0:16  z(m,n) = x(m,n) * 2  y(m,n) = "
        "z(m,n) where n in 16:N }",
        "def f(float(M,N) x) -> (float(M,N) y, z) { y(m,n) = x(m,n) where n in 0:16  z(m,n) = y(m,n) + 1 where n in "
        "0:N  y(m,n) = x(m,n) where n in 16:N }",
        "def f(float(M,N) x) -> (float(M,N) y, z) { y(m,n) = x(m,n) where n in 0:16  y(m,n) = 0.5 where n in 16:N  "
        "z(m,n) = y(m,n) where n in 16:N }",
        "def f(float(N,M) x) -> (float(M,N) y) { y(m,n) = x(n,m) where n in 0:16  y(m,n) = 0.5 where n in 16:N }",
        "def f(float(M,N) x) -> (float(M,N) y) { y(m,n) = x(m,n) where n in 0:18  y(m,n) = 0.5 where n in 18:N }"}) {
    const ir::Program program = specialised_from(text, {{"M", 40}, {"N", 48}});
    EXPECT_EQ(join_ranges_of(program).statements.size(), program.statements.size()) << text;
    EXPECT_EQ(faults_of(program), "") << text;
  }
}

/// A row or a box that is set again; what changes some of a product's results.
TEST(JoinRanges, ChoosesBetweenWhatIsSetTwice) {
  for (const char* text :
       {"def f(float(M,N) x) -> (y) { y(m,n) = x(m,n)  y(m,0) = 0.5 where m in 0:M }",
        "def f(float(M,N) x) -> (y) { y(m,n) = x(m,n)  y(m,n) = 0.5 where m in 3:9, n in 1:N }",
        "def f(float(M,N) x, float(M) b) -> (y) { y(m,n) = x(m,n)  y(m,n) = y(m,n) + b(m) where n in 8:16 }",
        "def f(half(M,N) x, half(4,8) b) -> (y) { y(m,n) = x(m,n)  y(i+2,j+5) = b(i,j) }",
        "def f(float(M,N) x, float(N) b) -> (y) { y(m,n) = x(m,n) * 2  y(M-1,n) = b(n) }"}) {
    const ir::Program program = specialised_from(text, {{"M", 40}, {"N", 48}});
    EXPECT_EQ(join_ranges_of(program).statements.size(), 1U) << text;
    EXPECT_EQ(faults_of(program), "") << text;
  }
  for (const char* text :
       {"def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = max(C(m,n), 0) where m in 0:9 "
        "}",
        "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n)  C(m,3) = 1.0 where m in 0:M }"}) {
    const ir::Program program = specialised_from(text, {{"M", 40}, {"N", 48}, {"K", 32}});
    EXPECT_EQ(ir::begin_of(join_ranges_of(program).statements.back().indices[0]), 0) << text;
    EXPECT_EQ(ir::extent_of(join_ranges_of(program).statements.back().indices[0]), 40) << text;
    EXPECT_EQ(mapped(program)->kernels.size(), 1U) << text;
    EXPECT_EQ(faults_of(program), "") << text;
  }
}

/// What somebody reads in between; what is read of another place; what would be computed twice.
TEST(JoinRanges, LeavesWhatIsSetTwiceForAReason) {
  for (const char* text :
       {"def f(float(M,N) x) -> (y, z) { y(m,n) = x(m,n)  z(m,n) = y(m,n)  y(m,0) = 0.5 where m in 0:M }",
        "def f(float(M,N) x) -> (y) { y(m,n) = x(m,n)  y(m,0) = y(m,1) where m in 0:M }",
        "def f(float(M,N) x) -> (y) { y(m,n) = exp(x(m,n))  y(m,n) = y(m,n) * 2 where m in 0:9 }",
        "def f(float(M,N) x, float(N,M) z) -> (y) { y(m,n) = x(m,n)  y(m,n) = z(n,m) where m in 0:9, n in 0:9 }",
        "def f(float(M,N) x) -> (y) { y(m,n) = x(m,n)  y(m,0) = exp(sin(x(m,0))) where m in 0:M }",
        "def f(float(M,N) x) -> (y) { y(m,n) = x(m,n) where n in 0:16  y(m,n) = 0.5 where n in 15:20 }"}) {
    const ir::Program program = specialised_from(text, {{"M", 40}, {"N", 48}});
    EXPECT_EQ(join_ranges_of(program).statements.size(), program.statements.size()) << text;
    EXPECT_EQ(faults_of(program), "") << text;
  }
}

}  // namespace
}  // namespace tc::testing
