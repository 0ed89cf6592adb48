// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_message.h"

#include <gtest/gtest.h>

#include "runtime/limits.h"

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
  ASSERT_TRUE(message.Read(bytes, 10).ok());
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
  ASSERT_TRUE(message.Read(bytes, 10).ok());
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
    EXPECT_EQ(message.Read(ByteSpan(bytes).first(size), 10).code(), Code::kDataLoss) << size;
  bytes.push_back(std::byte{0});
  EXPECT_EQ(message.Read(bytes, 10).code(), Code::kDataLoss);
}

TEST(StepMessage, APageThatIsNotThereIsRefused) {
  StepMessage message;
  std::vector<std::byte> bytes;
  for (const auto& [first, second] : {std::pair{10, 0}, {0, 10}, {-1, 0}, {0, -1}}) {
    WriteCommand(StepCommand::kCopyPage, first, second, &bytes);
    EXPECT_EQ(message.Read(bytes, 10).code(), Code::kDataLoss) << first << " " << second;
  }
  WriteCommand(StepCommand::kCopyPage, 9, 9, &bytes);
  EXPECT_TRUE(message.Read(bytes, 10).ok());
  WriteCommand(StepCommand::kBackPage, 10, 0, &bytes);
  EXPECT_EQ(message.Read(bytes, 10).code(), Code::kDataLoss);
}

TEST(StepMessage, ASizeHasLimits) {
  std::vector<std::byte> least;
  WriteCommand(StepCommand::kEnd, 0, 0, &least);
  const auto smallest = static_cast<int64_t>(least.size());
  for (const int64_t bytes : {smallest, smallest + 1, kMaxStepBytes - 1, kMaxStepBytes})
    EXPECT_TRUE(CheckStepBytes(bytes).ok()) << bytes;
  for (const int64_t bytes : {int64_t{-1}, int64_t{0}, smallest - 1, kMaxStepBytes + 1, INT64_MAX})
    EXPECT_EQ(CheckStepBytes(bytes).code(), Code::kDataLoss) << bytes;
}

}  // namespace
}  // namespace tessera::runtime
