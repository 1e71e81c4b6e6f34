#include <gtest/gtest.h>

#include <regex>

#include "tc/ir/canonical.h"
#include "tc/lang/instantiate.h"
#include "tc/lang/parser.h"
#include "tests/common/program.h"
#include "tests/random/generator.h"

namespace tc::testing {
namespace {

/// T7: a text in which a type variable stands for a type, and the type again in its place, is the same program.
TEST(Generic, T7_InstancesOfRandomProgramsAreThePrograms) {
  int instances = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::string text = generate_program(seed).source();
    const Result<ir::Program> program = try_program(text);
    ASSERT_TRUE(program.has_value()) << text << program.error().to_string();
    for (const char* type : {"float16", "float32", "float64", "bfloat16", "int32", "int8", "uint16", "bool"}) {
      // Only what is the type of a tensor can be decided by one.
      if (!std::regex_search(text, std::regex(std::string("[(, ]") + type + "\\([^()]*\\) [A-Z]"))) continue;
      std::string generic = std::regex_replace(text, std::regex(std::string("\\b") + type + "\\b"), "T");
      generic = std::regex_replace(generic, std::regex("def f\\("), "def f<T>(");
      const Result<lang::File> file = lang::parse(std::make_shared<const Source>("generic.tc", generic));
      ASSERT_TRUE(file.has_value()) << generic << file.error().to_string();
      const lang::File instance =
          lang::instance_file(*file, file->definitions[0], {{"T", *scalar_type_from_name(type)}});
      const Result<lang::TypedProgram> typed = lang::analyse(instance);
      ASSERT_TRUE(typed.has_value()) << generic << typed.error().to_string();
      const Result<ir::Program> same = ir::from_lang(*typed, "");
      ASSERT_TRUE(same.has_value()) << generic << same.error().to_string();
      EXPECT_EQ(ir::digest_of(*same), ir::digest_of(*program)) << generic;
      ++instances;
    }
  }
  EXPECT_GT(instances, 100);
}

}  // namespace
}  // namespace tc::testing
