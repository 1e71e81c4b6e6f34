#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "tc/poly/dependences.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/promote.h"
#include "tc/poly/rebuild.h"
#include "tc/poly/transform.h"
#include "tc/support/check.h"
#include "tests/poly/scops.h"

namespace tc::poly::test {
namespace {

using options::Fusion;

Scop with_schedule(Scop scop, const std::string& text) {
  scop.schedule = isl::schedule(scop.context->get(), text);
  return scop;
}

TEST(Legality, AReversedOrderIsCaught) {
  const Scop scop = scop_of(matmul(4, 5, 6));
  const Scop wrong = with_schedule(
      scop,
      R"({ domain: "{ S0_init[i,j] : 0 <= i < 4 and 0 <= j < 5; S0[i,j,k] : 0 <= i < 4 and 0 <= j < 5 and 0 <= k < 6 }", child: { sequence: [
      { filter: "{ S0[i,j,k] }", child: { schedule: "[{ S0[i,j,k] -> [(i)] }, { S0[i,j,k] -> [(j)] }, { S0[i,j,k] -> [(k)] }]" } },
      { filter: "{ S0_init[i,j] }", child: { schedule: "[{ S0_init[i,j] -> [(i)] }, { S0_init[i,j] -> [(j)] }]" } } ] } })");
  const std::optional<Violation> violation = find_violation(wrong);
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->kind, Violation::Kind::kOrder);
  EXPECT_EQ(violation->dependence, "flow");
  EXPECT_EQ(
      violation->sentence(),
      "S0_init[i = 0, j = 0] must run before S0[i = 0, j = 0, k = 0] (flow dependence), and the schedule does not "
      "see to it");
}

TEST(Legality, InstancesAtTheSameTimeAreCaught) {
  const Scop scop = scop_of(sgemm(3, 3, 3));
  const Scop wrong = with_schedule(
      scop,
      R"({ domain: "{ S0[i,j] : 0 <= i < 3 and 0 <= j < 3; S1[i,j,k] : 0 <= i < 3 and 0 <= j < 3 and 0 <= k < 3 }",
      child: { schedule: "[{ S0[i,j] -> [(i)]; S1[i,j,k] -> [(i)] }, { S0[i,j] -> [(j)]; S1[i,j,k] -> [(j)] }, { S0[i,j] -> [(0)]; S1[i,j,k] -> [(k)] }]" } })");
  ASSERT_TRUE(find_violation(wrong));
}

TEST(Legality, AReductionMayRunBackwards) {
  const Scop scop = scop_of(sgemm(3, 3, 3));
  const Scop backwards = with_schedule(
      scop,
      R"({ domain: "{ S0[i,j] : 0 <= i < 3 and 0 <= j < 3; S1[i,j,k] : 0 <= i < 3 and 0 <= j < 3 and 0 <= k < 3 }",
      child: { sequence: [ { filter: "{ S0[i,j] }" }, { filter: "{ S1[i,j,k] }",
        child: { schedule: "[{ S1[i,j,k] -> [(-k)] }]" } } ] } })");
  EXPECT_FALSE(find_violation(backwards));
}

/// T(target) += A(i,j), all in one loop nest, with a mark by hand above the loop over j.
Scop updates_with_a_vector(const Expr& target, int64_t extent) {
  const ProgramPtr program = ProgramBuilder("updates")
                                 .input("A", {4, 8})
                                 .tensor("T", {extent}, ir::Role::kInOut)
                                 .statement("T", {target}, ir::Assign::kAdd, false, {{"i", 4}, {"j", 8}}, {},
                                            ProgramBuilder("").input("A", {4, 8}).at("A", {index("i"), index("j")}))
                                 .build();
  return with_schedule(scop_of(program), R"({ domain: "{ S0[i,j] : 0 <= i < 4 and 0 <= j < 8 }",
      child: { schedule: "[{ S0[i,j] -> [(i)] }]", child: { mark: "vector",
        child: { schedule: "[{ S0[i,j] -> [(j)] }]" } } } })");
}

TEST(Legality, LanesMayUpdateOneElementOrEachItsOwn) {
  EXPECT_FALSE(find_violation(updates_with_a_vector(index("i"), 4))) << "all lanes the same";
  EXPECT_FALSE(find_violation(updates_with_a_vector(index("j"), 8))) << "each its own";
  EXPECT_FALSE(find_violation(updates_with_a_vector(index("i") + index("j"), 11)));
}

TEST(Legality, LanesOfWhichSomeMeetAreCaught) {
  for (const auto& [target, extent] : std::vector<std::pair<Expr, int64_t>>{{index("j") / 2, 4},
                                                                            {index("j") % 4, 4},
                                                                            {(index("i") + index("j")) / 2, 6},
                                                                            {index("j") / 4 + index("i"), 5}}) {
    const std::optional<Violation> violation = find_violation(updates_with_a_vector(target, extent));
    ASSERT_TRUE(violation) << target;
    EXPECT_EQ(violation->kind, Violation::Kind::kParallel);
    EXPECT_EQ(violation->dependence, "reduction");
    EXPECT_EQ(violation->member, "vector");
  }
  EXPECT_EQ(find_violation(updates_with_a_vector(index("j") / 2, 4))->sentence(),
            "S0[i = 0, j = 0] and S0[i = 0, j = 1] must not run at once (reduction dependence), and a mark 'vector' "
            "lets them");
}

TEST(Legality, AScheduleThatForgetsInstancesIsAFault) {
  const Scop scop = scop_of(gather(5, 4, 3));
  const Scop partial = with_schedule(scop, R"({ domain: "{ S0[i,j] : 0 <= i < 4 and 0 <= j < 2 }" })");
  EXPECT_THROW(find_violation(partial), InternalError);
}

TEST(Legality, AScheduleThatRunsOtherInstancesIsAFault) {
  const Scop scop = scop_of(gather(5, 4, 3));
  EXPECT_THROW(find_violation(with_schedule(scop, R"({ domain: "{ S0[i,j] : 0 <= i < 50 and 0 <= j < 50 }" })")),
               InternalError);
}

TEST(Legality, AScheduleThatRunsInstancesTwiceIsAFault) {
  const Scop scop = scop_of(gather(5, 4, 3));
  std::ostringstream domain;
  domain << scop.domain;
  EXPECT_THROW(find_violation(with_schedule(scop, R"({ domain: ")" + domain.str() + R"(", child: { sequence: [
                     { filter: "{ S0[i,j] }" }, { filter: "{ S0[i,j] : i <= 1 }" } ] } })")),
               InternalError);
}

TEST(Legality, CheckLegalNamesThePass) {
  Scop scop = scop_of(producer_conv1d(6, 2));
  scop = with_schedule(
      scop, R"({ domain: "{ S0[i] : 0 <= i < 6; S1_init[i] : 0 <= i < 5; S1[i,k] : 0 <= i < 5 and 0 <= k < 2 }",
      child: { schedule: "[{ S0[i] -> [(i)]; S1_init[i] -> [(i)]; S1[i,k] -> [(i)] }]", child: { sequence: [
        { filter: "{ S0[i] }" }, { filter: "{ S1_init[i] }" }, { filter: "{ S1[i,k] }",
          child: { schedule: "[{ S1[i,k] -> [(k)] }]" } } ] } } })");
  const Result<void> result = check_legal(scop, "fuse");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kInternal);
  EXPECT_NE(result.error().diagnostics().front().message.find("the schedule after 'fuse' is illegal: S0[i = "),
            std::string::npos);
}

/// Random verbs with random arguments: whatever is not refused is legal, flags and all.
class RandomTransforms : public testing::TestWithParam<int> {};

void check_flags(const Scop& scop) {
  for (const BandRef& ref : bands(scop)) {
    const isl::schedule_node_band band = band_at(scop, ref);
    const BandFlags claimed = flags_of(band), exact = exact_flags(scop, band);
    EXPECT_TRUE(exact.permutable || !claimed.permutable);
    for (size_t m = 0; m < claimed.coincident.size(); ++m) {
      EXPECT_TRUE(exact.coincident[m] || !claimed.coincident[m]);
    }
  }
}

Result<Scop> random_step(const Scop& scop, std::mt19937& random) {
  const std::vector<BandRef> all = bands(scop);
  if (all.empty()) return scop;
  const BandRef ref = all[random() % all.size()];
  const isl::schedule_node_band band = band_at(scop, ref);
  const int members = band.n_member();
  const bool marked = band.parent().isa<isl::schedule_node_mark>();
  if (marked && random() % 2) return scop;
  switch (random() % 8) {
    case 0: {
      std::vector<int64_t> sizes(1 + random() % members);
      for (int64_t& size : sizes) size = random() % 6;
      return tile(scop, ref, sizes);
    }
    case 1:
      return strip_mine(scop, ref, random() % members, 1 + random() % 5);
    case 2:
      return members > 1 ? split(scop, ref, 1 + random() % (members - 1)) : scop;
    case 3: {
      std::vector<int> permutation(members);
      for (int m = 0; m < members; ++m) permutation[m] = m;
      std::shuffle(permutation.begin(), permutation.end(), random);
      return reorder(scop, ref, permutation);
    }
    case 4:
      return marked ? Result<Scop>(scop) : sink(scop, ref);
    case 5:
      return !marked && band.child(0).isa<isl::schedule_node_sequence>() ? distribute(scop, ref) : Result<Scop>(scop);
    case 6:
      return band.child(0).isa<isl::schedule_node_band>() ? fuse(scop, ref) : Result<Scop>(scop);
    default: {
      return marked ? Result<Scop>(scop) : mark_parallel(scop, ref);
    }
  }
}

TEST_P(RandomTransforms, WhateverIsNotRefusedIsLegal) {
  std::mt19937 random(GetParam());
  const auto programs = all_programs();
  const auto& [name, program] = programs[random() % programs.size()];
  const Fusion strategies[] = {Fusion::kMax, Fusion::kPreserve3Coincident, Fusion::kMin};
  Scop scop = scheduled(program, strategies[random() % 3]);
  for (int step = 0; step < 5; ++step) {
    Result<Scop> next = random_step(scop, random);
    if (!next) continue;
    scop = *next;
    const Result<void> legal = check_legal(scop, name);
    ASSERT_TRUE(legal) << legal.error().to_string();
  }
  check_flags(scop);
  const Scop small = contract_temporaries(scop);
  const Result<void> legal = check_legal(small, name);
  EXPECT_TRUE(legal) << legal.error().to_string();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTransforms, testing::Range(0, 60));

}  // namespace
}  // namespace tc::poly::test
