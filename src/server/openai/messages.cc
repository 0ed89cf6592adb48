// SPDX-License-Identifier: Apache-2.0
#include "server/openai/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "server/chat/content.h"
#include "server/chat/history.h"
#include "server/limits.h"

namespace tessera::server::openai {
namespace {

// What messages are made of. Those that hosted services send back in an answer, so that clients
// send them again, are known: they carry nothing for a model of text.
constexpr std::array<std::string_view, 10> kMessageMembers = {
    "role",          "content", "name",        "tool_calls", "tool_call_id",
    "function_call", "refusal", "annotations", "audio",      "reasoning_content"};
constexpr std::array<std::string_view, 1> kTextTypes = {"text"};
constexpr std::array<std::string_view, 2> kPartMembers = {"type", "text"};
constexpr std::array<std::string_view, 4> kCallMembers = {"id", "type", "index", "function"};
constexpr std::array<std::string_view, 2> kFunctionMembers = {"name", "arguments"};

constexpr std::string_view kGivenToTemplate = "is given to the chat template, which may not use it";

/// Of calls that have none.
constexpr std::string_view kFunctionCallId = "call_function";

constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};

/// Works on one message; its errors and warnings say where they are.
class MessageNormalizer {
 public:
  MessageNormalizer(size_t index, std::vector<Warning>* warnings)
      : place_(chat::Place{"messages", "messages"}.Entry(index)),
        where_(place_.path),
        warnings_(warnings) {}

  std::optional<ApiError> Run(json::Value* value) {
    json::Object* message = value->if_object();
    if (message == nullptr)
      return Bad(
          fmt::format("{} is of type {}, expected an object", where_, json::KindName(*value)));
    chat::WarnOfUnknown(*message, kMessageMembers, place_, kGivenToTemplate, warnings_);
    if (auto error = CheckRole(message)) return error;
    if (auto error = RenewFunctionCall(message)) return error;
    if (auto error = NormalizeContent(message)) return error;
    return NormalizeToolCalls(message);
  }

 private:
  ApiError Bad(std::string message) const { return BadField("messages", std::move(message)); }
  void Warn(std::string what) {
    AddWarning({"normalized", "messages", fmt::format("{}.{}", where_, what)}, warnings_);
  }

  std::optional<ApiError> CheckRole(json::Object* message) {
    const json::Value* role = json::Find(*message, "role");
    if (role == nullptr || !role->is_string())
      return Bad(fmt::format("{}.role is missing or no string, expected one of {}", where_,
                             fmt::join(kRoles, ", ")));
    role_ = std::string(role->get_string());
    if (std::ranges::find(kRoles, role_) == kRoles.end())
      return Bad(fmt::format("{}.role is \"{:.50}\", expected one of {}", where_, role_,
                             fmt::join(kRoles, ", ")));
    // The hosted API's newer word; templates only know the older one.
    if (role_ == "developer") {
      message->insert_or_assign("role", "system");
      Warn("role: \"developer\" was given to the template as \"system\"");
    }
    return std::nullopt;
  }

  /// The API's older way: one call without an id, and a message of the role "function" for its
  /// result. Both become what templates know.
  std::optional<ApiError> RenewFunctionCall(json::Object* message) {
    if (role_ == "function") {
      role_ = "tool";
      message->insert_or_assign("role", "tool");
      if (json::Find(*message, "tool_call_id") == nullptr)
        message->insert_or_assign("tool_call_id", kFunctionCallId);
    }
    const json::Value* call = json::Find(*message, "function_call");
    if (call == nullptr) return std::nullopt;
    if (!call->is_object() || role_ != "assistant")
      return Bad(
          fmt::format("{}.function_call must be an object in a message of the assistant", where_));
    if (json::Find(*message, "tool_calls") != nullptr)
      return Bad(fmt::format("{} has both tool_calls and function_call; give one", where_));
    json::Value function = *call;
    message->erase("function_call");
    message->insert_or_assign(
        "tool_calls",
        json::Array{{{"id", kFunctionCallId}, {"type", "function"}, {"function", function}}});
    return std::nullopt;
  }

  std::optional<ApiError> NormalizeContent(json::Object* message) {
    json::Value* content = message->if_contains("content");
    if (content == nullptr || content->is_null()) {
      if (role_ != "assistant")
        return Bad(fmt::format("{}.content is missing, expected text", where_));
      // Templates test for an empty string; some fail on null.
      message->insert_or_assign("content", "");
      if (!message->contains("tool_calls")) Warn("content: null was given to the template as \"\"");
      return std::nullopt;
    }
    if (content->is_string()) return std::nullopt;
    auto text = chat::ReadText(*content, place_.Member("content"),
                               {.types = kTextTypes, .members = kPartMembers}, warnings_);
    if (!text.has_value()) return std::move(text).error();
    message->insert_or_assign("content", *text);
    return std::nullopt;
  }

  std::optional<ApiError> NormalizeToolCalls(json::Object* message) {
    json::Value* calls = message->if_contains("tool_calls");
    if (calls == nullptr) return std::nullopt;
    json::Array* array = calls->if_array();
    if (calls->is_null() || (array != nullptr && array->empty())) {
      message->erase("tool_calls");
      return std::nullopt;
    }
    if (array == nullptr || role_ != "assistant")
      return Bad(
          fmt::format("{}.tool_calls must be an array in a message of the assistant", where_));
    for (size_t i = 0; i < array->size(); ++i) {
      const auto fail = [&] {
        return Bad(fmt::format("{}.tool_calls[{}] has no function with a name", where_, i));
      };
      json::Object* call = (*array)[i].if_object();
      json::Value* function = call == nullptr ? nullptr : call->if_contains("function");
      if (function == nullptr || !function->is_object()) return fail();
      const json::Value* name = json::Find(function->get_object(), "name");
      if (name == nullptr || !name->is_string()) return fail();
      const chat::Place place = place_.Member("tool_calls").Entry(i);
      chat::WarnOfUnknown(*call, kCallMembers, place, kGivenToTemplate, warnings_);
      chat::WarnOfUnknown(function->get_object(), kFunctionMembers, place.Member("function"),
                          kGivenToTemplate, warnings_);
      NormalizeArguments(i, &function->get_object());
    }
    return std::nullopt;
  }

  void NormalizeArguments(size_t index, json::Object* function) {
    const json::Value* arguments = json::Find(*function, "arguments");
    if (arguments != nullptr && !arguments->is_string()) return;
    // The same value in the form that templates take: nothing to warn of.
    json::Value read = chat::CallArguments(
        arguments == nullptr ? std::string_view() : std::string_view(arguments->get_string()));
    if (read.is_string())
      Warn(fmt::format("tool_calls[{}].function.arguments is no JSON object and stays a string",
                       index));
    function->insert_or_assign("arguments", std::move(read));
  }

  const chat::Place place_;
  const std::string& where_;
  std::vector<Warning>* warnings_;
  std::string role_;
};

/// Results say which function they are of where their calls do: some templates write it.
void NameResults(json::Array* messages) {
  std::map<std::string, std::string, std::less<>> names;  // By the id of the call.
  for (json::Value& value : *messages) {
    json::Object& message = value.get_object();
    if (const json::Value* calls = json::Find(message, "tool_calls")) {
      for (const json::Value& entry : calls->get_array()) {
        const json::Value* id = json::Find(entry.get_object(), "id");
        if (id == nullptr || !id->is_string()) continue;
        const json::Value& name = entry.at("function").at("name");
        names[std::string(id->get_string())] = std::string(name.get_string());
      }
    }
    const json::Value* id = json::Find(message, "tool_call_id");
    if (id == nullptr || !id->is_string() || json::Find(message, "name") != nullptr) continue;
    if (const auto found = names.find(std::string_view(id->get_string())); found != names.end())
      message["name"] = found->second;
  }
}

}  // namespace

ApiResult<std::vector<Warning>> NormalizeMessages(json::Value* messages) {
  json::Array* array = messages->if_array();
  if (array == nullptr)
    return std::unexpected(BadField(
        "messages",
        fmt::format("messages is of type {}, expected an array", json::KindName(*messages))));
  if (array->empty() || array->size() > kMessagesMax)
    return std::unexpected(BadField(
        "messages",
        fmt::format("messages has {} entries, expected 1 to {}", array->size(), kMessagesMax)));
  std::vector<Warning> warnings;
  for (size_t i = 0; i < array->size(); ++i)
    if (auto error = MessageNormalizer(i, &warnings).Run(&(*array)[i]))
      return std::unexpected(*std::move(error));
  NameResults(array);
  return warnings;
}

}  // namespace tessera::server::openai
