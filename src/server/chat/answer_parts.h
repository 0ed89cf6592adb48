// SPDX-License-Identifier: Apache-2.0
//
// AnswerParts: the text of one answer, as it comes, -> its parts in their order: thoughts, text,
// calls of functions. All dialects read answers through it, whole ones and streams alike. What it
// looks for is said by MessageFields. One owner at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/output_processor.h"
#include "engine/request.h"
#include "server/openai/generation_fields.h"
#include "text/message_parser.h"

namespace tessera::server {
class WarningCounters;
}

namespace tessera::server::chat {

class AnswerParts {
 public:
  struct Part {
    enum class Kind : uint8_t { kReasoning, kText, kCall };
    Kind kind = Kind::kText;
    size_t call = 0;     // Of kCall: which of the calls.
    std::string id{};    // Of kCall, as all below.
    std::string name{};  // Of the function.
    std::string text{};  // Of a call: its arguments, JSON.
  };
  /// What became known: a part begins, or goes on by `text`, or both.
  struct Step {
    size_t part = 0;
    bool begins = false;
    std::string text;
  };

  /// Ids of calls begin with `call_prefix`.
  AnswerParts(const openai::MessageFields& fields, std::string_view call_prefix);

  std::vector<Step> Read(const engine::OutputDelta& delta);
  /// What the end of the answer brings to light.
  std::vector<Step> ReadEnd();
  /// For dialects whose answers have a part at least.
  Step AddEmptyText();

  const std::vector<Part>& parts() const { return parts_; }
  /// The texts of all parts of a kind.
  std::string Joined(Part::Kind kind) const;
  bool has_calls() const { return calls_ > 0; }
  /// The answer has all that it may have.
  bool is_complete() const { return parser_.has_value() && parser_->is_full(); }
  /// It is there for its calls: they are whole, and the client is to carry them out.
  bool EndsInCalls(engine::FinishReason reason) const;
  int64_t reasoning_tokens() const { return reasoning_tokens_; }
  /// What looked like a call and is none; `param` says where the answer has it.
  std::optional<openai::Warning> ProblemWarning(std::string_view param) const;
  /// What came of its calls, if it made or tried any; once, at the end.
  void CountCalls(WarningCounters* counters) const;

 private:
  std::vector<Step> Take(std::vector<text::MessageEvent> events);
  Step TakeEvent(text::MessageEvent event);

  const bool drops_reasoning_;
  const std::string call_prefix_;
  std::optional<text::MessageParser> parser_;
  std::vector<Part> parts_;
  size_t calls_ = 0;
  int64_t reasoning_tokens_ = 0;
};

}  // namespace tessera::server::chat
