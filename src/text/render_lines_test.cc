// SPDX-License-Identifier: Apache-2.0
#include "text/render_lines.h"

#include <gtest/gtest.h>

#include <string>

namespace tessera::text {
namespace {

std::string Answer(std::string_view source, std::string_view line) {
  const auto parsed = ChatTemplate::Parse(source);
  return parsed.has_value() ? RenderLine(**parsed, line, 0) : parsed.error().ToString();
}

TEST(RenderLines, ARequestGivesText) {
  EXPECT_EQ(Answer("{% for m in messages %}{{ m.content }}{% endfor %}{{ bos }}{{ tools }}",
                   R"({"messages": [{"content": "hi\n"}], "vars": {"bos": "<s>"}, "tools": null})"),
            R"({"text":"hi\n<s>None"})");
}

TEST(RenderLines, NowIsShownInUtc) {
  EXPECT_EQ(Answer("{{ strftime_now('%d %b %Y %H:%M') }}", R"({"now": "2026-01-15T12:34:56"})"),
            R"({"text":"15 Jan 2026 12:34"})");
  EXPECT_EQ(Answer("{{ strftime_now('%F') }}", "{}"), R"({"text":"1970-01-01"})");
}

TEST(RenderLines, EveryFailureIsAnAnswer) {
  EXPECT_EQ(Answer("{{ raise_exception('bad role') }}", "{}"), R"({"error":"bad role"})");
  EXPECT_NE(Answer("x", "{").find(R"({"error":)"), std::string::npos);
  EXPECT_NE(Answer("x", "[]").find(R"({"error":)"), std::string::npos);
  EXPECT_NE(Answer("x", R"({"mesages": []})").find("mesages"), std::string::npos);
  EXPECT_NE(Answer("x", R"({"now": 5})").find("ISO 8601"), std::string::npos);
}

TEST(RenderLines, IsoTimesOfAllForms) {
  EXPECT_EQ(*ParseIsoTime("1970-01-02"), 86400);
  EXPECT_EQ(*ParseIsoTime("2026-01-15T12:34:56"), 1'768'480'496);
  EXPECT_EQ(*ParseIsoTime("2026-01-15 12:34:56.250"), 1'768'480'496);
  EXPECT_EQ(*ParseIsoTime("2026-01-15T14:34:56+02:00"), 1'768'480'496);
  EXPECT_EQ(*ParseIsoTime("2026-01-15T12:34Z"), 1'768'480'440);
  for (const char* bad : {"", "2026", "2026-13-01", "2026-02-30", "2026-01-15T", "2026-01-15T25:00",
                          "2026-01-15T12:34:56x", "2026-01-15T12:34:56+"}) {
    EXPECT_FALSE(ParseIsoTime(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace tessera::text
