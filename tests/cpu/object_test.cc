#include "tc/cpu/object.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "kernels.h"
#include "tc/cpu/runtime.h"

namespace tc::cpu {
namespace {

using namespace Halide;
using namespace Halide::Internal;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Runs out[i] = value(i) over inputs "a" and "b".
template <typename Out, typename In>
std::vector<Out> run(const std::vector<In>& a, const std::vector<In>& b, int lanes,
                     const std::function<Expr(Expr a, Expr b)>& value, Type in_type = halide_type_of<In>(),
                     Type out_type = halide_type_of<Out>(), const ObjectOptions& options = {}) {
  int count = static_cast<int>(a.size());
  Kernel kernel{
      "f",
      {buffer_argument("a", in_type, count), buffer_argument("b", in_type, count),
       buffer_argument("out", out_type, count)},
      elementwise("out", count, lanes, [&](Expr i) { return value(load(in_type, "a", i), load(in_type, "b", i)); })};
  std::vector<Out> out(count);
  void* arguments[] = {const_cast<In*>(a.data()), const_cast<In*>(b.data()), out.data()};
  EXPECT_EQ(build(kernel, options)->call(arguments), 0);
  return out;
}

template <typename T>
bool same(T x, T y) {
  return x == y || (x != x && y != y);
}

TEST(Object, AddsTwoVectorsWithATail) {
  std::vector<float> a(101), b(101);
  for (int i = 0; i < 101; i++) a[i] = i, b[i] = 2 * i;
  for (int lanes : {1, 4, 8, 16, 32}) {
    std::vector<float> c = run<float, float>(a, b, lanes, [](Expr x, Expr y) { return x + y; });
    for (int i = 0; i < 101; i++) EXPECT_EQ(c[i], 3 * i) << lanes << " lanes";
  }
}

TEST(Object, MultipliesMatricesInParallel) {
  constexpr int kM = 36, kN = 64, kK = 50;
  std::vector<float> a(kM * kK), b(kK * kN), c(kM * kN);
  for (size_t i = 0; i < a.size(); i++) a[i] = static_cast<float>(i % 7) - 3;
  for (size_t i = 0; i < b.size(); i++) b[i] = static_cast<float>(i % 5) - 2;
  void* arguments[] = {a.data(), b.data(), c.data()};
  for (const char* target : {"host", "x86-64-linux-sse41-avx-avx2-fma-f16c", "x86-64-linux-sse41"}) {
    for (bool strict : {false, true}) {
      ASSERT_EQ(build(matmul_kernel(kM, kN, kK), {.target = target, .strict = strict})->call(arguments), 0);
      for (int i = 0; i < kM; i++) {
        for (int j = 0; j < kN; j++) {
          float sum = 0;
          for (int k = 0; k < kK; k++) sum += a[i * kK + k] * b[k * kN + j];
          ASSERT_EQ(c[i * kN + j], sum) << i << ", " << j << " on " << target;
        }
      }
    }
  }
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) count++;
  return count;
}

TEST(Object, FusesMultiplyAddUnlessStrict) {
  Kernel kernel = matmul_kernel(12, 32, 8);
  const char* target = "x86-64-linux-sse41-avx-avx2-fma-f16c";
  std::string fused = assembly_text(kernel, {.target = target}).value();
  std::string strict = assembly_text(kernel, {.target = target, .strict = true}).value();
  EXPECT_GE(count_of(fused, "vfmadd"), 24);
  EXPECT_EQ(count_of(fused, "vmulps"), 0);
  EXPECT_EQ(count_of(strict, "vfmadd"), 0);
  EXPECT_GE(count_of(strict, "vmulps"), 24);
}

// Halide's simplifier would fold all of these.
TEST(Object, FloatsKeepTheirNansAndInfinities) {
  std::vector<float> a = {1, 0, -0.0f, kNan, kInf, -kInf, 3, kNan, kInf, -2.5f, 1e-45f, 7};
  std::vector<float> b = {2, -0.0f, 0, 1, -kInf, -kInf, kNan, kNan, 0, 4, -1e-45f, 7};
  struct Case {
    const char* name;
    std::function<Expr(Expr, Expr)> expr;
    float (*expected)(float, float);
  };
  auto wins = [](float x, float y, float other) { return std::isnan(x) || std::isnan(y) ? kNan : other; };
  static auto nan_wins = wins;
  const Case cases[] = {
      {"a * 0", [](Expr x, Expr) { return x * 0.0f; }, [](float x, float) { return x * 0.0f; }},
      {"a - a", [](Expr x, Expr) { return x - x; }, [](float x, float) { return x - x; }},
      {"a / a", [](Expr x, Expr) { return x / x; }, [](float x, float) { return x / x; }},
      {"a + b - b", [](Expr x, Expr y) { return (x + y) - y; }, [](float x, float y) { return (x + y) - y; }},
      {"a + NaN", [](Expr x, Expr) { return x + FloatImm::make(Float(32), kNan); }, [](float, float) { return kNan; }},
      {"a * -0", [](Expr x, Expr) { return x * FloatImm::make(Float(32), -0.0); },
       [](float x, float) { return x * -0.0f; }},
      {"max", [](Expr x, Expr y) { return max(x, y); },
       [](float x, float y) { return nan_wins(x, y, std::max(x, y)); }},
      {"min", [](Expr x, Expr y) { return min(x, y); },
       [](float x, float y) { return nan_wins(x, y, std::min(x, y)); }},
      {"max(a, 0)", [](Expr x, Expr) { return call(Float(32), "relu", {x}); },
       [](float x, float) { return std::isnan(x) ? x : std::max(x, 0.0f); }},
      {"fmax",
       [](Expr x, Expr y) {
         return call(Float(32), "fmax", {x, y});
       },
       [](float x, float y) { return std::fmax(x, y); }},
      {"fmin",
       [](Expr x, Expr y) {
         return call(Float(32), "fmin", {x, y});
       },
       [](float x, float y) { return std::fmin(x, y); }},
      {"clamp",
       [](Expr x, Expr y) {
         return call(Float(32), "clamp", {x, Expr(-1.0f), y});
       },
       [](float x, float y) { return nan_wins(x, y, std::min(std::max(x, -1.0f), y)); }},
      {"sign", [](Expr x, Expr) { return call(Float(32), "sign", {x}); },
       [](float x, float) { return std::isnan(x) ? x : float((x > 0) - (x < 0)); }},
      {"!(a < b) ? 1 : 0", [](Expr x, Expr y) { return select(!(x < y), 1.0f, 0.0f); },
       [](float x, float y) { return x < y ? 0.0f : 1.0f; }},
      {"a != a ? 1 : 0", [](Expr x, Expr) { return select(x != x, 1.0f, 0.0f); },
       [](float x, float) { return std::isnan(x) ? 1.0f : 0.0f; }},
      {"a == a ? 1 : 0", [](Expr x, Expr) { return select(x == x, 1.0f, 0.0f); },
       [](float x, float) { return std::isnan(x) ? 0.0f : 1.0f; }},
      {"a >= b ? a : b", [](Expr x, Expr y) { return select(x >= y, x, y); },
       [](float x, float y) { return x >= y ? x : y; }},
  };
  for (const Case& test : cases) {
    for (int lanes : {1, 4, 16}) {
      std::vector<float> out = run<float, float>(a, b, lanes, test.expr);
      for (size_t i = 0; i < a.size(); i++) {
        EXPECT_TRUE(same(out[i], test.expected(a[i], b[i])))
            << test.name << " of " << a[i] << ", " << b[i] << " is " << out[i] << " with " << lanes << " lanes";
      }
    }
  }
}

TEST(Object, MaximumIsAFewInstructions) {
  Kernel kernel{
      "f",
      {buffer_argument("a", Float(32), 64), buffer_argument("out", Float(32), 64)},
      elementwise("out", 64, 8, [](Expr i) { return max(load(Float(32), "a", i), load(Float(32), "out", i)); })};
  std::string text = assembly_text(kernel, {.target = "x86-64-linux-sse41-avx-avx2-fma-f16c"}).value();
  EXPECT_EQ(count_of(text, "vmaxps"), count_of(text, "vcmpunordps"));
  EXPECT_EQ(count_of(text, "vmaxps"), count_of(text, "vblendvps"));
  EXPECT_GE(count_of(text, "vmaxps"), 1);
}

/// out[16 p + i] = tanh(a[16 p + i]) and sin of it after `places` vectors each, without a loop.
Kernel unrolled_math(int places) {
  const int count = 16 * places;
  std::vector<Stmt> stores;
  for (int place = 0; place < places; ++place) {
    const Expr index = ramp(16 * place, 16);
    const Expr a = load(Float(32), "a", index);
    stores.push_back(store("out", call(Float(32, 16), "tanh", {a}), index));
    stores.push_back(store("out", call(Float(32, 16), "sin", {a}), ramp(count + 16 * place, 16)));
  }
  return {"f", {buffer_argument("a", Float(32), count), buffer_argument("out", Float(32), 2 * count)}, block(stores)};
}

TEST(Object, AFunctionInManyPlacesIsMadeOnce) {
  const ObjectOptions options{.target = "x86-64-linux-sse41-avx-avx2-fma-f16c"};
  const std::string few = assembly_text(unrolled_math(2), options).value();
  EXPECT_EQ(few.find("tc.tanh"), std::string::npos);
  const std::string many = assembly_text(unrolled_math(40), options).value();
  EXPECT_EQ(count_of(many, "\ttc.tanh.16\n"), 40) << "calls";
  EXPECT_LT(std::count(many.begin(), many.end(), '\n'), 40 * std::count(few.begin(), few.end(), '\n') / 2 / 4);

  // Every lane is the function's value, and those of both forms are the same.
  std::vector<float> a(640), inlined(64), shared(1280);
  for (size_t i = 0; i < a.size(); ++i) a[i] = 0.01f * static_cast<float>(i % 32) * (i % 2 ? -1 : 1);
  for (size_t i = 7; i < a.size(); i += 32) a[i] = 1e8f;  // where the sine is left to the C library
  void* few_arguments[] = {a.data(), inlined.data()};
  ASSERT_EQ(build(unrolled_math(2))->call(few_arguments), 0);
  void* many_arguments[] = {a.data(), shared.data()};
  ASSERT_EQ(build(unrolled_math(40))->call(many_arguments), 0);
  for (size_t i = 0; i < 640; ++i) {
    EXPECT_EQ(shared[i], inlined[i % 32]) << "tanh " << i;
    EXPECT_EQ(shared[640 + i], inlined[32 + i % 32]) << "sin " << i;
    EXPECT_NEAR(shared[i], std::tanh(a[i]), 1e-6);
  }
}

TEST(Object, VectorReductionsSeeEveryLane) {
  for (int lanes : {2, 3, 6, 8, 16, 32}) {
    for (auto op : {VectorReduce::Add, VectorReduce::Mul, VectorReduce::Min, VectorReduce::Max}) {
      for (int nan_at = -1; nan_at < lanes; nan_at++) {
        std::vector<float> a(lanes);
        for (int i = 0; i < lanes; i++) a[i] = static_cast<float>((i * 5) % lanes % 3) + 1;
        float expected = a[0];
        for (int i = 1; i < lanes; i++) {
          expected = op == VectorReduce::Add   ? expected + a[i]
                     : op == VectorReduce::Mul ? expected * a[i]
                     : op == VectorReduce::Min ? std::min(expected, a[i])
                                               : std::max(expected, a[i]);
        }
        if (nan_at >= 0) a[nan_at] = expected = kNan;
        float out = 0;
        Kernel kernel{"f",
                      {buffer_argument("a", Float(32), lanes), buffer_argument("out", Float(32), 1)},
                      store("out", VectorReduce::make(op, load(Float(32), "a", ramp(0, lanes)), 1), 0)};
        void* arguments[] = {a.data(), &out};
        if (nan_at > 2 && lanes > 8) continue;
        ASSERT_EQ(build(kernel)->call(arguments), 0);
        EXPECT_TRUE(same(out, expected)) << out << " for " << lanes << " lanes, operation " << op;
      }
    }
  }
}

template <typename T>
void check_division(int lanes) {
  T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  std::vector<T> numbers = {0, 1, 2, 3, 7, 100, least, most, T(least + 1), T(-1), T(-2), T(-7)};
  std::vector<T> a, b;
  for (T x : numbers) {
    for (T y : numbers) a.push_back(x), b.push_back(y);
  }
  Type type = halide_type_of<T>();
  auto q = run<T, T>(a, b, lanes, [&](Expr x, Expr y) { return call(type, "tc.floor_div", {x, y}); });
  auto r = run<T, T>(a, b, lanes, [&](Expr x, Expr y) { return call(type, "tc.floor_mod", {x, y}); });
  auto halide_q = run<T, T>(a, b, lanes, [&](Expr x, Expr) { return x / cast(type, 7); });
  auto halide_r = run<T, T>(a, b, lanes, [&](Expr x, Expr) { return x % cast(type, 7); });
  auto floor_div = [](T x, T y) -> T {
    if (y == 0) return 0;
    __int128 wide = x, quotient = wide / y;
    return static_cast<T>(quotient - ((wide % y != 0) && ((wide < 0) != (__int128(y) < 0))));
  };
  for (size_t i = 0; i < a.size(); i++) {
    T expected = floor_div(a[i], b[i]);
    EXPECT_EQ(q[i], expected) << +a[i] << " / " << +b[i];
    T remainder = b[i] == 0 ? 0 : static_cast<T>(static_cast<__int128>(a[i]) - static_cast<__int128>(expected) * b[i]);
    if (std::is_signed_v<T> && b[i] == T(-1)) remainder = 0;
    EXPECT_EQ(r[i], remainder) << +a[i] << " % " << +b[i];
    EXPECT_EQ(halide_q[i], floor_div(a[i], 7)) << +a[i] << " / 7";
    EXPECT_EQ(halide_r[i], static_cast<T>(a[i] - floor_div(a[i], 7) * 7)) << +a[i] << " % 7";
  }
}

TEST(Object, IntegersDivideDownward) {
  for (int lanes : {1, 8}) {
    check_division<int8_t>(lanes);
    check_division<int32_t>(lanes);
    check_division<int64_t>(lanes);
    check_division<uint16_t>(lanes);
    check_division<uint32_t>(lanes);
  }
}

TEST(Object, IntegersWrap) {
  int32_t most = std::numeric_limits<int32_t>::max();
  std::vector<int32_t> a = {most, 1, -5, most}, b = {1, 2, 3, most};
  auto sum = run<int32_t, int32_t>(a, b, 4, [](Expr x, Expr y) { return x + y; });
  EXPECT_EQ(sum, (std::vector<int32_t>{std::numeric_limits<int32_t>::min(), 3, -2, -2}));
  auto above = run<int32_t, int32_t>(a, b, 4, [](Expr x, Expr) { return select(x + 1 > x, 1, 0); });
  EXPECT_EQ(above, (std::vector<int32_t>{0, 1, 1, 0}));
  auto product = run<int32_t, int32_t>(a, b, 1, [](Expr x, Expr y) { return x * y; });
  EXPECT_EQ(product, (std::vector<int32_t>{most, 2, -15, 1}));
}

TEST(Object, BitOperations) {
  std::vector<int32_t> a = {1, -1, 12, 5, -8, 3, 7, 1 << 30}, b = {4, 31, 2, 32, 1, -1, 0, 33};
  auto left = run<int32_t, int32_t>(a, b, 8, [](Expr x, Expr y) { return call(Int(32), "shift_left", {x, y}); });
  EXPECT_EQ(left, (std::vector<int32_t>{16, std::numeric_limits<int32_t>::min(), 48, 0, -16, 0, 7, 0}));
  auto right = run<int32_t, int32_t>(a, b, 8, [](Expr x, Expr y) { return call(Int(32), "shift_right", {x, y}); });
  EXPECT_EQ(right, (std::vector<int32_t>{0, -1, 3, 0, -4, 0, 7, 0}));
  auto bits = run<int32_t, int32_t>(a, b, 8, [](Expr x, Expr) { return call(Int(32), "popcount", {x}); });
  EXPECT_EQ(bits, (std::vector<int32_t>{1, 32, 2, 2, 29, 2, 3, 1}));
  auto flipped = run<int32_t, int32_t>(a, b, 1, [](Expr x, Expr y) {
    return call(Int(32), "bitwise_xor", {call(Int(32), "bitwise_not", {x}), call(Int(32), "bitwise_and", {x, y})});
  });
  for (size_t i = 0; i < a.size(); i++) EXPECT_EQ(flipped[i], ~a[i] ^ (a[i] & b[i]));
}

TEST(Object, ConversionsSaturate) {
  std::vector<float> a = {1.9f, -1.9f, kNan, kInf, -kInf, 3e9f, 300, -0.5f};
  for (int lanes : {1, 8}) {
    auto ints = run<int32_t, float>(a, a, lanes, [](Expr x, Expr) { return cast<int32_t>(x); });
    int32_t most = std::numeric_limits<int32_t>::max(), least = std::numeric_limits<int32_t>::min();
    EXPECT_EQ(ints, (std::vector<int32_t>{1, -1, 0, most, least, most, 300, 0}));
    auto bytes = run<uint8_t, float>(a, a, lanes, [](Expr x, Expr) { return cast<uint8_t>(x); });
    EXPECT_EQ(bytes, (std::vector<uint8_t>{1, 0, 0, 255, 0, 255, 255, 0}));
    auto bools = run<uint8_t, float>(
        a, a, lanes, [](Expr x, Expr) { return cast<bool>(x); }, Float(32), Bool());
    EXPECT_EQ(bools, (std::vector<uint8_t>{1, 1, 1, 1, 1, 1, 1, 1}));
  }
}

/// float16 by way of the compiler's own type.
uint16_t half_bits(double x) { return float16_t(x).to_bits(); }

TEST(Object, SixteenBitFloatsRoundOnce) {
  std::vector<uint16_t> every(1 << 16);
  for (size_t i = 0; i < every.size(); i++) every[i] = static_cast<uint16_t>(i);
  for (const char* target : {"host", "x86-64-linux-sse41"}) {
    for (Type type : {Float(16), BFloat(16)}) {
      // Out and back is the identity, but for the payload of signalling NaNs.
      auto there = run<float, uint16_t>(every, every, 16, [](Expr x, Expr) { return cast<float>(x); }, type, Float(32),
                                        {.target = target});
      auto back = run<uint16_t, float>(there, there, 16, [&](Expr x, Expr) { return cast(type, x); }, Float(32), type,
                                       {.target = target});
      for (size_t i = 0; i < every.size(); i++) {
        float expected =
            type.is_bfloat() ? float(bfloat16_t::make_from_bits(every[i])) : float(float16_t::make_from_bits(every[i]));
        ASSERT_TRUE(same(there[i], expected)) << i << " on " << target;
        if (!std::isnan(expected)) {
          ASSERT_EQ(back[i], every[i]) << target;
        } else {
          float again =
              type.is_bfloat() ? float(bfloat16_t::make_from_bits(back[i])) : float(float16_t::make_from_bits(back[i]));
          ASSERT_TRUE(std::isnan(again));
        }
      }
    }
    // Values between two neighbours: halves go to even, everything else to the nearer one; from float64 as well.
    std::vector<double> values;
    for (uint32_t bits = 0; bits < 0x7c00; bits += 37) {
      double low = double(float(float16_t::make_from_bits(bits))),
             high = double(float(float16_t::make_from_bits(bits + 1)));
      if (bits + 1 == 0x7c00) high = 65536;
      double middle = (low + high) / 2;
      for (double v : {middle, std::nextafter(middle, 0), std::nextafter(middle, 1e9)})
        values.push_back(v), values.push_back(-v);
    }
    auto rounded = run<uint16_t, double>(values, values, 8, [](Expr x, Expr) { return cast(Float(16), x); }, Float(64),
                                         Float(16), {.target = target});
    for (size_t i = 0; i < values.size(); i++) {
      uint16_t best = 0;
      double distance = 1e30;
      for (uint32_t bits = 0; bits <= 0x7c00; bits++) {
        double v = bits == 0x7c00 ? 65536 : double(float(float16_t::make_from_bits(bits)));
        double d = std::abs(v - std::abs(values[i]));
        if (d < distance || (d == distance && bits % 2 == 0)) distance = d, best = bits;
        if (v > std::abs(values[i])) break;
      }
      ASSERT_EQ(rounded[i], values[i] < 0 ? best | 0x8000 : best) << values[i] << " on " << target;
    }
  }
}

TEST(Object, HalfArithmeticKeepsPrecisionUnlessStrict) {
  std::vector<uint16_t> a = {half_bits(2048)}, b = {half_bits(1)};
  auto expr = [](Expr x, Expr y) { return (x + y) - x; };
  auto loose = run<uint16_t, uint16_t>(a, b, 1, expr, Float(16), Float(16));
  auto strict = run<uint16_t, uint16_t>(a, b, 1, expr, Float(16), Float(16), {.strict = true});
  EXPECT_EQ(loose[0], half_bits(1));
  EXPECT_EQ(strict[0], half_bits(0));
}

TEST(Object, ScalarArgumentsOfEveryType) {
  Expr sum = Variable::make(Float(32), "f") + cast<float>(Variable::make(Float(16), "h")) +
             cast<float>(Variable::make(Int(64), "i")) + select(Variable::make(Bool(), "b"), 1000.0f, 0.0f) +
             cast<float>(Variable::make(UInt(8), "u")) + cast<float>(Variable::make(Float(64), "d"));
  Kernel kernel{"f",
                {scalar_argument("f", Float(32)), scalar_argument("h", Float(16)), scalar_argument("i", Int(64)),
                 scalar_argument("b", Bool()), scalar_argument("u", UInt(8)), scalar_argument("d", Float(64)),
                 buffer_argument("out", Float(32), 1)},
                store("out", sum, 0)};
  float f = 0.5f, out = 0;
  uint16_t h = half_bits(2);
  int64_t i = 30;
  bool b = true;
  uint8_t u = 200;
  double d = 0.25;
  void* arguments[] = {&f, &h, &i, &b, &u, &d, &out};
  ASSERT_EQ(build(kernel)->call(arguments), 0);
  EXPECT_EQ(out, 1232.75f);
}

TEST(Object, AllocationsOfEverySize) {
  for (int count : {5, 1000, 100000, 5000000}) {
    Stmt fill = loop("i", count, store("t", load(Int(32), "a", variable("i") % 8) + variable("i"), variable("i")));
    Stmt sum = loop("i", count, store("out", load(Int(32), "out", 0) + load(Int(32), "t", variable("i")), 0));
    Stmt body = Allocate::make("t", Int(32), MemoryType::Auto, {count}, const_true(), block({fill, sum}));
    Kernel kernel{"f", {buffer_argument("a", Int(32), 8), buffer_argument("out", Int(32), 1)}, body};
    std::vector<int32_t> a = {1, 1, 1, 1, 1, 1, 1, 1};
    int32_t out = 0;
    void* arguments[] = {a.data(), &out};
    auto loaded = build(kernel);
    for (int round = 0; round < 3; round++) {
      out = 0;
      ASSERT_EQ(loaded->call(arguments), 0);
      EXPECT_EQ(out, static_cast<int32_t>(int64_t{count} + int64_t{count} * (count - 1) / 2));
    }
  }
}

TEST(Object, AllocationThatCannotBeIsAnError) {
  Expr huge = Variable::make(Int(32), "n");
  Stmt use = block({store("t", 1, 0), store("out", load(Int(32), "t", 0), 0)});
  Stmt body = Allocate::make("t", Int(32), MemoryType::Auto, {huge, huge}, const_true(), use);
  Kernel kernel{"f", {scalar_argument("n", Int(32)), buffer_argument("out", Int(32), 1)}, body};
  int32_t n = 0x7fffffff, out = 0;
  void* arguments[] = {&n, &out};
  EXPECT_EQ(build(kernel)->call(arguments), kOutOfMemory);
  // 2^62 bytes by constant extents.
  body = Allocate::make("t", Int(32), MemoryType::Auto, {1 << 30, 1 << 30}, const_true(), use);
  EXPECT_EQ(build({"f", kernel.arguments, body})->call(arguments), kOutOfMemory);
}

TEST(Object, AssertionsReturnTheirCode) {
  Stmt check = AssertStmt::make(load(Int(32), "a", variable("i")) >= 0, Expr(42) + variable("i"));
  Stmt body = block({loop("i", 100, check, ForType::Parallel), store("a", 7, 0)});
  Kernel kernel{"f", {buffer_argument("a", Int(32), 100)}, body};
  auto loaded = build(kernel);
  std::vector<int32_t> a(100, 1);
  void* arguments[] = {a.data()};
  EXPECT_EQ(loaded->call(arguments), 0);
  EXPECT_EQ(a[0], 7);
  a[13] = -1, a[0] = 1;
  EXPECT_EQ(loaded->call(arguments), 55);
  EXPECT_EQ(a[0], 1);
}

TEST(Object, NestedParallelLoops) {
  Expr i = variable("i"), j = variable("j");
  Stmt body = loop("i", 20, loop("j", 30, store("out", i * 30 + j, i * 30 + j), ForType::Parallel), ForType::Parallel);
  Kernel kernel{"f", {buffer_argument("out", Int(32), 600)}, body};
  std::vector<int32_t> out(600, -1);
  void* arguments[] = {out.data()};
  ASSERT_EQ(build(kernel)->call(arguments), 0);
  for (int k = 0; k < 600; k++) EXPECT_EQ(out[k], k);
}

TEST(Object, IndicesBeyondThirtyTwoBits) {
  constexpr int64_t kFar = (int64_t{1} << 32) + 5;
  std::vector<uint8_t> memory(kFar + 100);
  Expr place = cast<int64_t>(variable("i")) + IntImm::make(Int(64), kFar);
  Kernel kernel{"f",
                {buffer_argument("out", UInt(8), kFar + 100)},
                loop("i", 16, store("out", cast<uint8_t>(variable("i") + 1), place), ForType::Vectorized)};
  void* arguments[] = {memory.data()};
  ASSERT_EQ(build(kernel)->call(arguments), 0);
  for (int k = 0; k < 16; k++) EXPECT_EQ(memory[kFar + k], k + 1);
}

// Without the caller's promise, stores to one buffer may change what another one holds.
TEST(Object, BuffersMayOverlapUnlessPromised) {
  Stmt body = loop("i", 50,
                   block({store("a", load(Int(32), "b", 0) + 1, 0), store("c", load(Int(32), "b", 0), variable("i"))}));
  Kernel kernel{"f",
                {buffer_argument("a", Int(32), 1), buffer_argument("b", Int(32), 1), buffer_argument("c", Int(32), 50)},
                body};
  int32_t shared = 0;
  std::vector<int32_t> c(50);
  void* arguments[] = {&shared, &shared, c.data()};
  ASSERT_EQ(build(kernel)->call(arguments), 0);
  for (int i = 0; i < 50; i++) EXPECT_EQ(c[i], i + 1);
}

// x[0] has another value after the store.
TEST(Object, LoadsSeeTheStoresBeforeThem) {
  const Expr x = load(Float(32), "x", 0);
  const Expr y = load(Float(32), "y", 0);
  Kernel kernel{
      "f",
      {buffer_argument("x", Float(32), 1), buffer_argument("y", Float(32), 1), buffer_argument("out", Float(32), 1)},
      block({store("x", x * y + x, 0), store("out", x * y + x, 0)})};
  kernel.no_alias = true;
  float in = 3, factor = 4, out = 0;
  void* arguments[] = {&in, &factor, &out};
  ASSERT_EQ(build(kernel)->call(arguments), 0);
  EXPECT_EQ(in, 15);
  EXPECT_EQ(out, 75);
}

// What Halide's code generator cannot describe: lanes before the first element, and vectors that run backwards.
TEST(Object, VectorsAtConstantPlaces) {
  Expr lane = variable("i");
  Stmt shifted = IfThenElse::make(lane >= 3, store("out", load(Float(32), "a", lane - 1), lane));
  Stmt backwards = store("out", load(Float(32), "out", 7 - lane), lane + 8);
  Kernel kernel{"f",
                {buffer_argument("a", Float(32), 8), buffer_argument("out", Float(32), 16)},
                block({loop("i", 8, shifted, ForType::Vectorized), loop("i", 8, backwards, ForType::Vectorized)})};
  kernel.no_alias = true;
  std::vector<float> a = {10, 11, 12, 13, 14, 15, 16, 17}, out(16, 0);
  void* arguments[] = {a.data(), out.data()};
  ASSERT_EQ(build(kernel)->call(arguments), 0);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 0, 12, 13, 14, 15, 16, 16, 15, 14, 13, 12, 0, 0, 0}));
}

// A store that a predicate switches off may lie outside of its allocation.
TEST(Object, StoresThatAreSwitchedOffMayBeAnywhere) {
  Expr place = variable("v") * 8 + variable("i");
  Stmt copy = Store::make("t", load(Float(32), "a", place), place, {}, place < 9, {});
  Stmt body = block({loop("v", 3, loop("i", 8, copy, ForType::Vectorized), ForType::Unrolled),
                     store("out", load(Float(32), "t", 8), 0)});
  Kernel kernel{"f",
                {buffer_argument("a", Float(32), 24), buffer_argument("out", Float(32), 1)},
                Allocate::make("t", Float(32), MemoryType::Heap, {9}, const_true(), body)};
  std::vector<float> a(24), out(1);
  for (int k = 0; k < 24; k++) a[k] = k;
  void* arguments[] = {a.data(), out.data()};
  ASSERT_EQ(build(kernel)->call(arguments), 0);
  EXPECT_EQ(out[0], 8);
}

// Every third element of 16-bit data, from a constant place that is no multiple of three.
TEST(Object, StridedLoadsFromConstantPlaces) {
  Expr lane = variable("i");
  Stmt fill = loop("k", 8, store("t", cast<int16_t>(variable("k")), variable("k")));
  Stmt body = block({fill, loop("i", 2, store("out", load(Int(16), "t", lane * 3 + 4), lane), ForType::Vectorized)});
  Kernel kernel{"f",
                {buffer_argument("out", Int(16), 2)},
                Allocate::make("t", Int(16), MemoryType::Heap, {8}, const_true(), body)};
  std::vector<int16_t> out(2);
  void* arguments[] = {out.data()};
  ASSERT_EQ(build(kernel)->call(arguments), 0);
  EXPECT_EQ(out, (std::vector<int16_t>{4, 7}));
}

TEST(Object, SameKernelSameBytes) {
  Kernel kernel = matmul_kernel(12, 32, 8);
  EXPECT_EQ(compile_object(kernel)->bytes, compile_object(kernel)->bytes);
}

TEST(Object, BadTargetsAreErrors) {
  Kernel kernel = matmul_kernel(6, 32, 4);
  auto message = [&](const char* target) {
    return compile_object(kernel, {.target = target}).error().diagnostics()[0].message;
  };
  EXPECT_EQ(message("vax"), "'vax' is not a target such as 'x86-64-linux-avx2-fma'");
  EXPECT_EQ(message("arm-64-linux"), "the target 'arm-64-linux' is not supported: code is made for x86-64 Linux only");
}

TEST(Object, LoadingRefusesWhatIsNoObject) {
  Object object = compile_object(matmul_kernel(6, 32, 4)).value();
  auto message = [](const Object& bad) { return load_object(bad).error().diagnostics()[0].message; };
  Object empty = object;
  empty.bytes.clear();
  EXPECT_EQ(message(empty).substr(0, 53), "the object code of kernel 'matmul' cannot be loaded: ");
  Object renamed = object;
  renamed.name = "other";
  EXPECT_EQ(message(renamed), "the object code of kernel 'other' cannot be loaded: it has no entry");
}

TEST(Object, CompilesAndRunsFromManyThreads) {
  std::atomic<int> wrong = 0;
  auto work = [&](int seed) {
    for (int round = 0; round < 3; round++) {
      auto loaded = build(matmul_kernel(12, 32, 4 + seed));
      std::vector<float> a(12 * (4 + seed), 1), b(32 * (4 + seed), 2), c(12 * 32);
      void* arguments[] = {a.data(), b.data(), c.data()};
      for (int i = 0; i < 20; i++) wrong += loaded->call(arguments) != 0;
      for (float x : c) wrong += x != 2 * (4 + seed);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tc::cpu
