// SPDX-License-Identifier: Apache-2.0
#include "server/openai/completion_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/utf8.h"
#include "server/limits.h"
#include "server/openai/fim.h"

namespace tessera::server::openai {
namespace {

ApiError BadPrompt(std::string message) {
  return BadField("prompt", std::move(message));
}

/// Where the text of each token begins in `text`, which they spell but for special tokens that were
/// added or left out: these take no room.
Result<std::vector<int64_t>> Offsets(const ServedModel& model, const Prompt& prompt) {
  const auto detokenizer = model.make_detokenizer(/*skip_special=*/false);
  std::vector<int64_t> offsets;
  std::string_view rest = prompt.text;
  int64_t offset = 0;
  for (const engine::TokenId id : prompt.ids) {
    offsets.push_back(offset);
    TESSERA_ASSIGN_OR_RETURN(const std::string text, detokenizer->Push(id));
    if (!rest.starts_with(text)) continue;
    rest.remove_prefix(text.size());
    offset += CodePoints(text);
  }
  return offsets;
}

using Prompts = std::vector<std::shared_ptr<const Prompt>>;

/// What stands around a prompt whose gap is to be filled.
struct Gap {
  FimTokens tokens;
  std::vector<engine::TokenId> lead;
  std::vector<engine::TokenId> suffix;
};

class PromptReader {
 public:
  /// `gap` may be null.
  PromptReader(const ServedModel& model, bool add_special, bool need_text, bool need_offsets,
               const Gap* gap)
      : model_(model),
        add_special_(add_special),
        need_text_(need_text),
        need_offsets_(need_offsets),
        gap_(gap) {}

  ApiResult<Prompts> Read(const json::Value& value) {
    if (value.is_string()) return One(FromText(value));
    const json::Array* array = value.if_array();
    if (array == nullptr)
      return std::unexpected(BadPrompt(fmt::format(
          "prompt is of type {}, expected a string, an array of strings, of token ids, or "
          "of arrays of token ids",
          json::KindName(value))));
    if (array->empty())
      return std::unexpected(BadPrompt("prompt is empty, expected at least one token"));
    if (array->front().is_number()) return One(FromIds(*array));
    if (array->size() > kPromptsMax)
      return std::unexpected(BadPrompt(
          fmt::format("prompt has {} prompts, expected at most {}", array->size(), kPromptsMax)));
    return Many(*array);
  }

 private:
  ApiResult<Prompts> One(ApiResult<Prompt> prompt) const {
    Prompts prompts;
    if (auto error = Add(std::move(prompt), &prompts)) return std::unexpected(*std::move(error));
    return prompts;
  }

  ApiResult<Prompts> Many(const json::Array& array) const {
    Prompts prompts;
    for (const json::Value& entry : array) {
      if (!entry.is_string() && !entry.is_array())
        return std::unexpected(BadPrompt(
            fmt::format("prompt has an entry of type {}, expected strings or arrays of token ids",
                        json::KindName(entry))));
      ApiResult<Prompt> prompt = entry.is_string() ? FromText(entry) : FromIds(entry.get_array());
      if (auto error = Add(std::move(prompt), &prompts)) return std::unexpected(*std::move(error));
    }
    return prompts;
  }

  std::optional<ApiError> Add(ApiResult<Prompt> prompt, Prompts* prompts) const {
    if (!prompt.has_value()) return std::move(prompt).error();
    if (need_offsets_) {
      auto offsets = Offsets(model_, *prompt);
      if (!offsets.has_value()) return FromStatus(offsets.error(), "prompt");
      prompt->offsets = *std::move(offsets);
    }
    prompts->push_back(std::make_shared<const Prompt>(*std::move(prompt)));
    return std::nullopt;
  }

  ApiResult<Prompt> FromText(const json::Value& value) const {
    const std::string_view text = value.get_string();
    // Text around a gap is a file: what looks like a marker in it is not one.
    auto ids = model_.tokenizer->Encode(
        text, {.add_special = add_special_ && gap_ == nullptr, .parse_special = gap_ == nullptr});
    if (!ids.has_value()) return std::unexpected(FromStatus(ids.error(), "prompt"));
    return Finish({std::string(need_text_ ? text : ""), *std::move(ids)});
  }

  ApiResult<Prompt> FromIds(const json::Array& array) const {
    auto ids = ReadTokenIds(array, "prompt", model_.tokenizer->vocab_size());
    if (!ids.has_value()) return std::unexpected(std::move(ids).error());
    std::string text;
    if (need_text_) {
      auto decoded = model_.tokenizer->Decode(*ids, /*skip_special=*/true);
      if (!decoded.has_value()) return std::unexpected(FromStatus(decoded.error(), "prompt"));
      text = *std::move(decoded);
    }
    return Finish({std::move(text), *std::move(ids)});
  }

  ApiResult<Prompt> Finish(Prompt prompt) const {
    if (gap_ != nullptr)
      prompt.ids = MakeFimPrompt(gap_->tokens, gap_->lead, prompt.ids, gap_->suffix);
    if (prompt.ids.empty())
      return std::unexpected(BadPrompt("prompt is empty, expected at least one token"));
    return prompt;
  }

  const ServedModel& model_;
  const bool add_special_;
  const bool need_text_;
  const bool need_offsets_;
  const Gap* const gap_;
};

std::optional<ApiError> ReadAnswerCount(const json::Object& body, CompletionRequest* request) {
  const int64_t n = request->fields.n;
  // With beams best_of was their width.
  request->best_of = request->fields.beams.has_value() ? n : IntegerOr(body, "best_of", n);
  if (request->best_of < n)
    return BadField("best_of",
                    fmt::format("best_of is {}, expected at least n ({})", request->best_of, n));
  if (request->best_of > n && request->fields.stream)
    return BadField("best_of", "the best answers are known at the end; leave out stream");
  // Nothing is generated: there must be something else to answer with.
  if (request->fields.max_tokens == 0 && request->fields.beams.has_value())
    return BadField("max_tokens", "max_tokens is 0, expected at least 1 with num_beams");
  if (request->fields.max_tokens == 0 && !request->echo && request->fields.prompt_logprobs < 0)
    return BadField("max_tokens",
                    "max_tokens is 0, expected at least 1; 0 has a meaning with echo or "
                    "prompt_logprobs only");
  return std::nullopt;
}

/// Null where the request has no suffix.
ApiResult<std::unique_ptr<const Gap>> ReadGap(const json::Object& body, const ServedModel& model) {
  const json::Value* suffix = json::Find(body, "suffix");
  if (suffix == nullptr || suffix->get_string().empty()) return nullptr;
  auto tokens = FindFimTokens(*model.tokenizer);
  if (!tokens.has_value()) {
    ApiError error = BadField(
        "suffix",
        "suffix needs a model trained to fill in the middle; the vocabulary of this one has no "
        "tokens that mark prefix and suffix: leave suffix out, or serve such a model");
    error.code = "unsupported_parameter";
    return std::unexpected(std::move(error));
  }
  Gap gap{.tokens = *std::move(tokens), .lead = {}, .suffix = {}};
  auto ids =
      model.tokenizer->Encode(suffix->get_string(), {.add_special = false, .parse_special = false});
  if (!ids.has_value()) return std::unexpected(FromStatus(ids.error(), "suffix"));
  gap.suffix = *std::move(ids);
  if (BoolOr(body, "add_special_tokens", true)) {
    auto lead = model.tokenizer->Encode("", {.add_special = true, .parse_special = false});
    if (!lead.has_value()) return std::unexpected(FromStatus(lead.error(), "prompt"));
    gap.lead = *std::move(lead);
  }
  return std::make_unique<const Gap>(std::move(gap));
}

}  // namespace

int CompletionRequest::prompt_logprobs() const {
  int wanted = fields.prompt_logprobs;
  if (echo) wanted = std::max(wanted, fields.top_logprobs);
  // Without an answer the engine gives these or nothing.
  return fields.max_tokens == 0 ? std::max(wanted, 0) : wanted;
}

ApiResult<CompletionRequest> ReadCompletionRequest(std::string_view body,
                                                   const ServedModel& model) {
  auto checked = ReadBody(body, kCompletions, model);
  if (!checked.has_value()) return std::unexpected(std::move(checked).error());
  const json::Object& object = checked->body;
  auto fields = ReadGenerationFields(object, kCompletions, model);
  if (!fields.has_value()) return std::unexpected(std::move(fields).error());
  CompletionRequest request{
      .fields = *std::move(fields), .prompts = {}, .echo = BoolOr(object, "echo", false)};
  std::vector<Warning>& warnings = request.fields.warnings;
  warnings.insert(warnings.begin(), checked->warnings.begin(), checked->warnings.end());
  if (auto error = ReadAnswerCount(object, &request)) return std::unexpected(*std::move(error));
  // Logprobs of prompt and answer together: a client tells them apart by counting tokens.
  request.fields.place_end = request.echo && request.fields.top_logprobs >= 0;
  const json::Value* prompt = json::Find(object, "prompt");
  if (prompt == nullptr) return std::unexpected(BadPrompt("the field prompt is missing"));
  auto gap = ReadGap(object, model);
  if (!gap.has_value()) return std::unexpected(std::move(gap).error());
  if (*gap != nullptr) {
    std::vector<engine::TokenId>& stops = request.fields.stop_ids;
    stops.insert(stops.end(), (*gap)->tokens.ends.begin(), (*gap)->tokens.ends.end());
  }
  if (*gap != nullptr && request.fields.place_end)
    return std::unexpected(
        BadField("echo",
                 "echo, logprobs and suffix together are not supported: the tokens of a "
                 "prompt with a gap are not those of its text"));
  PromptReader reader(model, BoolOr(object, "add_special_tokens", true), request.echo,
                      /*need_offsets=*/request.fields.place_end, gap->get());
  auto prompts = reader.Read(*prompt);
  if (!prompts.has_value()) return std::unexpected(std::move(prompts).error());
  request.prompts = *std::move(prompts);
  if (request.prompts.size() * static_cast<size_t>(request.best_of) > kChoicesMax) {
    const std::string_view field = request.best_of > request.fields.n ? "best_of" : "n";
    return std::unexpected(
        BadField(field, fmt::format("{} prompts times {} = {} are more than {} answers",
                                    request.prompts.size(), field, request.best_of, kChoicesMax)));
  }
  if (auto error = RefuseIfStrict(object, warnings)) return std::unexpected(*std::move(error));
  return request;
}

ApiResult<Prompts> ReadPrompts(const json::Value& value, const ServedModel& model, bool add_special,
                               std::string_view field) {
  auto prompts = PromptReader(model, add_special, /*need_text=*/false, /*need_offsets=*/false,
                              /*gap=*/nullptr)
                     .Read(value);
  if (!prompts.has_value()) {
    // The reader speaks of prompts.
    constexpr std::string_view kName = "prompt";
    ApiError& error = prompts.error();
    error.param = field;
    if (error.message.starts_with(kName)) error.message.replace(0, kName.size(), field);
  }
  return prompts;
}

std::optional<ApiError> CheckLength(int64_t prompt_tokens, std::optional<int64_t> max_tokens,
                                    int64_t max_model_len, std::string_view field) {
  ApiError error = BadField(field, {});
  error.code = "context_length_exceeded";
  const int64_t answer_tokens = max_tokens == 0 ? 0 : 1;
  if (prompt_tokens > max_model_len - answer_tokens) {
    error.message = fmt::format(
        "{} has {} tokens; this model's context has {} tokens, {} of them for the answer: shorten "
        "it",
        field, prompt_tokens, max_model_len, answer_tokens == 0 ? "none" : "one");
    return error;
  }
  if (max_tokens.has_value() && *max_tokens > max_model_len - prompt_tokens) {
    error.message = fmt::format(
        "{} has {} tokens and max_tokens is {}; this model's context has {} tokens: shorten the "
        "one or "
        "lower the other",
        field, prompt_tokens, *max_tokens, max_model_len);
    return error;
  }
  return std::nullopt;
}

}  // namespace tessera::server::openai
