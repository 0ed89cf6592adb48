// SPDX-License-Identifier: Apache-2.0
#include "server/chat/content.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/limits.h"

namespace tessera::server::chat {

using openai::ApiError;
using openai::ApiResult;
using openai::Warning;

Place Place::Member(std::string_view name) const {
  return {field, fmt::format("{}.{}", path, name)};
}

Place Place::Entry(size_t index) const {
  return {field, fmt::format("{}[{}]", path, index)};
}

ApiError BadPlace(const Place& place, std::string_view what) {
  return openai::BadField(place.field, fmt::format("{} {}", place.path, what));
}

void WarnOfUnknown(const json::Object& object, std::span<const std::string_view> known,
                   const Place& place, std::string_view effect, std::vector<Warning>* warnings) {
  for (const auto& [key, value] : object)
    if (!value.is_null() && std::ranges::find(known, std::string_view(key)) == known.end())
      openai::AddWarning(
          {"unknown_field", fmt::format("{}.{:.100}", place.path, std::string_view(key)),
           fmt::format("the member \"{:.100}\" of {} is not known and {}", std::string_view(key),
                       place.path, effect)},
          warnings);
}

ApiResult<std::string_view> ReadString(const json::Object& object, std::string_view key,
                                       const Place& place) {
  const json::Value* value = json::Find(object, key);
  if (value == nullptr || !value->is_string())
    return std::unexpected(BadPlace(place.Member(key), "is missing or no string"));
  return std::string_view(value->get_string());
}

ApiResult<std::vector<Part>> ReadParts(const json::Value& content, const Place& place) {
  const json::Array* array = content.if_array();
  if (array == nullptr || array->empty() || array->size() > kContentPartsMax)
    return std::unexpected(BadPlace(
        place, fmt::format("is {}, expected a string or an array of 1 to {} parts",
                           array == nullptr ? fmt::format("of type {}", json::KindName(content))
                                            : fmt::format("an array of {}", array->size()),
                           kContentPartsMax)));
  std::vector<Part> parts;
  for (size_t i = 0; i < array->size(); ++i) {
    const json::Object* object = (*array)[i].if_object();
    const json::Value* type = object == nullptr ? nullptr : json::Find(*object, "type");
    Place at = place.Entry(i);
    if (type == nullptr || !type->is_string())
      return std::unexpected(
          BadPlace(at, "has no type, expected {\"type\": \"text\", \"text\": ...} or its like"));
    parts.push_back({object, type->get_string(), std::move(at)});
  }
  return parts;
}

ApiError UnsupportedPart(const Part& part) {
  ApiError error = BadPlace(
      part.place, fmt::format("is of type \"{:.50}\"; this model takes text only", part.type));
  error.code = "unsupported_content";
  return error;
}

ApiResult<std::string_view> ReadTextPart(const Part& part, const TextParts& known,
                                         std::vector<Warning>* warnings) {
  if (std::ranges::find(known.types, part.type) == known.types.end())
    return std::unexpected(UnsupportedPart(part));
  WarnOfUnknown(*part.object, known.members, part.place, "was ignored", warnings);
  return ReadString(*part.object, "text", part.place);
}

ApiResult<std::string> ReadText(const json::Value& content, const Place& place,
                                const TextParts& known, std::vector<Warning>* warnings) {
  if (const auto* text = content.if_string()) return std::string(*text);
  const auto parts = ReadParts(content, place);
  if (!parts.has_value()) return std::unexpected(parts.error());
  std::string joined;
  for (const Part& part : *parts) {
    const auto text = ReadTextPart(part, known, warnings);
    if (!text.has_value()) return std::unexpected(text.error());
    JoinLine(&joined, *text);
  }
  if (parts->size() > 1)
    openai::AddWarning(
        {"normalized", std::string(place.field),
         fmt::format("{}: {} text parts were joined by line ends", place.path, parts->size())},
        warnings);
  return joined;
}

void JoinLine(std::string* text, std::string_view more) {
  if (!text->empty()) *text += '\n';
  *text += more;
}

}  // namespace tessera::server::chat
