// SPDX-License-Identifier: Apache-2.0
#include "bundle/hash_memo.h"

#include <gtest/gtest.h>

#include "support/fixtures.h"

namespace tessera::bundle {
namespace {

/// A clock that stands `seconds` after the real one.
class LaterClock : public Clock {
 public:
  explicit LaterClock(int64_t seconds) : seconds_(seconds) {}
  TimePoint Now() const override { return Clock::Real().Now(); }
  int64_t UnixSeconds() const override { return Clock::Real().UnixSeconds() + seconds_; }

 private:
  int64_t seconds_;
};

FileIdentity IdentityOf(const std::filesystem::path& path) {
  return (*MappedFile::Open(path))->identity();
}

TEST(HashMemo, RemembersUntilTheFileChanges) {
  const testing::TempDir dir;
  const auto path = dir.path() / "weights";
  ASSERT_TRUE(WriteFileAtomic(path, "one").ok());
  const LaterClock clock(10);
  const HashMemo memo(dir.path(), clock);
  const std::string sha(64, 'a');
  EXPECT_EQ(memo.Find(path, IdentityOf(path)), std::nullopt);
  memo.Remember(path, IdentityOf(path), sha);
  EXPECT_EQ(memo.Find(path, IdentityOf(path)), sha);
  ASSERT_TRUE(WriteFileAtomic(path, "two").ok()) << "same size, other bytes";
  EXPECT_EQ(memo.Find(path, IdentityOf(path)), std::nullopt);
}

TEST(HashMemo, DoesNotTrustAFileThatJustChanged) {
  const testing::TempDir dir;
  const auto path = dir.path() / "weights";
  ASSERT_TRUE(WriteFileAtomic(path, "one").ok());
  const LaterClock clock(1);
  const HashMemo memo(dir.path(), clock);
  memo.Remember(path, IdentityOf(path), std::string(64, 'a'));
  EXPECT_EQ(memo.Find(path, IdentityOf(path)), std::nullopt);
}

TEST(HashMemo, IgnoresADamagedMemory) {
  const testing::TempDir dir;
  const auto path = dir.path() / "weights";
  ASSERT_TRUE(WriteFileAtomic(path, "one").ok());
  const LaterClock clock(10);
  const HashMemo memo(dir.path(), clock);
  memo.Remember(path, IdentityOf(path), "not a hash");
  EXPECT_EQ(memo.Find(path, IdentityOf(path)), std::nullopt);
  const HashMemo nowhere("/proc/no/such/folder", clock);
  nowhere.Remember(path, IdentityOf(path), std::string(64, 'a'));
  EXPECT_EQ(nowhere.Find(path, IdentityOf(path)), std::nullopt);
}

}  // namespace
}  // namespace tessera::bundle
