// SPDX-License-Identifier: Apache-2.0
#include "server/openai/completion_request.h"

#include <fmt/format.h>

#include "server/limits.h"

namespace tessera::server::openai {
namespace {

ApiError BadPrompt(std::string message) {
  return BadField("prompt", std::move(message));
}

class PromptReader {
 public:
  PromptReader(const ServedModel& model, bool add_special, bool need_text)
      : model_(model), add_special_(add_special), need_text_(need_text) {}

  ApiResult<std::vector<Prompt>> Read(const json::Value& value) {
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
  static ApiResult<std::vector<Prompt>> One(ApiResult<Prompt> prompt) {
    if (!prompt.has_value()) return std::unexpected(std::move(prompt).error());
    std::vector<Prompt> prompts;
    prompts.push_back(*std::move(prompt));
    return prompts;
  }

  ApiResult<std::vector<Prompt>> Many(const json::Array& array) const {
    std::vector<Prompt> prompts;
    for (const json::Value& entry : array) {
      if (!entry.is_string() && !entry.is_array())
        return std::unexpected(BadPrompt(
            fmt::format("prompt has an entry of type {}, expected strings or arrays of token ids",
                        json::KindName(entry))));
      ApiResult<Prompt> prompt = entry.is_string() ? FromText(entry) : FromIds(entry.get_array());
      if (!prompt.has_value()) return std::unexpected(std::move(prompt).error());
      prompts.push_back(*std::move(prompt));
    }
    return prompts;
  }

  ApiResult<Prompt> FromText(const json::Value& value) const {
    const std::string_view text = value.get_string();
    auto ids = model_.tokenizer->Encode(text, {.add_special = add_special_, .parse_special = true});
    if (!ids.has_value()) return std::unexpected(FromStatus(ids.error(), "prompt"));
    return NotEmpty({std::string(need_text_ ? text : ""), *std::move(ids)});
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
    return NotEmpty({std::move(text), *std::move(ids)});
  }

  static ApiResult<Prompt> NotEmpty(Prompt prompt) {
    if (prompt.ids.empty())
      return std::unexpected(BadPrompt("prompt is empty, expected at least one token"));
    return prompt;
  }

  const ServedModel& model_;
  const bool add_special_;
  const bool need_text_;
};

}  // namespace

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
  if (request.echo && request.fields.top_logprobs >= 0)
    return std::unexpected(
        BadField("echo", "echo together with logprobs is not supported by this server yet"));
  const json::Value* prompt = json::Find(object, "prompt");
  if (prompt == nullptr) return std::unexpected(BadPrompt("the field prompt is missing"));
  PromptReader reader(model, BoolOr(object, "add_special_tokens", true), request.echo);
  auto prompts = reader.Read(*prompt);
  if (!prompts.has_value()) return std::unexpected(std::move(prompts).error());
  request.prompts = *std::move(prompts);
  if (request.prompts.size() * static_cast<size_t>(request.fields.n) > kChoicesMax)
    return std::unexpected(
        BadField("n", fmt::format("{} prompts times n = {} are more than {} answers",
                                  request.prompts.size(), request.fields.n, kChoicesMax)));
  return request;
}

std::optional<ApiError> CheckLength(int64_t prompt_tokens, std::optional<int64_t> max_tokens,
                                    int64_t max_model_len, std::string_view field) {
  ApiError error = BadField(field, {});
  error.code = "context_length_exceeded";
  if (prompt_tokens >= max_model_len) {
    error.message = fmt::format(
        "{} has {} tokens; this model's context has {} tokens, one of them for the answer: shorten "
        "it",
        field, prompt_tokens, max_model_len);
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
