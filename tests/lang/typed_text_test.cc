#include "tc/lang/typed_text.h"

#include <gtest/gtest.h>

#include "tc/lang/same_meaning.h"
#include "tc/lang/sema.h"

namespace tc::lang {
namespace {

constexpr const char* kSignature =
    "def f(bool(N) b, int8(N) i8, int16(N) i16, int32(N) i32, int64(N) i64, uint8(N) u8, uint16(N) u16, uint32(N) u32, "
    "uint64(N) u64, float16(N) h, float(N) s, double(N) d, int32 a, int64 l, uint64 u) -> (o) { o(i) = ";

std::optional<TypedDefinition> typed(const std::string& right) {
  const auto program = analyse(std::make_shared<const Source>("test.tc", kSignature + right + " }"));
  EXPECT_TRUE(program.has_value()) << (program ? "" : program.error().to_string());
  return program ? std::optional(program->definitions.at(0)) : std::nullopt;
}

/// Analysed again, the text of an expression has the same meaning and type.
TEST(TypedText, KeepsMeaningAndType) {
  for (const char* right : {
           // Index arithmetic is exact, and a value of it is an int32 or, with a cast, an int64.
           "i + 1",
           "(i * 2 - N) / 3 % 5",
           "int64(i)",
           "int64(i + N * 2)",
           "int64(i) * i32(i)",
           "int64(i) * int64(i)",
           "int64(i) * 5",
           "int64(i) * int64(5)",
           "int64(-i)",
           "-int64(i)",
           "-int32(i)",
           "int32(i) * int32(i)",
           "int32(i) + 1",
           "1 + int32(i)",
           "int64(int32(i))",
           "int64(int8(i))",
           "int64(N)",
           "int64(i32.0) + i64(i)",
           "int64(i) * a",
           "int64(i) * l",
           "int64(i) * u",
           "int64(l) * i",
           "float(int64(i) * i32(i))",
           "max(int64(i), i64(i))",
           "max(i, i32(i))",
           "shift_left(int64(i), 3)",
           "popcount(int64(i))",
           // Comparisons of index arithmetic are exact, too.
           "i + 1 < N",
           "i < a",
           "i * a < N - l",
           "int64(i) < i64(i)",
           "int64(i) < 5",
           "int64(i) < l",
           "int32(i) < a",
           "i < u",
           "int32(i) < int32(5)",
           "int32(5) < int32(i)",
           "i == i32(i)",
           "i - 1 >= 0 && i < 5 ? s(i) : 0.0",
           // Constants have the type that they had.
           "int64(200000) * i32(i)",
           "int64(5000000000) * int64(2)",
           "int8(100) * i8(i)",
           "uint8(200) + uint8(100)",
           "int32(2000000000) + int32(2000000000)",
           "int32(7) / int32(2) * 0.5",
           "int8(int32(300))",
           "int8(-5) - i8(i)",
           "-int32(5)",
           "int32(1) - 2 + int32(i)",
           "uint64(1e19) + u64(i)",
           "float(int32(5)) * s(i)",
           "float(0.1) * float(0.3)",
           "double(0.1) * d(i)",
           "float16(0.1) * h(i)",
           "(0.1 * 3.0) * s(i)",
           "-inf",
           "nan",
           "b(i) || bool(0)",
           "int8(1000.0)",
           "uint8(-5.0)",
           "int32(3000000000.0)",
           "int32(inf) + i32(i)",
           // Lets are what they stand for.
           "c * c where c = int64(i)",
           "c * c where c = 3",
           "c * s(i) where c = i + 1",
           "c * s(i) where c = 0.1 * s(i)",
           "i64(c) where c = i / 2",
           "i32(i32(i) % N)",
           "i32(min(i64(i), N - 1))",
           "i32(int64(i) * i8(i) % N)",
           "i32(i < 3 ? i : i8(i))",
           "s(i) > 0.5 ? i : int32(s(i))",
           "fma(s(i), d(i), 2.0)",
           "select(b(i), i, 3)",
       }) {
    const auto first = typed(right);
    ASSERT_TRUE(first) << right;
    const TypedStatement& statement = first->statements.at(0);
    const std::string text = typed_text(*first, statement, *statement.right);
    const auto second = typed(text);
    ASSERT_TRUE(second) << right << " is " << text;
    EXPECT_TRUE(same_meaning(*statement.right, *second->statements.at(0).right)) << right << " is " << text;
  }
}

TEST(TypedText, MeaningsDifferInTypesAndOrder) {
  const auto right_of = [](const char* right) { return typed(right)->statements.at(0).right; };
  const auto same = [&](const char* a, const char* b) { return same_meaning(*right_of(a), *right_of(b)); };
  EXPECT_TRUE(same("int32(i8(i)) + i32(i)", "i8(i) + i32(i)")) << "an implicit cast is a cast";
  EXPECT_TRUE(same("c + c where c = i8(i)", "i8(i) + i8(i)"));
  EXPECT_FALSE(same("int64(i)", "i"));
  EXPECT_FALSE(same("int64(i) * i32(i)", "i * i32(i)"));
  EXPECT_FALSE(same("i8(i) + i32(i)", "i32(i) + i8(i)"));
  EXPECT_FALSE(same("s(i) * 0.0", "s(i) * -0.0"));
}

}  // namespace
}  // namespace tc::lang
