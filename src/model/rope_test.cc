// SPDX-License-Identifier: Apache-2.0
//
// Expected numbers were computed by a separate Python program from the published formulas.
#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::model {
namespace {

struct Expected {
  size_t pair;
  double frequency;
};

void ExpectFrequencies(const graph::RopeTable& table, std::initializer_list<Expected> expected) {
  ASSERT_EQ(table.inverse_frequency.size(), static_cast<size_t>(table.rotary_dim / 2));
  for (const Expected& e : expected) {
    EXPECT_NEAR(table.inverse_frequency[e.pair] / e.frequency, 1, 1e-12) << "pair " << e.pair;
  }
}

TEST(Rope, WithoutScalingIsAGeometricSeries) {
  const graph::RopeTable table = MakeRopeTable({.theta = 10000, .rotary_dim = 4});
  ExpectFrequencies(table, {{0, 1}, {1, 0.01}});
  EXPECT_EQ(table.attention_factor, 1);
}

TEST(Rope, LinearDividesEveryFrequency) {
  ExpectFrequencies(
      MakeRopeTable({.theta = 10000, .rotary_dim = 4, .scaling = LinearRopeScaling{4}}),
      {{0, 0.25}, {1, 0.0025}});
}

TEST(Rope, DivisorsDivideTheirOwnPair) {
  ExpectFrequencies(
      MakeRopeTable({.theta = 10000, .rotary_dim = 4, .scaling = RopeDivisors{{2, 5}}}),
      {{0, 0.5}, {1, 0.002}});
}

TEST(Rope, Llama3BlendsBetweenShortAndLongWaves) {
  const RopeConfig config{.theta = 500000,
                          .rotary_dim = 64,
                          .scaling = Llama3RopeScaling{.factor = 32,
                                                       .low_frequency_factor = 1,
                                                       .high_frequency_factor = 4,
                                                       .original_context = 8192}};
  ExpectFrequencies(MakeRopeTable(config), {{0, 1.0},
                                            {10, 0.016560440080994446},
                                            {14, 0.003211445994752591},
                                            {15, 0.001290547928209264},
                                            {16, 0.00042955679655936815},
                                            {17, 9.70828780262767e-05},
                                            {18, 1.9461638184831125e-05},
                                            {31, 9.41830672543491e-08}});
}

TEST(Rope, YarnRampsBetweenPairs) {
  YarnRopeScaling yarn{.factor = 4, .original_context = 32768, .attention_factor = 1.25};
  RopeConfig config{.theta = 1e6, .rotary_dim = 64, .scaling = yarn};
  const graph::RopeTable table = MakeRopeTable(config);
  EXPECT_EQ(table.attention_factor, 1.25);
  ExpectFrequencies(table, {{0, 1.0},
                            {11, 0.008659643233600654},
                            {12, 0.005154795480911533},
                            {15, 0.0010266176840396614},
                            {18, 0.00017570687642857593},
                            {20, 4.445698525097307e-05},
                            {31, 3.84981631514873e-07}});
  yarn.truncate = false;
  config.scaling = yarn;
  ExpectFrequencies(MakeRopeTable(config), {{11, 0.008659643233600654},
                                            {12, 0.0055172704751341225},
                                            {15, 0.0010792377416765538},
                                            {18, 0.00017734424630684023},
                                            {20, 4.445698525097307e-05}});
}

TEST(Rope, YarnFactorGrowsWithTheLogarithm) {
  EXPECT_EQ(YarnAttentionFactor(1), 1);
  EXPECT_EQ(YarnAttentionFactor(0.5), 1);
  EXPECT_NEAR(YarnAttentionFactor(40), 0.1 * std::log(40) + 1, 1e-15);
  EXPECT_NEAR(YarnAttentionFactor(40, 0.707), 0.0707 * std::log(40) + 1, 1e-15);
}

}  // namespace
}  // namespace tessera::model
