// SPDX-License-Identifier: Apache-2.0
#include "net/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/errors.h"

namespace tessera::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

Result<Request> Parse(std::string_view target, uint32_t segments = 8, uint32_t params = 4) {
  Request request;
  TESSERA_RETURN_IF_ERROR(ParseTarget(target, segments, params, &request));
  return request;
}

TEST(Headers, NamesCompareWithoutCase) {
  Headers headers{{"Content-Type", "a"}, {"X", "1"}, {"x", "2"}};
  EXPECT_EQ(headers.Find("content-TYPE"), "a");
  EXPECT_EQ(headers.Find("X"), "1");
  EXPECT_FALSE(headers.Has("y"));
  headers.Set("X", "3");
  EXPECT_EQ(headers.size(), 2u);
  headers.Remove("content-type");
  EXPECT_EQ(headers.size(), 1u);
}

TEST(Headers, TokensAreFoundInLists) {
  const Headers headers{{"Connection", "keep-alive ,\tClose"}, {"connection", "upgrade"}};
  EXPECT_TRUE(headers.HasToken("Connection", "close"));
  EXPECT_TRUE(headers.HasToken("Connection", "Upgrade"));
  EXPECT_FALSE(headers.HasToken("Connection", "clos"));
}

TEST(Headers, ValuesThatWouldSplitAMessageAreRefused) {
  EXPECT_TRUE((Headers{{"A", "b c\t\xc3\xa9"}}).Check().ok());
  EXPECT_FALSE((Headers{{"A", "b\r\nX: y"}}).Check().ok());
  EXPECT_FALSE((Headers{{"A", std::string("\0", 1)}}).Check().ok());
  EXPECT_FALSE((Headers{{"A b", "c"}}).Check().ok());
  EXPECT_FALSE((Headers{{"", "c"}}).Check().ok());
}

TEST(Target, IsDecodedAndNormalised) {
  const auto request = Parse("/v1/./a%20b/x/../%E2%82%AC?q=1+2&empty&k=%26%3D");
  ASSERT_TRUE(request.has_value()) << request.error().ToString();
  EXPECT_EQ(request->path, "/v1/a b/\xe2\x82\xac");
  EXPECT_THAT(request->segments, ElementsAre("v1", "a b", "\xe2\x82\xac"));
  EXPECT_THAT(request->query, ElementsAre(Pair("q", "1 2"), Pair("empty", ""), Pair("k", "&=")));
  EXPECT_EQ(request->Query("k"), "&=");
  EXPECT_FALSE(request->Query("nope").has_value());
}

TEST(Target, EncodedSlashStaysInItsSegment) {
  EXPECT_THAT(Parse("/m/org%2Fname")->segments, ElementsAre("m", "org/name"));
}

TEST(Target, RootAndTrailingSlash) {
  EXPECT_EQ(Parse("/")->path, "/");
  EXPECT_THAT(Parse("/")->segments, IsEmpty());
  EXPECT_THAT(Parse("/a/")->segments, ElementsAre("a", ""));
  EXPECT_EQ(Parse("/a/.")->path, "/a/");
  EXPECT_EQ(Parse("/a/..")->path, "/");
  EXPECT_EQ(Parse("/?x=1")->path, "/");
  EXPECT_EQ(Parse("*")->path, "*");
}

TEST(Target, HostilePathsAreRefused) {
  for (const char* target : {"",
                             "a",
                             "/..",
                             "/a/../..",
                             "/%2e%2e",
                             "/v1/files/..%2f..%2fetc",
                             "/a/..%5c..",
                             "/%00",
                             "/a%0d%0aX:1",
                             "/%ff%fe",
                             "/%c0%af",
                             "/%ed%a0%80",
                             "/%f4%90%80%80",
                             "/%e2%82",
                             "/%4",
                             "/%zz",
                             "/%",
                             "/a#b",
                             "/?a=%",
                             "/?a=%00",
                             "/?%ff"})
    EXPECT_FALSE(Parse(target).has_value()) << target;
}

TEST(Target, LimitsAdmitNAndRefuseNPlusOne) {
  EXPECT_TRUE(Parse("/a/b", 3).has_value());
  EXPECT_TRUE(Parse("/a/b/c", 3).has_value());
  EXPECT_FALSE(Parse("/a/b/c/d", 3).has_value());
  EXPECT_TRUE(Parse("/?a", 3, 2).has_value());
  EXPECT_TRUE(Parse("/?a&b", 3, 2).has_value());
  EXPECT_FALSE(Parse("/?a&b&c", 3, 2).has_value());
}

TEST(PercentEncoding, RoundTripsEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  EXPECT_EQ(PercentDecode(PercentEncode(all), true), all);
  EXPECT_EQ(PercentEncode("a/b c~"), "a%2Fb%20c~");
}

TEST(DefaultErrorResponse, IsTheOpenAiErrorObject) {
  const Response bad = DefaultErrorResponse({413, "body_too_large", "say \"less\""});
  EXPECT_EQ(bad.status, 413);
  EXPECT_EQ(bad.body, R"({"error":{"message":"say \"less\"","type":"invalid_request_error",)"
                      R"("param":null,"code":"body_too_large"}})");
  const Response busy = DefaultErrorResponse({503, "overloaded", "later"});
  EXPECT_THAT(busy.body, HasSubstr("server_error"));
  EXPECT_TRUE(busy.headers.Has("Retry-After"));
}

}  // namespace
}  // namespace tessera::net
