// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::cli {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Lines(std::string_view a, std::string_view b) {
  const auto of_a = json::Parse(a, {}, "a"), of_b = json::Parse(b, {}, "b");
  std::vector<std::string> lines;
  for (const Difference& difference : DiffJson(*of_a, *of_b, "d"))
    lines.push_back(difference.where + ": " + difference.from + " -> " + difference.to);
  return lines;
}

TEST(InspectDiff, NamesThePlaceAndBothValues) {
  EXPECT_TRUE(Lines(R"({"a": [1, 2], "b": {}})", R"({"b": {}, "a": [1, 2]})").empty());
  EXPECT_THAT(Lines(R"({"a": 1, "b": {"c": "x"}, "l": [1, 2]})",
                    R"({"a": 2, "b": {"d": "x"}, "l": [1, 3]})"),
              ElementsAre("d.a: 1 -> 2", "d.b.c: x -> (absent)", "d.b.d: (absent) -> x",
                          "d.l: [1,2] -> [1,3]"));
}

TEST(InspectDiff, OneMoreElementIsOneDifference) {
  EXPECT_THAT(Lines(R"([{"name": "a", "n": 1}, {"name": "c", "n": 3}])",
                    R"([{"name": "a", "n": 1}, {"name": "b", "n": 2}, {"name": "c", "n": 3}])"),
              ElementsAre("d[b].n: (absent) -> 2", "d[b].name: (absent) -> b"));
}

TEST(InspectDiff, ManyDifferencesAreCounted) {
  std::vector<Difference> many(102, {"here", "1", "2"});
  EXPECT_TRUE(DiffText(many).ends_with("here: 1 -> 2\nand 2 more; --json has all\n"));
  EXPECT_EQ(DiffText({}), "no difference\n");
}

}  // namespace
}  // namespace tessera::cli
