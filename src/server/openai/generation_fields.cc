// SPDX-License-Identifier: Apache-2.0
#include "server/openai/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/random.h"
#include "engine/limits.h"
#include "server/limits.h"
#include "server/openai/output_form.h"

namespace tessera::server::openai {
namespace {

using Problem = std::optional<ApiError>;

ApiError TooMany(std::string_view field, size_t count, int64_t limit) {
  return BadField(field,
                  fmt::format("{} has {} entries, expected at most {}", field, count, limit));
}

/// `sampling` holds the defaults of the model.
void ReadSampling(const json::Object& body, engine::SamplingParams* sampling) {
  const auto read = [&](std::string_view key, double* value) {
    *value = NumberOr(body, key, *value);
  };
  read("temperature", &sampling->temperature);
  read("top_p", &sampling->top_p);
  sampling->top_k = IntegerOr(body, "top_k", sampling->top_k);
  read("min_p", &sampling->min_p);
  read("typical_p", &sampling->typical_p);
  read("repetition_penalty", &sampling->repetition_penalty);
  read("frequency_penalty", &sampling->frequency_penalty);
  read("presence_penalty", &sampling->presence_penalty);
  read("xtc_probability", &sampling->xtc.probability);
  read("xtc_threshold", &sampling->xtc.threshold);
  // -1 asks for a drawn one at llama.cpp's and vLLM's servers, so clients send it for "any".
  const json::Value* seed = json::Find(body, "seed");
  const bool is_drawn = seed == nullptr || (seed->is_int64() && seed->get_int64() == -1);
  sampling->seed = is_drawn ? SystemRandom64() : static_cast<uint64_t>(IntegerOr(body, "seed", 0));
}

/// Clients of transformers say greedy with do_sample; it stands above every other field.
void ReadDoSample(const json::Object& body, GenerationFields* fields) {
  const json::Value* asked = json::Find(body, "do_sample");
  if (asked == nullptr) return;
  const bool has_temperature = json::Find(body, "temperature") != nullptr;
  const bool is_greedy = fields->sampling.temperature == 0;
  if (BoolOr(body, "do_sample", true)) {
    if (has_temperature && is_greedy)
      fields->warnings.push_back({"normalized", "do_sample",
                                  "do_sample is true, but temperature 0 is greedy: it was kept"});
    return;
  }
  if (has_temperature && !is_greedy)
    fields->warnings.push_back(
        {"normalized", "temperature", "do_sample is false: temperature was taken as 0"});
  fields->sampling.temperature = 0;
}

Problem ReadLogitBias(const json::Object& body, int64_t vocab_size,
                      engine::SamplingParams* sampling) {
  const json::Value* value = json::Find(body, "logit_bias");
  if (value == nullptr) return std::nullopt;
  const json::Object& object = value->get_object();
  if (object.size() > static_cast<size_t>(engine::kLogitBiasMax))
    return TooMany("logit_bias", object.size(), engine::kLogitBiasMax);
  for (const auto& [key, bias] : object) {
    engine::TokenId id = -1;
    const char* end = key.data() + key.size();
    const auto [stop, error] = std::from_chars(key.data(), end, id);
    if (error != std::errc() || stop != end || id < 0 || id >= vocab_size)
      return BadField(
          "logit_bias",
          fmt::format("logit_bias has the key \"{:.50}\", expected token ids from 0 to {}",
                      std::string_view(key), vocab_size - 1));
    if (!bias.is_number() || !(std::abs(bias.to_number<double>()) <= 100))
      return BadField(
          "logit_bias",
          fmt::format("logit_bias of token {} is {:.50}, expected a number from -100 to 100", id,
                      json::Serialize(bias)));
    sampling->logit_bias.emplace_back(id, bias.to_number<double>());
  }
  return std::nullopt;
}

ApiResult<std::vector<std::string>> DryBreakerStrings(const json::Object& body) {
  const json::Value* value = json::Find(body, "dry_sequence_breakers");
  if (value == nullptr)
    return std::vector<std::string>(DefaultDryBreakers().begin(), DefaultDryBreakers().end());
  const json::Array& array = value->get_array();
  if (array.size() > kDryBreakersMax)
    return std::unexpected(TooMany("dry_sequence_breakers", array.size(), kDryBreakersMax));
  std::vector<std::string> strings;
  for (const json::Value& entry : array) {
    const auto* text = entry.if_string();
    if (text == nullptr || text->empty() || text->size() > kDryBreakerBytesMax)
      return std::unexpected(
          BadField("dry_sequence_breakers",
                   fmt::format("dry_sequence_breakers has an entry that is no string of 1 to {} "
                               "bytes",
                               kDryBreakerBytesMax)));
    strings.emplace_back(*text);
  }
  return strings;
}

Problem ReadDry(const json::Object& body, const ServedModel& model, engine::DryParams* dry) {
  dry->multiplier = NumberOr(body, "dry_multiplier", dry->multiplier);
  dry->base = NumberOr(body, "dry_base", dry->base);
  dry->allowed_length = IntegerOr(body, "dry_allowed_length", dry->allowed_length);
  dry->last_tokens = IntegerOr(body, "dry_penalty_last_n", dry->last_tokens);
  auto strings = DryBreakerStrings(body);
  if (!strings.has_value()) return std::move(strings).error();
  if (dry->multiplier == 0) return std::nullopt;
  auto breakers = model.dry_breakers->Find(*model.tokenizer, *std::move(strings));
  if (!breakers.has_value()) return FromStatus(breakers.error(), "dry_sequence_breakers");
  dry->breakers = *std::move(breakers);
  return std::nullopt;
}

Problem AddStopString(const json::Value& value, std::vector<std::string>* stops) {
  const auto* text = value.if_string();
  if (text == nullptr)
    return BadField("stop", fmt::format("stop has an entry of type {}, expected strings",
                                        json::KindName(value)));
  if (text->empty() || text->size() > static_cast<size_t>(engine::kStopStringBytesMax))
    return BadField("stop", fmt::format("stop has a string of {} bytes, expected 1 to {}",
                                        text->size(), engine::kStopStringBytesMax));
  stops->emplace_back(*text);
  return std::nullopt;
}

Problem ReadStopStrings(const json::Object& body, std::vector<std::string>* stops) {
  const json::Value* value = json::Find(body, "stop");
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return AddStopString(*value, stops);
  const json::Array& array = value->get_array();
  if (array.size() > static_cast<size_t>(engine::kStopStringsMax))
    return TooMany("stop", array.size(), engine::kStopStringsMax);
  for (const json::Value& entry : array)
    if (Problem problem = AddStopString(entry, stops)) return problem;
  return std::nullopt;
}

Problem ReadStopIds(const json::Object& body, int64_t vocab_size,
                    std::vector<engine::TokenId>* ids) {
  const json::Value* value = json::Find(body, "stop_token_ids");
  if (value == nullptr) return std::nullopt;
  const json::Array& array = value->get_array();
  if (array.size() > static_cast<size_t>(engine::kStopTokenIdsMax))
    return TooMany("stop_token_ids", array.size(), engine::kStopTokenIdsMax);
  auto read = ReadTokenIds(array, "stop_token_ids", vocab_size);
  if (!read.has_value()) return std::move(read).error();
  *ids = *std::move(read);
  return std::nullopt;
}

Problem ReadLogprobs(const json::Object& body, unsigned api, GenerationFields* fields) {
  int* const top_logprobs = &fields->top_logprobs;
  fields->prompt_logprobs = static_cast<int>(IntegerOr(body, "prompt_logprobs", -1));
  if (fields->prompt_logprobs >= 0 && BoolOr(body, "stream", false))
    return BadField("prompt_logprobs",
                    "prompt_logprobs are not part of a stream; leave out stream");
  if (api == kCompletions) {
    *top_logprobs = static_cast<int>(IntegerOr(body, "logprobs", -1));
    return std::nullopt;
  }
  const bool wanted = BoolOr(body, "logprobs", false);
  if (!wanted && json::Find(body, "top_logprobs") != nullptr)
    return BadField("top_logprobs", "top_logprobs needs logprobs to be true");
  if (wanted) *top_logprobs = static_cast<int>(IntegerOr(body, "top_logprobs", 0));
  return std::nullopt;
}

Problem ReadStreaming(const json::Object& body, GenerationFields* fields) {
  fields->stream = BoolOr(body, "stream", false);
  const json::Value* options = json::Find(body, "stream_options");
  if (options == nullptr) return std::nullopt;
  if (!fields->stream) return BadField("stream_options", "stream_options needs stream to be true");
  using Option = std::pair<std::string_view, bool*>;
  const Option known[] = {{"include_usage", &fields->include_usage},
                          {"include_progress", &fields->include_progress},
                          {"resumable", &fields->is_resumable}};
  for (const auto& [key, value] : options->get_object()) {
    if (value.is_null() || key == "include_obfuscation") continue;
    const auto* option = std::ranges::find(known, std::string_view(key), &Option::first);
    if (option == std::end(known)) {
      fields->warnings.push_back(
          {"unknown_field", "stream_options",
           fmt::format("the field \"stream_options.{:.100}\" is not known and was ignored",
                       std::string_view(key))});
    } else if (!value.is_bool()) {
      return BadField("stream_options",
                      fmt::format("stream_options.{} is not true or false", option->first));
    } else {
      *option->second = value.get_bool();
    }
  }
  return std::nullopt;
}

/// Sampling values that mean nothing to a beam search, which draws nothing.
void WarnOfUnusedByBeams(const json::Object& body, std::vector<Warning>* warnings) {
  for (const char* name :
       {"temperature", "top_p", "top_k", "min_p", "typical_p", "xtc_probability", "do_sample"}) {
    const json::Value* value = json::Find(body, name);
    if (value == nullptr || (value->is_number() && value->to_number<double>() == 0)) continue;
    if (value->is_bool() && !value->get_bool()) continue;
    warnings->push_back(
        {"normalized", name, fmt::format("beam search draws nothing: {} has no effect", name)});
  }
}

/// num_beams as transformers has it; use_beam_search as vLLM, where n or best_of is the width.
Problem ReadBeams(const json::Object& body, GenerationFields* fields) {
  const json::Value* switched = json::Find(body, "use_beam_search");
  const bool is_named = json::Find(body, "num_beams") != nullptr;
  const bool is_asked = switched != nullptr && switched->get_bool();
  const int64_t best_of = IntegerOr(body, "best_of", fields->n);
  const int64_t width = IntegerOr(body, "num_beams", is_asked ? std::max(best_of, fields->n) : 1);
  if (is_named && switched != nullptr && is_asked != (width > 1))
    return BadField("num_beams", "num_beams and use_beam_search contradict each other");
  if (width == 1 && !is_asked) {
    for (const char* name : {"length_penalty", "early_stopping"})
      if (json::Find(body, name) != nullptr)
        fields->warnings.push_back(
            {"normalized", name, fmt::format("{} has no effect without num_beams", name)});
    return std::nullopt;
  }
  if (width > engine::kBeamsMax)
    return BadField("num_beams",
                    fmt::format("{} beams asked, expected at most {}", width, engine::kBeamsMax));
  if (fields->n > width)
    return BadField("n", fmt::format("n is {}, expected at most num_beams ({})", fields->n, width));
  if (is_named && json::Find(body, "best_of") != nullptr)
    return BadField("best_of", "best_of and num_beams cannot go together");
  if (!fields->cache_prompt)
    return BadField("cache_prompt", "beams share what they compute: leave cache_prompt out");
  engine::BeamParams& beams = fields->beams.emplace();
  beams.width = static_cast<int>(width);
  beams.length_penalty = NumberOr(body, "length_penalty", beams.length_penalty);
  beams.stops_early = BoolOr(body, "early_stopping", beams.stops_early);
  WarnOfUnusedByBeams(body, &fields->warnings);
  return std::nullopt;
}

Problem ReadMaxTokens(const json::Object& body, GenerationFields* fields) {
  const json::Value* older = json::Find(body, "max_tokens");
  const json::Value* newer = json::Find(body, "max_completion_tokens");
  if (older == nullptr && newer == nullptr) return std::nullopt;
  const int64_t value =
      IntegerOr(body, newer != nullptr ? "max_completion_tokens" : "max_tokens", 0);
  if (older != nullptr && newer != nullptr && IntegerOr(body, "max_tokens", 0) != value)
    return BadField("max_tokens", "max_tokens and max_completion_tokens differ; give one of them");
  fields->max_tokens = value;
  fields->min_tokens = IntegerOr(body, "min_tokens", 0);
  if (fields->min_tokens > value)
    return BadField("min_tokens", fmt::format("min_tokens is {}, expected at most max_tokens ({})",
                                              fields->min_tokens, value));
  return std::nullopt;
}

Problem ReadForm(const json::Object& body, const ServedModel& model, GenerationFields* fields) {
  auto form = ReadOutputForm(body, &fields->warnings);
  if (!form.has_value()) return std::move(form).error();
  if (!form->has_value()) return std::nullopt;
  auto grammar = CompileOutputForm(**form, model.grammars.get(), &fields->warnings);
  if (!grammar.has_value()) return std::move(grammar).error();
  fields->grammar = *std::move(grammar);
  return std::nullopt;
}

}  // namespace

ApiResult<CheckedBody> ReadBody(std::string_view text, unsigned api, const ServedModel& model) {
  return ReadBody(text, RequestFields(), api, (api & kBoth) != 0, model);
}

ApiResult<CheckedBody> ReadBody(std::string_view text, std::span<const Field> fields, unsigned api,
                                bool needs_model, const ServedModel& model) {
  json::Limits limits;
  limits.max_depth = kJsonDepthMax;
  limits.max_keys = kJsonKeysMax;
  auto value = json::Parse(text, limits, "request body");
  // Too deep or too many keys is the client's fault, not a matter of trying later.
  if (!value.has_value())
    return std::unexpected(ApiError{.http_status = 400,
                                    .message = value.error().ToString(),
                                    .type = "invalid_request_error",
                                    .param = {},
                                    .code = "invalid_json"});
  json::Object* object = value->if_object();
  if (object == nullptr)
    return std::unexpected(BadField(
        "",
        fmt::format("the request body is of type {}, expected an object", json::KindName(*value))));
  const json::Value* name = json::Find(*object, "model");
  if (name == nullptr && needs_model)
    return std::unexpected(BadField("model", "the field model is missing"));
  if (name != nullptr && name->is_string() && !IsNameOf(model, name->get_string()))
    return std::unexpected(ModelNotFound(name->get_string(), model.id));
  auto warnings = CheckFields(*object, fields, api);
  if (!warnings.has_value()) return std::unexpected(std::move(warnings).error());
  return CheckedBody{std::move(*object), *std::move(warnings)};
}

ApiResult<GenerationFields> ReadGenerationFields(const json::Object& body, unsigned api,
                                                 const ServedModel& model) {
  const int64_t vocab_size = model.tokenizer->vocab_size();
  GenerationFields fields;
  fields.sampling = engine::WithDefaults(model.defaults);
  ReadSampling(body, &fields.sampling);
  ReadDoSample(body, &fields);
  fields.min_tokens = IntegerOr(body, "min_tokens", 0);
  fields.ignore_eos = BoolOr(body, "ignore_eos", false);
  fields.include_stop = BoolOr(body, "include_stop_str_in_output", false);
  fields.skip_special = BoolOr(body, "skip_special_tokens", true);
  fields.cache_prompt = BoolOr(body, "cache_prompt", true);
  if (json::Find(body, "priority") != nullptr)
    fields.priority = static_cast<int32_t>(IntegerOr(body, "priority", 0));
  if (json::Find(body, "timeout") != nullptr)
    fields.timeout = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(NumberOr(body, "timeout", 0)));
  fields.n = IntegerOr(body, "n", 1);
  for (Problem problem :
       {ReadMaxTokens(body, &fields), ReadLogitBias(body, vocab_size, &fields.sampling),
        ReadStopStrings(body, &fields.stop_strings),
        ReadStopIds(body, vocab_size, &fields.stop_ids), ReadBeams(body, &fields),
        ReadDry(body, model, &fields.sampling.dry), ReadLogprobs(body, api, &fields),
        ReadStreaming(body, &fields), ReadForm(body, model, &fields)})
    if (problem.has_value()) return std::unexpected(*std::move(problem));
  return fields;
}

engine::StopParams MakeStopParams(const GenerationFields& fields, const ServedModel& model,
                                  int64_t max_tokens) {
  return {.max_tokens = max_tokens,
          .min_tokens = fields.min_tokens,
          .eos_ids = fields.ignore_eos ? std::vector<engine::TokenId>() : model.eos_ids,
          .stop_ids = fields.stop_ids};
}

ApiResult<std::vector<engine::TokenId>> ReadTokenIds(const json::Array& array,
                                                     std::string_view field, int64_t vocab_size) {
  std::vector<engine::TokenId> ids;
  ids.reserve(array.size());
  for (const json::Value& entry : array) {
    int64_t id = -1;
    if (!AsInteger(entry, &id) || id < 0 || id >= vocab_size)
      return std::unexpected(BadField(
          field, fmt::format("{} has the entry {:.50}, expected token ids from 0 to {}", field,
                             entry.is_structured() ? std::string(json::KindName(entry))
                                                   : json::Serialize(entry),
                             vocab_size - 1)));
    ids.push_back(static_cast<engine::TokenId>(id));
  }
  return ids;
}

}  // namespace tessera::server::openai
