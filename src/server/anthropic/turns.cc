// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/turns.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/chat/content.h"
#include "server/chat/history.h"
#include "server/limits.h"

namespace tessera::server::anthropic {
namespace {

using chat::Place;
using openai::ApiError;
using openai::BadField;
using Problem = std::optional<ApiError>;

using Words = std::string_view;
constexpr std::array<Words, 2> kTurnMembers = {"role", "content"};
constexpr std::array<Words, 1> kTextTypes = {"text"};
// cache_control is a hint for a cache that is kept here without hints; citations are for documents,
// callers for code that a hosted service runs.
constexpr std::array<Words, 4> kTextMembers = {"type", "text", "cache_control", "citations"};
constexpr std::array<Words, 3> kThinkingMembers = {"type", "thinking", "signature"};
constexpr std::array<Words, 6> kUseMembers = {"type",          "id",    "name", "input",
                                              "cache_control", "caller"};
constexpr std::array<Words, 5> kResultMembers = {"type", "tool_use_id", "content", "is_error",
                                                 "cache_control"};
constexpr chat::TextParts kText{.types = kTextTypes, .members = kTextMembers};

class Reader {
 public:
  explicit Reader(std::vector<openai::Warning>* warnings) : warnings_(warnings) {}

  Problem ReadSystem(const json::Value& system) {
    const auto text = chat::ReadText(system, {"system", "system"}, kText, warnings_);
    if (!text.has_value()) return text.error();
    if (text->empty()) return std::nullopt;
    return At({"system", "system"}, history_.AddText("system", *text));
  }

  Problem ReadTurn(const json::Value& value, const Place& place) {
    const json::Object* turn = value.if_object();
    if (turn == nullptr)
      return BadPlace(place,
                      fmt::format("is of type {}, expected an object", json::KindName(value)));
    WarnOfUnknown(*turn, kTurnMembers, place, "was ignored", warnings_);
    const json::Value* role = json::Find(*turn, "role");
    if (role == nullptr || (*role != "user" && *role != "assistant"))
      return BadPlace(place.Member("role"), "is not \"user\" or \"assistant\"");
    role_ = role->get_string();
    const json::Value* content = json::Find(*turn, "content");
    if (content == nullptr) return BadPlace(place.Member("content"), "is missing");
    if (content->is_string()) return At(place, history_.AddText(role_, content->get_string()));
    return ReadBlocks(*content, place.Member("content"));
  }

  openai::ApiResult<Turns> Finish() {
    if (Problem problem = At({"messages", "messages"}, history_.CheckComplete()))
      return std::unexpected(*std::move(problem));
    if (!history_.has_user())
      return std::unexpected(BadField("messages", "messages has no turn of the user"));
    const bool continues_last = history_.ends_with_assistant();
    return Turns{history_.Take(), continues_last};
  }

 private:
  static Problem At(const Place& place, chat::History::Problem problem) {
    if (!problem.has_value()) return std::nullopt;
    return BadPlace(place, *problem);
  }

  Problem ReadBlocks(const json::Value& content, const Place& place) {
    const auto blocks = chat::ReadParts(content, place);
    if (!blocks.has_value()) return blocks.error();
    size_t texts = 0;
    for (const chat::Part& block : *blocks) {
      if (block.type == "text") ++texts;
      if (Problem problem = ReadBlock(block)) return problem;
    }
    if (texts > 1)
      openai::AddWarning(
          {"normalized", "messages",
           fmt::format("{}: {} text parts were joined by line ends", place.path, texts)},
          warnings_);
    return std::nullopt;
  }

  Problem ReadBlock(const chat::Part& block) {
    constexpr std::string_view kOfAssistant = "assistant";
    if (block.type == "tool_result") return OnlyOf("user", block, &Reader::ReadResult);
    if (block.type == "tool_use") return OnlyOf(kOfAssistant, block, &Reader::ReadUse);
    if (block.type == "thinking") return OnlyOf(kOfAssistant, block, &Reader::ReadThinking);
    if (block.type == "redacted_thinking")
      return OnlyOf(kOfAssistant, block, &Reader::SkipRedacted);
    const auto text = ReadTextPart(block, kText, warnings_);
    if (!text.has_value()) return text.error();
    return At(block.place, history_.AddText(role_, *text));
  }

  Problem OnlyOf(std::string_view role, const chat::Part& block,
                 Problem (Reader::*read)(const chat::Part&)) {
    if (role_ == role) return (this->*read)(block);
    return BadPlace(block.place, fmt::format("is a {} block, which stands in turns of the {} only",
                                             block.type, role));
  }

  Problem ReadThinking(const chat::Part& block) {
    WarnOfUnknown(*block.object, kThinkingMembers, block.place, "was ignored", warnings_);
    const auto text = chat::ReadString(*block.object, "thinking", block.place);
    if (!text.has_value()) return text.error();
    return At(block.place, history_.AddThoughts(*text));
  }

  /// What another service has thought and only it can read.
  Problem SkipRedacted(const chat::Part& block) {
    openai::AddWarning({"normalized", "messages",
                        fmt::format("{} cannot be read here and was left out", block.place.path)},
                       warnings_);
    return std::nullopt;
  }

  Problem ReadUse(const chat::Part& block) {
    WarnOfUnknown(*block.object, kUseMembers, block.place, "was ignored", warnings_);
    const auto id = chat::ReadString(*block.object, "id", block.place);
    if (!id.has_value()) return id.error();
    const auto name = chat::ReadString(*block.object, "name", block.place);
    if (!name.has_value()) return name.error();
    const json::Value* input = json::Find(*block.object, "input");
    if (input == nullptr || !input->is_object())
      return BadPlace(block.place.Member("input"), "is missing or no object");
    return At(block.place.Member("id"), history_.AddCall(*id, *name, *input));
  }

  Problem ReadResult(const chat::Part& block) {
    WarnOfUnknown(*block.object, kResultMembers, block.place, "was ignored", warnings_);
    const auto id = chat::ReadString(*block.object, "tool_use_id", block.place);
    if (!id.has_value()) return id.error();
    const json::Value* is_error = json::Find(*block.object, "is_error");
    if (is_error != nullptr && !is_error->is_bool())
      return BadPlace(block.place.Member("is_error"), "is not true or false");
    // Templates have no other place for it.
    std::string text = is_error != nullptr && is_error->get_bool() ? "Error: " : "";
    if (const json::Value* content = json::Find(*block.object, "content")) {
      const auto read = chat::ReadText(*content, block.place.Member("content"), kText, warnings_);
      if (!read.has_value()) return read.error();
      text += *read;
    }
    return At(block.place.Member("tool_use_id"), history_.AddResult(*id, text));
  }

  std::vector<openai::Warning>* const warnings_;
  chat::History history_{/*joins_turns=*/true};
  std::string role_;  // Of the present turn.
};

}  // namespace

openai::ApiResult<Turns> ReadTurns(const json::Object& body,
                                   std::vector<openai::Warning>* warnings) {
  const json::Value* messages = json::Find(body, "messages");
  if (messages == nullptr)
    return std::unexpected(BadField("messages", "the field messages is missing"));
  const json::Array& array = messages->get_array();
  if (array.empty() || array.size() > kMessagesMax)
    return std::unexpected(BadField(
        "messages",
        fmt::format("messages has {} entries, expected 1 to {}", array.size(), kMessagesMax)));
  Reader reader(warnings);
  if (const json::Value* system = json::Find(body, "system"))
    if (Problem problem = reader.ReadSystem(*system)) return std::unexpected(*std::move(problem));
  const Place place{"messages", "messages"};
  for (size_t i = 0; i < array.size(); ++i)
    if (Problem problem = reader.ReadTurn(array[i], place.Entry(i)))
      return std::unexpected(*std::move(problem));
  return reader.Finish();
}

}  // namespace tessera::server::anthropic
