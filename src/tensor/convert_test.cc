// SPDX-License-Identifier: Apache-2.0
#include "tensor/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/tensor_types.h"
#include "tensor/quantise.h"

namespace tessera::tensor {
namespace {

uint32_t Bits(float value) {
  return std::bit_cast<uint32_t>(value);
}

TEST(Convert, EveryTypeOfTheFixtureIsEqualBitForBit) {
  const TypesFixture fixture;
  ASSERT_GE(fixture.tensors.size(), 26u);
  for (const auto& tensor : fixture.tensors) {
    std::vector<float> actual(tensor.expected.size());
    const Status status = ToFloat(tensor.dtype, AsBytes(tensor.bytes), actual);
    ASSERT_TRUE(status.ok()) << tensor.name << ": " << status.ToString();
    for (size_t i = 0; i < actual.size(); ++i) {
      if (std::isnan(tensor.expected[i])) {
        ASSERT_TRUE(std::isnan(actual[i])) << tensor.name << " element " << i;
      } else {
        ASSERT_EQ(Bits(actual[i]), Bits(tensor.expected[i]))
            << tensor.name << " element " << i << ": " << actual[i] << " for "
            << tensor.expected[i];
      }
    }
  }
}

TEST(Convert, QuantiseGivesTheReferenceEncodersBytes) {
  const TypesFixture fixture;
  const std::vector<float>& values = fixture.Find("t.F32").expected;
  for (const char* name : {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"}) {
    const auto& tensor = fixture.Find(std::string("t.") + name);
    const auto bytes = Quantise(tensor.dtype, values);
    ASSERT_TRUE(bytes.has_value());
    EXPECT_TRUE(AsText(*bytes) == tensor.bytes) << name;
  }
}

TEST(Convert, QuantiseRefusesOtherTypesAndPartialBlocks) {
  const std::vector<float> values(33);
  EXPECT_EQ(Quantise(DType::kQ4_K, values).error().code(), Code::kUnimplemented);
  EXPECT_EQ(Quantise(DType::kQ8_0, values).error().code(), Code::kInvalidArgument);
}

TEST(Convert, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value))));
    } else {
      ASSERT_EQ(FloatToHalf(value), bits);
    }
  }
}

TEST(Convert, FloatToHalfRoundsToNearestEvenEverywhere) {
  // Between neighbours a < b: the midpoint goes to the even one, its neighbours to the nearer.
  for (uint16_t bits = 0; bits < 0x7c00; ++bits) {
    const float low = HalfToFloat(bits);
    const float high = bits == 0x7bff ? 65536.0f : HalfToFloat(static_cast<uint16_t>(bits + 1));
    const float middle = (low + high) / 2;  // Exact: float32 has 13 more bits.
    const auto even = static_cast<uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(FloatToHalf(middle), even) << bits;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 1e9f)), bits + 1);
    ASSERT_EQ(FloatToHalf(-middle), even | 0x8000);
  }
  EXPECT_EQ(FloatToHalf(1e30f), 0x7c00);
  EXPECT_EQ(FloatToHalf(-INFINITY), 0xfc00);
}

TEST(Convert, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(FloatToBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(FloatToBFloat16(3.4e38f), 0x7f80);
  EXPECT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(std::bit_cast<float>(0x7f800001u)))));
}

float One(DType dtype, uint8_t bits) {
  float value = 0;
  const std::byte byte{bits};
  EXPECT_TRUE(ToFloat(dtype, {&byte, 1}, {&value, 1}).ok());
  return value;
}

TEST(Convert, EightBitFloatsFollowTheirSpecifications) {
  EXPECT_EQ(One(DType::kF8E4M3, 0x38), 1.0f);
  EXPECT_EQ(One(DType::kF8E4M3, 0x7e), 448.0f);
  EXPECT_EQ(One(DType::kF8E4M3, 0x01), 0x1p-9f);
  EXPECT_EQ(Bits(One(DType::kF8E4M3, 0x80)), 0x80000000u);
  EXPECT_TRUE(std::isnan(One(DType::kF8E4M3, 0x7f)));
  EXPECT_TRUE(std::isnan(One(DType::kF8E4M3, 0xff)));
  EXPECT_EQ(One(DType::kF8E4M3Fnuz, 0x40), 1.0f);
  EXPECT_EQ(One(DType::kF8E4M3Fnuz, 0x7f), 240.0f);
  EXPECT_TRUE(std::isnan(One(DType::kF8E4M3Fnuz, 0x80)));
  EXPECT_EQ(One(DType::kF8E5M2, 0x3c), 1.0f);
  EXPECT_EQ(One(DType::kF8E5M2, 0x7b), 57344.0f);
  EXPECT_EQ(One(DType::kF8E5M2, 0xfc), -INFINITY);
  EXPECT_EQ(One(DType::kF8E5M2Fnuz, 0x40), 1.0f);
  EXPECT_EQ(One(DType::kF8E5M2Fnuz, 0x7f), 57344.0f);
  EXPECT_TRUE(std::isnan(One(DType::kF8E5M2Fnuz, 0x80)));
  EXPECT_EQ(One(DType::kF8E8M0, 127), 1.0f);
  EXPECT_EQ(One(DType::kF8E8M0, 0), 0x1p-127f);
  EXPECT_TRUE(std::isnan(One(DType::kF8E8M0, 255)));
}

TEST(Convert, ReadsIQ1_MWithItsScatteredScale) {
  // Super-scale 1.0 (0x3c00) in the top nibbles, small scale 1 (factor 3) for the first group of
  // 16, code 0 (all digits 0: -1), delta positive: 3 * (-1 + 1/8).
  std::vector<uint8_t> block(56, 0);
  block[49] = 0x0 << 4;
  block[48] = 1;
  block[53] = 0xc << 4;
  block[55] = 0x3 << 4;
  std::vector<float> out(256);
  ASSERT_TRUE(ToFloat(DType::kIQ1_M, std::as_bytes(std::span(block)), out).ok());
  EXPECT_EQ(out[0], -2.625f);
  EXPECT_EQ(out[15], -2.625f);
  EXPECT_EQ(out[16], -0.875f);
}

TEST(Convert, ReadsNVFP4GroupsWithTheirOwnScales) {
  std::vector<uint8_t> block(36, 0);
  block[0] = 0x38;  // 1.0
  block[1] = 0x40;  // 2.0
  block[4] = 0x27;  // Elements 0 and 8: codes 7 and 2.
  block[12] = 0x0f;
  std::vector<float> out(64);
  ASSERT_TRUE(ToFloat(DType::kNVFP4, std::as_bytes(std::span(block)), out).ok());
  EXPECT_EQ(out[0], 6.0f);
  EXPECT_EQ(out[8], 1.0f);
  EXPECT_EQ(out[16], -12.0f);
  EXPECT_EQ(out[63], 0.0f);
}

TEST(Convert, TypesWithoutMeaningAsFloatsAreRefusedByName) {
  for (const DType dtype :
       {DType::kComplex64, DType::kComplex128, DType::kQ8_1, DType::kQ8_K, DType::kQ1_0}) {
    EXPECT_FALSE(CanConvertToFloat(dtype));
    std::vector<float> out(256);
    const std::vector<std::byte> bytes(RowBytes(dtype, 256).value());
    const Status status = ToFloat(dtype, bytes, out);
    EXPECT_EQ(status.code(), Code::kUnimplemented);
    EXPECT_NE(status.message().find(Name(dtype)), std::string::npos);
  }
}

TEST(Convert, SizesMustAgree) {
  std::vector<float> out(32);
  const std::vector<std::byte> bytes(35);
  EXPECT_EQ(ToFloat(DType::kQ8_0, bytes, out).code(), Code::kInvalidArgument);
  EXPECT_EQ(ToFloat(DType::kQ8_0, ByteSpan(bytes).first(34), std::span(out).first(31)).code(),
            Code::kInvalidArgument);
}

TEST(Convert, RowToFloatReadsOneRowAndChecksItsNumber) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const TensorView view{DType::kF32, Shape{3, 2}, std::as_bytes(std::span(values))};
  std::vector<float> row(2);
  ASSERT_TRUE(RowToFloat(view, 2, row).ok());
  EXPECT_EQ(row, (std::vector<float>{5, 6}));
  EXPECT_EQ(RowToFloat(view, 3, row).code(), Code::kOutOfRange);
  EXPECT_EQ(RowToFloat(view, -1, row).code(), Code::kOutOfRange);
  std::vector<float> wrong(3);
  EXPECT_EQ(RowToFloat(view, 0, wrong).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace tessera::tensor
