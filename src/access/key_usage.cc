// SPDX-License-Identifier: Apache-2.0
#include "access/key_usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace tessera::access {
namespace {

void SetBucket(int64_t per_minute, TimePoint now, std::optional<TokenBucket>* bucket) {
  if (per_minute == 0) {
    bucket->reset();
  } else if (bucket->has_value()) {
    (*bucket)->SetRate(per_minute, now);
  } else {
    bucket->emplace(per_minute, now);
  }
}

/// Whole ones that are left.
int64_t Left(const TokenBucket& bucket, TimePoint now) {
  return static_cast<int64_t>(std::floor(std::max(0.0, bucket.Level(now) + 1e-6)));
}

void AddBucket(const TokenBucket& bucket, std::string_view what, TimePoint now,
               net::Headers* headers) {
  const auto add = [&](std::string_view part, const std::string& value) {
    headers->Set(fmt::format("x-ratelimit-{}-{}", part, what), value);
  };
  add("limit", std::to_string(bucket.per_minute()));
  add("remaining", std::to_string(Left(bucket, now)));
  add("reset", FormatReset(bucket.Until(static_cast<double>(bucket.per_minute()), now)));
}

}  // namespace

void KeyUsage::SetKey(const ApiKey& key) {
  const TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  name_ = key.name;
  concurrency_ = key.limits.concurrency;
  SetBucket(key.limits.requests_per_minute, now, &requests_);
  SetBucket(key.limits.tokens_per_minute, now, &tokens_);
}

Refusal KeyUsage::Refuse(std::string message, std::string type, Duration wait) {
  ++counters_.refused;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait);
  return {.message = std::move(message),
          .type = std::move(type),
          .code = "rate_limit_exceeded",
          .retry_after = std::max(seconds, std::chrono::seconds(1))};
}

std::optional<Refusal> KeyUsage::CountRequest() {
  const TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  ++counters_.requests;
  if (!requests_.has_value() || requests_->TryTake(1, now)) return std::nullopt;
  const Duration wait = requests_->Until(1, now);
  return Refuse(fmt::format("the API key '{}' has used up its {} requests a minute; try again in "
                            "{}",
                            name_, requests_->per_minute(), FormatReset(wait)),
                "requests", wait);
}

std::optional<Refusal> KeyUsage::Begin(int64_t prompt_tokens) {
  const TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  if (concurrency_ > 0 && counters_.open >= concurrency_)
    return Refuse(fmt::format("the API key '{}' has {} requests open, as many as it may; wait for "
                              "one to end",
                              name_, counters_.open),
                  "requests", Duration::zero());
  if (tokens_.has_value() && prompt_tokens > tokens_->per_minute()) {
    ++counters_.refused;
    // Waiting does not help.
    return Refusal{
        .http_status = 400,
        .message = fmt::format("the prompt has {} tokens, more than the {} a minute of the API "
                               "key '{}'; send a shorter one",
                               prompt_tokens, tokens_->per_minute(), name_),
        .type = "invalid_request_error",
        .code = "prompt_exceeds_rate_limit"};
  }
  if (tokens_.has_value()) {
    // With an allowance below zero even an empty prompt waits: its answer would be on credit.
    const int64_t needed = std::max<int64_t>(prompt_tokens, 1);
    if (const Duration wait = tokens_->Until(static_cast<double>(needed), now);
        wait > Duration::zero())
      return Refuse(fmt::format("the API key '{}' has {} of its {} tokens a minute left, the "
                                "prompt has {}; try again in {}",
                                name_, Left(*tokens_, now), tokens_->per_minute(), prompt_tokens,
                                FormatReset(wait)),
                    "tokens", wait);
    tokens_->Charge(prompt_tokens, now);
  }
  counters_.prompt_tokens += prompt_tokens;
  ++counters_.open;
  return std::nullopt;
}

void KeyUsage::ChargeOutput(int64_t tokens) {
  const TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  counters_.completion_tokens += tokens;
  if (tokens_.has_value()) tokens_->Charge(tokens, now);
}

void KeyUsage::End(int64_t refunded) {
  const TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  TESSERA_CHECK(counters_.open > 0);
  --counters_.open;
  counters_.prompt_tokens -= refunded;
  if (tokens_.has_value()) tokens_->Charge(-refunded, now);
}

void KeyUsage::AddHeaders(net::Headers* headers) const {
  const TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  if (requests_.has_value()) AddBucket(*requests_, "requests", now, headers);
  if (tokens_.has_value()) AddBucket(*tokens_, "tokens", now, headers);
}

KeyUsage::Counters KeyUsage::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

std::string FormatReset(Duration duration) {
  using std::chrono::milliseconds;
  const int64_t total = std::chrono::ceil<milliseconds>(duration).count();
  if (total < 1000) return total == 0 ? "0s" : fmt::format("{}ms", total);
  if (total < 60'000) return fmt::format("{}s", static_cast<double>(total) / 1000);
  const int64_t seconds = std::chrono::ceil<std::chrono::seconds>(duration).count();
  const int64_t hours = seconds / 3600, minutes = seconds / 60 % 60;
  return hours > 0 ? fmt::format("{}h{}m{}s", hours, minutes, seconds % 60)
                   : fmt::format("{}m{}s", minutes, seconds % 60);
}

}  // namespace tessera::access
