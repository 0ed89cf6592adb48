// SPDX-License-Identifier: Apache-2.0
#include "server/openai/endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/best_of.h"
#include "server/generation.h"
#include "server/openai/answer.h"
#include "server/openai/chat_request.h"
#include "server/openai/completion_request.h"
#include "server/openai/responder.h"

namespace tessera::server::openai {
namespace {

AnswerHead MakeHead(const Context& context, std::string_view prefix,
                    const GenerationFields& fields) {
  return {.id = MakeId(prefix),
          .created = context.clock->UnixSeconds(),
          .model = context.model.id,
          .fingerprint = context.model.fingerprint,
          .warnings = fields.warnings,
          .include_usage = fields.include_usage,
          .tokenizer = context.model.tokenizer,
          .top_logprobs = fields.top_logprobs,
          .prompt_logprobs = fields.prompt_logprobs};
}

ChoiceSpec MakeChoice(const Context& context, const GenerationFields& fields,
                      const std::vector<engine::TokenId>& prompt, size_t prompt_index,
                      int64_t max_tokens, uint64_t stream, TimePoint arrival) {
  engine::Request request;
  request.prompt = prompt;
  request.sampling = fields.sampling;
  request.sampling.stream = stream;
  request.stop = MakeStopParams(fields, context.model, max_tokens);
  request.top_logprobs = fields.top_logprobs;
  request.prompt_logprobs = fields.prompt_logprobs;
  request.cache_prompt = fields.cache_prompt;
  request.arrival = arrival;
  const size_t tail = std::min(prompt.size(), kPromptTail);
  auto processor = std::make_unique<engine::OutputProcessor>(
      context.model.make_detokenizer(fields.skip_special),
      engine::OutputOptions{.stop_strings = fields.stop_strings,
                            .include_stop = fields.include_stop,
                            .min_tokens = fields.min_tokens,
                            .place_end = fields.place_end},
      std::span(prompt).last(tail));
  return {std::move(request), std::move(processor), prompt_index};
}

ChoiceSpec MakeCompletionChoice(const Context& context, const CompletionRequest& asked,
                                size_t prompt, int64_t max_tokens, uint64_t stream,
                                TimePoint arrival) {
  ChoiceSpec spec = MakeChoice(context, asked.fields, asked.prompts[prompt]->ids, prompt,
                               max_tokens, stream, arrival);
  spec.request.prompt_logprobs = asked.prompt_logprobs();
  // The best are found by their logprobs.
  if (asked.best_of > asked.fields.n)
    spec.request.top_logprobs = std::max(spec.request.top_logprobs, 0);
  return spec;
}

std::unique_ptr<GenerationListener> MakeResponder(std::unique_ptr<Answer> answer,
                                                  int64_t prompt_tokens, size_t choices,
                                                  bool stream, const Reply& reply) {
  return stream ? MakeStreamResponder(std::move(answer), prompt_tokens, choices, reply)
                : MakeWholeResponder(std::move(answer), prompt_tokens, reply);
}

void StartGeneration(const Context& context, std::vector<ChoiceSpec> choices,
                     std::unique_ptr<GenerationListener> listener, const Reply& reply) {
  auto generation =
      Generation::Start(context.engine, context.tasks, std::move(choices), std::move(listener));
  if (!generation.has_value()) {
    (void)reply.Send(ErrorResponse(FromStatus(generation.error())));
    return;
  }
  // Weak: the connection must not keep a finished generation alive.
  reply.OnDisconnect([weak = std::weak_ptr<Generation>(*generation)] {
    if (const auto alive = weak.lock()) alive->Cancel();
  });
}

void Refuse(const ApiError& error, const Reply& reply) {
  (void)reply.Send(ErrorResponse(error));
}

int64_t Length(const std::vector<engine::TokenId>& ids) {
  return static_cast<int64_t>(ids.size());
}

}  // namespace

std::optional<ApiError> CheckContentType(const net::Request& request) {
  const auto type = request.headers.Find("content-type");
  if (!type.has_value()) return std::nullopt;
  std::string media(type->substr(0, type->find(';')));
  std::erase_if(media, [](char c) { return c == ' ' || c == '\t'; });
  std::ranges::transform(media, media.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (media == "application/json" || media.ends_with("+json")) return std::nullopt;
  return ApiError{
      .http_status = 415,
      .message = fmt::format("the content type is {:.100}, expected application/json", media),
      .type = "invalid_request_error",
      .param = {},
      .code = "unsupported_media_type"};
}

void HandleCompletions(const Context& context, const net::Request& request, const Reply& reply) {
  const TimePoint arrival = context.clock->Now();
  auto parsed = ReadCompletionRequest(request.body, context.model);
  if (!parsed.has_value()) return Refuse(parsed.error(), reply);
  const GenerationFields& fields = parsed->fields;
  context.warnings->Add(fields.warnings);
  const int64_t max_model_len = context.engine->max_sequence_tokens();
  std::vector<ChoiceSpec> choices;
  std::vector<std::shared_ptr<const Prompt>> kept;  // Of each choice that is returned.
  int64_t prompt_tokens = 0;
  uint64_t stream = 0;
  for (size_t p = 0; p < parsed->prompts.size(); ++p) {
    const std::shared_ptr<const Prompt>& prompt = parsed->prompts[p];
    const int64_t length = Length(prompt->ids);
    if (auto error = CheckLength(length, fields.max_tokens, max_model_len, "prompt"))
      return Refuse(*error, reply);
    const int64_t max_tokens = fields.max_tokens.value_or(std::clamp<int64_t>(
        std::max(kCompletionMaxTokensDefault, fields.min_tokens), 1, max_model_len - length));
    prompt_tokens += length;
    kept.insert(kept.end(), static_cast<size_t>(fields.n), prompt);
    for (int64_t i = 0; i < parsed->best_of; ++i)
      choices.push_back(MakeCompletionChoice(context, *parsed, p, max_tokens, stream++, arrival));
  }
  auto answer =
      MakeCompletionAnswer(MakeHead(context, "cmpl-", fields), std::move(kept), parsed->echo);
  const size_t count = static_cast<size_t>(fields.n) * parsed->prompts.size();
  auto listener = MakeResponder(std::move(answer), prompt_tokens, count, fields.stream, reply);
  if (parsed->best_of > fields.n)
    listener = MakeBestOf(std::move(listener), parsed->prompts.size(),
                          static_cast<size_t>(parsed->best_of), static_cast<size_t>(fields.n));
  StartGeneration(context, std::move(choices), std::move(listener), reply);
}

void HandleChat(const Context& context, const net::Request& request, const Reply& reply) {
  const TimePoint arrival = context.clock->Now();
  auto parsed =
      ReadChatRequest(request.body, context.model, context.specials, context.clock->UnixSeconds());
  if (!parsed.has_value()) return Refuse(parsed.error(), reply);
  const GenerationFields& fields = parsed->fields;
  context.warnings->Add(fields.warnings);
  const std::vector<engine::TokenId>& prompt = parsed->prompt.ids;
  const int64_t max_model_len = context.engine->max_sequence_tokens();
  if (auto error = CheckLength(Length(prompt), fields.max_tokens, max_model_len, "messages"))
    return Refuse(*error, reply);
  const int64_t max_tokens = fields.max_tokens.value_or(max_model_len - Length(prompt));
  std::vector<ChoiceSpec> choices;
  for (int64_t i = 0; i < fields.n; ++i)
    choices.push_back(
        MakeChoice(context, fields, prompt, 0, max_tokens, static_cast<uint64_t>(i), arrival));
  auto answer = MakeChatAnswer(MakeHead(context, "chatcmpl-", fields), choices.size(), prompt);
  auto listener =
      MakeResponder(std::move(answer), Length(prompt), choices.size(), fields.stream, reply);
  StartGeneration(context, std::move(choices), std::move(listener), reply);
}

net::Response HandleTokenize(const Context& context, const net::Request& request) {
  auto checked = ReadBody(request.body, kTokenize, context.model);
  if (!checked.has_value()) return ErrorResponse(checked.error());
  const json::Object& body = checked->body;
  const json::Value* prompt = json::Find(body, "prompt");
  if ((prompt != nullptr) == (json::Find(body, "messages") != nullptr))
    return ErrorResponse(BadField("prompt", "give exactly one of prompt and messages"));
  std::vector<engine::TokenId> ids;
  if (prompt != nullptr) {
    auto encoded = context.model.tokenizer->Encode(
        prompt->get_string(),
        {.add_special = BoolOr(body, "add_special_tokens", true), .parse_special = true});
    if (!encoded.has_value()) return ErrorResponse(FromStatus(encoded.error(), "prompt"));
    ids = *std::move(encoded);
  } else {
    auto chat = ReadChatPrompt(body, context.model, context.specials, context.clock->UnixSeconds(),
                               &checked->warnings);
    if (!chat.has_value()) return ErrorResponse(chat.error());
    ids = std::move(chat->ids);
  }
  context.warnings->Add(checked->warnings);
  json::Object answer{{"count", ids.size()},
                      {"max_model_len", context.engine->max_sequence_tokens()},
                      {"tokens", json::Array(ids.begin(), ids.end())}};
  if (!checked->warnings.empty()) answer["warnings"] = WarningsBody(checked->warnings);
  return net::Response::Json(200, json::Serialize(answer));
}

net::Response HandleDetokenize(const Context& context, const net::Request& request) {
  auto checked = ReadBody(request.body, kDetokenize, context.model);
  if (!checked.has_value()) return ErrorResponse(checked.error());
  const json::Value* tokens = json::Find(checked->body, "tokens");
  if (tokens == nullptr) return ErrorResponse(BadField("tokens", "the field tokens is missing"));
  const text::Tokenizer& tokenizer = *context.model.tokenizer;
  auto ids = ReadTokenIds(tokens->get_array(), "tokens", tokenizer.vocab_size());
  if (!ids.has_value()) return ErrorResponse(ids.error());
  const auto text = tokenizer.Decode(*ids, /*skip_special=*/false);
  if (!text.has_value()) return ErrorResponse(FromStatus(text.error(), "tokens"));
  context.warnings->Add(checked->warnings);
  json::Object answer{{"prompt", *text}};
  if (!checked->warnings.empty()) answer["warnings"] = WarningsBody(checked->warnings);
  return net::Response::Json(200, json::Serialize(answer));
}

net::Response HandleTokenizerInfo(const Context& context) {
  const ServedModel& model = context.model;
  json::Object answer{{"bos_token", nullptr},
                      {"eos_token", nullptr},
                      {"pad_token", nullptr},
                      {"model_max_length", context.engine->max_sequence_tokens()},
                      {"chat_template", nullptr}};
  if (!model.eos_ids.empty())
    answer["eos_token"] = model.tokenizer->TokenText(model.eos_ids.front());
  for (const std::string_view name : {"bos_token", "eos_token", "pad_token"})
    if (const json::Value* token = json::Find(model.template_vars, name);
        token != nullptr && token->is_string())
      answer[name] = *token;
  if (model.chat_template != nullptr) answer["chat_template"] = model.chat_template->source();
  return net::Response::Json(200, json::Serialize(answer));
}

}  // namespace tessera::server::openai
