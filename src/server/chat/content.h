// SPDX-License-Identifier: Apache-2.0
//
// Content: what the readers of messages share in every dialect: text that is a string or a list of
// parts, and members that nobody knows. Pure functions; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"

namespace tessera::server::chat {

/// Where something stands in a request.
struct Place {
  std::string_view field;  // Of the body: what errors name as `param`.
  std::string path;        // "messages[3].content".

  Place Member(std::string_view name) const;
  Place Entry(size_t index) const;
};

/// 400: the place, then `what`.
openai::ApiError BadPlace(const Place& place, std::string_view what);

/// A warning for each member of `object` that is not in `known`. JSON null means absent. `effect`
/// says what becomes of it: "was ignored".
void WarnOfUnknown(const json::Object& object, std::span<const std::string_view> known,
                   const Place& place, std::string_view effect,
                   std::vector<openai::Warning>* warnings);

/// The member `key`: 400 when it is missing or no string. The view lives as long as `object`.
openai::ApiResult<std::string_view> ReadString(const json::Object& object, std::string_view key,
                                               const Place& place);

/// One entry of a content that is a list.
struct Part {
  const json::Object* object;
  std::string_view type;
  Place place;
};
/// 400 unless there are 1 to kContentPartsMax objects that have a type.
openai::ApiResult<std::vector<Part>> ReadParts(const json::Value& content, const Place& place);
/// 400: the model takes text only.
openai::ApiError UnsupportedPart(const Part& part);

/// Which parts are text, and what members of them are known.
struct TextParts {
  std::span<const std::string_view> types;
  std::span<const std::string_view> members;
};
/// The text of a part. 400 when it is another kind of part or has no text.
openai::ApiResult<std::string_view> ReadTextPart(const Part& part, const TextParts& known,
                                                 std::vector<openai::Warning>* warnings);
/// A string, or text parts that are joined by line ends, which is a warning.
openai::ApiResult<std::string> ReadText(const json::Value& content, const Place& place,
                                        const TextParts& known,
                                        std::vector<openai::Warning>* warnings);
/// Appends `more` on a line of its own.
void JoinLine(std::string* text, std::string_view more);

}  // namespace tessera::server::chat
