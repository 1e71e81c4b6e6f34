#include <gtest/gtest.h>

#include <array>
#include <span>

#include "tests/api/tensors.h"
#include "tests/common/temporary_folder.h"

/// T7: an engine finds the instance of a generic def that a request decides.
namespace tc::testing {
namespace {

constexpr const char* kScale =
    "def scale<T>(T(N) x, T a) -> (y) { y(i) = x(i) * a }\n"
    "def plain(float(N) x) -> (y) { y(i) = x(i) }\n";

api::Request request_of(ScalarType type, int64_t n = 5) {
  return {.entry = "scale", .inputs = {api::TensorSpec{.type = type, .shape = {n}}}};
}

template <typename T>
std::vector<T> scaled(const api::Engine& engine, ScalarType type, api::Backend backend = api::Backend::kCpu) {
  api::Request request = request_of(type, 3);
  request.backend = backend;
  const api::CompiledKernel kernel = take(engine.compile(request));
  std::vector<api::Tensor> inputs;
  inputs.push_back(tensor_of<T>({.type = type, .shape = {3}}, {T(1), T(2), T(3)}));
  std::vector<api::Tensor> outputs = take(kernel.allocate_outputs());
  const std::vector<api::Scalar> scalars = {api::Scalar(3)};
  const Result<void> done = kernel.run(inputs, outputs, scalars);
  EXPECT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(outputs[0].spec().type, type);
  return elements_of<T>(outputs[0]);
}

TEST(Generic, T7_TensorsPickTheInstance) {
  const api::Engine engine = take(api::Engine::create(kScale));
  EXPECT_EQ(engine.entries(), (std::vector<std::string>{"scale", "plain"}));
  for (const api::Backend backend : {api::Backend::kCpu, api::Backend::kSimulator}) {
    EXPECT_EQ(scaled<float>(engine, ScalarType::kFloat32, backend), (std::vector<float>{3, 6, 9}));
    EXPECT_EQ(scaled<double>(engine, ScalarType::kFloat64, backend), (std::vector<double>{3, 6, 9}));
    EXPECT_EQ(scaled<int64_t>(engine, ScalarType::kInt64, backend), (std::vector<int64_t>{3, 6, 9}));
    EXPECT_EQ(scaled<int8_t>(engine, ScalarType::kInt8, backend), (std::vector<int8_t>{3, 6, 9}));
  }
  EXPECT_EQ(take(engine.compile(request_of(ScalarType::kFloat16))).signature().entry, "scale<float16>");
}

TEST(Generic, T7_EachInstanceIsCompiledOnce) {
  const api::Engine engine = take(api::Engine::create(kScale));
  for (int i = 0; i < 2; ++i) {
    take(engine.compile(request_of(ScalarType::kFloat32)));
    take(engine.compile(request_of(ScalarType::kFloat64)));
  }
  EXPECT_EQ(engine.statistics().compiled, 2);
  EXPECT_EQ(engine.statistics().memory_hits, 2);
}

TEST(Generic, T7_AnInstanceKeepsTheRequestsLimits) {
  const api::Engine engine = take(api::Engine::create(kScale));
  std::stop_source stop;
  stop.request_stop();
  api::Request request = request_of(ScalarType::kInt8);
  request.cancel = stop.get_token();
  for (const auto& error : {engine.compile(request).error(), engine.infer(request).error()}) {
    EXPECT_EQ(error.kind(), ErrorKind::kCancelled) << error.to_string();
  }
  request.cancel = {};
  EXPECT_TRUE(engine.compile(request)) << "a request that was stopped leaves nothing behind";
  api::EngineOptions options;
  options.cancel = stop.get_token();
  const auto stopped = api::Engine::create(kScale, "tc", options);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind(), ErrorKind::kCancelled) << stopped.error().to_string();
}

TEST(Generic, T7_ASignatureNamesTheVariables) {
  const api::Signature signature = take(take(api::Engine::create(kScale)).signature("scale"));
  EXPECT_EQ(signature.entry, "scale");
  ASSERT_EQ(signature.type_variables.size(), 1U);
  EXPECT_EQ(signature.type_variables[0].name, "T");
  EXPECT_EQ(signature.type_variables[0].restriction, "");
  EXPECT_EQ(signature.parameters[0].type_variable, "T");
  EXPECT_EQ(signature.parameters[1].type_variable, "T");
  EXPECT_EQ(signature.parameters[0].shape, std::vector<std::string>{"N"});
}

TEST(Generic, T7_ASignatureNamesAnUndeclaredResultsVariableIfAllInstancesHaveIt) {
  const auto variable_of = [](const char* text) {
    return take(take(api::Engine::create(text)).signature()).results.at(0).type_variable;
  };
  EXPECT_EQ(variable_of("def f<T>(T(N) x) -> (y) { y(i) = x(i) }"), "T");
  EXPECT_EQ(variable_of("def f<T: float>(T(N) x) -> (y) { y(i) = x(i) * x(i) }"), "T");
  // float16 and integers meet a number of float32; two variables meet at the wider type.
  EXPECT_EQ(variable_of("def f<T>(T(N) x) -> (y) { y(i) = x(i) * 1.5 }"), "");
  EXPECT_EQ(variable_of("def f<T: float, U: float>(T(N) x, U(N) z) -> (y) { y(i) = x(i) * z(i) }"), "");
  EXPECT_EQ(variable_of("def f<T: integer>(T(N) x) -> (s) { s +=! x(i) }"), "");
}

/// Elements of 8-bit floats are read as float32.
TEST(Generic, T8_ASignatureSaysWhichResultsWiden) {
  const auto widens = [](const char* text) {
    return take(take(api::Engine::create(text)).signature()).results.at(0).widens_float8;
  };
  EXPECT_TRUE(widens("def f<T>(T(N) x) -> (y) { y(i) = x(i) }"));
  EXPECT_TRUE(widens("def f<T: float>(T(N) x) -> (y) { y(i) = x(i) * x(i) }"));
  EXPECT_FALSE(widens("def f<T: float>(T(N) x) -> (T(N) y) { y(i) = x(i) * x(i) }"));
  EXPECT_FALSE(widens("def f<T: integer>(T(N) x) -> (y) { y(i) = x(i) }"));
  EXPECT_FALSE(widens("def f<T>(T(N) x) -> (y) { y(i) = x(i) * 1.5 }"));
}

TEST(Generic, T7_TypesMayBeNamed) {
  const api::Engine engine = take(api::Engine::create(kScale));
  api::Request request{.entry = "scale", .types = {{"T", ScalarType::kInt16}}, .sizes = {{"N", 4}}};
  EXPECT_EQ(take(engine.infer(request)).inputs[0].type, ScalarType::kInt16);
  request = {.entry = "scale<uint8>", .sizes = {{"N", 4}}};
  EXPECT_EQ(take(engine.infer(request)).outputs[0].type, ScalarType::kUInt8);
  EXPECT_NE(take(engine.emit(request, "cuda")).find("scale_uint8_0("), std::string::npos) << "names are C's";
}

TEST(Generic, T7_ErrorsOfRequests) {
  const api::Engine engine = take(api::Engine::create(kScale));
  EXPECT_EQ(error_of(engine.infer({.entry = "scale", .sizes = {{"N", 4}}})),
            "error: nothing decides the type variable 'T' of 'scale': no tensor of that type is given (x)\n");
  EXPECT_EQ(error_of(engine.infer({.entry = "scale<int>x", .sizes = {{"N", 4}}})),
            "error: 'scale<int>x' is no instance of 'scale<T>'\n");
  EXPECT_EQ(error_of(engine.infer({.entry = "plain", .types = {{"T", ScalarType::kInt8}}, .sizes = {{"N", 4}}})),
            "error: 'plain' has no type variable 'T'\n");
  // The body has a meaning for numbers only.
  const std::string text = error_of(engine.infer(request_of(ScalarType::kBool)));
  EXPECT_NE(text.find("'*' takes numbers"), std::string::npos) << text;
  EXPECT_NE(text.find("note: in the instance scale<bool>"), std::string::npos) << text;
}

TEST(Generic, T7_ACachesFileKnowsInstances) {
  const TemporaryFolder folder;
  const std::string file = folder.path("kernels.tcc");
  {
    const api::Engine engine = take(api::Engine::create(kScale, "tc", {.cache = file}));
    EXPECT_EQ(scaled<double>(engine, ScalarType::kFloat64), (std::vector<double>{3, 6, 9}));
    EXPECT_EQ(engine.statistics().compiled, 1);
  }
  const api::Engine again = take(api::Engine::create(kScale, "tc", {.cache = file}));
  EXPECT_EQ(scaled<double>(again, ScalarType::kFloat64), (std::vector<double>{3, 6, 9}));
  EXPECT_EQ(again.statistics().file_hits, 1);
  for (const char* text : {kScale, ""}) {
    const api::Engine production = take(api::Engine::production(file, {.text = text}));
    EXPECT_EQ(scaled<double>(production, ScalarType::kFloat64), (std::vector<double>{3, 6, 9})) << text;
    EXPECT_FALSE(production.compile(request_of(ScalarType::kFloat32, 3)).has_value()) << text;
  }
}

TEST(Generic, T7_AGradientDeclaresTheVariableOfItsResultsOnly) {
  const char* const text = "def f<T: float>(T(N) x) -> (float(N) y) { y(i) = float(x(i)) * 2.0 }";
  const std::string gradient = take(take(api::Engine::create(text)).gradient());
  EXPECT_EQ(gradient,
            "def f_gradient<T: float>(float32(N) d_y) -> (T(N) d_x) {\n"
            "  d_x(i) = T(d_y(i) * 2.0)\n"
            "}\n");
  const api::Request request{.types = {{"T", ScalarType::kFloat64}}, .sizes = {{"N", 4}}};
  EXPECT_EQ(take(take(api::Engine::create(gradient)).infer(request)).outputs.at(0).type, ScalarType::kFloat64);
}

TEST(Generic, T7_AGradientWithoutATensorOfItsVariableIsThatOfAnInstance) {
  for (const char* factor : {"a", "T(b)"}) {
    const api::Engine engine =
        take(api::Engine::create("def f<T: integer>(T(N) k, T a, int16 b, float(N) x) -> (y) { y(i) = x(i) * float(" +
                                 std::string(factor) + ") + float(k(i)) }"));
    const Result<std::string> gradient = engine.gradient();
    ASSERT_FALSE(gradient) << *gradient;
    EXPECT_EQ(gradient.error().to_string(),
              "error: the gradient of 'f' has no tensor of the type variable 'T', so no call would decide it; derive "
              "that of an instance, such as f<int32>\n");
    take(api::Engine::create(take(engine.gradient("f<int64>"))));
  }
  // A gradient that no type of the variable changes has no need of it.
  const char* const unused = "def g<T: integer>(T(N) k, float(N) x) -> (y) { y(i) = x(i) * 2.0 + float(k(i)) }";
  EXPECT_EQ(take(take(api::Engine::create(unused)).gradient()),
            "def g_gradient(float32(N) d_y) -> (float32(N) d_x) {\n"
            "  d_x(i) = d_y(i) * 2.0\n"
            "}\n");
}

TEST(Generic, T7_TheGradientOfAGenericDefIsGeneric) {
  const char* const text =
      "def norm<T: float>(T(N,M) x, T(M) w) -> (T(N,M) y) {\n"
      "  T s(i) +=! x(i,j) * x(i,j)\n"
      "  y(i,j) = T(x(i,j) * w(j) * rsqrt(s(i) + T(0.1)))\n"
      "}\n";
  const api::Engine engine = take(api::Engine::create(text));
  const std::string gradient = take(engine.gradient("norm"));
  EXPECT_NE(gradient.find("def norm_gradient<T: float>(T(N, M) x, T(M) w, T(N, M) d_y)"), std::string::npos)
      << gradient;
  const api::Engine derived = take(api::Engine::create(gradient));
  for (const char* type : {"float32", "float64"}) {
    const std::string of_instance = take(engine.gradient(std::string("norm<") + type + ">"));
    const api::Request request{.sizes = {{"N", 4}, {"M", 6}}};
    api::Request of_generic = request;
    of_generic.entry = std::string("norm_gradient<") + type + ">";
    EXPECT_EQ(take(derived.emit(of_generic, "stmt")),
              take(take(api::Engine::create(of_instance)).emit(request, "stmt")))
        << gradient << of_instance;
  }
  for (const char* type : {"float16", "bfloat16"}) {
    take(derived.compile({.entry = std::string("norm_gradient<") + type + ">", .sizes = {{"N", 4}, {"M", 6}}}));
  }
}

constexpr const char* kIntegers[] = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"};

/// What an instance of a generic def's gradient and the gradient of the instance are compiled to.
void expect_gradients_of_instances(const std::string& text, std::span<const char* const> types) {
  const api::Engine engine = take(api::Engine::create(text));
  const Result<std::string> gradient = engine.gradient();
  ASSERT_TRUE(gradient) << text << gradient.error().to_string();
  const api::Engine derived = take(api::Engine::create(*gradient));
  for (const std::string type : types) {
    const api::Request request{.sizes = {{"N", 300}}};
    api::Request of_generic = request;
    of_generic.entry = "f_gradient<" + type + ">";
    const std::string of_instance = take(engine.gradient("f<" + type + ">"));
    EXPECT_EQ(take(derived.emit(of_generic, "stmt")),
              take(take(api::Engine::create(of_instance)).emit(request, "stmt")))
        << *gradient << of_instance;
  }
}

TEST(Generic, T7_AGenericGradientKeepsTheCastsOfItsInstances) {
  for (const char* factor : {
           "float(T(i))",
           "float(-T(i))",
           "float(T(i) * k(i))",
           "float(T(100) * k(i))",
           "float(T(100) + T(100))",
           "float(T(1000.0) - k(i))",
           "float(T(-1000.5) - k(i))",
           "float(T(1e19) - k(i))",
           "float(T(nan) + k(i))",
           "float(int16(T(i)) + int32(k(i)))",
           "float(T(int16(i)))",
           "float(int64(T(i)) * int64(i))",
           "float(T(float(i) * 3.5))",
           "float(bool(T(i - 256)))",
           "(T(i) < k(i) ? 2.0 : 3.0)",
           "float(max(T(i), k(i)))",
           "float(shift_right(T(i), 3))",
           "float(T(h(i)))",
           "float(k(T(3)))",
       }) {
    expect_gradients_of_instances("def f<T: integer>(T(N) k, int16(N) h, float(N) x) -> (y) { y(i) = x(i) * " +
                                      std::string(factor) + " + x(i) * float(k(i)) }",
                                  kIntegers);
  }
  // Of floats, those in which a gradient computes as its instances do.
  for (const char* value : {"T(w(i)) * T(i)", "T(0.1) * T(k(i))", "x(i) * T(1.0 / 3.0)", "T(double(x(i)) * z(i))",
                            "T(float(T(0.1)) * w(i))", "T(int8(T(300.0))) * x(i)"}) {
    expect_gradients_of_instances(
        "def f<T: float>(T(N) x, float(N) w, double(N) z, int32(N) k) -> (T(N) y) { y(i) = T(x(i) * " +
            std::string(value) + ") }",
        std::array{"float32", "float64"});
  }
}

template <typename T>
void expect_wrapped_indices(const api::Engine& gradient, ScalarType type) {
  constexpr int64_t kSize = 300;
  const api::TensorSpec narrow{.type = type, .shape = {kSize}};
  const api::TensorSpec floats{.type = ScalarType::kFloat32, .shape = {kSize}};
  const api::CompiledKernel kernel = take(gradient.compile({.entry = "f_gradient", .inputs = {narrow, floats}}));
  std::vector<api::Tensor> inputs;
  inputs.push_back(tensor_of<T>(narrow, std::vector<T>(kSize, T(1))));
  inputs.push_back(tensor_of<float>(floats, std::vector<float>(kSize, 2.0F)));
  std::vector<api::Tensor> outputs = take(kernel.allocate_outputs());
  ASSERT_TRUE(kernel.run(inputs, outputs));
  std::vector<float> expected;
  for (int64_t i = 0; i < kSize; ++i) expected.push_back(2 * static_cast<float>(static_cast<T>(i)));
  EXPECT_EQ(elements_of<float>(outputs[0]), expected) << name_of(type);
}

TEST(Generic, T7_ACastOfAnIndexWrapsInAGenericGradient) {
  const api::Engine engine =
      take(api::Engine::create("def f<T: integer>(T(N) k, float(N) x) -> (y) { y(i) = x(i) * float(T(i) * k(i)) }"));
  const api::Engine gradient = take(api::Engine::create(take(engine.gradient())));
  expect_wrapped_indices<int8_t>(gradient, ScalarType::kInt8);
  expect_wrapped_indices<uint8_t>(gradient, ScalarType::kUInt8);
  expect_wrapped_indices<int16_t>(gradient, ScalarType::kInt16);
  expect_wrapped_indices<uint16_t>(gradient, ScalarType::kUInt16);
  expect_wrapped_indices<int32_t>(gradient, ScalarType::kInt32);
  expect_wrapped_indices<uint32_t>(gradient, ScalarType::kUInt32);
  expect_wrapped_indices<int64_t>(gradient, ScalarType::kInt64);
  expect_wrapped_indices<uint64_t>(gradient, ScalarType::kUInt64);
}

TEST(Generic, T7_GradientsOfTwoVariables) {
  const api::Engine engine =
      take(api::Engine::create("def f<T: integer, U: integer>(T(N) k, U(N) l, float(N) x) -> (y) {\n"
                               "  y(i) = x(i) * float(T(U(i))) * float(k(i) + l(i))\n"
                               "}\n"));
  EXPECT_EQ(take(engine.gradient()),
            "def f_gradient<T: integer, U: integer>(T(N) k, U(N) l, float32(N) d_y) -> (float32(N) d_x) {\n"
            "  d_x(i) = d_y(i) * float32(k(i) + l(i)) * float32(T(U(i)))\n"
            "}\n");
}

TEST(Generic, T7_GradientsThatDifferInMoreThanTypesAreRefused) {
  // An undeclared sum of narrow integers is an int32 (T6), which is the type of no variable.
  const api::Engine engine =
      take(api::Engine::create("def f<T: integer>(T(N,M) k, float(N) x) -> (y) {\n"
                               "  s(i) +=! k(i,j)\n"
                               "  y(i) = x(i) * float(s(i))\n"
                               "}\n"));
  EXPECT_EQ(error_of(engine.gradient()),
            "error: the gradients of f<int32> and f<uint8> differ in more than types; derive that of an instance\n");
  take(engine.gradient("f<uint8>"));
  // Only a truth value is a condition, so one instance is all there is.
  EXPECT_EQ(
      take(take(api::Engine::create("def g<T>(T(N) m, float(N) x) -> (y) { y(i) = m(i) ? x(i) : 0.0 }")).gradient()),
      "def g_gradient(bool(N) m, float32(N) d_y) -> (float32(N) d_x) {\n"
      "  d_x(i) = m(i) ? d_y(i) : 0.0 where i in 0:N\n"
      "}\n");
}

}  // namespace
}  // namespace tc::testing
