// SPDX-License-Identifier: Apache-2.0
#include "cli/disk_room.h"

#include <gtest/gtest.h>

#include <array>

#include "support/fixtures.h"

namespace tessera::cli {
namespace {

TEST(DiskRoom, FoldersOfOneFileSystemShareItsRoom) {
  const testing::TempDir dir;
  const uint64_t free = std::filesystem::space(dir.path()).available;
  const DiskNeed most{dir.path() / "a/not/there", free / 10 * 7};
  const DiskNeed other{dir.path() / "b", free / 10 * 7};
  const auto lack = FindDiskLack(std::array{most, other});
  ASSERT_TRUE(lack.has_value());
  EXPECT_EQ(lack->folder, dir.path()) << "what is not there is made in what is";
  EXPECT_EQ(lack->need, most.bytes + other.bytes);
  EXPECT_LT(lack->available, lack->need);
}

TEST(DiskRoom, WhatFitsLacksNothing) {
  const testing::TempDir dir;
  EXPECT_FALSE(FindDiskLack(std::array{DiskNeed{dir.path(), 1}, DiskNeed{dir.path(), 1}}));
  EXPECT_FALSE(FindDiskLack({}));
  EXPECT_TRUE(FindDiskLack(std::array{DiskNeed{dir.path(), ~uint64_t{0}}}));
}

}  // namespace
}  // namespace tessera::cli
