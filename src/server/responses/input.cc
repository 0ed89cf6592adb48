// SPDX-License-Identifier: Apache-2.0
#include "server/responses/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "server/limits.h"

namespace tessera::server::responses {
namespace {

using openai::ApiError;
using openai::BadField;

constexpr std::array<std::string_view, 4> kRoles = {"user", "assistant", "system", "developer"};
// What an answer's items have and clients send back carries nothing for a model of text.
constexpr std::array<std::string_view, 5> kItemMembers = {"type", "role", "content", "id",
                                                          "status"};
constexpr std::array<std::string_view, 4> kPartMembers = {"type", "text", "annotations",
                                                          "logprobs"};
constexpr std::array<std::string_view, 3> kTextTypes = {"input_text", "output_text", "text"};

template <size_t kSize>
bool Has(const std::array<std::string_view, kSize>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

class Reader {
 public:
  explicit Reader(std::vector<openai::Warning>* warnings) : warnings_(warnings) {}

  std::optional<ApiError> ReadItem(const json::Value& value, size_t index) {
    const std::string where = fmt::format("input[{}]", index);
    const json::Object* item = value.if_object();
    if (item == nullptr)
      return Bad(fmt::format("{} is of type {}, expected an object", where, json::KindName(value)));
    const std::string_view type = TextOf(*item, "type", "message");
    if (type != "message") {
      ApiError error = Bad(
          fmt::format("{} is of type \"{:.50}\"; this server takes items of type \"message\" only",
                      where, type));
      error.code = "unsupported_content";
      return error;
    }
    WarnUnknown(*item, kItemMembers, where);
    const std::string_view role = TextOf(*item, "role", "");
    if (!Has(kRoles, role))
      return Bad(fmt::format("{}.role is missing or unknown, expected one of {}", where,
                             fmt::join(kRoles, ", ")));
    std::string text;
    if (auto error = ReadContent(*item, where + ".content", &text)) return error;
    if (role == "developer")
      warnings_->push_back(
          {"normalized", "input",
           fmt::format("{}.role: \"developer\" was given to the template as \"system\"", where)});
    Add(role == "developer" ? "system" : role, text);
    return std::nullopt;
  }

  void Add(std::string_view role, std::string_view text) {
    messages_.push_back({{"role", role}, {"content", text}});
  }
  json::Array Finish() { return std::move(messages_); }

 private:
  static ApiError Bad(std::string message) { return BadField("input", std::move(message)); }

  /// `fallback` when absent; a word that is none when no string.
  static std::string_view TextOf(const json::Object& object, std::string_view key,
                                 std::string_view fallback) {
    const json::Value* value = json::Find(object, key);
    if (value == nullptr) return fallback;
    return value->is_string() ? std::string_view(value->get_string()) : json::KindName(*value);
  }

  std::optional<ApiError> ReadContent(const json::Object& item, const std::string& where,
                                      std::string* text) {
    const json::Value* content = json::Find(item, "content");
    if (content == nullptr) return Bad(where + " is missing");
    if (content->is_string()) {
      *text = std::string(content->get_string());
      return std::nullopt;
    }
    const json::Array* parts = content->if_array();
    if (parts == nullptr || parts->empty() || parts->size() > kContentPartsMax)
      return Bad(fmt::format("{} is {}, expected a string or 1 to {} text parts", where,
                             parts == nullptr ? std::string(json::KindName(*content))
                                              : fmt::format("{} parts", parts->size()),
                             kContentPartsMax));
    for (size_t i = 0; i < parts->size(); ++i)
      if (auto error = AddPart((*parts)[i], fmt::format("{}[{}]", where, i), text)) return error;
    if (parts->size() > 1)
      warnings_->push_back(
          {"normalized", "input",
           fmt::format("{}: {} text parts were joined by line ends", where, parts->size())});
    return std::nullopt;
  }

  std::optional<ApiError> AddPart(const json::Value& value, const std::string& where,
                                  std::string* text) {
    const json::Object* part = value.if_object();
    const std::string_view type = part == nullptr ? "" : TextOf(*part, "type", "");
    if (!Has(kTextTypes, type)) {
      ApiError error =
          Bad(fmt::format("{} is a part of type \"{:.50}\"; this model takes text only: one of {}",
                          where, type, fmt::join(kTextTypes, ", ")));
      error.code = "unsupported_content";
      return error;
    }
    WarnUnknown(*part, kPartMembers, where);
    const json::Value* piece = json::Find(*part, "text");
    if (piece == nullptr || !piece->is_string())
      return Bad(where + ".text is missing or no string");
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
  json::Array messages_;
};

}  // namespace

openai::ApiResult<json::Array> ReadInput(const json::Object& body,
                                         std::vector<openai::Warning>* warnings) {
  const json::Value* input = json::Find(body, "input");
  if (input == nullptr) return std::unexpected(BadField("input", "the field input is missing"));
  Reader reader(warnings);
  if (const json::Value* system = json::Find(body, "instructions"))
    reader.Add("system", system->get_string());
  if (input->is_string()) {
    reader.Add("user", input->get_string());
    return reader.Finish();
  }
  const json::Array& items = input->get_array();
  if (items.empty() || items.size() > kMessagesMax)
    return std::unexpected(BadField(
        "input", fmt::format("input has {} items, expected 1 to {}", items.size(), kMessagesMax)));
  for (size_t i = 0; i < items.size(); ++i)
    if (auto error = reader.ReadItem(items[i], i)) return std::unexpected(*std::move(error));
  return reader.Finish();
}

}  // namespace tessera::server::responses
