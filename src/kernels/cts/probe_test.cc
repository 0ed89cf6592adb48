// SPDX-License-Identifier: Apache-2.0
//
// Probes that this machine can run, run, and read what they say they read. Nothing about speed.
#include "kernels/probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <string_view>

namespace tessera::kernels {
namespace {

TEST(Probes, HaveUniqueNamesAndABaselineForFloatsAndBytes) {
  std::set<std::string_view> names;
  for (const Probe& probe : Probes()) EXPECT_TRUE(names.insert(probe.name).second) << probe.name;
  for (const Mix mix : {Mix::kFloatFma, Mix::kDot8Bits})
    EXPECT_TRUE(std::ranges::any_of(Probes(), [&](const Probe& probe) {
      return probe.mix == mix && probe.isa == KernelIsa::kRef;
    }));
}

/// Dot products count 3 * 5 into every lane: the result shows how many were summed, so a loop that
/// the compiler shortened or a wrong operation count fails.
TEST(Probes, DoTheOperationsThatTheyCount) {
  const Isa machine = ReadIsa();
  for (const Probe& probe : Probes()) {
    if (!Runs(probe.isa, machine)) continue;
    constexpr int64_t kIterations = 7;
    const uint64_t words = probe.run(kIterations);
    if (probe.mix == Mix::kFloatFma) {
      EXPECT_NE(words, probe.run(0)) << probe.name;
      continue;
    }
    // Two int32 lanes a word, one word a chain; a vector of `lanes` lanes has probe.ops / 2
    // products an iteration over all chains.
    int64_t width = 16;
    if (probe.isa == KernelIsa::kAvx2 || probe.isa == KernelIsa::kAvxVnni) width = 32;
    if (probe.isa == KernelIsa::kAvx512 || probe.isa == KernelIsa::kAvx512Vnni ||
        probe.isa == KernelIsa::kAvx512Bf16)
      width = 64;
    const auto products_a_lane =
        static_cast<uint64_t>(kIterations * probe.ops_per_iteration / 2 / (width / 4));
    EXPECT_EQ(words & 0xffffffffu, 15 * products_a_lane) << probe.name;
    EXPECT_EQ(words >> 32, 15 * products_a_lane) << probe.name;
  }
}

TEST(Probes, ReadEveryLine) {
  constexpr int64_t kBytes = 4096;
  const std::unique_ptr<std::byte, void (*)(void*)> data(
      static_cast<std::byte*>(std::aligned_alloc(64, kBytes)), std::free);
  Isa without512 = ReadIsa();
  without512.avx512 = false;
  for (const Isa& isa : {ReadIsa(), without512, Isa{}}) {
    std::fill_n(data.get(), kBytes, std::byte{0});
    const ReadFn read = FindRead(isa);
    EXPECT_EQ(read(data.get(), kBytes), 0u);
    // The result holds the first word of every vector, so a line's first byte, whatever the width.
    for (int64_t line = 0; line < kBytes; line += 64) {
      data.get()[line] = std::byte{1};
      EXPECT_EQ(read(data.get(), kBytes), 1u) << isa.ToString() << " line " << line / 64;
      data.get()[line] = std::byte{0};
    }
  }
}

}  // namespace
}  // namespace tessera::kernels
