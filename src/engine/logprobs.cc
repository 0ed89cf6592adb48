// SPDX-License-Identifier: Apache-2.0
#include "engine/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "engine/logit_kernels.h"

namespace tessera::engine {
namespace {

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
  const auto count = std::ssize(values);
  std::vector<float> block_max(static_cast<size_t>(kernels::LogitBlocks(count)));
  MachineKernels().block_max(values.data(), count, block_max.data());
  double max = -std::numeric_limits<double>::infinity();
  for (const float block : block_max)
    if (!std::isnan(max) && !(block <= max)) max = block;  // A NaN stays.
  if (!std::isfinite(max)) return max;
  std::vector<double> mass(block_max.size());
  // Blocks 60 and more below the maximum are beyond the precision of the sum.
  MachineKernels().softmax_mass({.x = values.data(),
                                 .block_max = block_max.data(),
                                 .count = count,
                                 .max = max,
                                 .scale = 1,
                                 .cut = 60,
                                 .mass = mass.data()});
  return max + std::log(std::accumulate(mass.begin(), mass.end(), 0.0));
}
double LogSumExp(std::span<const double> values) {
  const double max = *std::ranges::max_element(values);
  if (max == -std::numeric_limits<double>::infinity()) return max;
  double sum = 0;
  for (const double value : values) sum += std::exp(value - max);
  return max + std::log(sum);
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
