// SPDX-License-Identifier: Apache-2.0
//
// On machines that are made up; how a machine's files become a Topology: base/cores_test.cc.
#include "runtime/worker_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Cores by node: CPU numbers as given.
Topology Machine(const std::vector<std::pair<int, std::vector<int>>>& nodes) {
  Topology topology;
  for (const auto& [node, cpus] : nodes)
    for (const int cpu : cpus) topology.cores.push_back({cpu, node});
  return topology;
}

/// Two nodes whose numbers and CPUs leave gaps; the second has lost a core.
Topology TwoNodes() {
  return Machine({{0, {0, 1, 2, 4}}, {8, {16, 17, 19}}});
}

WorkerPlan Plan(const WorkerWish& wish, const Topology& topology) {
  const auto plan = PlanWorkers(wish, topology);
  EXPECT_TRUE(plan.has_value()) << plan.error().ToString();
  return plan.value_or(WorkerPlan{});
}

std::string ErrorOf(const std::vector<int>& ids, const Topology& topology) {
  const auto plan = PlanWorkers({.device_ids = ids}, topology);
  return plan.has_value() ? "planned" : plan.error().ToString();
}

TEST(WorkerPlan, WithoutIdsEveryCoreHasAWorker) {
  const WorkerPlan plan = Plan({}, TwoNodes());
  EXPECT_EQ(plan.threads, 7);
  EXPECT_THAT(plan.cpus, ElementsAre(0, 1, 2, 4, 16, 17, 19));
  EXPECT_FALSE(plan.crowded);
}

TEST(WorkerPlan, IdsAreNumbersOfNodes) {
  EXPECT_THAT(Plan({.device_ids = {8}}, TwoNodes()).cpus, ElementsAre(16, 17, 19));
  EXPECT_THAT(Plan({.device_ids = {8, 0}}, TwoNodes()).cpus, ElementsAre(16, 17, 19, 0, 1, 2));
}

TEST(WorkerPlan, RanksOfAProcessHaveANodeEach) {
  const WorkerPlan plan = Plan({.device_ids = {0, 8}, .ranks = 2}, TwoNodes());
  EXPECT_EQ(plan.threads, 6);
  EXPECT_THAT(plan.cpus, ElementsAre(0, 1, 2, 16, 17, 19));
}

TEST(WorkerPlan, OfOneNodeIdsAreCores) {
  const Topology machine = Machine({{3, {2, 5, 7}}});
  EXPECT_THAT(Plan({.device_ids = {0, 2}}, machine).cpus, ElementsAre(2, 7));
  EXPECT_THAT(ErrorOf({3}, machine), HasSubstr("id 3 is not there; this machine has one NUMA node "
                                               "and cores 0 to 2"));
}

TEST(WorkerPlan, AnIdThatIsNotThereNamesThoseThatAre) {
  EXPECT_THAT(ErrorOf({0, 1}, TwoNodes()),
              HasSubstr("device id 1 is not there; this machine has NUMA nodes 0, 8"));
  EXPECT_THAT(ErrorOf({8, 8}, TwoNodes()), HasSubstr("device id 8 is named twice"));
}

TEST(WorkerPlan, RanksOfOtherProcessesOnTheSameCpusDivideThem) {
  const Topology machine = Machine({{0, {0, 1, 2, 3, 4}}});
  const auto cpus = [&](int index) {
    return Plan({.neighbours = {.here = 2, .index = index, .count = 2}}, machine).cpus;
  };
  EXPECT_THAT(cpus(0), ElementsAre(0, 1));
  EXPECT_THAT(cpus(1), ElementsAre(2, 3, 4));
  // With as many ids as ranks a node each.
  EXPECT_THAT(
      Plan({.device_ids = {0, 8}, .neighbours = {.here = 2, .index = 1, .count = 2}}, TwoNodes())
          .cpus,
      ElementsAre(16, 17, 19));
}

TEST(WorkerPlan, MoreRanksThanCoresAreCrowdedAndNotPinned) {
  const Topology machine = Machine({{0, {0, 1}}});
  for (int index = 0; index < 4; ++index) {
    const WorkerPlan plan = Plan({.neighbours = {.here = 4, .index = index, .count = 4}}, machine);
    EXPECT_EQ(plan.threads, 1);
    EXPECT_TRUE(plan.crowded || plan.cpus.size() == 1) << index;
  }
  const WorkerPlan plan = Plan({.ranks = 3}, machine);
  EXPECT_EQ(plan.threads, 3);
  EXPECT_TRUE(plan.crowded);
  EXPECT_THAT(plan.cpus, IsEmpty());
}

TEST(WorkerPlan, RanksDivideTheQuota) {
  Topology machine = Machine({{0, {0, 1, 2, 3, 4, 5, 6, 7}}});
  machine.cpu_quota = 4;
  EXPECT_EQ(Plan({}, machine).threads, 4);
  EXPECT_EQ(Plan({.ranks = 2}, machine).threads, 4);
  // Bound to other CPUs each, they still have one quota.
  EXPECT_EQ(Plan({.neighbours = {.here = 2, .index = 0, .count = 1}}, machine).threads, 2);
  EXPECT_EQ(Plan({.threads = 8, .neighbours = {.here = 2}}, machine).threads, 8);
}

}  // namespace
}  // namespace tessera::runtime
