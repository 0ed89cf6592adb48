// SPDX-License-Identifier: Apache-2.0
#include "gateway/spec/resources.h"

#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace tessera::gateway {
namespace {

constexpr std::pair<std::string_view, double> kSuffixes[] = {
    {"", 1},        {"m", 1e-3},    {"k", 1e3},     {"M", 1e6},     {"G", 1e9},
    {"T", 1e12},    {"P", 1e15},    {"E", 1e18},    {"Ki", 0x1p10}, {"Mi", 0x1p20},
    {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60},
};

std::optional<double> Factor(std::string_view suffix) {
  for (const auto& [name, factor] : kSuffixes)
    if (name == suffix) return factor;
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> ParseQuantity(std::string_view text) {
  if (text.empty() || text.size() > 32) return std::nullopt;
  // from_chars would take "inf" and "nan"; a sign is no amount.
  if ((text.front() < '0' || text.front() > '9') && text.front() != '.') return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const auto factor = Factor(text.substr(static_cast<size_t>(end - text.data())));
  if (!factor.has_value()) return std::nullopt;
  const double units = number * *factor;
  if (!(units <= static_cast<double>(kQuantityMaxUnits))) return std::nullopt;
  return std::llround(units * 1000);
}

}  // namespace tessera::gateway
