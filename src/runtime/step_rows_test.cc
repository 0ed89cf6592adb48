// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_rows.h"

#include <gtest/gtest.h>

namespace tessera::runtime {
namespace {

const bundle::Dims kDims = {64, 100, 2, 6, 2, 16, 4096, 32};
constexpr int64_t kMaxRows = 128;

class StepRowsTest : public ::testing::Test {
 protected:
  void Fill(std::vector<Chunk> chunks, int workers, bool split) {
    const Status status = rows_.Fill(chunks, workers, split);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  Chunk ChunkOf(size_t rows, int64_t start, Chunk::Logits logits = Chunk::Logits::kLast) {
    return {std::span(tokens_).first(rows), start, pages_, logits};
  }
  std::vector<int32_t> tokens_ = std::vector<int32_t>(kMaxRows, 7);
  std::vector<PageId> pages_ = std::vector<PageId>(128, 0);
  StepRows rows_{kDims, kMaxRows, 128};
};

TEST_F(StepRowsTest, FlattensChunks) {
  Fill({ChunkOf(3, 10, Chunk::Logits::kNone), ChunkOf(2, 0, Chunk::Logits::kAll), ChunkOf(4, 5)}, 2,
       true);
  EXPECT_EQ(rows_.rows(), 9);
  EXPECT_EQ(std::vector<int32_t>(rows_.positions(), rows_.positions() + 9),
            (std::vector<int32_t>{10, 11, 12, 0, 1, 5, 6, 7, 8}));
  EXPECT_EQ(std::vector<int32_t>(rows_.logit_rows().begin(), rows_.logit_rows().end()),
            (std::vector<int32_t>{3, 4, 8}));
  EXPECT_EQ(rows_.last_position(), 12);
}

/// Every (row, query head) is in exactly one item, whatever the shares.
TEST_F(StepRowsTest, ItemsCoverEveryRowAndHeadOnce) {
  for (const bool split : {false, true}) {
    for (const int workers : {1, 2, 3, 7}) {
      Fill({ChunkOf(1, 4000), ChunkOf(37, 0), ChunkOf(5, 100)}, workers, split);
      std::vector<int> seen(static_cast<size_t>(rows_.rows() * kDims.heads), 0);
      for (int worker = 0; worker < workers; ++worker) {
        for (const AttentionItem& item : rows_.all().ItemsOf(worker, workers)) {
          EXPECT_LE(item.range.rows, 16);
          for (int64_t row = 0; row < item.range.rows; ++row)
            for (int64_t head = 0; head < item.heads; ++head)
              ++seen[static_cast<size_t>((item.range.row + row) * kDims.heads + item.kv_head * 3 +
                                         item.head + head)];
        }
      }
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << split << " " << workers;
    }
  }
}

TEST_F(StepRowsTest, SharesOfADecodeRowAreBalanced) {
  Fill({ChunkOf(1, 1000)}, 2, true);
  int64_t heads[2] = {0, 0};
  for (int worker = 0; worker < 2; ++worker)
    for (const AttentionItem& item : rows_.all().ItemsOf(worker, 2)) heads[worker] += item.heads;
  EXPECT_EQ(heads[0], 3);
  EXPECT_EQ(heads[1], 3);
}

TEST_F(StepRowsTest, ChunkIsNamedInErrors) {
  const std::vector<Chunk> chunks = {ChunkOf(1, 0), ChunkOf(1, 5000)};
  const Status status = rows_.Fill(chunks, 1, true);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(status.ToString().starts_with("chunk 1: ")) << status.ToString();
}

TEST_F(StepRowsTest, RowLimitIsExact) {
  EXPECT_TRUE(rows_.Fill(std::vector<Chunk>{ChunkOf(kMaxRows, 0)}, 1, true).ok());
  const std::vector<Chunk> chunks = {ChunkOf(kMaxRows, 0), ChunkOf(1, 0)};
  EXPECT_EQ(rows_.Fill(chunks, 1, true).code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace tessera::runtime
