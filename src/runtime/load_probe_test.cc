// SPDX-License-Identifier: Apache-2.0
#include "runtime/load_probe.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/fixtures.h"

namespace tessera::runtime {
namespace {

TEST(LoadProbe, MappingHasARateWithAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3}) {
    const auto rate = MeasureMapping(threads);
    ASSERT_TRUE(rate.has_value()) << rate.error().ToString();
    EXPECT_GT(*rate, 10e6);
    EXPECT_LT(*rate, 10e12);
  }
}

TEST(LoadProbe, ADiskThatCannotBeKnownHasNoRate) {
  const testing::TempDir dir;
  EXPECT_EQ(MeasureDisk(dir.path() / "absent"), 0);
  EXPECT_EQ(MeasureDisk(dir.path()), 0);
  ASSERT_TRUE(WriteFileAtomic(dir.path() / "small", "a few bytes").ok());
  EXPECT_EQ(MeasureDisk(dir.path() / "small"), 0);
  const auto writer = FileWriter::Create(dir.path() / "hole");
  ASSERT_TRUE(writer.has_value() && (*writer)->Resize(200 << 20).ok());
  EXPECT_EQ(MeasureDisk(dir.path() / "hole"), 0);
}

}  // namespace
}  // namespace tessera::runtime
