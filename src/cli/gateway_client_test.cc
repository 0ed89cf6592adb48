// SPDX-License-Identifier: Apache-2.0
#include "cli/gateway_client.h"

#include <gtest/gtest.h>

#include <string>

#include "cli/http_address.h"

namespace tessera::cli {
namespace {

TEST(DetailText, SaysWhichFieldsAreWrong) {
  EXPECT_EQ(DetailText(R"({"detail": "Model Endpoint a  was not found."})"),
            "Model Endpoint a  was not found.");
  EXPECT_EQ(DetailText(R"({"detail": [
      {"type": "int_type", "loc": ["body", "min_workers"],
       "msg": "Input should be a valid integer"},
      {"type": "enum", "loc": ["query", "order_by"], "msg": "wrong", "input": 3}]})"),
            "min_workers: Input should be a valid integer; order_by: wrong");
}

TEST(DetailText, TakesWhateverComes) {
  EXPECT_EQ(DetailText(""), "");
  EXPECT_EQ(DetailText("<html>\n"), "<html>\\n");
  EXPECT_EQ(DetailText(R"({"detail": [1, {"loc": [2, "a"]}]})"), R"(1; 2.a: {"loc":[2,"a"]})");
  EXPECT_EQ(DetailText(R"({"detail": {"a": 1}})"), R"({"a":1})");
  EXPECT_LT(DetailText(std::string(100000, 'x')).size(), 600u);
}

TEST(UnknownEndpointText, NamesTheNearest) {
  EXPECT_EQ(UnknownEndpointText("smoll", {"big", "smol", "other"}),
            "there is no endpoint \"smoll\"; did you mean \"smol\"?");
  EXPECT_EQ(UnknownEndpointText("zzz", {"b", "a"}), "there is no endpoint \"zzz\"; there are a, b");
  EXPECT_EQ(UnknownEndpointText("zzz", {"a", "b", "c", "d", "e", "f", "g"}),
            "there is no endpoint \"zzz\"; there are a, b, c, d, e and 2 more");
  EXPECT_EQ(UnknownEndpointText("a", {}),
            "there is no endpoint \"a\": there are none that you may use");
}

TEST(HttpAddress, IsCheckedAndKnowsThisMachine) {
  EXPECT_TRUE(CheckHttpAddress("--gateway", "https://h:5000/base").ok());
  for (const char* text : {"", "h:5000", "ftp://h", "http://", "http://u:p@h"})
    EXPECT_FALSE(CheckHttpAddress("--gateway", text).ok()) << text;
  for (const char* text :
       {"http://127.0.0.1:5000", "http://127.9.9.9", "https://localhost/", "http://[::1]:80"})
    EXPECT_TRUE(IsLoopbackAddress(text)) << text;
  for (const char* text : {"http://10.0.0.1", "http://localhost.example.org", "http://[::2]:1"})
    EXPECT_FALSE(IsLoopbackAddress(text)) << text;
}

}  // namespace
}  // namespace tessera::cli
