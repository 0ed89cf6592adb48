// SPDX-License-Identifier: Apache-2.0
#include "server/openai/endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/best_of.h"
#include "server/event_stream.h"
#include "server/generation.h"
#include "server/limits.h"
#include "server/openai/answer.h"
#include "server/openai/chat_request.h"
#include "server/openai/choices.h"
#include "server/openai/completion_request.h"
#include "server/openai/responder.h"
#include "server/resume.h"
#include "server/start_generation.h"

namespace tessera::server::openai {
namespace {

void Refuse(const ApiError& error, const Reply& reply) {
  (void)reply.Send(ErrorResponse(error));
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

/// A responder, whole or as a stream, and the stream, if it is one.
struct Answering {
  std::unique_ptr<GenerationListener> listener;
  std::shared_ptr<EventStream> stream;
  std::string id;
};

Answering MakeResponder(const Context& context, std::unique_ptr<Answer> answer,
                        int64_t prompt_tokens, size_t choices, const GenerationFields& fields,
                        const Reply& reply) {
  Answering made{.listener = nullptr, .stream = nullptr, .id = answer->head().id};
  if (fields.stream) {
    made.stream =
        std::make_shared<EventStream>(reply, context.clock, fields.is_resumable ? made.id : "");
    made.listener = MakeStreamResponder(std::move(answer), prompt_tokens, choices, made.stream);
  } else {
    made.listener = MakeWholeResponder(std::move(answer), prompt_tokens, reply);
  }
  return made;
}

void Generate(const Context& context, std::vector<ChoiceSpec> choices, Answering answering,
              const Reply& reply) {
  const auto stream = answering.stream;
  if (stream != nullptr && stream->has_journal() && !context.streams->Keep(stream))
    return Refuse(
        FromStatus(ResourceExhausted(fmt::format("{} resumable streams are kept already; leave out "
                                                 "stream_options.resumable, or try again later",
                                                 kResumeStreamsMax))),
        reply);
  const auto error = StartGeneration(context, reply, {answering.id}, std::move(choices),
                                     std::move(answering.listener), answering.stream);
  if (!error.has_value()) return;
  context.streams->Drop(answering.id);
  Refuse(*error, reply);
}

/// The end of the calls that do not generate: `answer` with the warnings of `checked`.
net::Response AnswerWith(const Context& context, const CheckedBody& checked, json::Object answer) {
  if (const auto error = RefuseIfStrict(checked.body, checked.warnings))
    return ErrorResponse(*error);
  context.warnings->Add(checked.warnings);
  if (!checked.warnings.empty()) answer["warnings"] = WarningsBody(checked.warnings);
  return net::Response::Json(200, json::Serialize(answer));
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
  if (ResumeIfAsked(context, request, reply)) return;
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
    for (int64_t i = 0; i < parsed->best_of; ++i) {
      choices.push_back(MakeCompletionChoice(context, *parsed, p, max_tokens, stream++, arrival));
      choices.back().is_next_beam = fields.beams.has_value() && i > 0;
    }
  }
  auto answer =
      MakeCompletionAnswer(MakeHead(context, "cmpl-", fields), std::move(kept), parsed->echo);
  const size_t count = static_cast<size_t>(fields.n) * parsed->prompts.size();
  Answering answering =
      MakeResponder(context, std::move(answer), prompt_tokens, count, fields, reply);
  if (parsed->best_of > fields.n)
    answering.listener =
        MakeBestOf(std::move(answering.listener), parsed->prompts.size(),
                   static_cast<size_t>(parsed->best_of), static_cast<size_t>(fields.n));
  Generate(context, std::move(choices), std::move(answering), reply);
}

void HandleChat(const Context& context, const net::Request& request, const Reply& reply) {
  if (ResumeIfAsked(context, request, reply)) return;
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
  for (int64_t i = 0; i < fields.n; ++i) {
    choices.push_back(
        MakeChoice(context, fields, prompt, 0, max_tokens, static_cast<uint64_t>(i), arrival));
    choices.back().is_next_beam = fields.beams.has_value() && i > 0;
  }
  auto answer = MakeChatAnswer(MakeHead(context, "chatcmpl-", fields), choices.size(),
                               fields.message, prompt);
  Answering answering =
      MakeResponder(context, std::move(answer), Length(prompt), choices.size(), fields, reply);
  Generate(context, std::move(choices), std::move(answering), reply);
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
  json::Object answer{{"count", ids.size()},
                      {"max_model_len", context.engine->max_sequence_tokens()},
                      {"tokens", json::Array(ids.begin(), ids.end())}};
  return AnswerWith(context, *checked, std::move(answer));
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
  return AnswerWith(context, *checked, {{"prompt", *text}});
}

net::Response HandleApplyTemplate(const Context& context, const net::Request& request) {
  auto checked = ReadBody(request.body, kApplyTemplate, context.model);
  if (!checked.has_value()) return ErrorResponse(checked.error());
  const auto chat = ReadChatPrompt(checked->body, context.model, context.specials,
                                   context.clock->UnixSeconds(), &checked->warnings);
  if (!chat.has_value()) return ErrorResponse(chat.error());
  return AnswerWith(context, *checked, {{"prompt", chat->text}});
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
