// SPDX-License-Identifier: Apache-2.0
#include "server/responses/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/chat/content.h"
#include "server/chat/history.h"
#include "server/limits.h"

namespace tessera::server::responses {
namespace {

using chat::Place;
using openai::ApiError;
using openai::BadField;
using Problem = std::optional<ApiError>;

using Words = std::string_view;
constexpr std::array<Words, 4> kRoles = {"user", "assistant", "system", "developer"};
// What an answer's items have and clients send back carries nothing for a model of text.
constexpr std::array<Words, 5> kMessageMembers = {"type", "role", "content", "id", "status"};
constexpr std::array<Words, 6> kCallMembers = {"type",      "call_id", "name",
                                               "arguments", "id",      "status"};
constexpr std::array<Words, 5> kOutputMembers = {"type", "call_id", "output", "id", "status"};
constexpr std::array<Words, 6> kReasoningMembers = {"type",    "id",     "summary",
                                                    "content", "status", "encrypted_content"};
constexpr std::array<Words, 3> kTextTypes = {"input_text", "output_text", "text"};
constexpr std::array<Words, 4> kTextMembers = {"type", "text", "annotations", "logprobs"};
constexpr std::array<Words, 2> kThoughtTypes = {"reasoning_text", "summary_text"};
constexpr std::array<Words, 2> kThoughtMembers = {"type", "text"};
constexpr chat::TextParts kText{.types = kTextTypes, .members = kTextMembers};
constexpr chat::TextParts kThoughts{.types = kThoughtTypes, .members = kThoughtMembers};

class Reader {
 public:
  explicit Reader(std::vector<openai::Warning>* warnings) : warnings_(warnings) {}

  void AddText(std::string_view role, std::string_view text) {
    (void)history_.AddText(role, text);  // Nothing came before it.
  }

  Problem ReadItem(const json::Value& value, const Place& place) {
    const json::Object* item = value.if_object();
    if (item == nullptr)
      return BadPlace(place,
                      fmt::format("is of type {}, expected an object", json::KindName(value)));
    const json::Value* type = json::Find(*item, "type");
    if (type == nullptr || *type == "message") return ReadMessage(*item, place);
    if (*type == "function_call") return ReadCall(*item, place);
    if (*type == "function_call_output") return ReadOutput(*item, place);
    if (*type == "reasoning") return ReadReasoning(*item, place);
    ApiError error = BadPlace(
        place, fmt::format("is of type {:.50}; this server takes items of type \"message\", "
                           "\"function_call\", \"function_call_output\" and \"reasoning\"",
                           json::Serialize(*type)));
    error.code = "unsupported_content";
    return error;
  }

  openai::ApiResult<json::Array> Finish() {
    if (Problem problem = At({"input", "input"}, history_.CheckComplete()))
      return std::unexpected(*std::move(problem));
    return history_.Take();
  }

 private:
  static Problem At(const Place& place, chat::History::Problem problem) {
    if (!problem.has_value()) return std::nullopt;
    return BadPlace(place, *problem);
  }

  Problem ReadMessage(const json::Object& item, const Place& place) {
    WarnOfUnknown(item, kMessageMembers, place, "was ignored", warnings_);
    const json::Value* value = json::Find(item, "role");
    const std::string_view role =
        value != nullptr && value->is_string() ? std::string_view(value->get_string()) : "";
    if (std::ranges::find(kRoles, role) == kRoles.end())
      return BadPlace(place.Member("role"), fmt::format("is missing or unknown, expected one of {}",
                                                        fmt::join(kRoles, ", ")));
    const auto text = ReadContent(item, "content", place);
    if (!text.has_value()) return text.error();
    if (role == "developer")
      openai::AddWarning({"normalized", "input",
                          fmt::format("{}.role: \"developer\" was given to the template as "
                                      "\"system\"",
                                      place.path)},
                         warnings_);
    return At(place, history_.AddText(role == "developer" ? "system" : role, *text));
  }

  openai::ApiResult<std::string> ReadContent(const json::Object& item, std::string_view member,
                                             const Place& place) {
    const json::Value* content = json::Find(item, member);
    if (content == nullptr) return std::unexpected(BadPlace(place.Member(member), "is missing"));
    return chat::ReadText(*content, place.Member(member), kText, warnings_);
  }

  Problem ReadCall(const json::Object& item, const Place& place) {
    WarnOfUnknown(item, kCallMembers, place, "was ignored", warnings_);
    const auto id = chat::ReadString(item, "call_id", place);
    if (!id.has_value()) return id.error();
    const auto name = chat::ReadString(item, "name", place);
    if (!name.has_value()) return name.error();
    const auto text = chat::ReadString(item, "arguments", place);
    if (!text.has_value()) return text.error();
    json::Value arguments = chat::CallArguments(*text);
    if (arguments.is_string())
      openai::AddWarning(
          {"normalized", "input",
           fmt::format("{}.arguments is no JSON object and stays a string", place.path)},
          warnings_);
    return At(place.Member("call_id"), history_.AddCall(*id, *name, std::move(arguments)));
  }

  Problem ReadOutput(const json::Object& item, const Place& place) {
    WarnOfUnknown(item, kOutputMembers, place, "was ignored", warnings_);
    const auto id = chat::ReadString(item, "call_id", place);
    if (!id.has_value()) return id.error();
    const auto text = ReadContent(item, "output", place);
    if (!text.has_value()) return text.error();
    return At(place.Member("call_id"), history_.AddResult(*id, *text));
  }

  /// Thoughts in the clear are the content; of other services there may be a summary alone.
  Problem ReadReasoning(const json::Object& item, const Place& place) {
    WarnOfUnknown(item, kReasoningMembers, place, "was ignored", warnings_);
    for (const char* member : {"content", "summary"}) {
      const json::Value* value = json::Find(item, member);
      if (value == nullptr || (value->is_array() && value->get_array().empty())) continue;
      const auto text = chat::ReadText(*value, place.Member(member), kThoughts, warnings_);
      if (!text.has_value()) return text.error();
      return At(place, history_.AddThoughts(*text));
    }
    if (json::Find(item, "encrypted_content") != nullptr)
      openai::AddWarning(
          {"normalized", "input",
           fmt::format("{}.encrypted_content cannot be read here and was left out", place.path)},
          warnings_);
    return std::nullopt;
  }

  std::vector<openai::Warning>* const warnings_;
  chat::History history_{/*joins_turns=*/false};
};

}  // namespace

openai::ApiResult<json::Array> ReadInput(const json::Object& body,
                                         std::vector<openai::Warning>* warnings) {
  const json::Value* input = json::Find(body, "input");
  if (input == nullptr) return std::unexpected(BadField("input", "the field input is missing"));
  Reader reader(warnings);
  if (const json::Value* system = json::Find(body, "instructions"))
    reader.AddText("system", system->get_string());
  if (input->is_string()) {
    reader.AddText("user", input->get_string());
    return reader.Finish();
  }
  const json::Array& items = input->get_array();
  if (items.empty() || items.size() > kMessagesMax)
    return std::unexpected(BadField(
        "input", fmt::format("input has {} items, expected 1 to {}", items.size(), kMessagesMax)));
  const Place place{"input", "input"};
  for (size_t i = 0; i < items.size(); ++i)
    if (Problem problem = reader.ReadItem(items[i], place.Entry(i)))
      return std::unexpected(*std::move(problem));
  return reader.Finish();
}

}  // namespace tessera::server::responses
