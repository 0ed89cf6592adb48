// SPDX-License-Identifier: Apache-2.0
#include "engine/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace tessera::engine {
namespace {

template <class T>
double LogSumExpOf(std::span<const T> values) {
  const auto max = static_cast<double>(*std::ranges::max_element(values));
  if (max == -std::numeric_limits<double>::infinity()) return max;
  double sum = 0;
  for (const T value : values) sum += std::exp(static_cast<double>(value) - max);
  return max + std::log(sum);
}

template <class T>
std::vector<TokenId> GreatestIdsOf(std::span<const T> values, size_t count) {
  count = std::min(count, values.size());
  const auto before = [values](TokenId a, TokenId b) {
    const T x = values[static_cast<size_t>(a)];
    const T y = values[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  // A heap with the least of the greatest on top: few values ever enter it.
  std::vector<TokenId> ids;
  for (size_t id = 0; id < count; ++id) ids.push_back(static_cast<TokenId>(id));
  std::ranges::make_heap(ids, before);
  for (size_t id = count; id < values.size() && count > 0; ++id) {
    if (!(values[id] > values[static_cast<size_t>(ids.front())])) continue;
    std::ranges::pop_heap(ids, before);
    ids.back() = static_cast<TokenId>(id);
    std::ranges::push_heap(ids, before);
  }
  std::ranges::sort_heap(ids, before);
  return ids;
}

}  // namespace

double LogSumExp(std::span<const float> values) {
  return LogSumExpOf(values);
}
double LogSumExp(std::span<const double> values) {
  return LogSumExpOf(values);
}
std::vector<TokenId> GreatestIds(std::span<const float> values, size_t count) {
  return GreatestIdsOf(values, count);
}
std::vector<TokenId> GreatestIds(std::span<const double> values, size_t count) {
  return GreatestIdsOf(values, count);
}

Logprobs ComputeLogprobs(std::span<const float> logits, TokenId chosen, int top) {
  TESSERA_CHECK(chosen >= 0 && static_cast<size_t>(chosen) < logits.size());
  const double log_sum = LogSumExp(logits);
  const auto logprob = [&](TokenId id) {
    return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(id)]) - log_sum);
  };
  const float value = logits[static_cast<size_t>(chosen)];
  int64_t likelier = 0;
  for (const float other : logits) likelier += other > value ? 1 : 0;
  Logprobs result{logprob(chosen), 1 + likelier, {}};
  for (const TokenId id : GreatestIds(logits, static_cast<size_t>(std::max(top, 0))))
    result.top.push_back({id, logprob(id)});
  return result;
}

}  // namespace tessera::engine
