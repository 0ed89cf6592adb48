// SPDX-License-Identifier: Apache-2.0
//
// History: the turns of a chat, put together from the pieces that dialects give it: texts,
// thoughts, calls of functions and their results. What comes out is messages as chat templates know
// them: an assistant's message holds its thoughts, its text and its calls; each result is a message
// of the role "tool" behind them.
//
// Calls are followed by their results, in any order, before anything else but more of the same
// turn. Text that a turn has behind its calls stands before them: templates know no other order.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tessera::server::chat {

/// What a call of the history was given, as templates take it: the object that `text` is as JSON;
/// of a call without arguments an empty one; text that is no object stays a string.
json::Value CallArguments(std::string_view text);

class History {
 public:
  /// What is wrong with a piece, to stand behind its place: "names no call ...".
  using Problem = std::optional<std::string>;

  /// `joins_turns`: texts of one role in a row are one message.
  explicit History(bool joins_turns) : joins_turns_(joins_turns) {}

  Problem AddText(std::string_view role, std::string_view text);
  Problem AddThoughts(std::string_view text);
  /// `arguments`: an object, or text where it is none.
  Problem AddCall(std::string_view id, std::string_view name, json::Value arguments);
  Problem AddResult(std::string_view id, std::string_view text);

  /// Calls whose results are missing.
  Problem CheckComplete() const;
  /// The last message is the assistant's, so that an answer goes on within it.
  bool ends_with_assistant() const;
  bool has_user() const;
  /// {"role", "content"} objects with reasoning_content, tool_calls, tool_call_id and name.
  json::Array Take();

 private:
  struct Message {
    std::string role{};
    std::string content{};
    std::string reasoning{};
    json::Array calls{};
    std::string call_id{};  // Of a result.
    std::string name{};     // Of the function that it is of.
  };

  Problem OpenCalls(std::string_view what) const;
  /// The assistant's message that goes on, or a new one.
  Message& AssistantTurn();

  const bool joins_turns_;
  std::vector<Message> messages_;
  std::map<std::string, std::string, std::less<>> open_;  // Calls without result: id -> function.
};

}  // namespace tessera::server::chat
