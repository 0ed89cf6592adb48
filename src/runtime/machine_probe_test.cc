// SPDX-License-Identifier: Apache-2.0
//
// The structure of the figures, not their size: speed is no property that a test can rely on.
#include "runtime/machine_probe.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>

#include "base/clock.h"

namespace tessera::runtime {
namespace {

TEST(MachineProbe, MeasuresEveryRate) {
  const Topology topology = ReadTopology();
  const MachineRates rates = *MeasureMachine(topology, 2);
  EXPECT_EQ(rates.threads, 2);
  for (const double rate : {rates.read_bytes, rates.float_ops, rates.int5_ops, rates.int6_ops,
                            rates.int8_ops, rates.barrier_seconds}) {
    EXPECT_TRUE(std::isfinite(rate));
    EXPECT_GT(rate, 0);
  }
  EXPECT_EQ(*MeasureBarrier(topology, 1), 0);
}

TEST(MachineProbe, ARoundThatWasHeldUpDoesNotEndTheSearchForEnoughIterations) {
  static std::atomic<int64_t> calls{0}, most{0};
  const auto wait = [](std::chrono::nanoseconds time) {
    for (const TimePoint end = Clock::Real().Now() + time; Clock::Real().Now() < end;) {
    }
  };
  static const auto run = wait;
  const kernels::Probe probe{
      kernels::Mix::kFloatFma, kernels::Probes()[0].isa, "held up", 1,
      [](int64_t iterations) -> uint64_t {
        // The first is as slow as if somebody else had the core.
        run(calls++ == 0 ? std::chrono::milliseconds(20) : std::chrono::microseconds(iterations));
        most = std::max<int64_t>(most, iterations);
        return 1;
      }};
  const double rate = *MeasureOps(probe, ReadTopology(), 1);
  EXPECT_GE(most, 4000) << "5 ms of microseconds";
  EXPECT_LT(rate, 1.1e6);
}

TEST(MachineProbe, AMixForWideCodesServesNarrowOnes) {
  const MachineRates rates = *MeasureMachine(ReadTopology(), 1);
  EXPECT_GE(rates.int5_ops, rates.int6_ops);
  EXPECT_GE(rates.int6_ops, rates.int8_ops);
  double best = 0;
  for (const MachineRates::ProbeRate& probe : rates.probes) best = std::max(best, probe.ops);
  EXPECT_GE(rates.bfloat16_ops, rates.float_ops);
  EXPECT_EQ(best, std::max(rates.int5_ops, rates.bfloat16_ops));
}

TEST(MachineRates, ChooseTheMixByTheWeightsFormat) {
  using tensor::DType;
  MachineRates rates;
  rates.float_ops = 1;
  rates.bfloat16_ops = 2;
  rates.int5_ops = 5;
  rates.int6_ops = 6;
  rates.int8_ops = 8;
  for (const DType dtype : {DType::kF32, DType::kF16}) EXPECT_EQ(rates.MatmulOps(dtype), 1);
  EXPECT_EQ(rates.MatmulOps(DType::kBF16), 2);
  for (const DType dtype :
       {DType::kQ4_0, DType::kQ4_1, DType::kQ4_K, DType::kQ5_0, DType::kQ5_1, DType::kQ5_K})
    EXPECT_EQ(rates.MatmulOps(dtype), 5);
  EXPECT_EQ(rates.MatmulOps(DType::kQ6_K), 6);
  EXPECT_EQ(rates.MatmulOps(DType::kQ8_0), 8);
}

TEST(MachineRates, KeepTheBestOfTwo) {
  MachineRates a, b;
  a.read_bytes = 1, b.read_bytes = 2;
  a.float_ops = 4, b.float_ops = 3;
  a.bfloat16_ops = 6, b.bfloat16_ops = 7;
  a.int5_ops = 5, b.int6_ops = 6, b.int8_ops = 8;
  a.barrier_seconds = 2, b.barrier_seconds = 1;
  a.probes = {{"x", 1}, {"y", 4}}, b.probes = {{"x", 2}, {"y", 3}};
  a.KeepBest(b);
  EXPECT_EQ(a.read_bytes, 2);
  EXPECT_EQ(a.float_ops, 4);
  EXPECT_EQ(a.bfloat16_ops, 7);
  EXPECT_EQ(a.int5_ops, 5);
  EXPECT_EQ(a.int6_ops, 6);
  EXPECT_EQ(a.int8_ops, 8);
  EXPECT_EQ(a.barrier_seconds, 1);
  EXPECT_EQ(a.probes[0].ops, 2);
  EXPECT_EQ(a.probes[1].ops, 4);
}

TEST(MachineProbe, MatmulRateIsZeroWithoutAKernel) {
  EXPECT_GT(MeasureMatmulRate(tensor::DType::kQ4_0), 0);
  EXPECT_EQ(MeasureMatmulRate(tensor::DType::kIQ1_S), 0);
}

}  // namespace
}  // namespace tessera::runtime
