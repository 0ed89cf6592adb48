// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "server/openai/answer.h"
#include "server/openai/generation_fields.h"
#include "server/openai/logprobs.h"
#include "text/message_parser.h"

namespace tessera::server::openai {
namespace {

using text::MessageEvent;

struct Call {
  std::string id;
  std::string name;
  std::string arguments;
};

json::Object FunctionBody(std::string_view name, std::string_view arguments) {
  return {{"name", name}, {"arguments", arguments}};
}

/// The message of one choice as far as it is known.
class Message {
 public:
  explicit Message(const MessageFields& fields) : fields_(fields) {
    if (!fields.format.IsPlain()) parser_.emplace(fields.format);
  }

  /// The parts that the text adds to the message, in order.
  std::vector<MessageEvent> Read(const engine::OutputDelta& delta) {
    if (!parser_.has_value())
      return delta.text.empty()
                 ? std::vector<MessageEvent>()
                 : std::vector<MessageEvent>{{MessageEvent::Kind::kText, 0, delta.text}};
    const bool was_reasoning = parser_->is_reasoning();
    std::vector<MessageEvent> events = parser_->Push(delta.text);
    // Marks count as thoughts; of a piece that holds both thoughts and text, all of it.
    if (was_reasoning || parser_->is_reasoning())
      reasoning_tokens_ += static_cast<int64_t>(delta.tokens.size());
    return Kept(std::move(events));
  }
  std::vector<MessageEvent> ReadEnd() {
    if (!parser_.has_value()) return {};
    return Kept(parser_->Finish());
  }

  void Add(const MessageEvent& event) {
    switch (event.kind) {
      case MessageEvent::Kind::kReasoning:
        reasoning_ += event.text;
        break;
      case MessageEvent::Kind::kText:
        content_ += event.text;
        break;
      case MessageEvent::Kind::kCall:
        calls_.push_back({MakeId("call_"), event.text, {}});
        break;
      case MessageEvent::Kind::kArguments:
        calls_[event.call].arguments += event.text;
        break;
    }
  }

  json::Object Body() const {
    json::Object body{{"role", "assistant"}, {"content", content_}, {"refusal", nullptr}};
    if (fields_.format.separates_reasoning && !fields_.drops_reasoning)
      body["reasoning_content"] =
          reasoning_.empty() ? json::Value(nullptr) : json::Value(reasoning_);
    if (calls_.empty()) return body;
    if (content_.empty()) body["content"] = nullptr;
    if (fields_.is_older) {
      body["function_call"] = FunctionBody(calls_.front().name, calls_.front().arguments);
      return body;
    }
    json::Array list;
    for (const Call& call : calls_)
      list.push_back({{"id", call.id},
                      {"type", "function"},
                      {"function", FunctionBody(call.name, call.arguments)}});
    body["tool_calls"] = std::move(list);
    return body;
  }

  /// What an event adds, as the delta of a chunk.
  json::Object Delta(const MessageEvent& event) const {
    switch (event.kind) {
      case MessageEvent::Kind::kReasoning:
        return {{"reasoning_content", event.text}};
      case MessageEvent::Kind::kText:
        return {{"content", event.text}};
      case MessageEvent::Kind::kCall:
        if (fields_.is_older) return {{"function_call", FunctionBody(event.text, "")}};
        return {{"tool_calls", json::Array{{{"index", event.call},
                                            {"id", MakeId("call_")},
                                            {"type", "function"},
                                            {"function", FunctionBody(event.text, "")}}}}};
      case MessageEvent::Kind::kArguments:
        break;
    }
    const json::Object more{{"arguments", event.text}};
    if (fields_.is_older) return {{"function_call", more}};
    return {{"tool_calls", json::Array{{{"index", event.call}, {"function", more}}}}};
  }

  std::string_view Finish(engine::FinishReason reason) const {
    const bool has_calls = parser_.has_value() && parser_->calls() > 0;
    // Of a call that broke off nobody can make use.
    if (!has_calls || parser_->has_broken_call() || reason == engine::FinishReason::kLength)
      return FinishWord(reason);
    return fields_.is_older ? "function_call" : "tool_calls";
  }

  bool is_complete() const { return parser_.has_value() && parser_->is_full(); }
  int64_t reasoning_tokens() const { return reasoning_tokens_; }
  std::string problem() const { return parser_.has_value() ? parser_->problem() : std::string(); }

 private:
  std::vector<MessageEvent> Kept(std::vector<MessageEvent> events) const {
    if (fields_.drops_reasoning)
      std::erase_if(events, [](const MessageEvent& event) {
        return event.kind == MessageEvent::Kind::kReasoning;
      });
    return events;
  }

  const MessageFields& fields_;
  std::optional<text::MessageParser> parser_;
  std::string content_;
  std::string reasoning_;
  int64_t reasoning_tokens_ = 0;
  std::vector<Call> calls_;
};

class ChatAnswer : public Answer {
 public:
  ChatAnswer(AnswerHead head, size_t choices, const MessageFields& fields,
             std::vector<text::TokenId> prompt)
      : Answer(std::move(head)), prompt_(std::move(prompt)), fields_(fields) {
    for (size_t i = 0; i < choices; ++i) choices_.push_back({Message(fields_), {}, {}});
  }

  void SetPrompt(size_t /*choice*/, engine::PromptLogprobs logprobs) override {
    prompt_logprobs_ = std::move(logprobs);  // The same for all choices.
  }

  void Collect(size_t choice, engine::OutputDelta delta) override {
    Collected& collected = choices_[choice];
    for (const MessageEvent& event : collected.message.Read(delta)) collected.message.Add(event);
    for (engine::PlacedToken& token : delta.tokens) collected.tokens.push_back(std::move(token));
  }

  void End(size_t choice, engine::FinishReason reason) override {
    Collected& collected = choices_[choice];
    for (const MessageEvent& event : collected.message.ReadEnd()) collected.message.Add(event);
    collected.finish = collected.message.Finish(reason);
    WarnOfProblem(choice);
  }

  json::Object Whole(const Usage& usage) override {
    json::Object body = Body("chat.completion");
    json::Array choices;
    for (size_t i = 0; i < choices_.size(); ++i)
      choices.push_back({{"index", i},
                         {"message", choices_[i].message.Body()},
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
    const std::vector<MessageEvent> events = choices_[choice].message.Read(delta);
    if (head().top_logprobs < 0) delta.tokens.clear();
    for (const MessageEvent& event : events) {
      // All of the text's tokens go with its first part.
      chunks.push_back(Delta(choice, choices_[choice].message.Delta(event), delta.tokens, nullptr));
      delta.tokens.clear();
    }
    if (!delta.tokens.empty())
      chunks.push_back(Delta(choice, {{"content", ""}}, delta.tokens, nullptr));
    return chunks;
  }

  std::vector<json::Object> Rest(size_t choice) override {
    std::vector<json::Object> chunks;
    for (const MessageEvent& event : choices_[choice].message.ReadEnd())
      chunks.push_back(Delta(choice, choices_[choice].message.Delta(event), {}, nullptr));
    WarnOfProblem(choice);
    return chunks;
  }

  json::Object LastChunk(size_t choice, engine::FinishReason reason) override {
    return Delta(choice, json::Object(), {}, json::Value(choices_[choice].message.Finish(reason)));
  }

  bool IsComplete(size_t choice) const override { return choices_[choice].message.is_complete(); }

 protected:
  std::string_view chunk_object() const override { return "chat.completion.chunk"; }
  int64_t reasoning_tokens() const override {
    if (!fields_.format.separates_reasoning) return -1;
    int64_t sum = 0;
    for (const Collected& choice : choices_) sum += choice.message.reasoning_tokens();
    return sum;
  }

 private:
  struct Collected {
    Message message;
    std::vector<engine::PlacedToken> tokens;
    std::string_view finish;
  };

  void WarnOfProblem(size_t choice) {
    const std::string problem = choices_[choice].message.problem();
    if (problem.empty()) return;
    Warn({"tool_parse_error", fmt::format("choices[{}]", choice),
          fmt::format("what looked like a call of a function stays text: {}", problem)});
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
