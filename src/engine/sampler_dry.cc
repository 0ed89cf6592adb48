// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler_dry.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace tessera::engine {
namespace {

/// Large enough to rule a token out, small enough that sums stay finite.
constexpr double kPenaltyMax = 1e30;

bool IsBreaker(const DryParams& dry, TokenId id) {
  const auto index = static_cast<size_t>(id);
  return dry.breakers != nullptr && index < dry.breakers->size() && (*dry.breakers)[index];
}

/// The end of `tokens` that a repetition may lie in, backwards.
std::vector<TokenId> Backwards(const DryParams& dry, std::span<const TokenId> tokens) {
  if (dry.last_tokens > 0 && dry.last_tokens < std::ssize(tokens))
    tokens = tokens.last(static_cast<size_t>(dry.last_tokens));
  return {tokens.rbegin(), tokens.rend()};
}

/// z[i]: how many elements from i on equal those from 0 on, at most `limit`.
std::vector<size_t> ZValues(std::span<const TokenId> s, size_t limit) {
  std::vector<size_t> z(s.size(), 0);
  size_t begin = 0, end = 0;  // The match [begin, end) that reaches furthest.
  for (size_t i = 1; i < s.size(); ++i) {
    if (i < end) z[i] = std::min(end - i, z[i - begin]);
    while (i + z[i] < s.size() && z[i] < limit && s[z[i]] == s[i + z[i]]) ++z[i];
    if (i + z[i] > end) {
      begin = i;
      end = i + z[i];
    }
  }
  return z;
}

}  // namespace

std::vector<std::pair<TokenId, double>> DryPenalties(const DryParams& dry,
                                                     std::span<const TokenId> tokens) {
  const std::vector<TokenId> back = Backwards(dry, tokens);
  // What repeats is a beginning of `back`, and no breaker is in it.
  const auto breaker =
      std::ranges::find_if(back, [&](TokenId id) { return IsBreaker(dry, id); }) - back.begin();
  const auto limit = static_cast<size_t>(breaker);
  if (limit < static_cast<size_t>(dry.allowed_length)) return {};
  const std::vector<size_t> z = ZValues(back, limit);
  std::unordered_map<TokenId, size_t> longest;
  for (size_t i = 1; i < back.size(); ++i) {
    if (z[i] < static_cast<size_t>(dry.allowed_length)) continue;
    const TokenId next = back[i - 1];  // What followed that occurrence.
    if (IsBreaker(dry, next)) continue;
    size_t& length = longest[next];
    length = std::max(length, z[i]);
  }
  std::vector<std::pair<TokenId, double>> penalties;
  for (const auto& [id, length] : longest) {
    const double excess = static_cast<double>(length) - static_cast<double>(dry.allowed_length);
    penalties.emplace_back(id, std::min(dry.multiplier * std::pow(dry.base, excess), kPenaltyMax));
  }
  return penalties;
}

}  // namespace tessera::engine
