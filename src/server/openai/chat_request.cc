// SPDX-License-Identifier: Apache-2.0
#include "server/openai/chat_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "server/limits.h"

namespace tessera::server::openai {
namespace {

// What messages are made of. Those that hosted services send back in an answer, so that clients
// send them again, are known: they carry nothing for a model of text.
constexpr std::array<std::string_view, 9> kMessageMembers = {
    "role",          "content", "name",        "tool_calls", "tool_call_id",
    "function_call", "refusal", "annotations", "audio"};
constexpr std::array<std::string_view, 2> kPartMembers = {"type", "text"};
constexpr std::array<std::string_view, 4> kCallMembers = {"id", "type", "index", "function"};
constexpr std::array<std::string_view, 2> kFunctionMembers = {"name", "arguments"};

constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};

/// Works on one message; its errors and warnings say where they are.
class MessageNormalizer {
 public:
  MessageNormalizer(size_t index, std::vector<Warning>* warnings)
      : where_(fmt::format("messages[{}]", index)), warnings_(warnings) {}

  std::optional<ApiError> Run(json::Value* value) {
    json::Object* message = value->if_object();
    if (message == nullptr)
      return Bad(
          fmt::format("{} is of type {}, expected an object", where_, json::KindName(*value)));
    WarnUnknown(*message, kMessageMembers, where_,
                "is given to the chat template, which may not use it");
    if (auto error = CheckRole(message)) return error;
    if (auto error = NormalizeContent(message)) return error;
    return NormalizeToolCalls(message);
  }

 private:
  ApiError Bad(std::string message) const { return BadField("messages", std::move(message)); }
  void Warn(std::string what) {
    warnings_->push_back({"normalized", "messages", fmt::format("{}.{}", where_, what)});
  }

  /// JSON null means absent, as at the top of a body.
  void WarnUnknown(const json::Object& object, std::span<const std::string_view> known,
                   const std::string& where, std::string_view effect) {
    for (const auto& [key, value] : object)
      if (!value.is_null() && std::ranges::find(known, std::string_view(key)) == known.end())
        warnings_->push_back({"unknown_field",
                              fmt::format("{}.{:.100}", where, std::string_view(key)),
                              fmt::format("the member \"{:.100}\" of {} is not known and {}",
                                          std::string_view(key), where, effect)});
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
    const json::Array* parts = content->if_array();
    if (parts == nullptr)
      return Bad(
          fmt::format("{}.content is of type {}, expected a string or an array of text parts",
                      where_, json::KindName(*content)));
    if (parts->empty() || parts->size() > kContentPartsMax)
      return Bad(fmt::format("{}.content has {} parts, expected 1 to {}", where_, parts->size(),
                             kContentPartsMax));
    std::string text;
    for (size_t i = 0; i < parts->size(); ++i)
      if (auto error = AddPart((*parts)[i], i, &text)) return error;
    Warn(fmt::format("content: {} text part(s) joined to one string", parts->size()));
    message->insert_or_assign("content", text);
    return std::nullopt;
  }

  std::optional<ApiError> AddPart(const json::Value& value, size_t index, std::string* text) {
    const json::Object* part = value.if_object();
    if (part != nullptr)
      WarnUnknown(*part, kPartMembers, fmt::format("{}.content[{}]", where_, index), "was ignored");
    const json::Value* type = part == nullptr ? nullptr : json::Find(*part, "type");
    if (type == nullptr || !type->is_string())
      return Bad(
          fmt::format("{}.content[{}] has no type, expected {{\"type\": \"text\", \"text\": ...}}",
                      where_, index));
    if (type->get_string() != "text")
      return Bad(
          fmt::format("{}.content[{}] is a part of type \"{:.50}\"; this model takes text only",
                      where_, index, std::string_view(type->get_string())));
    const json::Value* piece = json::Find(*part, "text");
    if (piece == nullptr || !piece->is_string())
      return Bad(fmt::format("{}.content[{}].text is missing or no string", where_, index));
    if (!text->empty()) *text += '\n';
    *text += std::string_view(piece->get_string());
    return std::nullopt;
  }

  std::optional<ApiError> NormalizeToolCalls(json::Object* message) {
    json::Value* calls = message->if_contains("tool_calls");
    if (calls == nullptr || calls->is_null()) return std::nullopt;
    json::Array* array = calls->if_array();
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
      const std::string where = fmt::format("{}.tool_calls[{}]", where_, i);
      constexpr std::string_view kEffect = "is given to the chat template, which may not use it";
      WarnUnknown(*call, kCallMembers, where, kEffect);
      WarnUnknown(function->get_object(), kFunctionMembers, where + ".function", kEffect);
      NormalizeArguments(i, &function->get_object());
    }
    return std::nullopt;
  }

  void NormalizeArguments(size_t index, json::Object* function) {
    const json::Value* arguments = function->if_contains("arguments");
    if (arguments == nullptr || !arguments->is_string()) return;
    json::Limits limits;
    limits.max_depth = kJsonDepthMax;
    limits.unique_keys = false;
    auto parsed = json::Parse(arguments->get_string(), limits, "arguments");
    if (!parsed.has_value() || !parsed->is_object()) {
      Warn(fmt::format("tool_calls[{}].function.arguments is no JSON object and stays a string",
                       index));
      return;
    }
    function->insert_or_assign("arguments", *std::move(parsed));
    Warn(fmt::format("tool_calls[{}].function.arguments: string parsed to an object", index));
  }

  const std::string where_;
  std::vector<Warning>* warnings_;
  std::string role_;
};

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
  return warnings;
}

ApiResult<text::ChatPrompt> ReadChatPrompt(const json::Object& body, const ServedModel& model,
                                           const text::SpecialTokens& specials,
                                           int64_t now_unix_seconds,
                                           std::vector<Warning>* warnings) {
  const json::Value* messages = json::Find(body, "messages");
  if (messages == nullptr)
    return std::unexpected(BadField("messages", "the field messages is missing"));
  text::RenderInput input;
  input.messages = *messages;
  auto changes = NormalizeMessages(&input.messages);
  if (!changes.has_value()) return std::unexpected(std::move(changes).error());
  warnings->insert(warnings->end(), changes->begin(), changes->end());
  if (model.chat_template == nullptr)
    return std::unexpected(BadField(
        "messages",
        "this model has no chat template; use /v1/completions, or start the server with one"));
  if (const json::Value* documents = json::Find(body, "documents")) input.documents = *documents;
  input.add_generation_prompt = BoolOr(body, "add_generation_prompt", true);
  input.now_unix_seconds = now_unix_seconds;
  input.vars = model.template_vars;
  if (const json::Value* extra = json::Find(body, "chat_template_kwargs"))
    for (const auto& [key, value] : extra->get_object()) input.vars.insert_or_assign(key, value);
  auto prompt =
      text::BuildChatPrompt(std::move(input), *model.chat_template, *model.tokenizer, specials);
  // What a template refuses (raise_exception, a limit) is about the messages, whatever its code.
  if (!prompt.has_value()) return std::unexpected(BadField("messages", prompt.error().ToString()));
  if (prompt->ids.empty())
    return std::unexpected(
        BadField("messages", "the chat template made an empty prompt of the messages"));
  return *std::move(prompt);
}

ApiResult<ChatRequest> ReadChatRequest(std::string_view body, const ServedModel& model,
                                       const text::SpecialTokens& specials,
                                       int64_t now_unix_seconds) {
  auto checked = ReadBody(body, kChat, model);
  if (!checked.has_value()) return std::unexpected(std::move(checked).error());
  auto fields = ReadGenerationFields(checked->body, kChat, model);
  if (!fields.has_value()) return std::unexpected(std::move(fields).error());
  ChatRequest request{.fields = *std::move(fields), .prompt = {}};
  std::vector<Warning>& warnings = request.fields.warnings;
  warnings.insert(warnings.begin(), checked->warnings.begin(), checked->warnings.end());
  auto prompt = ReadChatPrompt(checked->body, model, specials, now_unix_seconds, &warnings);
  if (!prompt.has_value()) return std::unexpected(std::move(prompt).error());
  request.prompt = *std::move(prompt);
  if (auto error = RefuseIfStrict(checked->body, warnings))
    return std::unexpected(*std::move(error));
  return request;
}

}  // namespace tessera::server::openai
