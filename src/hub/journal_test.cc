// SPDX-License-Identifier: Apache-2.0
#include "hub/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tessera::hub {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kText =
    "tessera-download 1 100 abc\n"
    "boot one\n"
    "range 0 10\n"
    "range 20 30\n"
    "synced 1\n"
    "range 10 20\n";

TEST(Journal, AllRangesCountInTheBootThatWroteThem) {
  const auto journal = ReadJournal(kText, "one");
  ASSERT_TRUE(journal.has_value());
  EXPECT_TRUE(journal->IsFor(100, "abc"));
  EXPECT_FALSE(journal->IsFor(100, "abd"));
  EXPECT_FALSE(journal->IsFor(101, "abc"));
  EXPECT_THAT(journal->present.Ranges(), ElementsAre(ByteRange{0, 30}));
  EXPECT_THAT(journal->synced.Ranges(), ElementsAre(ByteRange{0, 10}));
}

TEST(Journal, OnlySyncedRangesCountAfterACrashOfTheMachine) {
  for (const char* boot : {"two", ""}) {
    const auto journal = ReadJournal(kText, boot);
    ASSERT_TRUE(journal.has_value());
    EXPECT_THAT(journal->present.Ranges(), ElementsAre(ByteRange{0, 10})) << boot;
  }
}

TEST(Journal, AnUnfinishedOrDamagedLineEndsIt) {
  const std::string text(kText);
  EXPECT_EQ(ReadJournal(text + "range 30 4", "one")->present.bytes(), 30u);
  for (const char* bad : {"range 30 20\n", "range 30 101\n", "range 30\n", "range a b\n",
                          "range 30 40 \n", "synced 9\n", "synced x\n", "?\n", "\n"}) {
    const auto journal = ReadJournal(text + bad + "range 30 40\n", "one");
    ASSERT_TRUE(journal.has_value());
    EXPECT_EQ(journal->present.bytes(), 30u) << bad;
  }
  EXPECT_EQ(ReadJournal(text + "range 30 100\n", "one")->present.bytes(), 100u);
}

TEST(Journal, EveryPrefixIsReadOrRefused) {
  for (size_t size = 0; size < kText.size(); ++size) {
    const auto journal = ReadJournal(kText.substr(0, size), "one");
    EXPECT_LE(journal.has_value() ? journal->present.bytes() : 0, 30u);
  }
  EXPECT_FALSE(ReadJournal("", "one").has_value());
  EXPECT_FALSE(ReadJournal("tessera-download 2 100 abc\nboot one\n", "one").has_value());
  EXPECT_FALSE(ReadJournal("tessera-download 1 100 \nboot one\n", "one").has_value());
  EXPECT_FALSE(ReadJournal("tessera-download 1 100 a b\nboot one\n", "one").has_value());
  EXPECT_FALSE(
      ReadJournal("tessera-download 1 99999999999999999 a\nboot one\n", "one").has_value());
}

TEST(Journal, WrittenAnewItSaysTheSameToThisBootAndTheNext) {
  const Journal journal = *ReadJournal(kText, "one");
  const JournalText fresh = WriteJournal(journal, "two");
  const auto same = ReadJournal(fresh.text, "two");
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(same->present.Ranges(), journal.present.Ranges());
  EXPECT_EQ(ReadJournal(fresh.text, "three")->present.Ranges(), journal.synced.Ranges());
  // Lines that follow go on counting where the text ended.
  const std::string grown =
      fresh.text + JournalRangeLine({40, 50}) + JournalSyncedLine(fresh.ranges + 1);
  EXPECT_EQ(ReadJournal(grown, "three")->present.bytes(), 40u);
  EXPECT_THAT(ReadJournal(WriteJournal({100, "abc", {}, {}}, "one").text, "one")->present.Ranges(),
              IsEmpty());
}

TEST(Journal, ValidatorsAreOneWord) {
  EXPECT_EQ(ValidatorWord("W/\"a b\""), "W/\"a%20b\"");
  EXPECT_EQ(ValidatorWord(""), "-");
  EXPECT_EQ(ValidatorWord(ValidatorWord("\n\xff")), ValidatorWord("\n\xff"));
}

}  // namespace
}  // namespace tessera::hub
