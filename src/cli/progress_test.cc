// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace tessera::cli {
namespace {

class HandClock : public Clock {
 public:
  TimePoint Now() const override { return now; }
  int64_t UnixSeconds() const override { return 0; }
  TimePoint now;
};

constexpr uint64_t kGigabyte = 1'000'000'000;

TEST(SecondsLeft, IsTheRestAtTheAverageRate) {
  EXPECT_DOUBLE_EQ(SecondsLeft(kGigabyte, 4 * kGigabyte, 2).value(), 6);
  EXPECT_DOUBLE_EQ(SecondsLeft(3 * kGigabyte, 4 * kGigabyte, 1.5).value(), 0.5);
  EXPECT_DOUBLE_EQ(SecondsLeft(7, 7, 1).value(), 0);
  // 16 TB, a byte of them done in a year: no overflow.
  EXPECT_NEAR(SecondsLeft(1, 16'000 * kGigabyte, 3e7).value(), 4.8e20, 1e15);
}

TEST(SecondsLeft, IsUnknownWhereTheRateIs) {
  EXPECT_EQ(SecondsLeft(0, 100, 5), std::nullopt);
  EXPECT_EQ(SecondsLeft(50, 100, 0), std::nullopt);
  EXPECT_EQ(SecondsLeft(50, 0, 5), std::nullopt);
  EXPECT_EQ(SecondsLeft(101, 100, 5), std::nullopt);
}

TEST(ProgressLine, HasBarBytesRateAndTimeLeft) {
  EXPECT_EQ(ProgressLine("packing", kGigabyte, 4 * kGigabyte, 2, 100),
            "packing [######..................] 1.0 GB of 4.0 GB, 500 MB/s, 6.0 s left");
  EXPECT_EQ(ProgressLine("packing", 0, 4 * kGigabyte, 0, 100),
            "packing [........................] 0 B of 4.0 GB, 0 B/s, ? left");
  EXPECT_EQ(ProgressLine("packing", 5, 0, 2, 100), "packing");
}

TEST(ProgressLine, GivesUpTheBarThenTheBytesThenTheTitleInANarrowTerminal) {
  const auto line = [](int columns) {
    return ProgressLine("packing", kGigabyte, 4 * kGigabyte, 2, columns);
  };
  EXPECT_EQ(line(56), "packing [#.....] 1.0 GB of 4.0 GB, 500 MB/s, 6.0 s left");
  EXPECT_EQ(line(55), "packing 1.0 GB of 4.0 GB, 500 MB/s, 6.0 s left");
  EXPECT_EQ(line(47), "packing 1.0 GB of 4.0 GB, 500 MB/s, 6.0 s left");
  EXPECT_EQ(line(46), "packing 25%, 6.0 s left");
  EXPECT_EQ(line(24), "packing 25%, 6.0 s left");
  EXPECT_EQ(line(23), "25%");
  EXPECT_EQ(line(1), "");
  for (int columns = 0; columns <= 120; ++columns)
    EXPECT_LT(line(columns).size(), static_cast<size_t>(std::max(columns, 1)));
}

TEST(Progress, WithoutATerminalItIsALineEveryTenSecondsAndOneAtTheEnd) {
  HandClock clock;
  testing::internal::CaptureStderr();
  Progress progress("packing", clock);
  progress.Update(0, 4 * kGigabyte);
  clock.now += std::chrono::milliseconds(9999);
  progress.Update(kGigabyte, 4 * kGigabyte);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  clock.now += std::chrono::milliseconds(1);
  progress.Update(kGigabyte, 4 * kGigabyte);
  progress.Update(kGigabyte, 4 * kGigabyte);  // The next one only after ten more.
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "packing: 1.0 GB of 4.0 GB, 100 MB/s, 30.0 s left\n");
  testing::internal::CaptureStderr();
  clock.now += std::chrono::seconds(10);
  progress.Update(4 * kGigabyte, 4 * kGigabyte);
  progress.Finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "packing: 4.0 GB of 4.0 GB, 200 MB/s, 0 ms left\n"
            "packing: 4.0 GB in 20.0 s (200 MB/s)\n");
}

TEST(Progress, OfNothingCountedIsItsTime) {
  HandClock clock;
  testing::internal::CaptureStderr();
  Progress progress("making the tokenizer", clock);
  progress.Update(0, 0);
  clock.now += std::chrono::milliseconds(2400);
  progress.Finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "making the tokenizer: 2.4 s\n");
}

}  // namespace
}  // namespace tessera::cli
