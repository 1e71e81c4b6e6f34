#include <gtest/gtest.h>

#include "../common/tile_mutants.h"
#include "rings.h"

namespace tc::tile {
namespace {

using namespace build;

TEST(Ring, ProductsOfMatricesAreRightHoweverTheyLie) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      for (const ScalarType operand : {ScalarType::kFloat16, ScalarType::kBFloat16}) {
        for (const int k : {192, 168, 40}) {
          const RingSample sample =
              ring_product({.k = k, .a_transposed = a_transposed, .b_transposed = b_transposed, .operand = operand});
          EXPECT_EQ(complaint(sample), "") << a_transposed << b_transposed << k;
        }
      }
    }
  }
  EXPECT_EQ(complaint(ring_product({.m = 256, .n = 256, .k = 128, .tile_n = 128})), "");
}

TEST(Ring, NeverHangs) {
  for (int stages = 1; stages <= 4; ++stages) {
    for (int turns = 1; turns <= 9; ++turns) {
      const RingSample sample = ring_product(
          {.k = 64 * turns, .stages = stages, .releases_late = stages > 1, .releases_last = turns % 2 == 0});
      for (uint64_t seed = 1; seed <= 3; ++seed) EXPECT_EQ(complaint(sample, {.seed = seed}), "") << stages << turns;
    }
  }
  EXPECT_NE(complaint(ring_product({.stages = 1})).find("never ends"), std::string::npos);
}

/// What the simulator has to say of a program, for a few seeds.
std::string complaint_of(const RingSample& sample, const Program& program) {
  RingSample changed = sample;
  changed.program = program;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    if (std::string text = complaint(changed, {.seed = seed}); !text.empty()) return text;
  }
  return "";
}

TEST(Ring, MutantsAreCaught) {
  const RingSample sample = ring_product({.m = 128, .n = 64, .k = 64 * 5, .releases_last = false});
  std::vector<Mutant> all = mutants(sample.program);
  for (Mutant& mutant : mutants_of_operations(sample.program)) all.push_back(std::move(mutant));
  for (const Mutant& mutant : all) {
    const std::string text = complaint_of(sample, mutant.program);
    EXPECT_NE(text, "") << mutant.what;
  }
}

}  // namespace
}  // namespace tc::tile
