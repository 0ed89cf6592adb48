// SPDX-License-Identifier: Apache-2.0
#include "hub/bucket_listing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hub/limits.h"

namespace tessera::hub {
namespace {

std::string Page(std::string_view body) {
  return fmt::format("<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\">{}</ListBucketResult>",
                     body);
}

TEST(BucketListing, HasKeysSizesAndValidators) {
  const auto listing = ParseBucketListing(
      Page("<Contents><Key>m/a&amp;b</Key><ETag>&quot;0a&quot;</ETag><Size>12</Size></Contents>"
           "<Contents><Size>0</Size><Key>m/</Key></Contents><IsTruncated>true</IsTruncated>"
           "<NextContinuationToken>t</NextContinuationToken>"));
  ASSERT_TRUE(listing.has_value()) << listing.error().ToString();
  ASSERT_EQ(listing->objects.size(), 2u);
  EXPECT_EQ(listing->objects[0].key, "m/a&b");
  EXPECT_EQ(listing->objects[0].bytes, 12u);
  EXPECT_EQ(listing->objects[0].etag, "\"0a\"");
  EXPECT_EQ(listing->objects[1].etag, "");
  EXPECT_EQ(listing->next, "t");
}

TEST(BucketListing, WhatIsNoneIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("<html>"), Page("<Contents><Key>a</Key></Contents>"),
        Page("<Contents><Key>a</Key><Size>-1</Size></Contents>"),
        Page("<Contents><Key>a</Key><Size>1x</Size></Contents>"),
        Page(fmt::format("<Contents><Key>a</Key><Size>{}</Size></Contents>", kMaxFileBytes + 1)),
        Page("<IsTruncated>true</IsTruncated>")})
    EXPECT_FALSE(ParseBucketListing(text).has_value()) << text;
  EXPECT_TRUE(ParseBucketListing(Page("")).has_value());
}

TEST(BucketListing, ObjectsHaveALimit) {
  const auto page = [](size_t count) {
    std::string rows;
    for (size_t i = 0; i < count; ++i) rows += "<Contents><Key>a</Key><Size>1</Size></Contents>";
    return Page(rows);
  };
  EXPECT_TRUE(ParseBucketListing(page(kMaxListedFiles)).has_value());
  EXPECT_EQ(ParseBucketListing(page(kMaxListedFiles + 1)).error().code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace tessera::hub
