// SPDX-License-Identifier: Apache-2.0
#include "text/message_parser.h"

#include <utility>

namespace tessera::text {

MessageParser::MessageParser(const MessageFormat& format)
    : separates_reasoning_(format.separates_reasoning) {
  if (format.reasoning.has_value())
    reasoning_.emplace(*format.reasoning,
                       ReasoningParser::Options{.is_open = format.starts_reasoning,
                                                .keeps_marks = !format.separates_reasoning});
  if (format.tool_syntax != nullptr)
    tools_.emplace(format.tool_syntax, format.tools, format.tool_options);
}

std::vector<MessageEvent> MessageParser::Push(std::string_view text) {
  std::vector<MessageEvent> events;
  if (reasoning_.has_value()) {
    ReasoningParser::Delta delta;
    reasoning_->Push(text, &delta);
    Take(delta, &events);
  } else {
    TakeText(text, &events);
  }
  return events;
}

std::vector<MessageEvent> MessageParser::Finish() {
  std::vector<MessageEvent> events;
  if (reasoning_.has_value()) {
    ReasoningParser::Delta delta;
    reasoning_->Finish(&delta);
    Take(delta, &events);
  }
  if (tools_.has_value()) {
    std::vector<ToolEvent> made;
    tools_->Finish(&made);
    AddTools(std::move(made), &events);
  }
  return events;
}

void MessageParser::Take(const ReasoningParser::Delta& delta, std::vector<MessageEvent>* events) {
  if (!delta.reasoning.empty())
    events->push_back(
        {separates_reasoning_ ? MessageEvent::Kind::kReasoning : MessageEvent::Kind::kText, 0,
         delta.reasoning});
  TakeText(delta.text, events);
}

void MessageParser::TakeText(std::string_view text, std::vector<MessageEvent>* events) {
  if (text.empty()) return;
  if (!tools_.has_value()) {
    events->push_back({MessageEvent::Kind::kText, 0, std::string(text)});
    return;
  }
  std::vector<ToolEvent> made;
  tools_->Push(text, &made);
  AddTools(std::move(made), events);
}

void MessageParser::AddTools(std::vector<ToolEvent> made, std::vector<MessageEvent>* events) {
  for (ToolEvent& event : made) {
    const auto kind = event.kind == ToolEvent::Kind::kText   ? MessageEvent::Kind::kText
                      : event.kind == ToolEvent::Kind::kCall ? MessageEvent::Kind::kCall
                                                             : MessageEvent::Kind::kArguments;
    events->push_back({kind, event.call, std::move(event.text)});
  }
}

}  // namespace tessera::text
