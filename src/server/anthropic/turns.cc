// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "server/limits.h"

namespace tessera::server::anthropic {
namespace {

using openai::ApiError;
using openai::BadField;

constexpr std::array<std::string_view, 2> kTurnMembers = {"role", "content"};
// The third is a hint for a cache that is kept here without hints; the last is for documents.
constexpr std::array<std::string_view, 4> kBlockMembers = {"type", "text", "cache_control",
                                                           "citations"};

class Reader {
 public:
  explicit Reader(std::vector<openai::Warning>* warnings) : warnings_(warnings) {}

  std::optional<ApiError> ReadSystem(const json::Value& system) {
    std::string text;
    if (auto error = ReadContent(system, "system", "system", &text)) return error;
    if (!text.empty()) Add("system", std::move(text));
    return std::nullopt;
  }

  std::optional<ApiError> ReadTurn(const json::Value& value, size_t index) {
    const std::string where = fmt::format("messages[{}]", index);
    const json::Object* turn = value.if_object();
    if (turn == nullptr)
      return BadField("messages", fmt::format("{} is of type {}, expected an object", where,
                                              json::KindName(value)));
    WarnUnknown(*turn, kTurnMembers, where);
    const json::Value* role = json::Find(*turn, "role");
    const bool is_known = role != nullptr && role->is_string() &&
                          (role->get_string() == "user" || role->get_string() == "assistant");
    if (!is_known)
      return BadField("messages", fmt::format("{}.role is not \"user\" or \"assistant\"", where));
    const json::Value* content = json::Find(*turn, "content");
    if (content == nullptr)
      return BadField("messages", fmt::format("{}.content is missing", where));
    std::string text;
    if (auto error = ReadContent(*content, "messages", where + ".content", &text)) return error;
    Add(std::string_view(role->get_string()), std::move(text));
    return std::nullopt;
  }

  Turns Finish() {
    Turns turns;
    if (!messages_.empty() && messages_.back().role == "assistant") {
      turns.prefill = std::move(messages_.back().content);
      messages_.pop_back();
    }
    for (Message& message : messages_)
      turns.messages.push_back({{"role", message.role}, {"content", message.content}});
    return turns;
  }

 private:
  struct Message {
    std::string role;
    std::string content;
  };

  /// Turns of one role in a row are one turn, as the API has it.
  void Add(std::string_view role, std::string text) {
    if (!messages_.empty() && messages_.back().role == role) {
      messages_.back().content += "\n" + text;
      return;
    }
    messages_.push_back({std::string(role), std::move(text)});
  }

  std::optional<ApiError> ReadContent(const json::Value& content, std::string_view field,
                                      const std::string& where, std::string* text) {
    if (content.is_string()) {
      *text = std::string(content.get_string());
      return std::nullopt;
    }
    const json::Array* blocks = content.if_array();
    if (blocks == nullptr || blocks->empty() || blocks->size() > kContentPartsMax)
      return BadField(field,
                      fmt::format("{} is {}, expected a string or 1 to {} text blocks", where,
                                  blocks == nullptr ? std::string(json::KindName(content))
                                                    : fmt::format("{} blocks", blocks->size()),
                                  kContentPartsMax));
    for (size_t i = 0; i < blocks->size(); ++i)
      if (auto error = AddBlock((*blocks)[i], field, fmt::format("{}[{}]", where, i), text))
        return error;
    if (blocks->size() > 1)
      warnings_->push_back(
          {"normalized", std::string(field),
           fmt::format("{}: {} text blocks were joined by line ends", where, blocks->size())});
    return std::nullopt;
  }

  std::optional<ApiError> AddBlock(const json::Value& value, std::string_view field,
                                   const std::string& where, std::string* text) {
    const json::Object* block = value.if_object();
    const json::Value* type = block == nullptr ? nullptr : json::Find(*block, "type");
    if (type == nullptr || !type->is_string())
      return BadField(field, fmt::format("{} has no type, expected {{\"type\": \"text\", \"text\": "
                                         "...}}",
                                         where));
    if (type->get_string() != "text") {
      ApiError error = BadField(
          field, fmt::format("{} is a block of type \"{:.50}\"; this model takes text only", where,
                             std::string_view(type->get_string())));
      error.code = "unsupported_content";
      return error;
    }
    WarnUnknown(*block, kBlockMembers, where);
    const json::Value* piece = json::Find(*block, "text");
    if (piece == nullptr || !piece->is_string())
      return BadField(field, fmt::format("{}.text is missing or no string", where));
    if (!text->empty()) *text += '\n';
    *text += std::string_view(piece->get_string());
    return std::nullopt;
  }

  void WarnUnknown(const json::Object& object, std::span<const std::string_view> known,
                   const std::string& where) {
    for (const auto& [key, value] : object)
      if (!value.is_null() && std::ranges::find(known, std::string_view(key)) == known.end())
        warnings_->push_back(
            {"unknown_field", fmt::format("{}.{:.100}", where, std::string_view(key)),
             fmt::format("the member \"{:.100}\" of {} is not known and was ignored",
                         std::string_view(key), where)});
  }

  std::vector<openai::Warning>* const warnings_;
  std::vector<Message> messages_;
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
    if (auto error = reader.ReadSystem(*system)) return std::unexpected(*std::move(error));
  for (size_t i = 0; i < array.size(); ++i)
    if (auto error = reader.ReadTurn(array[i], i)) return std::unexpected(*std::move(error));
  Turns turns = reader.Finish();
  const bool has_user = std::ranges::any_of(
      turns.messages, [](const json::Value& m) { return m.at("role").as_string() == "user"; });
  if (!has_user) return std::unexpected(BadField("messages", "messages has no turn of the user"));
  return turns;
}

}  // namespace tessera::server::anthropic
