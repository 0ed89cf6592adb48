// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/utf8.h"
#include "server/openai/answer.h"
#include "server/openai/completion_request.h"
#include "server/openai/logprobs.h"

namespace tessera::server::openai {
namespace {

class CompletionAnswer : public Answer {
 public:
  CompletionAnswer(AnswerHead head, std::vector<std::shared_ptr<const Prompt>> prompts, bool echo)
      : Answer(std::move(head)),
        prompts_(std::move(prompts)),
        echo_(echo),
        choices_(prompts_.size()) {}

  void SetPrompt(size_t choice, engine::PromptLogprobs logprobs) override {
    choices_[choice].prompt = std::move(logprobs);
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
    json::Object body = Body("text_completion");
    json::Array choices;
    for (size_t i = 0; i < choices_.size(); ++i) {
      json::Object choice = Choice(i, Part::kBeginning, Echo(i) + choices_[i].text,
                                   choices_[i].tokens, json::Value(choices_[i].finish));
      if (head().prompt_logprobs >= 0)
        choice["prompt_logprobs"] = PromptLogprobsBody(prompts_[i]->ids, choices_[i].prompt,
                                                       head().prompt_logprobs, *head().tokenizer);
      choices.push_back(std::move(choice));
    }
    body["choices"] = std::move(choices);
    body["usage"] = UsageBody(usage);
    AddWarnings(&body);
    return body;
  }

  std::vector<json::Object> Begin(size_t choice) override {
    if (!echo_) return {};
    return {ChunkBody(Choice(choice, Part::kBeginning, Echo(choice), {}, nullptr))};
  }

  std::vector<json::Object> Chunk(size_t choice, engine::OutputDelta delta) override {
    if (head().top_logprobs < 0) delta.tokens.clear();
    if (delta.text.empty() && delta.tokens.empty()) return {};
    return {ChunkBody(Choice(choice, Part::kRest, delta.text, delta.tokens, nullptr))};
  }

  json::Object LastChunk(size_t choice, engine::FinishReason reason) override {
    return ChunkBody(Choice(choice, Part::kRest, "", {}, json::Value(FinishWord(reason))));
  }

 protected:
  std::string_view chunk_object() const override { return "text_completion"; }

 private:
  /// Of a choice, whether it has what comes before the answer.
  enum class Part : uint8_t { kBeginning, kRest };
  struct Collected {
    engine::PromptLogprobs prompt;
    std::string text;
    std::vector<engine::PlacedToken> tokens;
    std::string_view finish;
  };

  std::string Echo(size_t choice) const { return echo_ ? prompts_[choice]->text : ""; }

  EchoedLogprobs EchoedOf(size_t choice) const {
    const Prompt& prompt = *prompts_[choice];
    return {prompt.ids, prompt.offsets, choices_[choice].prompt, head().top_logprobs};
  }

  json::Object Choice(size_t index, Part part, std::string_view text,
                      std::span<const engine::PlacedToken> tokens, json::Value finish) const {
    json::Value logprobs = nullptr;
    if (head().top_logprobs >= 0)
      logprobs =
          CompletionLogprobs(echo_ && part == Part::kBeginning ? EchoedOf(index) : EchoedLogprobs(),
                             tokens, *head().tokenizer, CodePoints(Echo(index)));
    return {{"index", index},
            {"text", text},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", std::move(finish)}};
  }

  const std::vector<std::shared_ptr<const Prompt>> prompts_;  // [choices]
  const bool echo_;
  std::vector<Collected> choices_;
};

}  // namespace

std::unique_ptr<Answer> MakeCompletionAnswer(AnswerHead head,
                                             std::vector<std::shared_ptr<const Prompt>> prompts,
                                             bool echo) {
  return std::make_unique<CompletionAnswer>(std::move(head), std::move(prompts), echo);
}

}  // namespace tessera::server::openai
