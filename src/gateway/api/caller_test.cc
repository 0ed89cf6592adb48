// SPDX-License-Identifier: Apache-2.0
#include "gateway/api/caller.h"

#include <gtest/gtest.h>

#include <optional>

#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

ApiResult<std::string> Of(std::string_view header) {
  net::Request request;
  if (!header.empty()) request.headers.Add("Authorization", header);
  return UserOf(request);
}

TEST(UserOf, BasicAndBearerNameTheSameUser) {
  EXPECT_EQ(*Of("Basic dGVzdF91c2VyX2lkOg=="), "test_user_id");
  EXPECT_EQ(*Of("basic dGVzdF91c2VyX2lkOnB3"), "test_user_id");
  EXPECT_EQ(*Of("Bearer test_user_id"), "test_user_id");
}

TEST(UserOf, NobodyIs401) {
  for (const char* header : {"", "Basic Og==", "Basic", "Basic !!!", "Bearer ", "Digest x",
                             "Basic AAAA", "Bearer a b", "Bearer \xff"}) {
    const auto user = Of(header);
    ASSERT_FALSE(user.has_value()) << header;
    EXPECT_EQ(user.error().status, 401);
  }
  EXPECT_TRUE(Of("Bearer " + std::string(kUserBytesMax, 'a')).has_value());
  EXPECT_FALSE(Of("Bearer " + std::string(kUserBytesMax + 1, 'a')).has_value());
}

TEST(DecodeBase64, IsRfc4648s) {
  EXPECT_EQ(DecodeBase64(""), "");
  EXPECT_EQ(DecodeBase64("Zg=="), "f");
  EXPECT_EQ(DecodeBase64("Zg"), "f");
  EXPECT_EQ(DecodeBase64("Zm9vYmFy"), "foobar");
  for (const char* text : {"Z", "=", "====", "Zg==Zg==", "Z g=", " Zg=="})
    EXPECT_EQ(DecodeBase64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace tessera::gateway
