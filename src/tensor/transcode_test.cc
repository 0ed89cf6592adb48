// SPDX-License-Identifier: Apache-2.0
#include "tensor/transcode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/tensor_types.h"
#include "tensor/convert.h"

namespace tessera::tensor {
namespace {

std::vector<float> Decoded(DType dtype, ByteSpan bytes, size_t count) {
  std::vector<float> values(count);
  EXPECT_TRUE(ToFloat(dtype, bytes, values).ok());
  return values;
}

TEST(Transcode, KeepsEveryWeightOfTheFixture) {
  const TypesFixture fixture;
  int types = 0;
  for (const auto& tensor : fixture.tensors) {
    const auto transcoding = TranscodingOf(tensor.dtype);
    if (!transcoding) continue;
    ++types;
    const auto bytes = Transcode(tensor.dtype, AsBytes(tensor.bytes));
    ASSERT_TRUE(bytes.has_value()) << bytes.error().ToString();
    const std::vector<float> actual = Decoded(transcoding->to, *bytes, tensor.expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      const float expected = tensor.expected[i];
      if (transcoding->exact) {
        ASSERT_EQ(actual[i], expected) << tensor.name << " element " << i;
      } else {
        ASSERT_LE(std::abs(actual[i] - expected), std::ldexp(std::abs(expected), -11))
            << tensor.name << " element " << i;
      }
    }
  }
  EXPECT_EQ(types, 10);
}

TEST(Transcode, ABlockOfZerosStaysOne) {
  const std::vector<std::byte> zeros(17);  // MXFP4: e, 16 bytes of codes
  const auto bytes = Transcode(DType::kMXFP4, zeros);
  ASSERT_TRUE(bytes.has_value());
  for (const float value : Decoded(DType::kQ8_0, *bytes, 32)) EXPECT_EQ(value, 0);
}

TEST(Transcode, RefusesOtherTypesAndPartsOfBlocks) {
  EXPECT_FALSE(TranscodingOf(DType::kQ2_K).has_value());
  const auto other = Transcode(DType::kQ2_K, {});
  EXPECT_EQ(other.error().code(), Code::kUnimplemented);
  EXPECT_THAT(other.error().ToString(), ::testing::HasSubstr("Q2_K"));
  const std::vector<std::byte> part(19);
  const auto partial = Transcode(DType::kIQ4_NL, part);
  EXPECT_EQ(partial.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(partial.error().ToString(), ::testing::HasSubstr("multiple of 18"));
}

}  // namespace
}  // namespace tessera::tensor
