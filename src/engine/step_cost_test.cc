// SPDX-License-Identifier: Apache-2.0
#include "engine/step_cost.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace tessera::engine {
namespace {

Duration Of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

StepLoad Load(int64_t rows, int64_t start) {
  StepLoad load;
  load.Add(rows, start);
  return load;
}

/// A machine that follows the model, with some noise.
struct Machine {
  double step = 0.004, row = 0.0003, position = 2e-8, noise = 0.05;
  Random random{7};
  Duration Time(const StepLoad& load) {
    const double exact =
        step + row * static_cast<double>(load.rows) + position * static_cast<double>(load.context);
    return Of(exact * (1 + noise * (2 * random.Uniform() - 1)));
  }
};

void Learn(StepCostModel* model, Machine* machine, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const int64_t rows = int64_t{1} << machine->random.Below(9);
    const StepLoad load = Load(rows, static_cast<int64_t>(machine->random.Below(4000)));
    model->Observe(load, machine->Time(load));
  }
}

double Error(const StepCostModel& model, Machine* machine, const StepLoad& load) {
  machine->noise = 0;
  return std::abs(Seconds(model.Predict(load)) / Seconds(machine->Time(load)) - 1);
}

TEST(StepCost, CountsWhatEachRowLooksAt) {
  StepLoad load = Load(3, 10);  // 11 + 12 + 13.
  EXPECT_EQ(load.rows, 3);
  EXPECT_EQ(load.context, 36);
  load.Add(1, 0);
  EXPECT_EQ(load.context, 37);
}

TEST(StepCost, LearnsAMachineThatFollowsIt) {
  StepCostModel model;
  Machine machine;
  Learn(&model, &machine, 400);
  for (const int64_t rows : {1, 8, 60, 300})
    for (const int64_t start : {0, 500, 3000})
      EXPECT_LT(Error(model, &machine, Load(rows, start)), 0.1) << rows << " at " << start;
}

TEST(StepCost, StalledStepsDoNotCarryItAway) {
  StepCostModel model;
  Machine machine;
  for (int i = 0; i < 600; ++i) {
    const StepLoad load = Load(int64_t{1} << machine.random.Below(9), 100);
    const bool is_stalled = machine.random.Below(12) == 0;
    model.Observe(load, machine.Time(load) + (is_stalled ? Of(2.0) : Duration::zero()));
  }
  for (const int64_t rows : {1, 32, 256})
    EXPECT_LT(Error(model, &machine, Load(rows, 100)), 0.3) << rows;
}

TEST(StepCost, FollowsAMachineThatChanges) {
  StepCostModel model;
  Machine machine;
  Learn(&model, &machine, 300);
  machine.row *= 3;
  machine.step *= 3;
  machine.position *= 3;
  machine.noise = 0.05;
  Learn(&model, &machine, 1600);
  EXPECT_LT(Error(model, &machine, Load(100, 200)), 0.25);
}

TEST(StepCost, ManySmallStepsDoNotDrownTheFewLargeOnes) {
  StepCostModel model;
  Machine machine;
  for (int i = 0; i < 3; ++i) model.Observe(Load(256, 0), machine.Time(Load(256, 0)));
  for (int i = 0; i < 20000; ++i) model.Observe(Load(1, 300), machine.Time(Load(1, 300)));
  EXPECT_LT(Error(model, &machine, Load(256, 0)), 0.15);
  machine.noise = 0.05;
  EXPECT_LT(Error(model, &machine, Load(1, 300)), 0.1);
}

TEST(StepCost, RowsWithinATargetAreTheMostThatFit) {
  StepCostModel model;
  Machine machine;
  Learn(&model, &machine, 400);
  const Duration target = std::chrono::milliseconds(50);
  const StepLoad decoding = Load(8, 200);
  const int64_t rows = model.RowsWithin(target, decoding, 1000, 4096);
  StepLoad with = decoding;
  with.Add(rows, 1000);
  EXPECT_LE(model.Predict(with), target);
  with.Add(1, 1000 + rows);
  EXPECT_GT(model.Predict(with), target);
  // (50 - 4 - 8 * 0.3) ms at 0.3 ms and 1000 * 20 ns a row, less what the rows see of each other.
  EXPECT_NEAR(static_cast<double>(rows), 134, 15);
  EXPECT_EQ(model.RowsWithin(target, decoding, 1000, 50), 50);
  EXPECT_EQ(model.RowsWithin(std::chrono::milliseconds(1), decoding, 1000, 50), 0);
}

TEST(StepCost, KnowingNothingItLimitsNothing) {
  StepCostModel model;
  EXPECT_FALSE(model.is_known());
  EXPECT_EQ(model.RowsWithin(std::chrono::milliseconds(1), {}, 0, 512), 512);
  model.Observe({}, std::chrono::milliseconds(5));
  model.Observe(Load(4, 0), Duration::zero());
  EXPECT_FALSE(model.is_known());
}

TEST(StepCost, OneKindOfStepIsTakenAsCostingByTheRow) {
  // Nothing tells fixed cost from cost by the row: the cautious guess.
  StepCostModel model;
  for (int i = 0; i < 10; ++i) model.Observe(Load(10, 0), std::chrono::milliseconds(10));
  EXPECT_NEAR(Seconds(model.Predict(Load(100, 0))), 0.1, 0.01);
}

}  // namespace
}  // namespace tessera::engine
