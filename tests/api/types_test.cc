#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tc/api/elements.h"
#include "tc/api/oracle.h"
#include "tc/compile/pipeline.h"
#include "tc/interp/interpreter.h"
#include "tests/api/tensors.h"

/// What numbers become, the same on every backend: T3, T6, T8, the constants and C2. What is expected is computed here
/// in a way of its own.
namespace tc::api {
namespace {

using testing::elements_of;
using testing::take;
using testing::tensor_of;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Tensors = std::vector<Tensor>;

TensorSpec vector_of(ScalarType type, size_t count) { return {.type = type, .shape = {static_cast<int64_t>(count)}}; }

Tensor numbers(ScalarType type, const std::vector<double>& values) {
  Tensor tensor = take(Tensor::allocate(vector_of(type, values.size())));
  char* at = tensor.data_as<char>();
  for (const double value : values) {
    store_float(type, value, at);
    at += bytes_of(type);
  }
  return tensor;
}

/// The oracle's results, of a def whose results start from zeros.
Tensors by_oracle(const std::string& text, const Tensors& inputs, const CompiledKernel& kernel) {
  compile::Compilation compilation;
  compilation.source = std::make_shared<const Source>("types.tc", text);
  compile::Settings settings;
  interp::Environment environment;
  size_t next = 0;
  for (const Argument& parameter : kernel.signature().parameters) {
    environment[parameter.name] = to_value(inputs[next]);
    settings.given.shapes[parameter.name] = inputs[next++].spec().shape;
  }
  auto done = compile::run_passes(settings, compilation, "specialise");
  EXPECT_TRUE(done) << done.error().to_string();
  interp::Environment results = take(interp::run(*compilation.specialised, environment));
  Tensors outputs = take(kernel.allocate_outputs());
  for (size_t r = 0; r < outputs.size(); ++r) {
    from_value(results.at(kernel.signature().results[r].name), outputs[r]);
  }
  return outputs;
}

/// Runs a def on every backend with some options, and calls check(name, results) for each.
template <typename Check>
void everywhere(const std::string& text, const Tensors& inputs, Check check) {
  struct Way {
    const char* name;
    Request request;
  };
  std::vector<Way> ways = {
      {"cpu", {}},
      {"cpu, one lane", {.options = {.vector_width = 1}}},
      {"cpu, strict", {.options = {.strict = true}}},
      {"simulator", {.backend = Backend::kSimulator}},
      {"simulator, strict", {.backend = Backend::kSimulator, .mapping = {.strict = true}}},
  };
  for (Way& way : ways) {
    for (const Tensor& input : inputs) way.request.inputs.emplace_back(input.spec());
    const CompiledKernel kernel = take(compile(text, way.request));
    Tensors outputs = take(kernel.allocate_outputs());
    const auto ran = kernel.run(inputs, outputs);
    ASSERT_TRUE(ran) << way.name << ": " << ran.error().to_string();
    check(std::string(way.name), outputs);
    if (&way == &ways.front()) check(std::string("oracle"), by_oracle(text, inputs, kernel));
  }
}

/// Equal, or both NaN.
bool same(double a, double b) { return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b); }

double element(const Tensor& tensor, size_t at) {
  const ScalarType type = tensor.spec().type;
  return load_float(type, tensor.data_as<char>() + at * static_cast<size_t>(bytes_of(type)));
}

/// The 128 numbers of an 8-bit float without a sign, written down by their formula.
std::vector<double> numbers_of(ScalarType type) {
  const bool e4m3 = type == ScalarType::kFloat8E4M3;
  const int fractions = e4m3 ? 8 : 4, bias = e4m3 ? 7 : 15;
  std::vector<double> all;
  for (int code = 0; code < 128; ++code) {
    const int exponent = code / fractions;
    const double fraction = static_cast<double>(code % fractions) / fractions;
    all.push_back(exponent == 0 ? fraction * std::pow(2.0, 1 - bias) : (1 + fraction) * std::pow(2.0, exponent - bias));
  }
  if (e4m3) {
    all[127] = kNan;
  } else {
    all[124] = kInf;
    all[125] = all[126] = all[127] = kNan;
  }
  return all;
}

/// The bits of the nearest number, found by looking at all of them. What lies beyond them all is as far as the last.
int nearest(const std::vector<double>& all, double value) {
  if (std::isnan(value)) return 127;
  const auto infinite = [](double x) { return !std::isfinite(x); };
  const double largest = *(std::find_if(all.begin(), all.end(), infinite) - 1);
  const double size = std::min(std::fabs(value), largest);
  int best = 0;
  for (int code = 0; std::isfinite(all[code]); ++code) {
    const double distance = std::fabs(size - all[code]), least = std::fabs(size - all[best]);
    if (distance < least || (distance == least && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(value) ? 128 : 0);
}

/// Numbers with ties between all neighbours, their own neighbours in float32, every exponent of float32, and ends.
std::vector<double> probes(const std::vector<double>& all) {
  std::vector<double> values;
  const auto add = [&](double value) {
    const auto single = static_cast<float>(value);
    for (const float near : {std::nextafter(single, -kInf), single, std::nextafter(single, kInf)}) {
      values.push_back(near);
      values.push_back(-near);
    }
  };
  for (size_t code = 0; code + 1 < all.size() && std::isfinite(all[code + 1]); ++code) {
    add(all[code]);
    add((all[code] + all[code + 1]) / 2);
  }
  for (int exponent = -149; exponent <= 127; ++exponent) {
    for (const double factor : {1.0, 1.0625, 1.125, 1.1875, 1.25, 1.5, 1.75, 1.875, 1.9375}) {
      add(std::ldexp(factor, exponent));
    }
  }
  for (const double end : {0.0, 448.0, 463.9, 464.0, 465.0, 480.0, 57344.0, 61439.0, 61440.0, 65536.0}) add(end);
  values.insert(values.end(), {kInf, -kInf, kNan, -kNan, std::numeric_limits<float>::max()});
  return values;
}

constexpr ScalarType kFloat8[] = {ScalarType::kFloat8E4M3, ScalarType::kFloat8E5M2};

TEST(Types, T8_EveryEightBitFloatIsReadAsItsNumber) {
  for (const ScalarType type : kFloat8) {
    const std::vector<double> all = numbers_of(type);
    std::vector<uint8_t> codes(256);
    for (int code = 0; code < 256; ++code) codes[code] = static_cast<uint8_t>(code);
    Tensors inputs;
    inputs.push_back(tensor_of<uint8_t>(vector_of(type, 256), codes));
    everywhere(fmt::format("def f({}(N) A) -> (O) {{ O(i) = A(i) }}", name_of(type)), inputs,
               [&](const std::string& name, const Tensors& outputs) {
                 ASSERT_EQ(outputs[0].spec().type, ScalarType::kFloat32);
                 for (size_t code = 0; code < 256; ++code) {
                   const double expected = code < 128 ? all[code] : -all[code - 128];
                   EXPECT_TRUE(same(element(outputs[0], code), expected)) << name << ", " << code;
                 }
               });
  }
}

TEST(Types, T8_AFloat32IsWrittenAsTheNearestNumberAndSaturates) {
  for (const ScalarType type : kFloat8) {
    const std::vector<double> all = numbers_of(type);
    const std::vector<double> values = probes(all);
    std::vector<int> bits;
    for (const double value : values) bits.push_back(nearest(all, value));
    Tensors inputs;
    inputs.push_back(numbers(ScalarType::kFloat32, values));
    const std::string text =
        fmt::format("def f(float(N) A) -> ({0}(N) O, P, Q) {{ O(i) = A(i)  P(i) = {0}(A(i))  Q(i) = 2.0 * {0}(A(i)) }}",
                    name_of(type));
    everywhere(text, inputs, [&](const std::string& name, const Tensors& outputs) {
      ASSERT_EQ(outputs[1].spec().type, type);
      ASSERT_EQ(outputs[2].spec().type, ScalarType::kFloat32);
      for (size_t i = 0; i < values.size(); ++i) {
        const int expected = bits[i];
        const double value = expected < 128 ? all[expected] : -all[expected - 128];
        for (const int output : {0, 1}) {
          const int written = outputs[output].data_as<uint8_t>()[i];
          ASSERT_TRUE(written == expected || (expected == 127 && std::isnan(element(outputs[output], i))))
              << name << ": " << values[i] << " became " << written << ", not " << expected;
        }
        ASSERT_TRUE(same(element(outputs[2], i), 2 * value)) << name << ": " << values[i];
      }
    });
  }
}

TEST(Types, T8_AFloat64IsRoundedOnce) {
  for (const ScalarType type : kFloat8) {
    const std::vector<double> all = numbers_of(type);
    std::vector<double> values = {1e300, -1e300, 1e-300, -1e-300, kInf, kNan};
    for (int code = 0; code + 1 < 120; ++code) {
      const double tie = (all[code] + all[code + 1]) / 2;
      for (const double near : {std::nextafter(tie, 0.0), tie, std::nextafter(tie, 1e9)}) values.push_back(near);
    }
    Tensors inputs;
    inputs.push_back(numbers(ScalarType::kFloat64, values));
    everywhere(fmt::format("def f(double(N) A) -> ({0}(N) O) {{ O(i) = {0}(A(i)) }}", name_of(type)), inputs,
               [&](const std::string& name, const Tensors& outputs) {
                 for (size_t i = 0; i < values.size(); ++i) {
                   EXPECT_EQ(outputs[0].data_as<uint8_t>()[i], nearest(all, values[i])) << name << ": " << values[i];
                 }
               });
  }
}

TEST(Types, T8_SumsAndMaximaAreFloat32AndConvertedOnce) {
  // 240 terms of 1.125: a sum that is rounded to e4m3 after each of them gets no further than 16.
  const size_t terms = 240;
  Tensors inputs;
  inputs.push_back(numbers(ScalarType::kFloat8E4M3, std::vector<double>(terms, 1.125)));
  everywhere(
      "def f(float8_e4m3(N) A) -> (s, float8_e4m3 t, float8_e5m2 u, float8_e4m3 m) {\n"
      "  s +=! A(i)  t +=! A(i)  u +=! A(i) * A(i)  m max=! -A(i) }",
      inputs, [&](const std::string& name, const Tensors& outputs) {
        EXPECT_EQ(outputs[0].spec().type, ScalarType::kFloat32);
        EXPECT_EQ(element(outputs[0], 0), 270) << name;
        EXPECT_EQ(element(outputs[1], 0), 256) << name;  // the nearest to 270: the step is 32
        EXPECT_EQ(element(outputs[2], 0), 320) << name;  // of 303.75, by steps of 64
        EXPECT_EQ(element(outputs[3], 0), -1.125) << name;
      });
}

TEST(Types, T8_ElementsThatAreCopiedByTheCompilerKeepTheirBits) {
  // An infinity that is in memory is read as one, whatever copies lie between: only a conversion saturates.
  std::vector<uint8_t> codes(64, 0x7c);
  Tensors inputs;
  inputs.push_back(tensor_of<uint8_t>({.type = ScalarType::kFloat8E5M2, .shape = {8, 8}}, codes));
  inputs.push_back(tensor_of<float>({.type = ScalarType::kFloat32, .shape = {8, 8}}, std::vector<float>(64, 1)));
  everywhere("def f(float8_e5m2(N,K) A, float(K,M) B) -> (C) { C(n,m) +=! A(n,k) * B(k,m) }", inputs,
             [&](const std::string& name, const Tensors& outputs) {
               for (size_t i = 0; i < 64; ++i) EXPECT_EQ(element(outputs[0], i), kInf) << name;
             });
}

constexpr ScalarType kIntegers[] = {ScalarType::kInt8,  ScalarType::kInt16,  ScalarType::kInt32,  ScalarType::kInt64,
                                    ScalarType::kUInt8, ScalarType::kUInt16, ScalarType::kUInt32, ScalarType::kUInt64};

/// T6, in 80 bits, which hold every integer of 64 and every float64.
int64_t saturated(ScalarType type, double value) {
  if (std::isnan(value)) return 0;
  const int bits = bits_of(type) - (is_signed_integer(type) ? 1 : 0);
  const long double most = std::pow(2.0L, bits) - 1;
  const long double least = is_signed_integer(type) ? -most - 1 : 0;
  const long double whole = std::min(most, std::max(least, std::trunc(static_cast<long double>(value))));
  return whole < 0 ? static_cast<int64_t>(whole) : static_cast<int64_t>(static_cast<uint64_t>(whole));
}

/// The ends of every integer type with what lies beside them.
std::vector<double> edges() {
  std::vector<double> values = {0.0,   -0.0, 0.5,   -0.5, 0.999, -0.999, 1.5,    -1.5,   2.5,    1e10,  -1e10, 1e20,
                                -1e20, kInf, -kInf, kNan, -kNan, 1e300,  -1e300, 1e-300, 5e-324, 65504, 3.3e38};
  for (const int bits : {7, 8, 15, 16, 24, 31, 32, 53, 63, 64}) {
    const double power = std::ldexp(1.0, bits);
    for (const double near :
         {power - 1.5, power - 1, power - 0.5, std::nextafter(power, 0.0), power, power + 0.5, power + 1,
          std::nextafter(power, 1e300), static_cast<double>(std::nextafter(static_cast<float>(power), 0.0f))}) {
      values.push_back(near);
      values.push_back(-near);
    }
  }
  return values;
}

TEST(Types, T6_ACastOfAFloatToAnIntegerSaturates) {
  for (const ScalarType from :
       {ScalarType::kFloat16, ScalarType::kBFloat16, ScalarType::kFloat32, ScalarType::kFloat64}) {
    std::string results, body;
    for (const ScalarType to : kIntegers) {
      results += fmt::format("{}O_{}", results.empty() ? "" : ", ", name_of(to));
      body += fmt::format("  O_{0}(i) = {0}(A(i))\n", name_of(to));
    }
    Tensors inputs;
    inputs.push_back(numbers(from, edges()));
    everywhere(fmt::format("def f({}(N) A) -> ({}) {{\n{}}}", name_of(from), results, body), inputs,
               [&](const std::string& name, const Tensors& outputs) {
                 for (size_t o = 0; o < outputs.size(); ++o) {
                   for (size_t i = 0; i < edges().size(); ++i) {
                     const double value = element(inputs[0], i);
                     const char* at = outputs[o].data_as<char>() + i * static_cast<size_t>(bytes_of(kIntegers[o]));
                     EXPECT_EQ(load_integer(kIntegers[o], at), saturated(kIntegers[o], value))
                         << name << ": " << name_of(from) << " " << value << " to " << name_of(kIntegers[o]);
                   }
                 }
               });
  }
}

/// By the front end where all are literals, by LLVM and the simulator where they are not.
TEST(Types, T6_ConstantsSaturateAsElementsDo) {
  const struct {
    const char* text;
    double value;
  } constants[] = {{"inf", kInf},      {"-inf", -kInf},  {"nan", kNan},    {"300.7", 300.7},
                   {"-300.7", -300.7}, {"1e10", 1e10},   {"-1e10", -1e10}, {"1e19", 1e19},
                   {"1e30", 1e30},     {"-1e30", -1e30}, {"-0.5", -0.5},   {"2.75", 2.75}};
  Tensors inputs;
  inputs.push_back(numbers(ScalarType::kFloat64, {0}));
  for (const ScalarType type : kIntegers) {
    std::string results, body;
    for (size_t c = 0; c < std::size(constants); ++c) {
      results += fmt::format("{0}L{1}, V{1}", results.empty() ? "" : ", ", c);
      body += fmt::format("  L{1}(i) = {0}({2}) where i in 0:N\n  V{1}(i) = {0}(A(i) + double({2}))\n", name_of(type),
                          c, constants[c].text);
    }
    everywhere(fmt::format("def f(double(N) A) -> ({}) {{\n{}}}", results, body), inputs,
               [&](const std::string& name, const Tensors& outputs) {
                 for (size_t o = 0; o < outputs.size(); ++o) {
                   EXPECT_EQ(load_integer(type, outputs[o].data_as<char>()), saturated(type, constants[o / 2].value))
                       << name << ": " << name_of(type) << "(" << constants[o / 2].text << ")";
                 }
               });
  }
}

TEST(Types, T8_Tf32KeepsElevenBitsAndRoundsTiesAwayFromZero) {
  std::vector<double> values = {0.0, -0.0, kInf, -kInf, kNan, std::numeric_limits<float>::max()};
  for (int exponent = -149; exponent <= 127; ++exponent) {
    for (const uint32_t fraction :
         {0u, 0x0fffu, 0x1000u, 0x1001u, 0x1fffu, 0x2000u, 0x3000u, 0x5000u, 0x7ff000u, 0x7fffffu}) {
      const auto power = std::bit_cast<uint32_t>(static_cast<float>(std::ldexp(1.0, exponent)));
      const auto value = std::bit_cast<float>(power | fraction);
      values.push_back(value);
      values.push_back(-value);
    }
  }
  Tensors inputs;
  inputs.push_back(numbers(ScalarType::kFloat32, values));
  everywhere(
      "def f(float(N) A) -> (O) { O(i) = tf32(A(i)) }", inputs, [&](const std::string& name, const Tensors& outputs) {
        for (size_t i = 0; i < values.size(); ++i) {
          const auto value = static_cast<float>(std::fabs(values[i]));
          double expected = value;
          if (std::isfinite(value)) {
            const uint32_t below = std::bit_cast<uint32_t>(value) & 0xffffe000u;
            const double low = std::bit_cast<float>(below);
            const double high = below + 0x2000u == 0x7f800000u ? 0x1p128 : std::bit_cast<float>(below + 0x2000u);
            expected = static_cast<float>(value - low < high - value ? low : high);
          }
          EXPECT_TRUE(same(element(outputs[0], i), std::copysign(expected, values[i]))) << name << ": " << values[i];
        }
      });
}

TEST(Types, ConstantsAreTheNearestOfTheirType) {
  Tensors inputs;
  inputs.push_back(numbers(ScalarType::kFloat32, {1}));
  everywhere(
      "def f(float(N) A) -> (P, D, H, I, M, Q, T) {\n"
      "  P(i) = pi * A(i)  D(i) = double(pi) where i in 0:N\n  H(i) = half(inf) where i in 0:N  I(i) = -inf * A(i)\n"
      "  M(i) = nan + A(i)  Q(i) = double(pi / 3) where i in 0:N\n  T(i) = A(i) < inf ? 1.0 : 0.0 }",
      inputs, [&](const std::string& name, const Tensors& outputs) {
        EXPECT_EQ(element(outputs[0], 0), static_cast<float>(3.14159265358979323846)) << name;
        EXPECT_EQ(element(outputs[1], 0), 3.14159265358979323846) << name;
        EXPECT_EQ(element(outputs[2], 0), kInf) << name;
        EXPECT_EQ(element(outputs[3], 0), -kInf) << name;
        EXPECT_TRUE(std::isnan(element(outputs[4], 0))) << name;
        EXPECT_EQ(element(outputs[5], 0), 3.14159265358979323846 / 3) << name;
        EXPECT_EQ(element(outputs[6], 0), 1) << name;
      });
}

TEST(Types, T3_ValuesOfSumsAreComputedInTheAccumulatorsType) {
  Tensors inputs;
  inputs.push_back(tensor_of<int8_t>(vector_of(ScalarType::kInt8, 3), {100, 100, -128}));
  inputs.push_back(tensor_of<uint8_t>(vector_of(ScalarType::kUInt8, 3), {10, 200, 255}));
  everywhere(
      "def f(int8(N) A, uint8(N) B) -> (int32 Set, S, float F, U, int32 Min, int32 Choice, int8 Own) {\n"
      "  Set = A(0) * A(0)  S +=! A(i) * A(i)  F +=! A(i) * A(i)  U +=! B(i) * B(i)\n"
      "  Min +=! max(A(i) * A(i), int8(0))  Choice +=! A(i) > int8(0) ? A(i) * A(i) : -A(i)  Own +=! A(i) + A(i) }",
      inputs, [&](const std::string& name, const Tensors& outputs) {
        EXPECT_EQ(outputs[0].data_as<int32_t>()[0], 16) << name;  // no sum: int8, of 10000
        EXPECT_EQ(outputs[1].spec().type, ScalarType::kInt32);    // T6
        EXPECT_EQ(outputs[1].data_as<int32_t>()[0], 36384) << name;
        EXPECT_EQ(outputs[2].data_as<float>()[0], 36384) << name;
        EXPECT_EQ(outputs[3].spec().type, ScalarType::kUInt32);  // T6
        EXPECT_EQ(outputs[3].data_as<uint32_t>()[0], 105125U) << name;
        EXPECT_EQ(outputs[4].data_as<int32_t>()[0], 32) << name;  // arguments of a function in their own: 16 + 16 + 0
        EXPECT_EQ(outputs[5].data_as<int32_t>()[0], 20128) << name;
        EXPECT_EQ(outputs[6].data_as<int8_t>()[0], static_cast<int8_t>(144)) << name;  // converted once
      });
}

/// 300 * 300 is no float16, and half of it is a float32.
TEST(Types, T3_NarrowValuesWithinWiderOnesAreWideToo) {
  Tensors inputs;
  inputs.push_back(tensor_of<int8_t>(vector_of(ScalarType::kInt8, 3), {100, 100, -128}));
  everywhere(
      "def f(int8(N) A) -> (float Literal, int32 Mixed, float Set) {\n"
      "  Literal +=! A(i) * A(i) * 0.5\n"
      "  Mixed +=! int32(A(i)) + A(i) * A(i)  Set = A(0) * A(0) * 0.5 }",
      inputs, [&](const std::string& name, const Tensors& outputs) {
        EXPECT_EQ(outputs[0].data_as<float>()[0], 18192) << name;
        EXPECT_EQ(outputs[1].data_as<int32_t>()[0], 36456) << name;
        EXPECT_EQ(outputs[2].data_as<float>()[0], 8) << name;  // no sum: int8, of 10000
      });
  Tensors halves;
  halves.push_back(tensor_of<float>(vector_of(ScalarType::kFloat32, 2), {300, 200}));
  everywhere("def f(float(N) A) -> (float C) { C +=! half(A(i)) * half(A(i)) * 0.5 }", halves,
             [&](const std::string& name, const Tensors& outputs) {
               EXPECT_EQ(outputs[0].data_as<float>()[0], 65000) << name;
             });
}

/// An 8-bit input has no gradient, as an integer has none; through a rounding goes that of its argument.
TEST(Types, T8_GradientsGoThroughEightBitFloats) {
  const auto gradient = [](const char* text) {
    const std::string made = take(take(Engine::create(text)).gradient());
    take(Engine::create(made));
    return made;
  };
  const std::string of_weights = gradient("def f(float8_e4m3(M,K) W, float(K) x) -> (y) { y(m) +=! W(m,k) * x(k) }");
  EXPECT_EQ(of_weights.find("d_W"), std::string::npos) << of_weights;
  EXPECT_NE(of_weights.find("float32(K) d_x"), std::string::npos) << of_weights;
  const std::string of_result =
      gradient("def f(float(N) x) -> (float8_e5m2(N) y) { y(i) = float8_e4m3(x(i)) * tf32(x(i)) * pi }");
  EXPECT_NE(of_result.find("float32(N) d_y"), std::string::npos) << of_result;
  EXPECT_NE(of_result.find("float32(N) d_x"), std::string::npos) << of_result;
}

TEST(Types, C2_AnUpdateStartsFromTheIdentityWhereItWrites) {
  const std::vector<int32_t> nines(6, 9);
  for (const char* backend : {"cpu", "simulator"}) {
    const Backend which = std::string(backend) == "cpu" ? Backend::kCpu : Backend::kSimulator;
    const auto run = [&](const std::string& text) {
      const TensorSpec spec = vector_of(ScalarType::kInt32, 6);
      const CompiledKernel kernel = take(compile(text, {.inputs = {spec, spec}, .backend = which}));
      Tensors inputs, outputs;
      inputs.push_back(tensor_of<int32_t>(spec, {1, 2, 3, 4, 5, 6}));
      inputs.push_back(tensor_of<int32_t>(spec, {1, 1, 2, 2, 2, 4}));
      outputs.push_back(tensor_of<int32_t>(spec, nines));
      EXPECT_TRUE(kernel.run(inputs, outputs));
      return elements_of<int32_t>(outputs[0]);
    };
    const std::string head = "def f(int(N) A, int(N) I) -> (int(N) T) { ";
    // A left side of indices, however they are subtracted: what no instance writes keeps its nine.
    EXPECT_EQ(run(head + "T(N-1-i) max=! A(i) where i in 1:N }"), (std::vector<int32_t>{6, 5, 4, 3, 2, 9})) << backend;
    EXPECT_EQ(run(head + "T(i/2) +=! A(i) where i in 0:N }"), (std::vector<int32_t>{3, 7, 11, 9, 9, 9})) << backend;
    // One that reads data: every element starts from the identity.
    EXPECT_EQ(run(head + "T(I(i)) +=! A(i) }"), (std::vector<int32_t>{0, 3, 12, 0, 6, 0})) << backend;
    EXPECT_EQ(run(head + "T(I(i)) min=! A(i) }"), (std::vector<int32_t>{INT32_MAX, 1, 3, INT32_MAX, 6, INT32_MAX}))
        << backend;
  }
}

}  // namespace
}  // namespace tc::api
