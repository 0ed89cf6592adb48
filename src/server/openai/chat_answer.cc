// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "server/openai/answer.h"
#include "server/openai/logprobs.h"

namespace tessera::server::openai {
namespace {

class ChatAnswer : public Answer {
 public:
  ChatAnswer(AnswerHead head, size_t choices, std::vector<text::TokenId> prompt)
      : Answer(std::move(head)), prompt_(std::move(prompt)), choices_(choices) {}

  void SetPrompt(size_t /*choice*/, engine::PromptLogprobs logprobs) override {
    prompt_logprobs_ = std::move(logprobs);  // The same for all choices.
  }

  void Collect(size_t choice, engine::OutputDelta delta) override {
    Collected& collected = choices_[choice];
    collected.text += delta.text;
    for (engine::PlacedToken& token : delta.tokens) collected.tokens.push_back(std::move(token));
  }

  void End(size_t choice, engine::FinishReason reason) override {
    choices_[choice].finish = FinishWord(reason);
  }

  json::Object Whole(const Usage& usage) override {
    json::Object body = Body("chat.completion");
    json::Array choices;
    for (size_t i = 0; i < choices_.size(); ++i) {
      const Collected& collected = choices_[i];
      choices.push_back(
          {{"index", i},
           {"message", {{"role", "assistant"}, {"content", collected.text}, {"refusal", nullptr}}},
           {"logprobs", Logprobs(collected.tokens)},
           {"finish_reason", collected.finish}});
    }
    body["choices"] = std::move(choices);
    body["usage"] = UsageBody(usage);
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
    if (head().top_logprobs < 0) delta.tokens.clear();
    if (delta.text.empty() && delta.tokens.empty()) return {};
    return {Delta(choice, {{"content", delta.text}}, delta.tokens, nullptr)};
  }

  json::Object LastChunk(size_t choice, engine::FinishReason reason) override {
    return Delta(choice, json::Object(), {}, json::Value(FinishWord(reason)));
  }

 protected:
  std::string_view chunk_object() const override { return "chat.completion.chunk"; }

 private:
  struct Collected {
    std::string text;
    std::vector<engine::PlacedToken> tokens;
    std::string_view finish;
  };

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
  engine::PromptLogprobs prompt_logprobs_;
  std::vector<Collected> choices_;
};

}  // namespace

std::unique_ptr<Answer> MakeChatAnswer(AnswerHead head, size_t choices,
                                       std::vector<text::TokenId> prompt) {
  return std::make_unique<ChatAnswer>(std::move(head), choices, std::move(prompt));
}

}  // namespace tessera::server::openai
