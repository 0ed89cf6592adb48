// SPDX-License-Identifier: Apache-2.0
#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tessera::model {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

void Apply(const NoRopeScaling&, const RopeConfig&, std::vector<double>&) {}

void Apply(const LinearRopeScaling& scaling, const RopeConfig&, std::vector<double>& frequency) {
  for (double& f : frequency) f /= scaling.factor;
}

void Apply(const Llama3RopeScaling& s, const RopeConfig&, std::vector<double>& frequency) {
  const double long_wave = s.original_context / s.low_frequency_factor;
  const double short_wave = s.original_context / s.high_frequency_factor;
  for (double& f : frequency) {
    const double wave = kTwoPi / f;
    if (wave < short_wave) continue;
    if (wave > long_wave) {
      f /= s.factor;
      continue;
    }
    const double blend = (s.original_context / wave - s.low_frequency_factor) /
                         (s.high_frequency_factor - s.low_frequency_factor);
    f = (1 - blend) * f / s.factor + blend * f;
  }
}

/// The (fractional) pair that turns `turns` times within the original context.
double PairWithTurns(double turns, const YarnRopeScaling& s, const RopeConfig& config) {
  return static_cast<double>(config.rotary_dim) * std::log(s.original_context / (turns * kTwoPi)) /
         (2 * std::log(config.theta));
}

void Apply(const YarnRopeScaling& s, const RopeConfig& config, std::vector<double>& frequency) {
  double low = PairWithTurns(s.beta_fast, s, config);
  double high = PairWithTurns(s.beta_slow, s, config);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(config.rotary_dim - 1));
  if (low == high) high += 0.001;  // As in the paper's code: no division by zero.
  for (size_t i = 0; i < frequency.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequency[i] = frequency[i] / s.factor * ramp + frequency[i] * (1 - ramp);
  }
}

void Apply(const RopeDivisors& s, const RopeConfig&, std::vector<double>& frequency) {
  TESSERA_CHECK(s.divisors.size() == frequency.size());
  for (size_t i = 0; i < frequency.size(); ++i) frequency[i] /= s.divisors[i];
}

}  // namespace

double YarnAttentionFactor(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

graph::RopeTable MakeRopeTable(const RopeConfig& config) {
  const auto pairs = static_cast<size_t>(config.rotary_dim / 2);
  graph::RopeTable table{.rotary_dim = config.rotary_dim,
                         .style = config.style,
                         .inverse_frequency = std::vector<double>(pairs),
                         .attention_factor = 1};
  for (size_t i = 0; i < pairs; ++i) {
    const double exponent = static_cast<double>(2 * i) / static_cast<double>(config.rotary_dim);
    table.inverse_frequency[i] = 1.0 / std::pow(config.theta, exponent);
  }
  std::visit([&](const auto& scaling) { Apply(scaling, config, table.inverse_frequency); },
             config.scaling);
  if (const auto* yarn = std::get_if<YarnRopeScaling>(&config.scaling)) {
    table.attention_factor = yarn->attention_factor;
  }
  return table;
}

}  // namespace tessera::model
