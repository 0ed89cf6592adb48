// SPDX-License-Identifier: Apache-2.0
#include "runtime/segments.h"

#include <gtest/gtest.h>

#include "runtime/limits.h"

namespace tessera::runtime {
namespace {

constexpr bundle::BufferIndex kStream = 0, kQueries = 1, kAttended = 2, kGated = 3;

bundle::Program TwoLayers() {
  bundle::Program program;
  program.dims.layers = 2;
  program.buffers = {{"stream", bundle::BufferKind::kFloat, 64},
                     {"queries", bundle::BufferKind::kFloat, 64},
                     {"attended", bundle::BufferKind::kQuantised, 64},
                     {"gated", bundle::BufferKind::kQuantised, 96}};
  program.weights.resize(1);
  program.weights[0].n = program.weights[0].k = 64;
  program.weights[0].bytes = 2 * kStripWeightBytes;
  bundle::QkvStep qkv;
  qkv.in = kStream;
  qkv.out = kQueries;
  bundle::AttentionStep attention;
  attention.in = kQueries;
  attention.out = kAttended;
  const bundle::ProjectStep output{kAttended, kStream, 0, {}}, down{kGated, kStream, 0, {}};
  bundle::GatedStep gated;
  gated.in = kStream;
  gated.out = kGated;
  program.steps = {{"", bundle::EmbedStep{0, kStream, 1}, "", ""}};
  for (int i = 0; i < 2; ++i)
    program.steps.insert(program.steps.end(), {{"", qkv, "", ""},
                                               {"", attention, "", ""},
                                               {"", output, "", ""},
                                               {"", gated, "", ""},
                                               {"", down, "", ""}});
  program.steps.push_back({"", bundle::HeadStep{kStream, {}, 0}, "", ""});
  return program;
}

TEST(Segments, BeginAtAttentionsAndAtTheHead) {
  const auto segments = SegmentsOf(TwoLayers());
  ASSERT_EQ(segments.size(), 4u);
  const size_t begins[] = {0, 2, 7, 11};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(segments[i].begin, begins[i]);
    EXPECT_EQ(segments[i].end, i == 3 ? 12u : begins[i + 1]);
    EXPECT_EQ(segments[i].wanted_only, i >= 2);
    EXPECT_EQ(segments[i].strips, i < 3);
  }
}

TEST(Segments, TheLargestCountsEachWeightOnceAndNoTable) {
  bundle::Program program = TwoLayers();
  const auto weight = [&](int64_t n, int64_t k, int64_t bytes) {
    bundle::Weight made;
    made.n = n;
    made.k = k;
    made.bytes = bytes;
    program.weights.push_back(made);
    return std::ssize(program.weights) - 1;
  };
  std::get<bundle::EmbedStep>(program.steps[0].op).table = weight(1000, 64, 128'000);
  std::get<bundle::HeadStep>(program.steps.back().op).weight = weight(500, 64, 60'000);
  // The norm of the head is weight 0, as everything else is: 64 * 64 elements.
  const uint64_t shared = 2 * kStripWeightBytes;
  EXPECT_EQ(LargestSegmentOf(program).bytes, shared + 60'000);
  EXPECT_EQ(LargestSegmentOf(program).elements, 64u * 64 + 500 * 64);
  EXPECT_EQ(LargestSegmentOf(bundle::Program()).bytes, 0u);
}

TEST(Segments, OnlyTheStreamIsGathered) {
  const bundle::Program program = TwoLayers();
  EXPECT_EQ(GatheredBuffers(program, SegmentsOf(program)),
            (std::vector<bundle::BufferIndex>{kStream}));
}

TEST(Segments, BlocksThatOutliveASegmentForbidStrips) {
  bundle::Program program = TwoLayers();
  // The second layer's output projection adds what the first one's FFN made.
  std::get<bundle::ProjectStep>(program.steps[8].op).in = kGated;
  const auto segments = SegmentsOf(program);
  EXPECT_TRUE(segments[1].strips);
  EXPECT_FALSE(segments[2].strips);
  EXPECT_FALSE(segments[2].wanted_only);
}

TEST(Segments, AttentionThatOverwritesItsQueriesNeedsAllRows) {
  bundle::Program program = TwoLayers();
  auto& attention = std::get<bundle::AttentionStep>(program.steps[7].op);
  attention.out = attention.in;
  for (const Segment& segment : SegmentsOf(program)) EXPECT_FALSE(segment.wanted_only);
}

TEST(Segments, StripsAreForLayersThatTheCacheHolds) {
  bundle::Program program = TwoLayers();
  EXPECT_TRUE(StripPolicyOf(program).allowed);
  EXPECT_EQ(StripPolicyOf(program).macs_per_row, 64 * 64 / 2);
  ++program.weights[0].bytes;
  EXPECT_TRUE(StripPolicyOf(program).allowed);
  program.weights[0].bytes += 2;
  EXPECT_FALSE(StripPolicyOf(program).allowed);
}

}  // namespace
}  // namespace tessera::runtime
