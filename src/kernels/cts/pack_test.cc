// SPDX-License-Identifier: Apache-2.0
#include "kernels/pack.h"

#include <gtest/gtest.h>

#include "kernels/cts/data.h"

namespace tessera::kernels {
namespace {

using tensor::DType;

constexpr DType kFormats[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ4_0,
                              DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
                              DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

void ExpectRowsEqualSource(DType dtype, int64_t n, int64_t k) {
  Random random(static_cast<uint64_t>(n * 1000 + k));
  const auto source = cts::RandomWeights(dtype, n, k, random);
  const int64_t row_bytes = cts::SourceRowBytes(dtype, k);
  cts::Buffer packed(PackedBytes(dtype, n, k));
  PackRows(dtype, n, k, source.data(), row_bytes, nullptr, 0, GroupCount(n), packed.data());
  std::vector<float> expected(static_cast<size_t>(k)), actual(static_cast<size_t>(k));
  for (int64_t row = 0; row < n; ++row) {
    const ByteSpan bytes(source.data() + row * row_bytes, static_cast<size_t>(row_bytes));
    ASSERT_TRUE(tensor::ToFloat(dtype, bytes, expected).ok());
    UnpackRow(dtype, k, packed.data(), row, actual.data());
    ASSERT_EQ(std::memcmp(actual.data(), expected.data(), static_cast<size_t>(4 * k)), 0)
        << tensor::Name(dtype) << " n=" << n << " k=" << k << " row " << row;
  }
  for (int64_t row = n; row < GroupCount(n) * kGroupRows; ++row) {
    UnpackRow(dtype, k, packed.data(), row, actual.data());
    for (const float v : actual) ASSERT_EQ(v, 0.0f);
  }
}

TEST(Pack, EveryFormatUnpacksToTheValuesOfTheSourceBitForBit) {
  for (const DType dtype : kFormats) {
    for (const int64_t n : {1, 7, 8, 9, 24}) {
      for (const int64_t k : {1, 7, 8, 32, 64, 96, 256, 576, 768}) {
        if (CanPack(dtype, k)) ExpectRowsEqualSource(dtype, n, k);
      }
    }
  }
}

TEST(Pack, BytesPerWeightEqualTheSource) {
  for (const DType dtype : kFormats) {
    EXPECT_EQ(PackedBytes(dtype, 16, 1536), 16 * cts::SourceRowBytes(dtype, 1536))
        << tensor::Name(dtype);
  }
}

TEST(Pack, RowIndexPermutesAndMinusOneIsZero) {
  Random random(7);
  constexpr int64_t kN = 11, kK = 64;
  const auto source = cts::RandomWeights(DType::kQ4_1, kN, kK, random);
  const int64_t row_bytes = cts::SourceRowBytes(DType::kQ4_1, kK);
  const std::vector<int64_t> index = {3, 1, -1, 10, 0, 0, 9, 2, 5, 4, 8};
  cts::Buffer packed(PackedBytes(DType::kQ4_1, kN, kK));
  PackRows(DType::kQ4_1, kN, kK, source.data(), row_bytes, index.data(), 0, 2, packed.data());
  std::vector<float> expected(kK), actual(kK);
  for (size_t i = 0; i < index.size(); ++i) {
    UnpackRow(DType::kQ4_1, kK, packed.data(), static_cast<int64_t>(i), actual.data());
    std::fill(expected.begin(), expected.end(), 0.0f);
    if (index[i] >= 0) {
      const ByteSpan bytes(source.data() + index[i] * row_bytes, static_cast<size_t>(row_bytes));
      ASSERT_TRUE(tensor::ToFloat(DType::kQ4_1, bytes, expected).ok());
    }
    EXPECT_EQ(actual, expected) << "row " << i;
  }
}

TEST(Pack, RowLengthsThatABlockDoesNotDivideAreRefused) {
  EXPECT_FALSE(CanPack(DType::kQ4_1, 33));
  EXPECT_FALSE(CanPack(DType::kQ4_K, 576));
  EXPECT_FALSE(CanPack(DType::kF32, 0));
  EXPECT_TRUE(CanPack(DType::kF16, 1));
  EXPECT_FALSE(CanPack(DType::kIQ2_S, 256));
}

}  // namespace
}  // namespace tessera::kernels
