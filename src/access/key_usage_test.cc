// SPDX-License-Identifier: Apache-2.0
//
// Limits of a key, and the bucket under them, on a clock of the test's.
#include "access/key_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace tessera::access {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

struct TurnedClock : Clock {
  TimePoint Now() const override { return now; }
  int64_t UnixSeconds() const override { return 0; }
  TimePoint now{seconds(1000)};
};

ApiKey KeyWith(const KeyLimits& limits) {
  ApiKey key;
  key.name = "alice";
  key.limits = limits;
  return key;
}

struct Limited {
  explicit Limited(const KeyLimits& limits) { usage.SetKey(KeyWith(limits)); }
  std::string Header(std::string_view name) const {
    net::Headers headers;
    usage.AddHeaders(&headers);
    return std::string(headers.Find(name).value_or("none"));
  }
  TurnedClock clock;
  KeyUsage usage{7, clock};
};

TEST(TokenBucket, RefillsEvenlyUpToAMinutesWorth) {
  const TimePoint start{seconds(5)};
  TokenBucket bucket(60, start);
  EXPECT_TRUE(bucket.TryTake(60, start));
  EXPECT_FALSE(bucket.TryTake(1, start));
  EXPECT_EQ(bucket.Until(1, start), seconds(1));
  EXPECT_FALSE(bucket.TryTake(1, start + milliseconds(999)));
  EXPECT_TRUE(bucket.TryTake(1, start + seconds(1)));
  EXPECT_NEAR(bucket.Level(start + seconds(31)), 30, 1e-9);
  EXPECT_EQ(bucket.Level(start + hours(24)), 60);
}

TEST(TokenBucket, ADebtIsPaidBeforeAnythingElse) {
  const TimePoint start{};
  TokenBucket bucket(60, start);
  bucket.Charge(90, start);
  EXPECT_NEAR(bucket.Level(start), -30, 1e-9);
  EXPECT_EQ(bucket.Until(1, start), seconds(31));
  EXPECT_FALSE(bucket.TryTake(1, start + seconds(30)));
  EXPECT_TRUE(bucket.TryTake(1, start + seconds(31)));
  bucket.Charge(-1000, start + seconds(31));
  EXPECT_EQ(bucket.Level(start + seconds(31)), 60) << "never more than a minute's worth";
}

TEST(TokenBucket, AnotherRateKeepsWhatWasUsed) {
  const TimePoint start{};
  TokenBucket bucket(60, start);
  bucket.Charge(50, start);
  bucket.SetRate(100, start);
  EXPECT_NEAR(bucket.Level(start), 50, 1e-9);
  bucket.SetRate(20, start);
  EXPECT_NEAR(bucket.Level(start), -30, 1e-9);
}

TEST(TokenBucket, HugeAmountsDoNotOverflow) {
  const TimePoint start{};
  TokenBucket bucket(1, start);
  bucket.Charge(INT64_MAX / 2, start);
  bucket.Charge(INT64_MAX / 2, start);
  EXPECT_EQ(bucket.Until(1, start), hours(24 * 365));
}

TEST(KeyUsage, RequestsBeyondTheRateAreRefusedUntilTheyRefill) {
  Limited limited({.requests_per_minute = 3});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(limited.usage.CountRequest().has_value());
  const auto refusal = limited.usage.CountRequest();
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->http_status, 429);
  EXPECT_EQ(refusal->code, "rate_limit_exceeded");
  EXPECT_EQ(refusal->type, "requests");
  EXPECT_THAT(refusal->message, HasSubstr("alice"));
  EXPECT_EQ(refusal->retry_after, seconds(20));
  limited.clock.now += refusal->retry_after;
  EXPECT_FALSE(limited.usage.CountRequest().has_value()) << "Retry-After is long enough";
  EXPECT_TRUE(limited.usage.CountRequest().has_value());
  EXPECT_EQ(limited.usage.counters().requests, 6);
  EXPECT_EQ(limited.usage.counters().refused, 2);
}

TEST(KeyUsage, TokensArePromptsAtOnceAndAnswersAsTheyCome) {
  Limited limited({.tokens_per_minute = 600});
  EXPECT_FALSE(limited.usage.Begin(100).has_value());
  EXPECT_EQ(limited.Header("x-ratelimit-remaining-tokens"), "500");
  limited.usage.ChargeOutput(700);
  EXPECT_EQ(limited.Header("x-ratelimit-remaining-tokens"), "0");
  limited.usage.End();
  const auto refusal = limited.usage.Begin(10);
  ASSERT_TRUE(refusal.has_value()) << "200 are owed";
  EXPECT_EQ(refusal->type, "tokens");
  EXPECT_EQ(refusal->retry_after, seconds(21));
  limited.clock.now += seconds(21);
  EXPECT_FALSE(limited.usage.Begin(10).has_value());
  EXPECT_EQ(limited.usage.counters().prompt_tokens, 110);
  EXPECT_EQ(limited.usage.counters().completion_tokens, 700);
}

TEST(KeyUsage, ARefusedOneTookNothingAndAnUnusedPromptComesBack) {
  Limited limited({.tokens_per_minute = 600, .concurrency = 1});
  EXPECT_FALSE(limited.usage.Begin(400).has_value());
  EXPECT_TRUE(limited.usage.Begin(10).has_value());
  EXPECT_EQ(limited.Header("x-ratelimit-remaining-tokens"), "200");
  limited.usage.End(400);
  EXPECT_EQ(limited.Header("x-ratelimit-remaining-tokens"), "600");
  EXPECT_EQ(limited.usage.counters().prompt_tokens, 0);
  EXPECT_EQ(limited.usage.counters().open, 0);
}

TEST(KeyUsage, APromptThatNeverFitsIsNotToldToWait) {
  Limited limited({.tokens_per_minute = 600});
  EXPECT_FALSE(limited.usage.Begin(600).has_value());
  const auto refusal = limited.usage.Begin(601);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->http_status, 400);
  EXPECT_EQ(refusal->retry_after, seconds(0));
  EXPECT_THAT(refusal->message, HasSubstr("601"));
  EXPECT_THAT(refusal->message, HasSubstr("600"));
}

TEST(KeyUsage, ConcurrencyIsBoundedAtNAndFreedByEnd) {
  Limited limited({.concurrency = 2});
  EXPECT_FALSE(limited.usage.Begin(1).has_value());
  EXPECT_FALSE(limited.usage.Begin(1).has_value());
  const auto refusal = limited.usage.Begin(1);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->http_status, 429);
  EXPECT_EQ(refusal->retry_after, seconds(1));
  limited.usage.End();
  EXPECT_FALSE(limited.usage.Begin(1).has_value());
}

TEST(KeyUsage, HeadersTellLimitRestAndReset) {
  Limited limited({.requests_per_minute = 60, .tokens_per_minute = 6000});
  EXPECT_EQ(limited.Header("x-ratelimit-limit-requests"), "60");
  EXPECT_EQ(limited.Header("x-ratelimit-reset-requests"), "0s");
  EXPECT_FALSE(limited.usage.CountRequest().has_value());
  EXPECT_EQ(limited.Header("x-ratelimit-remaining-requests"), "59");
  EXPECT_EQ(limited.Header("x-ratelimit-reset-requests"), "1s");
  EXPECT_FALSE(limited.usage.Begin(864).has_value());
  EXPECT_EQ(limited.Header("x-ratelimit-limit-tokens"), "6000");
  EXPECT_EQ(limited.Header("x-ratelimit-reset-tokens"), "8.64s");
  EXPECT_EQ(Limited({}).Header("x-ratelimit-limit-requests"), "none");
  EXPECT_EQ(FormatReset(milliseconds(20)), "20ms");
  EXPECT_EQ(FormatReset(Duration(1)), "1ms");
  EXPECT_EQ(FormatReset(seconds(360)), "6m0s");
  EXPECT_EQ(FormatReset(milliseconds(59'999)), "59.999s");
  EXPECT_EQ(FormatReset(milliseconds(60'001)), "1m1s");
  EXPECT_EQ(FormatReset(hours(2) + seconds(5)), "2h0m5s");
}

TEST(KeyUsage, AReloadGivesNobodyAFreshAllowance) {
  Limited limited({.requests_per_minute = 2, .tokens_per_minute = 100});
  EXPECT_FALSE(limited.usage.CountRequest().has_value());
  EXPECT_FALSE(limited.usage.CountRequest().has_value());
  limited.usage.SetKey(KeyWith({.requests_per_minute = 2}));
  EXPECT_TRUE(limited.usage.CountRequest().has_value());
  EXPECT_EQ(limited.Header("x-ratelimit-limit-tokens"), "none");
  limited.usage.SetKey(KeyWith({.requests_per_minute = 3}));
  EXPECT_FALSE(limited.usage.CountRequest().has_value()) << "one more than before";
}

}  // namespace
}  // namespace tessera::access
