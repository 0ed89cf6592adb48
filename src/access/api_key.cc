// SPDX-License-Identifier: Apache-2.0
#include "access/api_key.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>

#include "base/hash.h"
#include "base/random.h"

namespace tessera::access {
namespace {

constexpr std::array<std::string_view, kScopeCount> kScopeNames = {"inference", "metrics", "admin"};

/// All of `text` as digits.
std::optional<int> Digits(std::string_view text) {
  int value = 0;
  for (const char c : text)
    if (c < '0' || c > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

/// "12:34:56Z" -> seconds.
std::optional<int64_t> TimeOfDay(std::string_view text) {
  if (text.size() != 9 || text[2] != ':' || text[5] != ':' || text[8] != 'Z') return std::nullopt;
  const auto hour = Digits(text.substr(0, 2)), minute = Digits(text.substr(3, 2)),
             second = Digits(text.substr(6, 2));
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 59)
    return std::nullopt;
  return (*hour * 60 + *minute) * 60 + *second;
}

}  // namespace

std::string_view ScopeName(Scope scope) {
  return kScopeNames[static_cast<size_t>(scope)];
}

std::optional<Scope> ScopeNamed(std::string_view name) {
  for (size_t i = 0; i < kScopeNames.size(); ++i)
    if (kScopeNames[i] == name) return static_cast<Scope>(i);
  return std::nullopt;
}

std::string DigestOf(std::string_view key) {
  return Sha256Hex(AsBytes(key));
}

std::string MakeKey() {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string key = "tessera-";
  // 6 bits a character, 10 of a number; 43 of them are 258 bits.
  for (int i = 0; i < 43;) {
    uint64_t bits = SystemRandom64();
    for (int j = 0; j < 10 && i < 43; ++j, ++i, bits >>= 6) key += kAlphabet[bits & 63];
  }
  return key;
}

std::optional<int64_t> ParseUtcTime(std::string_view text) {
  if (text.size() < 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = Digits(text.substr(0, 4)), month = Digits(text.substr(5, 2)),
             day = Digits(text.substr(8, 2));
  if (!year || !month || !day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  text.remove_prefix(10);
  if (text.empty()) return days * 86400;
  if (text.front() != 'T') return std::nullopt;
  const auto time = TimeOfDay(text.substr(1));
  if (!time.has_value()) return std::nullopt;
  return days * 86400 + *time;
}

std::string FormatUtcTime(int64_t unix_seconds) {
  const std::chrono::sys_seconds time{std::chrono::seconds(unix_seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

}  // namespace tessera::access
