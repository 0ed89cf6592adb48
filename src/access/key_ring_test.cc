// SPDX-License-Identifier: Apache-2.0
#include "access/key_ring.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/fixtures.h"

namespace tessera::access {
namespace {

using ::testing::HasSubstr;

struct TurnedClock : Clock {
  TimePoint Now() const override { return {}; }
  int64_t UnixSeconds() const override { return unix_seconds; }
  int64_t unix_seconds = 1000;
};

class Ring : public ::testing::Test {
 protected:
  /// The key of an entry is its name and "-key".
  void Write(const std::vector<std::string>& entries) {
    ASSERT_TRUE(
        WriteFileAtomic(path_, fmt::format("{{\"keys\":[{}]}}", fmt::join(entries, ","))).ok());
  }
  static std::string Entry(std::string_view name, std::string_view members = {}) {
    return fmt::format(R"({{"name":"{0}","hash":"sha256:{1}"{2}}})", name,
                       DigestOf(std::string(name) + "-key"), members);
  }

  TurnedClock clock_;
  testing::TempDir folder_;
  const std::string path_ = (folder_.path() / "keys.json").string();
};

TEST_F(Ring, FindsAKeyByItselfAlone) {
  Write({Entry("alice"), Entry("bob")});
  const auto ring = *KeyRing::Make({}, path_, clock_);
  EXPECT_EQ(ring->Find("bob-key")->key->name, "bob");
  for (const char* wrong : {"", "bob", "bob-ke", "bob-key ", "Bob-key"})
    EXPECT_FALSE(ring->Find(wrong).has_value()) << wrong;
  EXPECT_FALSE(ring->Find(DigestOf("bob-key")).has_value()) << "the file's text is no key";
  EXPECT_EQ(ring->entries().size(), 2u);
}

TEST_F(Ring, AReloadReplacesTheSetAndKeepsWhatWasUsed) {
  Write({Entry("alice", R"(,"rpm":1)"), Entry("bob")});
  const auto ring = *KeyRing::Make({}, path_, clock_);
  const auto before = *ring->Find("alice-key");
  EXPECT_FALSE(before.usage->CountRequest().has_value());
  Write({Entry("alice", R"(,"rpm":1)"), Entry("carol")});
  ring->Use(*ring->Load());
  EXPECT_EQ(ring->Find("alice-key")->usage, before.usage);
  EXPECT_TRUE(before.usage->CountRequest().has_value()) << "no fresh allowance";
  EXPECT_FALSE(ring->Find("bob-key").has_value());
  EXPECT_NE(ring->Find("carol-key")->usage->client(), before.usage->client());
}

TEST_F(Ring, ABrokenFileLeavesTheKeysAsTheyAre) {
  Write({Entry("alice")});
  const auto ring = *KeyRing::Make({}, path_, clock_);
  Write({Entry("bob", R"(,"rmp":1)")});
  const auto loaded = ring->Load();
  ASSERT_FALSE(loaded.has_value());
  EXPECT_THAT(loaded.error().ToString(), HasSubstr("keys.json: keys[0]: unknown member 'rmp'"));
  EXPECT_TRUE(ring->Find("alice-key").has_value());
}

TEST_F(Ring, ExpiryIsByTheClock) {
  Write({Entry("old", R"(,"expires":"1970-01-01T00:20:00Z")")});
  const auto ring = *KeyRing::Make({}, path_, clock_);
  const auto old = ring->Find("old-key");
  clock_.unix_seconds = 1199;
  EXPECT_FALSE(ring->IsExpired(*old->key));
  clock_.unix_seconds = 1200;
  EXPECT_TRUE(ring->IsExpired(*old->key));
}

TEST_F(Ring, AFileWithoutKeysLetsNobodyIn) {
  Write({});
  const auto ring = *KeyRing::Make({}, path_, clock_);
  EXPECT_TRUE(ring->asks_for_key());
  EXPECT_FALSE(ring->Find("").has_value());
  EXPECT_FALSE((*KeyRing::Make({}, "", clock_))->asks_for_key());
}

}  // namespace
}  // namespace tessera::access
