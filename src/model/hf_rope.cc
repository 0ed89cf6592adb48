// SPDX-License-Identifier: Apache-2.0
#include "model/hf_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/limits.h"
#include "model/rope.h"

namespace tessera::model {
namespace {

/// "rope_type", or its older spelling "type"; "default" when neither is there.
Result<std::string> ReadType(KeyReader& keys, std::string_view where) {
  TESSERA_ASSIGN_OR_RETURN(const std::string old_spelling, keys.String("type", ""));
  TESSERA_ASSIGN_OR_RETURN(const std::string type, keys.String("rope_type", old_spelling));
  if (!old_spelling.empty() && old_spelling != type) {
    return Fail(InvalidArgument(
        fmt::format("'{}' has type '{}' and rope_type '{}'", where, old_spelling, type)));
  }
  return type.empty() ? "default" : type;
}

Result<RopeScaling> ReadLlama3(KeyReader& keys) {
  Llama3RopeScaling s;
  TESSERA_ASSIGN_OR_RETURN(s.factor, keys.NeedDouble("factor"));
  TESSERA_ASSIGN_OR_RETURN(s.low_frequency_factor, keys.NeedDouble("low_freq_factor"));
  TESSERA_ASSIGN_OR_RETURN(s.high_frequency_factor, keys.NeedDouble("high_freq_factor"));
  TESSERA_ASSIGN_OR_RETURN(s.original_context, keys.NeedDouble("original_max_position_embeddings"));
  return s;
}

/// The factor on attention: given, or from `mscale` and `mscale_all_dim`, or the paper's.
Result<double> ReadYarnAttentionFactor(KeyReader& keys, double factor) {
  TESSERA_ASSIGN_OR_RETURN(const double mscale, keys.Double("mscale", 0));
  TESSERA_ASSIGN_OR_RETURN(const double mscale_all, keys.Double("mscale_all_dim", 0));
  // As in transformers: zero counts as not given, and one alone has no effect.
  const double fallback =
      mscale != 0 && mscale_all != 0
          ? YarnAttentionFactor(factor, mscale) / YarnAttentionFactor(factor, mscale_all)
          : YarnAttentionFactor(factor);
  return keys.Double("attention_factor", fallback);
}

Result<RopeScaling> ReadYarn(KeyReader& keys, int64_t& context_length) {
  YarnRopeScaling s;
  const auto context = static_cast<double>(context_length);
  TESSERA_ASSIGN_OR_RETURN(s.original_context,
                           keys.Double("original_max_position_embeddings", context));
  TESSERA_ASSIGN_OR_RETURN(s.factor, keys.Double("factor", context / s.original_context));
  TESSERA_ASSIGN_OR_RETURN(s.beta_fast, keys.Double("beta_fast", 32));
  TESSERA_ASSIGN_OR_RETURN(s.beta_slow, keys.Double("beta_slow", 1));
  TESSERA_ASSIGN_OR_RETURN(s.truncate, keys.Bool("truncate", true));
  TESSERA_ASSIGN_OR_RETURN(s.attention_factor, ReadYarnAttentionFactor(keys, s.factor));
  const double stretched = s.factor * s.original_context;
  // Compared this way round, so that a NaN or a huge product changes nothing here; CheckConfig
  // judges the numbers themselves.
  if (stretched > context && stretched <= static_cast<double>(kMaxContext)) {
    context_length = static_cast<int64_t>(stretched);
  }
  return s;
}

Result<RopeScaling> ReadScaling(const std::string& type, KeyReader& keys, int64_t& context_length,
                                std::string_view where) {
  if (type == "default") return NoRopeScaling{};
  if (type == "linear") {
    LinearRopeScaling linear;
    TESSERA_ASSIGN_OR_RETURN(linear.factor, keys.NeedDouble("factor"));
    return linear;
  }
  if (type == "llama3") return ReadLlama3(keys);
  if (type == "yarn") return ReadYarn(keys, context_length);
  return Fail(Unimplemented(fmt::format(
      "'{}' has type '{}'; supported are default, linear, llama3 and yarn", where, type)));
}

}  // namespace

Result<RopeConfig> ReadHfRope(const Family& family, KeyReader& config, int64_t head_dim,
                              int64_t& context_length) {
  RopeConfig rope{.theta = family.default_theta,
                  .rotary_dim = head_dim,
                  .style = graph::RopeStyle::kHalf,
                  .scaling = {}};
  TESSERA_ASSIGN_OR_RETURN(rope.theta, config.Double("rope_theta", family.default_theta));
  TESSERA_ASSIGN_OR_RETURN(const json::Object* const scaling, config.ObjectAt("rope_scaling"));
  TESSERA_ASSIGN_OR_RETURN(const json::Object* const newer, config.ObjectAt("rope_parameters"));
  if (scaling != nullptr && newer != nullptr) {
    return Fail(InvalidArgument("both 'rope_scaling' and 'rope_parameters' are given"));
  }
  const json::Object* const object = newer != nullptr ? newer : scaling;
  if (object == nullptr) return rope;
  const std::string_view where = newer != nullptr ? "rope_parameters" : "rope_scaling";
  KeyReader keys(*object, fmt::format("{}.", where));
  TESSERA_ASSIGN_OR_RETURN(rope.theta, keys.Double("rope_theta", rope.theta));
  TESSERA_RETURN_IF_ERROR(
      keys.MustEqual("partial_rotary_factor", "1", "the family rotates whole heads"));
  TESSERA_ASSIGN_OR_RETURN(const std::string type, ReadType(keys, where));
  TESSERA_ASSIGN_OR_RETURN(rope.scaling, ReadScaling(type, keys, context_length, where));
  constexpr std::string_view kHarmless[] = {"finetuned"};
  TESSERA_RETURN_IF_ERROR(keys.RefuseOthers(kHarmless));
  return rope;
}

}  // namespace tessera::model
