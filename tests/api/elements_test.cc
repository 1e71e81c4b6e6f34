#include "tc/api/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tc/api/call.h"

namespace tc::api {
namespace {

uint16_t bits16(ScalarType type, double value) {
  uint16_t bits = 0;
  store_float(type, value, &bits);
  return bits;
}

TEST(Elements, EveryFloat16IsReadAndWrittenAsItself) {
  for (int i = 0; i < 1 << 16; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const double value = load_float(ScalarType::kFloat16, &bits);
    if (std::isnan(value)) continue;
    ASSERT_EQ(bits16(ScalarType::kFloat16, value), bits);
  }
}

TEST(Elements, EveryBFloat16IsReadAndWrittenAsItself) {
  for (int i = 0; i < 1 << 16; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const double value = load_float(ScalarType::kBFloat16, &bits);
    if (std::isnan(value)) continue;
    ASSERT_EQ(bits16(ScalarType::kBFloat16, value), bits);
  }
}

TEST(Elements, Float16KnownValues) {
  EXPECT_EQ(bits16(ScalarType::kFloat16, 1.0), 0x3c00);
  EXPECT_EQ(bits16(ScalarType::kFloat16, -2.0), 0xc000);
  EXPECT_EQ(bits16(ScalarType::kFloat16, 65504.0), 0x7bff);
  EXPECT_EQ(bits16(ScalarType::kFloat16, 65520.0), 0x7c00);  // halfway to what would be next: to even, infinity
  EXPECT_EQ(bits16(ScalarType::kFloat16, 0x1p-24), 0x0001);
  EXPECT_EQ(bits16(ScalarType::kFloat16, 0x1p-25), 0x0000);  // a tie to even
  EXPECT_EQ(bits16(ScalarType::kFloat16, 0x1.8p-25), 0x0001);
  EXPECT_EQ(bits16(ScalarType::kFloat16, 1 + 0x1p-11 + 0x1p-40), 0x3c01);  // rounded once, from float64
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const uint16_t bits = bits16(ScalarType::kFloat16, nan);
  EXPECT_TRUE(std::isnan(load_float(ScalarType::kFloat16, &bits)));
}

TEST(Elements, IntegersKeepTheirSign) {
  int64_t place = 0;
  store_integer(ScalarType::kInt8, -3, &place);
  EXPECT_EQ(load_integer(ScalarType::kInt8, &place), -3);
  EXPECT_EQ(load_integer(ScalarType::kUInt8, &place), 253);
  store_integer(ScalarType::kBool, 256, &place);
  EXPECT_EQ(load_integer(ScalarType::kBool, &place), 1);
}

TEST(Scalars, AreConvertedExactlyOrRefused) {
  EXPECT_EQ(scalar_bits(Scalar(7), ScalarType::kInt8), 7);
  EXPECT_EQ(scalar_bits(Scalar(7.0), ScalarType::kInt8), 7);
  EXPECT_EQ(scalar_bits(Scalar(127), ScalarType::kInt8), 127);
  EXPECT_EQ(scalar_bits(Scalar(128), ScalarType::kInt8), std::nullopt);
  EXPECT_EQ(scalar_bits(Scalar(-128), ScalarType::kInt8), 128);  // the bits of the byte
  EXPECT_EQ(scalar_bits(Scalar(-129), ScalarType::kInt8), std::nullopt);
  EXPECT_EQ(scalar_bits(Scalar(-1), ScalarType::kUInt64), std::nullopt);
  EXPECT_EQ(scalar_bits(Scalar(UINT64_MAX), ScalarType::kUInt64), -1);
  EXPECT_EQ(scalar_bits(Scalar(UINT64_MAX), ScalarType::kInt64), std::nullopt);
  EXPECT_EQ(scalar_bits(Scalar(INT64_MIN), ScalarType::kInt64), INT64_MIN);
  EXPECT_EQ(scalar_bits(Scalar(0x1p63), ScalarType::kUInt64), INT64_MIN);
  EXPECT_EQ(scalar_bits(Scalar(0x1p64), ScalarType::kUInt64), std::nullopt);
  EXPECT_EQ(scalar_bits(Scalar(2.5), ScalarType::kInt32), std::nullopt);
  EXPECT_EQ(scalar_bits(Scalar(std::nan("")), ScalarType::kInt32), std::nullopt);
  EXPECT_EQ(scalar_bits(Scalar(true), ScalarType::kBool), 1);
  EXPECT_EQ(scalar_bits(Scalar(2), ScalarType::kBool), std::nullopt);
  float value = 0;
  const int64_t bits = *scalar_bits(Scalar(0.1), ScalarType::kFloat32);
  std::memcpy(&value, &bits, sizeof value);
  EXPECT_EQ(value, 0.1F);
}

}  // namespace
}  // namespace tc::api
