#include "tc/lang/sema.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tc/lang/intrinsics.h"
#include "tests/errors/error_files.h"

/// One accepting and one rejecting test for each rule of docs/language.md that the front end checks. The messages of
/// rejected programs are in tests/errors/lang.
namespace tc::lang {
namespace {

Result<TypedProgram> analysed(std::string text) {
  return analyse(std::make_shared<const Source>("test.tc", std::move(text)));
}

/// The one def of a program that must be accepted.
TypedDefinition accepted(const std::string& text) {
  auto program = analysed(text);
  EXPECT_TRUE(program.has_value()) << (program ? "" : program.error().to_string());
  return program ? std::move(program->definitions[0]) : TypedDefinition{};
}

/// The first sentence about a program that must be rejected.
std::string rejected(const std::string& text) {
  const auto program = analysed(text);
  EXPECT_FALSE(program.has_value()) << text;
  return program ? "" : program.error().diagnostics()[0].message;
}

const Tensor& tensor(const TypedDefinition& definition, std::string_view name) {
  for (const Tensor& t : definition.tensors) {
    if (t.name == name) return t;
  }
  ADD_FAILURE() << "no tensor " << name;
  return definition.tensors[0];
}

std::string index_names(const TypedStatement& statement) {
  std::string out;
  for (size_t i = 0; i < statement.indices.size(); ++i) {
    if (static_cast<int>(i) == statement.map_indices) out += "|";
    out += statement.indices[i].name + " ";
  }
  return out;
}

/// The type that `O(i) = <expression>` gives to O, over one tensor of each type and the index i.
std::string type_of(const std::string& expression) {
  const auto definition = accepted(
      "def f(bool(N) b, int8(N) i8, int16(N) i16, int32(N) i32, int64(N) i64, uint8(N) u8, uint16(N) u16, uint32(N) "
      "u32, "
      "uint64(N) u64, float16(N) h, bfloat16(N) bf, float(N) s, double(N) d) -> (O) { O(i) = " +
      expression + " }");
  return std::string(name_of(tensor(definition, "O").type));
}

TEST(Sema, C1_IndicesOfTheLeftAreMappedAndTheOthersReduced) {
  const auto definition = accepted(
      "def conv2d(float(B,IP,H,W) in, float(OP,IP,KH,KW) weight) -> (out) {\n"
      "  out(b,op,h,w) +=! in(b,ip, h + kh, w + kw) * weight(op,ip,kh,kw)\n}");
  EXPECT_EQ(index_names(definition.statements[0]), "b op h w |ip kh kw ");
}

TEST(Sema, C1_AssignmentCannotReduce) {
  EXPECT_EQ(rejected("def f(float(M) I, float(N) K) -> (O) { O(i) = K(x) * I(i + x) }"),
            "'=' cannot reduce over the index 'x', which is not on the left: write '+=!' or another reducing operator");
}

TEST(Sema, C2_AccumulatingIntoAnUnwrittenResultMakesItInOut) {
  EXPECT_EQ(tensor(accepted("def f(float(N) A) -> (O) { O(i) += A(i) }"), "O").role, Role::kInOut);
  EXPECT_EQ(tensor(accepted("def f(float(N) A) -> (O) { O(i) +=! A(i) }"), "O").role, Role::kResult);
  EXPECT_EQ(tensor(accepted("def f(float(N) A) -> (O) { O(i) = 0 O(i) += A(i) }"), "O").role, Role::kResult);
}

TEST(Sema, C2_ATemporaryCannotAccumulateIntoNothing) {
  EXPECT_EQ(rejected("def f(float(N) A) -> (O) { s += A(i) O = s }"),
            "'+=' accumulates into 's', which nothing has written and which is not a result: write '+=!' to start from "
            "nothing");
}

TEST(Sema, C3_InPlaceTranspositionIsAValue) {
  EXPECT_EQ(tensor(accepted("def f(float(N) A) -> (float(N,N) a) { a(i,j) = a(j,i) }"), "a").role, Role::kInOut);
}

TEST(Sema, C3_InPlaceUpdateOfATemporaryIsAnError) {
  EXPECT_EQ(rejected("def f(float(N,N) A) -> (O) { a(i,j) = a(j,i) + A(i,j) O(i,j) = a(i,j) }"),
            "'a' is read before it is written, and it is not a result");
}

TEST(Sema, C4_AResultReadBeforeItIsWrittenIsInOut) {
  const auto definition = accepted(
      "def sgemm(float a, float b, float(N,M) A, float(M,K) B) -> (C) {\n"
      "  C(i,j) = b * C(i,j)\n  C(i,j) += a * A(i,k) * B(k,j)\n}");
  EXPECT_EQ(tensor(definition, "C").role, Role::kInOut);
  EXPECT_EQ(tensor(definition, "C").type, ScalarType::kFloat32);
  EXPECT_EQ(tensor(definition, "A").role, Role::kInput);
}

TEST(Sema, C4_InputsAreImmutable) {
  EXPECT_EQ(rejected("def f(float(N) A) -> (O) { A(i) = 1 O(i) = A(i) }"), "'A' is an input and cannot be written");
}

TEST(Sema, C5_AWrittenTensorThatIsNoResultIsATemporary) {
  const auto definition = accepted("def f(float(N) A) -> (O) { t(i) = A(i) O(i) = t(i) }");
  EXPECT_EQ(tensor(definition, "t").role, Role::kTemporary);
  EXPECT_EQ(definition.tensors.back().name, "t");
}

TEST(Sema, C5_EveryResultIsWritten) {
  EXPECT_EQ(rejected("def f(float(N) A) -> (O, P) { O(i) = A(i) }"), "the result 'P' is never written");
}

TEST(Sema, C6_TensorsAreWrittenAndReadInTurn) {
  const auto definition = accepted(
      "def softmax(float(N,D) I) -> (O) {\n  m(n) max=! I(n,d)\n  O(n,d) = exp(I(n,d) - m(n))\n  s(n) +=! O(n,d)\n"
      "  O(n,d) = O(n,d) / s(n)\n}");
  EXPECT_EQ(definition.statements.size(), 4u);
  EXPECT_EQ(tensor(definition, "O").role, Role::kResult);
}

TEST(Sema, C6_ALaterWriteIsNoExcuse) {
  EXPECT_EQ(rejected("def f(float(N) A) -> (O) { O(i) = t(i) t(i) = A(i) }"),
            "'t' is read before it is written, and it is not a result");
}

TEST(Sema, C7_AReducingLeftSideMayReadTensors) {
  const auto definition = accepted("def h(int bins, int(N) I) -> (H) { H(b) = 0 where b in 0:bins H(I(i)) += 1 }");
  const TypedStatement& scatter = definition.statements[1];
  EXPECT_EQ(index_names(scatter), "i ");
  EXPECT_EQ(scatter.map_indices, 1);
  EXPECT_EQ(scatter.subscripts[0]->type, ScalarType::kInt64);
}

TEST(Sema, C7_AssignmentTakesIndexArithmeticThatReadsNoTensor) {
  const auto definition = accepted("def f(float(N) A, int32 s) -> (O) { O(2 * i + x, A.0 - s) = A(i) where x = N }");
  EXPECT_EQ(definition.statements[0].map_indices, 1);
  EXPECT_TRUE(definition.scalars[0].compiled_in);
  EXPECT_EQ(
      rejected("def f(float(N) A, int(N) I) -> (O) { O(I(i)) = A(i) }"),
      "with '=' a subscript on the left is made of indices, sizes, integer scalars and numbers, and 'I(i)' is not: "
      "it needs a reducing operator such as '+='");
}

TEST(Sema, C8_SubscriptsMayReadTensors) {
  const auto definition = accepted("def g(float(N) X, int8(A,B) I) -> (Z) { Z(i,j) = X(I(i,j) + 2 * i) }");
  const auto& read = std::get<Read>(definition.statements[0].right->node);
  const auto& sum = std::get<TypedBinary>(read.subscripts[0]->node);
  EXPECT_EQ(read.subscripts[0]->type, ScalarType::kInt64);
  EXPECT_TRUE(std::holds_alternative<Cast>(sum.left->node));
}

TEST(Sema, C8_SubscriptsAreIntegers) {
  EXPECT_EQ(rejected("def f(float(N) A) -> (O) { O(i) = A(A(i)) }"),
            "a subscript must be an integer, and 'A(i)' is float32");
}

TEST(Sema, C9_ASizeAndATensorWithDimensionsMayShareAName) {
  const auto definition = accepted(
      "def sconv2d(int sh, int sw, float(N,C,H,W) I, float(F,C,KH,KW) W, float(F) B) -> (O) {\n"
      "  O(n,f,h,w) = B(f)\n  O(n,f,h,w) += I(n,c, sh * h + kh, sw * w + kw) * W(f,c,kh,kw)\n}");
  EXPECT_EQ(definition.sizes.size(), 7u);
  EXPECT_TRUE(definition.scalars[0].compiled_in);
}

TEST(Sema, C9_OneNameHasOneMeaning) {
  EXPECT_EQ(rejected("def f(float(N) A, float A) -> (O) { O(i) = A(i) }"),
            "'A' is a tensor already, so it cannot name a scalar");
  EXPECT_EQ(rejected("def f(float(N) A) -> (O) { O(i) = A(i, i) }"), "'A' has 1 dimension but is indexed with 2");
}

TEST(Sema, C10_ClausesGiveRangesAndNames) {
  const auto definition = accepted(
      "def f(float(N) A, int n) -> (O) {\n  O(i) +=! A(i + x) * x where k in 0:5, x = 2 * i, i in 1:min(n, N) - 1, "
      "exists A(i)\n}");
  const TypedStatement& statement = definition.statements[0];
  EXPECT_EQ(index_names(statement), "i |k ");
  EXPECT_TRUE(statement.indices[0].given.has_value());
  EXPECT_TRUE(statement.indices[1].given.has_value());
  EXPECT_EQ(statement.lets[0].value->type, ScalarType::kInt32);
  EXPECT_EQ(statement.exists.size(), 1u);
  EXPECT_TRUE(definition.scalars[0].compiled_in);
}

TEST(Sema, C10_AnEmptyRangeIsAnError) {
  EXPECT_EQ(rejected("def f(float(N) A) -> (O) { O(i) +=! A(i) where k in 5:5 }"), "the range 5:5 of 'k' is empty");
  EXPECT_EQ(rejected("def f(float(N) A) -> (O) { O(i) +=! A(i) where k in 3:1 }"), "the range 3:1 of 'k' is reversed");
}

TEST(Sema, C11_ScalarsInSubscriptsAreCompiledIn) {
  const auto definition =
      accepted("def f(int stride, int limit, float a, float(N) A) -> (O) { O(i) = i < limit ? a * A(stride * i) : 0 }");
  EXPECT_TRUE(definition.scalars[0].compiled_in);
  EXPECT_FALSE(definition.scalars[1].compiled_in);
  EXPECT_FALSE(definition.scalars[2].compiled_in);
}

TEST(Sema, C11_OnlyIntegerScalarsMayBeSubscripts) {
  EXPECT_EQ(rejected("def f(float a, float(N) A) -> (O) { O(i) = A(a * i) }"),
            "a subscript must be an integer, and 'a' is float32");
}

TEST(Sema, R8_ModuloIsForIntegers) {
  EXPECT_EQ(type_of("i32(i) % 3"), "int32");
  EXPECT_EQ(rejected("def f(float(N) A) -> (O) { O(i) = A(i) % 2 }"),
            "'%' takes integers: write fmod(x, y) for floats");
}

TEST(Sema, T1_OperandsMeet) {
  EXPECT_EQ(type_of("i8(i) + u32(i)"), "int64");
  EXPECT_EQ(type_of("i8(i) + u8(i)"), "int16");
  EXPECT_EQ(type_of("i64(i) + u64(i)"), "int64");
  EXPECT_EQ(type_of("u8(i) + u16(i)"), "uint16");
  EXPECT_EQ(type_of("i64(i) * h(i)"), "float16");
  EXPECT_EQ(type_of("h(i) - bf(i)"), "float32");
  EXPECT_EQ(type_of("s(i) / d(i)"), "float64");
  EXPECT_EQ(type_of("h(i) * 2"), "float16");
  EXPECT_EQ(type_of("h(i) * 0.5"), "float32");
  EXPECT_EQ(type_of("h(i) * half(0.5)"), "float16");
  EXPECT_EQ(type_of("i32(i) + 3000000000"), "int64");
  EXPECT_EQ(type_of("i + 1"), "int32");
  EXPECT_EQ(type_of("int64(i) + 1"), "int64");
  EXPECT_EQ(type_of("exp(i32(i))"), "float32");
  EXPECT_EQ(type_of("max(i8(i), i16(i), u8(i))"), "int16");
  EXPECT_EQ(type_of("popcount(u64(i))"), "int32");
  EXPECT_EQ(type_of("llround(s(i))"), "int64");
  EXPECT_EQ(type_of("ldexp(h(i), i8(i))"), "float16");
}

TEST(Sema, T1_BitOperationsTakeIntegers) {
  EXPECT_EQ(rejected("def f(float(N) A) -> (O) { O(i) = bitwise_and(A(i), 1) }"),
            "'bitwise_and' takes integers here, and 'A(i)' is float32");
}

TEST(Sema, T2_TheFirstRightSideGivesTheType) {
  const auto type = [](const std::string& body) {
    return name_of(tensor(accepted("def f(float(N) A, double(N) D, int(N) I) -> (O) { " + body + " }"), "O").type);
  };
  EXPECT_EQ(type("O(i) = A(i)"), "float32");
  EXPECT_EQ(type("O(i) = 0 O(i) += D(i)"), "float64");
  EXPECT_EQ(type("O(i) = 0.0 O(i) += D(i)"), "float64");
  EXPECT_EQ(type("O(i) = 0.0 O(i) += I(i)"), "float32");
  EXPECT_EQ(type("O(i) = 1 where i in 0:N"), "int32");
  EXPECT_EQ(type("double O(i) +=! A(i)"), "float64");
  EXPECT_EQ(type("O(i) = O(i) + 1 O(i) += D(i)"), "float64");
  EXPECT_EQ(name_of(tensor(accepted("def f(float(N) A) -> (double O) { O(i) = A(i) }"), "O").type), "float64");
}

TEST(Sema, T2_NarrowingNeedsACast) {
  EXPECT_EQ(rejected("def f(double(N) D) -> (float O) { O(i) = D(i) }"),
            "'O' is float32 and its right side is float64: narrowing needs a cast, float32(...)");
  accepted("def f(double(N) D) -> (float O) { O(i) = float(D(i)) }");
  EXPECT_EQ(rejected("def f(float(N) A) -> (O) { O(i) = O(i) + 1 }"),
            "nothing tells the type of 'O': declare it, as in 'float O(...) = ...'");
}

TEST(Sema, T3_ASumKeepsTheTypeOfItsTensor) {
  const auto definition = accepted("def f(half(N) A) -> (s) { s +=! A(i) }");
  EXPECT_EQ(tensor(definition, "s").type, ScalarType::kFloat16);
}

TEST(Sema, T3_AWiderTermIsNotNarrowedBySumming) {
  EXPECT_EQ(rejected("def f(half(N) A) -> (half s) { s +=! A(i) * 0.5 }"),
            "'s' is float16 and its right side is float32: narrowing needs a cast, float16(...)");
}

TEST(Sema, T6_UntypedSumsOfNarrowIntegersAreOf32Bits) {
  const auto type = [](const std::string& body) {
    return name_of(
        tensor(accepted("def f(int8(N) A, uint16(N) B, int64(N) C, half(N) H) -> (O) { " + body + " }"), "O").type);
  };
  EXPECT_EQ(type("O +=! A(i)"), "int32");
  EXPECT_EQ(type("O *=! A(i) * A(i)"), "int32");
  EXPECT_EQ(type("O +=! B(i)"), "uint32");
  EXPECT_EQ(type("O = 0  O += A(i)"), "int32");
  EXPECT_EQ(type("O +=! C(i)"), "int64");
  EXPECT_EQ(type("O +=! H(i)"), "float16");
  EXPECT_EQ(type("O max=! A(i)"), "int8");
  EXPECT_EQ(type("O(i) = A(i)  O(i) += A(i)"), "int8");
  EXPECT_EQ(type("int8 O +=! A(i)"), "int8");
}

TEST(Sema, T6_LiteralsThatAreCastSaturate) {
  const auto value = [](const std::string& text) {
    const auto definition = accepted("def f(float(N) A) -> (O) { O(i) = " + text + " where i in 0:N }");
    return std::get<IntegerConstant>(definition.statements[0].right->node).value;
  };
  EXPECT_EQ(value("int8(1e9)"), 127);
  EXPECT_EQ(value("int8(-1e9)"), -128);
  EXPECT_EQ(value("uint16(-0.9)"), 0);
  EXPECT_EQ(value("int64(-inf)"), INT64_MIN);
  EXPECT_EQ(value("int64(9.3e18)"), INT64_MAX);
  EXPECT_EQ(static_cast<uint64_t>(value("uint64(inf)")), UINT64_MAX);
  EXPECT_EQ(value("int(nan)"), 0);
  EXPECT_EQ(value("int(-2.75)"), -2);
}

TEST(Sema, T6_QuotientsOfIntegersInAFloatsPlaceAreRemarked) {
  const auto remarks = [](const std::string& body) {
    std::string text;
    for (const Note& note : accepted("def f(float(N) x, int(N) k) -> (float(N) O) { " + body + " }").remarks) {
      text += note.text + "\n";
    }
    return text;
  };
  const auto remark = [](const char* quotient, const char* instead) {
    return fmt::format(
        "'{0}' divides integers, so it is rounded down before it becomes float32: write {1}, or "
        "float32({0}) if that is meant\n",
        quotient, instead);
  };
  EXPECT_EQ(remarks("O(i) = (1 / N) * x(i)"), remark("1 / N", "1.0 / N"));
  EXPECT_EQ(remarks("O(i) = 3 / 2 where i in 0:N"), remark("3 / 2", "3.0 / 2"));
  EXPECT_EQ(remarks("O(i) = x(i) + k(i) / (N - 1)"), remark("k(i) / (N - 1)", "float(k(i)) / (N - 1)"));
  EXPECT_EQ(remarks("O(i) = x(i) > 0.0 ? x(i) : -(i / 2)"), remark("i / 2", "float(i) / 2"));
  EXPECT_EQ(remarks("O(i) = sqrt(i / 2) where i in 0:N"), remark("i / 2", "float(i) / 2"));
  EXPECT_EQ(remarks("O(i) = y * x(i) where y = 1 / N"), "");  // a let is an int32 of its own, with a name
  EXPECT_EQ(remarks("O(i) = x(i / 2) + x(i) / 2 + float(i / 2) + 4 / 2"), "");
}

TEST(Sema, T3_ProductsThatAQuotientRoundsAreRemarked) {
  const auto remarks = [](const std::string& statement) {
    std::string text;
    const std::string head = "def f(half(N,K) A, half(K,M) B, bfloat16(N,K) C) -> (O) { ";
    for (const Note& note : accepted(head + statement + " }").remarks) text += note.text + "\n";
    return text;
  };
  const auto remark = [](const char* type) {
    return fmt::format(
        "this product is rounded to {}, as '/' computes its operands in their own type: make a factor a float(...) to "
        "divide in float32, or name it by 'where' if that is meant\n",
        type);
  };
  EXPECT_EQ(remarks("O(n,m) +=! A(n,k) * B(k,m) / 8"), remark("float16"));
  EXPECT_EQ(remarks("float O(n,m) +=! 2.0 - A(n,k) * B(k,m) / sqrt(float(K))"), remark("float16"));
  EXPECT_EQ(remarks("O(n) max=! C(n,k) * C(n,k) / 3"), remark("bfloat16"));
  for (const char* meant : {"O(n,m) +=! float(A(n,k)) * B(k,m) / 8", "O(n,m) +=! A(n,k) * B(k,m) * 0.125",
                            "O(n,m) +=! p / 8 where p = A(n,k) * B(k,m)", "O(n,m) +=! A(n,k) / 8 * B(k,m)",
                            "O(n,k) = A(n,k) * A(n,k) / 8"}) {
    EXPECT_EQ(remarks(meant), "") << meant;
  }
}

TEST(Sema, T3_ProductsOfFloat32And16BitFloatsAreRemarked) {
  const auto remarks = [](const std::string& statement) {
    std::string text;
    const std::string head = "def f(float(N,K) P, half(K,M) V, bfloat16(N) s, float(K,M) W) -> (O) { ";
    for (const Note& note : accepted(head + statement + " }").remarks) text += note.text + "\n";
    return text;
  };
  EXPECT_EQ(remarks("O(n,m) +=! P(n,k) * V(k,m)"),
            "'P' is float32, so this product of matrices is one of float32, which tensor cores do not multiply: write "
            "float16(P(...)) if its digits suffice, or float32(...) around the other factor if that is meant\n");
  for (const char* meant :
       {"O(n,m) +=! half(P(n,k)) * V(k,m)", "O(n,m) +=! P(n,k) * float(V(k,m))", "O(k) +=! P(n,k) * s(n)",
        "O(n,m) +=! P(n,k) * W(k,m)", "O(n,k,m) = P(n,k) * V(k,m)", "O(n,m) max=! P(n,k) * V(k,m)"}) {
    EXPECT_EQ(remarks(meant), "") << meant;
  }
}

TEST(Sema, T8_EightBitFloatsAreReadAsFloat32) {
  const auto definition =
      accepted("def f(float8_e4m3(N) A) -> (O, P, Q) { O(i) = A(i)  P(i) = float8_e5m2(A(i))  Q +=! A(i) }");
  EXPECT_EQ(tensor(definition, "A").type, ScalarType::kFloat8E4M3);
  EXPECT_EQ(tensor(definition, "O").type, ScalarType::kFloat32);
  EXPECT_EQ(tensor(definition, "P").type, ScalarType::kFloat8E5M2);
  EXPECT_EQ(tensor(definition, "Q").type, ScalarType::kFloat32);
  EXPECT_EQ(tensor(accepted("def f(float(N) A) -> (O) { O(i) = 2.0 * float8_e5m2(A(i)) }"), "O").type,
            ScalarType::kFloat32);
  accepted("def f(half(N) A, int8(N) B) -> (float8_e4m3(N) O, float8_e5m2(N) P) { O(i) = A(i)  P(i) = B(i) }");
  EXPECT_EQ(rejected("def f(double(N) A) -> (float8_e4m3(N) O) { O(i) = A(i) }"),
            "'O' is float8_e4m3 and its right side is float64: narrowing needs a cast, float8_e4m3(...)");
}

TEST(Sema, T8_Tf32TakesAFloat32) {
  EXPECT_EQ(tensor(accepted("def f(half(N) A) -> (O) { O(i) = tf32(A(i)) }"), "O").type, ScalarType::kFloat32);
  EXPECT_EQ(rejected("def f(double(N) A) -> (O) { O(i) = tf32(A(i)) }"),
            "'tf32' takes a float32 here, and 'A(i)' is float64");
}

TEST(Sema, ConstantsTakeTheTypeOfTheirPlace) {
  const auto value = [](const std::string& type, const std::string& text) {
    const auto definition = accepted("def f(float(N) A) -> (" + type + "(N) O) { O(i) = " + text + " where i in 0:N }");
    return std::get<FloatConstant>(definition.statements[0].right->node).value;
  };
  EXPECT_EQ(value("float", "pi"), static_cast<float>(3.14159265358979323846));
  EXPECT_EQ(value("double", "double(pi)"), 3.14159265358979323846);
  EXPECT_EQ(value("half", "-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(value("float", "nan")));
  EXPECT_EQ(type_of("h(i) * pi"), "float32");
  accepted("def f(float(N) info, float(N) nanmask, float(N) pix) -> (O) { O(i) = info(i) + nanmask(i) + pix(i) }");
}

TEST(Sema, T4_BranchesMeetAndComparisonsAreBool) {
  EXPECT_EQ(type_of("b(i) ? i8(i) : s(i)"), "float32");
  EXPECT_EQ(type_of("select(b(i), h(i), 1)"), "float16");
  EXPECT_EQ(type_of("s(i) < d(i)"), "bool");
  EXPECT_EQ(type_of("b(i) == !b(i) && isnan(s(i))"), "bool");
  EXPECT_EQ(type_of("int8(b(i)) + i8(i)"), "int8");
}

TEST(Sema, T4_ABoolInArithmeticNeedsACast) {
  EXPECT_EQ(rejected("def f(bool(N) B) -> (O) { O(i) = B(i) + 1 }"),
            "'+' takes numbers, and 'B(i)' is a bool: write a cast, as in int32(B(i))");
  EXPECT_EQ(rejected("def f(int(N) I) -> (O) { O(i) = I(i) ? 1 : 2 }"),
            "'?:' takes a bool, and 'I(i)' is int32: compare it, as in 'I(i) != 0'");
}

TEST(Sema, T5_InfinitiesAreValues) {
  const auto definition = accepted("def f(float(N) A) -> (O) { O(i) = -1.0 / 0 O(i) max= A(i) }");
  const auto& constant = std::get<FloatConstant>(definition.statements[0].right->node);
  EXPECT_EQ(constant.value, -std::numeric_limits<double>::infinity());
}

TEST(Sema, T5_ANumberDoesNotBecomeInfiniteByItself) {
  EXPECT_EQ(rejected("def f(float(N) A) -> (O) { O(i) = A(i) * 1e39 }"), "1e39 is too large for float32");
}

TEST(Sema, IndexArithmeticIsExactUntilItEntersAValue) {
  const auto definition = accepted("def f(float(N,M) A) -> (O) { O(i,j) = A(i,j) + (i * M + j - 1) }");
  const auto& sum = std::get<TypedBinary>(definition.statements[0].right->node);
  const auto& to_float = std::get<Cast>(sum.right->node);
  const auto& to_int32 = std::get<Cast>(to_float.operand->node);
  EXPECT_EQ(to_float.operand->type, ScalarType::kInt32);
  EXPECT_TRUE(to_int32.implicit);
  EXPECT_EQ(to_int32.operand->type, ScalarType::kInt64);
}

TEST(Sema, ComparisonsOfIndicesAreExact) {
  const auto definition =
      accepted("def f(float(N) I, int n) -> (O) { O(h) = h >= 1 && h - n <= N ? I(h - 1) : 0.0 where h in 0:N + 2 }");
  const auto& guard = std::get<Select>(definition.statements[0].right->node);
  const auto& both = std::get<TypedBinary>(guard.condition->node);
  EXPECT_EQ(std::get<TypedBinary>(both.left->node).left->type, ScalarType::kInt64);
  EXPECT_EQ(std::get<TypedBinary>(both.right->node).left->type, ScalarType::kInt64);
}

TEST(Sema, ConstantsAreRoundedOnce) {
  const auto definition = accepted("def f(float(N) A) -> (double O, half P) { O(i) = double(0.1) P(i) = 0.1 }");
  const auto constant = [&](int s) { return std::get<FloatConstant>(definition.statements[s].right->node).value; };
  EXPECT_EQ(constant(0), 0.1);
  EXPECT_EQ(constant(1), 0.0999755859375);
}

TEST(Intrinsics, AreFoundWithAndWithoutTheCSuffix) {
  for (const IntrinsicInfo& info : all_intrinsics()) EXPECT_EQ(find_intrinsic(info.name), &info);
  EXPECT_EQ(find_intrinsic("fmaxf"), find_intrinsic("fmax"));
  EXPECT_EQ(find_intrinsic("erff")->name, "erf");
  EXPECT_EQ(find_intrinsic("sigmoidf"), nullptr);
  EXPECT_EQ(find_intrinsic("f"), nullptr);
}

TEST(Intrinsics, AreAllInTheManual) {
  const std::string manual = testing::read_text(std::filesystem::path(TC_SOURCE_DIR) / "docs/language.md");
  for (const IntrinsicInfo& info : all_intrinsics()) {
    EXPECT_NE(manual.find(fmt::format("| `{}` | {}", info.name, info.min_arguments)), std::string::npos) << info.name;
  }
}

}  // namespace
}  // namespace tc::lang
