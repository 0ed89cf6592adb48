// SPDX-License-Identifier: Apache-2.0
//
// Kernels over logits: every entry gives the bits of the reference, and the reference agrees with
// the definition in double.
#include "kernels/logits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/catalog.h"
#include "kernels/cts/data.h"

namespace tessera::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> Row(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> row = cts::RandomFloats(random, count, 6);
  for (size_t i = 3; i < row.size(); i += 41) row[i] = -kInfinity;
  if (count > 64) std::fill(row.begin() + 32, row.begin() + 64, -kInfinity);
  return row;
}

template <class Fn>
std::vector<Fn> Entries(Op op) {
  static const Isa machine = ReadIsa();
  std::vector<Fn> found;
  for (const Entry& entry : Catalog())
    if (entry.op == op && Runs(entry.isa, machine)) found.push_back(std::get<Fn>(entry.fn));
  return found;
}

std::vector<float> MaximaBy(BlockMaxFn fn, const std::vector<float>& row) {
  std::vector<float> out(static_cast<size_t>(LogitBlocks(std::ssize(row))), 77.0f);
  fn(row.data(), std::ssize(row), out.data());
  return out;
}

TEST(BlockMax, IsTheGreatestOfEachBlockInEveryEntry) {
  for (const int64_t count : {1, 31, 32, 33, 64, 1000, 49152}) {
    const std::vector<float> row = Row(count, static_cast<uint64_t>(count));
    for (const BlockMaxFn fn : Entries<BlockMaxFn>(Op::kBlockMax)) {
      const std::vector<float> out = MaximaBy(fn, row);
      for (size_t b = 0; b < out.size(); ++b) {
        const auto begin = row.begin() + static_cast<ptrdiff_t>(b) * kLogitBlock;
        const auto end = std::min(begin + kLogitBlock, row.end());
        ASSERT_EQ(out[b], *std::max_element(begin, end)) << count << " logits, block " << b;
      }
    }
  }
}

TEST(BlockMax, SaysNaNForABlockWithOneOfEitherSign) {
  for (const float nan : {std::nanf(""), -std::nanf("")}) {
    for (size_t at = 0; at < 70; ++at) {
      std::vector<float> row(70, 1.0f);
      row[at] = nan;
      for (const BlockMaxFn fn : Entries<BlockMaxFn>(Op::kBlockMax)) {
        const std::vector<float> out = MaximaBy(fn, row);
        for (size_t b = 0; b < out.size(); ++b)
          ASSERT_EQ(std::isnan(out[b]), b == at / kLogitBlock) << at;
      }
    }
  }
}

TEST(BlockMax, GivesTheSameZero) {
  std::vector<float> row(32, -0.0f);
  for (const BlockMaxFn fn : Entries<BlockMaxFn>(Op::kBlockMax))
    EXPECT_TRUE(std::signbit(MaximaBy(fn, row)[0]));
  row[17] = 0.0f;
  for (const BlockMaxFn fn : Entries<BlockMaxFn>(Op::kBlockMax))
    EXPECT_FALSE(std::signbit(MaximaBy(fn, row)[0]));
}

std::vector<double> MassesBy(SoftmaxMassFn fn, const std::vector<float>& row, double temperature,
                             double cut) {
  const std::vector<float> block_max = MaximaBy(Entries<BlockMaxFn>(Op::kBlockMax).back(), row);
  std::vector<double> mass(block_max.size(), 77.0);
  fn({.x = row.data(),
      .block_max = block_max.data(),
      .count = std::ssize(row),
      .max = *std::ranges::max_element(row),
      .scale = 1 / temperature,
      .cut = cut,
      .mass = mass.data()});
  return mass;
}

TEST(SoftmaxMass, EqualsTheReferenceBitForBit) {
  for (const int64_t count : {1, 31, 32, 33, 1000, 49152}) {
    const std::vector<float> row = Row(count, 7);
    const auto entries = Entries<SoftmaxMassFn>(Op::kSoftmaxMass);
    for (const double temperature : {1e-300, 0.01, 0.6, 1.0, 2.0, 1e30}) {
      const std::vector<double> expected = MassesBy(entries.back(), row, temperature, 60);
      for (const SoftmaxMassFn fn : entries) {
        const std::vector<double> actual = MassesBy(fn, row, temperature, 60);
        for (size_t b = 0; b < expected.size(); ++b)
          ASSERT_EQ(std::bit_cast<uint64_t>(actual[b]), std::bit_cast<uint64_t>(expected[b]))
              << count << " logits, temperature " << temperature << ", block " << b;
      }
    }
  }
}

TEST(SoftmaxMass, AgreesWithExpAndSkipsWhatLiesBelowTheCut) {
  const std::vector<float> row = Row(5000, 11);
  const double max = *std::ranges::max_element(row);
  for (const double temperature : {0.1, 0.6, 1.0, 5.0}) {
    const std::vector<double> mass =
        MassesBy(Entries<SoftmaxMassFn>(Op::kSoftmaxMass).front(), row, temperature, 60);
    for (size_t b = 0; b < mass.size(); ++b) {
      double expected = 0;
      double nearest = -std::numeric_limits<double>::infinity();
      for (size_t i = b * 32; i < std::min(row.size(), (b + 1) * 32); ++i) {
        const double z = (static_cast<double>(row[i]) - max) / temperature;
        expected += std::exp(z);
        nearest = std::max(nearest, z);
      }
      if (nearest <= -60) expected = 0;
      ASSERT_NEAR(mass[b], expected, 4e-15 * expected) << b << " at temperature " << temperature;
    }
  }
}

}  // namespace
}  // namespace tessera::kernels
