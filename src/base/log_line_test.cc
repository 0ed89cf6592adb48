// SPDX-License-Identifier: Apache-2.0
#include "base/log_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

#include "base/json.h"
#include "base/utf8.h"

namespace tessera::log {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kTime = std::chrono::system_clock::time_point(
    std::chrono::milliseconds(1'700'000'000'007));  // 2023-11-14T22:13:20.007Z

std::string Json(std::string_view message, std::span<const Field> fields = {}) {
  return JsonLine({kTime, "info", "http", message, fields});
}
std::string Text(std::string_view message, std::span<const Field> fields = {}) {
  return TextLine({kTime, "info", "http", message, fields});
}
std::string Escaped(std::string_view text, size_t bytes_max = 100) {
  std::string out;
  AppendEscaped(text, bytes_max, &out);
  return out;
}

TEST(LogLine, HasTheFieldsInOrder) {
  const std::array<Field, 4> fields{{{"path", std::string_view("/a")},
                                     {"status", int64_t{200}},
                                     {"e2e_ms", 1.5},
                                     {"is_stream", true}}};
  EXPECT_EQ(Json("request", fields),
            R"({"time":"2023-11-14T22:13:20.007Z","level":"info","component":"http",)"
            R"("message":"request","path":"/a","status":200,"e2e_ms":1.500,"is_stream":true})"
            "\n");
  EXPECT_EQ(Text("request", fields),
            "2023-11-14T22:13:20.007Z info http: request path=/a status=200 e2e_ms=1.500 "
            "is_stream=true\n");
}

TEST(LogLine, TextThatCouldBeMisreadIsQuoted) {
  const auto field = [](std::string_view value) {
    const Field one{"x", value};
    std::string line = Text("m", std::span(&one, 1));
    return line.substr(line.find("x="));
  };
  EXPECT_EQ(field("a b"), "x=\"a b\"\n");
  EXPECT_EQ(field("a=b"), "x=\"a=b\"\n");
  EXPECT_EQ(field("a\"b"), "x=\"a\\\"b\"\n");
  EXPECT_EQ(field(""), "x=\"\"\n");
  EXPECT_EQ(field("a\nb"), "x=\"a\\nb\"\n");
}

TEST(LogLine, OutsideBytesMakeNoLineAndSteerNoTerminal) {
  const std::string attack = "\n2023 error http: forged\r\x1b[2J\x7f\u0085\u009b2J\u2028\u2029";
  for (const std::string& line : {Json(attack), Text(attack)}) {
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    for (const char* bad : {"\r", "\x1b", "\x7f", "\u0085", "\u009b", "\u2028", "\u2029"})
      EXPECT_THAT(line, Not(HasSubstr(bad)));
  }
  const auto parsed = json::Parse(Json(attack), {}, "line");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->as_object().at("message").as_string(), attack) << "nothing is lost";
}

TEST(LogLine, WhatIsNoUtf8IsReplacedByteByByte) {
  EXPECT_EQ(Escaped("a\xff\xc3(\xed\xa0\x80z"), "a\uFFFD\uFFFD(\uFFFD\uFFFD\uFFFDz");
  EXPECT_TRUE(json::Parse(Json("\x80\xfe"), {}, "line").has_value());
}

TEST(LogLine, OtherTextsStayReadable) {
  EXPECT_EQ(Escaped("gr\u00fc\u00dfe \u65e5\u672c \U0001F600"),
            "gr\u00fc\u00dfe \u65e5\u672c \U0001F600");
  EXPECT_THAT(Text("the model \"x\\y\" is here"), EndsWith("the model \"x\\y\" is here\n"));
}

TEST(LogLine, LongTextsAreCutBetweenCharacters) {
  EXPECT_EQ(Escaped("0123456789", 10), "0123456789");
  EXPECT_EQ(Escaped("0123456789a", 10), "0123456...");
  EXPECT_EQ(Escaped("0123456\n\n\n", 10), "0123456...") << "no half of an escape";
  EXPECT_EQ(Escaped("\u65e5\u672c\u8a9e\u672c", 10), "\u65e5\u672c...");
  std::string long_text(5000, '\x01');
  const Field field{"x", std::string_view(long_text)};
  const std::string line = Json(long_text, std::span(&field, 1));
  EXPECT_LT(line.size(), kMessageBytesMax + kFieldBytesMax + 200);
  EXPECT_TRUE(json::Parse(line, {}, "line").has_value());
}

TEST(LogLine, SixTextsFitInOneWriteToAPipe) {
  const std::string value(1000, '\x01');
  const std::array<Field, 6> fields{{{"request_id", value},
                                     {"trace_id", value},
                                     {"path", value},
                                     {"key", value},
                                     {"finish_reason", value},
                                     {"method", value}}};
  EXPECT_LE(Json("request", fields).size(), 4096u);
}

TEST(LogLine, NumbersThatJsonLacksAreNull) {
  const Field nan{"x", std::numeric_limits<double>::quiet_NaN()};
  EXPECT_THAT(Json("m", std::span(&nan, 1)), HasSubstr(R"("x":null)"));
}

TEST(LogLine, TimesBeforeTheEpochAreTimesToo) {
  const std::string line = TextLine(
      {std::chrono::system_clock::time_point(std::chrono::milliseconds(-1)), "info", "c", "m", {}});
  EXPECT_THAT(line, HasSubstr("1969-12-31T23:59:59.999Z"));
}

}  // namespace
}  // namespace tessera::log
