// SPDX-License-Identifier: Apache-2.0
#include "text/textkit_abi.h"

#include <gtest/gtest.h>

namespace tessera::text {
namespace {

TEST(TextkitAbi, EveryCodeBecomesTheStatusOfItsName) {
  const TextkitBuffer none;
  EXPECT_TRUE(FromTextkit(TK_OK, none).ok());
  EXPECT_EQ(FromTextkit(TK_INVALID_ARGUMENT, none).code(), Code::kInvalidArgument);
  EXPECT_EQ(FromTextkit(TK_RESOURCE_EXHAUSTED, none).code(), Code::kResourceExhausted);
  EXPECT_EQ(FromTextkit(TK_UNIMPLEMENTED, none).code(), Code::kUnimplemented);
  EXPECT_EQ(FromTextkit(TK_INTERNAL, none).code(), Code::kInternal);
  EXPECT_EQ(FromTextkit(99, none).code(), Code::kInternal);
}

TEST(TextkitAbi, FreeingAnEmptyBufferIsFine) {
  TextkitBuffer buffer;
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_NE(buffer.out(), nullptr);
  tk_buffer_free(nullptr);
}

}  // namespace
}  // namespace tessera::text
