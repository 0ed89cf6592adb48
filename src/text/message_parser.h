// SPDX-License-Identifier: Apache-2.0
//
// MessageParser: the text of one answer -> thoughts, text for the user, calls of functions, as it
// comes. A ReasoningParser before a ToolParser: calls within thoughts are thoughts. Whatever way
// the text is cut, the events of a kind join to the same. One owner at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/reasoning_parser.h"
#include "text/tool_parser.h"

namespace tessera::text {

/// What an answer may hold beside text. Shared by all answers of a request.
struct MessageFormat {
  std::shared_ptr<const ToolSyntax> tool_syntax;  // Null: calls are not looked for.
  std::shared_ptr<const std::vector<ToolSpec>> tools;
  ToolParser::Options tool_options;
  std::optional<ReasoningSyntax> reasoning;
  bool starts_reasoning = false;  // StartsOpen() of the prompt.
  /// Thoughts are events of their own; otherwise they are text, marks included.
  bool separates_reasoning = false;

  bool IsPlain() const {
    return tool_syntax == nullptr && !(reasoning.has_value() && separates_reasoning);
  }
};

struct MessageEvent {
  enum class Kind : uint8_t { kReasoning, kText, kCall, kArguments };
  Kind kind = Kind::kText;
  size_t call = 0;   // Of kCall and kArguments: which, from 0.
  std::string text;  // Of kCall: the function's name.
  friend bool operator==(const MessageEvent&, const MessageEvent&) = default;
};

class MessageParser {
 public:
  explicit MessageParser(const MessageFormat& format);

  std::vector<MessageEvent> Push(std::string_view text);
  /// The rest.
  std::vector<MessageEvent> Finish();

  /// Calls given out.
  size_t calls() const { return tools_.has_value() ? tools_->calls() : 0; }
  /// There are as many calls as there may be; text that follows is dropped.
  bool is_full() const { return tools_.has_value() && tools_->is_full(); }
  bool has_broken_call() const { return tools_.has_value() && tools_->has_broken_call(); }
  /// As ToolParser::problem().
  std::string problem() const { return tools_.has_value() ? tools_->problem() : std::string(); }
  bool is_reasoning() const { return reasoning_.has_value() && reasoning_->is_reasoning(); }

 private:
  void Take(const ReasoningParser::Delta& delta, std::vector<MessageEvent>* events);
  void TakeText(std::string_view text, std::vector<MessageEvent>* events);
  static void AddTools(std::vector<ToolEvent> made, std::vector<MessageEvent>* events);

  const bool separates_reasoning_;
  std::optional<ReasoningParser> reasoning_;
  std::optional<ToolParser> tools_;
};

}  // namespace tessera::text
