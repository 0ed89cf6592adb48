// SPDX-License-Identifier: Apache-2.0
#include "tensor/quantise_fit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "support/tensor_types.h"
#include "tensor/convert.h"
#include "tensor/quantise.h"

namespace tessera::tensor {
namespace {

using ::testing::HasSubstr;

constexpr DType kAll[] = {DType::kQ8_0, DType::kQ6_K, DType::kQ5_0,
                          DType::kQ4_K, DType::kQ4_1, DType::kQ4_0};

std::vector<std::byte> Fit(DType dtype, std::span<const float> row,
                           std::span<const float> importance = {},
                           FitPath path = FitPath::kFastest) {
  std::vector<std::byte> out(RowBytes(dtype, row.size()).value());
  const Status status = QuantiseFit(dtype, row, importance, out, path);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return out;
}

std::vector<float> Decode(DType dtype, std::span<const std::byte> bytes, size_t elements) {
  std::vector<float> out(elements);
  EXPECT_TRUE(ToFloat(dtype, bytes, out).ok());
  return out;
}

double SquaredError(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return sum;
}

/// Weights as models have them, with some heavy tails.
std::vector<float> Weights(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.03F);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  for (size_t i = 0; i < count; i += 97) values[i] *= 6;
  return values;
}

/// Rows that a search may stumble over.
std::vector<std::vector<float>> OddRows() {
  std::vector<std::vector<float>> rows(9, std::vector<float>(512, 0.0F));
  rows[1][300] = 7;                                      // One outlier.
  for (size_t i = 0; i < 512; ++i) rows[2][i] = -0.25F;  // Constant.
  for (size_t i = 0; i < 512; ++i) rows[3][i] = 1e-42F;  // Subnormal.
  for (size_t i = 0; i < 512; ++i) rows[4][i] = (i % 2 == 0 ? 1.0F : -1.0F) * kMaxFitMagnitude;
  for (size_t i = 0; i < 512; ++i) rows[5][i] = 3e-7F * static_cast<float>(i % 5);
  for (size_t i = 0; i < 512; ++i) rows[6][i] = 1.0F + 1e-6F * static_cast<float>(i % 7);
  rows[7] = Weights(512, 5);
  rows[7][0] = 60000;
  for (size_t i = 0; i < 512; ++i) rows[8][i] = -static_cast<float>(i);  // Never positive.
  return rows;
}

/// A plain encoder of the k-quants: every scale from its group's extremes, nothing searched.
std::vector<float> NearestQ4K(std::span<const float> row) {
  std::vector<float> out(row.size());
  for (size_t super = 0; super < row.size(); super += 256) {
    float scales[8], minima[8], most_scale = 0, most_minimum = 0;
    for (size_t g = 0; g < 8; ++g) {
      const auto group = row.subspan(super + 32 * g, 32);
      const auto [low, high] = std::minmax_element(group.begin(), group.end());
      minima[g] = -std::min(*low, 0.0F);
      scales[g] = (std::max(*high, 0.0F) + minima[g]) / 15;
      most_scale = std::max(most_scale, scales[g]);
      most_minimum = std::max(most_minimum, minima[g]);
    }
    const float d = HalfToFloat(FloatToHalf(most_scale / 63));
    const float dmin = HalfToFloat(FloatToHalf(most_minimum / 63));
    for (size_t i = 0; i < 256; ++i) {
      const float scale = d * std::round(scales[i / 32] / d);
      const float minimum = dmin * std::round(minima[i / 32] / dmin);
      const float code = std::clamp(std::round((row[super + i] + minimum) / scale), 0.0F, 15.0F);
      out[super + i] = scale * code - minimum;
    }
  }
  return out;
}
std::vector<float> NearestQ6K(std::span<const float> row) {
  std::vector<float> out(row.size());
  for (size_t super = 0; super < row.size(); super += 256) {
    float scales[16], most = 0;
    for (size_t g = 0; g < 16; ++g) {
      float extreme = 0;
      for (const float x : row.subspan(super + 16 * g, 16))
        extreme = std::max(extreme, std::fabs(x));
      scales[g] = extreme / 31;
      most = std::max(most, scales[g]);
    }
    const float d = HalfToFloat(FloatToHalf(most / 127));
    for (size_t i = 0; i < 256; ++i) {
      const float scale = d * std::round(scales[i / 16] / d);
      out[super + i] = scale * std::clamp(std::round(row[super + i] / scale), -32.0F, 31.0F);
    }
  }
  return out;
}

std::vector<float> Nearest(DType dtype, std::span<const float> row) {
  if (dtype == DType::kQ4_K) return NearestQ4K(row);
  if (dtype == DType::kQ6_K) return NearestQ6K(row);
  return Decode(dtype, Quantise(dtype, row).value(), row.size());
}

TEST(QuantiseFit, AllPathsGiveTheSameBytes) {
  for (const DType dtype : kAll) {
    std::vector<std::vector<float>> rows = OddRows();
    for (uint32_t seed = 0; seed < 20; ++seed) rows.push_back(Weights(512, seed));
    const std::vector<float> importance = [] {
      std::vector<float> values = Weights(512, 99);
      for (float& value : values) value = std::fabs(value);
      return values;
    }();
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(Fit(dtype, rows[i]), Fit(dtype, rows[i], {}, FitPath::kPortable))
          << Name(dtype) << " row " << i;
      EXPECT_EQ(Fit(dtype, rows[i], importance),
                Fit(dtype, rows[i], importance, FitPath::kPortable))
          << Name(dtype) << " row " << i;
    }
  }
  // Rows whose last eight lanes are not full.
  for (const DType dtype : {DType::kQ8_0, DType::kQ5_0, DType::kQ4_1, DType::kQ4_0}) {
    for (const size_t columns : {32, 64, 224, 288}) {
      EXPECT_EQ(Fit(dtype, Weights(columns, 3)),
                Fit(dtype, Weights(columns, 3), {}, FitPath::kPortable))
          << Name(dtype) << " " << columns;
    }
  }
}

// By the squared error of the weights: at least this much less than rounding to nearest makes.
TEST(QuantiseFit, IsCloserThanRoundingToNearest) {
  const std::pair<DType, double> most[] = {{DType::kQ8_0, 0.95},
                                           {DType::kQ6_K, 0.90},
                                           {DType::kQ4_K, 0.85},
                                           {DType::kQ4_1, 0.85},
                                           {DType::kQ4_0, 0.97}};
  for (const auto& [dtype, ratio] : most) {
    double fitted = 0, nearest = 0;
    for (uint32_t seed = 0; seed < 50; ++seed) {
      const std::vector<float> row = Weights(1024, seed);
      fitted += SquaredError(row, Decode(dtype, Fit(dtype, row), row.size()));
      nearest += SquaredError(row, Nearest(dtype, row));
    }
    EXPECT_LT(fitted, ratio * nearest) << Name(dtype) << " " << fitted / nearest;
  }
}

// One-scale formats have the plain scale among the candidates: no block gets worse.
TEST(QuantiseFit, NoBlockIsFartherThanRoundingToNearest) {
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
    for (uint32_t seed = 0; seed < 200; ++seed) {
      const std::vector<float> row = Weights(32, seed);
      const double fitted = FitError(dtype, row, {}, Fit(dtype, row));
      const double nearest = FitError(dtype, row, {}, Quantise(dtype, row).value());
      EXPECT_LE(fitted, nearest * (1 + 1e-5)) << Name(dtype) << " seed " << seed;
    }
  }
}

TEST(QuantiseFit, ReproducesWhatTheFormatHolds) {
  const TypesFixture fixture;
  for (const DType dtype : kAll) {
    const auto& tensor = fixture.Find("t." + std::string(Name(dtype)));
    const size_t columns = 256;
    double error = 0, power = 0;
    for (size_t at = 0; at + columns <= tensor.expected.size(); at += columns) {
      const auto row = std::span(tensor.expected).subspan(at, columns);
      error += SquaredError(row, Decode(dtype, Fit(dtype, row), columns));
      for (const float x : row) power += double{x} * x;
    }
    // Values that came out of blocks once: a search that misses their scales errs a hundredfold.
    EXPECT_LT(error, 2e-4 * power) << Name(dtype);
  }
}

TEST(QuantiseFit, KnownBlocks) {
  std::vector<float> row(32);
  for (size_t i = 0; i < 32; ++i) row[i] = 0.5F * static_cast<float>(static_cast<int>(i % 16) - 8);
  const auto q4 = Fit(DType::kQ4_0, row);
  const auto bytes = [](std::span<const std::byte> block) {
    std::string text;
    for (const std::byte b : block) text += fmt::format("{:02x}", std::to_integer<int>(b));
    return text;
  };
  EXPECT_EQ(bytes(q4),
            "0038"
            "00112233445566778899aabbccddeeff");  // d = 0.5, codes 0..15 twice.
  for (size_t i = 0; i < 32; ++i) row[i] = 2.0F + 0.25F * static_cast<float>(i % 16);
  EXPECT_EQ(bytes(Fit(DType::kQ4_1, row)),
            "00340040"
            "00112233445566778899aabbccddeeff");
  for (size_t i = 0; i < 32; ++i) row[i] = i == 3 ? -127.0F : static_cast<float>(i);
  EXPECT_EQ(bytes(Fit(DType::kQ8_0, row)),
            "003c"
            "00010281"
            "0405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  EXPECT_EQ(bytes(Fit(DType::kQ4_K, std::vector<float>(256))), std::string(288, '0'));
  EXPECT_EQ(bytes(Fit(DType::kQ4_0, std::vector<float>(32))),
            "0000"
            "88888888888888888888888888888888");
}

TEST(QuantiseFit, OddRowsComeBackWithinAStep) {
  const std::vector<std::vector<float>> rows = OddRows();
  for (const DType dtype : kAll) {
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::vector<float>& row = rows[r];
      const std::vector<float> back = Decode(dtype, Fit(dtype, row), row.size());
      for (size_t super = 0; super < row.size(); super += 256) {
        float most = 0;
        for (size_t i = super; i < super + 256; ++i) most = std::max(most, std::fabs(row[i]));
        // Half a step of 4-bit codes, with the least that an f16 times a code can miss by.
        for (size_t i = super; i < super + 256; ++i)
          ASSERT_NEAR(back[i], row[i], most * 0.14 + 2e-6)
              << Name(dtype) << " row " << r << " element " << i;
      }
    }
  }
}

TEST(QuantiseFit, ColumnsThatMatterComeBackCloser) {
  for (const DType dtype : kAll) {
    std::vector<float> importance(256, 1.0F);
    for (size_t i = 0; i < 256; i += 8) importance[i] = 1000;
    double plain = 0, guided = 0;
    for (uint32_t seed = 0; seed < 50; ++seed) {
      const std::vector<float> row = Weights(256, seed);
      plain += FitError(dtype, row, importance, Fit(dtype, row));
      guided += FitError(dtype, row, importance, Fit(dtype, row, importance));
    }
    EXPECT_LT(guided, 0.97 * plain) << Name(dtype);
  }
}

TEST(QuantiseFit, ImportanceOfZeroIsNoDivision) {
  for (const DType dtype : kAll) {
    const std::vector<float> row = Weights(256, 1);
    std::vector<float> importance(256, 0.0F);
    for (const float value : Decode(dtype, Fit(dtype, row, importance), 256))
      EXPECT_TRUE(std::isfinite(value)) << Name(dtype);
  }
}

TEST(QuantiseFit, RefusesWhatNoScaleHoldsAndSaysWhere) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(), -65505.0F};
  const std::string_view names[] = {"nan", "inf", "-65505"};
  for (const DType dtype : kAll) {
    for (size_t i = 0; i < std::size(bad); ++i) {
      std::vector<float> row(256, 0.5F);
      row[17] = bad[i];
      std::vector<std::byte> out(RowBytes(dtype, row.size()).value(), std::byte{7});
      const std::vector<std::byte> untouched = out;
      const Status status = QuantiseFit(dtype, row, {}, out);
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      EXPECT_THAT(status.message(), HasSubstr(fmt::format("element 17 is {}", names[i])));
      EXPECT_EQ(out, untouched);
    }
  }
}

}  // namespace
}  // namespace tessera::tensor
