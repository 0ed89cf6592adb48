// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "server/chat/answer_parts.h"
#include "server/openai/answer.h"
#include "server/openai/generation_fields.h"
#include "server/openai/logprobs.h"

namespace tessera::server::openai {
namespace {

using chat::AnswerParts;
using Kind = AnswerParts::Part::Kind;

json::Object FunctionBody(std::string_view name, std::string_view arguments) {
  return {{"name", name}, {"arguments", arguments}};
}

json::Object MessageBody(const AnswerParts& parts, const MessageFields& fields) {
  const std::string content = parts.Joined(Kind::kText);
  json::Object body{{"role", "assistant"}, {"content", content}, {"refusal", nullptr}};
  if (fields.format.separates_reasoning && !fields.drops_reasoning) {
    const std::string reasoning = parts.Joined(Kind::kReasoning);
    body["reasoning_content"] = reasoning.empty() ? json::Value(nullptr) : json::Value(reasoning);
  }
  if (!parts.has_calls()) return body;
  if (content.empty()) body["content"] = nullptr;
  json::Array calls;
  for (const AnswerParts::Part& part : parts.parts()) {
    if (part.kind != Kind::kCall) continue;
    json::Object function = FunctionBody(part.name, part.text);
    if (fields.is_older) {
      body["function_call"] = std::move(function);
      return body;
    }
    calls.push_back({{"id", part.id}, {"type", "function"}, {"function", std::move(function)}});
  }
  body["tool_calls"] = std::move(calls);
  return body;
}

/// What a step adds, as the delta of a chunk.
json::Object DeltaOf(const AnswerParts::Part& part, const AnswerParts::Step& step,
                     const MessageFields& fields) {
  if (part.kind == Kind::kReasoning) return {{"reasoning_content", step.text}};
  if (part.kind == Kind::kText) return {{"content", step.text}};
  json::Object function =
      step.begins ? FunctionBody(part.name, step.text) : json::Object{{"arguments", step.text}};
  if (fields.is_older) return {{"function_call", std::move(function)}};
  json::Object call{{"index", part.call}};
  if (step.begins) {
    call["id"] = part.id;
    call["type"] = "function";
  }
  call["function"] = std::move(function);
  return {{"tool_calls", json::Array{std::move(call)}}};
}

class ChatAnswer : public Answer {
 public:
  ChatAnswer(AnswerHead head, size_t choices, const MessageFields& fields,
             std::vector<text::TokenId> prompt)
      : Answer(std::move(head)), prompt_(std::move(prompt)), fields_(fields) {
    for (size_t i = 0; i < choices; ++i)
      choices_.push_back({AnswerParts(fields_, "call_"), {}, {}});
  }

  void SetPrompt(size_t /*choice*/, engine::PromptLogprobs logprobs) override {
    prompt_logprobs_ = std::move(logprobs);  // The same for all choices.
  }

  void Collect(size_t choice, engine::OutputDelta delta) override {
    Collected& collected = choices_[choice];
    (void)collected.parts.Read(delta);
    for (engine::PlacedToken& token : delta.tokens) collected.tokens.push_back(std::move(token));
  }

  void End(size_t choice, engine::FinishReason reason) override {
    Collected& collected = choices_[choice];
    (void)collected.parts.ReadEnd();
    collected.finish = Finish(collected.parts, reason);
    WarnOfProblem(choice);
  }

  json::Object Whole(const Usage& usage) override {
    json::Object body = Body("chat.completion");
    json::Array choices;
    for (size_t i = 0; i < choices_.size(); ++i)
      choices.push_back({{"index", i},
                         {"message", MessageBody(choices_[i].parts, fields_)},
                         {"logprobs", Logprobs(choices_[i].tokens)},
                         {"finish_reason", choices_[i].finish}});
    body["choices"] = std::move(choices);
    Usage whole = usage;
    whole.reasoning_tokens = reasoning_tokens();
    body["usage"] = UsageBody(whole);
    if (head().prompt_logprobs >= 0)
      body["prompt_logprobs"] =
          PromptLogprobsBody(prompt_, prompt_logprobs_, head().prompt_logprobs, *head().tokenizer);
    AddWarnings(&body);
    return body;
  }

  std::vector<json::Object> Begin(size_t choice) override {
    return {Delta(choice, {{"role", "assistant"}, {"content", ""}}, {}, nullptr)};
  }

  std::vector<json::Object> Chunk(size_t choice, engine::OutputDelta delta) override {
    std::vector<json::Object> chunks;
    AnswerParts& parts = choices_[choice].parts;
    const std::vector<AnswerParts::Step> steps = parts.Read(delta);
    if (head().top_logprobs < 0) delta.tokens.clear();
    for (const AnswerParts::Step& step : steps) {
      // All of the text's tokens go with its first part.
      chunks.push_back(
          Delta(choice, DeltaOf(parts.parts()[step.part], step, fields_), delta.tokens, nullptr));
      delta.tokens.clear();
    }
    if (!delta.tokens.empty())
      chunks.push_back(Delta(choice, {{"content", ""}}, delta.tokens, nullptr));
    return chunks;
  }

  std::vector<json::Object> Rest(size_t choice) override {
    std::vector<json::Object> chunks;
    AnswerParts& parts = choices_[choice].parts;
    for (const AnswerParts::Step& step : parts.ReadEnd())
      chunks.push_back(
          Delta(choice, DeltaOf(parts.parts()[step.part], step, fields_), {}, nullptr));
    WarnOfProblem(choice);
    return chunks;
  }

  json::Object LastChunk(size_t choice, engine::FinishReason reason) override {
    return Delta(choice, json::Object(), {}, json::Value(Finish(choices_[choice].parts, reason)));
  }

  bool IsComplete(size_t choice) const override { return choices_[choice].parts.is_complete(); }

 protected:
  std::string_view chunk_object() const override { return "chat.completion.chunk"; }
  int64_t reasoning_tokens() const override {
    if (!fields_.format.separates_reasoning) return -1;
    int64_t sum = 0;
    for (const Collected& choice : choices_) sum += choice.parts.reasoning_tokens();
    return sum;
  }

 private:
  struct Collected {
    AnswerParts parts;
    std::vector<engine::PlacedToken> tokens;
    std::string_view finish;
  };

  std::string_view Finish(const AnswerParts& parts, engine::FinishReason reason) const {
    if (!parts.EndsInCalls(reason)) return FinishWord(reason);
    return fields_.is_older ? "function_call" : "tool_calls";
  }

  void WarnOfProblem(size_t choice) {
    auto warning = choices_[choice].parts.ProblemWarning(fmt::format("choices[{}]", choice));
    if (warning.has_value()) Warn(*std::move(warning));
    if (head().counters != nullptr) choices_[choice].parts.CountCalls(head().counters);
  }

  json::Value Logprobs(std::span<const engine::PlacedToken> tokens) const {
    if (head().top_logprobs < 0) return nullptr;
    return {{"content", ChatLogprobs(tokens, *head().tokenizer)}, {"refusal", nullptr}};
  }

  json::Object Delta(size_t index, json::Object delta, std::span<const engine::PlacedToken> tokens,
                     json::Value finish) const {
    return ChunkBody({{"index", index},
                      {"delta", std::move(delta)},
                      {"logprobs", tokens.empty() ? json::Value(nullptr) : Logprobs(tokens)},
                      {"finish_reason", std::move(finish)}});
  }

  const std::vector<text::TokenId> prompt_;
  const MessageFields fields_;
  engine::PromptLogprobs prompt_logprobs_;
  std::vector<Collected> choices_;
};

}  // namespace

std::unique_ptr<Answer> MakeChatAnswer(AnswerHead head, size_t choices,
                                       const MessageFields& message,
                                       std::vector<text::TokenId> prompt) {
  return std::make_unique<ChatAnswer>(std::move(head), choices, message, std::move(prompt));
}

}  // namespace tessera::server::openai
