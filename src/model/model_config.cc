// SPDX-License-Identifier: Apache-2.0
#include "model/model_config.h"

#include <fmt/format.h>

#include <cmath>

#include "graph/limits.h"
#include "model/families.h"
#include "model/limits.h"

namespace tessera::model {
namespace {

Status Within(int64_t value, int64_t max, std::string_view field) {
  if (value >= 1 && value <= max) return {};
  return InvalidArgument(fmt::format("{} is {}, expected 1 to {}", field, value, max));
}

Status Positive(double value, std::string_view field) {
  if (std::isfinite(value) && value > 0) return {};
  return InvalidArgument(fmt::format("{} is {}, expected a positive number", field, value));
}

Status CheckAttention(const AttentionConfig& a, int64_t layers) {
  TESSERA_RETURN_IF_ERROR(Within(a.heads, kMaxHeads, "attention.heads"));
  TESSERA_RETURN_IF_ERROR(Within(a.kv_heads, kMaxHeads, "attention.kv_heads"));
  TESSERA_RETURN_IF_ERROR(Within(a.head_dim, kMaxWidth, "attention.head_dim"));
  if (a.heads % a.kv_heads != 0) {
    return InvalidArgument(fmt::format("attention.kv_heads {} does not divide attention.heads {}",
                                       a.kv_heads, a.heads));
  }
  TESSERA_RETURN_IF_ERROR(Positive(a.scale, "attention.scale"));
  if (a.softcap) TESSERA_RETURN_IF_ERROR(Positive(*a.softcap, "attention.softcap"));
  if (a.window) TESSERA_RETURN_IF_ERROR(Within(*a.window, kMaxContext, "attention.window"));
  const size_t flags = a.window ? static_cast<size_t>(layers) : 0;
  if (a.window_layers.size() != flags) {
    return InvalidArgument(fmt::format("attention.window_layers has {} entries, expected {}",
                                       a.window_layers.size(), flags));
  }
  return {};
}

Status CheckScaling(const NoRopeScaling&, const RopeConfig&) {
  return {};
}
Status CheckScaling(const LinearRopeScaling& s, const RopeConfig&) {
  return Positive(s.factor, "rope factor");
}
Status CheckScaling(const Llama3RopeScaling& s, const RopeConfig&) {
  TESSERA_RETURN_IF_ERROR(Positive(s.factor, "rope factor"));
  TESSERA_RETURN_IF_ERROR(Positive(s.low_frequency_factor, "rope low_freq_factor"));
  TESSERA_RETURN_IF_ERROR(Positive(s.original_context, "rope original context"));
  if (std::isfinite(s.high_frequency_factor) && s.high_frequency_factor > s.low_frequency_factor) {
    return {};
  }
  return InvalidArgument(fmt::format("rope high_freq_factor is {}, expected more than low {}",
                                     s.high_frequency_factor, s.low_frequency_factor));
}
Status CheckScaling(const YarnRopeScaling& s, const RopeConfig& rope) {
  TESSERA_RETURN_IF_ERROR(Positive(s.factor, "rope factor"));
  TESSERA_RETURN_IF_ERROR(Positive(s.original_context, "rope original context"));
  TESSERA_RETURN_IF_ERROR(Positive(s.beta_fast, "rope beta_fast"));
  TESSERA_RETURN_IF_ERROR(Positive(s.beta_slow, "rope beta_slow"));
  TESSERA_RETURN_IF_ERROR(Positive(s.attention_factor, "rope attention_factor"));
  if (rope.theta > 1) return {};
  return InvalidArgument(fmt::format("rope.theta is {}, yarn needs more than 1", rope.theta));
}
Status CheckScaling(const RopeDivisors& s, const RopeConfig& rope) {
  if (static_cast<int64_t>(s.divisors.size()) != rope.rotary_dim / 2) {
    return InvalidArgument(
        fmt::format("{} rope divisors, expected {}", s.divisors.size(), rope.rotary_dim / 2));
  }
  for (const double divisor : s.divisors) {
    TESSERA_RETURN_IF_ERROR(Positive(divisor, "a rope divisor"));
  }
  return {};
}

Status CheckRope(const RopeConfig& rope, int64_t head_dim) {
  TESSERA_RETURN_IF_ERROR(Positive(rope.theta, "rope.theta"));
  const int64_t max = std::min(head_dim, graph::kMaxRotaryDim);
  if (rope.rotary_dim < 2 || rope.rotary_dim % 2 != 0 || rope.rotary_dim > max) {
    return InvalidArgument(fmt::format(
        "rope.rotary_dim is {}, expected an even number from 2 to {}", rope.rotary_dim, max));
  }
  return std::visit([&](const auto& scaling) { return CheckScaling(scaling, rope); }, rope.scaling);
}

}  // namespace

Status CheckConfig(const ModelConfig& c) {
  if (FindFamily(c.family) == nullptr) {
    return InvalidArgument(
        fmt::format("family is '{}', expected one of {}", c.family, FamilyNames()));
  }
  TESSERA_RETURN_IF_ERROR(Within(c.layers, kMaxLayers, "layers"));
  TESSERA_RETURN_IF_ERROR(Within(c.hidden, kMaxWidth, "hidden"));
  TESSERA_RETURN_IF_ERROR(Within(c.vocab_size, kMaxVocabulary, "vocab_size"));
  TESSERA_RETURN_IF_ERROR(Within(c.context_length, kMaxContext, "context_length"));
  TESSERA_RETURN_IF_ERROR(Within(c.ffn.intermediate, kMaxWidth, "ffn.intermediate"));
  if (!std::isfinite(c.norm_eps) || c.norm_eps < 0) {
    return InvalidArgument(fmt::format("norm_eps is {}, expected a number >= 0", c.norm_eps));
  }
  TESSERA_RETURN_IF_ERROR(Positive(c.residual_scale, "residual_scale"));
  TESSERA_RETURN_IF_ERROR(Positive(c.logit_scale, "logit_scale"));
  TESSERA_RETURN_IF_ERROR(Positive(c.embedding.scale, "embedding.scale"));
  if (c.logit_softcap) TESSERA_RETURN_IF_ERROR(Positive(*c.logit_softcap, "logit_softcap"));
  TESSERA_RETURN_IF_ERROR(CheckAttention(c.attention, c.layers));
  return CheckRope(c.rope, c.attention.head_dim);
}

}  // namespace tessera::model
