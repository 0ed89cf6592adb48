// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tessera::json {
namespace {

using ::testing::HasSubstr;

TEST(Json, ParsesEveryKindOfValue) {
  const auto value = Parse(R"( {"a": [1, -2, 3.5, true, null, "xé\n"], "b": {}} )", {}, "test");
  ASSERT_TRUE(value.has_value()) << value.error().ToString();
  EXPECT_EQ(Serialize(*value), R"({"a":[1,-2,3.5,true,null,"xé\n"],"b":{}})");
  EXPECT_EQ(SerializePretty(Parse("[1,{\"k\":[]}]", {}, "t").value()),
            "[\n  1,\n  {\n    \"k\": []\n  }\n]\n");
}

TEST(Json, DoublesReadBackAsTheyWere) {
  for (const double number : {1.0, 0.1, 1e300, 5e-324, 1.0 / 3, -0.0, 123456789.125}) {
    const std::string text = Serialize(Value(number));
    const auto back = Parse(text, {}, "test");
    ASSERT_TRUE(back.has_value() && back->is_double()) << text;
    EXPECT_EQ(back->get_double(), number) << text;
  }
  EXPECT_EQ(Serialize(Value(1.0)), "1.0");
  EXPECT_EQ(Serialize(Value(0.25)), "0.25");
}

TEST(Json, NumbersAreTheNearestDoubles) {
  const std::string digits = "77" + std::string(129, '0');
  for (const auto& [text, number] : std::initializer_list<std::pair<std::string, double>>{
           {digits, 7.7e130},
           {"9007199254740993.0", 9007199254740992.0},
           {"0.1000000000000000055511151231257827", 0.1},
           {"2.2250738585072011e-308", 2.2250738585072011e-308},
           {"1e-999", 0.0},
           {"8.41e21", 8.41e21},
           {"179769313486231570e291", 1.7976931348623157e308}}) {
    const auto value = Parse(text, {}, "test");
    ASSERT_TRUE(value.has_value() && value->is_double()) << text;
    EXPECT_EQ(value->get_double(), number) << text;
  }
}

TEST(Json, KeepsLongStringsAndKeysWhole) {
  const std::string longtext(100000, 'x');
  const auto value = Parse("{\"" + longtext + "\":\"" + longtext + "\\u00e9\"}", {}, "test");
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(value->get_object().at(longtext).get_string(), longtext + "é");
}

TEST(Json, RefusesWhatIsNotStrictJson) {
  for (const char* text :
       {"", " ", "{", "[1,]", "{'a':1}", "{\"a\":1} x", "NaN", "[Infinity]", "01", "\"\xff\"",
        "\"\\ud800\"", "1e999", "/*c*/1", "\"a\x01\"", "{\"a\" 1}"}) {
    const auto value = Parse(text, {}, "test");
    EXPECT_FALSE(value.has_value()) << text;
    if (!value.has_value()) {
      EXPECT_EQ(value.error().code(), Code::kInvalidArgument) << text;
      EXPECT_THAT(value.error().ToString(), HasSubstr("test: offset ")) << text;
    }
  }
}

TEST(Json, MessagesSayWhereWhatWasExpectedAndWhatStoodThere) {
  struct Case {
    std::string text, message;
  };
  const Case cases[] = {
      {"", R"(offset 0: invalid JSON: expected a value, got the end of the text)"},
      {"x", R"(offset 0: invalid JSON: expected a value, got "x")"},
      {"tru3", R"(offset 0: invalid JSON: expected a value, got "tru3")"},
      {"-x", R"(offset 1: invalid JSON: expected a number, true, false or null, got "x")"},
      {"[1 2]", R"(offset 3: invalid JSON: expected ',' or ']', got "2]")"},
      {"[1,]", R"(offset 3: invalid JSON: expected a value, got "]")"},
      {"{", R"(offset 1: invalid JSON: expected a key in double quotes or '}', got the end)"},
      {R"({"a":1,})", R"(offset 7: invalid JSON: expected a key in double quotes, got "}")"},
      {R"({"a" 1})", R"(offset 5: invalid JSON: expected ':' after the key, got "1}")"},
      {R"({"a":"b" 1})", R"(offset 9: invalid JSON: expected ',' or '}', got "1}")"},
      {"{} {}", R"(offset 3: invalid JSON: expected nothing after the value, got "{}")"},
      {"\"abc", R"(offset 4: invalid JSON: expected a string's closing quote, got the end)"},
      {"\"\xff ",
       R"(offset 1: invalid JSON: expected UTF-8, which these bytes are not, got "\xff)"},
      {"\"a\nb\"", R"(offset 2: invalid JSON: expected no control character in a string)"},
      {R"("\q")", R"(offset 2: invalid JSON: expected an escape: one of)"},
      {R"("\uZZ")", R"(offset 3: invalid JSON: expected four hex digits)"},
      {R"("\ud800x")", R"(offset 7: invalid JSON: expected the other half of a surrogate pair)"},
      {"[1e999]", R"(invalid JSON: a number is out of range, expected at most 1.8e308)"},
      {"[1e9999999999]", R"(invalid JSON: a number's exponent is out of range, expected at most)"},
      {"x" + std::string(99, 'y'), R"(expected a value, got "xyyyyyyyyyyyyyyy...")"},
      {"{\"\\n\":1,\"\\n\":2}", R"(duplicate key "\x0a", expected each key once)"},
  };
  for (const auto& [text, message] : cases) {
    const auto value = Parse(text, {}, "test");
    ASSERT_FALSE(value.has_value()) << text;
    EXPECT_THAT(value.error().ToString(), HasSubstr(message)) << text;
  }
}

TEST(Json, RefusesDuplicateKeysUnlessToldOtherwise) {
  EXPECT_THAT(Parse(R"({"a":1,"a":2})", {}, "t").error().ToString(),
              HasSubstr("duplicate key \"a\""));
  EXPECT_EQ(Serialize(Parse(R"({"a":1,"a":2})", {.unique_keys = false}, "t").value()),
            R"({"a":2})");
}

TEST(Json, LimitsHoldAtTheirBoundary) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_TRUE(Parse(nested(63), {}, "t").has_value());
  EXPECT_TRUE(Parse(nested(64), {}, "t").has_value());
  EXPECT_EQ(Parse(nested(65), {}, "t").error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(Parse("[10]", {.max_bytes = 4}, "t").has_value());
  EXPECT_EQ(Parse("[100]", {.max_bytes = 4}, "t").error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(Parse(R"({"a":1,"b":2})", {.max_keys = 2}, "t").has_value());
  EXPECT_FALSE(Parse(R"({"a":1,"b":2,"c":3})", {.max_keys = 2}, "t").has_value());
}

TEST(Json, GettersNameTheKeyAndTheKind) {
  const Value value =
      Parse(R"({"i":3,"d":2.5,"w":8.0,"s":"x","n":null,"big":18446744073709551615})", {}, "t")
          .value();
  const Object& object = value.get_object();
  EXPECT_EQ(GetInt(object, "i", 0).value(), 3);
  EXPECT_EQ(GetInt(object, "w", 0).value(), 8);
  EXPECT_EQ(GetInt(object, "n", 7).value(), 7) << "null counts as absent";
  EXPECT_EQ(GetDouble(object, "i", 0).value(), 3.0);
  EXPECT_EQ(GetInt(object, "d", 0).error().message(), "\"d\" is number, expected an integer");
  EXPECT_FALSE(GetInt(object, "big", 0).has_value());
  EXPECT_EQ(NeedString(object, "zz").error().message(), "\"zz\" is missing");
  EXPECT_EQ(GetString(object, "s", "").value(), "x");
}

}  // namespace
}  // namespace tessera::json
