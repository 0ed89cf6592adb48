// SPDX-License-Identifier: Apache-2.0
#include "cli/text_table.h"

#include <gtest/gtest.h>

#include <string>

namespace tessera::cli {
namespace {

TextTable Table() {
  TextTable table({{"name"}, {"calls", true}, {"reason", false, true}});
  table.Add({{"a"}, {"7"}, {"one worker is ready", Tone::kGood}});
  table.Add({{"longer"}, {"12345"}, {""}});
  return table;
}

TEST(TextTable, AlignsItsColumnsAndLeavesNoBlanksAtTheEnds) {
  EXPECT_EQ(Table().Render({}),
            "NAME    CALLS  REASON\n"
            "a           7  one worker is ready\n"
            "longer  12345\n");
}

TEST(TextTable, NeverBreaksALineOfTheTerminal) {
  for (int columns = 23; columns < 60; ++columns) {
    const std::string text = Table().Render({.columns = columns});
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      EXPECT_LE(end - begin, static_cast<size_t>(columns)) << text;
      begin = end + 1;
    }
  }
  EXPECT_NE(Table().Render({.columns = 25}).find("one wor..."), std::string::npos);
}

TEST(TextTable, HasColoursOnlyWhereAskedFor) {
  EXPECT_EQ(Table().Render({}).find('\033'), std::string::npos);
  EXPECT_NE(Table().Render({.has_colour = true}).find("\033[32mone worker is ready\033[0m\n"),
            std::string::npos);
}

TEST(TextTable, ShowsNothingThatSteersATerminal) {
  TextTable table({{"name"}});
  table.Add({{"\033[2Ja\xff"}});
  EXPECT_EQ(table.Render({}), "NAME\n\\x1b[2Ja\\xff\n");
}

TEST(TextTable, CutsBetweenCharacters) {
  TextTable table({{"n"}});
  table.Add({{"ééééééééééééé"}});
  EXPECT_EQ(table.Render({.columns = 10}), "N\nééééééé...\n");
}

TEST(FactLines, AlignWhatTheySay) {
  EXPECT_EQ(FactLines({{"name", {"a"}}, {"warnings", {"one\ntwo"}}, {"x", {""}}}, {}),
            "name      a\nwarnings  one\n          two\nx\n");
}

}  // namespace
}  // namespace tessera::cli
