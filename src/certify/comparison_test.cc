// SPDX-License-Identifier: Apache-2.0
#include "certify/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/convert.h"

namespace tessera::certify {
namespace {

std::vector<std::byte> Halves(std::initializer_list<float> values) {
  std::vector<std::byte> bytes;
  for (const float value : values) {
    const uint16_t bits = tensor::FloatToHalf(value);
    bytes.push_back(static_cast<std::byte>(bits & 0xff));
    bytes.push_back(static_cast<std::byte>(bits >> 8));
  }
  return bytes;
}

TEST(Comparison, EqualRunsDifferInNothing) {
  Comparison comparison;
  const std::vector<float> logits = {1, 2, 3};
  const auto page = Halves({1, 2, 3, 4});
  comparison.AddPosition(logits, logits, 0);
  comparison.AddPage(page, page, 2);
  const auto result = comparison.Finish();
  EXPECT_EQ(result.mean_kl, 0);
  EXPECT_EQ(result.same_top1, 1);
  EXPECT_EQ(result.worst_layer_error, 0);
  EXPECT_EQ(result.original_nll, comparison.program_nll());
}

// Two tokens: p = (3/4, 1/4), q = (1/2, 1/2).
TEST(Comparison, DivergenceAndLikelihoodsAreThoseOfTheDefinition) {
  Comparison comparison;
  const std::vector<float> p = {std::log(3.0F), 0}, q = {5, 5};
  const auto page = Halves({1});
  comparison.AddPosition(p, q, 1);
  comparison.AddPosition(p, q, 0);
  comparison.AddPage(page, page, 1);
  const auto result = comparison.Finish();
  EXPECT_NEAR(result.original_nll, (std::log(4.0) + std::log(4.0 / 3)) / 2, 1e-6);
  EXPECT_NEAR(comparison.program_nll(), std::log(2.0), 1e-6);
  EXPECT_NEAR(result.mean_kl, 0.75 * std::log(1.5) + 0.25 * std::log(0.5), 1e-6);
  EXPECT_EQ(result.same_top1, 1);  // Of equals the first counts.
  EXPECT_NEAR(NegativeLogLikelihood(p, 1), std::log(4.0), 1e-6);
}

TEST(Comparison, NamesTheLayerThatDiffersMostForItsSize) {
  Comparison comparison;
  const std::vector<float> logits = {0, 1};
  comparison.AddPosition(logits, logits, 0);
  // Layers of two values: off by 1 of 100, by 0.5 of 1, by nothing.
  comparison.AddPage(Halves({100, 0, 1, 0, 7, 7}), Halves({101, 0, 1.5, 0, 7, 7}), 3);
  comparison.AddPage(Halves({100, 0, 1, 0, 7, 7}), Halves({101, 0, 1.5, 0, 7, 7}), 3);
  const auto result = comparison.Finish();
  EXPECT_EQ(result.worst_layer, 1);
  EXPECT_NEAR(result.worst_layer_error, 0.5, 1e-6);
}

TEST(Comparison, WhatIsNotFiniteStaysSo) {
  Comparison comparison;
  const std::vector<float> logits = {0, 1};
  const std::vector<float> broken = {0, std::numeric_limits<float>::quiet_NaN()};
  comparison.AddPosition(logits, broken, 0);
  comparison.AddPage(Halves({1}), Halves({1}), 1);
  EXPECT_TRUE(std::isnan(comparison.Finish().mean_kl));
}

}  // namespace
}  // namespace tessera::certify
