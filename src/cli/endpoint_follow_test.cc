// SPDX-License-Identifier: Apache-2.0
#include "cli/endpoint_follow.h"

#include <gtest/gtest.h>

#include <string>

namespace tessera::cli {
namespace {

TEST(NewPart, IsWhatCameSince) {
  EXPECT_EQ(NewPart("", "a\n"), "a\n");
  EXPECT_EQ(NewPart("a\n", "a\nb\n"), "b\n");
  EXPECT_EQ(NewPart("a\n", "a\n"), "");
  // Rather twice than never.
  EXPECT_EQ(NewPart("old\na\n", "a\nb\n"), "a\nb\n");
  // The beginning went, since a gateway gives the last bytes only.
  const std::string before = "gone\n" + std::string(5000, 'x') + "end\n";
  EXPECT_EQ(NewPart(before, before.substr(100) + "new\n"), "new\n");
  EXPECT_EQ(NewPart(before, "another file\n"), "another file\n");
}

TEST(LastLines, AreTheLast) {
  EXPECT_EQ(LastLines("a\nb\nc\n", 2), "b\nc\n");
  EXPECT_EQ(LastLines("a\nb\nc", 1), "c");
  EXPECT_EQ(LastLines("a\nb\n", 9), "a\nb\n");
  EXPECT_EQ(LastLines("a\n", 1), "a\n");
  EXPECT_EQ(LastLines("\n\n", 1), "\n");
  EXPECT_EQ(LastLines("a\n", 0), "");
  EXPECT_EQ(LastLines("", 3), "");
}

}  // namespace
}  // namespace tessera::cli
