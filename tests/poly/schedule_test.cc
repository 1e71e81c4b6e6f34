#include "tc/poly/schedule.h"

#include <gtest/gtest.h>

#include <optional>

#include "tc/poly/band_ref.h"
#include "tc/poly/dependences.h"
#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/print.h"
#include "tests/poly/scops.h"

namespace tc::poly::test {
namespace {

using options::Fusion;

/// The tree of schedule_text(), without domain and promotions.
std::string tree(const Scop& scop) {
  const std::string text = schedule_text(scop);
  const size_t begin = text.find("schedule\n") + 9;
  return text.substr(begin, text.find("promotions\n", begin) - begin);
}

TEST(Schedule, SgemmFusedAsInThePapersFigure3b) {
  const std::string fused = R"(  band permutable coincident(1, 1)
    S0: [i, j]
    S1: [i, j]
    sequence
      S0
      S1
        band permutable coincident(0)
          S1: [k]
)";
  EXPECT_EQ(tree(scheduled(sgemm(8, 9, 10), Fusion::kMax)), fused);
  EXPECT_EQ(tree(scheduled(sgemm(8, 9, 10), Fusion::kPreserve3Coincident)), fused);
}

TEST(Schedule, MinFusesNothing) {
  EXPECT_EQ(tree(scheduled(sgemm(8, 9, 10), Fusion::kMin)), R"(  sequence
    S0
      band permutable coincident(1, 1)
        S0: [i, j]
    S1
      band permutable coincident(1, 1, 0)
        S1: [i, j, k]
)");
}

std::string reasons(const Scop& scop, std::optional<Fusion> fusion) {
  options::SchedulerOptions options;
  options.fusion = fusion;
  std::string text;
  const std::vector<Apart> all = why_apart(scop, options).value();
  for (const Apart& apart : all) {
    for (const std::string& id : apart.first) text += id + " ";
    text += "|";
    for (const std::string& id : apart.second) text += " " + id;
    text += ": " + apart.reason + "\n";
  }
  return text;
}

TEST(Schedule, SaysWhyStatementsAreApart) {
  EXPECT_EQ(reasons(scop_of(sgemm(8, 9, 10)), Fusion::kMax), "");
  EXPECT_EQ(reasons(scop_of(sgemm(8, 9, 10)), Fusion::kMin), "S0 | S1: the fusion strategy MIN merges no statements\n");
}

TEST(Schedule, SoftmaxByMaxIsOneLoopOverRows) {
  EXPECT_EQ(tree(scheduled(softmax(6, 11), Fusion::kMax)), R"(  band permutable coincident(1)
    S0_init: [i]
    S0: [i]
    S1: [i]
    S2_init: [i]
    S2: [i]
    S3: [i]
    sequence
      S0_init
      S0
        band permutable coincident(0)
          S0: [j]
      S2_init
      S1, S2
        band permutable coincident(0)
          S1: [j]
          S2: [j]
          sequence
            S1
            S2
      S3
        band permutable coincident(1)
          S3: [j]
)");
}

TEST(Schedule, SoftmaxByPreserveKeepsItsTwoParallelLoops) {
  EXPECT_EQ(tree(scheduled(softmax(6, 11), Fusion::kPreserve3Coincident)), R"(  sequence
    S0_init, S0
      band permutable coincident(1)
        S0_init: [i]
        S0: [i]
        sequence
          S0_init
          S0
            band permutable coincident(0)
              S0: [j]
    S1
      band permutable coincident(1, 1)
        S1: [i, j]
    S2_init, S2
      band permutable coincident(1)
        S2_init: [i]
        S2: [i]
        sequence
          S2_init
          S2
            band permutable coincident(0)
              S2: [j]
    S3
      band permutable coincident(1, 1)
        S3: [i, j]
)");
}

TEST(Schedule, ConvolutionAndReluShareAllMapLoops) {
  for (Fusion fusion : {Fusion::kMax, Fusion::kPreserve3Coincident}) {
    EXPECT_EQ(tree(scheduled(conv_relu(2, 3, 4, 8, 9, 3, 2), fusion)), R"(  band permutable coincident(1, 1, 1, 1)
    S0_init: [b, op, h, w]
    S0: [b, op, h, w]
    S1: [b, op, h, w]
    sequence
      S0_init
      S0
        band permutable coincident(0, 0, 0)
          S0: [ip, kh, kw]
      S1
)");
  }
}

TEST(Schedule, Mlp3ByMaxSharesTheBatchLoop) {
  EXPECT_EQ(tree(scheduled(mlp3(5, 4, 6, 3, 2), Fusion::kMax)), R"(  band permutable coincident(1)
    S0: [b]
    S1: [b]
    S2: [b]
    S3: [b]
    S4: [b]
    S5: [b]
    S6: [b]
    S7: [b]
    S8: [b]
    sequence
      S0, S1, S2
        band permutable coincident(1)
          S0: [n]
          S1: [n]
          S2: [n]
          sequence
            S0
            S1
              band permutable coincident(0)
                S1: [m]
            S2
      S3, S4, S5
        band permutable coincident(1)
          S3: [n]
          S4: [n]
          S5: [n]
          sequence
            S3
            S4
              band permutable coincident(0)
                S4: [m]
            S5
      S6, S7, S8
        band permutable coincident(1)
          S6: [n]
          S7: [n]
          S8: [n]
          sequence
            S6
            S7
              band permutable coincident(0)
                S7: [m]
            S8
)");
}

TEST(Schedule, Mlp3ByPreserveIsOneNestPerLayer) {
  const Scop scop = scheduled(mlp3(5, 4, 6, 3, 2), Fusion::kPreserve3Coincident);
  std::vector<std::vector<std::string>> outermost;
  for (const BandRef& ref : bands(scop)) {
    const BandInfo info = band_info(scop, ref);
    if (info.coincident == std::vector<bool>{true, true}) outermost.push_back(info.statements);
  }
  EXPECT_EQ(outermost,
            (std::vector<std::vector<std::string>>{{"S0", "S1", "S2"}, {"S3", "S4", "S5"}, {"S6", "S7", "S8"}}));
}

TEST(Schedule, ATransposedConsumerIsAlignedWithItsProducer) {
  EXPECT_EQ(tree(scheduled(transpose_add(6, 7), Fusion::kMax)), R"(  band permutable coincident(1, 1)
    S0: [j, i]
    S1: [i, j]
    sequence
      S0
      S1
)");
}

TEST(Schedule, ReductionsOverOneTensorShareTheirLoop) {
  const Scop scop = scheduled(layernorm(5, 8), Fusion::kMax);
  const std::optional<BandRef> shared = shared_band(scop, {"S0", "S1"});
  ASSERT_TRUE(shared);
  const BandInfo info = band_info(scop, *shared);
  EXPECT_EQ(info.statements, (std::vector<std::string>{"S0", "S1"}));
  EXPECT_EQ(info.index_of(0, "S0"), "j");
}

TEST(Schedule, AStencilProducerIsNotFusedWithoutAShift) {
  const Scop scop = scheduled(producer_conv1d(20, 3), Fusion::kPreserve3Coincident);
  EXPECT_FALSE(shared_band(scop, {"S0", "S1"}));
  EXPECT_TRUE(shared_band(scop, {"S1_init", "S1"}));
}

TEST(Schedule, MaxFusesAStencilWithItsProducerByAShift) {
  EXPECT_EQ(tree(scheduled(producer_conv1d(20, 3), Fusion::kMax)), R"(  band permutable coincident(0)
    S0: [i]
    S1_init: [2 + i]
    S1: [2 + i]
    sequence
      S0
      S1_init
      S1
        band permutable coincident(0)
          S1: [k]
)");
}

TEST(Schedule, SkewingIsIslsAffair) {
  options::SchedulerOptions options;
  options.fusion = Fusion::kMax;
  options.allow_skewing = true;
  const Result<Scop> scop = schedule(scop_of(producer_conv1d(20, 3)), options);
  ASSERT_TRUE(scop) << scop.error().to_string();
  EXPECT_TRUE(shared_band(*scop, {"S0", "S1"}));
  const Result<void> legal = check_legal(*scop, "schedule");
  EXPECT_TRUE(legal) << legal.error().to_string();
}

TEST(Schedule, WithoutAStrategyNothingIsShifted) {
  const Result<Scop> scop = schedule(scop_of(producer_conv1d(20, 3)), {});
  ASSERT_TRUE(scop) << scop.error().to_string();
  EXPECT_FALSE(shared_band(*scop, {"S0", "S1"}));
}

TEST(Schedule, EveryStrategyIsLegalForEveryProgram) {
  for (const auto& [name, program] : all_programs()) {
    for (Fusion fusion : {Fusion::kMax, Fusion::kPreserve3Coincident, Fusion::kMin}) {
      const Result<void> legal = check_legal(scheduled(program, fusion), name);
      EXPECT_TRUE(legal) << legal.error().to_string();
    }
  }
}

TEST(Schedule, TheSameProgramGivesTheSameText) {
  for (const auto& [name, program] : all_programs()) {
    EXPECT_EQ(schedule_text(scheduled(program, Fusion::kMax)), schedule_text(scheduled(program, Fusion::kMax))) << name;
  }
}

}  // namespace
}  // namespace tc::poly::test
