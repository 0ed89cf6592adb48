// SPDX-License-Identifier: Apache-2.0
#include "certify/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tensor/convert.h"

namespace tessera::certify {
namespace {

double LogSumExp(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - top);
  return top + std::log(sum);
}

float HalfAt(const std::byte* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return tensor::HalfToFloat(bits);
}

}  // namespace

double NegativeLogLikelihood(std::span<const float> logits, int32_t token) {
  return LogSumExp(logits) - double{logits[static_cast<size_t>(token)]};
}

void Comparison::AddPosition(std::span<const float> original, std::span<const float> program,
                             int32_t next) {
  TESSERA_CHECK(original.size() == program.size());
  const double original_sum = LogSumExp(original);
  const double program_sum = LogSumExp(program);
  for (size_t i = 0; i < original.size(); ++i) {
    const double log_p = double{original[i]} - original_sum;
    const double log_q = double{program[i]} - program_sum;
    kl_ += std::exp(log_p) * (log_p - log_q);
  }
  const auto at = static_cast<size_t>(next);
  original_nll_ += original_sum - double{original[at]};
  program_nll_ += program_sum - double{program[at]};
  same_top_ += std::max_element(original.begin(), original.end()) - original.begin() ==
               std::max_element(program.begin(), program.end()) - program.begin();
  ++positions_;
}

void Comparison::AddPage(std::span<const std::byte> original, std::span<const std::byte> program,
                         int64_t layers) {
  TESSERA_CHECK(original.size() == program.size());
  layers_.resize(static_cast<size_t>(layers));
  const size_t layer_bytes = original.size() / layers_.size();
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    Layer& sums = layers_[layer];
    for (size_t at = layer * layer_bytes; at < (layer + 1) * layer_bytes; at += 2) {
      const double value = HalfAt(&original[at]);
      const double difference = HalfAt(&program[at]) - value;
      sums.difference += difference * difference;
      sums.original += value * value;
    }
  }
}

bundle::Parity::Comparison Comparison::Finish() const {
  TESSERA_CHECK(positions_ > 0 && !layers_.empty());
  bundle::Parity::Comparison result;
  result.original_nll = original_nll_ / Count();
  // Rounding may leave a hair below zero where both are the same.
  result.mean_kl = std::isnan(kl_) ? kl_ : std::max(kl_ / Count(), 0.0);
  result.same_top1 = static_cast<double>(same_top_) / Count();
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const double error =
        layer.difference == 0 ? 0 : std::sqrt(layer.difference / std::max(layer.original, 1e-30));
    if (error <= result.worst_layer_error) continue;
    result.worst_layer = static_cast<int64_t>(i);
    result.worst_layer_error = error;
  }
  return result;
}

}  // namespace tessera::certify
