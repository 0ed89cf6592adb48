// SPDX-License-Identifier: Apache-2.0
#include "hub/header_range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/file.h"
#include "hub/limits.h"
#include "support/fixtures.h"

namespace tessera::hub {
namespace {

/// Asks as FetchHeaders does, and counts the questions.
uint64_t EndOf(std::string_view file, int* questions) {
  uint64_t known = 0;
  for (*questions = 1;; ++*questions) {
    const auto needed = HeaderBytesNeeded(AsBytes(file.substr(0, known)));
    EXPECT_TRUE(needed.has_value()) << needed.error().ToString();
    if (!needed.has_value() || *needed <= known) return needed.value_or(0);
    known = std::min<uint64_t>(*needed, file.size());
  }
}

TEST(HeaderRange, EndsWhereTheTensorsOfRealFilesBegin) {
  int questions = 0;
  const std::string safetensors =
      *ReadFile(testing::Shared("fixtures/tiny_llama/hf/model.safetensors"), 1 << 30);
  uint64_t length = 0;
  std::memcpy(&length, safetensors.data(), sizeof(length));
  EXPECT_EQ(EndOf(safetensors, &questions), 8 + length);
  EXPECT_LE(questions, 3);
  const std::string gguf = *ReadFile(testing::Shared("fixtures/tiny_llama/tiny-f16.gguf"), 1 << 30);
  const uint64_t end = EndOf(gguf, &questions);
  EXPECT_LT(end, gguf.size());
  EXPECT_LE(questions, 16);
  // The exact end, from whatever beginning: nothing that follows is looked at.
  EXPECT_EQ(*HeaderBytesNeeded(AsBytes(gguf)), end);
  EXPECT_EQ(*HeaderBytesNeeded(AsBytes(std::string_view(gguf).substr(0, end))), end);
  EXPECT_GT(*HeaderBytesNeeded(AsBytes(std::string_view(gguf).substr(0, end - 1))), end - 1);
}

TEST(HeaderRange, LengthsHaveALimit) {
  const auto safetensors = [](uint64_t length) {
    return HeaderBytesNeeded(AsBytes({reinterpret_cast<const char*>(&length), sizeof(length)}));
  };
  EXPECT_EQ(*safetensors(kMaxWeightHeaderBytes - 8), kMaxWeightHeaderBytes);
  EXPECT_EQ(safetensors(kMaxWeightHeaderBytes - 7).error().code(), Code::kResourceExhausted);
  EXPECT_FALSE(safetensors(~uint64_t{0}).has_value());
}

}  // namespace
}  // namespace tessera::hub
