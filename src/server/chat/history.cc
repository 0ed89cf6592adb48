// SPDX-License-Identifier: Apache-2.0
#include "server/chat/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/chat/content.h"
#include "server/limits.h"

namespace tessera::server::chat {

json::Value CallArguments(std::string_view text) {
  if (text.empty()) return json::Object();
  json::Limits limits;
  limits.max_depth = kJsonDepthMax;
  limits.unique_keys = false;
  auto parsed = json::Parse(text, limits, "arguments");
  if (!parsed.has_value() || !parsed->is_object()) return json::Value(text);
  return *std::move(parsed);
}

History::Problem History::OpenCalls(std::string_view what) const {
  if (open_.empty()) return std::nullopt;
  return fmt::format("{} the call \"{:.100}\" has no result{}", what, open_.begin()->first,
                     open_.size() == 1 ? "" : fmt::format(" (and {} more)", open_.size() - 1));
}

History::Message& History::AssistantTurn() {
  if (!ends_with_assistant()) messages_.push_back({.role = "assistant"});
  return messages_.back();
}

History::Problem History::AddText(std::string_view role, std::string_view text) {
  if (role != "assistant" || !ends_with_assistant())
    if (Problem problem = OpenCalls("comes too early:")) return problem;
  Message* last = messages_.empty() ? nullptr : &messages_.back();
  // Thoughts and calls belong to the text of their turn.
  const bool goes_on = last != nullptr && last->role == role &&
                       (joins_turns_ || (role == "assistant" && last->content.empty()));
  if (goes_on) {
    JoinLine(&last->content, text);
  } else {
    messages_.push_back({.role = std::string(role), .content = std::string(text)});
  }
  return std::nullopt;
}

History::Problem History::AddThoughts(std::string_view text) {
  if (!ends_with_assistant())
    if (Problem problem = OpenCalls("comes too early:")) return problem;
  const bool goes_on = ends_with_assistant() && (joins_turns_ || messages_.back().content.empty());
  if (!goes_on) messages_.push_back({.role = "assistant"});
  JoinLine(&messages_.back().reasoning, text);
  return std::nullopt;
}

History::Problem History::AddCall(std::string_view id, std::string_view name,
                                  json::Value arguments) {
  if (!ends_with_assistant())
    if (Problem problem = OpenCalls("comes too early:")) return problem;
  if (!open_.emplace(id, name).second)
    return fmt::format("is \"{:.100}\", which another call of this turn has", id);
  AssistantTurn().calls.push_back(
      {{"id", id},
       {"type", "function"},
       {"function", {{"name", name}, {"arguments", std::move(arguments)}}}});
  return std::nullopt;
}

History::Problem History::AddResult(std::string_view id, std::string_view text) {
  const auto call = open_.find(id);
  if (call == open_.end())
    return fmt::format(
        "is \"{:.100}\", which is no call of the turn before that waits for its "
        "result",
        id);
  messages_.push_back({.role = "tool",
                       .content = std::string(text),
                       .call_id = std::string(id),
                       .name = std::move(call->second)});
  open_.erase(call);
  return std::nullopt;
}

History::Problem History::CheckComplete() const {
  return OpenCalls("is not complete:");
}

bool History::ends_with_assistant() const {
  return !messages_.empty() && messages_.back().role == "assistant";
}

bool History::has_user() const {
  return std::ranges::any_of(messages_, [](const Message& m) { return m.role == "user"; });
}

json::Array History::Take() {
  json::Array list;
  for (Message& message : messages_) {
    json::Object made{{"role", message.role}, {"content", message.content}};
    if (!message.reasoning.empty()) made["reasoning_content"] = message.reasoning;
    if (!message.calls.empty()) made["tool_calls"] = std::move(message.calls);
    if (message.role == "tool") {
      made["tool_call_id"] = message.call_id;
      made["name"] = message.name;
    }
    list.push_back(std::move(made));
  }
  messages_.clear();
  return list;
}

}  // namespace tessera::server::chat
