// SPDX-License-Identifier: Apache-2.0
#include "server/memory_use.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <string>

#include "server/limits.h"
#include "support/core_harness.h"

namespace tessera::server {
namespace {

uint64_t Sum(const MemoryUse::Reading& reading) {
  uint64_t sum = 0;
  for (const auto& [owner, bytes] : reading.owners) sum += bytes;
  return sum;
}

std::map<std::string, uint64_t> ByOwner(const MemoryUse::Reading& reading) {
  std::map<std::string, uint64_t> owners(reading.owners.begin(), reading.owners.end());
  EXPECT_EQ(owners.size(), reading.owners.size()) << "each owner once";
  return owners;
}

const std::vector<OwnedMemory> kMemory = {
    {"weights", {}, true}, {"weights", {}, true}, {"kv", {}, false}, {"tokenizer", {}, true}};

TEST(MemoryUse, TheRestIsCodeAndOther) {
  const ProcessMemory whole{
      .resident_bytes = 1110, .anonymous_bytes = 600, .file_bytes = 500, .shared_bytes = 10};
  const MemoryUse::Reading reading = ShareOut(whole, kMemory, {200, 100, 400, 50});
  const auto owners = ByOwner(reading);
  EXPECT_EQ(owners.at("weights"), 300u);
  EXPECT_EQ(owners.at("kv"), 400u);
  EXPECT_EQ(owners.at("tokenizer"), 50u);
  EXPECT_EQ(owners.at("code"), 150u);
  EXPECT_EQ(owners.at("other"), 210u);
  EXPECT_EQ(Sum(reading), whole.resident_bytes);
}

TEST(MemoryUse, NoShareIsNegativeWhateverTheKernelCounts) {
  const ProcessMemory whole{
      .resident_bytes = 300, .anonymous_bytes = 100, .file_bytes = 200, .shared_bytes = 0};
  const MemoryUse::Reading reading = ShareOut(whole, kMemory, {150, 100, 400, 50});
  const auto owners = ByOwner(reading);
  EXPECT_EQ(owners.at("weights"), 200u);
  EXPECT_EQ(owners.at("kv"), 100u);
  EXPECT_EQ(owners.at("code"), 0u);
  EXPECT_EQ(owners.at("other"), 0u);
  EXPECT_EQ(Sum(reading), whole.resident_bytes);
}

TEST(MemoryUse, IsReadAnewWhenItIsOld) {
  constexpr uint64_t kBytes = 8u << 20;
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  testing::TurnedClock clock;
  const MemoryUse use({{"kv", {reinterpret_cast<uint64_t>(memory), kBytes}, false}}, &clock);
  const auto kv = [&] {
    const auto reading = use.Read();
    EXPECT_TRUE(reading.has_value());
    EXPECT_EQ(Sum(*reading), reading->resident_bytes);
    return ByOwner(*reading).at("kv");
  };
  EXPECT_EQ(kv(), 0u);
  std::memset(memory, 1, kBytes);
  EXPECT_EQ(kv(), 0u) << "not yet old";
  clock.now += kMemoryReadingAge;
  EXPECT_EQ(kv(), kBytes);
  ::munmap(memory, kBytes);
}

}  // namespace
}  // namespace tessera::server
