// SPDX-License-Identifier: Apache-2.0
//
// Machines that are made up, as files of a kernel below a root of their own.
#include "base/cores.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "support/fixtures.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;

struct FakeCore {
  int node = 0;
  std::vector<int> cpus;  // Hyper-threads.
  bool online = true;
};

std::string Mask(const std::set<int>& bits) {
  std::array<uint32_t, 4> words{};
  for (const int bit : bits) words[static_cast<size_t>(bit) / 32] |= 1u << (bit % 32);
  return fmt::format("{:08x},{:08x},{:08x},{:08x}", words[3], words[2], words[1], words[0]);
}

class Cores : public ::testing::Test {
 protected:
  // Without what hwloc asks this machine's own CPU.
  Cores() { ::setenv("HWLOC_COMPONENTS", "-x86", 1); }
  ~Cores() override {
    ::unsetenv("HWLOC_FSROOT");
    ::unsetenv("HWLOC_COMPONENTS");
  }

  void Write(const std::string& path, const std::string& text) {
    const fs::path file = dir_.path() / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }

  void Make(const std::vector<FakeCore>& cores) {
    std::map<int, std::set<int>> nodes;
    std::set<int> present, online;
    int number = 0;
    for (const FakeCore& core : cores) {
      for (const int cpu : core.cpus) present.insert(cpu);
      if (core.online) {
        for (const int cpu : core.cpus) WriteCpu(cpu, core, number, &nodes, &online);
      }
      ++number;
    }
    const std::string system = "sys/devices/system/";
    for (const char* name : {"present", "possible"})
      Write(system + "cpu/" + name, fmt::format("{}", fmt::join(present, ",")));
    Write(system + "cpu/online", fmt::format("{}", fmt::join(online, ",")));
    std::set<int> ids;
    for (const auto& [node, cpus] : nodes) {
      const std::string folder = fmt::format("{}node/node{}/", system, node);
      Write(folder + "cpumap", Mask(cpus));
      Write(folder + "cpulist", fmt::format("{}", fmt::join(cpus, ",")));
      Write(folder + "meminfo", fmt::format("Node {} MemTotal: 1048576 kB", node));
      ids.insert(node);
    }
    Write(system + "node/online", fmt::format("{}", fmt::join(ids, ",")));
    Write("proc/meminfo", "MemTotal: 4194304 kB");
    Write("proc/cpuinfo", "processor : 0");
    ::setenv("HWLOC_FSROOT", dir_.path().c_str(), 1);
  }

  static std::vector<Core> Read(const std::set<int>& allowed) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (const int cpu : allowed) CPU_SET(cpu, &mask);
    return ReadCores(mask);
  }

 private:
  void WriteCpu(int cpu, const FakeCore& core, int number, std::map<int, std::set<int>>* nodes,
                std::set<int>* online) {
    const std::string folder = fmt::format("sys/devices/system/cpu/cpu{}/", cpu);
    const std::set<int> siblings(core.cpus.begin(), core.cpus.end());
    for (const char* name : {"core_cpus", "thread_siblings"})
      Write(folder + "topology/" + name, Mask(siblings));
    Write(folder + "topology/core_id", fmt::to_string(number));
    Write(folder + "topology/physical_package_id", fmt::to_string(core.node));
    Write(folder + "online", "1");
    (*nodes)[core.node].insert(cpu);
    online->insert(cpu);
  }

  testing::TempDir dir_;
};

TEST_F(Cores, AreThoseOfEveryNodeWithTheFirstOfTheirThreads) {
  Make({{0, {0, 4}}, {0, {1, 5}}, {1, {2, 6}}, {1, {3, 7}}});
  EXPECT_THAT(Read({0, 1, 2, 3, 4, 5, 6, 7}),
              ElementsAre(FieldsAre(0, 0), FieldsAre(1, 0), FieldsAre(2, 1), FieldsAre(3, 1)));
}

TEST_F(Cores, NumbersMayLeaveGaps) {
  Make({{0, {0}}, {0, {8}}, {8, {64}}, {8, {72}}});
  EXPECT_THAT(Read({0, 8, 64, 72}),
              ElementsAre(FieldsAre(0, 0), FieldsAre(8, 0), FieldsAre(64, 8), FieldsAre(72, 8)));
}

TEST_F(Cores, OfflineCoresDoNotCount) {
  Make({{0, {0}}, {0, {1}, /*online=*/false}, {1, {2}}, {1, {3}}});
  EXPECT_THAT(Read({0, 1, 2, 3}), ElementsAre(FieldsAre(0, 0), FieldsAre(2, 1), FieldsAre(3, 1)));
}

TEST_F(Cores, OnlyCpusThatWeMayUseCount) {
  Make({{0, {0, 4}}, {0, {1, 5}}, {1, {2, 6}}, {1, {3, 7}}});
  EXPECT_THAT(Read({5, 6}), ElementsAre(FieldsAre(5, 0), FieldsAre(6, 1)));
  EXPECT_THAT(Read({}), IsEmpty());
}

TEST_F(Cores, AMachineThatIsNotDescribedHasOneNode) {
  ::setenv("HWLOC_FSROOT", "/nowhere", 1);
  EXPECT_THAT(Read({0, 2}), ElementsAre(FieldsAre(0, 0), FieldsAre(2, 0)));
}

}  // namespace
}  // namespace tessera
