#include <dlfcn.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>

#include "tc/cuda/prelude.h"
#include "tests/common/temporary_folder.h"

/// The CUDA text of quotient(), compiled for this machine: what it computes is IEEE's arithmetic, the same everywhere.
namespace tc::cuda {
namespace {

constexpr const char* kBefore = R"(
#include <cmath>
#include <cstring>
#define __device__
#define __forceinline__ inline
typedef unsigned int uint32;
static unsigned __float_as_uint(float x) { unsigned bits; std::memcpy(&bits, &x, 4); return bits; }
static float __uint_as_float(unsigned bits) { float x; std::memcpy(&x, &bits, 4); return x; }
)";

constexpr const char* kAfter = R"(
extern "C" void divide(const float* a, const float* b, float* q, long n) {
  for (long i = 0; i < n; ++i) q[i] = quotient(a[i], b[i]);
}
extern "C" void sigmoids(const float* x, const float*, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = sigmoid(x[i]);
}
extern "C" void divide_narrow(const float* a, const float* b, float* q, long n) {
  for (long i = 0; i < n; ++i) q[i] = narrow_quotient(a[i], b[i]);
}
)";

/// The helpers with a reciprocal of the host's, which is an ULP off, up or down.
std::string on_host(std::string text) {
  const size_t begin = text.find("  float result;\n  asm(\"rcp.approx"), end = text.find("}\n", begin);
  EXPECT_NE(begin, std::string::npos);
  return text.replace(begin, end - begin,
                      "  const float nearest = 1 / x;\n"
                      "  const bool is_regular = fabsf(nearest) >= 0x1p-126f && fabsf(nearest) <= 0x1p126f;\n"
                      "  if (!is_regular) return nearest;\n"
                      "  return __uint_as_float(__float_as_uint(nearest) + (__float_as_uint(x) % 2 ? 1 : -1));\n");
}

using Divide = void (*)(const float* a, const float* b, float* q, long n);

class Quotient : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string folder = folder_.path();
    std::ofstream(folder + "/q.cc") << kBefore
                                    << on_host(
                                           prelude_text({Helper::kQuotient, Helper::kNarrowQuotient, Helper::kSigmoid}))
                                    << kAfter;
    const std::string command =
        std::string(TC_CXX) + " -O2 -ffp-contract=off -fPIC -shared -o " + folder + "/q.so " + folder + "/q.cc";
    ASSERT_EQ(std::system(command.c_str()), 0);
    library_ = ::dlopen((folder + "/q.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    divide_ = reinterpret_cast<Divide>(::dlsym(library_, "divide"));
    ASSERT_NE(divide_, nullptr);
    narrow_ = reinterpret_cast<Divide>(::dlsym(library_, "divide_narrow"));
    ASSERT_NE(narrow_, nullptr);
    sigmoids_ = reinterpret_cast<Divide>(::dlsym(library_, "sigmoids"));
    ASSERT_NE(sigmoids_, nullptr);
  }

  void TearDown() override {
    if (library_) ::dlclose(library_);
  }

  /// How many quotients differ from a / b; more than by an ULP is a failure of its own.
  int differences(const std::vector<float>& a, const std::vector<float>& b) { return differences(divide_, a, b); }

  std::vector<float> sigmoids_of(const std::vector<float>& x) const {
    std::vector<float> y(x.size());
    sigmoids_(x.data(), nullptr, y.data(), static_cast<long>(x.size()));
    return y;
  }

  /// Of pairs with a quotient that is 0 or not near to it.
  int narrow_differences(const std::vector<float>& a, const std::vector<float>& b) {
    constexpr float kLeast = 0x1p-120f;  // the remainders of smaller ones are not exact
    std::vector<float> dividends, divisors;
    for (size_t i = 0; i < a.size(); ++i) {
      const float exact = std::fabs(a[i] / b[i]);
      if (exact < kLeast && a[i] != 0 && std::isfinite(b[i])) continue;
      dividends.push_back(a[i]);
      divisors.push_back(b[i]);
    }
    EXPECT_GT(dividends.size(), a.size() / 4);
    return differences(narrow_, dividends, divisors);
  }

  static int differences(Divide divide, const std::vector<float>& a, const std::vector<float>& b) {
    std::vector<float> q(a.size());
    divide(a.data(), b.data(), q.data(), static_cast<long>(a.size()));
    int different = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const float exact = a[i] / b[i];
      if (std::isnan(exact) && std::isnan(q[i])) continue;
      if (std::bit_cast<uint32_t>(exact) == std::bit_cast<uint32_t>(q[i])) continue;
      ++different;
      const bool near = q[i] == std::nextafter(exact, q[i]) && std::isfinite(q[i]) && std::isfinite(exact);
      EXPECT_TRUE(near) << a[i] << " / " << b[i] << " is " << exact << ", not " << q[i];
    }
    return different;
  }

 private:
  const testing::TemporaryFolder folder_;
  void* library_ = nullptr;
  Divide divide_ = nullptr, narrow_ = nullptr, sigmoids_ = nullptr;
};

/// All pairs of exponents and signs, the ends, the infinities, the NaNs and what is subnormal among them, with
/// fractions that are plain or random.
TEST_F(Quotient, IsTheNearestAtTheEndsOfTheRange) {
  std::mt19937 random(1);
  std::vector<float> values;
  for (uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (const uint32_t fraction : {0U, 1U, 0x400000U, 0x7fffffU, static_cast<uint32_t>(random() % 0x800000U)}) {
      values.push_back(std::bit_cast<float>(exponent << 23 | fraction));
    }
  }
  std::vector<float> a, b;
  for (const float x : values) {
    for (const float y : values) {
      a.push_back(random() % 2 ? x : -x);
      b.push_back(random() % 2 ? y : -y);
    }
  }
  EXPECT_EQ(differences(a, b), 0);
}

TEST_F(Quotient, OfRandomNumbersIsTheNearest) {
  std::mt19937 random(2);
  std::vector<float> a(2'000'000), b(a.size());
  for (float& x : a) x = std::bit_cast<float>(static_cast<uint32_t>(random()));
  for (float& x : b) x = std::bit_cast<float>(static_cast<uint32_t>(random()));
  EXPECT_EQ(differences(a, b), 0);
}

/// One of some thousands is not the nearest, but its neighbour.
TEST_F(Quotient, OfNarrowFloatsIsNear) {
  std::mt19937 random(3);
  std::vector<float> a(2'000'000), b(a.size());
  for (float& x : a) x = std::bit_cast<float>(static_cast<uint32_t>(random()));
  for (float& x : b) x = std::bit_cast<float>(static_cast<uint32_t>(random()));
  EXPECT_LT(narrow_differences(a, b), 200);
  std::vector<float> ends;
  for (const float x : {0.0F, 0x1p-149F, 0x1p-126F, 0x1.fffffep-127F, 1.0F, 3.0F, 0x1p126F, 0x1.fffffep127F, INFINITY,
                        std::numeric_limits<float>::quiet_NaN()}) {
    ends.insert(ends.end(), {x, -x});
  }
  a.clear(), b.clear();
  for (const float x : ends) {
    for (const float y : ends) a.push_back(x), b.push_back(y);
  }
  EXPECT_LT(narrow_differences(a, b), 10);
}

/// With an exp that is half an ULP off, and a reciprocal that is one.
TEST_F(Quotient, OfASigmoidIsNear) {
  std::vector<float> x;
  for (uint32_t bits = 0x30000000; bits < 0x42ae0000; bits += 97) {
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(-x.back());
  }
  const std::vector<float> y = sigmoids_of(x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = 1 / (1 + std::exp(-static_cast<double>(x[i])));
    const auto near = static_cast<float>(exact);
    worst = std::max(worst, std::fabs(y[i] - exact) / (std::nextafter(near, 2.0F) - near));
  }
  EXPECT_LT(worst, 3);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> ends = sigmoids_of({-kInfinity, -200, 0, 200, kInfinity, NAN});
  EXPECT_EQ((std::vector<float>(ends.begin(), ends.end() - 1)), (std::vector<float>{0, 0, 0.5F, 1, 1}));
  EXPECT_TRUE(std::isnan(ends.back()));
}

}  // namespace
}  // namespace tc::cuda
