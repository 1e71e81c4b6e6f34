#include "tc/poly/from_ir.h"

#include <gtest/gtest.h>

#include "tc/poly/dependences.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/print.h"
#include "tests/poly/programs.h"
#include "tests/poly/scops.h"

namespace tc::poly::test {
namespace {

isl::union_map relation(const Scop& scop, const std::string& text) { return isl::union_map(scop.context->get(), text); }
isl::union_set instances(const Scop& scop, const std::string& text) {
  return isl::union_set(scop.context->get(), text);
}

TEST(FromIr, SplitsAnInitialisingReduction) {
  const Scop scop = scop_of(matmul(5, 6, 7));
  ASSERT_EQ(scop.statements.size(), 2u);
  EXPECT_EQ(scop.statements[0].id, "S0_init");
  EXPECT_EQ(scop.statements[0].kind, Statement::Kind::kInit);
  EXPECT_EQ(scop.statements[1].kind, Statement::Kind::kUpdate);
  EXPECT_EQ(scop.statements[1].is_reduction, (std::vector<bool>{false, false, true}));
  EXPECT_TRUE(scop.domain.is_equal(instances(
      scop, "{ S0_init[i,j] : 0 <= i < 5 and 0 <= j < 6; S0[i,j,k] : 0 <= i < 5 and 0 <= j < 6 and 0 <= k < 7 }")));
  EXPECT_TRUE(scop.writes.is_equal(relation(scop,
                                            "{ S0_init[i,j] -> C[i,j] : 0 <= i < 5 and 0 <= j < 6; S0[i,j,k] -> C[i,j] "
                                            ": 0 <= i < 5 and 0 <= j < 6 and 0 <= k < 7 }")));
  EXPECT_TRUE(scop.may_writes.is_empty());
}

TEST(FromIr, DependencesOfMatmulKeepTheReductionApart) {
  const Scop scop = scop_of(matmul(5, 6, 7));
  const isl::union_map first =
      relation(scop, "{ S0_init[i,j] -> S0[i,j,k] : 0 <= i < 5 and 0 <= j < 6 and 0 <= k < 7 }");
  EXPECT_TRUE(scop.dependences.flow.is_equal(first));
  EXPECT_TRUE(scop.dependences.output.is_equal(first));
  EXPECT_TRUE(scop.dependences.anti.is_empty());
  EXPECT_TRUE(scop.dependences.reduction.is_equal(
      relation(scop, "{ S0[i,j,k] -> S0[i,j,l] : 0 <= i < 5 and 0 <= j < 6 and 0 <= k < l < 7 }")));
}

TEST(FromIr, CanonicalFormIsASequenceOfIdentityBands) {
  EXPECT_EQ(schedule_text(scop_of(sgemm(8, 9, 10))), R"(domain
  S0[i, j] : 0 <= i <= 7 and 0 <= j <= 8
  S1[i, j, k] : 0 <= i <= 7 and 0 <= j <= 8 and 0 <= k <= 9
schedule
  sequence
    S0
      band coincident(0, 0)
        S0: [i, j]
    S1
      band coincident(0, 0, 0)
        S1: [i, j, k]
)");
}

TEST(FromIr, AnEmptyReductionStillInitialises) {
  const Scop scop = scop_of(matmul(2, 3, 0));
  EXPECT_TRUE(scop.domain.is_equal(instances(scop, "{ S0_init[i,j] : 0 <= i < 2 and 0 <= j < 3 }")));
  EXPECT_FALSE(find_violation(scop));
}

TEST(FromIr, AnEmptyProgramHasAnEmptySchedule) {
  const Scop scop = scop_of(matmul(0, 3, 4));
  EXPECT_TRUE(scop.domain.is_empty());
  EXPECT_FALSE(find_violation(scop));
}

TEST(FromIr, AReadUnderAnAffineGuardStaysWithinIt) {
  const Scop scop = scop_of(padded_conv1d(10));
  EXPECT_TRUE(scop.reads.intersect_range(instances(scop, "{ I[x] }"))
                  .is_equal(relation(scop, "{ S0[h] -> I[h - 1] : 1 <= h <= 10 }")));
}

TEST(FromIr, ADataDependentReadSpansTheDimension) {
  const Scop scop = scop_of(gather(4, 2, 3));
  EXPECT_TRUE(scop.reads.intersect_range(instances(scop, "{ X[x] }"))
                  .is_equal(relation(scop, "{ S0[i,j] -> X[x] : 0 <= i < 2 and 0 <= j < 3 and 0 <= x < 4 }")));
  for (const Access& a : scop.accesses) EXPECT_EQ(a.exact, a.tensor != "X") << a.tensor;
}

TEST(FromIr, AScatterMayWriteAndItsInitGoesFirst) {
  const Scop scop = scop_of(histogram(5, 3));
  const isl::union_map written =
      relation(scop, "{ S0[i] -> H[x] : 0 <= i < 5 and 0 <= x < 3; S0_init[i] -> H[x] : 0 <= i < 5 and 0 <= x < 3 }");
  EXPECT_TRUE(scop.writes.is_empty());
  EXPECT_TRUE(scop.may_writes.is_equal(written));
  EXPECT_TRUE(
      scop.dependences.ordered().is_equal(relation(scop, "{ S0_init[i] -> S0[j] : 0 <= i < 5 and 0 <= j < 5 }")));
  EXPECT_TRUE(relation(scop, "{ S0[i] -> S0[j] : 0 <= i < j < 5 }").is_subset(scop.dependences.reduction));
}

TEST(FromIr, AnAffineScatterInitialisesEachElementOnce) {
  const Expr i = index("i"), j = index("j");
  ProgramBuilder p("diagonals");
  p.input("A", {3, 4}).result("D", {6});
  p.sum("D", {i + j}, {{"i", 3}, {"j", 4}}, {}, p.at("A", {i, j}));
  const Scop scop = scop_of(p.build());
  EXPECT_TRUE(
      scop.domain.is_equal(instances(scop, "{ S0_init[x] : 0 <= x < 6; S0[i,j] : 0 <= i < 3 and 0 <= j < 4 }")));
  EXPECT_EQ(scop.statement("S0_init").indices, std::vector<std::string>{"x0"});
}

TEST(FromIr, FloorDivisionIsExact) {
  const Expr i = index("i");
  ProgramBuilder p("upsample");
  p.input("A", {4}).result("B", {8});
  p.set("B", {i}, {{"i", 8}}, p.at("A", {i / 2}) + p.at("A", {(i - 1) % 4}));
  const Scop scop = scop_of(p.build());
  EXPECT_TRUE(scop.reads.is_equal(
      relation(scop, "{ S0[i] -> A[floor(i/2)] : 0 <= i < 8; S0[i] -> A[(i - 1) mod 4] : 0 <= i < 8 }")));
}

TEST(FromIr, AnAffineGuardNarrowsTheDomain) {
  const Expr i = index("i"), j = index("j");
  ProgramBuilder p("prefix");
  p.input("A", {6}).result("B", {6});
  p.sum("B", {i}, {{"i", 6}}, {{"j", 6}}, p.at("A", {j})).guard(j <= i);
  const Scop scop = scop_of(p.build());
  EXPECT_TRUE(
      scop.domain.is_equal(instances(scop, "{ S0_init[i] : 0 <= i < 6; S0[i,j] : 0 <= i < 6 and 0 <= j <= i }")));
  EXPECT_FALSE(scop.statement("S0").guard.defined());
}

TEST(FromIr, ADataDependentGuardStaysAGuard) {
  const Expr i = index("i");
  ProgramBuilder p("compact");
  p.input("A", {6}).result("B", {6});
  p.set("B", {i}, {{"i", 6}}, p.at("A", {i})).guard(p.at("A", {i}) > 0.0f && i < 4);
  const Scop scop = scop_of(p.build());
  EXPECT_TRUE(scop.domain.is_equal(instances(scop, "{ S0[i] : 0 <= i < 4 }")));
  EXPECT_TRUE(scop.statement("S0").guard.defined());
  EXPECT_TRUE(scop.writes.is_empty());
}

TEST(FromIr, ArithmeticThatMayOverflowIsNotAffine) {
  const Expr i = index("i"), narrow = Halide::cast<int32_t>(i);
  ProgramBuilder p("narrow");
  p.input("A", {2000}).result("B", {2000}).result("C", {2000});
  p.set("B", {i}, {{"i", 2000}}, p.at("A", {Halide::cast<int64_t>(narrow * 2 % 2000)}));
  p.set("C", {i}, {{"i", 2000}}, p.at("A", {Halide::cast<int64_t>(narrow * 2000000 % 2000)}));
  const Scop scop = scop_of(p.build());
  for (const Access& a : scop.accesses) {
    if (a.tensor != "A") continue;
    EXPECT_EQ(a.exact, a.statement == "S0");
  }
}

/// isl's own dataflow analysis as the oracle: between different statements our flow is part of it, and what it has
/// beyond ours is implied by two of ours.
TEST(Dependences, FlowAgreesWithIslsAnalysis) {
  for (const auto& [name, program] : all_programs()) {
    const Scop scop = scop_of(program);
    isl::union_map must = isl::union_map::empty(scop.context->get()), may = must;
    for (const Access& a : scop.accesses) {
      if (!a.writes()) continue;
      const bool update = scop.statement(a.statement).kind == Statement::Kind::kUpdate;
      isl::union_map& to = update || a.kind == Access::Kind::kMayWrite ? may : must;
      to = to.unite(a.relation.to_union_map());
    }
    isl::union_map theirs = isl::union_access_info(scop.reads)
                                .set_must_source(must)
                                .set_may_source(may)
                                .set_schedule(canonical_schedule(scop))
                                .compute_flow()
                                .may_dependence();
    isl::union_map within = isl::union_map::empty(scop.context->get());
    for (const isl::map& map : maps_of(theirs)) {
      if (domain_name(map) == range_name(map)) within = within.unite(map.to_union_map());
    }
    theirs = theirs.subtract(within);
    const isl::union_map& ours = scop.dependences.flow;
    EXPECT_TRUE(ours.is_subset(theirs)) << name;
    EXPECT_TRUE(theirs.is_subset(ours.unite(ours.apply_range(ours)))) << name;
  }
}

}  // namespace
}  // namespace tc::poly::test
