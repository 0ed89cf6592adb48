// SPDX-License-Identifier: Apache-2.0
#include "model/generation_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tessera::model {
namespace {

/// Keys of generation_config.json without effect on the text, or read elsewhere.
constexpr std::string_view kSilent[] = {
    "_from_model_config",
    "transformers_version",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "max_length",
    "max_new_tokens",
    "min_length",
    "use_cache",
    "cache_implementation",
    "trust_remote_code",
    "chat_format",
    "max_window_size",
    "return_dict_in_generate",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "num_beams",
    "num_return_sequences",
    "_commit_hash",
};

/// Nothing, with a warning, for a number outside [low, high].
Result<std::optional<double>> ReadNumber(const json::Object& object, std::string_view key,
                                         double low, double high,
                                         std::vector<std::string>& warnings) {
  if (json::Find(object, key) == nullptr) return std::nullopt;
  TESSERA_ASSIGN_OR_RETURN(const double value, json::NeedDouble(object, key));
  if (value >= low && value <= high) return value;
  warnings.push_back(fmt::format("generation_config.json: '{}' is {}, outside {} to {}; ignored",
                                 key, value, low, high));
  return std::nullopt;
}

constexpr double kMaxTemperature = 100;
constexpr double kMaxTopK = 1 << 24;

}  // namespace

Result<GenerationDefaults> ReadHfGeneration(const json::Object& object,
                                            std::vector<std::string>& warnings) {
  GenerationDefaults d;
  if (json::Find(object, "do_sample") != nullptr) {
    TESSERA_ASSIGN_OR_RETURN(d.do_sample, json::GetBool(object, "do_sample", false));
  }
  TESSERA_ASSIGN_OR_RETURN(d.temperature,
                           ReadNumber(object, "temperature", 0, kMaxTemperature, warnings));
  TESSERA_ASSIGN_OR_RETURN(d.top_p, ReadNumber(object, "top_p", 0, 1, warnings));
  TESSERA_ASSIGN_OR_RETURN(d.min_p, ReadNumber(object, "min_p", 0, 1, warnings));
  TESSERA_ASSIGN_OR_RETURN(d.repetition_penalty,
                           ReadNumber(object, "repetition_penalty", 0, 100, warnings));
  TESSERA_ASSIGN_OR_RETURN(const auto top_k, ReadNumber(object, "top_k", 0, kMaxTopK, warnings));
  if (top_k) d.top_k = static_cast<int64_t>(*top_k);
  static constexpr std::string_view kRead[] = {"do_sample", "temperature", "top_p",
                                               "min_p",     "top_k",       "repetition_penalty"};
  for (const auto& [key, value] : object) {
    const std::string_view name(key.data(), key.size());
    const bool known = std::find(std::begin(kRead), std::end(kRead), name) != std::end(kRead) ||
                       std::find(std::begin(kSilent), std::end(kSilent), name) != std::end(kSilent);
    if (known || value.is_null()) continue;
    warnings.push_back(fmt::format("generation_config.json: '{}' is not applied", name));
  }
  return d;
}

Result<GenerationDefaults> ReadGgufGeneration(const formats::Metadata& metadata) {
  GenerationDefaults d;
  const auto read = [&](std::string_view name) -> Result<std::optional<double>> {
    const std::string key = fmt::format("general.sampling.{}", name);
    if (metadata.Find(key) == nullptr) return std::nullopt;
    TESSERA_ASSIGN_OR_RETURN(const double value, metadata.Number(key));
    if (std::isfinite(value) && value >= 0 && value <= kMaxTopK) return value;
    return Fail(InvalidArgument(fmt::format("'{}' is {}, expected a number >= 0", key, value)));
  };
  TESSERA_ASSIGN_OR_RETURN(d.temperature, read("temp"));
  TESSERA_ASSIGN_OR_RETURN(d.top_p, read("top_p"));
  TESSERA_ASSIGN_OR_RETURN(d.min_p, read("min_p"));
  TESSERA_ASSIGN_OR_RETURN(d.repetition_penalty, read("penalty_repeat"));
  TESSERA_ASSIGN_OR_RETURN(const std::optional<double> top_k, read("top_k"));
  if (top_k) d.top_k = static_cast<int64_t>(*top_k);
  return d;
}

}  // namespace tessera::model
