#include "tests/random/generator.h"

#include <gtest/gtest.h>

#include "tests/common/program.h"

namespace tc::testing {
namespace {

TEST(RandomPrograms, AreTheSameForASeed) {
  for (uint64_t seed : {0, 1, 77}) EXPECT_EQ(generate_program(seed).source(), generate_program(seed).source());
  EXPECT_NE(generate_program(1).source(), generate_program(2).source());
}

TEST(RandomPrograms, AreAcceptedAndRun) {
  int undecidable = 0;
  int64_t elements = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const RandomProgram source = generate_program(seed);
    Result<ir::Program> program = try_program(source.source());
    ASSERT_TRUE(program) << source.describe() << program.error().to_string();
    Result<ir::Bindings> bindings = ir::bind_sizes(*program, source.sizes, source.compiled_in);
    ASSERT_TRUE(bindings) << source.describe() << bindings.error().to_string();
    Result<ir::Program> specialised = ir::specialise(*program, *bindings);
    ASSERT_TRUE(specialised) << source.describe() << specialised.error().to_string();
    for (DataKind kind : {DataKind::kSmallIntegers, DataKind::kReals, DataKind::kSpecials}) {
      const interp::Environment data = generate_data(source, *specialised, kind, seed);
      const auto plain = interp::run(*specialised, data);
      ASSERT_TRUE(plain) << source.describe() << plain.error().to_string();
      const auto bounded = interp::run_bounded(*specialised, data);
      ASSERT_TRUE(bounded) << source.describe() << bounded.error().to_string();
      for (const auto& [name, value] : *bounded) {
        for (double error : value.errors) undecidable += std::isinf(error);
        elements += value.value.elements();
      }
    }
  }
  // A program most of whose elements cannot be compared would test nothing.
  EXPECT_LT(undecidable, elements / 10);
}

}  // namespace
}  // namespace tc::testing
