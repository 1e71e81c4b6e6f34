#include "tc/gpu/strategy/prepare.h"

#include <gtest/gtest.h>

#include "tc/gpu/rewrite/flatten_dims.h"
#include "tc/gpu/rewrite/gather_rows.h"
#include "tc/gpu/rewrite/recompute.h"
#include "tc/gpu/strategy/contraction/contraction.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"

namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

int rank_of(const ir::Program& program, const std::string& tensor) { return program.tensor(tensor).rank(); }

TEST(Collapse, MakesOneDimensionOfNeighboursThatGoTogether) {
  const std::string text = "def f(float(N,C,H,W) I, float(C) s) -> (O) { O(n,c,h,w) = I(n,c,h,w) * s(c) }";
  const ir::Program program = specialised_from(text, {{"N", 2}, {"C", 3}, {"H", 5}, {"W", 7}});
  const ir::Program flattened = gpu::flatten_dims(program);
  EXPECT_EQ(rank_of(flattened, "I"), 3);
  EXPECT_EQ(rank_of(flattened, "O"), 3);
  EXPECT_EQ(flattened.statements.at(0).indices.size(), 3U);
  EXPECT_EQ(faults_of(program), "");
}

TEST(Collapse, LeavesWhatIsUsedInAnotherWay) {
  const Sizes sizes = {{"N", 4}, {"M", 4}};
  // Transposed, shifted, one alone, as a value, over a part of the range, one of them reduced.
  for (const char* text :
       {"def f(float(N,M) I) -> (O) { O(m,n) = I(n,m) }", "def f(float(N,M) I) -> (O) { O(n,m) = I(n,m) + I(n,m+1) }",
        "def f(float(N,M) I, float(N) a) -> (O) { O(n,m) = I(n,m) * a(n) }",
        "def f(float(N,M) I) -> (O) { O(n,m) = I(n,m) + n }",
        "def f(float(N,M) I) -> (O) { O(n,m) = I(n,m) where m in 1:M }",
        "def f(float(N,M) I) -> (O) { O(n) +=! I(n,m) }"}) {
    SCOPED_TRACE(text);
    const ir::Program program = specialised_from(text, sizes);
    EXPECT_EQ(rank_of(gpu::flatten_dims(program), "I"), 2);
    EXPECT_EQ(faults_of(program), "");
  }
}

TEST(Collapse, DropsDimensionsOfOneElement) {
  const ir::Program program =
      specialised_from("def f(float(N,C,P) I, float(F,C,1,1) W) -> (O) { O(n,f,p) +=! I(n,c,p) * W(f,c,0,0) }",
                       {{"N", 2}, {"C", 3}, {"P", 5}, {"F", 4}});
  EXPECT_EQ(rank_of(gpu::flatten_dims(program), "W"), 2);
  EXPECT_EQ(faults_of(program), "");
  // An index is needed where it is, and a tensor keeps a dimension.
  const ir::Program others =
      specialised_from("def f(float(1,4) I, float(1,1) s) -> (O) { O(n,m) = I(n,m) * s(0,0) + n }", {});
  EXPECT_EQ(rank_of(gpu::flatten_dims(others), "I"), 2);
  EXPECT_EQ(rank_of(gpu::flatten_dims(others), "s"), 1);
  EXPECT_EQ(faults_of(others), "");
}

TEST(Collapse, ReducesOverBothAtOnceInEveryStatement) {
  const std::string text = R"(
    def f(float(N,C,H,W) I) -> (O, m) {
      m(c) max=! I(nn,c,hh,ww)
      O(n,c,h,w) = I(n,c,h,w) - m(c)
    })";
  const ir::Program program = specialised_from(text, {{"N", 3}, {"C", 4}, {"H", 6}, {"W", 5}});
  EXPECT_EQ(rank_of(gpu::flatten_dims(program), "I"), 3);
  EXPECT_EQ(faults_of(program), "");
}

TEST(Recompute, ReplacesLargeCheapTemporaries) {
  const std::string text = R"(
    def f(float(N,D) I, float(D) m) -> (v, O) {
      centered(n,d) = I(n,d) - m(d)
      v(n) +=! centered(n,d) * centered(n,d)
      O(n,d) = centered(n,d) * v(n)
    })";
  const ir::Program large = gpu::recompute_temporaries(specialised_from(text, {{"N", 256}, {"D", 256}}));
  EXPECT_EQ(large.find_tensor("centered"), nullptr);
  EXPECT_EQ(large.statements.size(), 2U);
  const ir::Program small = gpu::recompute_temporaries(specialised_from(text, {{"N", 25}, {"D", 25}}));
  EXPECT_NE(small.find_tensor("centered"), nullptr);
  EXPECT_EQ(faults_of(specialised_from(text, {{"N", 256}, {"D", 257}})), "");
}

/// Registers or shared memory may hold a row until its sum is known, but no column.
TEST(Recompute, ReplacesFunctionsThatAreReducedAcrossMemory) {
  const auto softmax = [](const std::string& top, const std::string& i) {
    return "def f(float(N,D) I, float(N,D) J) -> (O) { top(" + top + ") max=! " + i + "  E(n,d) = exp(" + i +
           " - top(" + top + "))  total(" + top + ") +=! E(n,d)  O(n,d) = E(n,d) / total(" + top + ") }";
  };
  const auto has_temporary = [](const std::string& text, int64_t n) {
    const ir::Program program = specialised_from(text, {{"N", n}, {"D", 256}});
    return gpu::recompute_temporaries(program).find_tensor("E") != nullptr;
  };
  const std::string columns = softmax("d", "I(n,d)");
  EXPECT_FALSE(has_temporary(columns, 256));
  EXPECT_TRUE(has_temporary(columns, 31)) << "a small one stays in the cache";
  EXPECT_TRUE(has_temporary(softmax("n", "I(n,d)"), 256)) << "a row stays on chip";
  EXPECT_TRUE(has_temporary(softmax("d", "(log(I(n,d)) * sin(J(n,d)) / I(n,d))"), 256)) << "of more than is saved";
  EXPECT_EQ(faults_of(specialised_from(columns, {{"N", 300}, {"D", 257}})), "");
}

TEST(Recompute, ReplacesSubscriptsAndGuardsToo) {
  for (const char* text :
       {"def f(int32(N) I) -> (H) { t(i) = I(i) + 1  H(b) = 0 where b in 0:11  H(t(i)) += 1 }",
        "def f(int32(N) I, float(N) x) -> (y) { t(i) = I(i) + 1  y(i) = x(i)  y(i) = t(i) > 5 ? y(i) : 1 }"}) {
    const ir::Program program = specialised_from(text, {{"N", 70000}});
    EXPECT_EQ(gpu::recompute_temporaries(program).find_tensor("t"), nullptr);
    EXPECT_EQ(difference(program), "");
  }
}

/// Those of the sizes that the text has.
ir::Program sized(const std::string& text) {
  const Sizes all = {{"V", 20}, {"K", 16}, {"N", 40}, {"J", 3}, {"M", 32}};
  Sizes sizes;
  for (const std::string& name : program_from(text).sizes) sizes[name] = all.at(name);
  return specialised_from(text, sizes);
}

TEST(GatherRows, MakesAContractionOfRowsThatDataChoose) {
  for (const char* text :
       {"def f(float(V,K) E, int32(N,J) I, float(J,K,M) W) -> (Z) { Z(n,m) +=! E(I(n,j),k) * W(j,k,m) }",
        "def f(half(V,K) E, int32(N) I, half(K,M) W) -> (Z) { Z(n,m) +=! E(I(n),k) * W(k,m) }",
        "def f(float(V,K) E, int32(N) I, int32(M) J) -> (Z) { Z(n,m) +=! E(I(n),k) * E(J(m),k) }"}) {
    SCOPED_TRACE(text);
    const ir::Program program = sized(text);
    const Result<gpu::Mapping> mapping = mapped(program);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    const auto& kernels = mapping->kernels;
    EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(), [](const gpu::Kernel& kernel) {
      return kernel.recipe == gpu::Recipe::kContraction;
    })) << gpu::report(*mapping);
    for (uint64_t seed = 1; seed <= 3; ++seed) EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "");
  }
}

TEST(GatherRows, LeavesWhatIsUsedOnceOrChosen) {
  for (const char* text : {// Each row is added once.
                           "def f(float(V,K) E, int32(N,J) I) -> (Z) { Z(n,k) +=! E(I(n,j),k) }",
                           // The row exists where the index is not negative only.
                           "def f(float(V,K) E, int32(N) I, float(K,M) W) -> (Z) {"
                           "  Z(n,m) +=! (I(n) >= 0 ? E(I(n),k) : 0) * W(k,m) }"}) {
    const ir::Program program = sized(text);
    EXPECT_EQ(gpu::gather_rows(program, gpu::kGatheredBytes, gpu::is_contraction).statements.size(),
              program.statements.size())
        << text;
    EXPECT_EQ(difference(program), "");
  }
}

TEST(Recompute, KeepsWhatChangesOrIsReadOften) {
  for (const char* text :
       {// What it is made of changes before it is read.
        "def f(float(N,D) I) -> (m, O) { m(d) max=! I(n,d)  t(n,d) = I(n,d) - m(d)  m(d) = m(d) * 2  O(n,d) = t(n,d) }",
        // Each element is read by 256 others.
        "def f(float(N,D) I, float(D) m) -> (O) { t(n,d) = I(n,d) - m(d)  O(n,e) +=! t(n,d) * m(e) where e in 0:256 }",
        // It is not cheap.
        "def f(float(N,D) I) -> (O) { t(n,d) = exp(I(n,d))  O(n,d) = t(n,d) * 2 }",
        // It is compared with a maximum of its elements, which has to equal one of them.
        "def f(float(N,D) I) -> (O) { t(n,d) = I(n,d) * 3.0 + 1.0  m(n) max=! t(n,d)"
        "  O(n,d) = t(n,d) == m(n) ? 1.0 : 0.0 }"}) {
    SCOPED_TRACE(text);
    const ir::Program program = specialised_from(text, {{"N", 256}, {"D", 256}});
    EXPECT_NE(gpu::recompute_temporaries(program).find_tensor("t"), nullptr);
  }
}

TEST(Recompute, KeepsWindowsThatWouldReadMoreThanTheySave) {
  for (const char* text : {"def f(float(H,W) I) -> (O) { t(h,w) = (I(h,w) + I(h,w+1) + I(h,w+2)) * 0.333"
                           "  O(h,w) = (t(h,w) + t(h+1,w) + t(h+2,w)) * 0.333 }",
                           "def f(float(H,W) I) -> (O) { t(h,w) = max(max(I(h,w), I(h+1,w)), I(h+2,w))"
                           "  O(h,w) = max(max(t(h,w), t(h,w+1)), t(h,w+2)) where h in 0:H-2, w in 0:W-2 }",
                           // Much arithmetic for each of nine.
                           "def f(float(H,W) I) -> (O) { t(h,w) = (((((((((I(h,w) * 2 + 1) * 3 + 2) * 4 + 3) * 5 + 4) "
                           "* 6 + 5) * 7 + 6) * 8"
                           "    + 7) * 9 + 8) * 10 + 9) * (((((I(h,w) + 3) * 2 + 1) * 3 + 2) * 4 + 3) * 5 + 4)"
                           "  O(h,w) = t(h,w) + t(h+1,w) + t(h+2,w) + t(h,w+1) + t(h+1,w+1) + t(h+2,w+1) + t(h,w+2) + "
                           "t(h+1,w+2) + t(h+2,w+2)"
                           "}"}) {
    SCOPED_TRACE(text);
    EXPECT_NE(gpu::recompute_temporaries(specialised_from(text, {{"H", 260}, {"W", 300}})).find_tensor("t"), nullptr);
    EXPECT_EQ(faults_of(specialised_from(text, {{"H", 20}, {"W", 30}})), "");
  }
}

TEST(Recompute, ReplacesInWindowsThatReadNoMore) {
  for (const char* text :
       {// Nine reads either way.
        "def f(float(H,W) I) -> (O) { t(h,w) = I(h,w) * 2 + 1  O(h,w) = t(h,w) + t(h+1,w) + t(h+2,w) + t(h,w+1)"
        "    + t(h+1,w+1) + t(h+2,w+1) + t(h,w+2) + t(h+1,w+2) + t(h+2,w+2) }",
        // Windows that overlap: six different elements of nine.
        "def f(float(H,W) I) -> (O) { t(h,w) = I(h,w) + I(h+1,w) + I(h,w+1)  O(h,w) = t(h,w) + t(h+1,w) + t(h,w+1) }",
        "def f(float(H,W) I) -> (O) { t(h,w) = I(h,w) - I(h,w+1)  O(h,w) = t(h,w) - t(h+1,w) }"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(gpu::recompute_temporaries(specialised_from(text, {{"H", 260}, {"W", 300}})).find_tensor("t"), nullptr);
    EXPECT_EQ(faults_of(specialised_from(text, {{"H", 20}, {"W", 30}})), "");
  }
}

}  // namespace
}  // namespace tc::testing
