// SPDX-License-Identifier: Apache-2.0
#include "engine/sampling_defaults.h"

#include <gtest/gtest.h>

namespace tessera::engine {
namespace {

TEST(SamplingDefaults, SilenceChangesNothing) {
  const SamplingParams own;
  const SamplingParams params = WithDefaults({});
  EXPECT_EQ(params.temperature, own.temperature);
  EXPECT_EQ(params.top_p, own.top_p);
  EXPECT_EQ(params.top_k, own.top_k);
  EXPECT_EQ(params.min_p, own.min_p);
  EXPECT_EQ(params.repetition_penalty, own.repetition_penalty);
}

TEST(SamplingDefaults, EachValueIsTakenFromTheNearestThatNamesIt) {
  SamplingDefaults model;
  model.temperature = 0.6;
  model.top_p = 0.9;
  model.repetition_penalty = 1.1;
  SamplingDefaults user;
  user.temperature = 0.0;
  user.top_k = 40;
  user.min_p = 0.05;
  SamplingParams otherwise;
  otherwise.top_k = 7;
  otherwise.seed = 12;
  const SamplingParams params = WithDefaults(user, WithDefaults(model, otherwise));
  EXPECT_EQ(params.temperature, 0.0) << "named by both: the user's";
  EXPECT_EQ(params.top_p, 0.9);
  EXPECT_EQ(params.top_k, 40);
  EXPECT_EQ(params.min_p, 0.05);
  EXPECT_EQ(params.repetition_penalty, 1.1);
  EXPECT_EQ(params.seed, 12u) << "what no one may name stays";
}

}  // namespace
}  // namespace tessera::engine
