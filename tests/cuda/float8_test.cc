#include <dlfcn.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "tc/cuda/nvrtc.h"
#include "tc/cuda/prelude.h"
#include "tc/interp/scalar.h"
#include "tc/support/float8.h"
#include "tests/common/temporary_folder.h"

/// The CUDA text of the 8-bit floats (T8): what architectures before sm_89 compute, compiled for this machine.
namespace tc::cuda {
namespace {

constexpr const char* kBefore = R"(
#include <cstring>
#define __device__
#define __forceinline__ inline
#define asm(...) (result = 0)
#define __CUDA_ARCH__ 800
static unsigned __float_as_uint(float x) { unsigned bits; std::memcpy(&bits, &x, 4); return bits; }
static float __uint_as_float(unsigned bits) { float x; std::memcpy(&x, &bits, 4); return x; }
static float __fadd_rn(float a, float b) { return a + b; }
)";

constexpr const char* kAfter = R"(
extern "C" void narrow(const float* x, unsigned char* e4m3, unsigned char* e5m2, float* tf32, long n) {
  for (long i = 0; i < n; ++i) {
    e4m3[i] = e4m3_from_float(x[i]);
    e5m2[i] = e5m2_from_float(x[i]);
    tf32[i] = round_tf32(x[i]);
  }
}
extern "C" void widen(float* e4m3) {
  for (int i = 0; i < 256; ++i) e4m3[i] = float_from_e4m3(uint8(i));
}
)";

using Narrow = void (*)(const float*, unsigned char*, unsigned char*, float*, long);
using Widen = void (*)(float*);

class Float8Text : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string folder = folder_.path();
    std::ofstream(folder + "/f.cc") << kBefore << prelude_text({Helper::kFloat8, Helper::kTf32}) << kAfter;
    const std::string command = std::string(TC_CXX) + " -std=c++17 -O1 -ffp-contract=off -fPIC -shared -o " + folder +
                                "/f.so " + folder + "/f.cc";
    ASSERT_EQ(std::system(command.c_str()), 0);
    library_ = ::dlopen((folder + "/f.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    narrow_ = reinterpret_cast<Narrow>(::dlsym(library_, "narrow"));
    widen_ = reinterpret_cast<Widen>(::dlsym(library_, "widen"));
    ASSERT_TRUE(narrow_ != nullptr && widen_ != nullptr);
  }
  void TearDown() override {
    if (library_) ::dlclose(library_);
  }

  const testing::TemporaryFolder folder_;
  void* library_ = nullptr;
  Narrow narrow_ = nullptr;
  Widen widen_ = nullptr;
};

TEST_F(Float8Text, T8_EveryNumberIsRead) {
  std::vector<float> numbers(256);
  widen_(numbers.data());
  for (int code = 0; code < 256; ++code) {
    const double expected = float8_from_bits(ScalarType::kFloat8E4M3, static_cast<uint8_t>(code));
    EXPECT_TRUE(numbers[code] == expected ? std::signbit(numbers[code]) == std::signbit(expected)
                                          : std::isnan(numbers[code]) && std::isnan(expected))
        << code;
  }
}

/// One in 4,093 of all float32 numbers, and all that lie at or beside a tie of either format.
TEST_F(Float8Text, T8_RoundsToNearestAndSaturates) {
  std::vector<float> numbers;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4093) {
    numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (uint32_t high = 0; high < 1 << 13; ++high) {
    for (const uint32_t low : {0u, 1u, 0x7ffffu}) numbers.push_back(std::bit_cast<float>(high << 19 | low));
  }
  const auto count = static_cast<long>(numbers.size());
  std::vector<unsigned char> e4m3(numbers.size()), e5m2(numbers.size());
  std::vector<float> tf32(numbers.size());
  narrow_(numbers.data(), e4m3.data(), e5m2.data(), tf32.data(), count);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto expected = [&](ScalarType type) { return float8_bits(type, interp::round_to(type, numbers[i])); };
    ASSERT_EQ(e4m3[i], expected(ScalarType::kFloat8E4M3)) << numbers[i];
    ASSERT_EQ(e5m2[i], expected(ScalarType::kFloat8E5M2)) << numbers[i];
    if (std::isnan(numbers[i])) {
      ASSERT_TRUE(std::isnan(tf32[i]));
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(tf32[i]) & 0x1fffu, 0u);
    if (std::isinf(tf32[i])) {
      ASSERT_GE(std::fabs(numbers[i]), 0x1.ffep127f);  // halfway to 2^128
      continue;
    }
    ASSERT_LE(std::fabs(static_cast<double>(tf32[i]) - numbers[i]), std::ldexp(std::fabs(numbers[i]), -11) + 0x1p-137);
  }
}

/// Before sm_89 in integers, from there on by instructions: both must assemble.
TEST(Nvrtc, T8_EightBitFloatsOnEveryArchitecture) {
  const Result<const Nvrtc*> found = Nvrtc::get();
  if (!found) GTEST_SKIP() << found.error().to_string();
  const std::string text = prelude_text({Helper::kFloat8, Helper::kTf32, Helper::kFloatOdd}) +
                           "extern \"C\" __global__ void convert(float* x, double* d, uint8* y) {\n"
                           "  y[0] = e4m3_from_float(x[0]);\n  y[1] = e5m2_from_float(float_odd(d[0]));\n"
                           "  x[1] = float_from_e4m3(y[2]) + float_from_e5m2(y[3]) + round_tf32(x[2]);\n}\n";
  for (const Arch arch : {Arch{75, '\0'}, Arch{80, '\0'}, Arch{89, '\0'}, Arch{90, 'a'}}) {
    const Result<Compiled> compiled = (*found)->compile(text, arch);
    ASSERT_TRUE(compiled) << compiled.error().to_string();
    EXPECT_EQ(compiled->log.find("warning"), std::string::npos) << compiled->log;
    EXPECT_EQ(compiled->ptx.find("satfinite.e4m3x2") != std::string::npos, arch.number >= 89);
  }
}

}  // namespace
}  // namespace tc::cuda
