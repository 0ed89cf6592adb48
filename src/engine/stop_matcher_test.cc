// SPDX-License-Identifier: Apache-2.0
#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/random.h"

namespace tessera::engine {
namespace {

struct Outcome {
  std::string text;
  bool matched = false;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// The definition, by brute force: the match that ends first, of those the longest.
Outcome Oracle(const std::string& text, const std::vector<std::string>& stops, bool include) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops)
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    if (longest > 0) return {text.substr(0, include ? end : end - longest), true};
  }
  return {text, false};
}

/// Could `text` still be the beginning of a stop string at its end? Longest such part.
size_t Pending(const std::string& text, const std::vector<std::string>& stops) {
  size_t longest = 0;
  for (const std::string& stop : stops)
    for (size_t n = 1; n < stop.size() && n <= text.size(); ++n)
      if (text.ends_with(stop.substr(0, n))) longest = std::max(longest, n);
  return longest;
}

std::string RandomText(Random* random, size_t length) {
  std::string text;
  for (size_t i = 0; i < length; ++i) text += static_cast<char>('a' + random->Below(3));
  return text;
}

TEST(StopMatcher, EqualsTheDefinitionForEveryCutting) {
  Random random(3);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (uint64_t n = random.Below(4); n > 0; --n)
      stops.push_back(RandomText(&random, 1 + random.Below(5)));
    const std::string text = RandomText(&random, random.Below(30));
    const bool include = random.Below(2) == 0;
    StopMatcher matcher(stops, include);
    const Outcome wanted = Oracle(text, stops, include);
    std::string given;
    size_t at = 0;
    while (at < text.size()) {
      const size_t size = std::min<size_t>(text.size() - at, random.Below(5));
      given += matcher.Push(text.substr(at, size));
      at += size;
      ASSERT_TRUE(wanted.text.starts_with(given)) << "a part of a stop string leaked";
      if (!matcher.matched()) {
        // Nothing is held back without need.
        ASSERT_EQ(given.size(), at - Pending(text.substr(0, at), stops));
      }
    }
    given += matcher.Flush();
    ASSERT_EQ((Outcome{given, matcher.matched()}), wanted) << text;
  }
}

TEST(StopMatcher, FindsAStopStringAcrossPieces) {
  StopMatcher matcher({"END"}, false);
  EXPECT_EQ(matcher.Push("one E"), "one ");
  EXPECT_EQ(matcher.Push("N"), "");
  EXPECT_EQ(matcher.Push("D two"), "");
  EXPECT_TRUE(matcher.matched());
  EXPECT_EQ(matcher.Push("more"), "");
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopMatcher, GivesAFalseStartBack) {
  StopMatcher matcher({"END"}, false);
  EXPECT_EQ(matcher.Push("E"), "");
  EXPECT_EQ(matcher.Push("N?"), "EN?");
  EXPECT_EQ(matcher.Push("EN"), "");
  EXPECT_EQ(matcher.Flush(), "EN");
}

TEST(StopMatcher, NamesTheLongestOfThoseThatEndTogether) {
  StopMatcher matcher({"c", "abc", "bc", "abcd"}, false);
  EXPECT_EQ(matcher.Push("xa"), "x");
  EXPECT_EQ(matcher.match(), "");
  EXPECT_EQ(matcher.Push("bc"), "");
  EXPECT_EQ(matcher.match(), "abc");
}

TEST(StopMatcher, MayKeepTheStopString) {
  StopMatcher matcher({"\n\n"}, true);
  EXPECT_EQ(matcher.Push("a\n"), "a");
  EXPECT_EQ(matcher.Push("\nb"), "\n\n");
  EXPECT_TRUE(matcher.matched());
}

TEST(StopMatcher, DoesNotSplitACharacterThatSharesABeginning) {
  StopMatcher matcher({"\u00e9"}, false);       // C3 A9
  EXPECT_EQ(matcher.Push("\u00e8"), "\u00e8");  // C3 A8
}

TEST(StopMatcher, WithoutStopStringsAllPasses) {
  StopMatcher matcher({}, false);
  EXPECT_EQ(matcher.Push("text"), "text");
  EXPECT_EQ(matcher.Flush(), "");
}

}  // namespace
}  // namespace tessera::engine
