// SPDX-License-Identifier: Apache-2.0
#include "cli/lease.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <future>

#include "support/fixtures.h"

namespace tessera::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Holds the lock as a gateway does.
class Holder {
 public:
  explicit Holder(const std::filesystem::path& path)
      : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR)) {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    EXPECT_EQ(fcntl(fd_, F_OFD_SETLK, &lock), 0);
  }
  ~Holder() { close(fd_); }

 private:
  int fd_;
};

TEST(Lease, IsHeldByWhoeverHasTheLock) {
  const testing::TempDir dir;
  const std::filesystem::path path = dir.path() / "lock";
  EXPECT_FALSE(*IsLeaseHeld(path)) << "absent";
  {
    const Holder holder(path);
    EXPECT_TRUE(*IsLeaseHeld(path));
    EXPECT_TRUE(*IsLeaseHeld(path)) << "looking takes nothing";
  }
  EXPECT_FALSE(*IsLeaseHeld(path));
  const auto folder = IsLeaseHeld(dir.path() / "lock" / "under");
  EXPECT_FALSE(folder.has_value());
}

TEST(AwaitLeaseEnd, EndsSoLongAfterTheHolder) {
  const testing::TempDir dir;
  const std::filesystem::path path = dir.path() / "lock";
  auto holder = std::make_unique<Holder>(path);
  auto end = std::async(std::launch::async, [&] {
    AwaitLeaseEnd(path, milliseconds(100), milliseconds(5));
    return Clock::Real().Now();
  });
  EXPECT_EQ(end.wait_for(milliseconds(400)), std::future_status::timeout) << "while it is held";
  const TimePoint released = Clock::Real().Now();
  holder.reset();
  EXPECT_GE(end.get() - released, milliseconds(90));
}

TEST(AwaitLeaseEnd, AnotherHolderInTimeGoesOn) {
  const testing::TempDir dir;
  const std::filesystem::path path = dir.path() / "lock";
  auto holder = std::make_unique<Holder>(path);
  auto end = std::async(std::launch::async,
                        [&] { AwaitLeaseEnd(path, milliseconds(500), milliseconds(5)); });
  holder.reset();
  EXPECT_EQ(end.wait_for(milliseconds(50)), std::future_status::timeout);
  holder = std::make_unique<Holder>(path);
  EXPECT_EQ(end.wait_for(milliseconds(800)), std::future_status::timeout)
      << "the grace is over, but not it";
  holder.reset();
  EXPECT_EQ(end.wait_for(seconds(30)), std::future_status::ready);
}

}  // namespace
}  // namespace tessera::cli
