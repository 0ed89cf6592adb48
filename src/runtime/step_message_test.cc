// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_message.h"

#include <gtest/gtest.h>

namespace tessera::runtime {
namespace {

TEST(StepMessage, AStepIsReadAsItWasWritten) {
  const std::vector<int32_t> tokens = {7, 8, 9};
  const std::vector<PageId> pages = {4, 2};
  const Chunk chunks[] = {
      {tokens, 31, pages, Chunk::Logits::kNone, false},
      {std::span(tokens).first(1), 0, std::span(pages).first(1), Chunk::Logits::kAll, true}};
  std::vector<std::byte> bytes;
  WriteStep(chunks, &bytes);
  StepMessage message;
  ASSERT_TRUE(message.Read(bytes).ok());
  ASSERT_EQ(message.command, StepCommand::kStep);
  ASSERT_EQ(message.chunks.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Chunk& read = message.chunks[i];
    EXPECT_TRUE(std::ranges::equal(read.tokens, chunks[i].tokens));
    EXPECT_TRUE(std::ranges::equal(read.pages, chunks[i].pages));
    EXPECT_EQ(read.start, chunks[i].start);
    EXPECT_EQ(read.logits, chunks[i].logits);
    EXPECT_EQ(read.hidden, chunks[i].hidden);
  }
}

TEST(StepMessage, ACommandCarriesItsPages) {
  std::vector<std::byte> bytes;
  WriteCommand(StepCommand::kCopyPage, 5, 9, &bytes);
  StepMessage message;
  ASSERT_TRUE(message.Read(bytes).ok());
  EXPECT_EQ(message.command, StepCommand::kCopyPage);
  EXPECT_EQ(message.first, 5);
  EXPECT_EQ(message.second, 9);
}

TEST(StepMessage, WhatIsCutOrTooLongIsRefused) {
  const std::vector<int32_t> tokens = {7, 8, 9};
  const std::vector<PageId> pages = {4, 2};
  const Chunk chunk{tokens, 31, pages};
  std::vector<std::byte> bytes;
  WriteStep({&chunk, 1}, &bytes);
  StepMessage message;
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(message.Read(ByteSpan(bytes).first(size)).code(), Code::kDataLoss) << size;
  bytes.push_back(std::byte{0});
  EXPECT_EQ(message.Read(bytes).code(), Code::kDataLoss);
}

}  // namespace
}  // namespace tessera::runtime
