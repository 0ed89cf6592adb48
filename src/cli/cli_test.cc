// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/flagfile.h"
#include "cli/terminal.h"

#include "base/file.h"
#include "support/fixtures.h"

namespace tessera::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Flagfile, KeepsFlagsAndDropsCommentsAndBlankLines) {
  const auto flags = ParseFlagfile(
      "# one\n--module=a b.vmfb\n\n  // two\n\t--input=1x4xi64=1 2 3 4 \r\n--flag", "f");
  ASSERT_TRUE(flags.has_value()) << StatusOf(flags).ToString();
  EXPECT_THAT(*flags, ElementsAre("--module=a b.vmfb", "--input=1x4xi64=1 2 3 4", "--flag"));
}

TEST(Flagfile, NamesTheLineThatIsNoFlag) {
  EXPECT_THAT(ParseFlagfile("--a=1\npositional\n", "f.txt").error().message(),
              HasSubstr("f.txt:2: \"positional\""));
  EXPECT_FALSE(ParseFlagfile("--flagfile=other", "f").has_value());
  EXPECT_FALSE(ParseFlagfile("--", "f").has_value());
}

TEST(Flagfile, StandsWhereItWasNamed) {
  const testing::TempDir dir;
  const std::string path = (dir.path() / "flags").string();
  ASSERT_TRUE(WriteFileAtomic(path, "--b=2\n").ok());
  EXPECT_THAT(*ExpandFlagfiles({"run", "--a=1", "--flagfile=" + path, "--c=3"}),
              ElementsAre("run", "--a=1", "--b=2", "--c=3"));
  EXPECT_THAT(*ExpandFlagfiles({"--flagfile", path}), ElementsAre("--b=2"));
  EXPECT_EQ(ExpandFlagfiles({"--flagfile"}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(ExpandFlagfiles({"--flagfile=/no/such"}).error().code(), Code::kNotFound);
}

TEST(Terminal, SizesAndDurationsAreReadable) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(1000), "1.0 kB");
  EXPECT_EQ(HumanBytes(98'362'432), "98.4 MB");
  EXPECT_EQ(HumanBytes(999'999), "1.0 MB");
  EXPECT_EQ(HumanBytes(4'357'000'000), "4.4 GB");
  EXPECT_EQ(HumanDuration(0.0123), "12 ms");
  EXPECT_EQ(HumanDuration(12.34), "12.3 s");
  EXPECT_EQ(HumanDuration(200), "3 min 20 s");
  EXPECT_EQ(HumanDuration(7260), "2 h 1 min");
}

}  // namespace
}  // namespace tessera::cli
