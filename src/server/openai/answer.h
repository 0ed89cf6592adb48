// SPDX-License-Identifier: Apache-2.0
//
// Answer: the JSON of one response, whole or in chunks, for completions and for chat. It turns
// deltas (engine/output_processor.h) into bodies and knows nothing of engine, threads or HTTP.
// Both ways go through the same code, so that a stream is the whole answer cut in pieces.
// One owner at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/output_processor.h"
#include "engine/request.h"
#include "server/openai/schema.h"
#include "text/tokenizer.h"

namespace tessera::server {
class WarningCounters;
}

namespace tessera::server::openai {

/// What all bodies of one response share.
struct AnswerHead {
  std::string id;  // "cmpl-..." or "chatcmpl-...".
  int64_t created = 0;
  std::string model;  // As the client named it is as we name it.
  std::string fingerprint;
  std::vector<Warning> warnings;
  bool include_usage = false;  // Streams: a chunk with usage at the end.
  std::shared_ptr<const text::Tokenizer> tokenizer;
  int top_logprobs = -1;                // As engine::Request.
  int prompt_logprobs = -1;             // The field of that name; echo does not set it.
  WarningCounters* counters = nullptr;  // Of warnings that come up with the answer; outlives it.
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;
  engine::CacheMiss cache_miss;
  int64_t reasoning_tokens = -1;  // Of the completion; -1: thoughts are not told apart.
};
json::Object UsageBody(const Usage& usage);

/// "cmpl-" + 32 random hexadecimal digits.
std::string MakeId(std::string_view prefix);
/// "stop" or "length".
std::string_view FinishWord(engine::FinishReason reason);

struct MessageFields;  // generation_fields.h
struct Prompt;         // completion_request.h

class Answer {
 public:
  explicit Answer(AnswerHead head) : head_(std::move(head)) {}
  virtual ~Answer() = default;
  const AnswerHead& head() const { return head_; }

  /// Log-probabilities of the choice's prompt, before anything else of it.
  virtual void SetPrompt(size_t choice, engine::PromptLogprobs logprobs) = 0;

  // Whole: collect everything, then take the body.
  virtual void Collect(size_t choice, engine::OutputDelta delta) = 0;
  virtual void End(size_t choice, engine::FinishReason reason) = 0;
  virtual json::Object Whole(const Usage& usage) = 0;

  // Stream: chunks in the order they are to be sent. An empty vector sends nothing.
  virtual std::vector<json::Object> Begin(size_t choice) = 0;
  virtual std::vector<json::Object> Chunk(size_t choice, engine::OutputDelta delta) = 0;
  /// What the end of a choice brings to light, before its last chunk.
  virtual std::vector<json::Object> Rest(size_t /*choice*/) { return {}; }
  virtual json::Object LastChunk(size_t choice, engine::FinishReason reason) = 0;
  /// The choice has all that it may have: what is generated beyond is dropped.
  virtual bool IsComplete(size_t /*choice*/) const { return false; }

  /// While the choice's prompt is computed.
  json::Object ProgressChunk(size_t choice, const engine::PrefillProgress& progress) const;
  /// The chunk after all choices, if the client asked for usage.
  json::Object UsageChunk(Usage usage) const;
  /// Puts the warnings into the last body of a response.
  void AddWarnings(json::Object* body) const;

 protected:
  /// For the last body of the response.
  void Warn(Warning warning);
  virtual std::string_view chunk_object() const = 0;
  /// As in Usage, of all choices.
  virtual int64_t reasoning_tokens() const { return -1; }
  json::Object Body(std::string_view object) const;
  json::Object ChunkBody(json::Object choice) const;

 private:
  AnswerHead head_;
};

/// `prompts` [choices]: of each its own; with `echo` it precedes the text.
std::unique_ptr<Answer> MakeCompletionAnswer(AnswerHead head,
                                             std::vector<std::shared_ptr<const Prompt>> prompts,
                                             bool echo);
/// `prompt` are its ids, for prompt_logprobs.
std::unique_ptr<Answer> MakeChatAnswer(AnswerHead head, size_t choices,
                                       const MessageFields& message,
                                       std::vector<text::TokenId> prompt = {});

}  // namespace tessera::server::openai
