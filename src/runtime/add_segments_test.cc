// SPDX-License-Identifier: Apache-2.0
#include "runtime/add_segments.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace tessera::runtime {
namespace {

TEST(AddSegments, AddsFromLeftToRightThenBiasThenResidual) {
  // Any other order loses the small ones.
  constexpr int64_t kColumns = 300;  // More than one piece.
  const std::vector<float> a(kColumns, 1e8F), b(kColumns, -1e8F), c(kColumns, 3), bias(kColumns, 1),
      zero(kColumns, 0);
  std::vector<float> residual(kColumns, 0.5F);
  const std::array<const float*, 3> segments = {a.data(), b.data(), c.data()};
  AddSegments({segments, bias.data(), false, kColumns, residual.data()});
  EXPECT_EQ(residual, std::vector<float>(kColumns, 4.5F));
  const std::array<const float*, 3> other = {c.data(), a.data(), b.data()};
  AddSegments({other, nullptr, false, kColumns, residual.data()});
  EXPECT_EQ(residual, std::vector<float>(kColumns, 4.5F)) << "3 + 1e8 - 1e8 is 0";
}

TEST(AddSegments, FlushesSubnormalSumsToZeroOfTheirSign) {
  constexpr float kLeast = std::numeric_limits<float>::min();
  const std::array<float, 2> a = {1.5F * kLeast, -1.5F * kLeast};
  const std::array<float, 2> b = {-kLeast, kLeast};
  const std::array<const float*, 2> segments = {a.data(), b.data()};
  std::array<float, 2> residual = {-0.0F, -0.0F};
  AddSegments({segments, nullptr, true, 2, residual.data()});
  EXPECT_FALSE(std::signbit(residual[0]));
  EXPECT_EQ(residual[0], 0);
  EXPECT_TRUE(std::signbit(residual[1]));
  residual = {0, 0};
  AddSegments({segments, nullptr, false, 2, residual.data()});
  EXPECT_EQ(residual[0], 0.5F * kLeast);
}

}  // namespace
}  // namespace tessera::runtime
