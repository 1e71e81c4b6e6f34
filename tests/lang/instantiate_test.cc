#include "tc/lang/instantiate.h"

#include <gtest/gtest.h>

#include <set>

#include "tc/lang/format.h"
#include "tc/lang/parser.h"
#include "tc/lang/sema.h"
#include "tests/fuzz/round_trip.h"

namespace tc::lang {
namespace {

constexpr const char* kSoftmax =
    "def softmax<T: float>(T(N, D) I) -> (T(N, D) O) {\n"
    "  T m(n) max=! I(n, d)\n"
    "  O(n, d) = T(exp(I(n, d) - m(n)))\n"
    "}\n";

File parsed(const std::string& text) {
  auto file = parse(std::make_shared<const Source>("test.tc", text));
  EXPECT_TRUE(file.has_value()) << (file ? "" : file.error().to_string());
  return file ? std::move(*file) : File{};
}

std::string error_of(const std::string& text) {
  const auto program = analyse(std::make_shared<const Source>("test.tc", text));
  return program ? "no error" : program.error().to_string();
}

std::string decision(const Definition& generic, const std::map<std::string, ScalarType>& tensors,
                     const TypeArguments& given = {}) {
  const auto types = decide_types(generic, tensors, given);
  return types ? instance_name(generic, *types) : types.error().diagnostics().at(0).message;
}

TEST(Instantiate, T7_GenericDefsKeepTheirTreeWhenFormatted) {
  EXPECT_EQ(format(parsed(kSoftmax)), kSoftmax);
  for (const char* text :
       {kSoftmax, "def f<T,I:integer>(T(N)A,I(M)J,T s)->(T O,Q){O+=!A(J(i))*T(s)I Q(i)=I(2)+J(i)}"}) {
    const RoundTrip trip = round_trip(text);
    EXPECT_TRUE(trip.parsed) << text;
    EXPECT_EQ(trip.broken, "") << text;
  }
}

TEST(Instantiate, T7_AnInstanceIsTheDefWithTypesInPlace) {
  const File file = parsed(kSoftmax);
  const File instance = instance_file(file, file.definitions[0], {{"T", ScalarType::kFloat16}});
  EXPECT_EQ(format(instance),
            "def softmax<float16>(float16(N, D) I) -> (float16(N, D) O) {\n"
            "  float16 m(n) max=! I(n, d)\n"
            "  O(n, d) = float16(exp(I(n, d) - m(n)))\n"
            "}\n");
  const auto typed = analyse(instance);
  ASSERT_TRUE(typed.has_value()) << typed.error().to_string();
  EXPECT_EQ(typed->definitions[0].name, "softmax<float16>");
  EXPECT_EQ(typed->definitions[0].tensors[0].type, ScalarType::kFloat16);
  EXPECT_TRUE(analyse(file)->definitions.empty()) << "a generic def is checked, and has no types of its own";
}

TEST(Instantiate, T7_NamesOfInstancesAreRead) {
  const File file = parsed("def f<T, I: integer>(T(N) A, I(N) J) -> (O) { O(i) = A(i) }");
  const Definition& f = file.definitions[0];
  const auto types = types_of_instance(f, "f<bfloat16,int64>");
  ASSERT_TRUE(types.has_value());
  EXPECT_EQ(instance_name(f, *types), "f<bfloat16,int64>");
  for (const char* wrong : {"f", "f<>", "f<int8>", "f<int8,float32>", "f<int8,int8,int8>", "f<int8,int8",
                            "g<int8,int8>", "f<int8,unknown>", "f<int8,int8,>"}) {
    EXPECT_FALSE(types_of_instance(f, wrong).has_value()) << wrong;
  }
}

TEST(Instantiate, T7_TensorsDecideAndMustAgree) {
  const File file = parsed("def f<T: float, U>(T(N) A, U(N) B, T(N) C) -> (T(N) O) { O(i) = A(i) + C(i) + T(B(i)) }");
  const Definition& f = file.definitions[0];
  const ScalarType f16 = ScalarType::kFloat16, f32 = ScalarType::kFloat32, i8 = ScalarType::kInt8;
  EXPECT_EQ(decision(f, {{"A", f16}, {"B", i8}, {"C", f16}}), "f<float16,int8>");
  EXPECT_EQ(decision(f, {{"O", f16}, {"B", i8}}), "f<float16,int8>");
  EXPECT_EQ(decision(f, {{"B", i8}}, {{"T", f32}}), "f<float32,int8>");
  EXPECT_EQ(decision(f, {{"A", f16}, {"B", i8}, {"C", f32}}),
            "'A' is of float16 and 'C' of float32; both have the type 'T' of 'f', so they must agree");
  EXPECT_EQ(decision(f, {{"A", f16}, {"B", i8}}, {{"T", f32}}),
            "'A' is of float16; the type variable 'T' of 'f' is given as float32");
  EXPECT_EQ(decision(f, {{"A", i8}, {"B", i8}}),
            "the type variable 'T' of 'f' is restricted to float types; 'A' is int8");
  EXPECT_EQ(decision(f, {{"A", f16}}),
            "nothing decides the type variable 'U' of 'f': no tensor of that type is given (B)");
  EXPECT_EQ(decision(f, {}, {{"V", f32}}), "'f' has no type variable 'V'; it has 'T', 'U'");
}

TEST(Instantiate, T7_ErrorsOfAllInstancesAreThoseOfTheFirst) {
  EXPECT_EQ(error_of("def f<T: float>(T(N) A) -> (T(N) O) { O(i) = A(i) + B(i) }"),
            "test.tc:1:53: error: 'B' is neither a tensor nor an intrinsic\n"
            "    def f<T: float>(T(N) A) -> (T(N) O) { O(i) = A(i) + B(i) }\n"
            "                                                        ^\n"
            "note: the tensors here are 'A' and 'O'\n"
            "test.tc:1:5: note: in the instance f<float32>\n"
            "    def f<T: float>(T(N) A) -> (T(N) O) { O(i) = A(i) + B(i) }\n"
            "        ^\n");
  // Fine for floats of 32 bits and more, so there are instances.
  EXPECT_EQ(error_of("def f<T>(T(N) A) -> (T(N) O) { O(i) = A(i) * 0.5 }"), "no error");
}

TEST(Instantiate, T7_TypesInANameAndGivenOnesMustAgree) {
  const File file = parsed("def f<T>(T(N) A) -> (O) { O(i) = A(i) }");
  const Definition& f = file.definitions[0];
  EXPECT_EQ(with_types_of_name(f, "f<float32>", {{"T", ScalarType::kFloat32}})->size(), 1U);
  const auto wrong = with_types_of_name(f, "f<float32>", {{"T", ScalarType::kFloat16}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().to_string(), "error: the type of 'T' is float32 in 'f<float32>', but given as float16\n");
}

TEST(Instantiate, T7_EveryVariableTakesEachType) {
  const File file = parsed("def f<A, B, C>(A(N) a, B(N) b, C(N) c) -> (O) { O(i) = a(i) }");
  std::set<ScalarType> types;
  for (const TypeArguments& instance : instances_of(file.definitions[0])) types.insert(instance.at("C"));
  EXPECT_EQ(types.size(), 13U);
}

TEST(Instantiate, T7_AtMost64InstancesAreTried) {
  const File file = parsed("def f<A, B, C>(A(N) a, B(N) b, C(N) c) -> (O) { O(i) = a(i) }");
  EXPECT_EQ(instances_of(file.definitions[0]).size(), 64U);
  const File one = parsed("def f<A: integer>(A(N) a) -> (O) { O(i) = a(i) }");
  EXPECT_EQ(instances_of(one.definitions[0]).size(), 8U);
  // Of several variables some may have to be integers.
  const File mixed = parsed("def f<A, B, C>(A(N) a, B(N) b, C(M) c) -> (O) { O(i) = shift_left(a(c(i)), b(c(i))) }");
  EXPECT_TRUE(analyse(mixed)) << analyse(mixed).error().to_string();
}

}  // namespace
}  // namespace tc::lang
