// SPDX-License-Identifier: Apache-2.0
#include "text/json_scanner.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json.h"
#include "base/random.h"

namespace tessera::text {
namespace {

using Step = JsonScanner::Step;

/// Bytes of the value at the front of `text`; -1 bad, -2 unfinished.
int Scan(std::string_view text) {
  JsonScanner scanner;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (scanner.Push(text[i])) {
      case Step::kMore:
        break;
      case Step::kDone:
        return static_cast<int>(i + 1);
      case Step::kDoneBefore:
        return static_cast<int>(i);
      case Step::kBad:
        return -1;
    }
  }
  return scanner.Finish() ? static_cast<int>(text.size()) : -2;
}

TEST(JsonScanner, FindsTheEndOfEachKindOfValue) {
  const std::pair<const char*, int> cases[] = {
      {"{} x", 2},
      {"[1, 2]]", 6},
      {R"("a\"b" )", 6},
      {"true,", 4},
      {"false", 5},
      {"null}", 4},
      {"12,", 2},
      {"-0.5e+3]", 7},
      {"0,", 1},
      {"1E5 ", 3},
      {R"({"a":[{}]}})", 10},
      {R"("\u00e9")", 8},
      {"[ ]", 3},
      {"{ }", 3},
      {R"({ "a" : 1 , "b" : -2 })", 22},
      {"7", 1},
      {"[1.5]", 5},
  };
  for (const auto& [text, end] : cases) EXPECT_EQ(Scan(text), end) << text;
}

TEST(JsonScanner, RefusesWhatIsNoJson) {
  for (const char* text :
       {"x",           "{a",       "{\"a\" 1", "{\"a\":}", "{\"a\":1,}", "[1,]", "[1 2]",
        "tru ",        "nul1",     "01",       "-x",       "1.x",        "1e+x", "\"\\x\"",
        "\"\\u12g4\"", "\"a\nb\"", "'a'",      "{1:2}",    "]",          "}",    "[}",
        "{]",          " 1",       "+1",       ".5"})
    EXPECT_EQ(Scan(text), -1) << text;
}

TEST(JsonScanner, KnowsWhatIsUnfinished) {
  for (const char* text : {"", "{", "[1", "\"a", "\"\\", "tr", "-", "1.", "1e", "1e-", "{\"a\":"})
    EXPECT_EQ(Scan(text), -2) << text;
}

TEST(JsonScanner, NestingIsBounded) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(Scan(nested(JsonScanner::kDepthMax)), 2 * static_cast<int>(JsonScanner::kDepthMax));
  EXPECT_EQ(Scan(nested(JsonScanner::kDepthMax + 1)), -1);
}

/// The parser of base/ is the reference: of random texts both take the same ones.
TEST(JsonScanner, AgreesWithTheParser) {
  constexpr std::string_view kBytes = "{}[]\",:0123456789.-+eEtrufalsn\\ \n";
  Random random(11);
  int valid = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text;
    for (uint64_t n = 1 + random.Below(7); n > 0; --n) text += kBytes[random.Below(kBytes.size())];
    // What no double can hold is JSON all the same; the parser refuses it.
    if (text.find_first_of("eE") != std::string::npos)
      std::erase_if(text, [](char c) { return c > '0' && c <= '9'; });
    if (text.empty()) continue;
    const bool is_json = !IsJsonSpace(text.front()) && !IsJsonSpace(text.back()) &&
                         json::Parse(text, {.unique_keys = false}, "t").has_value();
    EXPECT_EQ(Scan(text) == static_cast<int>(text.size()), is_json) << text;
    valid += is_json ? 1 : 0;
  }
  EXPECT_GT(valid, 1000);
}

}  // namespace
}  // namespace tessera::text
