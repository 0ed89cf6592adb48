// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/utf8.h"
#include "server/openai/answer.h"
#include "server/openai/logprobs.h"

namespace tessera::server::openai {
namespace {

class CompletionAnswer : public Answer {
 public:
  CompletionAnswer(AnswerHead head, size_t choices, std::vector<std::string> echo)
      : Answer(std::move(head)), choices_(choices), echo_(std::move(echo)) {}

  void Collect(size_t choice, engine::OutputDelta delta) override {
    Collected& collected = choices_[choice];
    collected.text += delta.text;
    for (engine::PlacedToken& token : delta.tokens) collected.tokens.push_back(std::move(token));
  }

  void End(size_t choice, engine::FinishReason reason) override {
    choices_[choice].finish = FinishWord(reason);
  }

  json::Object Whole(const Usage& usage) override {
    json::Object body = Body("text_completion");
    json::Array choices;
    for (size_t i = 0; i < choices_.size(); ++i)
      choices.push_back(Choice(i, Echo(i) + choices_[i].text, choices_[i].tokens,
                               json::Value(choices_[i].finish)));
    body["choices"] = std::move(choices);
    body["usage"] = UsageBody(usage);
    AddWarnings(&body);
    return body;
  }

  std::vector<json::Object> Begin(size_t choice) override {
    if (Echo(choice).empty()) return {};
    return {ChunkBody(Choice(choice, Echo(choice), {}, nullptr))};
  }

  std::vector<json::Object> Chunk(size_t choice, engine::OutputDelta delta) override {
    if (head().top_logprobs < 0) delta.tokens.clear();
    if (delta.text.empty() && delta.tokens.empty()) return {};
    return {ChunkBody(Choice(choice, delta.text, delta.tokens, nullptr))};
  }

  json::Object LastChunk(size_t choice, engine::FinishReason reason) override {
    return ChunkBody(Choice(choice, "", {}, json::Value(FinishWord(reason))));
  }

 protected:
  std::string_view chunk_object() const override { return "text_completion"; }

 private:
  struct Collected {
    std::string text;
    std::vector<engine::PlacedToken> tokens;
    std::string_view finish;
  };

  std::string Echo(size_t choice) const { return echo_.empty() ? "" : echo_[choice]; }

  json::Object Choice(size_t index, std::string_view text,
                      std::span<const engine::PlacedToken> tokens, json::Value finish) const {
    json::Value logprobs = nullptr;
    if (head().top_logprobs >= 0)
      logprobs = CompletionLogprobs(tokens, *head().tokenizer, CodePoints(Echo(index)));
    return {{"index", index},
            {"text", text},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", std::move(finish)}};
  }

  std::vector<Collected> choices_;
  std::vector<std::string> echo_;
};

}  // namespace

std::unique_ptr<Answer> MakeCompletionAnswer(AnswerHead head, size_t choices,
                                             std::vector<std::string> echo) {
  return std::make_unique<CompletionAnswer>(std::move(head), choices, std::move(echo));
}

}  // namespace tessera::server::openai
